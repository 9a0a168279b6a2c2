//! System calls of serving, each behind a safe interface; what is not about serving lies in `nvlab-os`.
//!
//! | module | what |
//! |---|---|
//! | [`abi`] | the kernel's userfaultfd and the handshake with preloaded programs: numbers and structures |
//! | [`poll`] | waits for several files at once |
//! | [`process`] | processors, users, and the end of processes |
//! | [`ring`] | transfers through io_uring |
//! | [`signals`] | signals as files: stop, and power failure |
//! | [`socket`] | packets with a descriptor |
//! | [`stream`] | stream sockets: send without waiting |
//! | [`usage`] | processor time used |
//! | [`userfaultfd`] | page faults as messages, and the answers to them |

pub mod abi;
pub mod poll;
pub mod process;
pub mod ring;
pub mod signals;
pub mod socket;
pub mod stream;
pub mod usage;
pub mod userfaultfd;
