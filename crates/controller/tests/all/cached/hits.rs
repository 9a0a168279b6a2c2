//! Shares of hits against closed forms.

use crate::cached::device::{AMPLE, LINE, Setup};
use nvlab_units::rng::Zipf;
use nvlab_units::{Rng, Span, Time};

fn setup() -> Setup {
    Setup {
        sets: 4,
        ways: 16,
        line_units: 1,
        dirty_lines_max: 64,
        prefetch_lines: 0,
        write_backs: 4,
        backup: AMPLE,
        buffer: Some(true),
    }
}

/// The share of hits of loads of lines that `draw` returns, after the cache has filled.
fn hits(mut draw: impl FnMut() -> u32) -> f64 {
    let mut device = setup().device();
    let mut now = Time::ZERO;
    let (warm, loads) = (20_000, 100_000);
    for nth in 0..warm + loads {
        if nth == warm {
            device.reset_stats();
        }
        let served = device.load(now, draw() as u64 * LINE as u64, 8, &mut [0; 8]).unwrap();
        now = served.end + Span::from_ns(10);
    }
    let stats = device.stats();
    assert_eq!(stats.hits + stats.fetched, loads);
    stats.hits as f64 / loads as f64
}

/// Every line is as likely as any other, so whatever is replaced: hits = lines of the cache / lines.
#[test]
fn uniform_loads_hit_as_often_as_there_is_room() {
    let mut rng = Rng::new(5);
    let share = hits(|| rng.below(256) as u32);
    assert!((share - 64.0 / 256.0).abs() < 0.005, "{share}");
}

/// Hits under independent draws with these shares if each line stays for a time that makes the cache just full: its time
/// counts from its last use (least recently used, Che's approximation), or from its arrival (first in, first out).
fn approximate(shares: &[f64], frames: f64, in_cache: fn(f64) -> f64) -> f64 {
    let held = |time: f64| shares.iter().map(|share| in_cache(share * time)).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if held(middle) < frames { low = middle } else { high = middle }
    }
    shares.iter().map(|share| share * in_cache(share * low)).sum()
}

/// A clock knows more than the order of arrival and less than the order of use.
#[test]
fn skewed_loads_hit_between_first_in_first_out_and_least_recently_used() {
    let lines = 256;
    let zipf = Zipf::new(lines, 0.9);
    let total: f64 = (1..=lines).map(|rank| (rank as f64).powf(-0.9)).sum();
    let shares: Vec<f64> = (1..=lines).map(|rank| (rank as f64).powf(-0.9) / total).collect();
    let lru = approximate(&shares, 64.0, |uses| 1.0 - (-uses).exp());
    let fifo = approximate(&shares, 64.0, |uses| uses / (1.0 + uses));
    let mut rng = Rng::new(6);
    // Ranks are spread over the sets: the sets are its lowest bits.
    let share = hits(|| zipf.sample(&mut rng) as u32);
    assert!(fifo - 0.005 < share && share < lru + 0.005, "{fifo} <= {share} <= {lru}");
    assert!(lru - fifo > 0.01, "the two differ: {fifo} {lru}");
}
