//! The keys of a log of recoverable memory.

use super::KIND;
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.memory", &[KIND], Shape::Size { min: 1 << 16, max: 1 << 32 }, Is("32 MiB"), "\"64 MiB\"")
        .about("Bytes of recoverable memory, i.e. of the mapped segment. It is in the host and takes no time."),
    key(
        "ftl.log.on",
        &[KIND],
        Shape::OneOf(&[
            ("flash", "NOR flash as a character device: appends of any number of bytes, erases by truncation"),
            (
                "flash-disk",
                "flash that emulates a disk: whole sectors; each byte costs its program and its share of an erase, \
                 the emulation itself costs nothing",
            ),
            ("battery-ram", "battery-backed memory"),
            ("disk", "a rotating disk"),
            (
                "hybrid",
                "flash as a character device for small records and for the commits of large ones, whose data goes to a disk",
            ),
        ]),
        Required,
        "\"flash\"",
    )
    .about("Kind of log device; `ftl.medium` names its medium. (System 001 slides 24 to 26.)"),
    key("ftl.log.size", &[KIND], Shape::Size { min: 1 << 14, max: 1 << 40 }, Nothing("the whole medium"), "\"16 MiB\"")
        .about(
            "Bytes available for records, without the status block: whole erase blocks of flash, whole sectors of a disk or \
             flash disk. For a hybrid log, the part on the disk; the flash part takes the whole array.",
        ),
    key(
        "ftl.log.headers",
        &[KIND],
        Shape::OneOf(&[
            ("compact", "8 B per transaction, 8 B per range"),
            ("original", "76 B per transaction, 56 B per range, as in RVM (system 001 slide 40)"),
        ]),
        Is("compact"),
        "\"original\"",
    )
    .about("Sizes of record headers."),
    key("ftl.log.diff", &[KIND], Shape::Flag, Is("false"), "true")
        .about("Log only the bytes of a range that changed."),
    key("ftl.log.compress", &[KIND], Shape::Flag, Is("false"), "true")
        .about("Compress records with LZ4 if that makes them shorter."),
    key("ftl.log.compress_rate", &[KIND], Shape::Rate, Nothing("compressing takes no time"), "\"1 MB/s\"")
        .about("Rate at which the processor compresses. (System 001 slide 47: 1 MB/s.)"),
    key("ftl.log.decompress_rate", &[KIND], Shape::Rate, Nothing("decompressing takes no time"), "\"1 MB/s\"").about(
        "Rate at which the processor decompresses records during truncation and recovery, in bytes of output. (System 001 slide 47: \
         1 MB/s; its break-even ignores truncation.)",
    ),
    key("ftl.log.page_buffers", &[KIND], Shape::Flag, Nothing("bytes are programmed one by one"), "true").about(
        "Program through the page buffers of the chips, if the part has them. The sector of a flash disk must be \
         smaller than the page buffers of a gang. (System 001 slide 37.)",
    ),
    key("ftl.log.sector", &[KIND], Shape::Size { min: 512, max: 4096 }, Nothing("512 B, for a flash disk only"), "\"512 B\"")
        .about("Sector size of a flash disk: 512, 1024, 2048 or 4096 B."),
    key("ftl.log.spares", &[KIND], Shape::Count { min: 0, max: 1 << 16 }, Nothing("none; for flash only"), "2")
        .about("Erase blocks reserved to replace worn-out ones."),
    key("ftl.log.delays", &[KIND], Shape::Flag, Nothing("true, for battery-backed memory only"), "false")
        .about("Whether accesses to battery-backed memory take time; system 001 disabled the delays of its emulator."),
    key("ftl.log.large_on", &[KIND], Shape::Medium, Nothing("large records are written like the others"), "\"disk\"")
        .about("Disk of a hybrid log: a name under [media]. (System 001 slide 49.)"),
    key("ftl.log.large_from", &[KIND], Shape::Size { min: 64, max: 1 << 24 }, Nothing("4 KiB, for a hybrid log"), "\"4 KiB\"")
        .about("Record size from which on a hybrid log writes to the disk."),
    key("ftl.log.write_ahead", &[KIND], Shape::Flag, Nothing("true, for a hybrid log"), "false").about(
        "Whether a hybrid log starts to write a large record to its disk before the commit, `large_from` bytes at a time as the \
         program stores them. The commit then waits for writes in progress and writes the rest and a stub to flash. Writes of \
         an aborted transaction are wasted. Compressed records and records of changed bytes only are not known before their \
         commit. (System 001 slide 49.)",
    ),
    key("ftl.log.truncate_at", &[KIND], Shape::Share { max: 0.99 }, Nothing("truncation by the commit that finds the log full, while all wait"), "\"50 %\"")
        .about(
            "Fill level of the log at which truncation starts in the background: it reads the log and writes the data while \
             transactions go on, and erases blocks while the flash is idle (suspended by log writes). A commit waits only if the \
             log is full or its next block is not yet erased. Background erases cannot fail. (System 001 slides 19, 43: 670 ms of \
             computing leave time for it.)",
        ),
    key("ftl.log.data", &[KIND], Shape::Medium, Nothing("applying the log to the data takes no time"), "\"disk\"").about(
        "Disk that holds the data: truncation writes the changes in the log to it. The figures of system 001 exclude this \
         cost.",
    ),
];
