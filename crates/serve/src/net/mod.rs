//! Sockets that callers come to, whatever they speak there.
//!
//! | module | what |
//! |---|---|
//! | `listen` | addresses, listeners, and the path of a socket in the file system |
//! | `stream` | a connected socket |

pub(crate) mod listen;
pub(crate) mod stream;
