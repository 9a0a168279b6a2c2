//! The keys of `[media.NAME]` for memories and disks, and those of prices, faults and error correction.

use super::media::{COUNT, SHARE, SIZE};
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;

const IN_PLACE: &[&str] = &["ram", "pcm"];

/// Keys of a memory or disk.
pub const KEYS: &[Key] = &[
    key("media.*.read", &["ram", "pcm"], Shape::Time, Required, "\"60 ns\"")
        .about("Time to read the first word of an access."),
    key("media.*.read_next", IN_PLACE, Shape::Time, Nothing("as the first"), "\"2.5 ns\"")
        .about("Time to read each further word of an access: burst or synchronous reads."),
    key("media.*.write", IN_PLACE, Shape::Time, Required, "\"60 ns\"")
        .about("RAM: time to write the first word of an access. PCM: time of one program step."),
    key("media.*.step", &["pcm"], Shape::Size { min: 1, max: 1 << 16 }, Nothing("one word"), "\"64 B\"")
        .about(
            "Bytes programmed together in one program step. A power of two, at least a word. Several words are a row: with \
             `path.kind = \"ddr\"`, an access pays the cell time once per row, and bursts then find the row open.",
        ),
    key(
        "media.*.line",
        &["pcm"],
        Shape::Size { min: 1, max: 1 << 16 },
        Nothing("one program step"),
        "\"64 B\"",
    )
    .about("Granularity of wear counting, in bytes; a power of two."),
    key("media.*.write_next", &["ram"], Shape::Time, Nothing("as the first"), "\"2.5 ns\"")
        .about("Time to write each further word of an access."),
    key("media.*.banks", IN_PLACE, Shape::Count { min: 1, max: 4096 }, Is("1"), "8")
        .about("Banks that operate in parallel."),
    key("media.*.stripe", IN_PLACE, SIZE, Is("4 KiB"), "\"4 KiB\"")
        .about("Consecutive bytes in one bank."),
    key(
        "media.*.backup",
        &["ram"],
        Shape::OneOf(&[
            ("none", "the contents are lost when power fails"),
            ("battery", "a battery preserves them"),
            ("capacitor", "a capacitor preserves them for `hold`, or until they are saved"),
        ]),
        Is("none"),
        "\"capacitor\"",
    )
    .about("What preserves the contents while power is off."),
    key("media.*.hold", &["ram"], Shape::TimeOrNone, Is("none"), "\"10 s\"").about(
        "How long the battery or capacitor preserves the contents; \"none\": longer than any outage (not allowed for a \
         capacitor).",
    ),
    key("media.*.retention_ua_per_gib", &["ram"], Shape::Count { min: 0, max: 1_000_000_000 }, Nothing("not known"), "2_000")
        .about("Current that preserves the contents while power is off, in uA per GiB. (eNVy figure 1: SRAM 2 mA, DRAM 1 A.)"),
    key("media.*.sector", &["disk"], Shape::Size { min: 1, max: 1 << 16 }, Is("512 B"), "\"512 B\"")
        .about("Sector size."),
    key("media.*.seek", &["disk"], Shape::Time, Required, "\"8.5 ms\"")
        .about("Average seek over random pairs."),
    key("media.*.seek_track", &["disk"], Shape::Time, Required, "\"1 ms\"")
        .about("Seek to an adjacent cylinder."),
    key("media.*.seek_full", &["disk"], Shape::Time, Required, "\"18 ms\"")
        .about("Seek from the first cylinder to the last."),
    key("media.*.rotation", &["disk"], Shape::Time, Required, "\"8.333 ms\"").about("Time of one revolution."),
    key("media.*.transfer", &["disk"], Shape::Rate, Required, "\"6 MB/s\"")
        .about("Sustained rate of a track under the head."),
    key("media.*.surfaces", &["disk"], COUNT, Required, "8")
        .about("Recording surfaces, i.e. tracks per cylinder."),
    key("media.*.overhead", &["disk"], Shape::Time, Is("0 ns"), "\"0.5 ms\"")
        .about("Controller time from the arrival of a request until the drive acts on it."),
    key(
        "media.*.price",
        &[],
        Shape::Price,
        Nothing("no price is known, and none is reported"),
        "\"0.06 USD/GiB\"",
    )
    .about("Price per raw capacity."),
    key("media.*.faults.factory_bad", &[], SHARE, Is("0 %"), "\"1 %\"")
        .about("Share of blocks that are factory bad blocks."),
    key("media.*.faults.program_failure", &[], SHARE, Is("0 %"), "\"1e-6\"").about(
        "Probability that a program operation fails on a block at its rated endurance; it grows with the square of the \
         cycles.",
    ),
    key("media.*.faults.erase_failure", &[], SHARE, Is("0 %"), "\"1e-5\"").about(
        "Probability that an erase fails on a block at its rated endurance; it grows with the square of the cycles.",
    ),
    key("media.*.faults.wear_out", &[], Shape::Flag, Is("false"), "true")
        .about("Whether a block past its own endurance fails its next erase."),
    key(
        "media.*.ecc.kind",
        &[],
        Shape::OneOf(&[
            ("none", "reads never fail: bit errors are not modelled"),
            ("threshold", "a codeword with more bit errors than `correctable` is read again, and lost if that fails"),
        ]),
        Is("none"),
        "\"threshold\"",
    )
    .about("Model of bit errors and their correction."),
    key("media.*.ecc.rate_fresh", &["threshold"], SHARE, Required, "\"1e-5\"")
        .about("Raw bit error rate of a fresh block."),
    key("media.*.ecc.rate_worn", &["threshold"], SHARE, Required, "\"2e-3\"")
        .about("Raw bit error rate at rated endurance; in between it grows exponentially with the cycles."),
    key("media.*.ecc.codeword", &["threshold"], Shape::Size { min: 1, max: 1 << 20 }, Required, "\"4608 B\"")
        .about("Codeword size, including parity."),
    key("media.*.ecc.correctable", &["threshold"], Shape::Count { min: 0, max: 1 << 20 }, Required, "160")
        .about("Correctable bit errors per codeword."),
    key("media.*.ecc.retries", &["threshold"], Shape::Count { min: 0, max: 1000 }, Is("0"), "8")
        .about("How often a failed read is retried with shifted reference voltages."),
    key("media.*.ecc.retry_factor", &["threshold"], SHARE, Is("50 %"), "\"50 %\"")
        .about("Factor by which each retry multiplies the bit error rate."),
    key("media.*.atomic", &["pcm"], Shape::Size { min: 1, max: 4096 }, Nothing("one word"), "\"8 B\"").about(
        "Bytes (aligned) that a power cut never tears: either old or new, by stored energy that completes the write or by \
         a shadow copy. A power of two. hFTL and FSMS update entries of 8 B in place.",
    ),
    key("media.*.differing", &["pcm"], Shape::Share { max: 1.0 }, Is("16 %"), "\"100 %\"").about(
        "A write programs only the words that differ from the cells' contents. If the workload carries no bytes, this \
         share of the words is assumed to differ. (System 003 slide 12: 16 % of a metadata block.)",
    ),
    key(
        "media.*.level.kind",
        &["pcm"],
        Shape::OneOf(&[
            ("none", "lines do not move"),
            (
                "start-gap",
                "lines rotate by one slot every `interval` writes (Qureshi et al., MICRO 2009)",
            ),
        ]),
        Is("none"),
        "\"start-gap\"",
    )
    .about("Wear levelling of this memory, by lines."),
    key("media.*.level.interval", &["start-gap"], Shape::Count { min: 1, max: 1_000_000 }, Is("100"), "100")
        .about("Line writes to a region between two moves; 100 means 1 % more writes."),
    key("media.*.level.regions", &["start-gap"], Shape::Count { min: 1, max: 1_000_000 }, Is("64"), "64")
        .about(
        "Regions, each with its own gap. (Lines per region) x (interval) writes must stay far below the endurance, since a \
         line that gets all writes stays in place for that many.",
        ),
    key(
        "media.*.level.randomise",
        &["start-gap"],
        Shape::Flag,
        Nothing("true: the permutation follows from the seed of the run"),
        "false",
    )
    .about(
        "Whether a fixed random permutation is applied to line addresses first, so that neighbouring lines are in \
         different regions.",
    ),
];
