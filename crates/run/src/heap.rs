//! `nvlab heap bench`: the cost of each layer of safety for a program with persistent objects, measured on this
//! computer.
//!
//! The layers are [`Layer`]s; in addition, [`Cost::Delayed`] charges the durable one for a memory slower than DRAM:
//! the CPU time measured on this computer plus the delays of the lines that a simulated cache counts. That sum is
//! virtual: nothing waits, and the overlap in a processor is not subtracted.

use cpu_time::ProcessTime;
use nvlab_nvheap::{Counts, Delays};
use nvlab_workload::objects::measure::{Clocks, Run, Took, measure};
use nvlab_workload::objects::{Driver, Error, Layer, Result, Stores, Visit, Workload};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Elements of the array, keys, nodes (as many as the greatest power of two).
    pub elements: u64,
    /// The most operations of a thread in a run; so many are counted.
    pub operations: u64,
    /// The longest run, in seconds.
    pub seconds: f64,
    /// Runs with so many threads each.
    pub threads: Vec<u64>,
    /// Delays of the memory that is charged for.
    pub delays: Delays,
}

impl Settings {
    /// Fails, with the valid range, if nothing can be measured.
    pub fn check(&self) -> std::result::Result<(), String> {
        let Settings { elements, threads, .. } = self;
        if !(1024..=1 << 24).contains(elements) {
            return Err(format!("{elements} elements: write a number from 1024 to 16777216"));
        }
        if self.operations < 9 * TOGETHER_MAX {
            return Err(format!("{} operations: write at least {}", self.operations, 9 * TOGETHER_MAX));
        }
        match threads.iter().find(|&&count| !(1..=32).contains(&count) || !elements.is_multiple_of(count)) {
            Some(count) => Err(format!(
                "{count} threads: write numbers from 1 to 32 that divide the {elements} elements"
            )),
            None => Ok(()),
        }
    }
}

/// A slice, of nine, has at least so many operations.
const TOGETHER_MAX: u64 = nvlab_workload::objects::TOGETHER;

/// What is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// A layer.
    Layer(Layer),
    /// The durable layer on a slower memory.
    Delayed,
}

impl Cost {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Cost::Layer(layer) => layer.name(),
            Cost::Delayed => "delays",
        }
    }
}

/// A row of the table: means of an operation.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was done.
    pub workload: Workload,
    /// On what.
    pub cost: Cost,
    /// By how many threads.
    pub threads: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: f64,
    /// The lowest and highest of eight slices.
    pub cpu_ns_spread: [f64; 2],
    /// Memory operations of one thread; for layers that make nothing durable, lines of opened objects.
    pub counted: Option<Counted>,
    /// Delays charged, in nanoseconds.
    pub charged_ns: f64,
    /// How many times the base of as many threads it takes.
    pub factor: f64,
}

impl Row {
    /// CPU time and delays.
    pub fn total_ns(&self) -> f64 {
        self.cpu_ns + self.charged_ns
    }
}

/// What an operation did to memory, on average.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Waits for memory.
    pub fences: f64,
    /// Lines written to memory.
    pub written_lines: f64,
    /// Lines of objects opened.
    pub read_lines: f64,
    /// Delays for them, in nanoseconds.
    pub charged_ns: f64,
}

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
const CLOCKS: Clocks = Clocks {
    cpu_s: || ProcessTime::now().as_duration().as_secs_f64(),
    wall_s: || BEGAN.elapsed().as_secs_f64(),
};

/// Measures a workload on every layer, in heaps in new files in `folder`, and passes on what it is about to do. Every store is
/// verified; the first failure ends it.
pub fn bench(
    workload: Workload,
    settings: &Settings,
    folder: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    tell("counting lines");
    let counted = counted(workload, settings, folder)?;
    let (mut rows, mut bases) = (Vec::new(), Vec::new());
    for layer in Layer::ALL {
        tell(layer.name());
        let folder = tempfile::tempdir_in(folder)?;
        let path = folder.path().join("heap");
        let runs = workload.visit(settings.elements, Layered { layer, settings, path: &path })?;
        if layer == Layer::Base {
            bases.extend(runs.iter().map(|took| took.cpu_ns));
        }
        for ((took, &threads), base) in runs.iter().zip(&settings.threads).zip(&bases) {
            let row = |cost, counted, charged_ns| {
                let factor = (took.cpu_ns + charged_ns) / base;
                let Took { cpu_ns, cpu_ns_spread, .. } = *took;
                Row { workload, cost, threads, cpu_ns, cpu_ns_spread, counted, charged_ns, factor }
            };
            rows.push(row(Cost::Layer(layer), counted_on(layer, counted), 0.0));
            if layer == Layer::Durable {
                rows.push(row(Cost::Delayed, Some(counted), counted.charged_ns));
            }
        }
    }
    Ok(rows)
}

/// What is known of a layer's lines: objects are opened alike on all layers of nvheap.
fn counted_on(layer: Layer, counted: Counted) -> Option<Counted> {
    match layer {
        Layer::Base => None,
        Layer::Pointers | Layer::Transactions => {
            Some(Counted { read_lines: counted.read_lines, ..Counted::default() })
        }
        Layer::Durable => Some(counted),
    }
}

fn counted(workload: Workload, settings: &Settings, folder: &Path) -> Result<Counted> {
    let operations = settings.operations.min(COUNTED_MAX);
    let mut all = Counts::default();
    workload.count(settings.elements, operations, settings.delays, folder, &mut |counts| {
        all = all.plus(&counts);
    })?;
    let mean = |count: u64| count as f64 / operations as f64;
    Ok(Counted {
        fences: mean(all.fences),
        written_lines: mean(all.streamed_lines + all.flushed_lines),
        read_lines: mean(all.read_lines),
        charged_ns: mean(all.charged_ns),
    })
}

/// More operations do not change the means.
const COUNTED_MAX: u64 = 20_000;

struct Layered<'a> {
    layer: Layer,
    settings: &'a Settings,
    path: &'a Path,
}

impl Visit for Layered<'_> {
    type Output = Vec<Took>;
    fn visit<D: Driver>(self, mut driver: D, stores: Stores<D>) -> Result<Vec<Took>> {
        let _alone = nvlab_workload::objects::persistent::alone();
        let store = stores.create(self.layer, self.path)?;
        driver.load(&store)?;
        let mut all = Vec::new();
        for (number, &threads) in (1..).zip(&self.settings.threads) {
            let (operations, seconds) = (self.settings.operations, self.settings.seconds);
            let run = Run { number, threads, operations, seconds, together: self.layer.together() };
            all.push(measure(&mut driver, &*store, &run, CLOCKS)?);
            let wrong = |error| Error::from(format!("after a run with {threads} threads: {error}"));
            driver.verify(&store).map_err(wrong)?;
        }
        D::close(store)?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_layer_and_number_of_threads() {
        let settings = Settings {
            elements: 2048,
            operations: 900,
            seconds: 10.0,
            threads: vec![1, 2],
            delays: Delays::PCM,
        };
        settings.check().unwrap();
        let rows = bench(Workload::Sps, &settings, Path::new("/dev/shm"), &mut |_| ()).unwrap();
        let names: Vec<_> = rows.iter().map(|row| (row.cost.name(), row.threads)).collect();
        let layers = ["base", "pointers", "transactions"].into_iter().flat_map(|name| [(name, 1), (name, 2)]);
        assert!(layers.eq(names[..6].iter().copied()), "{names:?}");
        assert_eq!(names[6..], [("durable", 1), ("delays", 1), ("durable", 2), ("delays", 2)]);
        let [durable, delays] = [&rows[6], &rows[7]];
        // One an operation, and six to close the heap.
        assert_eq!(durable.counted.unwrap().fences, 906.0 / 900.0);
        assert_eq!(delays.total_ns(), durable.cpu_ns + delays.charged_ns);
        let counted = delays.counted.unwrap();
        let charged = 67.0 * counted.read_lines + 215.0 * counted.written_lines;
        assert!((delays.charged_ns - charged).abs() < 1e-6, "{} {charged}", delays.charged_ns);
        assert!(rows.iter().all(|row| row.cpu_ns > 0.0 && row.factor > 0.0));
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let good =
            Settings { elements: 2048, operations: 900, seconds: 1.0, threads: vec![1], delays: Delays::PCM };
        for bad in [
            Settings { elements: 10, ..good.clone() },
            Settings { operations: 8, ..good.clone() },
            Settings { threads: vec![3], ..good.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
