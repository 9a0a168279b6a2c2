//! NOR flash behind Linux MTD: a character device such as `/dev/mtd0`.
//!
//! Reads are pread, programs pwrite, an erase is MEMERASE64; the device has no cache above it, so each is durable when it
//! returns. An erase that fails with EIO, which is what drivers report for a failed erase and one that takes too long,
//! says that the block is worn out. Blocks that are locked after power-up have to be unlocked before (flash_unlock).
//!
//! Not tested on hardware: the computers used for development have no MTD device. Tested are the requests
//! ([`nvlab_os::mtd`]), the choice of devices, and the errors for files of other kinds.

use super::{Erased, Flash, Shape};
use crate::{Error, Result};
use nvlab_os::mtd::{self, Info};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The number of EIO on Linux.
const EIO: i32 = 5;
/// The number of ENOTTY on Linux: no such request.
const ENOTTY: i32 = 25;

/// An MTD character device. It is locked as long as it is open.
#[derive(Debug)]
pub struct Mtd {
    device: File,
    path: PathBuf,
    shape: Shape,
}

impl Mtd {
    /// Opens a device whose bits can be programmed one by one, with erase blocks of one size.
    pub fn open(path: &Path) -> Result<Mtd> {
        let device = nvlab_os::file::private().open(path).map_err(Error::io("open", &path.display()))?;
        let info = mtd::info(&device).map_err(|error| refused(path, error))?;
        let regions = mtd::regions(&device).map_err(|error| refused(path, error))?;
        let shape = shape(&info, regions)
            .map_err(|why| Error::Invalid(format!("{} cannot hold a log: {why}", path.display())))?;
        if !nvlab_os::file::try_lock(&device).map_err(Error::io("lock", &path.display()))? {
            return Err(Error::Busy(path.to_path_buf()));
        }
        Ok(Mtd { device, path: path.to_path_buf(), shape })
    }
}

/// The error of a request that describes the device.
fn refused(path: &Path, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(ENOTTY) => Error::Invalid(format!("{} is not an MTD device", path.display())),
        _ => Error::io("query the size of", &path.display())(error),
    }
}

/// The shape of a device, or why it does not do.
fn shape(info: &Info, regions: u32) -> std::result::Result<Shape, String> {
    let has = |flag| info.flags & flag != 0;
    if !has(mtd::WRITEABLE) {
        return Err("it is read-only".into());
    }
    if !has(mtd::BIT_WRITEABLE) || info.write_bytes != 1 {
        return Err(format!("it is written in units of {} B, not bit by bit", info.write_bytes));
    }
    if regions > 1 {
        return Err(format!("its erase blocks are of several sizes, in {regions} regions"));
    }
    if info.erase_bytes == 0 || !info.bytes.is_multiple_of(info.erase_bytes) {
        return Err(format!("{} B in erase blocks of {} B", info.bytes, info.erase_bytes));
    }
    Ok(Shape { block_bytes: info.erase_bytes.into(), blocks: info.bytes / info.erase_bytes })
}

impl Flash for Mtd {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.shape.check(offset, into.len())?;
        self.device.read_exact_at(into, offset)
    }

    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.shape.check(offset, data.len())?;
        self.device.write_all_at(data, offset)
    }

    fn erase(&mut self, block: u32) -> io::Result<Erased> {
        let offset = self.shape.check_block(block)?;
        match mtd::erase(&self.device, offset, self.shape.block_bytes) {
            Ok(()) => Ok(Erased::Clean),
            Err(error) if error.raw_os_error() == Some(EIO) => Ok(Erased::WornOut),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flash_that_is_programmed_bit_by_bit_will_do() {
        let nor = Info {
            kind: 3,
            flags: 0xc00,
            bytes: 2 << 20,
            erase_bytes: 64 << 10,
            write_bytes: 1,
            ..Info::default()
        };
        assert_eq!(shape(&nor, 0), Ok(Shape { block_bytes: 65536, blocks: 32 }));
        let why = |info: Info, regions| shape(&info, regions).unwrap_err();
        assert_eq!(why(Info { flags: 0x800, ..nor }, 0), "it is read-only");
        let nand = Info { kind: 4, flags: 0x400, write_bytes: 2048, ..nor };
        assert_eq!(why(nand, 0), "it is written in units of 2048 B, not bit by bit");
        assert_eq!(why(nor, 2), "its erase blocks are of several sizes, in 2 regions");
        assert_eq!(why(Info { erase_bytes: 0, ..nor }, 0), "2097152 B in erase blocks of 0 B");
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [0xff; 4096]).unwrap();
        let error = Mtd::open(&path).unwrap_err().to_string();
        assert_eq!(error, format!("{} is not an MTD device", path.display()));
        let error = Mtd::open(Path::new("/dev/null")).unwrap_err().to_string();
        assert_eq!(error, "/dev/null is not an MTD device");
        let error = Mtd::open(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.starts_with("cannot open "), "{error}");
    }
}
