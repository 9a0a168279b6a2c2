//! Breakdown of the time of requests: parts that add up to all of it.
//!
//! Known are the time of the path (its overhead, its command time, the bytes over the rate of the link) and the waits
//! that the device counts: for room in the write buffer, for merges, for the map, and in the host's queue. The rest
//! of reads and writes is the medium: its cells, and the waits for them and for the link.

use super::reasons::{all_time, plain_design, reasons};
use nvlab_run::number;
use nvlab_run::result::{OpResult, RunResult};

/// Smaller parts are combined.
const SMALL: f64 = 0.005;

/// The name of the combined small parts.
pub(super) const OTHER: &str = "the rest";

/// A part of the time of all requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimePart {
    /// The activity, as `flushes`.
    pub what: &'static str,
    /// Its share of the time of all requests.
    pub share: f64,
}

/// The parts of the time of all requests of a run, the largest first; empty for runs with another breakdown
/// (transactions, programs, stages of software, durable logs). They add up to 1.
pub(super) fn time_parts(run: &RunResult) -> Vec<TimePart> {
    let Some(design) = plain_design(run) else { return Vec::new() };
    let (path, ops) = (&design.path, [&run.read, &run.write, &run.trim, &run.flush]);
    let spent = |op: &OpResult| op.count as f64 * op.latency.mean_ns * 1e-9;
    let (count, all_ns) = all_time(run);
    if all_ns <= 0.0 {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut part = |what, seconds: f64| parts.push(TimePart { what, share: seconds / (all_ns * 1e-9) });
    // The rest of each kind, after its share of the path.
    let mut left = ops.map(spent);
    let mut take = |what, index: usize, seconds: f64| {
        let taken = seconds.clamp(0.0, left[index]);
        left[index] -= taken;
        part(what, taken);
    };
    let software = (path.overhead_host + path.overhead_device).seconds();
    let rates = [path.rate, path.rate_write.or(path.rate)];
    for (index, op) in ops.into_iter().enumerate() {
        take("host software and link protocol", index, op.count as f64 * software);
        let command = if index == 1 { path.command_write } else { path.command };
        take("command processing", index, op.count as f64 * command.seconds());
        take("the host's queue", index, run.queue_wait_s * op.count as f64 / count);
        let rate = rates.get(index).copied().flatten();
        take("the link", index, rate.map_or(0.0, |rate| rate.transfer(op.bytes).seconds()));
    }
    take("the map", 0, run.map.map_or(0.0, |map| map.read_wait_s));
    take("room in the write buffer", 1, run.buffer_wait_s);
    take("merges of log blocks", 1, run.merge_wait_s);
    let rest = ["reads in the device", "writes in the device", "trims in the device", "flushes"];
    rest.into_iter().zip(left).for_each(|(what, seconds)| part(what, seconds));
    joined(parts)
}

/// Combines parts of the same name, the largest first, and the small ones as one.
fn joined(parts: Vec<TimePart>) -> Vec<TimePart> {
    let mut found: Vec<TimePart> = Vec::new();
    for part in parts {
        match found.iter_mut().find(|other| other.what == part.what) {
            Some(other) => other.share += part.share,
            None => found.push(part),
        }
    }
    let (mut large, small): (Vec<TimePart>, Vec<TimePart>) =
        found.into_iter().partition(|part| part.share >= SMALL);
    large.sort_by(|a, b| b.share.total_cmp(&a.share));
    let other: f64 = small.iter().map(|part| part.share).sum();
    if other > 0.0 {
        large.push(TimePart { what: OTHER, share: other });
    }
    large
}

/// The breakdown of the time of the requests of a run, and its limits, in labelled lines:
/// `flushes 98.8 %, writes in the device 0.75 %`.
pub(super) fn why(run: &RunResult) -> Vec<(&'static str, String)> {
    let parts = time_parts(run);
    let words = parts.iter().map(|part| format!("{} {}", part.what, number::share(part.share)));
    let time = (!parts.is_empty()).then(|| ("Time", words.collect::<Vec<String>>().join(", ")));
    let label = |number| if number == 0 { "Why" } else { "" };
    let reasons = reasons(run).into_iter().enumerate().map(|(number, reason)| (label(number), reason));
    time.into_iter().chain(reasons).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_design::Design;
    use nvlab_run::State;
    use nvlab_run::plan::{Settings, Source, Task};

    fn run(design: &str, sets: &[&str], workload: &str, requests: u64) -> RunResult {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let resolved = Design::load(design, &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let source = Source::read(workload, None).unwrap();
        let until = Some(format!("{requests} io").parse().unwrap());
        let settings = Settings { seed: 1, until, state: State::Full.into() };
        Task::new(resolved, design.into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
    }

    #[track_caller]
    fn share(run: &RunResult, what: &str) -> f64 {
        let parts = time_parts(run);
        let sum: f64 = parts.iter().map(|part| part.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{parts:?}");
        parts.iter().find(|part| part.what == what).map_or(0.0, |part| part.share)
    }

    const SMALL: &[&str] = &["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"];

    #[test]
    fn the_parts_are_all_of_the_time() {
        let reads = run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=1", 20_000);
        let software = Design::load("ssd-tlc", &[]).unwrap().path;
        let software = (software.overhead_host + software.overhead_device).seconds();
        let of_a_read = software * 1e9 / reads.read.latency.mean_ns;
        let found = share(&reads, "host software and link protocol");
        assert!((found / of_a_read - 1.0).abs() < 1e-9, "{found} {of_a_read}");
        assert!(share(&reads, "reads in the device") > 0.8);

        // It was said that half of the time was software.
        let sets = [SMALL, &["media.dram.backup=none"]].concat();
        let flushed = run("ssd-tlc", &sets, "sequential bs=8KiB qd=1 flush=1 span=1GiB", 2_000);
        let all = [&flushed.write, &flushed.flush].map(|op| op.count as f64 * op.latency.mean_ns);
        let in_flushes = (all[1] / 1e9 - software * flushed.flush.count as f64) * 1e9 / (all[0] + all[1]);
        assert!((share(&flushed, "flushes") / in_flushes - 1.0).abs() < 1e-6 && in_flushes > 0.9);

        let writes = run("ssd-tlc", SMALL, "uniform rw=randwrite bs=4KiB qd=32", 2_000_000);
        assert!(share(&writes, "room in the write buffer") > 0.5, "{:?}", time_parts(&writes));
        let merges = run("mlc-bast", &["media.mlc.blocks=64"], "uniform rw=randwrite bs=4KiB qd=1", 2_000);
        assert!(share(&merges, "merges of log blocks") > 0.5, "{:?}", time_parts(&merges));
    }

    /// The device takes 32 requests at a time: of 256 in flight, by Little's law, 224 wait in the host.
    #[test]
    fn what_the_device_does_not_take_waits_in_the_host() {
        let deep =
            run("ssd-mlc-2010", &["media.mlc.blocks=512"], "uniform rw=randread bs=4KiB qd=256", 50_000);
        let queued = share(&deep, "the host's queue");
        let taken = Design::load("ssd-mlc-2010", &[]).unwrap().path.queue as f64;
        assert!((queued - (1.0 - taken / 256.0)).abs() < 0.02, "{queued}, {taken} at a time");
        assert_eq!(
            share(&run("ssd-tlc", SMALL, "uniform rw=randread bs=4KiB qd=8", 5_000), "the host's queue"),
            0.0
        );
    }
}
