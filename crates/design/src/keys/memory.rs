//! The keys of `[media.NAME]` that memories and disks have, and those of prices, faults and error correction.

use super::media::{COUNT, SHARE, SIZE};
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;

const IN_PLACE: &[&str] = &["ram", "pcm"];

/// Keys of a memory or disk.
pub const KEYS: &[Key] = &[
    key("media.*.read", &["ram", "pcm"], Shape::Time, Required, "\"60 ns\"")
        .about("Reading a word: the first of an access."),
    key("media.*.read_next", IN_PLACE, Shape::Time, Nothing("as the first"), "\"2.5 ns\"")
        .about("Reading every further word of an access: burst or synchronous reads."),
    key("media.*.write", IN_PLACE, Shape::Time, Required, "\"60 ns\"")
        .about("RAM: writing a word, the first of an access. PCM: one program step."),
    key("media.*.step", &["pcm"], Shape::Size { min: 1, max: 1 << 16 }, Nothing("one word"), "\"64 B\"")
        .about(
            "Bytes programmed at the same time, in one program step. A power of two, at least a word. Several words are a \
             row: with `path.kind = \"ddr\"` its cells are waited for once, and bursts then find it open.",
        ),
    key(
        "media.*.line",
        &["pcm"],
        Shape::Size { min: 1, max: 1 << 16 },
        Nothing("one program step"),
        "\"64 B\"",
    )
    .about("Bytes whose wear is counted together. A power of two."),
    key("media.*.write_next", &["ram"], Shape::Time, Nothing("as the first"), "\"2.5 ns\"")
        .about("Writing every further word of an access."),
    key("media.*.banks", IN_PLACE, Shape::Count { min: 1, max: 4096 }, Is("1"), "8")
        .about("Banks that work in parallel."),
    key("media.*.stripe", IN_PLACE, SIZE, Is("4 KiB"), "\"4 KiB\"")
        .about("Bytes that lie together in one bank."),
    key(
        "media.*.backup",
        &["ram"],
        Shape::OneOf(&[
            ("none", "the contents are gone when power fails"),
            ("battery", "a battery keeps them"),
            ("capacitor", "a capacitor keeps them for `hold`, or until they are saved"),
        ]),
        Is("none"),
        "\"capacitor\"",
    )
    .about("What keeps the contents while the power is off."),
    key("media.*.hold", &["ram"], Shape::TimeOrNone, Is("none"), "\"10 s\"").about(
        "How long the battery or capacitor keeps the contents; \"none\": longer than any outage, \
         which a capacitor cannot.",
    ),
    key("media.*.sector", &["disk"], Shape::Size { min: 1, max: 1 << 16 }, Is("512 B"), "\"512 B\"")
        .about("Bytes of a sector."),
    key("media.*.seek", &["disk"], Shape::Time, Required, "\"8.5 ms\"")
        .about("Average seek over random pairs."),
    key("media.*.seek_track", &["disk"], Shape::Time, Required, "\"1 ms\"")
        .about("Seek to the next cylinder."),
    key("media.*.seek_full", &["disk"], Shape::Time, Required, "\"18 ms\"")
        .about("Seek from the first cylinder to the last."),
    key("media.*.rotation", &["disk"], Shape::Time, Required, "\"8.333 ms\"").about("One revolution."),
    key("media.*.transfer", &["disk"], Shape::Rate, Required, "\"6 MB/s\"")
        .about("Sustained rate of a track under the head."),
    key("media.*.surfaces", &["disk"], COUNT, Required, "8")
        .about("Recorded surfaces: tracks of a cylinder."),
    key("media.*.overhead", &["disk"], Shape::Time, Is("0 ns"), "\"0.5 ms\"")
        .about("From the arrival of a request until the drive acts on it."),
    key(
        "media.*.price",
        &[],
        Shape::Price,
        Nothing("no price is known, and none is reported"),
        "\"0.06 USD/GiB\"",
    )
    .about("Price by raw capacity."),
    key("media.*.faults.factory_bad", &[], SHARE, Is("0 %"), "\"1 %\"")
        .about("Share of blocks marked bad at the factory."),
    key("media.*.faults.program_failure", &[], SHARE, Is("0 %"), "\"1e-6\"").about(
        "Probability that one program operation fails on a block at its rated life; it grows with \
         the square of the cycles.",
    ),
    key("media.*.faults.erase_failure", &[], SHARE, Is("0 %"), "\"1e-5\"").about(
        "Probability that one erase fails on a block at its rated life; it grows with the square of \
         the cycles.",
    ),
    key("media.*.faults.wear_out", &[], Shape::Flag, Is("false"), "true")
        .about("Whether blocks past their own endurance fail their next erase."),
    key(
        "media.*.ecc.kind",
        &[],
        Shape::OneOf(&[
            ("none", "reads never fail: bit errors are not modelled"),
            ("threshold", "a codeword with more bit errors than `correctable` is read again, then lost"),
        ]),
        Is("none"),
        "\"threshold\"",
    )
    .about("Bit errors and their correction."),
    key("media.*.ecc.rate_fresh", &["threshold"], SHARE, Required, "\"1e-5\"")
        .about("Raw bit error rate of a fresh block."),
    key("media.*.ecc.rate_worn", &["threshold"], SHARE, Required, "\"2e-3\"")
        .about("Raw bit error rate at rated life; in between it grows exponentially with the cycles."),
    key("media.*.ecc.codeword", &["threshold"], Shape::Size { min: 1, max: 1 << 20 }, Required, "\"4608 B\"")
        .about("Bytes of one codeword, parity included."),
    key("media.*.ecc.correctable", &["threshold"], Shape::Count { min: 0, max: 1 << 20 }, Required, "160")
        .about("Bit errors one codeword may have and still be corrected."),
    key("media.*.ecc.retries", &["threshold"], Shape::Count { min: 0, max: 1000 }, Is("0"), "8")
        .about("How often a failed read is retried with shifted reference voltages."),
    key("media.*.ecc.retry_factor", &["threshold"], SHARE, Is("50 %"), "\"50 %\"")
        .about("Factor by which each retry multiplies the bit error rate."),
    key("media.*.atomic", &["pcm"], Shape::Size { min: 1, max: 4096 }, Nothing("one word"), "\"8 B\"").about(
        "Bytes (aligned) that a power cut never tears apart: old or new, by energy to finish them \
         or by a shadow. A power of two. hFTL and FSMS change entries of 8 B in place.",
    ),
    key("media.*.differing", &["pcm"], Shape::Share { max: 1.0 }, Is("16 %"), "\"100 %\"").about(
        "A write programs only the words that differ from what the cells hold. Where a workload \
         carries no bytes nothing can be compared: this share is then taken to differ. (System 003 \
         slide 12: 16 % of a metadata block.)",
    ),
    key(
        "media.*.level.kind",
        &["pcm"],
        Shape::OneOf(&[
            ("none", "a line stays where it is"),
            (
                "start-gap",
                "lines move round, one slot for every `interval` writes (Qureshi et al., MICRO 2009)",
            ),
        ]),
        Is("none"),
        "\"start-gap\"",
    )
    .about("Wear levelling of the lines of this memory."),
    key("media.*.level.interval", &["start-gap"], Shape::Count { min: 1, max: 1_000_000 }, Is("100"), "100")
        .about("Line writes of a region between two moves: with 100, 1 % more writes."),
    key("media.*.level.regions", &["start-gap"], Shape::Count { min: 1, max: 1_000_000 }, Is("64"), "64")
        .about(
            "Regions, each with a gap of its own. (Lines of a region) x (interval) writes must stay far \
             below the endurance, since a line that takes every write stays where it is for so many.",
        ),
    key(
        "media.*.level.randomise",
        &["start-gap"],
        Shape::Flag,
        Nothing("true: the permutation follows from the seed of the run"),
        "false",
    )
    .about(
        "Whether a fixed random permutation of the lines is in front, so that neighbouring lines lie in \
         different regions.",
    ),
];
