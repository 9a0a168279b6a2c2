//! What `nvlab trace info` finds in a trace is what its generator was told.

use nvlab_trace::columns::Origin;
use nvlab_trace::info::TraceInfo;
use nvlab_workload::block::generator::GeneratorSpec;
use nvlab_workload::block::record;

fn generated(text: &str, blocks: u64, count: u64) -> TraceInfo {
    let mut workload = GeneratorSpec::parse(text).unwrap().open("t", blocks * 4096, 1).unwrap();
    assert!(workload.len_hint().is_none());
    TraceInfo::of(&record(&mut *workload, count, Origin::default()))
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
