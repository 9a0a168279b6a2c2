//! Recoverable virtual memory.
pub mod error;
pub mod flash;
pub mod heap;
pub mod log;
pub mod store;
pub use error::{Error, Result};
pub use flash::Flash;
pub use log::{Log, Status};
pub use store::{Segments, Store};
