//! The figures of a log of recoverable memory, line by line.

use nvlab_run::number;
use nvlab_run::result::{DurableResult, RunResult};

/// Host capacity and raw size. Recoverable memory is in the host, its log on a device.
pub(super) fn sizes(run: &RunResult) -> String {
    let (capacity, raw) = (run.design.capacity_bytes, run.design.raw_bytes);
    let [seen, there] = [capacity, raw].map(|size| number::bytes(size as f64));
    match (&run.durable, raw) {
        (None, _) => format!("{seen} of {there} raw"),
        (Some(_), 0) => format!("{seen} of memory"),
        (Some(_), _) => format!("{seen} of memory, log on {there} raw"),
    }
}

/// Labels and texts; parts that must not be broken over lines have no-break spaces.
pub(super) fn lines(durable: &DurableResult) -> [(&'static str, String); 4] {
    let bytes = |bytes: f64| number::bytes(bytes).to_string();
    let [range, record, written] =
        [durable.range_bytes, durable.record_bytes, durable.written_bytes].map(bytes);
    let ahead = match durable.ahead_bytes {
        0.0 => String::new(),
        ahead => match durable.ahead_wasted_bytes {
            0.0 => format!(", {} before the commit", bytes(ahead)),
            wasted => format!(", {} before the commit ({} in vain)", bytes(ahead), bytes(wasted)),
        },
    };
    let fills = number::three(durable.fills);
    let size = number::bytes(durable.log_bytes as f64);
    let truncations = number::things(durable.truncations, "truncation");
    let applied = number::bytes(durable.applied_bytes as f64);
    let time = &durable.time;
    let parts = [
        ("computing", time.compute),
        ("compressing", time.compress),
        ("decompressing", time.decompress),
        ("writing the log", time.write),
        ("erasing the log", time.erase),
        ("reading the log", time.read),
        ("applying the log", time.apply),
    ];
    let spent = parts.into_iter().filter(|(_, share)| *share > 0.0);
    let part = |(name, share)| format!("{name} {}", number::share(share)).replace(' ', "\u{a0}");
    [
        ("Log", format!("on {}, of {size}, filled {fills} times", durable.log)),
        (
            "Transaction",
            format!("{range} in ranges, {record} per record, {written} written to the device{ahead}"),
        ),
        ("Truncation", format!("{truncations}, {applied} applied to the data")),
        ("Time", spent.map(part).collect::<Vec<String>>().join(", ")),
    ]
}
