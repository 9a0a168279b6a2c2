//! Writing to a device, unmeasured, until its write amplification is constant.
//!
//! Write amplification is measured in windows of half a capacity, from the moment every block has been erased twice
//! on average (before that the cleaner has little work); it is constant when the later half of all windows and the
//! earlier half agree within 1 %. The span grows with the search, so that a slow drift is not missed. For a coarse
//! twin ([`super::coarse`]), the first quarter of the windows may be left out, since its device is checked again: a
//! device that took over the state of its twin is steady when a window agrees with the one before, the first, of an
//! eighth of a capacity, with the twin's; each window is twice as long as the one before, up to half a capacity.
//!
//! The windows of a repeated workload are whole passes. Only operations that change the device are issued: no reads,
//! unless several streams keep their pace.
//!
//! A workload that covers all its addresses before it returns to one (fio's random map) has a write amplification
//! that is not constant but periodic in its passes: its windows are whole passes.
//!
//! If no reused block had live data to move, the state is steady as it is.
//!
//! Between two windows nothing is in flight: there the device can be stored, and its preparation continued by another
//! run with the same result ([`Settling`]).

use super::drive::{ASK_EVERY, DeviceUnderTest, DriveError, Limit, Progress, Watch, drive};
use super::summary::by_cause;
use super::tenants;
use super::writes::{DEPTH, Pace, Writes, keeps_pace, sole};
use crate::result::Precondition;
use crate::run_plan::OnProgress;
use nvlab_access::Attached;
use nvlab_controller::PageMap;
use nvlab_units::{Span, Time};
use nvlab_workload::BlockWorkload;
use serde::{Deserialize, Serialize};

/// Windows that count after which `steady` gives up and reports that it has not converged.
const WINDOWS_MAX: u64 = 100;
/// Windows on each side of the comparison, at least.
const WINDOWS_MIN: usize = 2;
/// Windows in all: a device with much spare takes many until each block was erased twice.
const ROUNDS_MAX: u64 = 4096;
const AGREE: f64 = 0.01;
/// Simulated time that a window at the pace of a workload may take.
const WINDOW_MAX: Span = Span::from_ms(2 * 86_400_000);
/// Units of a window, at least, as a power of two.
const UNITS_MIN_SHIFT: u32 = 16;
/// Before so many units are written at the pace of a workload, or two capacities, windows may agree by chance.
const UNITS_AT_PACE_MIN: u64 = 1 << 22;
/// A window at the pace of a workload ends when so many times its bytes were read and written: one that writes less of what it does
/// would take too long.
const READS_MAX: u64 = 10;
/// Share of a capacity of the first window after a twin, as a power of one half.
const FIRST_AFTER_TWIN: u64 = 3;
/// Erases of the mean block before windows count.
const ERASES_BEFORE: u64 = 2;
/// The rounds expected change by this factor at most from one to the next.
const EXPECTED_TIMES: f64 = 1.5;

/// Who follows a preparation.
pub(crate) struct Steps<'a> {
    /// Told what is done; returns false to stop.
    pub on_progress: OnProgress<'a>,
    /// Called between two windows, when the device may be kept.
    pub between: &'a mut dyn FnMut(&Attached<PageMap>, &Settling),
}

/// How far a device is on its way to the steady state, between two windows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settling {
    /// Requests served and simulated time.
    pub done: Progress,
    /// What will be reported.
    pub report: Precondition,
    /// Requests or ranks drawn from the source of the writes: those that the next window begins after. None of a workload that is
    /// repeated: each window begins with a pass.
    pub drawn: u64,
    rounds: u64,
    windows: Vec<f64>,
    /// Rounds that were expected at the last window; 0 before the first.
    expected: f64,
    /// Erases before the first window; `None`: there was none yet.
    erases_before: Option<u64>,
}

impl Settling {
    /// Before the first window.
    pub fn new(done: Progress, report: Precondition) -> Settling {
        Settling::done(done, Precondition { converged: false, ..report })
    }

    /// Nothing to settle: `report` is all there is to say.
    pub fn done(done: Progress, report: Precondition) -> Settling {
        Settling {
            done,
            report,
            drawn: 0,
            rounds: 0,
            windows: Vec::new(),
            expected: 0.0,
            erases_before: None,
        }
    }

    /// What is known at a share of the next window, for people.
    fn tell(&self, erases_share: f64) -> String {
        let round = self.rounds + 1;
        let [a, b] = self.report.last_windows;
        match b > 0.0 && (!self.windows.is_empty() || self.report.twin_units > 1) {
            false => format!("settling: round {round}, {:.0} % of the first erases", 100.0 * erases_share),
            true => {
                let apart = 100.0 * (a - b).abs() / b;
                format!("settling: round {round}, WA {b:.2}, {apart:.1} % apart (target: 1 %)")
            }
        }
    }

    /// Rounds that it will take in all, as far as can be said: until every block was erased twice at the pace so far, then
    /// as many windows as the drift needs, which halves when the windows double.
    fn rounds_expected(&self, erases_share: f64) -> f64 {
        let least = 2.0 * WINDOWS_MIN as f64;
        let [a, b] = self.report.last_windows;
        let rounds = self.rounds as f64;
        if self.report.twin_units > 1 {
            return rounds + 1.0;
        }
        if self.windows.is_empty() {
            return rounds / erases_share.clamp(0.01, 1.0) + least;
        }
        let windows = self.windows.len() as f64;
        // A single window has nothing to be apart from.
        let apart = if a > 0.0 && b > 0.0 { (a - b).abs() / b / AGREE } else { 1.0 };
        rounds - windows + (windows * apart).max(windows + 1.0).max(least).min(WINDOWS_MAX as f64)
    }

    /// The same for people: two halves may agree by chance and drift apart again, so from one window to the next the rounds
    /// expected change by a limited factor.
    fn expect(&mut self, erases_share: f64) -> f64 {
        let found = self.rounds_expected(erases_share);
        if self.expected > 0.0 {
            let steady = found.clamp(self.expected / EXPECTED_TIMES, self.expected * EXPECTED_TIMES);
            self.expected = steady.max(self.rounds as f64 + 1.0);
        } else {
            self.expected = found;
        }
        self.expected
    }
}

/// Drives a device without measuring it.
pub(super) fn unmeasured(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    at: Time,
    limit: &Limit,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Progress, DriveError> {
    let watch = Watch { meter: None, go_on };
    match workload.tenants() {
        // Each keeps its pace: what they write in proportion depends on it.
        Some(tenants) => {
            tenants::drive(device, tenants, at, DEPTH, limit, watch).map(|(progress, _)| progress)
        }
        None => drive(device, workload, at, DEPTH, limit, watch),
    }
}

/// Drives a device with the writes of a workload until so many bytes are written: of one that is repeated as many whole passes as it
/// takes, so that each window has seen the same.
fn write(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    (bytes, limit, pace): (u64, &Limit, Pace),
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Progress, DriveError> {
    let mut done = Progress { now: settling.done.now, ..Progress::default() };
    let mut asked = 0;
    while done.written_bytes < bytes {
        let is_repeated = workload.begin_again();
        let limit = if is_repeated { &Limit::NONE } else { limit };
        let earlier = done;
        let go_on_in_pass = &mut |pass: &Progress| go_on(&earlier.and(pass));
        let pass = if keeps_pace(workload, pace) {
            unmeasured(device, workload, done.now, limit, go_on_in_pass)?
        } else {
            let mut writes = Writes::new(sole(workload), pace);
            let pass = unmeasured(device, &mut writes, done.now, limit, go_on_in_pass)?;
            settling.report.has_trims |= writes.trims > 0;
            settling.drawn += if is_repeated { 0 } else { writes.drawn };
            pass
        };
        done = done.and(&pass);
        if !is_repeated || pass.written_bytes == 0 {
            break;
        }
        settling.report.passes += 1;
        // Short passes do not ask by themselves.
        if done.requests >= asked + ASK_EVERY {
            asked = done.requests;
            if !go_on(&done) {
                return Err(DriveError::Stopped(done.requests));
            }
        }
    }
    Ok(done)
}

/// Writes one window; returns its write amplification, `None` if the workload writes nothing.
fn window(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    (window, limit, pace): (u64, &Limit, Pace),
    steps: &mut Steps<'_>,
) -> Result<Option<f64>, DriveError> {
    let before = device.counters();
    let needed = (ERASES_BEFORE * device.blocks() as u64).max(1) as f64;
    let erases = before.erases - settling.erases_before.unwrap_or(before.erases);
    let text = settling.tell((erases as f64 / needed).min(1.0));
    let (rounds, expected) = (settling.rounds as f64, settling.expect(erases as f64 / needed));
    let share = |progress: &Progress| (rounds + progress.written_bytes as f64 / window as f64) / expected;
    let on_progress = &mut *steps.on_progress;
    let go_on = &mut |progress: &Progress| on_progress(&text, share(progress).min(0.99));
    let progress = write(device, workload, settling, (window, limit, pace), go_on)?;
    (settling.done.now, settling.done.requests) = (progress.now, settling.done.requests + progress.requests);
    if progress.written_bytes == 0 {
        return Ok(None);
    }
    settling.rounds += 1;
    settling.report.host_bytes += progress.written_bytes;
    let counted = device.counters().since(&before);
    settling.report.last_window = Some(by_cause(&counted.causes, counted.host_units - counted.causes.host));
    Ok(Some(counted.programmed_units() as f64 / counted.host_units.max(1) as f64))
}

/// Lets the device be kept between two windows.
fn between(device: &dyn DeviceUnderTest, settling: &Settling, steps: &mut Steps<'_>) {
    if let Some(device) = device.page_map() {
        (steps.between)(device, settling);
    }
}

/// What is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settles {
    /// A device: all windows count.
    Device,
    /// A coarse twin: the windows of its way to the steady state, up to a quarter of all, need not agree with the others.
    Twin,
}

/// So many bytes of a window, or more: within a pass over all addresses write amplification rises and falls, so windows are whole
/// passes.
fn whole_passes(workload: &dyn BlockWorkload, bytes: u64) -> u64 {
    match workload.pass_bytes() {
        Some(pass @ 1..) => bytes.div_ceil(pass) * pass,
        _ => bytes,
    }
}

/// The means of the earlier and the later half of windows, at least so many each, and whether they agree.
fn halves(windows: &[f64], least: usize) -> ([f64; 2], bool) {
    let (earlier, later) = windows.split_at(windows.len() / 2);
    let mean = |windows: &[f64]| windows.iter().sum::<f64>() / windows.len().max(1) as f64;
    let [a, b] = [mean(earlier), mean(later)];
    ([a, b], earlier.len() >= least && (a - b).abs() <= AGREE * b)
}

/// Writes until two halves of the windows agree, or nothing is ever moved. A workload that writes nothing leaves the device as it is.
pub(super) fn settle(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    settles: Settles,
    steps: &mut Steps<'_>,
) -> Result<(), DriveError> {
    let capacity = device.capacity_bytes();
    let unit = device.unit_bytes() as u64;
    // A window must hold enough blocks for its mean to be steady: half a capacity.
    let bytes = whole_passes(workload, (capacity / 2).max(unit << UNITS_MIN_SHIFT));
    let limit = Limit { written_bytes: bytes, bytes: bytes.saturating_mul(READS_MAX), ..Limit::NONE };
    let blocks = device.blocks() as u64;
    let filled = *settling.erases_before.get_or_insert(device.counters().erases);
    while settling.windows.len() < WINDOWS_MAX as usize && settling.rounds < ROUNDS_MAX {
        let Some(found) = window(device, workload, settling, (bytes, &limit, Pace::Fast), steps)? else {
            settling.report.converged = settling.rounds == 0;
            break;
        };
        let erases = device.counters().erases - filled;
        if erases >= blocks && moved(device) == 0 {
            // All blocks were used again, and none had anything left to move: nothing changes any more.
            (settling.report.last_windows, settling.report.converged) = ([found; 2], true);
            break;
        }
        if erases >= ERASES_BEFORE * blocks {
            settling.windows.push(found);
            // Of long passes each is compared with the one before.
            let written = settling.report.host_bytes - settling.report.fill_bytes;
            let least = if written / settling.rounds >= capacity { 1 } else { WINDOWS_MIN };
            let (mut means, mut agree) = halves(&settling.windows, least);
            if settles == Settles::Twin && !agree {
                (means, agree) = halves(&settling.windows[settling.windows.len() / 4..], least);
            }
            (settling.report.last_windows, settling.report.converged) = (means, agree);
            if agree {
                break;
            }
        } else {
            let [_, before] = settling.report.last_windows;
            settling.report.last_windows = [if settling.rounds > 1 { before } else { found }, found];
        }
        // How far each of several tenants is could not be told by the number of requests drawn.
        if !keeps_pace(workload, Pace::Fast) {
            between(device, settling, steps);
        }
    }
    Ok(())
}

/// Capacities that are written before a log counts as one that this workload does not fill.
const TO_FILL_LOG_MAX: u64 = 4;
/// Pieces of a capacity after which it is looked at.
const LOOKS_AT_LOG: u64 = 1 << 10;

/// Writes until all log blocks are in use.
pub(super) fn fill_log(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    steps: &mut Steps<'_>,
) -> Result<(), DriveError> {
    let (capacity, unit) = (device.capacity_bytes(), device.unit_bytes() as u64);
    let bytes = (capacity / LOOKS_AT_LOG).max(unit);
    let limit = Limit { written_bytes: bytes, bytes: bytes.saturating_mul(READS_MAX), ..Limit::NONE };
    let most = settling.report.host_bytes + TO_FILL_LOG_MAX * capacity;
    while device.is_log_full() == Some(false) && settling.report.host_bytes < most {
        if window(device, workload, settling, (bytes, &limit, Pace::Fast), steps)?.is_none() {
            break;
        }
    }
    settling.report.converged = device.is_log_full() == Some(true);
    Ok(())
}

/// Units that a new device has moved since it was built, to clean or to fold.
fn moved(device: &dyn DeviceUnderTest) -> u64 {
    let causes = device.counters().causes;
    causes.clean + causes.merge + causes.fold + causes.transfer + causes.wear
}

/// Writes to a device that came from its twin until a window agrees with the one before, the first with the write
/// amplification of the twin, which `settling` begins with. The first is short: at its end a device as amplified as 4 has
/// programmed half of its blocks, and a state that is not steady shows at once, before the device has come closer to it.
pub(super) fn settle_from(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    steps: &mut Steps<'_>,
) -> Result<(), DriveError> {
    settling.report.converged = false;
    while settling.rounds < WINDOWS_MAX {
        let shorter = FIRST_AFTER_TWIN.saturating_sub(settling.rounds).max(1);
        let bytes = device.capacity_bytes() >> shorter;
        let limit = Limit { written_bytes: bytes, ..Limit::NONE };
        let Some(found) = window(device, workload, settling, (bytes, &limit, Pace::Fast), steps)? else {
            break;
        };
        let before = settling.report.last_windows[1];
        settling.report.last_windows = [before, found];
        settling.report.converged = (before - found).abs() <= AGREE * found;
        if settling.report.converged {
            break;
        }
        between(device, settling, steps);
    }
    Ok(())
}

/// Has a workload run at its own pace on a device that is steady at another one until the earlier and the later half of its windows
/// agree, the first quarter left out: the new state comes slowly, over several capacities.
pub(super) fn settle_at_own_pace(
    device: &mut dyn DeviceUnderTest,
    workload: &mut dyn BlockWorkload,
    settling: &mut Settling,
    on_progress: OnProgress<'_>,
) -> Result<(), DriveError> {
    let (capacity, unit) = (device.capacity_bytes(), device.unit_bytes() as u64);
    // One that leaves a device idle for long may as well leave it idle for less.
    let pace = Pace::Own { apart_max: Span::from_ps(WINDOW_MAX.ps() / (capacity / unit).max(1)) };
    let bytes = whole_passes(workload, (capacity / 8).max(unit << UNITS_MIN_SHIFT));
    let reads = bytes.saturating_mul(READS_MAX);
    let limit = Limit { written_bytes: bytes, bytes: reads, time: WINDOW_MAX, ..Limit::NONE };
    let steps = &mut Steps { on_progress, between: &mut |_, _| {} };
    while settling.windows.len() < WINDOWS_MAX as usize {
        let Some(found) = window(device, workload, settling, (bytes, &limit, pace), steps)? else { break };
        settling.windows.push(found);
        let later = &settling.windows[settling.windows.len() / 4..];
        let (means, agree) = halves(later, WINDOWS_MIN);
        let units = settling.windows.len() as u64 * bytes / unit;
        let is_enough = units >= UNITS_AT_PACE_MIN.min(2 * capacity / unit);
        (settling.report.last_windows, settling.report.converged) = (means, agree && is_enough);
        if settling.report.converged {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rounds_expected_do_not_jump() {
        let done = Progress { now: Time::ZERO, ..Progress::default() };
        let mut settling = Settling::new(done, Precondition::none("steady"));
        let mut expected = vec![settling.expect(0.0)];
        // Blocks are erased twice after four rounds; then halves that are close by chance, and are not.
        for share in [0.25, 0.5, 0.75] {
            settling.rounds += 1;
            expected.push(settling.expect(share));
        }
        for (a, b) in [(0.0, 3.0), (3.0, 3.03), (3.0, 3.6), (3.0, 3.04), (3.2, 3.6), (3.5, 3.6)] {
            settling.rounds += 1;
            settling.windows.push(b);
            settling.report.last_windows = [a, b];
            expected.push(settling.expect(1.0));
        }
        for pair in expected.windows(2).skip(1) {
            let times = pair[1] / pair[0];
            assert!((1.0 / EXPECTED_TIMES - 1e-9..=EXPECTED_TIMES + 1e-9).contains(&times), "{expected:?}");
        }
        assert!(expected[4] < 12.0, "one window says nothing of a drift: {expected:?}");
    }
}
