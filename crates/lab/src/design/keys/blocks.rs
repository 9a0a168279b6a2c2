//! The keys of block-mapped controllers (`block`, `bast`, `fast`) that no other has: the data area and `[ftl.log]`.

use super::Key;
use super::Preset::{Is, Nothing};
use crate::toml_reader::datum::Shape;

/// The kinds of block map.
const BLOCKS: &[&str] = &["block", "bast", "fast"];

/// Keys of the controllers.
pub const KEYS: &[Key] = &[
    Key {
        path: "ftl.data_area",
        kinds: BLOCKS,
        shape: Shape::OneOf(&[
            ("inside", "log blocks and room for merges come out of the blocks of the part, as `spare` says"),
            ("part", "the part's blocks hold data only; log blocks and `merge_blocks` are added to each die"),
        ]),
        preset: Is("inside"),
        about: "What the blocks of the part are. Papers give the data area and count the log as extra: \"part\" does so. \
                What is paid for is then data area and log; the merge blocks are this model's need and cost nothing.",
        example: "\"part\"",
    },
    Key {
        path: "ftl.merge_blocks",
        kinds: BLOCKS,
        shape: Shape::Count { min: 2, max: 1_000_000 },
        preset: Is("8"),
        about: "For data_area = \"part\": erased blocks of each die for merges and for blocks that go bad.",
        example: "8",
    },
    Key {
        path: "ftl.log.blocks",
        kinds: &["bast", "fast"],
        shape: Shape::Count { min: 1, max: 100_000_000 },
        preset: Nothing("16, unless `share` is given"),
        about: "Log blocks in all; at least one for each die. The one given out first (BAST) or filled first (FAST) is \
                merged first.",
        example: "16",
    },
    Key {
        path: "ftl.log.share",
        kinds: &["bast", "fast"],
        shape: Shape::Share { max: 1.0 },
        preset: Nothing("from `blocks`"),
        about: "Bytes of the log blocks as a share of what the host can address: another way to say `blocks`. (System \
                002: 5 to 25 % of the data area.)",
        example: "\"15 %\"",
    },
    Key {
        path: "ftl.log.in",
        kinds: &["fast"],
        shape: Shape::Medium,
        preset: Nothing("the data medium"),
        about: "The medium of the log blocks, by its name under [media]. Another one than the data medium is an array of \
                its own; with mode = \"slc\" it says what a block of the data medium is like with one bit per cell.",
        example: "\"slc\"",
    },
    Key {
        path: "ftl.log.mode",
        kinds: &["fast"],
        shape: Shape::OneOf(&[
            ("own", "the log blocks are as their medium is"),
            ("slc", "the log blocks are blocks of the data medium used with one bit per cell (fusion flash)"),
        ]),
        preset: Is("own"),
        about: "How the log blocks are used.",
        example: "\"slc\"",
    },
    Key {
        path: "ftl.log.ways",
        kinds: &["fast"],
        shape: Shape::Count { min: 1, max: 1024 },
        preset: Is("1"),
        about: "Dies of a log array of its own, on one channel.",
        example: "1",
    },
    Key {
        path: "ftl.log.sequential",
        kinds: &["fast"],
        shape: Shape::Flag,
        preset: Is("true"),
        about: "Whether sequential overwrites have a block of their own: from offset 0 on (FAST), or, where the log is an \
                array of its own, beyond a quarter of a data block (system 002).",
        example: "true",
    },
    Key {
        path: "ftl.log.second_chance",
        kinds: &["fast"],
        shape: Shape::Flag,
        preset: Is("false"),
        about: "Whether a page that was overwritten in the log is moved to another log block, once, instead of being \
                merged.",
        example: "true",
    },
];
