//! The keys of the way to the host.

use super::Key;
use super::Preset::{Is, Required};
use crate::toml_reader::datum::Shape;

/// Keys of `[path]`.
pub const KEYS: &[Key] = &[
    Key {
        path: "path.kind",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("direct", "no link: requests reach the controller at once"),
            ("nvme", "PCIe with NVMe queues; both directions at the same time"),
            ("sata", "one direction at a time, at most 32 commands"),
            ("bus", "a simple host bus, one direction at a time"),
            ("memory-bus", "the processor's own: words are loaded and stored, one after the other"),
        ]),
        preset: Is("direct"),
        about: "How the host gets to the device.",
        example: "\"nvme\"",
    },
    Key {
        path: "path.rate",
        kinds: &["nvme", "sata", "bus"],
        shape: Shape::Rate,
        preset: Required,
        about: "Rate of the link, per direction if it has two.",
        example: "\"3.5 GB/s\"",
    },
    Key {
        path: "path.width",
        kinds: &["memory-bus"],
        shape: Shape::Size { min: 1, max: 4096 },
        preset: Is("8 B"),
        about: "Bytes one access moves. A power of two. A transfer of a block is so many accesses.",
        example: "\"8 B\"",
    },
    Key {
        path: "path.queue",
        kinds: &["direct", "nvme", "sata", "bus"],
        shape: Shape::Count { min: 1, max: 65_536 },
        preset: Is("32"),
        about: "Requests the device accepts at the same time; more wait in the host.",
        example: "256",
    },
    Key {
        path: "path.overhead.host",
        kinds: &[],
        shape: Shape::Time,
        preset: Is("0 ns"),
        about: "Time the host's software takes for one request: system call, driver, interrupt. On a memory bus for \
                a block of a RAM disk only: a load or store has none.",
        example: "\"6 us\"",
    },
    Key {
        path: "path.overhead.device",
        kinds: &[],
        shape: Shape::Time,
        preset: Is("0 ns"),
        about: "Time of the link and its protocol for one request: doorbell, fetching the command, completion; on a \
                memory bus propagation and control, for every access. Not the controller's own time, which is \
                `ftl.overhead`.",
        example: "\"2 us\"",
    },
];
