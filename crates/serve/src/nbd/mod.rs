//! An NBD server, over Unix sockets and TCP: fixed newstyle handshake, simple and structured replies.
//!
//! Follows the NetworkBlockDevice project's `doc/proto.md`. Not supported: oldstyle, extended
//! headers, and TLS with pre-shared keys, which rustls does not have.
//!
//! 1. Whatever a client sends, the others are served: every length is checked before memory is allocated, unknown
//!    options are refused and skipped, and a request that cannot be parsed ends its own connection only.
//! 2. Replies are sent in the order in which they are due. If the device's time is real, a thread holds them
//!    (`answers`), except those due at once; otherwise one thread serves a connection, and answers the requests it
//!    has read before it waits for more.
//! 3. A large read is sent from the media without a copy if the device exposes its bytes and replies are neither held
//!    nor encrypted. The device serves nothing else during the send, so the bytes cannot change; what the socket does
//!    not accept without waiting is copied.
//! 4. A flush covers everything answered on any connection: they share one device.
//! 5. A power cut closes every connection without replies.
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | constants and formats, as functions on bytes |
//! | `handshake` | from the greeting to an export |
//! | `transmission`, `refusal` | requests; which are refused, and why |
//! | `server` | listeners and connections |
//! | `client` | a client for measurements |

pub(crate) mod client;
mod export;
mod handshake;
mod refusal;
mod server;
mod transmission;
pub mod wire;

pub use crate::net::connections::ConnectionLimits;
pub use crate::net::listen::Address;
pub use crate::net::log::Log;
pub use crate::net::tls::{Security, TlsMode};
pub use export::Export;
pub use server::{NbdServer, Options};
