//! The keys of a design about itself, of the wiring of its chips, and of `[ftl]` without the tables inside it.

use super::Key;
use super::Preset::{Is, Nothing, Required};
use crate::toml_reader::datum::Shape;

/// Keys about the design itself.
pub const DESIGN: &[Key] = &[
    Key {
        path: "schema",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 1 },
        preset: Is("1"),
        about: "Version of the design file format.",
        example: "1",
    },
    Key {
        path: "design.name",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("the name of the file"),
        about: "Short name: it begins the name of the result directory.",
        example: "\"ssd-tlc\"",
    },
    Key {
        path: "design.about",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("nothing is said about it"),
        about: "What the design is, in one line; shown in reports.",
        example: "\"A small NVMe drive of today\"",
    },
    Key {
        path: "design.cite",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("no source"),
        about: "The publication the design follows; shown in reports.",
        example: "\"Wu, Zwaenepoel: eNVy, ASPLOS 1994\"",
    },
    Key {
        path: "design.extends",
        kinds: &[],
        shape: Shape::Text,
        preset: Nothing("the design stands alone"),
        about: "A design to start from, a built-in NAME or a file relative to this one: everything not said here is \
                as it is there. Another `kind` or `part` drops the other keys of its table; of `spare`, \
                `utilization` and `capacity` the last one said counts.",
        example: "\"builtin:ssd-tlc\"",
    },
];

/// Keys of the wiring and of the controller.
pub const KEYS: &[Key] = &[
    Key {
        path: "array.channels",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 1024 },
        preset: Is("1"),
        about: "Buses between the controller and its dies. Transfers on different channels do not wait for each \
                other.",
        example: "8",
    },
    Key {
        path: "array.ways",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 1024 },
        preset: Is("1"),
        about: "Dies (or gangs of chips) on each channel. Each reads, programs and erases by itself.",
        example: "4",
    },
    Key {
        path: "array.gang",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 4096 },
        preset: Is("1"),
        about: "Chips that always work in lockstep as one wide chip: a page is then one page of each, and the \
                bus is as wide as they are together (eNVy: 256 chips of one byte).",
        example: "256",
    },
    Key {
        path: "array.planes",
        kinds: &[],
        shape: Shape::Count { min: 1, max: 64 },
        preset: Nothing("all planes of the part"),
        about: "Planes of a die that are programmed and erased together. A page of the array is then one page of \
                each. With fewer than the part has, the blocks of the others follow one another.",
        example: "4",
    },
    Key {
        path: "array.transfer",
        kinds: &[],
        shape: Shape::Rate,
        preset: Nothing("the rate of the part, times the gang"),
        about: "Rate of one channel.",
        example: "\"1200 MB/s\"",
    },
    Key {
        path: "ftl.kind",
        kinds: &[],
        shape: Shape::OneOf(&[
            (
                "page",
                "any logical unit to any physical unit: out-of-place writes, cleaning, a map of every unit",
            ),
            (
                "block",
                "a block map without a log: a page at its own place in its block, which is merged with every overwrite",
            ),
            (
                "bast",
                "a block map: a page at its own place in its block; what is overwritten goes to a log block of its \
                 data block (BAST, 2002)",
            ),
            (
                "fast",
                "a block map whose log blocks take the overwrites of any data block (FAST, 2007); the log may be an \
                 array of its own (system 002) or blocks in SLC mode",
            ),
            (
                "hftl",
                "the page map with its map in PRAM, changed in place: a unit is a page, and a mount scans nothing (EMSOFT \
                 2008)",
            ),
            (
                "envy",
                "a memory: words of NOR flash behind a battery-backed write buffer and page table (eNVy, ASPLOS \
                 1994)",
            ),
        ]),
        preset: Required,
        about: "How the controller makes the medium overwritable.",
        example: "\"page\"",
    },
    Key {
        path: "ftl.medium",
        kinds: &[],
        shape: Shape::Medium,
        preset: Required,
        about: "The flash medium that holds the data, by its name under [media].",
        example: "\"tlc\"",
    },
    Key {
        path: "ftl.unit",
        kinds: &["page"],
        shape: Shape::Size { min: 16, max: 1 << 20 },
        preset: Is("4 KiB"),
        about: "What the map translates. Smaller host writes read, change and write back a whole unit.",
        example: "\"4 KiB\"",
    },
    Key {
        path: "ftl.unit",
        kinds: &["envy"],
        shape: Shape::Size { min: 16, max: 1 << 20 },
        preset: Nothing("the width of the array: a page moves in one cycle"),
        about: "A page: what is copied to the buffer and flushed from it. An array that is narrower than a page \
                moves and programs it in several steps (eNVy section 8).",
        example: "\"256 B\"",
    },
    Key {
        path: "ftl.concurrent",
        kinds: &["envy"],
        shape: Shape::Count { min: 1, max: 1024 },
        preset: Is("1"),
        about: "Programs and erases that can be under way at the same time, on different banks; it must divide the \
                number of banks, `array.channels` x `array.ways`. A host access suspends those of its own bank. \
                (eNVy section 6: 4 to 8.)",
        example: "4",
    },
    Key {
        path: "ftl.transaction_pages",
        kinds: &["envy"],
        shape: Shape::Count { min: 0, max: 1 << 24 },
        preset: Is("0"),
        about: "Pages one hardware transaction may change; room is kept for their old versions. 0: there are no \
                transactions. (eNVy section 6.)",
        example: "1024",
    },
    Key {
        path: "ftl.spare",
        kinds: &["page", "block", "bast", "fast", "hftl", "envy"],
        shape: Shape::Share { max: 0.99 },
        preset: Nothing("7 % (page) or 20 % (envy), unless `utilization` or `capacity` is given"),
        about: "Over-provisioning: the share of the raw capacity that the host cannot address. \
                `logical units = floor(raw units x (1 - spare))`. Blocks bad from the factory come out of it. The \
                more there is, the emptier are the blocks that are cleaned, and the lower is the write \
                amplification.",
        example: "\"12 %\"",
    },
    Key {
        path: "ftl.utilization",
        kinds: &["page", "block", "bast", "fast", "hftl", "envy"],
        shape: Shape::Share { max: 0.99 },
        preset: Nothing("1 - spare"),
        about: "The share of the raw capacity that the host can address: another way to say `spare`. (eNVy \
                section 4.1: live data limited to 80 % of the array.)",
        example: "\"80 %\"",
    },
    Key {
        path: "ftl.utilization_of",
        kinds: &["envy"],
        shape: Shape::OneOf(&[
            ("in-service", "of the segments that hold data: all but the reserve"),
            ("total", "of all segments"),
        ]),
        preset: Is("in-service"),
        about: "What `utilization` and `spare` are a share of. The paper does not say; a cleaning cost of exactly 4 \
                at 80 % needs the segments in service.",
        example: "\"total\"",
    },
    Key {
        path: "ftl.capacity",
        kinds: &["page", "block", "bast", "fast", "hftl", "envy"],
        shape: Shape::Size { min: 4096, max: u64::MAX },
        preset: Nothing("from spare"),
        about: "What the host can address, in bytes: another way to say `spare`.",
        example: "\"120 GB\"",
    },
    Key {
        path: "ftl.trim",
        kinds: &["page", "block", "bast", "fast", "hftl"],
        shape: Shape::Flag,
        preset: Is("true"),
        about: "Whether the host's trim is heard. If not, trimmed data counts as live and is moved by cleaning.",
        example: "true",
    },
    Key {
        path: "ftl.verify_reads",
        kinds: &["page", "block", "bast", "fast", "hftl"],
        shape: Shape::Flag,
        preset: Nothing("checksums are checked by recovery and relocation only"),
        about: "Whether the checksum (CRC-32C) in the spare area beside each unit is checked whenever the host reads it. A \
                unit that does not match is unreadable (an I/O error, counted among the read failures), never returned as \
                good, not even after it was moved or found again by a recovery. It costs no modelled time: a controller \
                computes it while the data passes. Only a device that keeps bytes has something to check: one that is \
                served, or a run whose workload carries data.",
        example: "true",
    },
    Key {
        path: "ftl.allocation",
        kinds: &["page"],
        shape: Shape::OneOf(&[
            (
                "dynamic",
                "blocks of one die each; the host's next page goes to a die with room and little to do",
            ),
            (
                "superblock",
                "the blocks of the same number on all dies, filled a page each in turn; what is moved may go to \
                 another die",
            ),
        ]),
        preset: Is("dynamic"),
        about: "What is opened, filled, cleaned and erased as a whole. A superblock with a bad block holds less.",
        example: "\"superblock\"",
    },
    Key {
        path: "ftl.streams",
        kinds: &["page"],
        shape: Shape::OneOf(&[
            ("one", "host writes and relocated data fill the same block"),
            ("host-and-relocated", "host writes in one block, relocated data in another"),
            (
                "hot-cold-relocated",
                "recently written units, other host writes and relocated data in a block each",
            ),
        ]),
        preset: Is("host-and-relocated"),
        about: "Which data shares a block. Data that dies together makes blocks that are cheap to clean.",
        example: "\"host-and-relocated\"",
    },
    Key {
        path: "ftl.hot_within",
        kinds: &["page"],
        shape: Shape::Share { max: 1.0 },
        preset: Is("25 %"),
        about: "For streams = \"hot-cold-relocated\": a unit is hot if its last write is less than this share of \
                the logical capacity of host writes ago.",
        example: "\"25 %\"",
    },
    Key {
        path: "ftl.free_blocks_min",
        kinds: &["page"],
        shape: Shape::Count { min: 1, max: 1_000_000 },
        preset: Is("2"),
        about: "Erased blocks of a die below which cleaning begins.",
        example: "2",
    },
    Key {
        path: "ftl.overhead",
        kinds: &["page", "block", "bast", "fast", "hftl"],
        shape: Shape::Time,
        preset: Is("0 ns"),
        about: "Time the controller itself takes for a request (firmware, map look-up), before the medium is \
                asked.",
        example: "\"2 us\"",
    },
];
