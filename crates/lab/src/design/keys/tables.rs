//! The keys of the tables inside `[ftl]`: map, buffer, cleaning, wear; and of `[power]`. The kinds of a `kind` of
//! these tables are those of `[ftl]`.

use super::Key;
use super::Preset::{Is, Nothing, Required};
use crate::toml_reader::datum::Shape;

/// Keys of the controller's tables.
pub const KEYS: &[Key] = &[
    Key {
        path: "ftl.map.in",
        kinds: &[],
        shape: Shape::Medium,
        preset: Required,
        about: "The memory that holds the map, by its name under [media]. It must be large enough.",
        example: "\"dram\"",
    },
    Key {
        path: "ftl.map.entry",
        kinds: &["page"],
        shape: Shape::Size { min: 1, max: 64 },
        preset: Is("4 B"),
        about: "Memory for one map entry.",
        example: "\"4 B\"",
    },
    Key {
        path: "ftl.map.entry",
        kinds: &["envy"],
        shape: Shape::Size { min: 1, max: 64 },
        preset: Is("6 B"),
        about: "Memory of the page table for each page of flash. (eNVy section 3.3: 6 B.)",
        example: "\"6 B\"",
    },
    Key {
        path: "ftl.map.cache",
        kinds: &["envy"],
        shape: Shape::Count { min: 0, max: 1 << 24 },
        preset: Is("0"),
        about: "Entries of the cache of recent mappings. A miss reads the page table; 0: a look-up takes no time. (eNVy \
                section 5.1 names no size and adds no time.)",
        example: "4096",
    },
    Key {
        path: "ftl.map.checkpoint",
        kinds: &["page"],
        shape: Shape::SizeOrNone,
        preset: Is("none"),
        about: "Host bytes written between two checkpoints of the map on flash; \"none\": no checkpoints, \
                recovery scans the whole array.",
        example: "\"4 GiB\"",
    },
    Key {
        path: "ftl.buffer.kind",
        kinds: &["page"],
        shape: Shape::OneOf(&[
            ("none", "a write is acknowledged when its page is programmed"),
            ("write-back", "a write is acknowledged when it is in the buffer"),
        ]),
        preset: Is("none"),
        about: "The write buffer. Without one, a write waits for the program operation of its page.",
        example: "\"write-back\"",
    },
    Key {
        path: "ftl.buffer.kind",
        kinds: &["envy"],
        shape: Shape::OneOf(&[
            ("none", "every page that is written is flushed at once"),
            ("fifo", "pages are copied here when they are first written, and flushed in that order"),
        ]),
        preset: Is("fifo"),
        about: "The write buffer.",
        example: "\"fifo\"",
    },
    Key {
        path: "ftl.buffer.in",
        kinds: &["write-back", "fifo"],
        shape: Shape::Medium,
        preset: Required,
        about: "The memory that holds the buffer. If it has a battery or capacitor (`backup`), the buffer \
                survives a power cut and a flush has nothing to do.",
        example: "\"dram\"",
    },
    Key {
        path: "ftl.buffer.size",
        kinds: &["write-back", "fifo"],
        shape: Shape::Size { min: 1, max: u64::MAX },
        preset: Required,
        about: "Its size: at least one page of the array for every die and stream (write-back), or one page (fifo).",
        example: "\"32 MiB\"",
    },
    Key {
        path: "ftl.buffer.flush_at",
        kinds: &["fifo"],
        shape: Shape::Share { max: 1.0 },
        preset: Is("75 %"),
        about: "How full the buffer is when flushing begins. The fuller it is kept, the more often a page is changed \
                again before it is flushed, and the less room there is for a burst.",
        example: "\"62.5 %\"",
    },
    Key {
        path: "ftl.clean.kind",
        kinds: &["page", "hftl"],
        shape: Shape::OneOf(&[
            ("greedy", "the block with the fewest live units"),
            ("fifo", "the block that was filled first"),
            (
                "cost-benefit",
                "greatest (1 - u) x age / (1 + u), u the live share (Rosenblum and Ousterhout, LFS)",
            ),
            ("d-choices", "the emptiest of `d` blocks drawn at random (Van Houdt, SIGMETRICS 2013)"),
            ("windowed-greedy", "the emptiest of the `window` blocks filled first (Hu et al., SYSTOR 2009)"),
        ]),
        preset: Is("greedy"),
        about: "Cleaning (garbage collection): which block is emptied and erased next.",
        example: "\"greedy\"",
    },
    Key {
        path: "ftl.clean.kind",
        kinds: &["envy"],
        shape: Shape::OneOf(&[
            ("greedy", "the segment with the fewest live pages"),
            ("fifo", "the segment that was cleaned first"),
            (
                "cost-benefit",
                "greatest (1 - u) x age / (1 + u), u the live share (Rosenblum and Ousterhout, LFS)",
            ),
            ("gathering", "locality gathering: pages go back to where they came from (eNVy section 4.3)"),
            ("hybrid", "gathering between partitions of several segments, FIFO inside (eNVy section 4.4)"),
        ]),
        preset: Is("hybrid"),
        about: "Cleaning: which segment is copied to the spare one and erased next, and where pages are flushed to.",
        example: "\"hybrid\"",
    },
    Key {
        path: "ftl.clean.partition",
        kinds: &["hybrid"],
        shape: Shape::Count { min: 1, max: 1_000_000 },
        preset: Is("16"),
        about: "Segments of a partition. 1 is locality gathering, all of them FIFO. (eNVy figure 9: 16.)",
        example: "16",
    },
    Key {
        path: "ftl.clean.reserve",
        kinds: &["greedy", "fifo", "cost-benefit", "gathering", "hybrid"],
        shape: Shape::Count { min: 1, max: 1 },
        preset: Is("1"),
        about: "Segments of eNVy that are kept erased, for cleaning into; with `ftl.concurrent`, so many for each of \
                them. (eNVy section 3.4: one.)",
        example: "1",
    },
    Key {
        path: "ftl.clean.smoothing",
        kinds: &["gathering", "hybrid"],
        shape: Shape::Share { max: 0.9999 },
        preset: Nothing("80 %"),
        about: "Weight of the past in what is remembered of a partition: the interval between its cleans, \
                and their cost.",
        example: "\"80 %\"",
    },
    Key {
        path: "ftl.clean.step",
        kinds: &["gathering", "hybrid"],
        shape: Shape::Share { max: 1.0 },
        preset: Nothing("50 %"),
        about: "Pages moved to or from a neighbour at a clean: this share of the free space gained, times \
                the relative excess of frequency x cost over the average.",
        example: "\"50 %\"",
    },
    Key {
        path: "ftl.clean.step_max",
        kinds: &["gathering", "hybrid"],
        shape: Shape::Share { max: 1.0 },
        preset: Nothing("12.5 %"),
        about: "At most this share of a segment moves at a clean.",
        example: "\"12.5 %\"",
    },
    Key {
        path: "ftl.clean.dead_band",
        kinds: &["gathering", "hybrid"],
        shape: Shape::Share { max: 1.0 },
        preset: Nothing("0 %"),
        about: "Relative excess below which nothing moves.",
        example: "\"5 %\"",
    },
    Key {
        path: "ftl.clean.exchange",
        kinds: &["gathering", "hybrid"],
        shape: Shape::Share { max: 1.0 },
        preset: Nothing("0 %"),
        about: "Share of a segment that every clean exchanges with each neighbour whatever frequency and \
                cost say, so that gathering begins where all partitions are alike.",
        example: "\"0.1 %\"",
    },
    Key {
        path: "ftl.clean.sorted",
        kinds: &["gathering", "hybrid"],
        shape: Shape::Text,
        preset: Is("no"),
        about: "The locality of the writes, where it is known: the free space starts divided as gathering would \
                divide it in the end, which takes it thousands of overwrites of the array to find out. 10/90: the \
                first 10 % of the data get 90 % of the writes.",
        example: "\"10/90\"",
    },
    Key {
        path: "ftl.clean.d",
        kinds: &["d-choices"],
        shape: Shape::Count { min: 1, max: 1_000_000 },
        preset: Is("10"),
        about: "Blocks drawn at random; with 10 the result is close to greedy.",
        example: "10",
    },
    Key {
        path: "ftl.clean.window",
        kinds: &["windowed-greedy"],
        shape: Shape::Count { min: 1, max: 4_000_000_000 },
        preset: Is("64"),
        about: "Blocks looked at, the first filled first.",
        example: "64",
    },
    Key {
        path: "ftl.wear.kind",
        kinds: &["page", "block", "bast", "fast", "hftl"],
        shape: Shape::OneOf(&[
            ("none", "erased blocks are used in any order"),
            (
                "dynamic",
                "host data goes to the erased block with the fewest erases, relocated data to the most worn",
            ),
            ("static", "as dynamic, and blocks that hardly change are moved when wear drifts apart"),
        ]),
        preset: Is("dynamic"),
        about: "Wear levelling: how erases are spread over the blocks.",
        example: "\"static\"",
    },
    Key {
        path: "ftl.wear.kind",
        kinds: &["envy"],
        shape: Shape::OneOf(&[
            ("none", "segments wear as they are cleaned"),
            ("swap-extremes", "the most and the least worn segment change their data when they drift apart"),
        ]),
        preset: Is("swap-extremes"),
        about: "Wear levelling: how erases are spread over the segments.",
        example: "\"swap-extremes\"",
    },
    Key {
        path: "ftl.wear.threshold",
        kinds: &["static"],
        shape: Shape::Count { min: 1, max: 4_000_000_000 },
        preset: Is("100"),
        about: "When the erase counts of a die differ by more than this, its least worn full block is moved. \
                (eNVy section 4.3: 100.)",
        example: "100",
    },
    Key {
        path: "ftl.wear.threshold",
        kinds: &["swap-extremes"],
        shape: Shape::Count { min: 1, max: 4_000_000_000 },
        preset: Is("100"),
        about: "When the erase counts of segments differ by more than this, the extremes are swapped. (eNVy section \
                4.3: 100.)",
        example: "100",
    },
    Key {
        path: "power.on_cut",
        kinds: &[],
        shape: Shape::OneOf(&[
            ("keep-buffer", "the write buffer survives; its memory must have a battery or capacitor"),
            ("lose-buffer", "what was not flushed is lost, even if the memory could have kept it"),
        ]),
        preset: Nothing("keep-buffer if its memory has a battery or capacitor, lose-buffer otherwise"),
        about: "What a power cut does to the write buffer.",
        example: "\"lose-buffer\"",
    },
];
