//! Samples of the time of a request: slices, rounds, medians and their errors.
//!
//! A slice is so many requests to one layer, one after the other; its sample is the mean of them. The slices of all layers are
//! interleaved, so that what slows the machine for a while slows all of them.

use super::layer::Layer;
use super::probe::Probe;
use crate::sys::usage::{self, Scheduled, Usage};
use nvlab_units::Rng;
use nvlab_workload::Op;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Which part of a request's time is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, on the wall clock.
    Wall,
    /// Of a processor, by the thread that makes the requests: in the program and in the kernel.
    Client,
    /// Processor time of others: a server's threads, the kernel's workers.
    Server,
    /// The part of `Server` that the program waited for: work of others while it works itself does not count.
    Waited,
    /// Without a processor: wall minus client and waited.
    Wait,
    /// Time the program is without a processor: wall minus client. For paths on which nobody else has to work first.
    Away,
}

/// Nanoseconds a request of a slice took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// See [`Part::Wall`].
    pub wall: f64,
    /// See [`Part::Client`].
    pub client: f64,
    /// See [`Part::Server`].
    pub server: f64,
}

impl Sample {
    fn part(&self, part: Part) -> f64 {
        match part {
            Part::Wall => self.wall,
            Part::Client => self.client,
            Part::Server => self.server,
            Part::Waited => self.server.min((self.wall - self.client).max(0.0)),
            Part::Wait => self.wall - self.client - self.part(Part::Waited),
            Part::Away => self.wall - self.client,
        }
    }
}

/// Which rounds count: a whole is compared with stages from other rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// Every round.
    All,
    /// The first, the third and so on.
    Odd,
    /// The second, the fourth and so on.
    Even,
}

/// Many samples in short, in nanoseconds a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stat {
    /// Half of the samples are below it.
    pub median: f64,
    /// Its standard error, from the interquartile range of the samples (as if they were normally distributed).
    pub error: f64,
    /// The interquartile range: half of the samples lie in a range of this width.
    pub spread: f64,
}

impl Stat {
    /// Of at least one sample.
    pub fn of(mut samples: Vec<f64>) -> Stat {
        samples.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (samples.len() - 1) as f64;
            let (below, above) = (samples[place.floor() as usize], samples[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        let spread = at(0.75) - at(0.25);
        // A normal distribution has an interquartile range of 1.349 deviations, and its median an error of 1.253 of them.
        let error = spread / 1.349 * 1.253 / (samples.len() as f64).sqrt();
        Stat { median: at(0.5), error, spread }
    }
}

/// The samples of requests of one kind to one layer, one a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Where the requests went.
    pub layer: Layer,
    /// Whether they read or write.
    pub op: Op,
    /// Requests of each slice, over which a sample is the mean.
    pub requests: u32,
    /// One for each round, in order.
    pub samples: Vec<Sample>,
    /// Rounds in which every try was disturbed by other programs.
    pub disturbed: u32,
}

impl Series {
    /// A part of the time in some rounds.
    pub fn stat(&self, part: Part, rounds: Rounds) -> Stat {
        let counts = |round: &usize| match rounds {
            Rounds::All => true,
            Rounds::Odd => round.is_multiple_of(2),
            Rounds::Even => !round.is_multiple_of(2),
        };
        let chosen = (0..self.samples.len()).filter(counts);
        Stat::of(chosen.map(|round| self.samples[round].part(part)).collect())
    }
}

/// Makes slices of requests to one layer.
pub(super) struct Slicer {
    offsets: Vec<u64>,
    workers: Vec<PathBuf>,
    threads: Vec<PathBuf>,
    /// Time of a slice without requests, which is that of reading the clocks.
    clocks: Sample,
}

/// As many requests as there are offsets drawn: a slice repeats none within the caches' reach.
const OFFSETS: usize = 1 << 16;

impl Slicer {
    /// For requests of `bytes` in files of `file_bytes`.
    pub fn new(file_bytes: u64, bytes: u32) -> Slicer {
        let (places, mut rng) = (file_bytes / bytes as u64, Rng::new(1));
        let offsets = (0..OFFSETS).map(|_| rng.below(places) * bytes as u64).collect();
        Slicer { offsets, workers: Vec::new(), threads: Vec::new(), clocks: Sample::default() }
    }

    /// Measures what reading the clocks adds to a slice, from slices without requests. Threads count: they come first.
    pub fn calibrate(&mut self) {
        let empty: Vec<Sample> = (0..CALIBRATIONS).filter_map(|_| Some(timed(|| Ok(())).ok()?.0)).collect();
        let median = |part: fn(&Sample) -> f64| Stat::of(empty.iter().map(part).collect()).median;
        self.clocks =
            Sample { wall: median(|s| s.wall), client: median(|s| s.client), server: median(|s| s.server) };
    }

    /// Number of requests that take about as long as `slice`.
    pub fn count(&self, probe: &mut dyn Probe, op: Op, slice: Duration) -> io::Result<u32> {
        let mut count = 1;
        // Memory is allocated and code is read at the first ones.
        probe.run(op, &self.offsets[..WARM_UP])?;
        let requests = loop {
            let begun = Instant::now();
            probe.run(op, &self.offsets[..count])?;
            let took = begun.elapsed();
            if took * 4 >= slice || count == OFFSETS {
                let wanted = slice.as_secs_f64() / took.as_secs_f64() * count as f64;
                break (wanted as u32).clamp(1, OFFSETS as u32);
            }
            count *= 2;
        };
        probe.settle()?;
        Ok(requests)
    }

    /// Looks which workers the kernel has now, and which threads this process.
    pub fn look(&mut self) {
        (self.workers, self.threads) = (usage::workers(), usage::threads());
    }

    /// Adds the sample of a slice to a series. One in which other programs took the processor is repeated, some times; if every
    /// one is disturbed, the fastest counts.
    pub fn sample(&self, probe: &mut dyn Probe, series: &mut Series) -> io::Result<()> {
        let mut best: Option<Sample> = None;
        for number in 0..TRIES {
            if number > 0 {
                // Who has slept is not the next to be preempted.
                std::thread::sleep(REST);
            }
            let (sample, disturbed) = self.slice(probe, series.layer, series.op, series.requests)?;
            if !disturbed {
                series.samples.push(sample);
                return Ok(());
            }
            if best.is_none_or(|best| sample.wall < best.wall) {
                best = Some(sample);
            }
        }
        series.disturbed += 1;
        series.samples.extend(best);
        Ok(())
    }

    /// A slice, and whether it was disturbed. Some requests before it, which are not counted, bring code and data back into the
    /// caches.
    fn slice(
        &self,
        probe: &mut dyn Probe,
        layer: Layer,
        op: Op,
        requests: u32,
    ) -> io::Result<(Sample, bool)> {
        let offsets = &self.offsets[..requests as usize];
        probe.run(op, &offsets[..offsets.len().div_ceil(8)])?;
        let workers = if layer.has_workers() { &self.workers[..] } else { &[] };
        let count = || (Scheduled::of(workers.iter()), Scheduled::of(self.threads.iter()));
        let (worked, served) = count();
        let (all, preempted) = timed(|| probe.run(op, offsets))?;
        let (worked_then, served_then) = count();
        probe.settle()?;
        let (worked, served) = (worked_then.since(worked), served_then.since(served));
        let waited_long = |threads: Scheduled| threads.queued > QUEUED_MAX * (threads.turns + 1) as u32;
        let each = |time: f64, clocks: f64| (time - clocks) / requests as f64;
        let sample = Sample {
            wall: each(all.wall, self.clocks.wall),
            client: each(all.client, self.clocks.client),
            server: each(all.server + worked.ran.as_nanos() as f64, self.clocks.server),
        };
        Ok((sample, preempted || waited_long(worked) || waited_long(served)))
    }
}

/// Requests before the first that count.
const WARM_UP: usize = 64;
const CALIBRATIONS: usize = 200;
/// Slices that are tried for one sample.
const TRIES: u32 = 5;
/// A rest before another try.
const REST: Duration = Duration::from_millis(2);
/// The longest mean wait of a thread that was woken for its processor, if nobody else wants it: to wake an idle one takes less.
const QUEUED_MAX: Duration = Duration::from_micros(25);

/// The time of all that `act` does, without workers, and whether a thread of this process was preempted meanwhile.
fn timed(act: impl FnOnce() -> io::Result<()>) -> io::Result<(Sample, bool)> {
    let (used, begun) = (Usage::now(), Instant::now());
    act()?;
    let (wall, used_then) = (begun.elapsed(), Usage::now());
    let ns = |time: Duration| time.as_nanos() as f64;
    let client = ns(used_then.thread - used.thread);
    let process = ns(used_then.process - used.process);
    let sample = Sample { wall: ns(wall), client, server: process - client };
    Ok((sample, used_then.preempted > used.preempted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_has_the_error_of_a_normal_distribution() {
        let mut rng = Rng::new(3);
        let medians = (0..400).map(|_| {
            let stat = Stat::of((0..40).map(|_| rng.normal(100.0, 8.0)).collect());
            assert!((4.0..22.0).contains(&stat.spread), "{stat:?}");
            (stat.median, stat.error)
        });
        let medians: Vec<(f64, f64)> = medians.collect();
        let mean_error = medians.iter().map(|(_, error)| error).sum::<f64>() / 400.0;
        let square = medians.iter().map(|(median, _)| (median - 100.0).powi(2)).sum::<f64>() / 400.0;
        let ratio = square.sqrt() / mean_error;
        assert!(
            (0.85..1.15).contains(&ratio),
            "the medians scatter {ratio} times as wide as their error says"
        );
    }

    #[test]
    fn series_are_split_into_odd_and_even_rounds() {
        let wall = |wall| Sample { wall, client: 1.0, server: 0.5 };
        let samples = vec![wall(10.0), wall(20.0), wall(12.0)];
        let series = Series { layer: Layer::Tmpfs, op: Op::Read, requests: 1, samples, disturbed: 0 };
        let median = |part, rounds| series.stat(part, rounds).median;
        assert_eq!(median(Part::Wall, Rounds::Odd), 11.0);
        assert_eq!(median(Part::Wall, Rounds::Even), 20.0);
        assert_eq!(median(Part::Wait, Rounds::All), 10.5);
        // Others work for 5 ns, 2 of them while the program does.
        let sample = Sample { wall: 10.0, client: 7.0, server: 5.0 };
        assert_eq!([Part::Server, Part::Waited, Part::Wait].map(|part| sample.part(part)), [5.0, 3.0, 0.0]);
        assert_eq!(Stat::of(vec![4.0]), Stat { median: 4.0, error: 0.0, spread: 0.0 });
    }
}
