//! How a job issues its requests: depth, rates, pauses.

use super::job::kept;
use super::lines::Section;
use super::numbers::{self, MICROSECOND_PS, SECOND_PS};
use super::places;
use crate::block::generator::{GeneratorSpec, Mix, Sizes};
use crate::block::together::{Issue, Rate, RateLimit, Reap, Think};
use crate::{Span, WorkloadError};

/// Engines that keep one request in flight.
const SYNCHRONOUS: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];

impl Section {
    /// `iodepth`, which fio's synchronous engines ignore, among them the one it takes if none is named.
    pub(super) fn depth(&self, notes: &mut Vec<String>, errors: &mut Vec<WorkloadError>) -> u32 {
        let depth = kept(errors, self.options.number("iodepth", 1..=65_536)).unwrap_or(1) as u32;
        let name = &self.name;
        let engine = self.options.value("ioengine");
        if depth == 1 || engine.is_some_and(|engine| !SYNCHRONOUS.contains(&engine)) {
            return depth;
        }
        let engine =
            engine.map_or("no ioengine (fio uses psync)".to_string(), |engine| format!("ioengine={engine}"));
        notes.push(format!("[{name}]: {engine} keeps one request in flight, regardless of iodepth"));
        1
    }

    /// How its requests, which are those of `spec`, are issued.
    pub(super) fn issue(&self, spec: &GeneratorSpec, depth: u32, errors: &mut Vec<WorkloadError>) -> Issue {
        Issue { think: self.think(errors), rate: self.rate(spec, errors), reap: self.reap(depth, errors) }
    }

    fn think(&self, errors: &mut Vec<WorkloadError>) -> Option<Think> {
        let options = &self.options;
        let allowed = "microseconds, or a number with us, ms or s";
        let mut time = |key| kept(errors, options.time_in(key, MICROSECOND_PS, allowed));
        let (pause, spun) = (time("thinktime"), time("thinktime_spin"));
        // A part of the pause may be spent with computing, at most all of it.
        let pause = pause.filter(|time| !time.is_zero())?;
        let pause = spun.map_or(pause, |spun| pause.max(spun));
        let after = kept(errors, options.time("thinktime_iotime")).filter(|time| !time.is_zero());
        let every = kept(errors, options.number("thinktime_blocks", 1..=u32::MAX as u64));
        let every = every.or(after.is_none().then_some(1)).map(|every| every as u32);
        let when_issued = match options.value("thinktime_blocks_type") {
            None | Some("complete") => false,
            Some("issue") => true,
            Some(_) => {
                errors.push(options.wrong("thinktime_blocks_type", "complete or issue"));
                false
            }
        };
        Some(Think { time: pause, every, after, when_issued })
    }

    fn reap(&self, depth: u32, errors: &mut Vec<WorkloadError>) -> Reap {
        let mut number = |key| kept(errors, self.options.number(key, 0..=u32::MAX as u64));
        let (at_once, low) = (number("iodepth_batch_complete_min"), number("iodepth_low"));
        Reap {
            at_once: at_once.map_or(1, |count| count.clamp(1, depth as u64) as u32),
            until_left: low.filter(|&low| (1..depth as u64).contains(&low)).map(|low| low as u32),
        }
    }

    fn rate(&self, spec: &GeneratorSpec, errors: &mut Vec<WorkloadError>) -> Option<Rate> {
        let options = &self.options;
        let is_poisson = match options.value("rate_process") {
            None | Some("linear") => false,
            Some("poisson") => true,
            Some(_) => {
                errors.push(options.wrong("rate_process", "linear or poisson"));
                false
            }
        };
        let waits_out = match options.value("io_submit_mode") {
            None | Some("inline") => true,
            Some("offload") => false,
            Some(_) => {
                errors.push(options.wrong("io_submit_mode", "inline or offload"));
                true
            }
        };
        let ignores_thinking = kept(errors, options.flag("rate_ignore_thinktime"));
        let kb_base = kept(errors, options.kb_base().map(Some)).unwrap_or(1024);
        let number = |text: &str| numbers::size(text, kb_base);
        let mut rates = |key, allowed| kept(errors, options.each(key, allowed, number));
        let by_count = rates("rate_iops", "requests per second, of reads, writes and trims");
        let by_bytes = rates("rate", "bytes per second, e.g. 1m, of reads, writes and trims");
        let sizes = [spec.read_sizes.as_ref().unwrap_or(&spec.sizes), &spec.sizes, &spec.sizes];
        let least_bytes = sizes.map(Sizes::smallest);
        let shares = places::shares(spec.mix);
        // A rate in bytes goes before one in requests. That in requests is one of bytes, counted in smallest requests.
        let limit = |kind: usize| {
            let least = least_bytes[kind].max(1) as u64;
            let per_s = by_bytes[kind].filter(|&rate| rate > 0);
            let count = by_count[kind].filter(|&rate| rate > 0);
            let has_splits = matches!(sizes[kind], Sizes::Split(_)) && options.value("bssplit").is_some();
            let by_gaps = is_poisson || (per_s.is_none() && has_splits);
            let per_s = per_s.or(count.map(|count| count.saturating_mul(least)))?;
            // fio draws gaps in whole microseconds.
            let gap = || Span::from_ps(SECOND_PS / MICROSECOND_PS / (per_s / least).max(1) * MICROSECOND_PS);
            (shares[kind] > 0.0).then(|| match by_gaps {
                true => RateLimit::Gaps { mean: gap(), is_poisson },
                false => RateLimit::Bytes { per_s },
            })
        };
        let limits = [limit(0), limit(1), limit(2)];
        if limits.iter().all(Option::is_none) {
            return None;
        }
        let switches = matches!(spec.mix, Mix::Share { .. }) && shares[0] > 0.0 && shares[1] > 0.0;
        if switches && (spec.read_sizes.is_some() || spec.fua) {
            let key = if options.value("rate").is_some() { "rate" } else { "rate_iops" };
            let allowed =
                "for reads and writes of one size, without sync: fio turns an early read into a write";
            errors.push(options.wrong(key, allowed));
        }
        Some(Rate { limits, least_bytes, waits_out, ignores_thinking, switches, seed: 0 })
    }
}
