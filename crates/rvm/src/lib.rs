//! Recoverable virtual memory.
mod checksum;
pub mod error;
pub mod flash;
pub mod log;
pub mod store;
pub use error::{Error, Result};
pub use flash::Flash;
pub use log::{Log, Status};
pub use store::{Segments, Store};
