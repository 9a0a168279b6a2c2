//! The benchmark of served designs, in a small size: it measures, and memories behind Start-Gap are no slower than others. With
//! `NVLAB_BENCH_SECONDS` it takes so long for each kind of request.

use nvlab_design::Design;
use nvlab_serve::bench::{BenchSize, bench};
use std::time::Duration;

#[test]
fn lines_are_served_fast() {
    let seconds = std::env::var("NVLAB_BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    let each = Duration::from_secs_f64(seconds.unwrap_or(20.0));
    let requests = if seconds.is_some() { u64::MAX } else { 256 };
    let size = BenchSize { each, requests, span_bytes: 16 << 20 };
    for name in ["moneta", "ddr-scm", "moneta-stt", "optane-like", "disk-2010"] {
        let design = Design::load(name, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let served = bench(name, &design, size).unwrap();
        println!("{name}: {served:?}");
        for kind in [served.small_writes, served.small_reads, served.large_writes, served.large_reads] {
            assert!(
                kind.served.is_finite() && kind.served > 0.0 && kind.modelled > 0.0,
                "{name}: {served:?}"
            );
        }
        // It was 12 to 43 requests of 64 KiB a second, 2 s for a cut, and 3 GB: more than what a busy machine adds.
        assert!(served.large_writes.served > 60.0, "{name}: {served:?}");
        assert!(served.cut < Duration::from_millis(900), "{name}: {served:?}");
        assert!(served.memory_bytes < 600 << 20, "{name}: {served:?}");
    }
}
