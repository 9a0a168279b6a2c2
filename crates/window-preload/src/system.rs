//! The parts of the C library and of the kernel's interface that a window needs: constants, structures, functions.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::mem::size_of;

pub(crate) const FAILED: *mut c_void = usize::MAX as *mut c_void;
pub(crate) const PROT_NONE: c_int = 0;
pub(crate) const PROT_READ_WRITE: c_int = 1 | 2;
pub(crate) const MAP_SHARED: c_int = 1;
pub(crate) const MAP_TYPE: c_int = 0xf;
pub(crate) const MAP_LOCKED: c_int = 0x2000;
pub(crate) const MAP_POPULATE: c_int = 0x8000;
pub(crate) const MAP_SHARED_VALIDATE: c_int = 3;
pub(crate) const MADV_REMOVE: c_int = 9;
pub(crate) const MADV_DONTFORK: c_int = 10;
pub(crate) const MADV_NOHUGEPAGE: c_int = 15;
pub(crate) const O_RDWR_CLOEXEC: c_int = 2 | 0o2_000_000;
pub(crate) const O_NONBLOCK_CLOEXEC: c_int = 0o4000 | 0o2_000_000;
pub(crate) const AF_UNIX: u16 = 1;
pub(crate) const SEQPACKET_CLOEXEC: c_int = 5 | 0o2_000_000;
pub(crate) const SOL_SOCKET: c_int = 1;
pub(crate) const SCM_RIGHTS: c_int = 1;
pub(crate) const MSG_NOSIGNAL: c_int = 0x4000;
pub(crate) const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;
pub(crate) const MSG_PEEK_AT_ONCE: c_int = 2 | 0x40;
pub(crate) const EINTR: c_int = 4;
pub(crate) const EIO: c_int = 5;
pub(crate) const EAGAIN: c_int = 11;
pub(crate) const ENOMEM: c_int = 12;
pub(crate) const EINVAL: c_int = 22;
pub(crate) const ENOTSUP: c_int = 95;

#[cfg(target_arch = "x86_64")]
pub(crate) mod numbers {
    pub(crate) const MMAP: i64 = 9;
    pub(crate) const MUNMAP: i64 = 11;
    pub(crate) const MREMAP: i64 = 25;
    pub(crate) const MADVISE: i64 = 28;
    pub(crate) const USERFAULTFD: i64 = 323;
}
#[cfg(target_arch = "aarch64")]
pub(crate) mod numbers {
    pub(crate) const MMAP: i64 = 222;
    pub(crate) const MUNMAP: i64 = 215;
    pub(crate) const MREMAP: i64 = 216;
    pub(crate) const MADVISE: i64 = 233;
    pub(crate) const USERFAULTFD: i64 = 282;
}

#[repr(C)]
pub(crate) struct Vector {
    pub(crate) base: *mut c_void,
    pub(crate) bytes: usize,
}

#[repr(C)]
pub(crate) struct MessageHeader {
    pub(crate) name: *mut c_void,
    pub(crate) name_bytes: u32,
    pub(crate) vectors: *mut Vector,
    pub(crate) vector_count: usize,
    pub(crate) control: *mut c_void,
    pub(crate) control_bytes: usize,
    pub(crate) flags: c_int,
}

/// A control message that carries one descriptor, padded as the kernel requires.
#[repr(C)]
pub(crate) struct Rights {
    pub(crate) bytes: usize,
    pub(crate) level: c_int,
    pub(crate) kind: c_int,
    pub(crate) fd: c_int,
    pub(crate) padding: c_int,
}

pub(crate) const RIGHTS_BYTES: usize = size_of::<usize>() + 3 * size_of::<c_int>();

#[repr(C)]
pub(crate) struct UnixAddress {
    pub(crate) family: u16,
    pub(crate) path: [u8; 108],
}

/// `struct statx`, with the fields that identify a file.
#[repr(C)]
pub(crate) struct Statx {
    pub(crate) before_inode: [u32; 8],
    pub(crate) inode: u64,
    pub(crate) between: [u64; 12],
    pub(crate) device_major: u32,
    pub(crate) device_minor: u32,
    pub(crate) after: [u64; 14],
}

unsafe extern "C" {
    pub(crate) fn syscall(number: c_long, ...) -> c_long;
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    pub(crate) fn statx(dir: c_int, path: *const c_char, flags: c_int, mask: u32, into: *mut Statx) -> c_int;
    pub(crate) fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    pub(crate) fn close(fd: c_int) -> c_int;
    pub(crate) fn ioctl(fd: c_int, request: u64, ...) -> c_int;
    pub(crate) fn mprotect(address: *mut c_void, bytes: usize, protection: c_int) -> c_int;
    pub(crate) fn munlock(address: *const c_void, bytes: usize) -> c_int;
    pub(crate) fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    pub(crate) fn getpid() -> c_int;
    pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    pub(crate) fn connect(fd: c_int, address: *const UnixAddress, bytes: u32) -> c_int;
    pub(crate) fn sendmsg(fd: c_int, message: *const MessageHeader, flags: c_int) -> isize;
    pub(crate) fn recvmsg(fd: c_int, message: *mut MessageHeader, flags: c_int) -> isize;
    pub(crate) fn recv(fd: c_int, into: *mut c_void, bytes: usize, flags: c_int) -> isize;
    pub(crate) fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize;
    pub(crate) fn __errno_location() -> *mut c_int;
}

// The kernel writes a whole `struct statx`.
const _: () = assert!(size_of::<Statx>() == 256);
