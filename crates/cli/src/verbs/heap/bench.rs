//! `nvlab heap bench`: the cost of each layer of safety for a program with persistent objects.

use crate::args::HeapBench;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_nvheap::Delays;
use nvlab_run::heap::{self, Counted, Row, Settings};
use nvlab_workload::objects::Workload;

pub fn bench(output: &Output, args: &HeapBench) -> Result<(), Failure> {
    let delays = Delays { read_ns: args.read_ns, write_ns: args.write_ns, is_waited_for: false };
    let settings = Settings {
        elements: args.elements,
        operations: args.operations,
        seconds: args.seconds,
        threads: args.threads.clone(),
        delays,
    };
    settings.check().map_err(Failure::Input)?;
    if cfg!(debug_assertions) {
        output.warn("this is a debug build: the times are meaningless");
    }
    let workloads = if args.workload.is_empty() { Workload::ALL.to_vec() } else { args.workload.clone() };
    let mut rows = Vec::new();
    for workload in workloads {
        let name = workload.name();
        let mut tell = |what: &str| output.note(format_args!("{name}: {what}"));
        let measured = heap::bench(workload, &settings, &args.dir, &mut tell);
        let measured = measured.map_err(|error| Failure::Machine(format!("{name}: {error}")))?;
        rows.extend(measured.iter().map(row));
    }
    let columns = vec![
        Column::text("workload", "workload"),
        Column::text("layer", "layer"),
        Column::number("threads", "T"),
        Column::number("cpu_ns", "CPU-ns/op"),
        Column::number("cpu_ns_min", "min"),
        Column::number("cpu_ns_max", "max"),
        Column::number("fences", "fences"),
        Column::number("written_lines", "lines written"),
        Column::number("read_lines", "lines opened"),
        Column::number("charged_ns", "charged ns"),
        Column::number("total_ns", "total ns"),
        Column::number("factor", "x base"),
    ];
    let table = Table { schema: "nvlab.heap-bench/1", columns, rows };
    output.table(&table);
    output.note(format_args!(
        "pointers: {} operations share a transaction; delays: the CPU time of durable plus {} ns per line opened and {} ns per line \
         written, counted by a simulated cache with one thread; nothing waited",
        nvlab_workload::objects::TOGETHER,
        delays.read_ns,
        delays.write_ns
    ));
    Ok(())
}

fn row(row: &Row) -> Vec<Cell> {
    let ns = |ns: f64| Cell::new(format!("{ns:.0}"), ns);
    let counted = |of: fn(&Counted) -> f64| {
        Cell::or_dash(row.counted.as_ref(), |counted| Cell::new(format!("{:.2}", of(counted)), of(counted)))
    };
    vec![
        Cell::text(row.workload.name()),
        Cell::text(row.cost.name()),
        Cell::new(row.threads.to_string(), row.threads),
        ns(row.cpu_ns),
        ns(row.cpu_ns_spread[0]),
        ns(row.cpu_ns_spread[1]),
        counted(|counted| counted.fences),
        counted(|counted| counted.written_lines),
        counted(|counted| counted.read_lines),
        ns(row.charged_ns),
        ns(row.total_ns()),
        Cell::new(format!("{:.2}", row.factor), row.factor),
    ]
}
