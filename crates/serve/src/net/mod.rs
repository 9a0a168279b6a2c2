//! Sockets that callers come to, whatever they speak there.
//!
//! | module | what |
//! |---|---|
//! | `listen` | addresses, listeners, and the path of a socket in the file system |
//! | `stream` | a connected socket |
//! | `room` | who is served, each in a thread, and who must go when too many come |
//! | `log` | what strangers can make a server say |

pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod room;
pub(crate) mod stream;
