//! How a block device serves a request: trim, checked reads, the controller's own time.

use super::memories::BLOCK_DEVICES;
use crate::context::Context;
use crate::key::Preset::{Is, Nothing};
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;
use nvlab_units::Span;

/// The kinds that are block devices, over any medium.
const WITH_BLOCKS: &[&str] = &["page", "block", "bast", "fast", "hftl", "zoned", "direct"];

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.trim", WITH_BLOCKS, Shape::Flag, Is("true"), "true").about(
        "Whether trims from the host are applied. If not, trimmed data stays live and cleaning moves it. A memory used \
         in place has no map: it writes zeros.",
    ),
    key(
        "ftl.verify_reads",
        BLOCK_DEVICES,
        Shape::Flag,
        Nothing("only recovery and relocation verify checksums"),
        "true",
    )
    .about(
        "Whether each host read verifies the unit's checksum (CRC-32C) in the spare area. A unit that does not match is \
         unreadable (an I/O error, counted as a read failure) and is never returned as good data, not even after a \
         relocation or recovery. It takes no simulated time: a controller computes the checksum as the data passes. It \
         matters only if the device stores bytes: when it is served, or when the workload carries data.",
    ),
    key("ftl.overhead", WITH_BLOCKS, Shape::Time, Is("0 ns"), "\"2 us\"").about(
        "Time of the controller itself per request (firmware, map look-up), before the medium is accessed.",
    ),
];

/// Whether trims are applied, whether checksums are verified on host reads, and the controller's overhead per
/// request.
pub fn read(context: &mut Context, kind: &str) -> Option<(bool, bool, Span)> {
    let trim = context.flag("ftl.trim", kind);
    let verify_reads = context.flag("ftl.verify_reads", kind).unwrap_or(false);
    let overhead = context.time("ftl.overhead", kind);
    Some((trim?, verify_reads, overhead?))
}
