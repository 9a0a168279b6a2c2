//! Heaps in segments of recoverable memory; its log makes their commits durable.

use crate::domain::Persistence;
use crate::error::{Error, Result};
use crate::heap::{Heap, Options};
use crate::layout::TYPES;
use crate::memory::Memory;
use crate::persist::Brand;
use crate::place;
use crate::region::Region;
use crate::tx::Tx;
use nvlab_rvm::Rvm;
use std::path::Path;
use std::sync::Arc;

impl<H: Brand> Heap<H> {
    /// Creates a heap in a segment of recoverable memory, which begins with zeros, with a transaction of `rvm` for each of its own.
    /// It takes the size of the segment, up to [`Options::bytes_max`]; [`Options::log_bytes`] does not matter.
    pub fn create_on(
        rvm: &Arc<Rvm>,
        segment: &str,
        options: Options,
        root: impl FnMut(&Tx<'_, H>) -> Result<H::Root> + Send,
    ) -> Result<Self> {
        let (path, region) = (Path::new(segment), on_log(rvm, segment, &options)?);
        // Its own logs are not used: they are as small as can be.
        let layout = Options { log_bytes: 8192, ..options.clone() }.layout().fit(region.bytes());
        if !layout.is_sane() {
            return Err(Error::Invalid(format!("{segment} cannot hold a heap with {options:?}")));
        }
        if !place::is_blank(path, &region.read_start(place::BLANK_BYTES)) {
            return Err(Error::Format { path: path.into(), why: "it already holds something else".into() });
        }
        let memory = Memory::in_region(region, path, layout.bytes(layout.pages_max), layout.data());
        Self::make(memory, (layout, options.identity), root)
    }

    /// Opens the heap in a segment of recoverable memory, which has been recovered when its log was opened.
    pub fn open_on(rvm: &Arc<Rvm>, segment: &str, options: Options) -> Result<Self> {
        let (path, region) = (Path::new(segment), on_log(rvm, segment, &options)?);
        let (header, shape) = Self::identify(path, &region.read_start(TYPES.end))?;
        header.pages(path, region.bytes())?;
        if header.layout.checksums {
            let why = "it has checksums, which are not kept up to date in recoverable memory".into();
            return Err(Error::Format { path: path.into(), why });
        }
        let (layout, replayed) = (header.layout, region.recovered());
        let memory = Memory::in_region(region, path, layout.bytes(layout.pages_max), layout.data());
        Self::resume(memory, header, shape, replayed)
    }
}

/// The region of a heap whose durability is its log's.
fn on_log(rvm: &Arc<Rvm>, segment: &str, options: &Options) -> Result<Region> {
    if options.checksums {
        return Err(Error::Invalid(format!("{segment}: a heap in recoverable memory cannot have checksums")));
    }
    match options.persistence {
        Persistence::Detect => Region::map(rvm, segment),
        _ => {
            Err(Error::Invalid(format!("{segment}: its log makes it durable, not {:?}", options.persistence)))
        }
    }
}
