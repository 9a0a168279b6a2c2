//! The keys of a page map in PRAM (hFTL) that no other controller has, of what separates a file system's metadata in
//! front of a controller (`[ftl.route]`), and of the memory both use.

use super::Key;
use super::Preset::{Is, Nothing, Required};
use crate::toml_reader::datum::Shape;

/// Keys of a memory that is overwritten in place and wears.
pub const MEDIA: &[Key] = &[
    Key {
        path: "media.*.atomic",
        kinds: &["pcm"],
        shape: Shape::Size { min: 1, max: 4096 },
        preset: Nothing("one word"),
        about: "Bytes (aligned) that a power cut never tears apart: old or new, by energy to finish them or by a \
                shadow. A power of two. hFTL and FSMS change entries of 8 B in place.",
        example: "\"8 B\"",
    },
    Key {
        path: "media.*.differing",
        kinds: &["pcm"],
        shape: Shape::Share { max: 1.0 },
        preset: Is("16 %"),
        about: "A write programs only the words that differ from what the cells hold. Where a workload carries no \
                bytes nothing can be compared: this share is then taken to differ. (System 003 slide 12: 16 % of a \
                metadata block.)",
        example: "\"100 %\"",
    },
    Key {
        path: "media.*.level.kind",
        kinds: &["pcm"],
        shape: Shape::OneOf(&[
            ("none", "a line stays where it is"),
            (
                "start-gap",
                "lines move round, one slot for every `interval` writes (Qureshi et al., MICRO 2009)",
            ),
        ]),
        preset: Is("none"),
        about: "Wear levelling of the lines of this memory.",
        example: "\"start-gap\"",
    },
    Key {
        path: "media.*.level.interval",
        kinds: &["start-gap"],
        shape: Shape::Count { min: 1, max: 1_000_000 },
        preset: Is("100"),
        about: "Line writes of a region between two moves: with 100, 1 % more writes.",
        example: "100",
    },
    Key {
        path: "media.*.level.regions",
        kinds: &["start-gap"],
        shape: Shape::Count { min: 1, max: 1_000_000 },
        preset: Is("64"),
        about: "Regions, each with a gap of its own. (Lines of a region) x (interval) writes must stay far below the \
                endurance, since a line that takes every write stays where it is for so many.",
        example: "64",
    },
];

/// Keys of the controllers.
pub const KEYS: &[Key] = &[
    Key {
        path: "ftl.free_blocks_min",
        kinds: &["hftl"],
        shape: Shape::Count { min: 2, max: 1_000_000 },
        preset: Is("2"),
        about: "Erased blocks of a die at which cleaning begins: one for the host and one for what is moved, at least.",
        example: "2",
    },
    Key {
        path: "ftl.map.lookup",
        kinds: &["hftl"],
        shape: Shape::Time,
        preset: Is("90 ns"),
        about: "Time to look up one map entry. (System 003 slide 5: a word of PRAM asynchronously, 80 ns, and one \
                more synchronously, 10 ns.)",
        example: "\"90 ns\"",
    },
    Key {
        path: "ftl.route.kind",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("none", "all of the host's data goes to the controller"),
            (
                "fsms",
                "what a FAT file system changes again and again (boot sector, FATs, directories) stays in PRAM, \
                 the rest goes to the controller (FSMS, EMSOFT 2008)",
            ),
        ]),
        preset: Is("none"),
        about: "A driver in front of the controller that sends some of the data elsewhere.",
        example: "\"fsms\"",
    },
    Key {
        path: "ftl.route.in",
        kinds: &["fsms"],
        shape: Shape::Medium,
        preset: Required,
        about: "The memory the metadata go to, by its name under [media]. Where the controller keeps its map in PRAM it \
                is the same one.",
        example: "\"pram\"",
    },
    Key {
        path: "ftl.route.size",
        kinds: &["fsms"],
        shape: Shape::Size { min: 4096, max: u64::MAX },
        preset: Nothing("all that the controller leaves free"),
        about: "Bytes of it for the metadata; what does not fit goes to the controller, which is counted. (System 003 \
                slide 20: 2 MB for 1 GB of NAND.)",
        example: "\"2 MiB\"",
    },
    Key {
        path: "ftl.route.update",
        kinds: &["fsms"],
        shape: Shape::OneOf(&[
            (
                "in-place",
                "only what differs is programmed; a power cut may leave a sector half new, 8 B for 8 B",
            ),
            ("journal", "through a journal: a sector is old or new, and what differs is programmed twice"),
        ]),
        preset: Is("in-place"),
        about: "How a sector in PRAM is overwritten. (System 003 slide 12: in place.)",
        example: "\"journal\"",
    },
    Key {
        path: "ftl.route.trim",
        kinds: &["fsms"],
        shape: Shape::Flag,
        preset: Is("true"),
        about: "Logical delete: clusters whose FAT entries become free are trimmed at the next flush. (System 003, \
                backup slide.)",
        example: "false",
    },
    Key {
        path: "ftl.route.overhead",
        kinds: &["fsms"],
        shape: Shape::Time,
        preset: Is("0 ns"),
        about: "Time the driver itself takes for a request.",
        example: "\"2 us\"",
    },
    Key {
        path: "ftl.route.first",
        kinds: &["fsms"],
        shape: Shape::Size { min: 512, max: u64::MAX },
        preset: Nothing("nothing but what is recognised"),
        about: "So many first bytes of the device count as metadata whatever they hold: all there is to go by where a \
                workload carries no bytes (every one but iozone).",
        example: "\"4 MiB\"",
    },
];

/// A key of the link.
pub const PATH: &[Key] = &[Key {
    path: "path.rate_write",
    kinds: &["nvme", "sata", "bus"],
    shape: Shape::Rate,
    preset: Nothing("as `rate`"),
    about: "Rate towards the device, where it is another than that to the host: software that moves the data itself \
            may take longer in one direction.",
    example: "\"35 MB/s\"",
}];
