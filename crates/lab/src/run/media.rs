//! What each kind of flash of a device did: arrays one by one, and the blocks of an array that are used with one bit
//! per cell apart from the others.

use super::device::{Insides, LogInsides};
use super::summary::SECONDS_PER_YEAR;
use crate::design::{Design, Ftl, PriceItem};
use crate::result::MediumResult;
use nvlab_medium::flash::{Cells, FlashStats};

/// Every kind of flash of a run of `seconds`, the data medium first.
pub(super) fn media(design: &Design, insides: &Insides, seconds: f64) -> Vec<MediumResult> {
    let items = design.price().items;
    let blocks = insides.geometry.blocks();
    let mut data = medium(design.ftl.medium(), "data", &items, insides.cells, &insides.flash);
    let slc = slc_mode(design, insides.cells);
    if let Some(slc) = &slc {
        data.reads -= slc.reads;
        data.programs -= slc.programs;
        data.erases -= slc.erases;
        data.read_s -= slc.read_s;
        data.program_s -= slc.program_s;
        data.erase_s -= slc.erase_s;
    }
    data.blocks = blocks;
    data.years = match slc {
        // eNVy counts pages to be erased one day, which is finer than erases.
        None => years(insides.cycles, data.rated_cycles, seconds),
        Some(_) => years(data.erases as f64 / blocks as f64, data.rated_cycles, seconds),
    };
    let mut media = vec![data];
    media.extend(slc.map(|mut slc| {
        // Any block may be used so: the erases are spread over all.
        slc.blocks = blocks;
        slc.years = years(slc.erases as f64 / blocks as f64, slc.rated_cycles, seconds);
        slc
    }));
    if let (Ftl::Blocks(design), Some(LogInsides { cells, flash, geometry })) = (&design.ftl, &insides.log)
        && let Some(own) = &design.own_log
    {
        let mut log = medium(&own.medium, "log", &items, cells, flash);
        log.blocks = geometry.blocks();
        log.years = years(log.erases as f64 / log.blocks as f64, log.rated_cycles, seconds);
        media.push(log);
    }
    media
}

/// Years until the device is worn out: blocks that are used in two ways wear from both; of two arrays the first worn
/// out counts.
pub(super) fn years_of(media: &[MediumResult]) -> Option<f64> {
    let rate = |roles: &[&str]| {
        let of = media.iter().filter(|medium| roles.contains(&medium.role.as_str()));
        of.filter_map(|medium| medium.years).map(|years| 1.0 / years).sum::<f64>()
    };
    let fastest = rate(&["data", "slc"]).max(rate(&["log"]));
    (fastest > 0.0).then(|| 1.0 / fastest)
}

fn medium(name: &str, role: &str, items: &[PriceItem], cells: &Cells, stats: &FlashStats) -> MediumResult {
    let item = items.iter().find(|item| item.medium == name);
    MediumResult {
        name: name.into(),
        role: role.into(),
        bytes: item.map_or(0, |item| item.bytes),
        usd: item.and_then(|item| item.usd),
        reads: stats.reads,
        programs: stats.programs,
        erases: stats.erases,
        read_s: stats.read_time.seconds(),
        program_s: stats.program_time.seconds(),
        erase_s: stats.erase_time.seconds(),
        blocks: 0,
        rated_cycles: cells.config.endurance.cycles,
        years: None,
    }
}

/// The blocks of the data array in SLC mode, if its controller uses some so.
fn slc_mode(design: &Design, cells: &Cells) -> Option<MediumResult> {
    let slc = design.ftl.slc()?;
    let done = cells.slc_operations();
    Some(MediumResult {
        name: slc.medium.clone(),
        role: "slc".into(),
        bytes: 0,
        usd: None,
        reads: done.reads,
        programs: done.programs,
        erases: done.erases,
        read_s: slc.mode.read.seconds() * done.reads as f64,
        program_s: slc.mode.program.seconds() * done.programs as f64,
        erase_s: slc.mode.erase.seconds() * done.erases as f64,
        blocks: 0,
        rated_cycles: slc.endurance,
        years: None,
    })
}

fn years(cycles: f64, rated: u32, seconds: f64) -> Option<f64> {
    (cycles > 0.0).then(|| rated as f64 / (cycles / seconds) / SECONDS_PER_YEAR)
}
