//! Media that keep their bytes in memory.

use super::backed::Backed;
use super::backing::{Backing, BuildError};
use super::memory::{self, NotEnough};
use nvlab_design::{PageMapped, Payload};
use nvlab_medium::flash::Nand;
use nvlab_medium::{AnyStore, MemStore};
use nvlab_units::Time;

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
    fn page_map(
        &self,
        page: &PageMapped,
        seed: u64,
        nand: Nand<AnyStore>,
    ) -> Result<(Backed<AnyStore>, Time), BuildError> {
        Backed::open(self, page, seed, nand)
    }
}
