//! Counts of served devices in the text format of Prometheus.

use crate::served::{Counts, Drive};
use nvlab_workload::Op;
use std::fmt::Write as _;
use std::sync::Arc;

/// Counts in the text format of Prometheus.
pub fn metrics(drives: &[Arc<Drive>]) -> String {
    let mut text = String::new();
    let all: Vec<_> = drives.iter().map(|drive| (drive.name(), drive.counts())).collect();
    let mut family = |name: &str, kind: &str, help: &str, rows: Vec<(String, String)>| {
        let _ = writeln!(text, "# HELP nvlab_{name} {help}\n# TYPE nvlab_{name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(text, "nvlab_{name}{{{labels}}} {value}");
        }
    };
    let of = |name: &str| format!("device=\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let each = |value: &dyn Fn(&Counts, Op) -> String| -> Vec<(String, String)> {
        let rows = all.iter().flat_map(|(name, counts)| {
            Op::ALL.map(|op| (format!("{},op=\"{op}\"", of(name)), value(counts, op)))
        });
        rows.collect()
    };
    let ops = each(&|counts, op| counts.totals[op as usize].count().to_string());
    family("requests_total", "counter", "Requests served since power-on.", ops);
    let bytes = each(&|counts, op| counts.totals[op as usize].bytes.to_string());
    family("bytes_total", "counter", "Bytes of these requests.", bytes);
    let mut latency = Vec::new();
    for (name, counts) in &all {
        for op in Op::ALL {
            let histogram = &counts.totals[op as usize].latency;
            for quantile in [0.5, 0.99, 0.999].into_iter().filter(|_| histogram.count() > 0) {
                let labels = format!("{},op=\"{op}\",quantile=\"{quantile}\"", of(name));
                latency.push((labels, histogram.quantile(quantile).seconds().to_string()));
            }
        }
    }
    family("modelled_latency_seconds", "gauge", "Latency of the simulated device.", latency);
    let late = drives.iter().map(|drive| (of(drive.name()), drive.lateness()));
    let late = late.filter(|(_, late)| late.count > 0).flat_map(|(name, late)| {
        [("mean", late.mean), ("p50", late.p50), ("p99", late.p99), ("max", late.max)]
            .map(|(stat, span)| (format!("{name},stat=\"{stat}\""), span.seconds().to_string()))
    });
    let help = "Delay of held replies beyond the simulated device's latency.";
    family("reply_lateness_seconds", "gauge", help, late.collect());
    let one = |value: &dyn Fn(&Counts) -> String| {
        all.iter().map(|(name, counts)| (of(name), value(counts))).collect()
    };
    let host = one(&|counts| counts.device.host_units.to_string());
    family("host_units_total", "counter", "Mapping units the host wrote.", host);
    let programmed = one(&|counts| counts.device.programmed_units().to_string());
    family("programmed_units_total", "counter", "Mapping units programmed, for all causes.", programmed);
    let erases = one(&|counts| counts.device.erases.to_string());
    family("erases_total", "counter", "Blocks erased.", erases);
    family("power_cuts_total", "counter", "Power cuts.", one(&|counts| counts.cuts.to_string()));
    let lost = one(&|counts| u8::from(counts.lost.is_some()).to_string());
    family("device_lost", "gauge", "1 if the device has failed and refuses every request.", lost);
    let wear = all.iter().flat_map(|(name, counts)| {
        let wear = counts.wear.iter();
        wear.flat_map(|wear| [("min", wear.min as f64), ("mean", wear.mean), ("max", wear.max as f64)])
            .map(|(stat, cycles)| (format!("{},stat=\"{stat}\"", of(name)), cycles.to_string()))
    });
    family("wear_cycles", "gauge", "Erases per block since new.", wear.collect());
    let seconds = one(&|counts| counts.now.seconds().to_string());
    family("device_seconds_total", "counter", "Simulated time.", seconds);
    text
}
