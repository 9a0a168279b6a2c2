//! Power cuts of a recorded run: the operations of a program on a device are recorded once, then replayed on a new device up
//! to some moment, where the power fails; the controller recovers, and what it found is checked.
//!
//! The recorded run is cut, not the program: that is exact (a program that loses power would have done the same before),
//! deterministic, and hundreds of times faster than running the program again.
//!
//! 1. Operations are those that change the device: writes, trims, flushes, counted from 1. Reads are not replayed.
//! 2. They are replayed one after the other, each after the reply to the one before: what was answered is known.
//! 3. A *mark* is a line that the program printed. It counts as acknowledged if all operations done before it was
//!    printed were answered before the cut: then it depends only on those answers. A line that is received late
//!    counts late, so that no loss is invented. A cut right after a reply is also after the lines that the program
//!    printed then, as on an infinitely fast processor.
//!
//! | module | what |
//! |---|---|
//! | `journal`, `recorder` | the recording and its file; a device that records |
//! | `moment` | when the power fails |
//! | `replay`, `recovered` | the recording replayed up to a cut; the recovered device |
//! | `promise` | the allowed contents of every unit after a cut |
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
