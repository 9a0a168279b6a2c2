//! A device after its recovery from a power cut, to be checked.

use crate::served::ServedDevice;
use nvlab_units::Time;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are copied at a time.
const PIECE_BYTES: u64 = 256 << 10;

/// A device that recovered, or claims that it did.
pub struct Recovered {
    pub(super) device: Box<dyn ServedDevice>,
    pub(super) now: Time,
}

impl Recovered {
    /// As many as the design says; recovery does not change it.
    pub fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    /// Reads bytes; the error says what cannot be read.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        let read = self.device.read(self.now, offset, into.len() as u32, into);
        self.now = read.map_err(|error| format!("byte {offset} cannot be read: {error}"))?;
        self.device.settle(self.now);
        Ok(())
    }

    /// Copies its contents to a file, which becomes as long as the device; unmapped units stay holes.
    pub fn copy_to(&mut self, file: &File) -> Result<(), String> {
        let failed = |error: io::Error| format!("the copy of the device cannot be written: {error}");
        let (capacity, unit) = (self.capacity_bytes(), self.device.unit_bytes() as u64);
        file.set_len(0).and_then(|()| file.set_len(capacity)).map_err(failed)?;
        let (mut offset, mut bytes) = (0, Vec::new());
        while offset < capacity {
            let mut end = offset;
            while end < capacity && end - offset < PIECE_BYTES && self.device.is_mapped(end) {
                end += unit;
            }
            let end = end.min(capacity);
            if end > offset {
                bytes.resize((end - offset) as usize, 0);
                self.read(offset, &mut bytes)?;
                file.write_all_at(&bytes, offset).map_err(failed)?;
                offset = end;
            } else {
                offset += unit;
            }
        }
        Ok(())
    }
}
