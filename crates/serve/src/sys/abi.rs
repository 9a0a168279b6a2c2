//! The interfaces of a memory window: the kernel's userfaultfd (linux/userfaultfd.h), and the handshake between the
//! preloaded library and the server.
//!
//! This file is compiled twice: as a module of `nvlab-serve` and of `nvlab-window-preload`. It needs nothing but `core`.
//!
//! Handshake, over a Unix socket of sequenced packets; every packet is exactly one [`Message`]:
//!
//! | from | kind | a, b, c | descriptor |
//! |---|---|---|---|
//! | program | [`HELLO`] | 0, 0, 0 | |
//! | server | [`OFFER`] | window bytes, page bytes, 0 | the resident file |
//! | program | [`ATTACH`] | address, offset in the window, bytes | the userfaultfd of this mapping |
//! | server | [`READY`] | 0, 0, 0 | the program's end of a lifeline |
//!
//! Either side closes the socket on anything else. After READY was received both close it.
//!
//! A lifeline is a pair of sockets through which nothing is ever sent: the program asks the kernel to be killed when the
//! server's end closes. It is not the socket of the handshake, because the kernel may deliver the notification of a packet
//! (READY) after the packet was received.

/// First word of every message: protocol name and version.
pub const MAGIC: u64 = u64::from_be_bytes(*b"nvlabw02");
/// The program asks for the window.
pub const HELLO: u64 = 1;
/// The server hands out the resident file.
pub const OFFER: u64 = 2;
/// The program hands out the faults of its mapping.
pub const ATTACH: u64 = 3;
/// The server answers faults from now on.
pub const READY: u64 = 4;

/// A packet of the handshake.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub magic: u64,
    pub kind: u64,
    pub a: u64,
    pub b: u64,
    pub c: u64,
}

/// The file a program opens and maps.
pub const WINDOW_VARIABLE: &core::ffi::CStr = c"NVLAB_WINDOW";
/// The socket of the handshake: an abstract name, zeros to the end of the address.
pub const SOCKET_VARIABLE: &core::ffi::CStr = c"NVLAB_WINDOW_SOCKET";

/// Bytes of a page: the unit of the device and of the kernel's mappings.
pub const PAGE_BYTES: usize = 4096;

/// Device that hands out userfaultfds, and its request.
pub const DEVICE: &core::ffi::CStr = c"/dev/userfaultfd";
/// `USERFAULTFD_IOC_NEW`.
pub const DEVICE_NEW: u64 = 0xaa00;
/// `UFFD_USER_MODE_ONLY`: permitted to every user; system calls that fault on the window fail with EFAULT.
pub const USER_MODE_ONLY: i32 = 1;
/// `UFFD_API`.
pub const API: u64 = 0xaa;
/// `UFFDIO_API`.
pub const IOCTL_API: u64 = 0xc018_aa3f;
/// `UFFDIO_REGISTER`.
pub const IOCTL_REGISTER: u64 = 0xc020_aa00;
/// `UFFDIO_WAKE`.
pub const IOCTL_WAKE: u64 = 0x8010_aa02;
/// `UFFDIO_COPY`.
pub const IOCTL_COPY: u64 = 0xc028_aa03;
/// `UFFDIO_WRITEPROTECT`.
pub const IOCTL_WRITEPROTECT: u64 = 0xc018_aa06;
/// `UFFDIO_CONTINUE`.
pub const IOCTL_CONTINUE: u64 = 0xc020_aa07;
/// `UFFDIO_POISON` (Linux 6.6).
pub const IOCTL_POISON: u64 = 0xc020_aa08;

/// What a window cannot do without: write-protect events, and shared memory in the modes missing, minor and
/// write-protect (Linux 5.19).
pub const FEATURES: u64 = FEATURE_WP | FEATURE_MISSING_SHMEM | FEATURE_MINOR_SHMEM | FEATURE_WP_SHMEM;
const FEATURE_WP: u64 = 1;
const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
const FEATURE_WP_SHMEM: u64 = 1 << 12;

/// Messages other than faults: fork, remap, remove, unmap.
pub const FEATURES_OF_EVENTS: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6;

/// Register for pages that are nowhere, write-protected, or in the file but not mapped.
pub const MODE_ALL: u64 = 1 | 2 | 4;
/// `UFFDIO_COPY_MODE_WP`: the copy is mapped write-protected.
pub const COPY_PROTECTED: u64 = 2;
/// `UFFDIO_WRITEPROTECT_MODE_WP`.
pub const PROTECT: u64 = 1;
/// `UFFDIO_WRITEPROTECT_MODE_DONTWAKE`.
pub const PERMIT_ASLEEP: u64 = 2;
/// `UFFD_EVENT_PAGEFAULT`.
pub const EVENT_PAGEFAULT: u8 = 0x12;
/// The fault was a store.
pub const FAULT_WRITE: u64 = 1;
/// The page is mapped write-protected.
pub const FAULT_PROTECTED: u64 = 2;
/// The page is in the file but not mapped.
pub const FAULT_MINOR: u64 = 4;

/// `struct uffdio_api`.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Api {
    /// [`API`].
    pub api: u64,
    /// Requested features; the kernel returns all it has.
    pub features: u64,
    /// The requests that the kernel supports.
    pub ioctls: u64,
}

/// `struct uffdio_register`, and all others that are a range, a mode and an answer.
#[repr(C)]
#[derive(Debug, Default)]
pub struct RangeMode {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// The operation.
    pub mode: u64,
    /// The kernel's answer.
    pub answer: u64,
}
