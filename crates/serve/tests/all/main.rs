//! Tests of what others use of this crate, in one program.

mod aged;
mod bench;
mod common;
mod corruption;
mod cuts;
mod doors;
mod failing;
mod heap;
mod hooked;
mod latency;
mod memory;
mod nbd;
mod nbd_client;
mod nbd_limits;
mod nbd_refusals;
mod nbd_tls;
mod nvramdisk;
mod program;
mod served;
mod slots;
mod sockets;
mod state_fuzz;
mod states;
mod window;
