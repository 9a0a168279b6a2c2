//! The keys of `[ftl.cache]`: blocks in SLC mode in front of a page map's others.

use super::Key;
use super::Preset::{Is, Required};
use crate::toml_reader::datum::Shape;

/// The kinds of cache.
const CACHES: &[&str] = &["pslc", "hot"];

/// Keys of the cache.
pub const KEYS: &[Key] = &[
    Key {
        path: "ftl.cache.kind",
        kinds: &["page"],
        shape: Shape::OneOf(&[
            ("none", "every block is used with all its bits"),
            (
                "pslc",
                "host data goes to blocks used with one bit per cell, as long as there is room for them",
            ),
            (
                "hot",
                "only what was written recently goes there; what is not overwritten in time migrates (reference 9 of \
                 system 002)",
            ),
        ]),
        preset: Is("none"),
        about: "A cache of blocks in SLC mode: faster and hardier, and smaller. Relocated data is always written with all \
                bits, so it needs `ftl.streams` of its own; `hot` needs hot-cold-relocated.",
        example: "\"pslc\"",
    },
    Key {
        path: "ftl.cache.in",
        kinds: CACHES,
        shape: Shape::Medium,
        preset: Required,
        about: "The medium, by its name under [media], that says what a block of the data medium is like with one bit per \
                cell: its pages, times and cycles. It is not bought.",
        example: "\"slc\"",
    },
    Key {
        path: "ftl.cache.size_min",
        kinds: CACHES,
        shape: Shape::Share { max: 0.99 },
        preset: Is("0 %"),
        about: "Share of the blocks of a die that host data may have in SLC mode however full the device is. The room this \
                takes must be spare.",
        example: "\"2 %\"",
    },
    Key {
        path: "ftl.cache.size_max",
        kinds: CACHES,
        shape: Shape::Share { max: 0.99 },
        preset: Is("25 %"),
        about: "Share of the blocks of a die that are in SLC mode at most. Between `size_min` and this the cache grows \
                into blocks that are erased.",
        example: "\"25 %\"",
    },
    Key {
        path: "ftl.cache.spared",
        kinds: CACHES,
        shape: Shape::Count { min: 0, max: 1_000_000 },
        preset: Is("2"),
        about: "Erased blocks of a die, beyond `ftl.free_blocks_min`, that the cache leaves alone when it grows beyond \
                `size_min`.",
        example: "2",
    },
    Key {
        path: "ftl.cache.fold_after",
        kinds: CACHES,
        shape: Shape::TimeOrNone,
        preset: Is("none"),
        about: "When no request came for so long, the idle time is used for folding: blocks in SLC mode are emptied into \
                others, the one filled first first. \"none\": only the cleaner and a full cache empty them.",
        example: "\"100 ms\"",
    },
    Key {
        path: "ftl.cache.when_full",
        kinds: CACHES,
        shape: Shape::OneOf(&[
            ("direct", "host data is written with all bits"),
            ("fold", "the block filled first is folded to make room, and the host waits for it"),
        ]),
        preset: Is("direct"),
        about: "What happens to host data when the cache is full.",
        example: "\"direct\"",
    },
];
