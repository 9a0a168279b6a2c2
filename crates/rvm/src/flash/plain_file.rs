//! A plain file laid out as flash: for real use on file systems and for tests of code that runs on flash.
//!
//! The byte at an offset of the device is the byte at that offset of the file. Programs and erases are durable when they
//! return: each ends with fdatasync. A power failure during one leaves any part of it, which the contract of [`Flash`] allows: the
//! bytes around it do not change.
//!
//! After a sync that failed or never happened, the page cache may show contents that are not on the disk, and mark
//! them clean; once evicted, the old contents are read. So the whole file is written once more, before the first
//! program or erase after opening it, or on request: reading alone does not change a file. Data read before that may
//! differ from what was written.

use super::{Erased, Flash, Shape, by_piece, check_clears};
use crate::store::FileStore;
use crate::{Error, Result, Store};
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// A file as a flash device. It is locked as long as it is open.
#[derive(Debug)]
pub struct PlainFile {
    store: Box<dyn Store>,
    name: String,
    shape: Shape,
    /// Whether all that can be read is on the disk.
    is_rewritten: bool,
}

impl PlainFile {
    /// Creates a file, which must not exist, as an erased device. Durable when it returns.
    pub fn create(path: &Path, shape: Shape) -> Result<PlainFile> {
        check_block_bytes(shape.block_bytes)?;
        let store = locked(path, nvlab_os::file::private().create_new(true), "create")?;
        let fill = || {
            store.set_len(shape.bytes())?;
            by_piece(0, shape.bytes(), |offset, piece| {
                piece.fill(0xff);
                store.write(piece, offset)
            })?;
            store.sync()?;
            nvlab_os::file::sync_name(path)
        };
        if let Err(error) = fill() {
            // Half a file would be in the way of the next attempt.
            let _ = std::fs::remove_file(path);
            return Err(Error::io("create", &path.display())(error));
        }
        let (store, name) = (Box::new(store), path.display().to_string());
        Ok(PlainFile { store, name, shape, is_rewritten: true })
    }

    /// Opens a file with erase blocks of `block_bytes`.
    pub fn open(path: &Path, block_bytes: u64) -> Result<PlainFile> {
        check_block_bytes(block_bytes)?;
        let store = locked(path, &mut nvlab_os::file::private(), "open")?;
        PlainFile::open_on(Box::new(store), path.display().to_string(), block_bytes)
    }

    /// As `open`, on a store whose length is whole blocks; `name` is for messages.
    pub fn open_on(store: Box<dyn Store>, name: String, block_bytes: u64) -> Result<PlainFile> {
        check_block_bytes(block_bytes)?;
        let bytes = store.len().map_err(Error::io("measure", &name))?;
        match u32::try_from(bytes / block_bytes) {
            Ok(blocks) if bytes % block_bytes == 0 && blocks > 0 => {
                Ok(PlainFile { store, name, shape: Shape { block_bytes, blocks }, is_rewritten: false })
            }
            _ => {
                let why = format!("it has {bytes} B, not a multiple of erase blocks of {block_bytes} B");
                Err(Error::Format { what: name, offset: bytes, why })
            }
        }
    }
}

fn locked(path: &Path, options: &mut OpenOptions, verb: &str) -> Result<FileStore> {
    FileStore::lock(options.open(path).map_err(Error::io(verb, &path.display()))?, path)
}

fn check_block_bytes(bytes: u64) -> Result<()> {
    match bytes {
        0 => Err(Error::Invalid("erase blocks of 0 B".into())),
        _ => Ok(()),
    }
}

impl Flash for PlainFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.shape.check(offset, into.len())?;
        self.store.read(into, offset)
    }

    fn rewrite(&mut self) -> io::Result<bool> {
        if self.is_rewritten {
            return Ok(false);
        }
        by_piece(0, self.shape.bytes(), |offset, piece| {
            self.store.read(piece, offset)?;
            self.store.write(piece, offset)
        })?;
        self.store.sync()?;
        self.is_rewritten = true;
        Ok(true)
    }

    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.rewrite()?;
        let mut old = vec![0; data.len()];
        self.read(offset, &mut old)?;
        check_clears(&old, data, offset)?;
        self.store.write(data, offset)?;
        self.store.sync()
    }

    fn erase(&mut self, block: u32) -> io::Result<Erased> {
        let offset = self.shape.check_block(block)?;
        self.rewrite()?;
        self.store.write(&vec![0xff; self.shape.block_bytes as usize], offset)?;
        self.store.sync().map(|()| Erased::Clean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { block_bytes: 4096, blocks: 3 };

    #[test]
    fn a_plain_file_obeys_the_rules_of_flash_and_has_one_opener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash");
        let mut device = PlainFile::create(&path, SHAPE).unwrap();
        assert!(matches!(PlainFile::open(&path, 4096), Err(Error::Busy(busy)) if busy == path));
        device.program(4094, &[0xf0, 0x0f, 0x33]).unwrap();
        let error = device.program(4095, &[0x0e, 0x37]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "programming 0x37 over 0x33 at offset 4096 would set bits");
        device.program(3 * 4096 - 1, &[0, 0]).unwrap_err();
        device.erase(3).unwrap_err();
        drop(device);
        let mut device = PlainFile::open(&path, 4096).unwrap();
        assert_eq!(device.shape(), SHAPE);
        let mut bytes = [0; 5];
        device.read(4093, &mut bytes).unwrap();
        assert_eq!(bytes, [0xff, 0xf0, 0x0f, 0x33, 0xff]);
        assert_eq!(device.erase(0).unwrap(), Erased::Clean);
        device.read(4093, &mut bytes).unwrap();
        assert_eq!(bytes, [0xff, 0xff, 0xff, 0x33, 0xff]);
    }

    /// It used to be written when it was opened, even to be looked at.
    #[test]
    fn opening_a_plain_file_does_not_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash");
        drop(PlainFile::create(&path, SHAPE).unwrap());
        let written = || {
            let before = std::fs::metadata(&path).unwrap().modified().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(30));
            let path = path.clone();
            move || std::fs::metadata(&path).unwrap().modified().unwrap() != before
        };
        let mut device = PlainFile::open(&path, 4096).unwrap();
        let is_written = written();
        device.read(0, &mut [0; 9]).unwrap();
        drop(device);
        let mut device = PlainFile::open(&path, 4096).unwrap();
        assert!(!is_written(), "it was only read");
        assert!(device.rewrite().unwrap() && is_written());
        let is_written = written();
        assert!(!device.rewrite().unwrap() && !is_written(), "once is enough");
        drop(device);
        let mut device = PlainFile::open(&path, 4096).unwrap();
        device.program(4096, &[0]).unwrap();
        assert!(device.is_rewritten && is_written());
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash");
        let error = PlainFile::open(&path, 4096).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot open {}: ", path.display())), "{error}");
        std::fs::write(&path, [0; 5000]).unwrap();
        let error = PlainFile::open(&path, 4096).unwrap_err();
        assert!(matches!(error, Error::Format { offset: 5000, .. }), "{error}");
        assert!(matches!(PlainFile::create(&path, SHAPE), Err(Error::Io { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), [0; 5000]);
    }
}
