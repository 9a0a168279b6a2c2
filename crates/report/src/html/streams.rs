//! The streams of a workload of several: rates and latency of each.

use super::labels::Labelled;
use crate::human;
use crate::page::{Page, Table, escape};
use nvlab_run::number;

const HEADS: [&str; 14] = [
    "design", "stream", "request", "from", "to", "IOPS", "rate", "mean", "p50", "p95", "p99", "p99.9",
    "p99.99", "max",
];

/// The section; none if no run has several streams.
pub(super) fn section(page: &mut Page, runs: &[Labelled<'_>]) {
    if runs.iter().all(|run| run.run.tenants.is_empty()) {
        return;
    }
    let mut table =
        Table::new("Rates over the stream's run time, latency from when a request is issued", 3, &HEADS);
    for labelled in runs {
        for tenant in &labelled.run.tenants {
            for (name, op) in tenant.ops().into_iter().filter(|(_, op)| op.count > 0) {
                let mut cells = vec![labelled.marked(), escape(&tenant.name), name.to_string()];
                cells.extend([tenant.from_s, tenant.to_s].map(|s| number::time_s(s).to_string()));
                cells.push(number::count(op.per_s.round() as u64));
                cells.push(number::bandwidth(op.bytes_per_s).to_string());
                cells.extend(human::latencies(op).iter().map(|ns| number::time_ns(*ns).to_string()));
                table.row(&cells);
            }
        }
    }
    page.section("streams", "Streams", "", &table.html());
}
