//! Cleaning: `[ftl.clean]`, which names the controllers' own policies.

use crate::context::Context;
use crate::key::Preset::{Is, Nothing};
use crate::key::{Key, key};
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_controller::envy;
use nvlab_controller::page_map;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.clean.kind",
        &["page", "hftl"],
        Shape::OneOf(&[
            ("greedy", "the block with the fewest live units"),
            ("fifo", "the block that was filled first"),
            (
                "cost-benefit",
                "greatest (1 - u) x age / (1 + u), u the live share (Rosenblum and Ousterhout, LFS)",
            ),
            ("d-choices", "the block with the fewest live units of `d` drawn at random (Van Houdt, SIGMETRICS 2013)"),
            ("windowed-greedy", "the block with the fewest live units of the `window` filled first (Hu et al., SYSTOR 2009)"),
        ]),
        Is("greedy"),
        "\"greedy\"",
    )
    .about("Cleaning (garbage collection): how the next block to clean is selected."),
    key(
        "ftl.clean.kind",
        &["envy"],
        Shape::OneOf(&[
            ("greedy", "the segment with the fewest live pages"),
            ("fifo", "the segment that was cleaned first"),
            (
                "cost-benefit",
                "greatest (1 - u) x age / (1 + u), u the live share (Rosenblum and Ousterhout, LFS)",
            ),
            ("gathering", "locality gathering: pages are flushed to the segment they came from (eNVy section 4.3)"),
            ("hybrid", "gathering between partitions of several segments, FIFO inside (eNVy section 4.4)"),
        ]),
        Is("hybrid"),
        "\"hybrid\"",
    )
    .about(
        "Cleaning: how the next segment to copy to the spare one and erase is selected, and which segment a page is \
         flushed to.",
    ),
    key("ftl.clean.partition", &["hybrid"], Shape::Count { min: 1, max: 1_000_000 }, Is("16"), "16")
        .about("Segments per partition. 1 is locality gathering; all segments is FIFO. (eNVy figure 9: 16.)"),
    key(
        "ftl.clean.reserve",
        &["greedy", "fifo", "cost-benefit", "gathering", "hybrid"],
        Shape::Count { min: 1, max: 1 },
        Is("1"),
        "1",
    )
    .about(
        "Segments that eNVy keeps erased to clean into; with `ftl.concurrent`, per concurrent operation. (eNVy section \
         3.4: one.)",
    ),
    key(
        "ftl.clean.smoothing",
        &["gathering", "hybrid"],
        Shape::Share { max: 0.9999 },
        Nothing("80 %"),
        "\"80 %\"",
    )
    .about(
        "Weight of the past in a partition's moving averages: the interval between its cleans, \
         and their cost.",
    ),
    key("ftl.clean.step", &["gathering", "hybrid"], Shape::Share { max: 1.0 }, Nothing("50 %"), "\"50 %\"")
        .about(
        "Pages moved to or from a neighbour at a clean: this share of the free space gained, times \
         the relative excess of frequency x cost over the average.",
        ),
    key(
        "ftl.clean.step_max",
        &["gathering", "hybrid"],
        Shape::Share { max: 1.0 },
        Nothing("12.5 %"),
        "\"12.5 %\"",
    )
    .about("Upper limit of the share of a segment that moves at a clean."),
    key(
        "ftl.clean.dead_band",
        &["gathering", "hybrid"],
        Shape::Share { max: 1.0 },
        Nothing("0 %"),
        "\"5 %\"",
    )
    .about("Relative excess below which no pages move."),
    key(
        "ftl.clean.exchange",
        &["gathering", "hybrid"],
        Shape::Share { max: 1.0 },
        Nothing("0 %"),
        "\"0.1 %\"",
    )
    .about(
        "Share of a segment that every clean exchanges with each neighbour regardless of frequency \
         and cost, so that gathering starts even if all partitions are alike.",
    ),
    key("ftl.clean.sorted", &["gathering", "hybrid"], Shape::Text, Is("no"), "\"10/90\"").about(
        "Locality of the writes, if known: the free space is initially distributed as gathering would distribute it after \
         thousands of overwrites of the array. 10/90: the first 10 % of the data receive 90 % of the writes.",
    ),
    key("ftl.clean.d", &["d-choices"], Shape::Count { min: 1, max: 1_000_000 }, Is("10"), "10")
        .about("Number of blocks drawn at random; with 10 the result is close to greedy."),
    key(
        "ftl.clean.window",
        &["windowed-greedy"],
        Shape::Count { min: 1, max: 4_000_000_000 },
        Nothing("a quarter of the blocks of a die"),
        "64",
    )
    .about(
        "Number of candidate blocks per die, the first filled ones. 1 is FIFO, all blocks is greedy. (A superblock counts as one.)",
    ),
];

/// Default share of the blocks of a die that windowed-greedy considers. With this many, results differ clearly from
/// FIFO under skewed writes, for any number of blocks per die.
const WINDOW_SHARE: u32 = 4;

/// Which block a page map of kind `ftl` cleans next, of `blocks` of a die.
pub fn of_blocks(context: &mut Context, ftl: &str, blocks: u32) -> Option<page_map::Cleaning> {
    use page_map::Cleaning;
    // Their parameters are read below.
    let meanings = [
        ("greedy", Cleaning::Greedy),
        ("fifo", Cleaning::Fifo),
        ("cost-benefit", Cleaning::CostBenefit),
        ("d-choices", Cleaning::DChoices { d: 0 }),
        ("windowed-greedy", Cleaning::WindowedGreedy { window: 0 }),
    ];
    let (kind, cleaning) = context.named_choice("ftl.clean.kind", ftl, &meanings)?;
    Some(match cleaning {
        Cleaning::Greedy | Cleaning::Fifo | Cleaning::CostBenefit => cleaning,
        Cleaning::DChoices { .. } => Cleaning::DChoices { d: context.count("ftl.clean.d", kind)? },
        Cleaning::WindowedGreedy { .. } => {
            Cleaning::WindowedGreedy { window: window(context, kind, blocks)? }
        }
    })
}

/// Blocks that windowed-greedy considers, of so many of a die.
fn window(context: &mut Context, kind: &str, blocks: u32) -> Option<u32> {
    if context.has("ftl.clean.window") {
        return context.count("ftl.clean.window", kind);
    }
    let window = (blocks / WINDOW_SHARE).max(1);
    context.derive("ftl.clean.window", Datum::Count(window as u64), "a quarter of the blocks of a die");
    Some(window)
}

/// Which segment eNVy cleans next, and where pages are flushed to.
pub fn of_segments(context: &mut Context, ftl: &str) -> Option<envy::SegmentCleaning> {
    use envy::{Gathering, SegmentCleaning};
    // The parameters of gathering are read below; alone it has partitions of one segment.
    let meanings = [
        ("greedy", SegmentCleaning::Greedy),
        ("fifo", SegmentCleaning::Fifo),
        ("cost-benefit", SegmentCleaning::CostBenefit),
        ("gathering", SegmentCleaning::gathering(1)),
        ("hybrid", SegmentCleaning::gathering(0)),
    ];
    let (kind, cleaning) = context.named_choice("ftl.clean.kind", ftl, &meanings)?;
    context.count("ftl.clean.reserve", kind)?;
    let SegmentCleaning::Gathering(mut gathering) = cleaning else { return Some(cleaning) };
    if gathering.partition_segments == 0 {
        gathering = Gathering::new(context.count("ftl.clean.partition", kind)?);
    }
    for (key, value) in [
        ("smoothing", &mut gathering.smoothing),
        ("step", &mut gathering.step),
        ("step_max", &mut gathering.step_max),
        ("dead_band", &mut gathering.dead_band),
        ("exchange", &mut gathering.exchange),
    ] {
        let path = format!("ftl.clean.{key}");
        match context.has(&path) {
            true => *value = context.share(&path, kind)?,
            false => context.derive(&path, Datum::Share(*value), "the cleaner's own default"),
        }
    }
    gathering.sorted = sorted(context, kind)?;
    Some(SegmentCleaning::Gathering(gathering))
}

/// `Some(None)`: nothing is known about the writes in advance.
fn sorted(context: &mut Context, kind: &str) -> Option<Option<envy::Locality>> {
    let text = context.text("ftl.clean.sorted", kind)?;
    if text == "no" {
        return Some(None);
    }
    let share =
        |text: &str| text.trim().parse().ok().filter(|&percent: &f64| percent > 0.0 && percent < 100.0);
    let shares = text.split_once('/').and_then(|(data, writes)| Some((share(data)?, share(writes)?)));
    if let Some((data, writes)) = shares {
        return Some(Some(envy::Locality { data: data / 100.0, writes: writes / 100.0 }));
    }
    let help = "\"10/90\": the first 10 % of the data receive 90 % of the writes; or \"no\"";
    context.wrong("ftl.clean.sorted", format!("`ftl.clean.sorted`: `{text}` is not a locality"), help);
    None
}
