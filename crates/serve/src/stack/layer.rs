//! The layers that are measured: their names and what is timed.

use nvlab_workload::Op;
use std::fmt;

/// A layer above an instant device: everything from the program down to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// memcpy to or from a mapped file in memory.
    Memory,
    /// Loads and stores of a served memory window, all of it resident.
    Window,
    /// The same at the first touch of each page, mmap(2) included.
    Fault,
    /// A call of a RAM disk in this process.
    Call,
    /// geteuid(2): the cost of entering and leaving the kernel.
    SystemCall,
    /// A file of tmpfs, by pread(2) and pwrite(2).
    Tmpfs,
    /// A file of tmpfs through io_uring, one request at a time.
    TmpfsRing,
    /// A loop device over a file in memory.
    Loop,
    /// A loop device through io_uring, one request at a time.
    LoopRing,
    /// A loop device through io_uring, 32 requests at a time.
    LoopRingDeep,
    /// The page cache of ext4 on the loop device.
    Ext4Cached,
    /// ext4 on the loop device, past the page cache.
    Ext4Direct,
    /// ext4 past the page cache, through io_uring.
    Ext4Ring,
    /// ext4 with fdatasync(2) after each write.
    Ext4DataSync,
    /// ext4 with fsync(2) after each write.
    Ext4Sync,
    /// XFS on a loop device, past the page cache.
    XfsDirect,
    /// XFS with fdatasync(2) after each write.
    XfsDataSync,
    /// The RAM disk as a file, by FUSE.
    Fuse,
    /// The RAM disk by NBD, with a client in user space.
    Nbd,
    /// The RAM disk by NBD, with the kernel's client.
    NbdKernel,
}

impl Layer {
    /// All of them, from the nearest to the memory to the farthest.
    pub const ALL: [Layer; 20] = [
        Layer::Memory,
        Layer::Window,
        Layer::Fault,
        Layer::Call,
        Layer::SystemCall,
        Layer::Tmpfs,
        Layer::TmpfsRing,
        Layer::Loop,
        Layer::LoopRing,
        Layer::LoopRingDeep,
        Layer::Ext4Cached,
        Layer::Ext4Direct,
        Layer::Ext4Ring,
        Layer::Ext4DataSync,
        Layer::Ext4Sync,
        Layer::XfsDirect,
        Layer::XfsDataSync,
        Layer::Fuse,
        Layer::Nbd,
        Layer::NbdKernel,
    ];

    /// Its name, and what one request is.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Layer::Memory => ("memory", "memcpy between a mapped file in memory and a buffer"),
            Layer::Window => {
                ("window", "the same in a served memory window (userfaultfd), every page resident")
            }
            Layer::Fault => {
                ("mmap fault", "the same at the first touch of a page; mmap and munmap once per 1024")
            }
            Layer::Call => ("call", "a request to the served RAM disk by a function call, without delays"),
            Layer::SystemCall => ("system call", "geteuid(2), an empty system call"),
            Layer::Tmpfs => ("tmpfs", "pread(2), pwrite(2) of a file in memory"),
            Layer::TmpfsRing => ("tmpfs io_uring", "the same through io_uring, one at a time"),
            Layer::Loop => {
                ("loop", "pread(2), pwrite(2) with O_DIRECT of a loop device over a file in memory")
            }
            Layer::LoopRing => ("loop io_uring", "the same through io_uring, one at a time"),
            Layer::LoopRingDeep => ("loop io_uring x32", "the same, in batches of 32"),
            Layer::Ext4Cached => {
                ("ext4 cached", "pread(2), pwrite(2) of a file of ext4 on loop, in the page cache")
            }
            Layer::Ext4Direct => ("ext4", "the same with O_DIRECT"),
            Layer::Ext4Ring => ("ext4 io_uring", "the same with O_DIRECT through io_uring, one at a time"),
            Layer::Ext4DataSync => ("ext4 fdatasync", "pwrite(2) into the page cache, then fdatasync(2)"),
            Layer::Ext4Sync => ("ext4 fsync", "pwrite(2) into the page cache, then fsync(2)"),
            Layer::XfsDirect => ("xfs", "pread(2), pwrite(2) with O_DIRECT of a file of XFS on loop"),
            Layer::XfsDataSync => ("xfs fdatasync", "pwrite(2) into the page cache, then fdatasync(2)"),
            Layer::Fuse => {
                ("fuse", "pread(2), pwrite(2) of the served RAM disk as a file by FUSE, no page cache")
            }
            Layer::Nbd => (
                "nbd user space",
                "a request to the served RAM disk over a Unix socket, client in user space",
            ),
            Layer::NbdKernel => {
                ("nbd kernel", "pread(2), pwrite(2) with O_DIRECT of /dev/nbd0, served the RAM disk")
            }
        }
    }

    /// What tables and the file of paths call it.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// What one request is: the calls that are timed.
    pub fn method(self) -> &'static str {
        self.texts().1
    }

    /// Whether requests of this kind are measured: what makes data durable has writes only.
    pub fn has(self, op: Op) -> bool {
        let durable = [Layer::Ext4DataSync, Layer::Ext4Sync, Layer::XfsDataSync].contains(&self);
        op == Op::Write || op == Op::Read && !durable
    }

    /// Whether threads of the kernel do a part of the work.
    pub(super) fn has_workers(self) -> bool {
        self >= Layer::Loop && self <= Layer::XfsDataSync
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
