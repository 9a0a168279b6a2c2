//! Closed forms of the figures: rates are bounded by the link, by what the front end accepts, by dies times pages over their
//! times, and by depth over latency; write amplification is that of greedy cleaning of uniform writes. They place a search and
//! carry it from one simulated design to the next; what they miss, a simulation tells ([`crate::fit`]).

use super::Values;
use crate::figures::amount::Unit;
use crate::figures::what::{Load, Requests, State, What};
use crate::priors::Knob;
use nvlab_run::theory;

/// The link's and the driver's own time for a request, as every design here has it.
pub(super) const DEVICE_S: f64 = 2e-6;
/// Bytes of a page, and with its spare area: what crosses a channel.
const PAGE: f64 = 16384.0;
const WITH_SPARE: f64 = 18.0 / 16.0;
/// Error correction of 4 KiB.
const DECODE_S: f64 = 5e-6;
/// A mapping unit.
const UNIT: f64 = 4096.0;

/// The value of a figure, in its base unit.
pub fn value(values: &Values, what: What) -> f64 {
    match what {
        What::Rate(requests, unit) => {
            let per_s = rate(values, &requests);
            if unit == Unit::BytesPerSecond { per_s * requests.block_bytes as f64 } else { per_s }
        }
        What::Latency(requests) => latency(values, &requests),
        What::Endurance(load, years) => {
            let bytes = endurance(values, load);
            years.map_or(bytes, |years| bytes / (values.capacity_bytes as f64 * 365.25 * years))
        }
        What::Cache => {
            let raw = f64::from(values.dies) * values.of(Knob::Die) * (1.0 - values.of(Knob::Reserve));
            values.of(Knob::Cache) * raw / f64::from(values.bits)
        }
    }
}

/// Time for which a request occupies the front end, and the rate of the link in its direction.
fn front(values: &Values, is_write: bool) -> (f64, f64) {
    match is_write {
        true => (values.write_command(), values.link_to_drive()),
        false => (values.of(Knob::Command), values.link_rate()),
    }
}

/// Time of a request that waits for nothing, without the cells.
fn path(values: &Values, is_write: bool, block: f64) -> f64 {
    let (command, link) = front(values, is_write);
    values.of(Knob::Host) + DEVICE_S + values.of(Knob::Firmware) + command + block / link
}

fn latency(values: &Values, requests: &Requests) -> f64 {
    let block = requests.block_bytes as f64;
    let alone = path(values, requests.is_write, block);
    let cells = match requests.is_write {
        // It is answered when it is in the buffer.
        true => 0.0,
        false => values.of(Knob::Read) + DECODE_S + block.min(PAGE) * WITH_SPARE / values.of(Knob::Transfer),
    };
    let per_s = rate(values, requests);
    (alone + cells).max(f64::from(requests.depth) / per_s)
}

/// Requests a second.
fn rate(values: &Values, requests: &Requests) -> f64 {
    if let Some(reads) = requests.mixed {
        // As if each kind had the drive for as long as it takes alone.
        let alone = |is_write| rate(values, &Requests { is_write, mixed: None, ..*requests });
        let all = 1.0 / (reads / alone(false) + (1.0 - reads) / alone(true));
        return all * if requests.is_write { 1.0 - reads } else { reads };
    }
    let block = requests.block_bytes as f64;
    let (command, link) = front(values, requests.is_write);
    let front = (1.0 / command).min(link / block);
    let channels = f64::from(values.channels) * values.of(Knob::Transfer) / (block * WITH_SPARE);
    let depth = f64::from(requests.depth);
    if !requests.is_write && requests.state == State::Steady {
        // Its units lie anywhere: a request is as many reads at once.
        let units = (block / UNIT).max(1.0);
        return front.min(channels).min(random_reads(values, block.min(UNIT), depth * units) / units);
    }
    match (requests.is_write, requests.is_sequential) {
        (false, true) => {
            let sensed = values.of(Knob::Planes) * PAGE / values.of(Knob::Read);
            let cells = f64::from(values.dies) * sensed / block;
            let one = path(values, false, block) + values.of(Knob::Read);
            front.min(channels).min(cells).min(depth / one)
        }
        (false, false) => front.min(channels).min(random_reads(values, block, depth)),
        (true, _) => {
            let alone = depth / path(values, true, block);
            front.min(channels).min(alone).min(programs(values, requests))
        }
    }
}

/// Random reads of a closed loop over stations that serve one at a time: mean-value analysis (Schweitzer's approximation), with
/// three quarters of the waiting of exponential service, since times here hardly vary.
fn random_reads(values: &Values, block: f64, depth: f64) -> f64 {
    let planes = if values.of(Knob::Independent) > 0.5 { values.of(Knob::Planes) } else { 1.0 };
    let stations = f64::from(values.dies) * planes * (PAGE / block).min(1.0);
    let service = values.of(Knob::Read) + 1e-6;
    let transfer = block * WITH_SPARE / values.of(Knob::Transfer);
    let other = path(values, false, block) + DECODE_S + transfer;
    // stay = service + waiting * stay / (other + stay)
    let waiting = 0.75 * service * (depth - 1.0) / stations;
    let half = 0.5 * (other - service - waiting);
    let stay = -half + (half * half + service * other).sqrt();
    depth / (other + stay)
}

/// Requests a second that the dies program.
fn programs(values: &Values, requests: &Requests) -> f64 {
    let units = (requests.block_bytes as f64 / UNIT).max(1.0);
    let dies = values.programming();
    let in_slc = requests.state == State::Cache && values.of(Knob::Cache) > 0.0;
    if in_slc {
        let a_program = values.of(Knob::Planes) * PAGE / UNIT;
        return dies * a_program / values.of(Knob::SlcProgram) / units;
    }
    let unit_s = unit_program(values);
    match requests.state == State::Steady && !requests.is_sequential {
        false => dies / unit_s / units,
        true => {
            let wa = amplification(values);
            // What is moved is read before, a page of all planes at a time.
            let moved_s = values.of(Knob::Read) * UNIT / (values.of(Knob::Planes) * PAGE);
            dies / (wa * unit_s + (wa - 1.0) * moved_s) / units
        }
    }
}

/// Die time of the program of a unit: the operation, and the pages that do not cross the channel during the one before.
fn unit_program(values: &Values) -> f64 {
    let planes = values.of(Knob::Planes);
    let bits = f64::from(values.bits);
    let load = (bits - 1.0) * planes * PAGE * WITH_SPARE / values.of(Knob::Transfer);
    (values.of(Knob::Program) + load) * UNIT / (planes * bits * PAGE)
}

/// Write amplification of uniform writes to the whole drive.
fn amplification(values: &Values) -> f64 {
    let share = values.capacity_bytes as f64 / values.raw_bytes();
    1.0 / (1.0 - theory::fifo_live_share(share.clamp(0.05, 0.985)))
}

fn endurance(values: &Values, load: Load) -> f64 {
    let wa = match load {
        Load::Sequential => 1.0,
        Load::Jesd219 | Load::Random => amplification(values),
    };
    values.raw_bytes() * values.of(Knob::Cycles) / wa
}
