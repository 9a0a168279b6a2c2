//! Wear: how often blocks were erased, as histograms and as maps of block by die.

use super::labels::{Labelled, doubted, notes, or_dash};
use crate::page::{Axis, Heat, Histogram, Page, Table, details};
use nvlab_run::number;
use nvlab_run::result::{FlashResult, RunResult};
use toml::de::{DeTable, DeValue};

/// Maximum bars of a histogram; beyond that several erase counts share one.
const BARS_MAX: u32 = 60;

/// Dies of the array of a run, from its resolved design; 1 if that does not say.
pub(super) fn dies(run: &RunResult) -> usize {
    let read = || -> Option<usize> {
        let root = DeTable::parse(&run.design.resolved_toml).ok()?;
        let array = root.get_ref().get("array")?.get_ref().as_table()?;
        let whole = |key: &str| match array.get(key).map(|value| value.get_ref()) {
            Some(DeValue::Integer(integer)) => integer.as_str().parse::<usize>().ok(),
            _ => None,
        };
        Some(whole("channels")? * whole("ways").unwrap_or(1))
    };
    let dies = read().unwrap_or(1).max(1);
    // Blocks are listed die by die: the number of dies must divide theirs.
    let listed = run.flash.as_ref().map_or(0, |flash| flash.cycles.len());
    if listed.is_multiple_of(dies) { dies } else { 1 }
}

/// A run of a device with flash, and what the flash did.
type Flash<'a> = (&'a Labelled<'a>, &'a FlashResult);

/// Histograms, maps and tables; nothing without flash.
pub(super) fn section(page: &mut Page, runs: &[Labelled<'_>]) {
    let runs: Vec<Flash<'_>> = runs.iter().filter_map(|run| Some((run, run.run.flash.as_ref()?))).collect();
    if runs.is_empty() {
        return;
    }
    let flashes = || runs.iter().map(|(_, flash)| flash);
    let most = flashes().map(|flash| flash.cycles_max).max().unwrap_or(0);
    let step = (most + 1).div_ceil(BARS_MAX).max(1);
    let binned: Vec<Vec<u64>> = runs.iter().map(|(_, flash)| bars(flash, most, step)).collect();
    let high = binned.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
    let listed = || flashes().filter(|flash| !flash.cycles.is_empty());
    let range = [
        listed().map(|flash| flash.cycles_min).min().unwrap_or(0),
        listed().map(|flash| flash.cycles_max).max().unwrap_or(0),
    ];
    let mut html = String::from("<div class=\"plots\">\n");
    for ((labelled, flash), bars) in runs.iter().zip(&binned) {
        html += &histogram((labelled, flash), bars, step, high);
        let map = Heat {
            title: &format!("{}: erase count of each block", labelled.label),
            row: "die",
            column: "block",
            unit: "erases",
            values: &flash.cycles,
            rows: dies(labelled.run),
            range,
        };
        html += &map.html();
    }
    html += "</div>\n";
    html += &details("Tables", &(figures(&runs) + &by_die(&runs)));
    let about = "Erase counts of all blocks since new, preconditioning included. The plots of all runs use the same scales.";
    page.section("wear", "Wear", about, &html);
}

/// How many blocks were erased how often; `step` counts share a bar.
fn bars(flash: &FlashResult, most: u32, step: u32) -> Vec<u64> {
    let mut bars = vec![0u64; (most / step) as usize + 1];
    for (cycles, blocks) in &flash.cycles_histogram {
        bars[(cycles / step).min(most / step) as usize] += *blocks as u64;
    }
    bars
}

/// All histograms have the same axes, so that they can be compared.
fn histogram((labelled, flash): Flash<'_>, bars: &[u64], step: u32, high: f64) -> String {
    let mean = flash.cycles_mean;
    let bar = |(index, blocks): (usize, &u64)| {
        let from = index as u32 * step;
        let range = if step == 1 { from.to_string() } else { format!("{from} to {}", from + step - 1) };
        let title = format!("{range} erases: {}", number::things(*blocks, "block"));
        // The bar of a count is around its place on the axis.
        (from as f64 - 0.5, (from + step) as f64 - 0.5, *blocks as f64, title)
    };
    let end = (bars.len() as u32 * step) as f64 - 0.5;
    Histogram {
        title: &labelled.label,
        x: Axis::linear("erase count of a block").including(0.0).including(end),
        y: Axis::linear("blocks").including(high),
        bars: bars.iter().enumerate().filter(|(_, blocks)| **blocks > 0).map(bar).collect(),
        color: labelled.color,
        mark: (mean, format!("mean {}", number::three(mean))),
    }
    .html()
}

fn figures(runs: &[Flash<'_>]) -> String {
    let heads = [
        "design",
        "least",
        "mean",
        "most",
        "deviation",
        "rated",
        "may be written",
        "lifetime",
        "by the most worn block",
        "erases in the run",
    ];
    let mut table = Table::new("Cycles of a block", 1, &heads);
    for (labelled, flash) in runs {
        let lifetime = &labelled.run.lifetime;
        let marked = |shown: number::Shown, metric| doubted(shown.to_string(), metric, labelled.run);
        let years =
            |years: Option<f64>, metric| or_dash(years.map(|years| marked(number::years(years), metric)));
        table.row(&[
            labelled.marked(),
            number::count(flash.cycles_min as u64),
            number::three(flash.cycles_mean),
            number::count(flash.cycles_max as u64),
            number::three(flash.cycles_deviation),
            number::count(lifetime.rated_cycles as u64),
            or_dash(lifetime.host_bytes.map(|bytes| marked(number::bytes_decimal(bytes), "lifetime.bytes"))),
            years(lifetime.years, "lifetime"),
            years(lifetime.years_worst_block, "lifetime.worst"),
            number::count(flash.erases),
        ]);
    }
    table.html() + &notes(runs.iter().map(|(labelled, _)| *labelled), &["lifetime"])
}

/// With more dies than this they are not listed one by one.
const DIES_LISTED: usize = 64;

fn by_die(runs: &[Flash<'_>]) -> String {
    let mut table = Table::new("By die", 1, &["design", "die", "blocks", "least", "mean", "most"]);
    let mut rows = 0;
    for (labelled, flash) in runs {
        let (cycles, dies) = (&flash.cycles, dies(labelled.run));
        if cycles.is_empty() || dies > DIES_LISTED {
            continue;
        }
        for (die, blocks) in cycles.chunks(cycles.len() / dies).enumerate() {
            let mean = blocks.iter().map(|c| *c as f64).sum::<f64>() / blocks.len() as f64;
            let least = blocks.iter().min().copied().unwrap_or(0);
            let most = blocks.iter().max().copied().unwrap_or(0);
            table.row(&[
                labelled.marked(),
                die.to_string(),
                number::count(blocks.len() as u64),
                number::count(least as u64),
                number::three(mean),
                number::count(most as u64),
            ]);
            rows += 1;
        }
    }
    if rows == 0 { String::new() } else { table.html() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_run::sample;

    #[test]
    fn dies_come_from_the_design_if_they_fit() {
        let mut run = sample::run("ssd-tlc", 1);
        assert_eq!(dies(&run), 4);
        run.flash.as_mut().unwrap().cycles.pop();
        assert_eq!(dies(&run), 1);
        run.design.resolved_toml = "broken [".to_string();
        assert_eq!(dies(&run), 1);
    }
}
