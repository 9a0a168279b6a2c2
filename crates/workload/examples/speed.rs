//! How fast requests are generated, parsed and replayed: `cargo run --release -p nvlab-workload --example speed`.
//! Prints a sum of what was computed with every figure; every file is read three times. The arguments: the size in requests (default 4 M), and the one trace format to measure, if not all is wanted.

use cpu_time::ProcessTime;
use nvlab_trace::columns::Origin;
use nvlab_trace::info::TraceInfo;
use nvlab_trace::{Format, ReadOptions, nvt, read, read_from, write};
use nvlab_workload::block::record;
use nvlab_workload::memory::tpca::TpcaConfig;
use nvlab_workload::replay::{Replay, ReplaySpec};
use nvlab_workload::{
    AnyBlockWorkload, Batch, BlockWorkload, MemoryWorkload, Target, Workload, WorkloadSpec,
};
use std::path::Path;
use std::time::Instant;

/// Prints nanoseconds of CPU time a request, of all threads together, and requests a second of CPU time and of wall time.
fn timed<T>(name: &str, rows: u64, bytes: usize, work: impl FnOnce() -> (T, u64)) -> T {
    let (began, cpu) = (Instant::now(), ProcessTime::now());
    let (result, sum) = work();
    let (cpu, wall) = (cpu.elapsed().as_secs_f64(), began.elapsed().as_secs_f64());
    let millions = rows as f64 / 1e6;
    let volume =
        if bytes > 0 { format!(", {:.0} MB/CPU-s", bytes as f64 / cpu / 1e6) } else { String::new() };
    println!(
        "{name:<36} {:>7.2} ns {:>7.1} M/CPU-s {:>7.1} M/s{volume}  (sum {sum:016x})",
        cpu * 1e3 / millions,
        millions / cpu,
        millions / wall
    );
    result
}

fn drain(workload: &mut dyn BlockWorkload, rows: u64) -> u64 {
    let mut batch = Batch::new();
    let (mut sum, mut done) = (0u64, 0);
    while done < rows {
        let count = workload.fill(&mut batch);
        if count == 0 {
            break;
        }
        for request in &batch {
            sum = sum.wrapping_mul(31).wrapping_add(request.offset ^ request.at.ps() ^ request.op as u64);
        }
        done += count as u64;
        batch.clear();
    }
    sum
}

fn transactions(workload: &mut impl MemoryWorkload, count: u64) -> u64 {
    let mut accesses = Vec::new();
    let mut sum = 0u64;
    for _ in 0..count {
        let at = workload.next(&mut accesses).expect("a workload without an end");
        let (first, last) = (accesses[0].offset, accesses[accesses.len() - 1].offset);
        sum = sum.wrapping_mul(31).wrapping_add(at.ps() ^ first ^ last);
    }
    sum
}

fn requests(text: &str) -> AnyBlockWorkload {
    let mut opened = WorkloadSpec::parse(text).unwrap().open(Target::blocks(16 << 30, 4096), 1).unwrap();
    opened.streams.remove(0).work.requests().expect("a workload of requests")
}

fn generators(rows: u64) {
    for text in [
        "uniform",
        "uniform read=70%",
        "uniform rate=1M/s",
        "sequential",
        "shuffled",
        "hotcold",
        "zipf theta=0.99",
        "zipf theta=0.99 scatter=no",
        "selfsimilar",
    ] {
        let workload = &mut *requests(text);
        timed(text, rows * 4, 0, || ((), drain(workload, rows * 4)));
    }
    for text in ["tpcc", "tpcc mix=full"] {
        let workload = &mut *requests(text);
        // The first requests warm the pool.
        timed(&format!("{text}, warming up"), rows / 16, 0, || ((), drain(workload, rows / 16)));
        timed(text, rows, 0, || ((), drain(workload, rows)));
    }
    for text in ["tpca", "tpca rate=10k/s", "tpca reads=record"] {
        let mut workload = TpcaConfig::parse(text).unwrap().open(text, 2 << 30, 1).unwrap();
        timed(text, rows, 0, || ((), transactions(&mut workload, rows)));
    }
}

fn main() {
    let rows: u64 =
        std::env::args().nth(1).map_or(4_000_000, |text| text.parse().expect("a number of requests"));
    let only = std::env::args().nth(2);
    if only.is_none() {
        generators(rows);
    }
    let mut workload = requests("hotcold read=60% bs=4KiB/60%,16KiB/40% rate=20k/s");
    let columns = record(&mut *workload, rows, Origin::default());
    let folder = tempfile::tempdir().unwrap();
    for format in Format::ALL.into_iter().filter(|format| format.is_written()) {
        if only.as_deref().is_some_and(|only| only != format.name()) {
            continue;
        }
        let mut text = Vec::new();
        timed(&format!("write {format}"), rows, 0, || {
            let report = write(&columns, format, &mut text, Path::new("t")).unwrap();
            ((), report.requests)
        });
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let file = folder.path().join(format.name());
        std::fs::write(&file, &text).unwrap();
        // A file, as users have them. The first read may wait for memory that a virtual machine has not been given yet.
        for _ in 0..3 {
            timed(&format!("read {format}"), rows, text.len(), || {
                let (columns, _) = read(&file, &options).unwrap();
                ((), columns.offsets().iter().fold(0, |sum, offset| sum ^ offset))
            });
        }
        if format == Format::Alibaba {
            let gz = gzipped(&text);
            timed("read alibaba.gz", rows, gz.len(), || {
                ((), read_from(&gz[..], Path::new("t"), &options).unwrap().0.len() as u64)
            });
            let zst = zstd::encode_all(&text[..], 3).unwrap();
            timed("read alibaba.zst", rows, zst.len(), || {
                ((), read_from(&zst[..], Path::new("t"), &options).unwrap().0.len() as u64)
            });
        }
    }
    if only.is_some() {
        return;
    }
    let mut file = Vec::new();
    nvt::encode(&columns, &mut file).unwrap();
    println!("nvt: {:.2} bytes per request", file.len() as f64 / rows as f64);
    timed("nvt::decode", rows, file.len(), || ((), nvt::decode(&file, "t").unwrap().len() as u64));
    timed("info", rows, 0, || ((), TraceInfo::of(&columns).footprint_bytes));
    for text in ["t.nvt", "t.nvt qd=8", "t.nvt copies=4"] {
        let spec = ReplaySpec::parse(text).unwrap();
        let mut replay = Replay::new(columns.clone(), &spec, 64 << 30, 1).unwrap();
        timed(&format!("replay '{text}'"), replay.len_hint().unwrap(), 0, || {
            ((), drain(&mut replay, u64::MAX))
        });
    }
    let spec = ReplaySpec::parse("t.nvt compact").unwrap();
    timed("compact", rows, 0, || {
        ((), Replay::new(columns, &spec, 64 << 30, 1).unwrap().report().footprint_bytes)
    });
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    out.write_all(text).unwrap();
    out.finish().unwrap()
}
