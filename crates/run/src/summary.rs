//! From counters and histograms to a [`RunResult`].

use super::device::{ArrayInsides, Causes, FlashInsides, Insides};
use super::media::{media, years_of};
use super::meter::{OpTotals, TRANSACTION, Totals, latency};
use crate::result::{
    DesignInfo, FlashResult, LaterLevelling, Lifetime, MediumResult, OpResult, PramResult, Precondition,
    Price, PricePart, RESULTS_VERSION, RunResult, SCHEMA, SECONDS_PER_YEAR, WriteAmplification, caveat,
    key_of,
};
use crate::run_plan::RunPlan;
use nvlab_design::{Design, Ftl, Part, PriceItem};
use nvlab_medium::flash::Cells;
use nvlab_units::{BlockId, Span, Total};
use nvlab_workload::Op;
use std::ops::Range;

/// With more blocks than this the result contains only their histogram.
const CYCLES_KEPT: usize = 65_536;

fn price(design: &Design) -> Price {
    let price = design.price();
    let part = |item: PriceItem| PricePart { name: item.medium, bytes: item.bytes, usd: item.usd };
    Price {
        total_usd: price.total_usd(),
        usd_per_gib: price.usd_per_gib(),
        parts: price.items.into_iter().map(part).collect(),
    }
}

/// What all RAM of a design takes while the power is off, mA.
fn retention_ma(design: &Design) -> Option<f64> {
    let ram = design.media.values().filter_map(|medium| medium.part.ram());
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let each = ram.map(|ram| Some(gib(ram.cells.size_bytes) * ram.retention_ua_per_gib? as f64 / 1000.0));
    each.sum::<Option<f64>>().filter(|_| design.media.values().any(|medium| medium.part.ram().is_some()))
}

/// Everything but the series and the wall time: what a device did in a run of `span`, of which it was busy with requests
/// for `busy_span`.
pub fn summarize(
    design: &Design,
    plan: &RunPlan,
    insides: &Insides<'_>,
    precondition: Precondition,
    totals: &Totals,
    span: Span,
    busy_span: Span,
) -> RunResult {
    let [seconds, busy_s] = [span, busy_span].map(|span| span.seconds().max(1e-12));
    let op = |op: Op| op_result(&totals[op as usize], seconds);
    let host_bytes = insides.host_bytes.unwrap_or(totals[Op::Write as usize].bytes);
    let media = media(design, insides, seconds);
    let precondition = Precondition { about: precondition.line(design.held_bytes()), ..precondition };
    RunResult {
        schema: SCHEMA.into(),
        key: key(design, plan),
        nvlab: env!("CARGO_PKG_VERSION").into(),
        results_version: RESULTS_VERSION,
        design: design_info(design, plan),
        workload: plan.workload_text.clone(),
        workload_about: plan.workload_about.clone(),
        seed: plan.seed,
        until: plan.until.clone(),
        precondition,
        requests_asked: plan.requests_asked,
        requests_served: served(totals),
        simulated_s: span.seconds(),
        wall_s: 0.0,
        read: op(Op::Read),
        write: op(Op::Write),
        trim: op(Op::Trim),
        flush: op(Op::Flush),
        commit: OpResult::default(),
        transaction: op_result(&totals[TRANSACTION], seconds),
        write_amplification: write_amplification(insides),
        flash: insides.flash.as_ref().map(|flash| flash_result(flash, insides, busy_s)),
        lifetime: Lifetime {
            caveat: years_of(&media).and_then(|_| caveat(&media)).or_else(|| caveat_of_lines(insides)),
            ..lifetime(insides, &media, design, host_bytes, seconds)
        },
        closed_loop: false,
        media,
        price: price(design),
        retention_ma: retention_ma(design),
        controller_memory_bytes: insides.memory_bytes,
        transfers: insides.transfers,
        arrivals: None,
        unwritten_read_share: insides.unwritten_read_units as f64 / insides.read_units.max(1) as f64,
        queue_wait_s: 0.0,
        buffer_wait_s: insides.buffer_wait.seconds(),
        merge_wait_s: insides.merge_wait.seconds(),
        memory: insides.memory,
        cache: insides.cache,
        lines: insides.lines,
        map: insides.map,
        client_bytes: None,
        program: None,
        pram: insides.pram.clone(),
        part_of_pass: None,
        mount: None,
        durable: None,
        software: None,
        tenants: Vec::new(),
        precision: Vec::new(),
        series: Vec::new(),
    }
}

fn design_info(design: &Design, plan: &RunPlan) -> DesignInfo {
    DesignInfo {
        name: plan.design_name.clone(),
        about: design.about.clone(),
        cite: design.cite.clone(),
        resolved_toml: design.resolved_toml(),
        capacity_bytes: design.held_bytes(),
        raw_bytes: design.raw_bytes(),
    }
}

/// A hash of everything the numbers of a result depend on, the program included, except the content of the workload's file.
pub fn key(design: &Design, plan: &RunPlan) -> String {
    let limit = &plan.limit;
    let text = format!(
        "{}\n{}\n{}\n{}\n{:?}",
        design.canonical_text(),
        plan.workload_text,
        plan.seed,
        plan.state,
        limit
    );
    key_of(&text)
}

/// The figures of one kind of request in a time of `seconds`.
pub(super) fn op_result(totals: &OpTotals, seconds: f64) -> OpResult {
    OpResult {
        count: totals.count(),
        bytes: totals.bytes,
        per_s: totals.count() as f64 / seconds,
        bytes_per_s: totals.bytes as f64 / seconds,
        latency: latency(&totals.latency),
        histogram_ns: totals.latency.buckets().map(|(bound, count)| (bound.ns(), count)).collect(),
    }
}

/// Requests; transactions where there are any, since loads and stores are parts of them.
fn served(totals: &Totals) -> u64 {
    match totals[TRANSACTION].count() {
        0 => totals.iter().map(OpTotals::count).sum(),
        transactions => transactions,
    }
}

/// Units programmed per unit the host wrote, by cause, when a write buffer `absorbed` some of what it wrote.
pub(super) fn by_cause(causes: &Causes, absorbed_units: u64) -> WriteAmplification {
    let written = causes.host + absorbed_units;
    let per_host = |units: u64| if written == 0 { 0.0 } else { units as f64 / written as f64 };
    WriteAmplification {
        total: per_host(causes.total()),
        host: per_host(causes.host),
        absorbed: per_host(absorbed_units),
        clean: per_host(causes.clean),
        merge: per_host(causes.merge),
        fold: per_host(causes.fold),
        transfer: per_host(causes.transfer),
        wear: per_host(causes.wear),
        retire: per_host(causes.retire),
        map: per_host(causes.map),
        trim: per_host(causes.trim),
        padding: per_host(causes.padding),
        ..WriteAmplification::default()
    }
}

fn write_amplification(insides: &Insides) -> WriteAmplification {
    WriteAmplification {
        unaligned: insides.unaligned,
        cleaned_blocks: insides.cleaned_blocks,
        cleaned_live_share: match insides.cleaned_blocks {
            0 => 0.0,
            cleans => {
                let block = insides.flash.as_ref().map_or(1, |flash| flash.data.geometry.units_per_block());
                insides.cleaned_live_units as f64 / (cleans as f64 * block as f64)
            }
        },
        ..by_cause(&insides.causes, insides.absorbed_units)
    }
}

fn flash_result(flash: &FlashInsides<'_>, insides: &Insides<'_>, seconds: f64) -> FlashResult {
    let ArrayInsides { cells, stats, geometry } = &flash.data;
    let log = flash.log.as_ref();
    let dies = geometry.dies() + log.map_or(0, |log| log.geometry.dies());
    let channels = geometry.channels + log.map_or(0, |log| log.geometry.channels);
    let log = log.map(|log| log.stats).unwrap_or_default();
    let share = |data: Total, log: Total, of: u32| (data.seconds() + log.seconds()) / (seconds * of as f64);
    let cycles: Vec<u32> = insides.wearing_of(cells).to_vec();
    let mean = cycles.iter().map(|&n| n as f64).sum::<f64>() / cycles.len() as f64;
    let variance = cycles.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>() / cycles.len() as f64;
    let mut histogram = std::collections::BTreeMap::new();
    for &n in &cycles {
        *histogram.entry(n).or_insert(0u32) += 1;
    }
    FlashResult {
        reads: stats.reads + log.reads,
        programs: stats.programs + log.programs,
        erases: stats.erases + log.erases,
        read_retries: stats.retries + log.retries,
        failures: std::array::from_fn(|kind| stats.failures[kind] + log.failures[kind]),
        retired_blocks: insides.retired_blocks,
        busy_read: share(stats.read_busy, log.read_busy, dies),
        busy_program: share(stats.program_time, log.program_time, dies),
        busy_erase: share(stats.erase_time, log.erase_time, dies),
        busy_channel: share(stats.transfer_time, log.transfer_time, channels),
        cycles_min: cycles.iter().copied().min().unwrap_or(0),
        cycles_mean: mean,
        cycles_max: cycles.iter().copied().max().unwrap_or(0),
        cycles_deviation: variance.sqrt(),
        cycles_histogram: histogram.into_iter().collect(),
        cycles: if cycles.len() <= CYCLES_KEPT { cycles } else { Vec::new() },
    }
}

/// With fewer cycles of the mean block the most worn block says little: one more cycle is over a tenth.
const CYCLES_TOLD: f64 = 10.0;

/// The lifetime at this rate of wear, and the host bytes that can be written until then: of flash, or of the memory written
/// in place if there is no flash. The most worn block is that of the array that is worn out first.
fn lifetime(
    insides: &Insides,
    media: &[MediumResult],
    design: &Design,
    host_bytes: u64,
    seconds: f64,
) -> Lifetime {
    let years = years_of(media);
    let (rated_cycles, worn) = match (&insides.flash, &insides.pram) {
        (Some(flash), _) => (
            flash.data.cells.config.endurance.cycles,
            years.map(|(years, by_log)| {
                let worn = match flash.log.as_ref().filter(|_| by_log) {
                    Some(log) => worn(log.cells, 0..log.cells.erase_counts().len()),
                    None => {
                        let cells = flash.data.cells;
                        worn(cells, insides.wearing.clone().unwrap_or(0..cells.erase_counts().len()))
                    }
                };
                (years, years_of_worst(years, &worn))
            }),
        ),
        (None, Some(pram)) => (
            pram.rated_writes,
            (pram.line_writes_run > 0.0).then(|| {
                let years = pram.rated_writes as f64 * seconds / pram.line_writes_run / SECONDS_PER_YEAR;
                let worst = years * pram.line_writes_mean / pram.line_writes_max as f64;
                // Without levelling the memory ends with its first line.
                let years = if is_told_by_a_line(pram) { worst } else { years };
                (years, Some(worst).filter(|_| pram.line_writes_mean >= CYCLES_TOLD))
            }),
        ),
        (None, None) => {
            (media.first().map_or(0, |hidden| hidden.rated_cycles), years.map(|(years, _)| (years, None)))
        }
    };
    let retention_years = match design.media.get(design.ftl.medium()).map(|medium| &medium.part) {
        Some(Part::Nand(flash) | Part::Nor(flash)) => flash.retention_years,
        _ => None,
    };
    let Some((years, years_worst_block)) = worn else {
        return Lifetime { rated_cycles, retention_years, ..Lifetime::default() };
    };
    let levelling = later_levelling(insides, rated_cycles);
    let years = levelling.map_or(years, |later| years * lasting(&later, insides));
    // Programmed although nothing was written: moved by the device itself.
    let host_bytes = (host_bytes > 0).then(|| years * SECONDS_PER_YEAR * (host_bytes as f64 / seconds));
    Lifetime {
        years: Some(years),
        years_worst_block,
        host_bytes,
        // A log is not a drive: its host sees memory, which is not what is written.
        drive_writes_per_day: host_bytes
            .filter(|_| !matches!(design.ftl, Ftl::Rvm(_)))
            .map(|bytes| bytes / design.held_bytes() as f64 / (5.0 * 365.25)),
        rated_cycles,
        retention_years,
        caveat: None,
        levelling,
    }
}

/// With fewer writes of the most written line chance says which it is: with so many it is a tenth.
const LINE_WRITES_TOLD: u32 = 100;

/// True if nothing spreads the writes over the lines of a memory, and its most written one is known.
fn is_told_by_a_line(pram: &PramResult) -> bool {
    pram.level_bytes == 0 && pram.line_writes_max >= LINE_WRITES_TOLD
}

/// Of memory without wear levelling of which it is not known yet which line is worn out first.
fn counted_as_even(insides: &Insides<'_>) -> Option<String> {
    let pram = insides.pram.as_ref().filter(|_| insides.flash.is_none())?;
    (pram.level_bytes == 0 && pram.line_writes_run > 0.0 && !is_told_by_a_line(pram)).then(|| {
        format!(
            "all lines are assumed to wear evenly, but nothing levels their wear, and the most written one has {} writes, too few \
             to say how much earlier it ends; run longer",
            pram.line_writes_max
        )
    })
}

/// What the lifetime of memory written in place assumes of its lines.
fn caveat_of_lines(insides: &Insides<'_>) -> Option<String> {
    let said: Vec<String> =
        [counted_as_even(insides), counted_by_lines(insides)].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Of memory that is written in place in less than half of a line at a time, where lines are what wear is counted by.
fn counted_by_lines(insides: &Insides) -> Option<String> {
    let pram = insides.pram.as_ref().filter(|_| insides.flash.is_none())?;
    (pram.line_share > 0.0 && pram.line_share < 0.5).then(|| {
        let times = (1.0 / pram.line_share).round();
        format!(
        "wear is counted per line, of which a write programmed 1/{times} on average: if the writes spread evenly over a line, the \
         lifetime is up to {times} times longer"
        )
    })
}

/// When static wear levelling begins, if it has not, and what it changes.
fn later_levelling(insides: &Insides<'_>, rated_cycles: u32) -> Option<LaterLevelling> {
    let causes = &insides.causes;
    let levelling = insides.levelling.filter(|levelling| levelling.cold > 0.0)?;
    let cells = insides.flash.as_ref()?.data.cells.erase_counts();
    if causes.wear > 0 || causes.host == 0 {
        return None;
    }
    let mean = cells.iter().map(|&n| n as f64).sum::<f64>() / cells.len() as f64;
    // Until then only the blocks without cold data are erased.
    let left = levelling.threshold.saturating_sub(levelling.lead) as f64 * (1.0 - levelling.cold);
    let from_life_share = (mean + left) / rated_cycles as f64;
    let write_amplification = by_cause(causes, insides.absorbed_units).total / (1.0 - levelling.share());
    (from_life_share < 1.0).then_some(LaterLevelling { from_life_share, write_amplification })
}

/// The lifetime as a share of what it would be if write amplification stayed as it was in the run.
fn lasting(later: &LaterLevelling, insides: &Insides<'_>) -> f64 {
    let now = by_cause(&insides.causes, insides.absorbed_units).total;
    later.from_life_share + (1.0 - later.from_life_share) * now / later.write_amplification
}

/// How worn blocks are, in erases with all bits.
fn worn(cells: &Cells, blocks: Range<usize>) -> Vec<f64> {
    blocks.map(|block| cells.worn_by(BlockId(block as u32))).collect()
}

/// Converts the years of the mean block to those of the most worn block.
fn years_of_worst(years: f64, worn: &[f64]) -> Option<f64> {
    let mean = worn.iter().sum::<f64>() / worn.len() as f64;
    let most = worn.iter().copied().fold(0.0, f64::max);
    (mean >= CYCLES_TOLD).then(|| years * mean / most)
}
