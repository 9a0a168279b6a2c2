//! The live page: what is asked of the devices, how long it takes, what it does to them. Without scripts: the browser asks
//! for it again every second.
//!
//! Rates and percentiles are of the time between two looks; the curves remember only while somebody looks, so that a
//! device nobody looks at pays nothing.

use crate::served::{Counts, Drive};
use nvlab_lab::report::number;
use nvlab_units::{Histogram, Span};
use nvlab_workload::Op;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Looks that come closer together than this see the same rates.
const APART: Duration = Duration::from_millis(500);
/// Looks that the curves remember.
const REMEMBERED: usize = 120;
/// After so long without a look curves begin anew.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// What was seen so far.
#[derive(Default)]
pub(super) struct Page {
    last: Option<(Instant, Vec<Counts>)>,
    /// For each look, what each device did since the look before.
    seen: VecDeque<Vec<Sample>>,
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
    /// The page of now.
    pub(super) fn html(&mut self, drives: &[Arc<Drive>]) -> String {
        let counts: Vec<Counts> = drives.iter().map(|drive| drive.counts()).collect();
        self.look(Instant::now(), &counts);
        let mut text = String::from(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>nvlab serve</title>\
             <meta http-equiv=\"refresh\" content=\"1\"><meta name=\"viewport\" content=\"width=device-width\">\
             <link rel=\"stylesheet\" href=\"/style.css\"></head><body>\n<h1>nvlab serve</h1>\n",
        );
        for (number, (drive, counts)) in drives.iter().zip(&counts).enumerate() {
            let _ = writeln!(text, "<h2>{}</h2>", escaped(drive.name()));
            state(&mut text, drive, counts);
            let samples: Vec<Sample> = self.seen.iter().map(|look| look[number]).collect();
            figures(&mut text, counts, samples.last().copied().unwrap_or_default());
            curves(&mut text, &samples);
        }
        text += "</body></html>\n";
        text
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
        self.seen.push_back(samples);
        self.last = Some((now, counts.to_vec()));
    }
}

impl Sample {
    fn between(before: &Counts, now: &Counts, seconds: f64) -> Sample {
        let none;
        // After a power cut counts begin anew.
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

/// Median and 99 % of what came to a histogram.
fn recent(before: &Histogram, now: &Histogram) -> [Span; 2] {
    let mut old = before.buckets().peekable();
    let mut came = Vec::new();
    for (bound, count) in now.buckets() {
        // Buckets never lose anything, so that each old one is among the new.
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

fn state(text: &mut String, drive: &Drive, counts: &Counts) {
    let size = number::bytes(drive.capacity_bytes() as f64);
    if let Some(why) = &counts.lost {
        let _ = writeln!(text, "<p class=\"lost\">Lost: {}</p>", escaped(why));
    }
    let _ = write!(text, "<p>{size}, power {}", if counts.lost.is_some() { "off" } else { "on" });
    if let Some(cut) = counts.last_cut {
        let found = number::time_s(cut.recovery.seconds());
        let _ = write!(
            text,
            "; {} so far, the last after {} operations, everything found again in {found}",
            number::things(counts.cuts, "power cut"),
            number::count(cut.operations)
        );
    }
    *text += ".</p>\n";
}

fn figures(text: &mut String, counts: &Counts, now: Sample) {
    *text += "<table><tr><th></th><th>now</th><th>p50</th><th>p99</th><th>since power-on</th><th>p50</th><th>p99</th>\
              </tr>\n";
    let time = |span: Span| match span {
        Span::ZERO => "-".to_string(),
        span => number::time_ns(span.ps() as f64 / 1000.0).to_string(),
    };
    for (name, op, rate, [p50, p99]) in [
        ("read", Op::Read, now.read_per_s, now.latency[0]),
        ("write", Op::Write, now.write_per_s, now.latency[1]),
    ] {
        let all = &counts.totals[op as usize];
        let [all_p50, all_p99] = recent(&Histogram::new(), &all.latency).map(time);
        let _ = writeln!(
            text,
            "<tr><td>{name}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{all_p50}</td><td>{all_p99}</td></tr>",
            number::bandwidth(rate),
            time(p50),
            time(p99),
            number::bytes(all.bytes as f64),
        );
    }
    *text += "</table>\n";
    let device = &counts.device;
    let amplification = match device.host_units {
        0 => "-".to_string(),
        host => format!("{:.2}", device.programmed_units as f64 / host as f64),
    };
    let _ = write!(text, "<p>{}; write amplification {amplification}", number::per_second(now.iops));
    if let Some(wear) = counts.wear {
        let _ = write!(
            text,
            "; {} erases; wear {:.2} of {} cycles on average, {} at least, {} at most",
            number::count(device.erases),
            wear.mean,
            number::count(wear.rated.into()),
            wear.min,
            wear.max
        );
    }
    *text += ".</p>\n";
}

fn curves(text: &mut String, samples: &[Sample]) {
    let us = |span: Span| span.ps() as f64 / 1000.0;
    let rate = |value: f64| number::bandwidth(value).to_string();
    let time = |value: f64| number::time_ns(value).to_string();
    curve(text, "read", samples.iter().map(|sample| sample.read_per_s), rate);
    curve(text, "write", samples.iter().map(|sample| sample.write_per_s), rate);
    curve(text, "read p99", samples.iter().map(|sample| us(sample.latency[0][1])), time);
    curve(text, "write p99", samples.iter().map(|sample| us(sample.latency[1][1])), time);
    curve(text, "write amplification", samples.iter().map(|sample| sample.amplification), |value| {
        format!("{value:.2}")
    });
}

/// A line of at most [`REMEMBERED`] points, newest at the right, from 0 to the largest.
fn curve(text: &mut String, name: &str, values: impl Iterator<Item = f64>, shown: impl Fn(f64) -> String) {
    let values: Vec<f64> = values.collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    let first = REMEMBERED - values.len();
    let point = |(index, value): (usize, &f64)| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        format!("{},{:.1}", (first + index) * 2, 58.0 - 56.0 * share)
    };
    let points = values.iter().enumerate().map(point).collect::<Vec<_>>().join(" ");
    let _ = writeln!(
        text,
        "<figure><svg width=\"240\" height=\"60\" viewBox=\"0 0 240 60\" role=\"img\" aria-label=\"{name}, at most {most}\">\
         <polyline points=\"{points}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\"/></svg>\
         <figcaption>{name}, at most {most}</figcaption></figure>",
        most = shown(most)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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
        let sample = page.seen[0][0];
        assert_eq!((sample.write_per_s, sample.iops, sample.amplification), (2000.0, 4.0, 1.5));
        let again = Counts { cuts: 1, ..Counts::default() };
        page.look(begun + Duration::from_secs(3), &[again]);
        assert_eq!(page.seen[1][0].write_per_s, 0.0);
        for second in 4..400 {
            page.look(begun + Duration::from_secs(second), std::slice::from_ref(&counts));
        }
        assert_eq!(page.seen.len(), REMEMBERED);
    }

    #[test]
    fn names_cannot_write_the_page() {
        assert_eq!(escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}
