//! Which paths there are, and which differences of layers their stages are.

use crate::stack::layer::Layer;
use crate::stack::sampling::Part;
use Group::{Block, Entry, Files, Server as Serving, Waiting};
use Part::{Away, Client, Wait, Waited};

/// How the program learns that a request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It sleeps and is woken.
    Interrupt,
    /// It keeps the processor.
    Spin,
}

/// What a stage is, for plots: paths have different stages of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Entering and leaving the kernel, and page faults.
    Entry,
    /// File systems, page caches, FUSE and sockets: what the program runs in the kernel.
    Files,
    /// The block layer, io_uring and drivers of the kernel.
    Block,
    /// Threads of servers, and workers of the kernel.
    Server,
    /// Time in which no processor works on the request.
    Waiting,
}

/// A term of a difference.
pub type Term = (Layer, Part);

#[derive(Debug, PartialEq, Eq)]
pub struct StagePlan {
    pub name: &'static str,
    pub group: Group,
    pub plus: &'static [Term],
    pub minus: &'static [Term],
}

#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    pub key: &'static str,
    pub about: &'static str,
    pub whole: Layer,
    pub completion: Completion,
    pub stages: &'static [StagePlan],
    /// What a modelled device takes the place of: the copy in memory.
    pub device: &'static [Term],
}

const fn stage(name: &'static str, group: Group, plus: &'static [Term], minus: &'static [Term]) -> StagePlan {
    StagePlan { name, group, plus, minus }
}

const SYSTEM_CALL: StagePlan = stage("system call", Entry, &[(Layer::SystemCall, Client)], &[]);
const COPY: &[Term] = &[(Layer::Memory, Client)];
const RAM_DISK: &[Term] = &[(Layer::Call, Client)];
const BLOCK: StagePlan =
    stage("block layer and loop driver", Block, &[(Layer::Loop, Client)], &[(Layer::SystemCall, Client)]);
const EXT4: StagePlan = stage("ext4", Files, &[(Layer::Ext4Direct, Client)], &[(Layer::Loop, Client)]);
const EXT4_CACHED: StagePlan = stage(
    "ext4 and page cache",
    Files,
    &[(Layer::Ext4Cached, Client)],
    &[(Layer::SystemCall, Client), (Layer::Memory, Client)],
);
const RING_WORKER: StagePlan = stage("loop worker", Serving, &[(Layer::LoopRing, Waited)], COPY);
const RING_WAITING: StagePlan = stage("waiting and wake-ups", Waiting, &[(Layer::LoopRing, Wait)], &[]);

pub const PLANS: [Plan; 11] = [
    Plan {
        key: "mmap",
        about: "first touch of mapped pages of a file in memory",
        whole: Layer::Fault,
        completion: Completion::Spin,
        stages: &[
            stage("page fault", Entry, &[(Layer::Fault, Client)], COPY),
            stage("waiting", Waiting, &[(Layer::Fault, Away)], &[]),
        ],
        device: COPY,
    },
    Plan {
        key: "tmpfs",
        about: "read(2) and write(2) of a file in memory",
        whole: Layer::Tmpfs,
        completion: Completion::Spin,
        stages: &[
            SYSTEM_CALL,
            stage(
                "file in memory",
                Files,
                &[(Layer::Tmpfs, Client)],
                &[(Layer::SystemCall, Client), (Layer::Memory, Client)],
            ),
            stage("waiting", Waiting, &[(Layer::Tmpfs, Away)], &[]),
        ],
        device: COPY,
    },
    Plan {
        key: "loop",
        about: "O_DIRECT on a block device (loop, over a file in memory)",
        whole: Layer::Loop,
        completion: Completion::Interrupt,
        stages: &[
            SYSTEM_CALL,
            BLOCK,
            stage("loop worker", Serving, &[(Layer::Loop, Waited)], COPY),
            stage("waiting and wake-ups", Waiting, &[(Layer::Loop, Wait)], &[]),
        ],
        device: COPY,
    },
    Plan {
        key: "io_uring",
        about: "io_uring on a block device (loop, over a file in memory), one at a time",
        whole: Layer::LoopRing,
        completion: Completion::Interrupt,
        stages: &[
            SYSTEM_CALL,
            stage(
                "io_uring, block layer and loop driver",
                Block,
                &[(Layer::LoopRing, Client)],
                &[(Layer::SystemCall, Client)],
            ),
            RING_WORKER,
            RING_WAITING,
        ],
        device: COPY,
    },
    Plan {
        key: "ext4-cached",
        about: "read(2) and write(2) of a file of ext4 in the page cache",
        whole: Layer::Ext4Cached,
        completion: Completion::Spin,
        stages: &[SYSTEM_CALL, EXT4_CACHED, stage("waiting", Waiting, &[(Layer::Ext4Cached, Away)], &[])],
        device: COPY,
    },
    Plan {
        key: "ext4-direct",
        about: "O_DIRECT on a file of ext4 on a block device (loop, over a file in memory)",
        whole: Layer::Ext4Direct,
        completion: Completion::Interrupt,
        stages: &[
            SYSTEM_CALL,
            BLOCK,
            EXT4,
            stage("loop worker", Serving, &[(Layer::Ext4Direct, Waited)], COPY),
            stage("waiting and wake-ups", Waiting, &[(Layer::Ext4Direct, Wait)], &[]),
        ],
        device: COPY,
    },
    Plan {
        key: "ext4-io_uring",
        about: "io_uring on a file of ext4, composed from ext4 without io_uring and io_uring without ext4 (ext4 hands some writes to a worker, which is in neither)",
        whole: Layer::Ext4Ring,
        completion: Completion::Interrupt,
        stages: &[
            SYSTEM_CALL,
            BLOCK,
            stage("io_uring", Block, &[(Layer::LoopRing, Client)], &[(Layer::Loop, Client)]),
            EXT4,
            RING_WORKER,
            RING_WAITING,
        ],
        device: COPY,
    },
    Plan {
        key: "ext4-fdatasync",
        about: "write(2) and fdatasync(2) on a file of ext4 on a block device (loop, over a file in memory)",
        whole: Layer::Ext4DataSync,
        completion: Completion::Interrupt,
        stages: &[
            SYSTEM_CALL,
            EXT4_CACHED,
            stage(
                "write-back and flush",
                Files,
                &[(Layer::Ext4DataSync, Client)],
                &[(Layer::Ext4Cached, Client)],
            ),
            stage("loop worker", Serving, &[(Layer::Ext4DataSync, Waited)], &[]),
            stage("waiting and wake-ups", Waiting, &[(Layer::Ext4DataSync, Wait)], &[]),
        ],
        device: COPY,
    },
    Plan {
        key: "xfs-direct",
        about: "O_DIRECT on a file of XFS on a block device (loop, over a file in memory)",
        whole: Layer::XfsDirect,
        completion: Completion::Interrupt,
        stages: &[
            SYSTEM_CALL,
            BLOCK,
            stage("XFS", Files, &[(Layer::XfsDirect, Client)], &[(Layer::Loop, Client)]),
            stage("loop worker", Serving, &[(Layer::XfsDirect, Waited)], COPY),
            stage("waiting and wake-ups", Waiting, &[(Layer::XfsDirect, Wait)], &[]),
        ],
        device: COPY,
    },
    Plan {
        key: "fuse",
        about: "a file served by FUSE, without page cache",
        whole: Layer::Fuse,
        completion: Completion::Interrupt,
        stages: &[
            SYSTEM_CALL,
            stage("FUSE, client", Files, &[(Layer::Fuse, Client)], &[(Layer::SystemCall, Client)]),
            stage("FUSE, server", Serving, &[(Layer::Fuse, Waited)], RAM_DISK),
            stage("waiting and wake-ups", Waiting, &[(Layer::Fuse, Wait)], &[]),
        ],
        device: RAM_DISK,
    },
    Plan {
        key: "nbd",
        about: "NBD over a Unix socket, with a client in user space",
        whole: Layer::Nbd,
        completion: Completion::Interrupt,
        stages: &[
            stage("NBD, client", Files, &[(Layer::Nbd, Client)], &[]),
            stage("NBD, server", Serving, &[(Layer::Nbd, Waited)], RAM_DISK),
            stage("waiting and wake-ups", Waiting, &[(Layer::Nbd, Wait)], &[]),
        ],
        device: RAM_DISK,
    },
];
