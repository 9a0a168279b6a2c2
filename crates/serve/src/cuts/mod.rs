//! Power cuts of a recorded run: what a program did to a device is recorded once, then done again to a new device up to
//! some moment, where the power fails; the controller finds everything again, and somebody looks at what it found.
//!
//! It is the recorded run that is cut, not the program: that is exact (a program that is killed with the power could have
//! asked nothing else before), the same every time, and hundreds of times faster than running the program again.
//!
//! 1. Operations are those that change the device: writes, trims, flushes, counted from 1. Reads are not done again.
//! 2. They are done one after the other, each after the answer to the one before: what was answered is known.
//! 3. A *mark* is a line the program printed. It counts as acknowledged if no more operations were done when it came than
//!    were answered before the cut: then it claims nothing but what had been answered. A line that came late counts late,
//!    so that no loss is invented. A cut right after an answer is also after what the program printed then, as on a
//!    processor that computes in no time.
//!
//! | module | what |
//! |---|---|
//! | `journal`, `recorder` | the recording and its file; a device that records |
//! | `moment` | when the power fails |
//! | `replay`, `recovered` | the recording replayed up to a cut; the device that came back |
//! | `promise` | what every unit may hold after a cut |
//! | [`shrink`] | from a failure to a smaller one |

mod journal;
mod moment;
mod promise;
mod recorder;
mod recovered;
mod replay;
pub mod shrink;

pub use journal::{Entry, Journal, Kind, Mark};
pub use moment::{Moment, moments};
pub use promise::{Broken, Promise};
pub use recorder::SharedJournal;
pub use recovered::Recovered;
pub use replay::Replayer;
