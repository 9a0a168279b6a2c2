//! The live page: the load on the devices, their latency, write amplification and wear. The browser reloads it every
//! second.
//!
//! Rates and percentiles cover the time between two looks. Curves are recorded only while somebody looks, so that a
//! device that nobody watches pays nothing.

use crate::served::{Counts, Drive};
use nvlab_lab::report::number;
use nvlab_lab::report::page::{Axis, Curves, Page as Frame, Series, Table, escape};
use nvlab_units::{Histogram, Span};
use nvlab_workload::Op;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Looks closer together than this see the same rates.
const APART: Duration = Duration::from_millis(500);
/// Looks that the curves show.
const REMEMBERED: usize = 120;
/// After so long without a look the curves start anew.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// The samples so far.
#[derive(Default)]
pub(super) struct Page {
    last: Option<(Instant, Vec<Counts>)>,
    /// For each look, what each device did since the look before.
    seen: VecDeque<(Instant, Vec<Sample>)>,
}

/// What a device did between two looks.
#[derive(Clone, Copy, Default)]
struct Sample {
    read_per_s: f64,
    write_per_s: f64,
    iops: f64,
    /// Median and 99 % of reads, then of writes; 0 if there were none.
    latency: [[Span; 2]; 2],
    /// Units programmed for each the host wrote; 0 if it wrote none.
    amplification: f64,
}

impl Page {
    /// Returns the page as of now.
    pub(super) fn html(&mut self, drives: &[Arc<Drive>]) -> String {
        let (now, counts) =
            (Instant::now(), drives.iter().map(|drive| drive.counts()).collect::<Vec<Counts>>());
        self.look(now, &counts);
        let mut page = Frame::new("nvlab serve").refresh(1);
        for (number, (drive, counts)) in drives.iter().zip(&counts).enumerate() {
            let samples: Vec<(f64, Sample)> = self
                .seen
                .iter()
                .map(|(at, look)| (-now.duration_since(*at).as_secs_f64(), look[number]))
                .collect();
            let last = samples.last().map(|(_, sample)| *sample).unwrap_or_default();
            let html = state(drive, counts) + &figures(counts, last) + &curves(&samples);
            page.section(&format!("device-{number}"), drive.name(), "", &html);
        }
        page.html()
    }

    fn look(&mut self, now: Instant, counts: &[Counts]) {
        let Some((then, before)) = &self.last else {
            self.last = Some((now, counts.to_vec()));
            return;
        };
        let since = now - *then;
        if since < APART {
            return;
        }
        let sample = |(before, now): (&Counts, &Counts)| Sample::between(before, now, since.as_secs_f64());
        let samples = before.iter().zip(counts).map(sample).collect();
        if since > FORGOTTEN {
            self.seen.clear();
        }
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back((now, samples));
        self.last = Some((now, counts.to_vec()));
    }
}

impl Sample {
    fn between(before: &Counts, now: &Counts, seconds: f64) -> Sample {
        let none;
        // After a power cut counts start anew.
        let before = if before.cuts == now.cuts {
            before
        } else {
            none = Counts::default();
            &none
        };
        let [old, new] = [&before.totals, &now.totals];
        let bytes = |op: Op| (new[op as usize].bytes - old[op as usize].bytes) as f64 / seconds;
        let count = |op: &Op| new[*op as usize].count() - old[*op as usize].count();
        let latency = |op: Op| recent(&old[op as usize].latency, &new[op as usize].latency);
        let host = now.device.host_units - before.device.host_units;
        let programmed = now.device.programmed_units - before.device.programmed_units;
        Sample {
            read_per_s: bytes(Op::Read),
            write_per_s: bytes(Op::Write),
            iops: Op::ALL.iter().map(count).sum::<u64>() as f64 / seconds,
            latency: [latency(Op::Read), latency(Op::Write)],
            amplification: if host == 0 { 0.0 } else { programmed as f64 / host as f64 },
        }
    }
}

/// Median and 99th percentile of what was added to a histogram.
fn recent(before: &Histogram, now: &Histogram) -> [Span; 2] {
    let mut old = before.buckets().peekable();
    let mut came = Vec::new();
    for (bound, count) in now.buckets() {
        // Buckets never shrink, so each old one is among the new.
        let had = old.next_if(|&(old, _)| old == bound).map_or(0, |(_, count)| count);
        came.push((bound, count - had));
    }
    let all = now.count() - before.count();
    [0.5, 0.99].map(|share| {
        let mut left = (all as f64 * share).ceil() as u64;
        let reached = came.iter().find(|&&(_, count)| {
            left = left.saturating_sub(count);
            left == 0
        });
        reached.filter(|_| all > 0).map_or(Span::ZERO, |&(bound, _)| bound)
    })
}

fn state(drive: &Drive, counts: &Counts) -> String {
    let mut html = String::new();
    if let Some(why) = &counts.lost {
        html += &format!("<p><strong class=\"warn\">Lost: {}</strong></p>\n", escape(why));
    }
    let (size, power) = (number::bytes(drive.capacity_bytes() as f64), counts.lost.is_none());
    html += &format!("<p>{size}, power {}", if power { "on" } else { "off" });
    if let Some(cut) = counts.last_cut {
        html += &format!(
            "; {} so far, the last after {} operations, recovered in {}",
            number::things(counts.cuts, "power cut"),
            number::count(cut.operations),
            number::time_s(cut.recovery.seconds())
        );
    }
    html + ".</p>\n"
}

fn figures(counts: &Counts, now: Sample) -> String {
    let mut table = Table::new("", 1, &["", "now", "p50", "p99", "since power-on", "p50", "p99"]);
    let time = |span: Span| match span {
        Span::ZERO => "–".to_string(),
        span => number::time_ns(span.ps() as f64 / 1000.0).to_string(),
    };
    for (name, op, rate, latency) in [
        ("read", Op::Read, now.read_per_s, now.latency[0]),
        ("write", Op::Write, now.write_per_s, now.latency[1]),
    ] {
        let all = &counts.totals[op as usize];
        let [p50, p99] = latency.map(time);
        let [all_p50, all_p99] = recent(&Histogram::new(), &all.latency).map(time);
        let (rate, bytes) =
            (number::bandwidth(rate).to_string(), number::bytes(all.bytes as f64).to_string());
        table.row(&[name.to_string(), rate, p50, p99, bytes, all_p50, all_p99]);
    }
    let device = &counts.device;
    let amplification = match device.host_units {
        0 => "–".to_string(),
        host => format!("{:.2}", device.programmed_units as f64 / host as f64),
    };
    let mut html = table.html();
    html += &format!("<p>{}; write amplification {amplification}", number::per_second(now.iops));
    if let Some(wear) = counts.wear {
        html += &format!(
            "; {} erases; wear {:.2} of {} cycles on average, {} at least, {} at most",
            number::count(device.erases),
            wear.mean,
            number::count(wear.rated.into()),
            wear.min,
            wear.max
        );
    }
    html + ".</p>\n"
}

/// Curves of what was seen; times are in seconds, negative: before now.
fn curves(samples: &[(f64, Sample)]) -> String {
    let line = |name: &str, of: fn(&Sample) -> f64| {
        Series::new(name, samples.iter().map(|(at, sample)| (*at, of(sample))).collect())
    };
    fn ns(span: Span) -> f64 {
        span.ps() as f64 / 1000.0
    }
    let plot = |title: &str, y: Axis, series: Vec<Series>| {
        Curves::new(title, Axis::linear("seconds before now").including(-60.0).including(0.0), y, series)
            .html()
    };
    let rate = Axis::linear("bytes per second").text(|value| number::bandwidth(value).to_string());
    let time = Axis::linear("latency").text(|value| number::time_ns(value).to_string());
    let plots = [
        plot("Throughput", rate, vec![line("read", |s| s.read_per_s), line("write", |s| s.write_per_s)]),
        plot(
            "99 % latency",
            time,
            vec![line("read", |s| ns(s.latency[0][1])), line("write", |s| ns(s.latency[1][1]))],
        ),
        plot(
            "Write amplification",
            Axis::linear("units programmed for each unit written"),
            vec![line("", |s| s.amplification)],
        ),
    ];
    format!("<div class=\"plots\">\n{}</div>\n", plots.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_came_since() {
        let (mut before, mut now) = (Histogram::new(), Histogram::new());
        for _ in 0..1000 {
            before.add(Span::from_us(7000));
            now.add(Span::from_us(7000));
        }
        assert_eq!(recent(&before, &now), [Span::ZERO; 2]);
        (0..98).for_each(|_| now.add(Span::from_us(10)));
        (0..2).for_each(|_| now.add(Span::from_us(300)));
        let [p50, p99] = recent(&before, &now);
        let near = |found: Span, us: u64| (found.ps() as f64 / (us as f64 * 1e6) - 1.0).abs() < 0.1;
        assert!(near(p50, 10) && near(p99, 300), "{p50} {p99}");
    }

    #[test]
    fn rates_are_between_two_looks_and_begin_anew_with_the_power() {
        let mut page = Page::default();
        let begun = Instant::now();
        let mut counts = Counts::default();
        page.look(begun, std::slice::from_ref(&counts));
        counts.totals[Op::Write as usize].bytes = 4000;
        (0..8).for_each(|_| counts.totals[Op::Write as usize].latency.add(Span::ZERO));
        (counts.device.host_units, counts.device.programmed_units) = (2, 3);
        // Too soon.
        page.look(begun + Duration::from_millis(100), std::slice::from_ref(&counts));
        assert!(page.seen.is_empty());
        page.look(begun + Duration::from_secs(2), std::slice::from_ref(&counts));
        let sample = page.seen[0].1[0];
        assert_eq!((sample.write_per_s, sample.iops, sample.amplification), (2000.0, 4.0, 1.5));
        let again = Counts { cuts: 1, ..Counts::default() };
        page.look(begun + Duration::from_secs(3), &[again]);
        assert_eq!(page.seen[1].1[0].write_per_s, 0.0);
        for second in 4..400 {
            page.look(begun + Duration::from_secs(second), std::slice::from_ref(&counts));
        }
        assert_eq!(page.seen.len(), REMEMBERED);
    }
}
