//! Lines of DRAM in front of a page map.

use super::{Scenario, State};

/// A drive of 4 dies with blocks of 3 MiB, and 1 MiB of lines in front of it.
const LINES: &[&str] = &[
    "media.tlc.pages=48",
    "media.tlc.blocks=24",
    "ftl.spare=40 %",
    "ftl.buffer.size=2 MiB",
    "ftl.map.checkpoint=64 MiB",
    "ftl.wear.threshold=2",
    "media.cache.size=1 MiB",
    "ftl.cache.dirty_max=20 %",
];

/// As words.
pub const WORDS: Scenario = Scenario {
    name: "words in lines in front of a page map",
    builtin: "cxl-ms-ssd",
    sets: LINES,
    workload: "words hot=20/60 page=4KiB load=60%",
    until: "20000 io",
    state: State::Full,
};

/// As blocks.
pub const BLOCKS: Scenario = Scenario {
    name: "blocks in lines in front of a page map",
    builtin: "cxl-ms-ssd",
    sets: LINES,
    workload: "sequential read=80% bs=16KiB qd=300",
    until: "4000 io",
    state: State::Full,
};
