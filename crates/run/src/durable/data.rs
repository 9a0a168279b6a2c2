//! The data: one segment, mapped completely. Without its own disk it costs no time, as in the figures of system 001,
//! whose data is a file in the host's cache (slide 33).

use super::disk::DiskStore;
use nvlab_rvm::{Error, Result, Segments, Store};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the segment.
pub const SEGMENT: &str = "data";

/// The segment. Clones are the same one.
#[derive(Clone, Debug)]
pub enum Data {
    /// In memory, at no cost.
    Memory(Arc<Mutex<Vec<u8>>>),
    /// On a disk.
    Disk(DiskStore),
}

impl Data {
    /// A segment of zeros that costs no time.
    pub fn free(bytes: u64) -> Data {
        Data::Memory(Arc::new(Mutex::new(vec![0; bytes as usize])))
    }
}

impl Segments for Data {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        match (self, name == SEGMENT) {
            (Data::Disk(disk), true) => Ok(Box::new(disk.clone())),
            (Data::Memory(_), true) => Ok(Box::new(self.clone())),
            (_, false) => Err(Error::Invalid(format!("there is no segment {name}"))),
        }
    }
}

impl Store for Data {
    fn len(&self) -> io::Result<u64> {
        match self {
            Data::Memory(bytes) => Ok(bytes.lock().unwrap_or_else(PoisonError::into_inner).len() as u64),
            Data::Disk(disk) => disk.len(),
        }
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Data::Memory(bytes) => {
                let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                let from = bytes.get(offset as usize..).and_then(|rest| rest.get(..into.len()));
                into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            Data::Disk(disk) => disk.read(into, offset),
        }
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Data::Memory(bytes) => {
                let mut bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
                let into = bytes.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..data.len()));
                into.ok_or(io::ErrorKind::UnexpectedEof)?.copy_from_slice(data);
                Ok(())
            }
            Data::Disk(disk) => disk.write(data, offset),
        }
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn sync(&self) -> io::Result<()> {
        match self {
            Data::Memory(_) => Ok(()),
            Data::Disk(disk) => disk.sync(),
        }
    }
}
