//! Tests of the statistics of a trace.

use super::*;
use crate::Time;
use crate::block::generator::GeneratorSpec;
use crate::columns::Origin;

fn generated(text: &str, blocks: u64, count: u64) -> TraceInfo {
    let mut workload = GeneratorSpec::parse(text).unwrap().open("t", blocks * 4096, 1).unwrap();
    assert!(workload.len_hint().is_none());
    TraceInfo::of(&Columns::from_workload(&mut *workload, count, Origin::default()))
}

#[test]
fn figures_of_a_trace_by_hand() {
    let mut columns = Columns::new(Origin { format: "msr".to_owned(), hash: 0 });
    let second = columns.add_volume("other");
    let rows = [
        (0, 0, 4096, Op::Write, 0),
        (1, 4096, 4096, Op::Write, 0),
        (2, 4096, 512, Op::Write, 0),
        (3, 100, 1000, Op::Read, 0),
        (59, 0, 0, Op::Flush, 0),
        (61, 0, 8192, Op::Trim, second),
    ];
    for (seconds, offset, bytes, op, volume) in rows {
        let at = Time::from_ps(seconds * 1_000_000_000_000);
        columns.push(Request { at, offset, bytes, op, volume, ..Request::default() });
    }
    let info = TraceInfo::of(&columns);
    assert_eq!(info.writes, OpInfo { requests: 3, bytes: 8704 });
    assert_eq!((info.reads.requests, info.trims.bytes, info.flushes, info.volumes), (1, 8192, 1, 2));
    assert_eq!((info.footprint_bytes, info.written_bytes, info.end_bytes), (16_384, 8192, 8192));
    assert_eq!((info.size_p50_bytes, info.size_max_bytes), (4096, 8192));
    assert_eq!(info.size_mean_bytes, (4096.0 + 4096.0 + 512.0 + 1000.0 + 8192.0) / 5.0);
    // One of three writes begins where the one before ended.
    assert_eq!(info.sequential_share, 0.25);
    // Blocks are written once and twice; the hottest fifth of two blocks is one.
    assert_eq!(info.hot_share, 2.0 / 3.0);
    assert_eq!((info.gap_p99, info.rate_peak_minute), (Span::from_ms(56_000), 5.0 / 60.0));
    assert_eq!(
        info.to_string(),
        "format        msr\n\
         requests      6 in 61.0 s\n\
         reads         1 (16.7 %), 1000 B\n\
         writes        3 (50.0 %), 8.5 KiB\n\
         trims         1 (16.7 %), 8 KiB\n\
         flushes       1\n\
         volumes       2\n\
         footprint     16 KiB touched, 8 KiB written, up to 8 KiB\n\
         size          mean 3.5 KiB, p50 4 KiB, max 8 KiB\n\
         sequential    25.0 %\n\
         skew          66.7 % of writes go to 20 % of the written blocks\n\
         gap           mean 12.2 s, p99 56.0 s\n\
         rate          mean 0.1/s, busiest minute 0.1/s\n"
    );
    let table = head(&columns, 2);
    assert_eq!(table.len(), 2);
    assert_eq!(table[1], ["1.000000000", "write", "4096", "4096", "0", ""]);
}

#[test]
fn skew_is_recovered() {
    let zipf = generated("zipf theta=0.99", 1000, 500_000);
    assert!((zipf.zipf_theta.unwrap() - 0.99).abs() < 0.02, "{:?}", zipf.zipf_theta);
    let steep = generated("zipf theta=1.3", 5000, 1_000_000);
    assert!((steep.zipf_theta.unwrap() - 1.3).abs() < 0.05, "{:?}", steep.zipf_theta);
    let even = generated("uniform", 1000, 500_000);
    assert!(even.zipf_theta.unwrap() < 0.06, "{:?}", even.zipf_theta);
    assert!((even.hot_share - 0.2).abs() < 0.02, "{}", even.hot_share);
    let hot = generated("hotcold hot=20/80", 1000, 500_000);
    assert!((hot.hot_share - 0.8).abs() < 0.01, "{}", hot.hot_share);
    assert_eq!(generated("uniform", 100_000, 1000).zipf_theta, None);
}

#[test]
fn runs_and_rates_are_recovered() {
    let sequential = generated("sequential", 1000, 10_000);
    assert!(sequential.sequential_share > 0.99);
    assert_eq!((sequential.footprint_bytes, sequential.written_bytes), (4_096_000, 4_096_000));
    assert!(generated("uniform", 100_000, 10_000).sequential_share < 0.001);
    let open = generated("uniform rate=1k/s", 1000, 200_000);
    assert!((open.rate_mean - 1000.0).abs() < 12.0, "{}", open.rate_mean);
    assert!(open.rate_peak_minute > 980.0 && open.rate_peak_minute < 1030.0, "{}", open.rate_peak_minute);
    // The 99th of 100 exponential gaps is ln(100) means long.
    assert!((open.gap_p99.seconds() * 1000.0 - 100f64.ln()).abs() < 0.1, "{}", open.gap_p99);
}
