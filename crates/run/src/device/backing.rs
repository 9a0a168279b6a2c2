//! The storage of the bytes of a device's media: none, memory, or storage provided by the serving edge. The same
//! builders make a device over any of them, factory-new or recovered.

use super::Observed;
use super::memory::NotEnough;
use nvlab_controller::{Controller, PageMap};
use nvlab_design::{PageMapped, Payload};
use nvlab_medium::Store;
use nvlab_medium::flash::{FlashConfig, Nand, SlcMode};
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Time};
use thiserror::Error;

/// Why a device cannot be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The design is not possible.
    #[error("{0}")]
    Design(String),
    /// The controller could not recover from its media.
    #[error("{0}")]
    Recovery(String),
    /// This machine does not have enough memory for it.
    #[error(
        "simulating it takes {} of memory; {} are available on this machine",
        display_bytes(_0.needed),
        display_bytes(_0.available)
    )]
    Memory(NotEnough),
    /// Its media cannot be had; who provides them says why.
    #[error("{0}")]
    Media(Box<dyn std::error::Error + Send + Sync>),
}

/// Provides the store of every medium of one device.
pub trait Backing {
    /// Where a medium keeps its bytes.
    type Store: Store + Send + 'static;
    /// A page map over such stores.
    type PageMap: PageMapOver<Self::Store>;
    /// A store of `bytes` for the medium of this name (`nand`, `log`, `pram`, `nor`, `sram`): all zero, or what an
    /// earlier program left in it.
    fn store(&self, medium: &str, bytes: u64) -> Result<Self::Store, BuildError>;
    /// The same for a medium that is written in place, in any order: the next bytes written may lie anywhere.
    fn store_in_place(&self, medium: &str, bytes: u64) -> Result<Self::Store, BuildError> {
        self.store(medium, bytes)
    }
    /// A store for an array of flash with this name.
    fn array_store(&self, name: &'static str, geometry: &Geometry) -> Result<Self::Store, BuildError> {
        self.store(name, Nand::<Self::Store>::store_bytes(geometry))
    }
    /// What the stores will keep.
    fn payload(&self) -> Payload {
        if Self::Store::KEEPS { Payload::AsWritten } else { Payload::Nothing }
    }
    /// True if an earlier program left a device in the stores. What it had queued counts as done.
    fn is_used(&self) -> bool {
        false
    }
    /// True if the stores outlive the program: what a protected write buffer holds is then kept in one of them, too.
    fn outlives_the_program(&self) -> bool {
        false
    }
    /// An error that names the place of a medium that holds something else than an earlier program left in it.
    fn damaged(&self, medium: &str, why: String) -> BuildError {
        BuildError::Recovery(format!("{medium}: {why}"))
    }
}

/// A page map over an array in such a store.
pub trait PageMapOver<S: Store>: Controller + Observed + Send + Sized + 'static {
    /// A page map, new from the factory or recovered; also returns when it is ready.
    fn open<B: Backing<Store = S> + ?Sized>(
        backing: &B,
        page: &PageMapped,
        seed: u64,
        nand: Nand<S>,
    ) -> Result<(Self, Time), BuildError>;
}

/// Keeps nothing: the device only models time.
#[derive(Clone, Copy, Debug)]
pub struct NoBytes;

impl Backing for NoBytes {
    type Store = ();
    type PageMap = PageMap<()>;
    fn store(&self, _: &str, _: u64) -> Result<(), BuildError> {
        Ok(())
    }
}

/// Without bytes there is nothing to recover.
impl PageMapOver<()> for PageMap {
    fn open<B: Backing<Store = ()> + ?Sized>(
        _: &B,
        page: &PageMapped,
        seed: u64,
        nand: Nand,
    ) -> Result<(PageMap, Time), BuildError> {
        Ok((new_page_map(page, seed, nand)?, Time::ZERO))
    }
}

/// A page map over an array that is new from the factory.
pub fn new_page_map<S: Store>(page: &PageMapped, seed: u64, nand: Nand<S>) -> Result<PageMap<S>, BuildError> {
    let map = PageMap::new(page.config(seed), nand).map_err(BuildError::Design)?;
    match &page.cache {
        Some(cache) => map.with_cache(cache.config).map_err(BuildError::Design),
        None => Ok(map),
    }
}

/// An array, new from the factory or reopened. `slc`: how its blocks may be used with one bit per cell.
pub(super) fn nand<B: Backing + ?Sized>(
    backing: &B,
    name: &'static str,
    flash: FlashConfig,
    slc: Option<SlcMode>,
) -> Result<Nand<B::Store>, BuildError> {
    let store = backing.array_store(name, &flash.geometry)?;
    if backing.is_used() {
        return Ok(Nand::reopen(flash, store, slc));
    }
    let nand = Nand::new(flash, store);
    Ok(match slc {
        Some(mode) => nand.with_slc_mode(mode),
        None => nand,
    })
}
