//! Media that keep their bytes in memory.

use super::backed::Backed;
use super::backing::{Backing, BuildError};
use super::memory::{self, NotEnough};
use nvlab_design::Payload;
use nvlab_medium::{AnyStore, MemStore};

/// Keeps what is written as long as the device exists.
#[derive(Clone, Copy, Debug)]
pub struct InMemory {
    /// The whole device will be written.
    pub filled: bool,
}

impl Backing for InMemory {
    type Store = AnyStore;
    type PageMap = Backed<AnyStore>;
    fn store(&self, _: &str, bytes: u64) -> Result<AnyStore, BuildError> {
        match memory::reservable() {
            Some(available) if bytes > available => {
                Err(BuildError::Memory(NotEnough { needed: bytes, available }))
            }
            _ => Ok(AnyStore::new(MemStore::new(bytes))),
        }
    }
    fn payload(&self) -> Payload {
        if self.filled { Payload::All } else { Payload::AsWritten }
    }
}
