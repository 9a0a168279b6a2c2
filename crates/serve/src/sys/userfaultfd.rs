//! userfaultfd(2): page faults as messages, and the answers to them.
//!
//! A [`Userfaultfd`] belongs to the address space that created it; addresses are of that space, also when the descriptor
//! has been handed to another process.

use super::abi::{self, Api, PAGE_BYTES, RangeMode};
use nvlab_os::check;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

/// How often a request is repeated while the address space of the program is changing.
const TRIES_MAX: u32 = 100_000;

/// Page faults read at once.
pub const BATCH: usize = 16;

/// A page fault; a thread of the watched address space waits for its answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageFault {
    /// The address of the page.
    pub address: u64,
    /// A store, not a load.
    pub is_write: bool,
    /// The page is mapped, but write-protected.
    pub is_protected: bool,
    /// The page is in the file, but not mapped.
    pub is_minor: bool,
}

/// The effect of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It took effect.
    Done,
    /// There is a page already; waiting threads still wait.
    Present,
    /// The address is no longer mapped, or differently; waiting threads still wait.
    Unmapped,
    /// The address space has ended.
    Gone,
}

/// The page faults of one address space.
#[derive(Debug)]
pub struct Userfaultfd(OwnedFd);

/// `struct uffd_msg` of a page fault.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    event: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    thread: u64,
}

impl Userfaultfd {
    /// One for this process, created in the first way that is permitted: the device, the system call, or the system call for
    /// faults of user code only. The second value is true for the last.
    pub fn new() -> io::Result<(Userfaultfd, bool)> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        let from_device = || -> io::Result<libc::c_int> {
            let device = std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(OsStr::from_bytes(abi::DEVICE.to_bytes()))?;
            // SAFETY: the request takes an integer.
            check(unsafe { libc::ioctl(device.as_raw_fd(), abi::DEVICE_NEW, flags) })
        };
        let from_call = |flags: libc::c_int| -> io::Result<libc::c_int> {
            // SAFETY: the call takes an integer and touches no memory.
            check(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) }).map(|fd| fd as libc::c_int)
        };
        let all = from_device().or_else(|_| from_call(flags));
        let user_only = all.is_err();
        let fd = all.or_else(|_| from_call(flags | abi::USER_MODE_ONLY))?;
        // SAFETY: a new descriptor that nobody else owns.
        let faults = Userfaultfd(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut api = Api { api: abi::API, features: abi::FEATURES, ioctls: 0 };
        // SAFETY: the request reads and writes one `Api`.
        check(unsafe { libc::ioctl(fd, abi::IOCTL_API, &raw mut api) })?;
        Ok((faults, user_only))
    }

    /// One received from another process. Refuses a descriptor that is not a userfaultfd, and one that reports more than
    /// faults: a fork, for example, would deliver a descriptor with every message.
    pub fn from_other(fd: OwnedFd) -> io::Result<Userfaultfd> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        if link.as_os_str() != "anon_inode:[userfaultfd]" {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this descriptor is not a userfaultfd"));
        }
        let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
        let features = about.lines().find_map(|line| line.strip_prefix("API:")?.trim().split(':').nth(1));
        let features = features.and_then(|features| u64::from_str_radix(features, 16).ok());
        if features.is_none_or(|features| features & abi::FEATURES_OF_EVENTS != 0) {
            let why = "this userfaultfd reports more than faults (fork, remap, remove or unmap)";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        // The other process may have left it blocking; a wait in `read` would stop every program.
        // SAFETY: changes a flag of a descriptor that is owned here.
        check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        Ok(Userfaultfd(fd))
    }

    /// Watches a mapping of shared memory of this process.
    pub fn register(&self, start: u64, bytes: u64) -> io::Result<()> {
        let mut range = RangeMode { start, bytes, mode: abi::MODE_ALL, answer: 0 };
        self.request(abi::IOCTL_REGISTER, &raw mut range).map(|_| ())
    }

    /// Reads pending faults, at most `BATCH`, without waiting.
    pub fn read(&self, into: &mut [PageFault; BATCH]) -> io::Result<usize> {
        let mut packets = [Packet::default(); BATCH];
        let bytes = size_of_val(&packets);
        // SAFETY: the buffer has this many bytes, and every bit pattern is a packet.
        let got = check(unsafe { libc::read(self.0.as_raw_fd(), packets.as_mut_ptr().cast(), bytes) });
        let count = match got {
            Ok(got) => got as usize / size_of::<Packet>(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        let mut faults = 0;
        for packet in packets[..count].iter().filter(|packet| packet.event == abi::EVENT_PAGEFAULT) {
            into[faults] = PageFault {
                address: packet.address & !(PAGE_BYTES as u64 - 1),
                is_write: packet.flags & abi::FAULT_WRITE != 0,
                is_protected: packet.flags & abi::FAULT_PROTECTED != 0,
                is_minor: packet.flags & abi::FAULT_MINOR != 0,
            };
            faults += 1;
        }
        Ok(faults)
    }

    /// Fills an absent page, write-protected or not, and wakes the threads that wait for it.
    pub fn copy(&self, address: u64, page: &[u8; PAGE_BYTES], protected: bool) -> io::Result<Answered> {
        let mode = if protected { abi::COPY_PROTECTED } else { 0 };
        let mut copy = [address, page.as_ptr() as u64, PAGE_BYTES as u64, mode, 0];
        self.answer(abi::IOCTL_COPY, copy.as_mut_ptr())
    }

    /// Maps a page that is in the file, writable, and wakes the threads that wait for it.
    pub fn map(&self, address: u64) -> io::Result<Answered> {
        let mut range = RangeMode { start: address, bytes: PAGE_BYTES as u64, mode: 0, answer: 0 };
        self.answer(abi::IOCTL_CONTINUE, &raw mut range)
    }

    /// Write-protects a range: once this returns, a store to it waits.
    pub fn protect(&self, start: u64, bytes: u64) -> io::Result<Answered> {
        let mut range = RangeMode { start, bytes, mode: abi::PROTECT, answer: 0 };
        self.answer(abi::IOCTL_WRITEPROTECT, &raw mut range)
    }

    /// Whether it watches a mapping in which nothing is mapped yet. Write-protecting it would tell the same, and leave a
    /// marker for each of its pages: 1 ms for 256 MiB, and as much when it is unmapped.
    pub fn watches(&self, start: u64, bytes: u64) -> io::Result<Answered> {
        let mut range = RangeMode { start, bytes, mode: abi::PERMIT_ASLEEP, answer: 0 };
        self.answer(abi::IOCTL_WRITEPROTECT, &raw mut range)
    }

    /// Allows stores to a page, and wakes the threads that wait for it.
    pub fn permit(&self, address: u64) -> io::Result<Answered> {
        let mut range = RangeMode { start: address, bytes: PAGE_BYTES as u64, mode: 0, answer: 0 };
        self.answer(abi::IOCTL_WRITEPROTECT, &raw mut range)
    }

    /// Wakes the threads that wait for a page; they try again.
    pub fn wake(&self, address: u64) -> io::Result<Answered> {
        let mut range = RangeMode { start: address, bytes: PAGE_BYTES as u64, mode: 0, answer: 0 };
        self.answer(abi::IOCTL_WAKE, &raw mut range)
    }

    /// Makes any access to this absent page, now or later, raise SIGBUS (Linux 6.6). [`Answered::Present`]: there is a page, or
    /// it was poisoned before.
    ///
    /// Write-protecting an unmapped page leaves a marker in the page table, and so does removing a protected page from the
    /// file; the kernel does not poison a page with a marker, so the marker is removed first.
    pub fn poison(&self, address: u64) -> io::Result<Answered> {
        let mut range =
            RangeMode { start: address, bytes: PAGE_BYTES as u64, mode: abi::PERMIT_ASLEEP, answer: 0 };
        match self.answer(abi::IOCTL_WRITEPROTECT, &raw mut range)? {
            Answered::Done | Answered::Present => {}
            gone => return Ok(gone),
        }
        range.mode = 0;
        self.answer(abi::IOCTL_POISON, &raw mut range)
    }

    fn request<T>(&self, request: u64, argument: *mut T) -> io::Result<libc::c_int> {
        // SAFETY: every caller passes the structure that its request reads and writes; what the kernel does to the
        // watched pages is what shared memory allows anybody who has the file.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) })
    }

    fn answer<T>(&self, request: u64, argument: *mut T) -> io::Result<Answered> {
        for _ in 0..TRIES_MAX {
            let error = match self.request(request, argument) {
                Ok(_) => return Ok(Answered::Done),
                Err(error) => error,
            };
            match error.raw_os_error() {
                // The address space is changing at this moment.
                Some(libc::EAGAIN | libc::EINTR) => std::thread::yield_now(),
                Some(libc::ENOENT | libc::EFAULT) => return Ok(Answered::Unmapped),
                Some(libc::EEXIST) => return Ok(Answered::Present),
                Some(libc::ESRCH) => return Ok(Answered::Gone),
                _ => return Err(error),
            }
        }
        // A program whose address space never stops changing must not delay the others.
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl AsRawFd for Userfaultfd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
