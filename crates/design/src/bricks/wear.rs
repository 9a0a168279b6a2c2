//! Wear levelling: `[ftl.wear]`.

use super::memories::BLOCK_DEVICES;
use crate::context::Context;
use crate::key::Preset::Is;
use crate::key::{Key, key};
use crate::toml_reader::datum::Shape;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.wear.kind",
        BLOCK_DEVICES,
        Shape::OneOf(&[
            ("none", "erased blocks are used in any order"),
            (
                "dynamic",
                "host data goes to the erased block with the fewest erases, relocated data to the most \
                 worn",
            ),
            (
                "static",
                "as dynamic; in addition, cold data is moved to worn blocks when erase counts diverge",
            ),
        ]),
        Is("dynamic"),
        "\"static\"",
    )
    .about("Wear levelling: how erases are spread over the blocks."),
    key(
        "ftl.wear.kind",
        &["envy"],
        Shape::OneOf(&[
            ("none", "no wear levelling"),
            (
                "swap-extremes",
                "the most and the least worn segment swap their data when erase counts diverge",
            ),
        ]),
        Is("swap-extremes"),
        "\"swap-extremes\"",
    )
    .about("Wear levelling: how erases are spread over the segments."),
    key("ftl.wear.threshold", &["static"], Shape::Count { min: 1, max: 4_000_000_000 }, Is("100"), "100")
        .about(
            "When the erase counts of a die differ by more than this, the data of its least worn full \
             block is moved to a worn one. (eNVy section 4.3: 100.)",
        ),
    key(
        "ftl.wear.threshold",
        &["swap-extremes"],
        Shape::Count { min: 1, max: 4_000_000_000 },
        Is("100"),
        "100",
    )
    .about(
        "When the erase counts of segments differ by more than this, the extremes are swapped. \
         (eNVy section 4.3: 100.)",
    ),
];

/// Whether a block device levels dynamically, and the threshold of static levelling.
pub fn read(context: &mut Context, ftl: &str) -> Option<(bool, Option<u32>)> {
    let meanings = [("none", (false, false)), ("dynamic", (true, false)), ("static", (true, true))];
    let (kind, (dynamic, moves)) = context.named_choice("ftl.wear.kind", ftl, &meanings)?;
    let threshold = if moves { Some(context.count("ftl.wear.threshold", kind)?) } else { None };
    Some((dynamic, threshold))
}

/// The threshold of swapping segments; `Some(None)`: no wear levelling.
pub fn read_swapping(context: &mut Context, ftl: &str) -> Option<Option<u32>> {
    match context.named_choice("ftl.wear.kind", ftl, &[("none", false), ("swap-extremes", true)])? {
        (_, false) => Some(None),
        (kind, true) => Some(Some(context.count("ftl.wear.threshold", kind)?)),
    }
}
