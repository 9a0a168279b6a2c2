//! Programs that keep objects, as traces: `heap:durable-sps` and so on. Each operation computes, then waits for the lines it opens,
//! one after the other, then for those it writes, one after the other, then for a fence, which is a flush.
//!
//! 1. What an operation of nvheap does to memory is counted while it runs, on a simulated cache: nothing is recorded, and a change
//!    of nvheap changes the program.
//! 2. How long an operation computes is measured beforehand, on one machine: a trace is a function of its name. The file
//!    `traces/objects/cpu.csv` has it, and how many lines an operation of `unsafe` writes; `traces/README.md` says how it was
//!    made. `unsafe` is charged for no lines that it reads: they were not counted.
//! 3. Which lines they are is not kept: each is somewhere in the first 64 MiB.

use super::{Layer, Result, Workload, scramble};
use crate::{Op, Request, Span, Time};
use nvlab_nvheap::{Counts, Delays};
use nvlab_trace::columns::{Columns, Origin};
use std::path::Path;

/// Operations of a program.
const OPERATIONS: u64 = 2000;
const LINE_BYTES: u32 = 64;
/// Lines of the first 64 MiB.
const LINES: u64 = 1 << 20;
const INPUTS: &str = include_str!("../../../../traces/objects/cpu.csv");

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    /// A layer of safety.
    Layer(Layer),
    /// The structures of plain memory in which the changed lines are written back and one fence ends an operation: half an
    /// operation may survive a crash.
    Unsafe,
}

/// What was measured of a workload on a store.
#[derive(Clone, Copy, Debug)]
struct Input {
    elements: u64,
    cpu_ns: f64,
    written_lines: f64,
}

impl Store {
    const ALL: [Store; 5] = [
        Store::Layer(Layer::Base),
        Store::Layer(Layer::Pointers),
        Store::Layer(Layer::Transactions),
        Store::Layer(Layer::Durable),
        Store::Unsafe,
    ];

    fn name(self) -> &'static str {
        match self {
            Store::Layer(layer) => layer.name(),
            Store::Unsafe => "unsafe",
        }
    }

    /// The line of `traces/objects/cpu.csv`.
    fn input(self, workload: Workload) -> Input {
        let mut lines = INPUTS.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let found = lines.find(|fields| fields[0] == self.name() && fields[1] == workload.name());
        let fields = found.unwrap_or_else(|| panic!("{} {} was measured", self.name(), workload.name()));
        let number = |field: &str| field.parse::<f64>().unwrap_or_else(|_| panic!("a number: {field}"));
        Input {
            elements: number(fields[2]) as u64,
            cpu_ns: number(fields[3]),
            written_lines: number(fields[4]),
        }
    }
}

/// What `heap:NAME` may name.
pub fn names() -> impl Iterator<Item = String> {
    let named = |store: Store| Workload::ALL.map(|workload| format!("{}-{}", store.name(), workload.name()));
    Store::ALL.into_iter().flat_map(named)
}

/// The program of a name; `None`: there is none.
pub fn program(name: &str) -> Option<Result<Columns>> {
    Store::ALL.into_iter().find_map(|store| {
        let rest = name.strip_prefix(store.name())?.strip_prefix('-')?;
        let workload = Workload::ALL.into_iter().find(|workload| workload.name() == rest)?;
        Some(columns(store, workload))
    })
}

fn columns(store: Store, workload: Workload) -> Result<Columns> {
    let input = store.input(workload);
    let mut writer = Writer::new(input.cpu_ns);
    match store {
        Store::Layer(Layer::Base) => (0..OPERATIONS).for_each(|_| writer.compute()),
        Store::Unsafe => {
            let until = |operation: u64| (operation as f64 * input.written_lines) as u64;
            (0..OPERATIONS).for_each(|i| {
                writer.compute();
                writer.memory(0, until(i + 1) - until(i), true);
            });
        }
        Store::Layer(layer) => {
            let mut done = 0;
            let mut each = |counts: Counts| {
                done += 1;
                // After the last operation the heap is closed, which writes home what is in the log only.
                if done <= OPERATIONS {
                    writer.compute();
                }
                match layer {
                    Layer::Durable => {
                        let written = counts.streamed_lines + counts.flushed_lines;
                        writer.memory(counts.read_lines, written, counts.fences > 0);
                    }
                    _ => writer.memory(counts.read_lines, 0, false),
                }
            };
            let folder = std::env::temp_dir();
            let folder = if Path::new("/dev/shm").is_dir() { Path::new("/dev/shm") } else { &folder };
            workload.count(input.elements, OPERATIONS, Delays::PCM, folder, &mut each)?;
        }
    }
    Ok(writer.finish())
}

/// Operations one after the other, as requests that are answered at once: a replay keeps what is computed in between.
struct Writer {
    columns: Columns,
    cpu: Span,
    now: Time,
    lines: u64,
}

impl Writer {
    fn new(cpu_ns: f64) -> Writer {
        let columns = Columns::new(Origin { format: "objects".into(), hash: 0 });
        Writer { columns, cpu: Span::from_ps((cpu_ns * 1000.0).round() as u64), now: Time::ZERO, lines: 0 }
    }

    fn compute(&mut self) {
        self.now += self.cpu;
    }

    fn memory(&mut self, reads: u64, writes: u64, is_fenced: bool) {
        for (count, op) in [(reads, Op::Read), (writes, Op::Write)] {
            for _ in 0..count {
                self.lines += 1;
                let offset = scramble(self.lines) % LINES * u64::from(LINE_BYTES);
                self.push(Request { offset, bytes: LINE_BYTES, op, ..Request::default() });
            }
        }
        if is_fenced {
            self.push(Request { op: Op::Flush, ..Request::default() });
        }
    }

    fn push(&mut self, request: Request) {
        self.columns.push_answered(Request { at: self.now, ..request }, Span::ZERO);
    }

    /// The last request is a flush: what is computed before it counts.
    fn finish(mut self) -> Columns {
        self.push(Request { op: Op::Flush, ..Request::default() });
        let words =
            self.columns.iter().flat_map(|request| [request.at.ps(), request.offset, request.op as u64]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        self.columns.origin.hash = xxhash_rust::xxh3::xxh3_64(&bytes);
        self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name has an input; what needs no heap is checked by hand.
    #[test]
    fn programs_compute_and_write_what_was_measured() {
        assert_eq!(names().count(), 20);
        for workload in Workload::ALL {
            let input = Store::Unsafe.input(workload);
            let columns = columns(Store::Unsafe, workload).unwrap();
            let writes = columns.ops().filter(|&op| op == Op::Write).count() as f64;
            assert!((writes - 2000.0 * input.written_lines).abs() <= 1.0, "{workload:?}: {writes}");
            assert_eq!(columns.ops().filter(|&op| op == Op::Flush).count(), 2001);
            let last = *columns.at_ps().last().unwrap() as f64;
            assert!((last / (2000.0 * input.cpu_ns * 1000.0) - 1.0).abs() < 1e-3, "{workload:?}: {last} ps");

            let base = super::columns(Store::Layer(Layer::Base), workload).unwrap();
            assert_eq!(base.len(), 1, "plain memory waits for nothing");
        }
        assert!(program("durable-bank").is_none() && program("nothing-sps").is_none());
    }

    /// Where things lie in the heap does not depend on anything random.
    #[test]
    fn a_program_of_nvheap_is_the_same_each_time() {
        let [one, other] = [(); 2].map(|()| program("durable-hash").unwrap().unwrap());
        assert!(one == other, "{} and {} requests", one.len(), other.len());
        let fences = one.ops().filter(|&op| op == Op::Flush).count();
        assert_eq!(fences, 2002, "one an operation, closing the heap, and the end");
    }
}
