//! Applies committed changes to a segment: as a batch ([`super::batch`]), or, if its file lies in memory and is fully
//! allocated, by storing them directly.

use super::batch::Batch;
use crate::record::copy;
use crate::{Error, Result, Store};
use nvlab_os::Mapping;
use nvlab_os::file::{is_in_memory, is_whole};
use nvlab_os::stores::prefetch_lines_for_store;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Bytes of changes that are kept before they are written.
const BATCH_BYTES_MAX: usize = 64 << 20;
/// The processor itself gets the rest of a longer change.
pub(super) const PREFETCH_BYTES_MAX: usize = 256;

/// Changes of one segment on their way to its store.
#[derive(Debug)]
pub struct Pages {
    name: String,
    store: Arc<dyn Store>,
    store_bytes: u64,
    /// The segment, if it lies in memory.
    memory: Option<Mapping>,
    batch: Batch,
    applied_bytes: u64,
}

impl Pages {
    pub fn new(name: String, store: Arc<dyn Store>) -> Result<Pages> {
        let batch = Batch::default();
        let mut pages = Pages { name, store, store_bytes: 0, memory: None, batch, applied_bytes: 0 };
        pages.measure()?;
        Ok(pages)
    }

    /// Takes note of how long the segment is now.
    pub fn measure(&mut self) -> Result<()> {
        let failed = |what: &'static str| Error::io(what, &self.name);
        let bytes = self.store.len().map_err(failed("measure"))?;
        if bytes != self.store_bytes {
            let file = self.store.file();
            let is_ready = |file: &File| io::Result::Ok(is_in_memory(file)? && is_whole(file)?);
            let in_memory = file.filter(|file| is_ready(file).is_ok_and(|is| is));
            let mapped = in_memory.map(|file| Mapping::shared(file, bytes));
            self.memory = mapped.transpose().map_err(failed("map"))?;
            self.store_bytes = bytes;
        }
        Ok(())
    }

    /// Puts `data` over what is at `offset`.
    #[inline(always)]
    pub fn insert(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset + data.len() as u64;
        if end > self.store_bytes {
            return Err(too_short(&self.name, self.store_bytes, end));
        }
        self.applied_bytes += data.len() as u64;
        match &mut self.memory {
            Some(memory) => {
                copy(&mut memory.as_mut_slice()[offset as usize..end as usize], data);
                Ok(())
            }
            None => self.push(offset, data),
        }
    }

    #[inline(never)]
    fn push(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        if self.batch.bytes() > 0 && self.batch.bytes() + data.len() > BATCH_BYTES_MAX {
            self.write()?;
        }
        self.batch.push(offset, data);
        Ok(())
    }

    /// Takes a batch that comes before all other changes.
    pub fn take(&mut self, batch: Batch) -> Result<()> {
        let (mut bytes, mut end) = (0, 0);
        batch.each(|offset, data| {
            bytes += data.len() as u64;
            end = end.max(offset + data.len() as u64);
        });
        if end > self.store_bytes {
            return Err(too_short(&self.name, self.store_bytes, end));
        }
        self.applied_bytes += bytes;
        match &mut self.memory {
            Some(memory) => {
                let memory = memory.as_mut_slice();
                batch.each(|offset, data| copy(&mut memory[offset as usize..][..data.len()], data));
            }
            None => self.batch = batch,
        }
        Ok(())
    }

    /// Gets the lines at `offset` for [`Pages::insert`] to store to, if that stores directly.
    #[inline]
    pub fn prefetch(&self, offset: u64, bytes: usize) {
        let Some(memory) = &self.memory else { return };
        prefetch_lines_for_store(memory.start().wrapping_add(offset as usize), bytes.min(PREFETCH_BYTES_MAX));
    }

    fn write(&mut self) -> Result<()> {
        self.batch.write(self.store.as_ref(), &self.name, self.store_bytes)
    }

    /// Writes what is left and makes all of it durable. Returns the bytes of changes.
    pub fn finish(&mut self) -> Result<u64> {
        if self.applied_bytes > 0 {
            self.write()?;
            self.store.sync().map_err(Error::io("sync", &self.name))?;
        }
        Ok(std::mem::take(&mut self.applied_bytes))
    }
}

/// The error of a segment that ends before what the log changes.
#[cold]
pub(super) fn too_short(name: &str, has: u64, end: u64) -> Error {
    let why = format!("the log changes it up to byte {end}, but it has only {has}");
    Error::Format { what: name.into(), offset: has, why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAGE_BYTES;
    use crate::Segments;
    use crate::store::disk::Disk;
    use proptest::prelude::*;

    const BYTES: usize = 30 * PAGE_BYTES as usize - 700;

    proptest! {
        #[test]
        fn the_newest_bytes_win(
            inserts in prop::collection::vec((0..BYTES - 5000, prop_oneof![0usize..5000, 0usize..50]), 1..30), takes_parts: bool,
        ) {
            let disk = Disk::default();
            if takes_parts {
                disk.take_parts();
            }
            disk.create("data", BYTES);
            let mut pages = Pages::new("data".into(), Arc::from(disk.open("data").unwrap())).unwrap();
            let mut model = vec![0; BYTES];
            model.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 5) as u8);
            disk.damage("data", |bytes| bytes.copy_from_slice(&model));
            for (number, (offset, bytes)) in inserts.into_iter().enumerate() {
                pages.insert(offset as u64, &vec![number as u8 + 1; bytes]).unwrap();
                model[offset..offset + bytes].fill(number as u8 + 1);
            }
            pages.finish().unwrap();
            let mut found = vec![0; BYTES];
            disk.restart().open("data").unwrap().read(&mut found, 0).unwrap();
            prop_assert!(found == model);
            prop_assert!(pages.insert(BYTES as u64 - 1, &[1, 2]).is_err());
        }
    }
}
