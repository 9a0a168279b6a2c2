//! Wear: how often blocks were erased, as a histogram (SVG) and as a map of block by die (canvas, by script).

use super::text::{Labelled, Table, details, escape, or_dash, section as section_of, tick_text, ticks};
use crate::report::number;
use crate::result::RunResult;
use toml::de::{DeTable, DeValue};

/// A histogram's drawing.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 210.0;
/// Its plot: left, right, top, bottom.
const PLOT: [f64; 4] = [64.0, 512.0, 26.0, 168.0];
/// More bars than this are put together.
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
    // Blocks are listed die by die: it must divide them.
    if run.flash.cycles.len().is_multiple_of(dies) { dies } else { 1 }
}

/// Histograms, maps and tables.
pub(super) fn section(runs: &[Labelled<'_>]) -> String {
    let most = runs.iter().map(|labelled| labelled.run.flash.cycles_max).max().unwrap_or(0);
    let step = (most + 1).div_ceil(BARS_MAX).max(1);
    let mut html = String::from("<div class=\"grid2\">\n");
    let binned: Vec<Vec<u64>> = runs.iter().map(|labelled| bars(labelled.run, most, step)).collect();
    let high = binned.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
    for (index, labelled) in runs.iter().enumerate() {
        html += &format!("<figure>{}</figure>\n", histogram(labelled, &binned[index], step, high));
    }
    html += "</div>\n";
    for (index, labelled) in
        runs.iter().enumerate().filter(|(_, labelled)| !labelled.run.flash.cycles.is_empty())
    {
        html += &format!(
            "<figure class=\"script\"><figcaption>{} · erase count of each block, die by die</figcaption>\
             <canvas class=\"heat\" data-run=\"{index}\"></canvas><p class=\"tip\">&nbsp;</p></figure>\n",
            escape(&labelled.label)
        );
    }
    html += &details("Tables", &(figures(runs) + &by_die(runs)));
    let about = "Erase counts of all blocks since new, preconditioning included.";
    section_of("wear", "Wear", about, &html)
}

/// How many blocks were erased how often; `step` counts share a bar.
fn bars(run: &RunResult, most: u32, step: u32) -> Vec<u64> {
    let mut bars = vec![0u64; (most / step) as usize + 1];
    for (cycles, blocks) in &run.flash.cycles_histogram {
        bars[(cycles / step).min(most / step) as usize] += *blocks as u64;
    }
    bars
}

/// All histograms have the same axes, so that they can be compared.
fn histogram(labelled: &Labelled<'_>, bars: &[u64], step: u32, high: f64) -> String {
    let flash = &labelled.run.flash;
    let [left, right, top, bottom] = PLOT;
    let end = (bars.len() as u32 * step) as f64;
    let (across, up) = (ticks(end, 6), ticks(high, 4));
    let highest = up[up.len() - 1];
    let x = |cycles: f64| left + (right - left) * cycles / end;
    let y = |blocks: f64| bottom - (bottom - top) * blocks / highest;
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Histogram of erase counts\">\n\
         <text class=\"label\" x=\"{left}\" y=\"14\">{}</text>\n",
        escape(&labelled.label)
    );
    for value in &up {
        let at = y(*value);
        svg += &format!("<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/>");
        let text = tick_text(*value, up[1]);
        svg += &format!(
            "<text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>\n",
            left - 6.0,
            at + 4.0
        );
    }
    for value in across.iter().filter(|value| **value <= end) {
        let text = tick_text(*value, across[1]);
        svg += &format!(
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>\n",
            x(*value),
            bottom + 17.0
        );
    }
    for (index, blocks) in bars.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
        let from = index as u32 * step;
        let (x0, x1, y0) = (x(from as f64), x((from + step) as f64), y(*blocks as f64));
        let range = if step == 1 { from.to_string() } else { format!("{from} to {}", from + step - 1) };
        svg += &format!(
            "<rect class=\"bar c{}\" x=\"{:.1}\" y=\"{y0:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
             <title>{range} cycles: {}</title></rect>\n",
            labelled.color,
            x0 + 0.5,
            (x1 - x0 - 1.0).max(0.8),
            bottom - y0,
            number::things(*blocks, "block")
        );
    }
    let mean = x(flash.cycles_mean + 0.5);
    svg += &format!("<path class=\"mean\" d=\"M{mean:.1} {top}V{bottom}\"><title>mean</title></path>");
    let text = format!("mean {}", number::three(flash.cycles_mean));
    svg += &format!("<text class=\"tick end\" x=\"{right}\" y=\"14\">{text}</text>\n");
    let (middle, low) = ((left + right) / 2.0, HEIGHT - 6.0);
    svg += &format!("<text class=\"axis\" x=\"{middle}\" y=\"{low}\">erase count of a block</text>\n");
    svg += &format!(
        "<text class=\"axis\" transform=\"translate(11 {}) rotate(-90)\">blocks</text>\n",
        (top + bottom) / 2.0
    );
    svg + "</svg>"
}

fn figures(runs: &[Labelled<'_>]) -> String {
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
    for labelled in runs {
        let (flash, lifetime) = (&labelled.run.flash, &labelled.run.lifetime);
        let years = |years: Option<f64>| or_dash(years.map(|years| number::years(years).to_string()));
        table.row(&[
            labelled.marked(),
            number::count(flash.cycles_min as u64),
            number::three(flash.cycles_mean),
            number::count(flash.cycles_max as u64),
            number::three(flash.cycles_deviation),
            number::count(lifetime.rated_cycles as u64),
            or_dash(lifetime.host_bytes.map(|bytes| number::bytes_decimal(bytes).to_string())),
            years(lifetime.years),
            years(lifetime.years_worst_block),
            number::count(flash.erases),
        ]);
    }
    table.html()
}

/// More dies than this are not listed one by one.
const DIES_LISTED: usize = 64;

fn by_die(runs: &[Labelled<'_>]) -> String {
    let mut table = Table::new("By die", 1, &["design", "die", "blocks", "least", "mean", "most"]);
    let mut rows = 0;
    for labelled in runs {
        let (cycles, dies) = (&labelled.run.flash.cycles, dies(labelled.run));
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
    use crate::report::sample;

    #[test]
    fn dies_come_from_the_design_if_they_fit() {
        let mut run = sample::run("ssd-tlc", 1);
        assert_eq!(dies(&run), 4);
        run.flash.cycles.pop();
        assert_eq!(dies(&run), 1);
        run.design.resolved_toml = "broken [".to_string();
        assert_eq!(dies(&run), 1);
    }
}
