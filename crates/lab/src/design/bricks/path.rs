//! The way to the host: `[path]`.

use super::super::context::Context;
use super::super::key::Preset::{Is, Nothing, Required};
use super::super::key::{Key, key};
use super::super::{HostPath, PathKind};
use crate::toml_reader::datum::Shape;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "path.kind",
        &[],
        Shape::OneOf(&[
            ("direct", "no link: requests reach the controller at once"),
            ("nvme", "PCIe with NVMe queues; both directions at the same time"),
            ("sata", "one direction at a time, at most 32 commands"),
            ("bus", "a simple host bus, one direction at a time"),
            ("memory-bus", "the processor's own: words are loaded and stored, one after the other"),
            (
                "ddr",
                "the memory is on the processor's memory channels: the processor moves blocks itself, in bursts \
                 (`ftl.kind = \"direct\"` only; the rate is that of `array.transfer`)",
            ),
        ]),
        Is("direct"),
        "\"nvme\"",
    )
    .about("How the host gets to the device."),
    key("path.rate", &["nvme", "sata", "bus"], Shape::Rate, Required, "\"3.5 GB/s\"")
        .about("Rate of the link, per direction if it has two."),
    key("path.width", &["memory-bus"], Shape::Size { min: 1, max: 4096 }, Is("8 B"), "\"8 B\"").about(
        "Bytes one access moves. A power of two. A block is transferred in as many accesses as it needs.",
    ),
    key("path.width", &["ddr"], Shape::Size { min: 1, max: 4096 }, Is("64 B"), "\"64 B\"")
        .about("Bytes of a burst. A power of two. (System 004 slide 15: 64 B, 128 of them for 8 KB.)"),
    key("path.outstanding", &["ddr"], Shape::Count { min: 1, max: 65_536 }, Is("10"), "10").about(
        "Bursts that a processor has in flight. (The line fill buffers of a core: 10 in Intel's of that time.)",
    ),
    key(
        "path.queue",
        &["direct", "nvme", "sata", "bus", "ddr"],
        Shape::Count { min: 1, max: 65_536 },
        Is("32"),
        "256",
    )
    .about("Requests the device accepts at the same time; more wait in the host."),
    key("path.overhead.host", &[], Shape::Time, Is("0 ns"), "\"6 us\"").about(
        "Time the host's software takes for one request: system call, driver, interrupt. On a \
         memory bus for a block of a RAM disk only: a load or store has none.",
    ),
    key("path.overhead.device", &[], Shape::Time, Is("0 ns"), "\"2 us\"").about(
        "Time of the link and its protocol for one request: doorbell, fetching the command, \
         completion; on a memory bus propagation and control, for every access. Not the \
         controller's own time, which is `ftl.overhead`.",
    ),
    key("path.rate_write", &["nvme", "sata", "bus"], Shape::Rate, Nothing("as `rate`"), "\"35 MB/s\"").about(
        "Rate towards the device, if it differs from that to the host: software that moves \
         the data itself may take longer in one direction.",
    ),
];

/// Reads `[path]`.
pub fn read(context: &mut Context) -> Option<HostPath> {
    let kind = context.text("path.kind", "")?;
    let rate = if ["direct", "memory-bus", "ddr"].contains(&kind.as_str()) {
        None
    } else {
        context.rate("path.rate", &kind)
    };
    let rate_write = match (kind.as_str(), context.has("path.rate_write")) {
        (_, false) => rate,
        ("direct" | "memory-bus" | "ddr", true) => None,
        (_, true) => context.rate("path.rate_write", &kind),
    };
    let memory_bus = kind == "memory-bus";
    // A program that copies has one access under way.
    let queue = if memory_bus { Some(1) } else { context.count("path.queue", &kind) };
    let ddr = kind == "ddr";
    let width = if memory_bus || ddr { context.size("path.width", &kind) } else { Some(0) };
    let outstanding = if ddr { context.count("path.outstanding", &kind) } else { Some(1) };
    let overhead_host = context.time("path.overhead.host", "");
    let overhead_device = context.time("path.overhead.device", "");
    let path_kind = match kind.as_str() {
        "nvme" => PathKind::Nvme,
        "sata" => PathKind::Sata,
        "bus" => PathKind::Bus,
        "memory-bus" => PathKind::MemoryBus,
        "ddr" => PathKind::Ddr,
        _ => PathKind::Direct,
    };
    if path_kind == PathKind::Sata && queue.is_some_and(|queue| queue > 32) {
        context.wrong("path.queue", "`path.queue`: SATA has 32 command slots", "a whole number from 1 to 32");
        return None;
    }
    if (memory_bus || ddr) && !width?.is_power_of_two() {
        context.wrong("path.width", "`path.width` is not a power of two", "\"4 B\", \"8 B\", \"64 B\"");
        return None;
    }
    Some(HostPath {
        kind: path_kind,
        rate,
        rate_write,
        queue: queue?,
        word_bytes: width? as u32,
        outstanding: outstanding?,
        overhead_host: overhead_host?,
        overhead_device: overhead_device?,
    })
}
