//! An NVMe over Fabrics target on TCP: every design as a drive of an unmodified Linux kernel.
//!
//! Follows NVM Express Base 2.0, NVM Command Set 1.0 and TCP Transport 1.0. One subsystem; each device is a namespace of it,
//! in the order given. Not supported: authentication, TLS, fused commands, reservations, namespace management, metadata.
//!
//! 1. Whatever a host sends, the others are served: every length is checked before memory is allocated. A command that is
//!    wrong gets a status; a PDU that is wrong ends its own connection with a C2HTermReq.
//! 2. A transport moves the data of commands and knows none of them; a command set serves commands and knows no transport
//!    (`command`). Write data reach the device as they arrive, without a buffer of their own.
//! 3. Replies are held or sent at once as for the other front ends (`answers`), in the order in which they are due. A large
//!    read is sent from the media without a copy if the device exposes its bytes and replies are neither held nor have
//!    digests.
//! 4. A flush covers everything answered on any queue: the queues share one device.
//! 5. A power cut closes every connection without replies, which ends all controllers; the host reconnects.
//! 6. A controller ends with the connection of its admin queue, or when its keep-alive timer expires; its I/O queues are
//!    closed then.
//!
//! | module | what |
//! |---|---|
//! | `command` | commands, statuses, what a command moves, the interface of command sets |
//! | `subsystem`, `namespace`, `controller` | devices, and the hosts that use them |
//! | `connect` | the fabrics command that makes a connection a queue |
//! | `admin` | commands of an admin queue, of I/O and discovery controllers: `identify`, `features`, `logs` |
//! | `io`, `nvm` | commands of an I/O queue, by command set |
//! | `page` | data structures with little-endian fields at fixed places |
//! | `tcp` | the transport: PDUs, digests, R2T |
//! | `server` | listener and connections |

mod admin;
mod command;
mod connect;
mod controller;
mod io;
mod namespace;
mod nvm;
mod page;
mod server;
mod subsystem;
mod tcp;

pub use server::{NvmeServer, Options};
