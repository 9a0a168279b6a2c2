//! Sockets that clients connect to, whatever protocol they speak.
//!
//! | module | what |
//! |---|---|
//! | `listen` | addresses, listeners, and the path of a socket in the file system |
//! | `stream` | a connected socket |
//! | `transport`, `tls` | a connection, encrypted or not |
//! | `incoming` | the read buffer of a connection |
//! | `acceptor` | a listener and its thread |
//! | `connections` | a thread for each connection, limits, and eviction |
//! | `log` | a rate-limited log of what remote clients cause |

pub(crate) mod acceptor;
pub(crate) mod connections;
pub(crate) mod incoming;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod stream;
pub(crate) mod tls;
pub(crate) mod transport;
