//! Devices over media that keep bytes.

use super::backed::Backed;
use super::backing::{Backing, BuildError, Media};
use nvlab_design::{PageMapped, Payload};
use nvlab_medium::AnyStore;
use nvlab_medium::flash::Nand;
use nvlab_units::{Geometry, Time};

/// Builds devices over media.
pub(crate) struct Over<'a>(pub &'a dyn Media);

impl Backing for Over<'_> {
    type Store = AnyStore;
    type PageMap = Backed<AnyStore>;
    fn store(&self, medium: &str, bytes: u64) -> Result<AnyStore, BuildError> {
        self.0.store(medium, bytes)
    }
    fn store_in_place(&self, medium: &str, bytes: u64) -> Result<AnyStore, BuildError> {
        self.0.store_in_place(medium, bytes)
    }
    fn array_store(&self, name: &'static str, geometry: &Geometry) -> Result<AnyStore, BuildError> {
        self.0.array_store(name, geometry)
    }
    fn payload(&self) -> Payload {
        self.0.payload()
    }
    fn is_used(&self) -> bool {
        self.0.is_used()
    }
    fn page_map(
        &self,
        page: &PageMapped,
        seed: u64,
        nand: Nand<AnyStore>,
    ) -> Result<(Backed<AnyStore>, Time), BuildError> {
        Backed::open(self.0, page, seed, nand)
    }
}
