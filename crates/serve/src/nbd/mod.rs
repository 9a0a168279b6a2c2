//! An NBD server of our own, over Unix sockets and loopback TCP: fixed newstyle handshake, simple and structured replies.
//!
//! Follows the NetworkBlockDevice project's `doc/proto.md`. Not here: oldstyle, extended headers; of TLS,
//! pre-shared keys, which rustls does not have.
//!
//! 1. Whatever a client sends, the others are served: every length is checked before memory is taken, options that are
//!    unknown are refused and skipped, and a request that cannot be understood ends its own connection only.
//! 2. Answers come in the order in which they are due. A device whose time is real holds them in a thread of its own
//!    (`answers`); otherwise one thread serves a connection, and answers what it has read at once before it waits.
//! 3. A large read is sent from the media, without a copy in between, where the device shows its bytes and its answers
//!    are neither held nor encrypted. The device is not asked anything else meanwhile, so nothing can change under it;
//!    what the socket does not take without waiting is copied.
//! 4. A flush covers what was answered on every connection: they share one device.
//! 5. After a power cut every connection is closed, unanswered.
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | numbers and formats, as functions on bytes |
//! | `incoming` | a buffer in front of a connection |
//! | `transport`, `tls` | a connection, encrypted or not |
//! | `handshake` | from the greeting to an export |
//! | `transmission`, `refusal` | requests; which are refused, and why |
//! | `answers` | replies: sent at once, or held |
//! | `server` | listeners and connections |

mod answers;
mod export;
mod handshake;
mod incoming;
mod refusal;
mod server;
mod tls;
mod transmission;
mod transport;
pub mod wire;

pub use crate::net::connections::ConnectionLimits;
pub use crate::net::listen::Address;
pub use crate::net::log::Log;
pub use export::Export;
pub use server::{Lateness, NbdServer, Options};
pub use tls::{Security, TlsMode};
