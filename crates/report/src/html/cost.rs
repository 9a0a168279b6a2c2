//! Cost of the media, in total, per request and per byte written.

use super::labels::{Labelled, doubted, notes, or_dash};
use crate::page::{Page, Table, escape};
use nvlab_run::result::PricePart;
use nvlab_run::{metric::metric, number};

/// The table of costs.
pub(super) fn section(page: &mut Page, runs: &[Labelled<'_>]) {
    let heads = [
        "design",
        "media",
        "USD",
        "USD/GiB",
        "USD per 1000 IOPS",
        "endurance (TBW)",
        "USD per TB written",
        "drive writes per day, 5 years",
    ];
    let mut table = Table::new("", 2, &heads);
    for labelled in runs {
        let run = labelled.run;
        let marked = |shown| doubted(shown, "lifetime.bytes", run);
        let part = |PricePart { name, bytes, usd }: &PricePart| {
            let usd = usd.map_or("no price".to_string(), |usd| number::usd(usd).to_string());
            format!("<span class=\"keep\">{} {}: {usd}</span>", escape(name), number::bytes(*bytes as f64))
        };
        let parts: Vec<String> = run.price.parts.iter().map(part).collect();
        let total = run.price.total_usd;
        let written = run.lifetime.host_bytes;
        let each =
            total.zip(written).filter(|(_, bytes)| *bytes > 0.0).map(|(usd, bytes)| usd / (bytes / 1e12));
        table.row(&[
            labelled.marked(),
            parts.join("<br>"),
            or_dash(total.map(number::three)),
            or_dash(run.price.usd_per_gib.map(number::three)),
            or_dash(metric("price.iops", run).map(|usd| number::three(usd * 1000.0))),
            or_dash(written.map(|bytes| marked(number::bytes_decimal(bytes).to_string()))),
            or_dash(each.map(|usd| marked(number::three(usd)))),
            or_dash(run.lifetime.drive_writes_per_day.map(|count| marked(number::three(count)))),
        ]);
    }
    let about = "Media only: controller, board and margin are not included.";
    page.section("cost", "Cost", about, &(table.html() + &notes(runs.iter(), &["lifetime.bytes"])));
}
