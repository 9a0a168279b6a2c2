//! How fast requests are generated, parsed and replayed: `cargo run --release -p nvlab-workload --example speed`.
//! Prints a sum of what was computed with every figure. The argument is the size in requests (default 4 M).

use nvlab_workload::columns::{Columns, Origin};
use nvlab_workload::info::TraceInfo;
use nvlab_workload::memory::tpca::TpcaConfig;
use nvlab_workload::replay::{Replay, ReplaySpec};
use nvlab_workload::trace::{Format, ReadOptions, read_from, write};
use nvlab_workload::{
    AnyBlockWorkload, Batch, BlockWorkload, MemoryWorkload, Target, Workload, WorkloadSpec, nvt,
};
use std::path::Path;

/// CPU time of this program, which other programs on the machine do not lengthen.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux keeps scheduling figures");
    let ns = text.split_whitespace().next().and_then(|text| text.parse::<u64>().ok());
    ns.expect("the first figure is time on the processor") as f64 * 1e-9
}

fn timed<T>(name: &str, rows: u64, bytes: usize, work: impl FnOnce() -> (T, u64)) -> T {
    let begun = cpu_seconds();
    let (result, sum) = work();
    let seconds = cpu_seconds() - begun;
    let (ns, rate) = (seconds * 1e9 / rows as f64, rows as f64 / seconds / 1e6);
    let volume =
        if bytes > 0 { format!(", {:.0} MB/s", bytes as f64 / seconds / 1e6) } else { String::new() };
    println!("{name:<44} {ns:>6.2} ns  {rate:>7.1} M/s{volume}  (sum {sum:016x})");
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
    generators(rows);
    let mut workload = requests("hotcold read=60% bs=4KiB/60%,16KiB/40% rate=20k/s");
    let columns = Columns::from_workload(&mut *workload, rows, Origin::default());
    for format in Format::ALL {
        let mut text = Vec::new();
        timed(&format!("write {format}"), rows, 0, || {
            let report = write(&columns, format, &mut text, Path::new("t")).unwrap();
            ((), report.requests)
        });
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        timed(&format!("read {format}"), rows, text.len(), || {
            let (columns, _) = read_from(&text[..], Path::new("t"), &options).unwrap();
            ((), columns.offsets().iter().fold(0, |sum, offset| sum ^ offset))
        });
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
