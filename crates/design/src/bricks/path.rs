//! The link and software between host and device: `[path]`.

use crate::context::Context;
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::stacks::{self, Software};
use crate::toml_reader::datum::{Datum, Shape};
use crate::{HostPath, PathKind};
use nvlab_units::Span;

/// Links with a protocol of requests.
const LINKS: &[&str] = &["nvme", "sata", "bus"];

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "path.kind",
        &[],
        Shape::OneOf(&[
            ("direct", "no link: requests reach the controller without delay"),
            ("nvme", "PCIe with NVMe queues; both directions at the same time"),
            ("sata", "one direction at a time, at most 32 commands"),
            ("bus", "a simple host bus, one direction at a time"),
            ("memory-bus", "the processor's memory bus: loads and stores of words, one after the other"),
            (
                "ddr",
            "the memory is on the processor's memory channels, and the processor copies blocks itself, in bursts \
             (`ftl.kind = \"direct\"` only; the rate is `array.transfer`)",
            ),
            (
                "cxl-mem",
            "memory behind CXL: words are loaded and stored one after the other, and the same bytes can be accessed as \
             blocks, several at a time; full duplex (`ftl.cache.kind = \"set-associative\"` only)",
            ),
        ]),
        Is("direct"),
        "\"nvme\"",
    )
    .about("The link between host and device."),
    key("path.rate", &["nvme", "sata", "bus", "cxl-mem"], Shape::Rate, Required, "\"3.5 GB/s\"")
        .about("Rate of the link, per direction if it is full duplex."),
    key("path.width", &["memory-bus"], Shape::Size { min: 1, max: 4096 }, Is("8 B"), "\"8 B\"").about(
        "Bytes per access, a power of two. A block takes as many accesses as needed.",
    ),
    key("path.width", &["ddr"], Shape::Size { min: 1, max: 4096 }, Is("64 B"), "\"64 B\"")
        .about("Bytes per burst, a power of two. (System 004 slide 15: 64 B, 128 of them for 8 KB.)"),
 key("path.width", &["cxl-mem"], Shape::Size { min: 1, max: 4096 }, Is("64 B"), "\"64 B\"")
        .about("Bytes per access, a power of two. (CXL.mem: a cache line of the processor.)"),
    key("path.outstanding", &["ddr"], Shape::Count { min: 1, max: 65_536 }, Is("10"), "10").about(
        "Bursts a processor keeps in flight. (Line fill buffers of a core: 10 in Intel cores of that time.)",
    ),
    key(
        "path.queue",
        &["direct", "nvme", "sata", "bus", "ddr", "cxl-mem"],
        Shape::Count { min: 1, max: 65_536 },
        Is("32"),
        "256",
    )
    .about("Requests the device accepts at the same time; the rest wait in the host."),
    key("path.overhead.host", &[], Shape::Time, Is("0 ns"), "\"6 us\"").about(
        "Time the host's software takes per request: system call, driver, interrupt. It does not count as processor \
         time. On a memory bus it applies only to blocks of a RAM disk: a load or store has none. `path.stages` \
         models the same in more detail.",
    ),
    key(
        "path.stages",
        &[],
        Shape::Text,
        Nothing("the host's software takes `path.overhead.host`"),
        "\"moneta-spin\"",
    )
    .about(
        "The host's software as stages with processor time, waits and locks, instead of `path.overhead.host`: the name of \
         a built-in stack, or a file relative to this one (nvlab explain stacks). Threads and processor time are then \
         part of the result. Only for block requests; it does not apply to a served device, which has real software \
         above it.",
    ),
    key("path.overhead.device", &[], Shape::Time, Is("0 ns"), "\"2 us\"").about(
        "Time of the link and its protocol per request: doorbell, fetching the command, completion; on a memory bus, \
         propagation and control of each access. The controller's own time is `ftl.overhead`.",
    ),
    key("path.command", LINKS, Shape::Time, Is("0 ns"), "\"1.6 us\"").about(
        "Time a request occupies the device's front end (fetching and decoding the command, looking up the map, \
         completing it). The front end handles one request at a time, so this limits a drive to one request per \
         this time. It is added to the latency of each request.",
    ),
    key("path.command_write", LINKS, Shape::Time, Nothing("as `command`"), "\"2 us\"").about(
        "The same for a write, if it differs: a write also takes room in the buffer and an entry of the map.",
    ),
    key("path.rate_write", &["nvme", "sata", "bus", "cxl-mem"], Shape::Rate, Nothing("as `rate`"), "\"35 MB/s\"").about(
        "Rate towards the device, if it differs from that towards the host: a drive fetches what is written by reads of \
         the host's memory, and software that copies the data itself may be slower in one direction.",
    ),
];

/// Reads `[path]`.
pub fn read(context: &mut Context) -> Option<HostPath> {
    let meanings = [
        ("direct", PathKind::Direct),
        ("nvme", PathKind::Nvme),
        ("sata", PathKind::Sata),
        ("bus", PathKind::Bus),
        ("memory-bus", PathKind::MemoryBus),
        ("ddr", PathKind::Ddr),
        ("cxl-mem", PathKind::CxlMem),
    ];
    let (kind, path_kind) = context.named_choice("path.kind", "", &meanings)?;
    let [memory_bus, ddr, cxl] =
        [PathKind::MemoryBus, PathKind::Ddr, PathKind::CxlMem].map(|kind| kind == path_kind);
    let has_rate = path_kind != PathKind::Direct && !memory_bus && !ddr;
    let rate = if has_rate { context.rate("path.rate", kind) } else { None };
    let rate_write = match (has_rate, context.has("path.rate_write")) {
        (_, false) => rate,
        (false, true) => None,
        (true, true) => context.rate("path.rate_write", kind),
    };
    // A program that copies has one access in flight.
    let queue = if memory_bus { Some(1) } else { context.count("path.queue", kind) };
    let width = if memory_bus || ddr || cxl { context.size("path.width", kind) } else { Some(0) };
    let outstanding = if ddr { context.count("path.outstanding", kind) } else { Some(1) };
    let software = software(context);
    let overhead_device = context.time("path.overhead.device", "");
    let command = if LINKS.contains(&kind) { context.time("path.command", kind) } else { Some(Span::ZERO) };
    let command_write = match LINKS.contains(&kind) && context.has("path.command_write") {
        true => context.time("path.command_write", kind),
        false => command,
    };
    if path_kind == PathKind::Sata && queue.is_some_and(|queue| queue > 32) {
        context.wrong("path.queue", "`path.queue`: SATA has 32 command slots", "a whole number from 1 to 32");
        return None;
    }
    if (memory_bus || ddr || cxl) && !width?.is_power_of_two() {
        context.wrong("path.width", "`path.width` is not a power of two", "\"4 B\", \"8 B\", \"64 B\"");
        return None;
    }
    let (overhead_host, software) = software?;
    Some(HostPath {
        kind: path_kind,
        rate,
        rate_write,
        queue: queue?,
        word_bytes: width? as u32,
        outstanding: outstanding?,
        overhead_host,
        overhead_device: overhead_device?,
        command: command?,
        command_write: command_write?,
        software,
    })
}

/// Time of the host's software: a time for each request, or stages.
fn software(context: &mut Context) -> Option<(Span, Option<Software>)> {
    const STAGES: &str = "path.stages";
    const OVERHEAD: &str = "path.overhead.host";
    let Some(leaf) = context.leaf(STAGES) else { return Some((context.time(OVERHEAD, "")?, None)) };
    if context.leaf(OVERHEAD).is_some() {
        let problem = format!("`{OVERHEAD}` and `{STAGES}` both set the time of the host's software");
        context.wrong(STAGES, problem, "keep one of them: a time per request, or stages");
        return None;
    }
    let reference = context.text(STAGES, "")?;
    let source = match stacks::find(&reference, leaf.folder()) {
        Ok(source) => source,
        Err((problem, help)) => {
            context.wrong(STAGES, format!("`{STAGES}`: {problem}"), help);
            return None;
        }
    };
    // A path relative to the current folder, so that the resolved design can be read again.
    if let Some(resolved) = context.resolved.last_mut()
        && source.name != format!("stacks/{reference}.toml")
    {
        resolved.value = Datum::Text(source.name.clone());
    }
    match Software::read(&source) {
        Ok(software) => Some((Span::ZERO, Some(software))),
        Err(error) => {
            context.errors.push(error);
            None
        }
    }
}
