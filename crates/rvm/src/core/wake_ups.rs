//! Whether threads that sleep until a sync ends are woken before it does, and how long they watch it then.
//!
//! Both follow from what was measured: a sync, and the time from a wake-up until the thread that slept runs. A thread that watches too
//! short sleeps again just before the end, and is then later than one that was not woken early: two threads committed less with
//! 100 us, where a sync takes 150, than with 0 or 400. Where other programs take the processors, some syncs take many times as long as
//! most: the median is what counts, and whoever watched in vain does not do so again at once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// To watch a sync costs the processor time of the sync, and saves that of a wake-up: it is worth it up to so many of those.
const WORTH_WAKE_UPS: u32 = 32;
/// Nearly all syncs end within so many times the median. With 1.5 in place of it two threads committed 1.79 times what one did in one
/// comparison, and 1.93 times with 3.
const WATCHED_MEDIANS: u32 = 3;
/// A wake-up that takes longer waited for a processor. Then there is none to watch with.
const WAKE_UP_MAX: Duration = Duration::from_micros(100);
/// After watching in vain again and again nobody watches for so many forces at most.
const UNWATCHED_MAX: u32 = 64;

/// See the module. Times are nanoseconds.
#[derive(Debug)]
pub(super) struct WakeUps {
    origin: Instant,
    /// When threads were woken last, since the origin.
    woken_at: AtomicU64,
    /// Usual time until one of them ran; 0: none has been woken.
    wake_time: AtomicU64,
    /// How long a thread that was woken early watches; 0: none is.
    watch_time: AtomicU64,
    /// After watching in vain: for how many forces nobody watches, and how many of them are yet to come.
    unwatched: AtomicU32,
    unwatched_left: AtomicU32,
}

impl WakeUps {
    pub fn new() -> WakeUps {
        let [woken_at, wake_time, watch_time] = [0; 3].map(AtomicU64::new);
        let [unwatched, unwatched_left] = [0; 2].map(AtomicU32::new);
        WakeUps { origin: Instant::now(), woken_at, wake_time, watch_time, unwatched, unwatched_left }
    }

    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Threads are about to be woken.
    pub fn waking(&self) {
        self.woken_at.store(self.now(), Ordering::Relaxed);
    }

    /// A thread that was woken runs.
    pub fn woken(&self) {
        let took = self.now().saturating_sub(self.woken_at.load(Ordering::Relaxed));
        let took = took.min(WAKE_UP_MAX.as_nanos() as u64);
        let usual = self.wake_time.load(Ordering::Relaxed);
        // Two threads may do this at once: then one of them is not counted.
        let mean = if usual == 0 { took } else { (usual * 7 + took) / 8 };
        self.wake_time.store(mean, Ordering::Relaxed);
    }

    /// Whether threads are to be woken before the sync that is about to begin ends.
    pub fn is_early(&self) -> bool {
        match self.unwatched_left.load(Ordering::Relaxed) {
            0 => !self.watch_time().is_zero(),
            left => {
                self.unwatched_left.store(left - 1, Ordering::Relaxed);
                false
            }
        }
    }

    /// A thread watched a sync, to its end or in vain.
    pub fn watched(&self, to_its_end: bool) {
        let before = self.unwatched.load(Ordering::Relaxed);
        let unwatched = if to_its_end { 0 } else { (before * 2).clamp(1, UNWATCHED_MAX) };
        if unwatched != before {
            self.unwatched.store(unwatched, Ordering::Relaxed);
        }
        if !to_its_end {
            self.unwatched_left.store(unwatched, Ordering::Relaxed);
        }
    }

    /// How long a thread that was woken early watches the sync under way.
    pub fn watch_time(&self) -> Duration {
        Duration::from_nanos(self.watch_time.load(Ordering::Relaxed))
    }
}

/// The median of how long syncs take, newer ones weighing more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Syncs(Duration);

impl Syncs {
    /// A sync took so long: the next one is watched until nearly all have ended, if it is watched at all.
    pub fn note(&mut self, time: Duration, wake_ups: &WakeUps) {
        let step = self.0 / 16;
        self.0 = match time.cmp(&self.0) {
            _ if self.0.is_zero() => time,
            std::cmp::Ordering::Less => self.0 - step,
            _ => self.0 + step,
        };
        let wake_time = Duration::from_nanos(wake_ups.wake_time.load(Ordering::Relaxed));
        let is_worth_it = self.0 <= wake_time * WORTH_WAKE_UPS;
        let watch = if is_worth_it { self.0 * WATCHED_MEDIANS } else { Duration::ZERO };
        wake_ups.watch_time.store(watch.as_nanos() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    /// After syncs most of which take about so long, and wake-ups of so many microseconds.
    fn watch(sync: Duration, wake_us: u64) -> Duration {
        let (wake_ups, mut syncs) = (WakeUps::new(), Syncs::default());
        wake_ups.wake_time.store(wake_us * 1000, Ordering::Relaxed);
        for number in 0..400 {
            let times = if number % 5 == 0 { 400 } else { 9 + number % 3 };
            syncs.note(sync * times / 10, &wake_ups);
        }
        wake_ups.watch_time()
    }

    #[test]
    fn a_sync_is_watched_to_its_end_or_not_at_all() {
        for sync in [50, 100, 150, 250, 400, 800].map(us) {
            let watched = watch(sync, 30);
            assert!(sync * 2 < watched && watched < sync * 4, "{sync:?} for {watched:?}");
        }
        assert_eq!(watch(us(1200), 30), Duration::ZERO, "it costs more than it saves");
        assert_eq!(watch(us(10_000), 100), Duration::ZERO);
        assert_eq!(watch(us(100), 0), Duration::ZERO, "nobody has been woken yet");
    }

    #[test]
    fn whoever_watched_in_vain_does_so_ever_less() {
        let wake_ups = WakeUps::new();
        wake_ups.watch_time.store(150_000, Ordering::Relaxed);
        let watched = |forces: u32, to_its_end| {
            let early = (0..forces).filter(|_| {
                let is_early = wake_ups.is_early();
                if is_early {
                    wake_ups.watched(to_its_end);
                }
                is_early
            });
            early.count()
        };
        assert_eq!(watched(1000, true), 1000);
        assert!(watched(1000, false) < 30);
        assert!(watched(1000, true) > 900);
    }
}
