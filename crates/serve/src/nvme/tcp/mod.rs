//! NVMe/TCP: what carries commands over a connection. It knows no command.
//!
//! | module | what |
//! |---|---|
//! | `pdu` | formats and their checks, as functions on bytes |
//! | `link` | a connection: from ICReq to PDUs with digests |
//! | `queue` | the commands of a connection, and the transfer of their data |

mod link;
mod pdu;
mod queue;

pub use link::{End, Link};
pub use pdu::IN_CAPSULE_BYTES;
pub use queue::Queue;
