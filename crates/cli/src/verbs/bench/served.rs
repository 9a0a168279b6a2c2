//! `nvlab bench --served`: speed of serving every design on this computer, compared with the promised rates.

use crate::args::Bench;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_design::{BUILT_IN, Design};
use nvlab_serve::bench::{self, BenchSize, Kind, Served};
use nvlab_workload::Serves;
use std::time::Duration;

/// Requests of 4 KiB a second, 32 under way.
const SMALL_GOAL: f64 = 20_000.0;
/// Bytes a second in requests of 64 KiB, unless the modelled device has less. First writes, which the host's memory bounds (some
/// 500 MB/s where a virtual machine has to ask for it), are shown and not judged.
const LARGE_GOAL: f64 = 1e9;

const WHOLE: BenchSize =
    BenchSize { each: Duration::from_secs(1), requests: u64::MAX, span_bytes: 256 << 20 };
const SMOKE: BenchSize = BenchSize { each: Duration::from_secs(1), requests: 32, span_bytes: 1 << 20 };

pub fn bench(output: &Output, args: &Bench) -> Result<(), Failure> {
    let names = match (args.designs.is_empty(), args.smoke) {
        (false, _) => args.designs.clone(),
        (true, true) => vec!["bench-4g".to_string()],
        (true, false) => BUILT_IN.iter().map(|(name, _)| name.to_string()).collect(),
    };
    let size = if args.smoke { SMOKE } else { WHOLE };
    let mut rows = Vec::new();
    for name in names {
        let design = Design::load(&name, &[]).map_err(|errors| Failure::Input(errors.to_string()))?;
        // A log has no blocks, and zones are not written at random.
        if matches!(design.ftl.kind().serves(), Serves::Commits | Serves::Zones(_)) {
            continue;
        }
        output.note(format_args!("{name}: served over NBD, --time fast"));
        match bench::bench(&name, &design, size) {
            Ok(served) => rows.push(row(&name, &served)),
            Err(error) => output.warn(format!("{name}: {error}")),
        }
    }
    let columns = vec![
        Column::text("design", "design"),
        Column::number("small_writes_per_s", "4 KiB writes/s"),
        Column::number("small_reads_per_s", "reads/s"),
        Column::number("large_writes_bytes_per_s", "64 KiB writes, MB/s"),
        Column::number("modelled_writes_bytes_per_s", "own"),
        Column::number("large_reads_bytes_per_s", "reads, MB/s"),
        Column::number("modelled_reads_bytes_per_s", "own"),
        Column::number("first_small_writes_per_s", "first 4 KiB/s"),
        Column::number("first_large_writes_bytes_per_s", "64 KiB, MB/s"),
        Column::number("cut_s", "cut, ms"),
        Column::number("memory_bytes", "memory, MiB"),
        Column::text("meets", "promise"),
    ];
    output.table(&Table { schema: "nvlab.bench-served/2", columns, rows });
    Ok(())
}

fn row(name: &str, served: &Served) -> Vec<Cell> {
    let rate = |kind: Kind| Cell::new(format!("{:.0}", kind.served), kind.served);
    let megabytes = |rate: f64| Cell::new(format!("{:.0}", rate / 1e6), rate);
    let bytes = |rate: f64| rate * Served::LARGE_BYTES as f64;
    let (writes, reads) = (served.large_writes, served.large_reads);
    let fast = |kind: Kind| bytes(kind.served) >= LARGE_GOAL.min(bytes(kind.modelled));
    let small = [served.small_writes, served.small_reads].iter().all(|kind| kind.served >= SMALL_GOAL);
    let meets = small && fast(writes) && fast(reads);
    vec![
        Cell::text(name),
        rate(served.small_writes),
        rate(served.small_reads),
        megabytes(bytes(writes.served)),
        megabytes(bytes(writes.modelled)),
        megabytes(bytes(reads.served)),
        megabytes(bytes(reads.modelled)),
        rate(served.first_small_writes),
        megabytes(bytes(served.first_large_writes.served)),
        Cell::new(format!("{:.1}", served.cut.as_secs_f64() * 1e3), served.cut.as_secs_f64()),
        Cell::new(format!("{}", served.memory_bytes >> 20), served.memory_bytes),
        Cell::new(if meets { "" } else { "BELOW" }, meets),
    ]
}
