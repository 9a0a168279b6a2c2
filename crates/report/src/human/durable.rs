//! What a log of recoverable memory did, line by line.

use nvlab_run::number;
use nvlab_run::result::DurableResult;

/// Labels and texts; parts that are not to be broken over lines have no-break spaces.
pub(super) fn lines(durable: &DurableResult) -> [(&'static str, String); 4] {
    let bytes = |bytes: f64| number::bytes(bytes).to_string();
    let [range, record, written] =
        [durable.range_bytes, durable.record_bytes, durable.written_bytes].map(bytes);
    let fills = number::three(durable.fills);
    let size = number::bytes(durable.log_bytes as f64);
    let truncations = number::things(durable.truncations, "truncation");
    let applied = number::bytes(durable.applied_bytes as f64);
    let time = &durable.time;
    let parts = [
        ("computing", time.compute),
        ("compressing", time.compress),
        ("writing the log", time.write),
        ("erasing it", time.erase),
        ("reading it", time.read),
        ("applying it", time.apply),
    ];
    let spent = parts.into_iter().filter(|(_, share)| *share > 0.0);
    let part = |(name, share)| format!("{name} {}", number::share(share)).replace(' ', "\u{a0}");
    [
        ("Log", format!("on {}, of {size}, filled {fills} times", durable.log)),
        ("Transaction", format!("{range} in ranges, a record of {record}, {written} written to the device")),
        ("Truncation", format!("{truncations}, {applied} applied to the data")),
        ("Time", spent.map(part).collect::<Vec<String>>().join(", ")),
    ]
}
