//! Linux MTD: raw flash as a character device (`/dev/mtd0`), after linux/include/uapi/mtd/mtd-abi.h.
//!
//! Only what a user of NOR flash needs: the device's description and the erase. Reads and writes are pread and
//! pwrite. The computers used for development have no such device: numbers and layouts of the requests are tested,
//! the requests themselves only on files that refuse them.

use crate::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `MTD_BIT_WRITEABLE` in [`Info::flags`]: single bits can be programmed.
pub const BIT_WRITEABLE: u32 = 0x800;
/// `MTD_WRITEABLE` in [`Info::flags`]: it is not read-only.
pub const WRITEABLE: u32 = 0x400;

/// `struct mtd_info_user` of Linux: what a device says of itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// `MTD_NORFLASH` is 3, `MTD_RAM` 1.
    pub kind: u8,
    /// Sums of flags such as [`BIT_WRITEABLE`].
    pub flags: u32,
    /// Size of the device: less than 4 GiB.
    pub bytes: u32,
    /// Bytes of an erase block, of the largest if there are several kinds.
    pub erase_bytes: u32,
    /// Size and alignment of the smallest write.
    pub write_bytes: u32,
    /// Bytes of out-of-band data per page of NAND.
    pub oob_bytes: u32,
    /// Obsolete; only keeps the size of the structure.
    pub padding: u64,
}

/// `struct erase_info_user64`.
#[repr(C)]
struct EraseInfo {
    start: u64,
    bytes: u64,
}

const TYPE: u32 = b'M' as u32;
const MEMGETINFO: libc::Ioctl = libc::_IOR::<Info>(TYPE, 1);
const MEMGETREGIONCOUNT: libc::Ioctl = libc::_IOR::<libc::c_int>(TYPE, 7);
const MEMERASE64: libc::Ioctl = libc::_IOW::<EraseInfo>(TYPE, 20);

/// What a device is. ENOTTY says that the file is not an MTD device.
pub fn info(device: &File) -> io::Result<Info> {
    let mut info = Info::default();
    // SAFETY: the request writes one `mtd_info_user`, which is borrowed exclusively and may hold any bytes.
    check(unsafe { libc::ioctl(device.as_raw_fd(), MEMGETINFO, &raw mut info) })?;
    Ok(info)
}

/// How many regions with erase blocks of their own size it has; 0 if all blocks have the same.
pub fn regions(device: &File) -> io::Result<u32> {
    let mut regions: libc::c_int = 0;
    // SAFETY: the request writes one integer, which is borrowed exclusively.
    check(unsafe { libc::ioctl(device.as_raw_fd(), MEMGETREGIONCOUNT, &raw mut regions) })?;
    Ok(regions as u32)
}

/// Erases whole blocks; returns when it is done. EIO says that it failed in the flash.
pub fn erase(device: &File, start: u64, bytes: u64) -> io::Result<()> {
    let range = EraseInfo { start, bytes };
    // SAFETY: the request reads one `erase_info_user64` and touches no memory of this process.
    check(unsafe { libc::ioctl(device.as_raw_fd(), MEMERASE64, &raw const range) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// As a C compiler says for mtd/mtd-user.h on x86-64.
    #[test]
    fn requests_and_layouts_are_those_of_the_header() {
        assert_eq!((MEMGETINFO, MEMGETREGIONCOUNT, MEMERASE64), (0x8020_4d01, 0x8004_4d07, 0x4010_4d14));
        assert_eq!((size_of::<Info>(), size_of::<EraseInfo>()), (32, 16));
        let offsets = [offset_of!(Info, flags), offset_of!(Info, bytes), offset_of!(Info, erase_bytes)];
        assert_eq!((offsets, offset_of!(Info, write_bytes)), ([4, 8, 12], 16));
    }

    #[test]
    fn what_is_no_mtd_device_refuses_the_requests() {
        for path in ["/dev/null", "/proc/self/exe"] {
            let file = File::open(path).unwrap();
            let errors = [info(&file).map(|_| ()), regions(&file).map(|_| ()), erase(&file, 0, 4096)];
            for error in errors {
                assert_eq!(error.unwrap_err().raw_os_error(), Some(libc::ENOTTY), "{path}");
            }
        }
    }
}
