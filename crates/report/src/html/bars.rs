//! Stacked bars: where writes come from, where die time goes.

use super::labels::Labelled;
use crate::page::{Axis, Bars, MUTED, Page, Table, details};
use nvlab_run::number::two;
use nvlab_run::result::WriteAmplification;
use nvlab_run::{metric, number};

/// The colours of the parts of write amplification, in their order. Merges, folding, moves between partitions and
/// trims occur in different controllers.
const WRITES: [usize; 10] = [0, 4, 6, 6, 6, 2, 3, 5, 6, 1];

/// Where writes come from.
pub(super) fn writes(page: &mut Page, runs: &[Labelled<'_>]) {
    let heading = "Where writes come from";
    let axis = Axis::linear("units programmed per unit written by the host").text(two).including(1.0);
    let colours: Vec<_> = WriteAmplification::CAUSES.into_iter().zip(WRITES).collect();
    let mut bars = Bars::new("", axis, &colours);
    let wrote = |run: &&Labelled<'_>| run.run.write_amplification.total > 0.0;
    for labelled in runs.iter().filter(wrote) {
        let wa = &labelled.run.write_amplification;
        bars.row(&labelled.label, &wa.parts(), &two(wa.total));
    }
    if !runs.iter().any(|run| wrote(&run)) {
        return page.section("writes", heading, "The host wrote nothing.", "");
    }
    page.section("writes", heading, "", &(bars.html() + &details("Table", &writes_table(runs))));
}

fn writes_table(runs: &[Labelled<'_>]) -> String {
    let has = |part: usize| part == 0 || runs.iter().any(|l| l.run.write_amplification.parts()[part] > 0.0);
    let shown: Vec<usize> = (0..WRITES.len()).filter(|part| has(*part)).collect();
    let mut heads = vec!["design", "write amplification"];
    heads.extend(shown.iter().map(|part| WriteAmplification::CAUSES[*part]));
    heads.extend(["unaligned (extra)", "blocks cleaned", "live share"]);
    let mut table = Table::new("Units programmed per unit written by the host", 1, &heads);
    for labelled in runs {
        let wa = &labelled.run.write_amplification;
        let mut cells = vec![labelled.marked()];
        cells.push(two(wa.total));
        cells.extend(shown.iter().map(|part| two(wa.parts()[*part])));
        cells.push(two(wa.unaligned));
        cells.push(number::count(wa.cleaned_blocks));
        cells.push(number::share(wa.cleaned_live_share).to_string());
        table.row(&cells);
    }
    table.html()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Where die time goes.
pub(super) fn busy(page: &mut Page, runs: &[Labelled<'_>]) {
    let parts = [("read", 5), ("program", 4), ("erase", 3), ("idle", MUTED)];
    let axis = Axis::linear("share of the time of all dies").text(percent).including(1.0);
    let mut bars = Bars::new("", axis, &parts);
    let heads = ["design", "read", "program", "erase", "idle", "channels busy"];
    let mut table = Table::new("Share of time", 1, &heads);
    for labelled in runs {
        let Some(flash) = &labelled.run.flash else { continue };
        let idle = (1.0 - metric::busy_flash(flash)).max(0.0);
        let shares = [flash.busy_read, flash.busy_program, flash.busy_erase, idle, flash.busy_channel];
        bars.row(&labelled.label, &shares[..4], "");
        let mut cells = vec![labelled.marked()];
        cells.extend(shares.map(percent));
        table.row(&cells);
    }
    if runs.iter().all(|labelled| labelled.run.flash.is_none()) {
        return;
    }
    let content = bars.html() + &details("Table, with channels", &table.html());
    page.section("busy", "Where die time goes", "Time spent waiting for a resume counts as idle.", &content);
}
