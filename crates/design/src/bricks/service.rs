//! How a block device serves a request: trim, checked reads, the controller's own time.

use super::memories::BLOCK_DEVICES;
use crate::context::Context;
use crate::key::Preset::{Is, Nothing};
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;
use nvlab_units::Span;

/// The kinds that are block devices, over whatever.
const WITH_BLOCKS: &[&str] = &["page", "block", "bast", "fast", "hftl", "direct"];

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.trim", WITH_BLOCKS, Shape::Flag, Is("true"), "true").about(
        "Whether the host's trims are obeyed. If not, trimmed data counts as live and is moved by \
         cleaning. A memory used in place has no map: it obeys by writing zeros.",
    ),
    key(
        "ftl.verify_reads",
        BLOCK_DEVICES,
        Shape::Flag,
        Nothing("checksums are checked by recovery and relocation only"),
        "true",
    )
    .about(
        "Whether the checksum (CRC-32C) in the spare area beside each unit is checked whenever the \
         host reads it. A unit that does not match is unreadable (an I/O error, counted among the \
         read failures), never returned as good, not even after it was moved or found again by a \
         recovery. It costs no modelled time: a controller computes it while the data passes. Only \
         a device that keeps bytes has something to check: one that is served, or a run whose \
         workload carries data.",
    ),
    key("ftl.overhead", WITH_BLOCKS, Shape::Time, Is("0 ns"), "\"2 us\"").about(
        "Time the controller itself takes for a request (firmware, map look-up), before the medium \
         is asked.",
    ),
];

/// Whether trims are honoured, whether checksums are verified on host reads, and the controller's overhead per request.
pub fn read(context: &mut Context, kind: &str) -> Option<(bool, bool, Span)> {
    let trim = context.flag("ftl.trim", kind);
    let verify_reads = context.flag("ftl.verify_reads", kind).unwrap_or(false);
    let overhead = context.time("ftl.overhead", kind);
    Some((trim?, verify_reads, overhead?))
}
