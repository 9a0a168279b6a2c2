//! Blocks of the data array in SLC mode: what they are like, by another medium; and the cache that a page map has in them.

use super::super::context::Context;
use super::super::ftl::{PageCache, SlcBlocks};
use super::super::part::{Flash, Part};
use super::{Media, named};
use crate::toml_reader::datum::Datum;
use nvlab_controller::page_map::{CacheFull, CacheTakes, SlcCache, Streams};
use nvlab_medium::flash::SlcMode;
use nvlab_units::quantity::display_bytes;
use nvlab_units::{Geometry, Span};

/// The flash that `key` names.
pub fn flash(context: &mut Context, media: &Media, key: &str, kind: &str) -> Option<(String, Flash)> {
    let (name, medium) = named(context, media, key, kind)?;
    match &medium.part {
        Part::Nand(flash) => Some((name, flash.clone())),
        other => {
            let problem = format!("`{key}`: `{name}` is of kind \"{}\"", other.kind());
            context.wrong(key, problem, "it must be a medium of kind \"nand\"");
            None
        }
    }
}

/// What blocks of an array are like in SLC mode, if `key` names a medium that says so. `chips` of it work in lockstep:
/// gang times planes.
pub fn blocks(
    context: &mut Context,
    key: &str,
    (name, flash): &(String, Flash),
    data: &Geometry,
    chips: u32,
) -> Option<SlcBlocks> {
    let page = flash.page_bytes * chips as u64 * flash.one_shot as u64;
    let units_per_page = page / data.unit_bytes as u64;
    if !page.is_multiple_of(data.unit_bytes as u64) || units_per_page > data.units_per_page as u64 {
        let problem = format!("`{key}`: pages of `{name}` make {} of the array", display_bytes(page));
        let help = format!(
            "a page of the data array has {}: with one bit per cell it has no more, and a whole number of units of {}",
            display_bytes(data.page_bytes()),
            display_bytes(data.unit_bytes as u64)
        );
        context.wrong(key, problem, help);
        return None;
    }
    let pages_per_block = flash.pages_per_block / flash.one_shot;
    if pages_per_block > data.pages_per_block {
        let problem = format!("`{key}`: blocks of `{name}` have {pages_per_block} pages");
        let help = format!(
            "a block of the data array has {}: with one bit per cell it has no more",
            data.pages_per_block
        );
        context.wrong(key, problem, help);
        return None;
    }
    let mode = SlcMode {
        pages_per_block,
        units_per_page: units_per_page as u32,
        read: flash.read[0],
        program: flash.program,
        erase: flash.erase,
    };
    Some(SlcBlocks { medium: name.clone(), mode, endurance: flash.endurance })
}

/// The keys of `[ftl.cache]` as they stand.
pub struct CacheKeys {
    flash: (String, Flash),
    takes: CacheTakes,
    size_min: f64,
    size_max: f64,
    spared: u32,
    fold_after: Option<Span>,
    when_full: CacheFull,
}

/// Reads `[ftl.cache]` of a page map; `Some(None)`: there is no cache.
pub fn cache_keys(context: &mut Context, media: &Media) -> Option<Option<CacheKeys>> {
    let kind = context.text("ftl.cache.kind", "page")?;
    if kind == "none" {
        return Some(None);
    }
    let flash = flash(context, media, "ftl.cache.in", &kind);
    let size_min = context.share("ftl.cache.size_min", &kind);
    let size_max = context.share("ftl.cache.size_max", &kind);
    let spared = context.count("ftl.cache.spared", &kind);
    let fold_after = context.get("ftl.cache.fold_after", Some(&kind));
    let when_full = context.text("ftl.cache.when_full", &kind);
    Some(Some(CacheKeys {
        flash: flash?,
        takes: if kind == "hot" { CacheTakes::Hot } else { CacheTakes::All },
        size_min: size_min?,
        size_max: size_max?,
        spared: spared?,
        fold_after: match fold_after? {
            Datum::Time(span) => Some(span),
            _ => None,
        },
        when_full: if when_full? == "fold" { CacheFull::FoldOldest } else { CacheFull::WriteDirectly },
    }))
}

/// The cache that the keys describe, over an array; `chips` of its part work in lockstep.
pub fn cache(
    context: &mut Context,
    keys: CacheKeys,
    streams: Streams,
    data_medium: &str,
    data: &Geometry,
    chips: u32,
) -> Option<PageCache> {
    let least = if keys.takes == CacheTakes::Hot { 3 } else { 2 };
    if streams.count() < least {
        let (problem, help) = match keys.takes {
            CacheTakes::Hot => ("hot data has no stream of its own", "streams = \"hot-cold-relocated\""),
            CacheTakes::All => (
                "relocated data has no stream of its own",
                "streams = \"host-and-relocated\" or \"hot-cold-relocated\"",
            ),
        };
        context.wrong("ftl.streams", format!("`ftl.streams`: with this `ftl.cache.kind` {problem}"), help);
        return None;
    }
    if keys.flash.0 == data_medium {
        let problem = format!("`ftl.cache.in`: `{data_medium}` is the data medium itself");
        let help =
            "another medium, such as part = \"tlc-2022-slc\": what its blocks are like with one bit per cell";
        context.wrong("ftl.cache.in", problem, help);
        return None;
    }
    // The millionth of a block lets 10 % of 460 be 46 although 0.1 is not exact.
    let blocks_of = |share: f64| (data.blocks_per_die as f64 * share + 1e-6).floor() as u32;
    let (blocks_min, blocks_max) = (blocks_of(keys.size_min), blocks_of(keys.size_max));
    if blocks_max == 0 || blocks_min > blocks_max {
        let problem = format!(
            "`ftl.cache.size_max` is {blocks_max} blocks of a die, `ftl.cache.size_min` {blocks_min}: a die has {}",
            data.blocks_per_die
        );
        context.wrong("ftl.cache.size_max", problem, "at least one block, and not less than `size_min`");
        return None;
    }
    let slc = blocks(context, "ftl.cache.in", &keys.flash, data, chips)?;
    let config = SlcCache {
        blocks_min,
        blocks_max,
        blocks_spared: keys.spared,
        fold_after: keys.fold_after,
        takes: keys.takes,
        when_full: keys.when_full,
    };
    Some(PageCache { slc, config })
}
