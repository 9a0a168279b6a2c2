//! A run over time in Chrome's trace event format, which ui.perfetto.dev, chrome://tracing and speedscope read: one counter for
//! each figure of the run's windows (rates, latencies, write amplification, erases).

use nvlab_run::result::{RunResult, Window};
use serde_json::{Value, json};

/// The timeline of a run. Times are simulated, us since the run began; a counter keeps its value until the next window.
pub fn timeline(run: &RunResult) -> Value {
    let events = run
        .series
        .iter()
        .flat_map(|window| counters(window).map(|(name, args)| event(window.from_s, name, args)));
    let end = run.series.last().map(|window| event(window.to_s, "requests", json!({ "per_s": 0 })));
    json!({
        "displayTimeUnit": "ns",
        "otherData": {
            "design": run.design.name, "workload": run.workload, "seed": run.seed, "key": run.key, "nvlab": run.nvlab,
        },
        "traceEvents": process(run).into_iter().chain(events).chain(end).collect::<Vec<Value>>(),
    })
}

/// The name that the viewer shows.
fn process(run: &RunResult) -> [Value; 1] {
    let name = format!("{} under {}", run.design.name, run.workload);
    [json!({ "name": "process_name", "ph": "M", "pid": 1, "args": { "name": name } })]
}

fn event(at_s: f64, name: &str, args: Value) -> Value {
    json!({ "name": name, "ph": "C", "pid": 1, "ts": at_s * 1e6, "args": args })
}

fn counters(window: &Window) -> [(&'static str, Value); 6] {
    let seconds = window.to_s - window.from_s;
    let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    [
        ("requests", json!({ "per_s": rate(window.requests) })),
        ("read bytes", json!({ "per_s": rate(window.read_bytes) })),
        ("written bytes", json!({ "per_s": rate(window.write_bytes) })),
        (
            "latency p99",
            json!({ "read_us": window.read_p99_ns as f64 / 1e3, "write_us": window.write_p99_ns as f64 / 1e3 }),
        ),
        ("write amplification", json!({ "units": window.write_amplification })),
        ("erases", json!({ "per_s": rate(window.erases) })),
    ]
}

#[cfg(test)]
mod tests {
    use nvlab_run::sample;

    #[test]
    fn counters_keep_what_the_windows_hold() {
        let run = sample::run("ssd-tlc", 1);
        let timeline = super::timeline(&run);
        let events = timeline["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 1 + 6 * run.series.len() + 1);
        let counted = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
        let requests: f64 = counted("requests")
            .iter()
            .zip(&run.series)
            .map(|(event, window)| event["args"]["per_s"].as_f64().unwrap() * (window.to_s - window.from_s))
            .sum();
        let served: u64 = run.series.iter().map(|window| window.requests).sum();
        assert!((requests - served as f64).abs() < 1e-6 * served as f64, "{requests} of {served}");
        assert!(events.windows(2).all(|two| two[0]["ts"].as_f64() <= two[1]["ts"].as_f64()));
    }
}
