//! What limits a run, in a few lines, from its measured figures.
//!
//! Each reason follows from a bound, not from a guess: a resource that is busy nearly all of the time is the limit;
//! by Little's law the requests in flight are rate times latency, and a device with fewer in flight than dies cannot
//! keep them busy. Without a deciding bound there is no reason.

use nvlab_design::Design;
use nvlab_run::metric::busy_flash;
use nvlab_run::number;
use nvlab_run::result::{OpResult, RunResult};

/// A resource that is busy this share of the time is the limit.
const SATURATED: f64 = 0.9;
/// Dies that are busy less than this are mentioned.
const DIES_IDLE: f64 = 0.75;
/// With less than this many requests in flight on average the workload is the limit.
const IN_FLIGHT_FEW: f64 = 0.5;
/// Share of the time of writes, or of a request, that is mentioned.
const MOST: f64 = 0.5;

/// Share of the time of reads spent on the map that is mentioned: without other waiting, a miss is half. For writes,
/// the share of map programs.
const PART: f64 = 0.2;

/// The limits of a run, most decisive first; empty if none is known.
pub fn reasons(run: &RunResult) -> Vec<String> {
    let Some(design) = plain_design(run) else { return Vec::new() };
    let load = Load::of(run);
    let mut found = Vec::new();
    found.extend(cache(run));
    found.extend(buffer(run));
    found.extend(merges(run));
    found.extend(map(run));
    let limit = link(run, &design).or_else(|| flash_full(run)).or_else(|| load.few());
    let is_limited = limit.is_some();
    found.extend(limit);
    if !is_limited {
        found.extend(flushes(run));
        found.extend(overhead(run, &design));
        found.extend(dies(run, &design, &load));
    }
    found
}

/// The design of a run of plain requests: transactions, programs, stages of software and durable logs have their own
/// figures.
pub(super) fn plain_design(run: &RunResult) -> Option<Design> {
    let special = run.transaction.count > 0 || run.program.is_some() || run.software.is_some();
    if special || run.durable.is_some() {
        return None;
    }
    Design::parse("result", &run.design.resolved_toml, &[]).ok()
}

/// The load offered by the host.
struct Load {
    /// Mean requests in flight, including those queued in the host.
    in_flight: f64,
    /// Requests arrive at their own times, and are served at the same rate.
    is_open: bool,
}

impl Load {
    fn of(run: &RunResult) -> Load {
        let of = |op: &OpResult| op.per_s * op.latency.mean_ns / 1e9;
        let in_flight = of(&run.read) + of(&run.write) + of(&run.trim) + of(&run.flush);
        let streams = run.tenants.iter().filter_map(|stream| stream.arrivals.as_ref());
        // The host always has another request for a device whose queue grows, as in a closed loop.
        let grows = run.arrivals.iter().chain(streams).any(|arrivals| arrivals.growth_per_s > 0.0);
        Load { in_flight, is_open: !run.closed_loop && !grows }
    }

    /// An open loop with a low load: the share of the time with a request in flight is at most the mean number.
    fn few(&self) -> Option<String> {
        (self.is_open && self.in_flight < IN_FLIGHT_FEW).then(|| {
            let empty = number::share(1.0 - self.in_flight);
            format!("the host's queue is empty at least {empty} of the time: the workload is the limit")
        })
    }
}

/// A direction of the link that is nearly always busy.
fn link(run: &RunResult, design: &Design) -> Option<String> {
    let path = &design.path;
    let share = |bytes_per_s: f64, rate: Option<nvlab_units::Rate>| {
        rate.map_or(0.0, |rate| bytes_per_s * rate.transfer(1 << 20).seconds() / (1 << 20) as f64)
    };
    let (up, down) = (share(run.read.bytes_per_s, path.rate), share(run.write.bytes_per_s, path.rate_write));
    let busy = if path.kind.full_duplex() { up.max(down) } else { up + down };
    (busy >= SATURATED).then(|| format!("the link is the limit: busy {} of the time", number::share(busy)))
}

/// Dies or channels that are nearly always busy.
fn flash_full(run: &RunResult) -> Option<String> {
    let flash = run.flash.as_ref()?;
    let dies = busy_flash(flash);
    if flash.busy_channel >= SATURATED {
        return Some(format!(
            "the channels are the limit: busy {} of the time",
            number::share(flash.busy_channel)
        ));
    }
    let moved = 1.0 - 1.0 / run.write_amplification.total.max(1.0);
    let moving = match moved >= MOST {
        true => format!("; {} of what they program is write amplification", number::share(moved)),
        false => String::new(),
    };
    (dies >= SATURATED)
        .then(|| format!("the dies are the limit: busy {} of the time{moving}", number::share(dies)))
}

/// A write buffer, if waiting for room in it took most of the time of writes.
fn buffer(run: &RunResult) -> Option<String> {
    most_of_writing(run, run.buffer_wait_s).map(|share| {
        format!("the write buffer was full: writes spent {share} of their time waiting for room in it")
    })
}

/// Merges, if waiting for them took most of the time of writes.
fn merges(run: &RunResult) -> Option<String> {
    most_of_writing(run, run.merge_wait_s)
        .map(|share| format!("writes spent {share} of their time waiting until log blocks were merged"))
}

/// The share of a wait in the time of writes, if it is most of it.
fn most_of_writing(run: &RunResult, wait_s: f64) -> Option<number::Shown> {
    let writing = run.write.count as f64 * run.write.latency.mean_ns / 1e9;
    let share = wait_s / writing.max(1e-12);
    (wait_s > 0.0 && share >= MOST).then(|| number::share(share.min(1.0)))
}

/// A map in flash, if waiting for it took most of the time of requests. Buffered writes do not wait for it.
fn map(run: &RunResult) -> Option<String> {
    let map = run.map.as_ref()?;
    let missed = |hits: u64, of: u64| number::share(1.0 - hits as f64 / of.max(1) as f64);
    let reading = run.read.count as f64 * run.read.latency.mean_ns / 1e9;
    let share = map.read_wait_s / reading.max(1e-12);
    (run.read.count > 0 && share >= PART).then(|| {
        format!(
            "the map does not fit in memory: {} of the map look-ups of reads missed, and reads spent {} of their time waiting \
             for the map",
            missed(map.read_hits, map.reads),
            number::share(share.min(1.0))
        )
    })
}

/// A cache of blocks in SLC mode that took less than half of the writes.
fn cache(run: &RunResult) -> Option<String> {
    let cache = run.cache.as_ref()?;
    (run.write_amplification.host >= PART && cache.written_share < MOST).then(|| {
        let past = number::share(1.0 - cache.written_share);
        format!("the SLC cache was full: {past} of the writes bypassed it")
    })
}

/// The number of requests of all kinds, and their total time in ns.
pub(super) fn all_time(run: &RunResult) -> (f64, f64) {
    let ops = [&run.read, &run.write, &run.trim, &run.flush];
    ops.iter().fold((0.0, 0.0), |(count, time), op| {
        (count + op.count as f64, time + op.count as f64 * op.latency.mean_ns)
    })
}

/// Flushes that took most of the time of all requests.
fn flushes(run: &RunResult) -> Option<String> {
    let flushing = run.flush.count as f64 * run.flush.latency.mean_ns;
    let share = flushing / all_time(run).1.max(1.0);
    (share >= MOST).then(|| {
        format!(
            "{} of the requests' time is flushes: each waits until all earlier writes are programmed",
            number::share(share)
        )
    })
}

/// Time in the host's software and the link's protocol, if it is most of a request's.
fn overhead(run: &RunResult, design: &Design) -> Option<String> {
    let each = (design.path.overhead_host + design.path.overhead_device).ns() as f64;
    let (count, time) = all_time(run);
    let share = each * count / f64::max(time, 1.0);
    (share >= MOST).then(|| {
        format!("{} of a request's time is host software and link protocol", number::share(share.min(1.0)))
    })
}

/// Dies that are idle although the host waits.
fn dies(run: &RunResult, design: &Design, load: &Load) -> Option<String> {
    let flash = run.flash.as_ref()?;
    let (busy, dies) = (busy_flash(flash), design.array.geometry.dies() as f64);
    if busy >= DIES_IDLE || load.is_open {
        return None;
    }
    let idle = number::share(1.0 - busy);
    if let Some(most) = design.array.programs
        && flash.busy_program * dies >= SATURATED * most as f64
    {
        return Some(format!("dies idle {idle}: at most {most} of {dies} may program at the same time"));
    }
    let at_device = load.in_flight.min(design.path.queue as f64);
    let in_flight = number::three(at_device);
    Some(match at_device < dies {
        true => {
            format!("dies idle {idle}: on average only {in_flight} requests are in flight for {dies} dies")
        }
        false => {
            format!("dies idle {idle}: {in_flight} requests in flight are spread unevenly over the dies")
        }
    })
}
