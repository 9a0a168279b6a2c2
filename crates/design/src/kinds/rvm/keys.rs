//! The keys of a log of recoverable memory.

use super::KIND;
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.memory", &[KIND], Shape::Size { min: 1 << 16, max: 1 << 32 }, Is("32 MiB"), "\"64 MiB\"")
        .about("Bytes of recoverable memory: the segment that is mapped. It is in the host and costs no time."),
    key(
        "ftl.log.on",
        &[KIND],
        Shape::OneOf(&[
            ("flash", "NOR flash as a character device: any byte is appended, blocks are erased by truncation"),
            (
                "flash-disk",
                "flash that emulates a disk: whole sectors; each byte costs its program and its share of an erase, \
                 the rest of the emulation nothing",
            ),
            ("battery-ram", "memory with a battery"),
            ("disk", "a rotating disk"),
            (
                "hybrid",
                "flash as a character device for small records and the commit of large ones, whose data go to a disk",
            ),
        ]),
        Required,
        "\"flash\"",
    )
    .about("What the log is on; `ftl.medium` names it. (System 001 slides 24 to 26.)"),
    key("ftl.log.size", &[KIND], Shape::Size { min: 1 << 14, max: 1 << 40 }, Nothing("all that the medium has"), "\"16 MiB\"")
        .about(
            "Bytes of records the log takes, without its status: whole erase blocks of flash, whole sectors of a disk or a \
             flash disk. Of a hybrid log those on the disk; the flash takes what the array has.",
        ),
    key(
        "ftl.log.headers",
        &[KIND],
        Shape::OneOf(&[
            ("compact", "8 B a transaction, 8 B a range"),
            ("original", "76 B a transaction, 56 B a range, as RVM had them (system 001 slide 40)"),
        ]),
        Is("compact"),
        "\"original\"",
    )
    .about("Sizes of the headers of records."),
    key("ftl.log.diff", &[KIND], Shape::Flag, Is("false"), "true")
        .about("Log only the bytes of a range that changed."),
    key("ftl.log.compress", &[KIND], Shape::Flag, Is("false"), "true")
        .about("Compress records with LZ4 where that makes them shorter."),
    key("ftl.log.compress_rate", &[KIND], Shape::Rate, Nothing("compressing takes no time"), "\"1 MB/s\"")
        .about("Rate at which the processor compresses. (System 001 slide 47: 1 MB/s.)"),
    key("ftl.log.decompress_rate", &[KIND], Shape::Rate, Nothing("decompressing takes no time"), "\"1 MB/s\"").about(
        "Rate at which the processor decompresses what truncation applies, counted in bytes that come out. (System 001 slide 47: \
         1 MB/s; its break-even leaves truncation out.)",
    ),
    key("ftl.log.page_buffers", &[KIND], Shape::Flag, Nothing("every byte is programmed by itself"), "true").about(
        "Program through the page buffers of the chips, if the part has them. The sector of a flash disk must be \
         smaller than the buffers of a gang. (System 001 slide 37.)",
    ),
    key("ftl.log.sector", &[KIND], Shape::Size { min: 512, max: 4096 }, Nothing("512 B, of a flash disk only"), "\"512 B\"")
        .about("Bytes of a sector of a flash disk: 512, 1024, 2048 or 4096."),
    key("ftl.log.spares", &[KIND], Shape::Count { min: 0, max: 1 << 16 }, Nothing("none; of flash only"), "2")
        .about("Erase blocks kept to take the place of worn-out ones."),
    key("ftl.log.delays", &[KIND], Shape::Flag, Nothing("true, of battery-backed memory only"), "false")
        .about("Whether battery-backed memory takes its time; system 001 switched the delays of its emulator off."),
    key("ftl.log.large_on", &[KIND], Shape::Medium, Nothing("large records go where the others do"), "\"disk\"")
        .about("The disk of a hybrid log. (System 001 slide 49.)"),
    key("ftl.log.large_from", &[KIND], Shape::Size { min: 64, max: 1 << 24 }, Nothing("4 KiB, of a hybrid log"), "\"4 KiB\"")
        .about("Bytes from which on a hybrid log writes to the disk."),
    key("ftl.log.write_ahead", &[KIND], Shape::Flag, Nothing("true, of a hybrid log"), "false").about(
        "Whether a hybrid log begins to write a large record to its disk before the commit, `large_from` bytes at a time while the \
         program stores them: the commit then waits for what is not there yet, and writes the rest and a stub to flash. What is undone is \
         waste. Compressed records and those of changed bytes only are not known before their commit. (System 001 slide 49.)",
    ),
    key("ftl.log.truncate_at", &[KIND], Shape::Share { max: 0.99 }, Nothing("by the commit that finds no room, while all wait"), "\"50 %\"")
        .about(
            "Share of the log from which on it is truncated in the background: reading it and writing the data take their time while \
             transactions go on, and erases are done while the flash is idle, suspended by what comes; a commit waits only if it finds no \
             room, or its block not yet erased. Such erases cannot fail. (System 001 slides 19, 43: 670 ms of computing allow it.)",
        ),
    key("ftl.log.data", &[KIND], Shape::Medium, Nothing("applying the log to the data takes no time"), "\"disk\"").about(
        "The disk the data is on: truncation writes what the log has changed to it. The figures of system 001 leave that \
         cost out.",
    ),
];
