//! Whether threads that sleep until a sync ends are woken before it ends, and how long they then poll.
//!
//! Both follow from measurements: of a sync, and of the time from a wake-up until the thread runs. A thread that
//! polls too briefly sleeps again just before the end, and is then later than one that was not woken early: two
//! threads committed less with 100 us, where a sync takes 150, than with 0 or 400. If other programs use the
//! processors, most syncs take milliseconds until the thread runs again: so the time of a sync is that of the
//! shortest fifth. In that case no thread polls for long, either.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Watching a sync costs as much processor time as the sync takes and saves a wake-up: worth it up to this many wake-ups.
const WORTH_WAKE_UPS: u32 = 32;
/// Nearly all syncs end within two and a half times what the shortest fifth takes. While others take the processors, whoever watches
/// longer loses his own.
const WATCHED_TIMES: [u32; 2] = [5, 2];
/// A wake-up that takes longer waited for a processor. Then there is none to watch with.
const WAKE_UP_MAX: Duration = Duration::from_micros(100);

/// A thread that finds so much time missing lost its processor to another program, not to an interrupt. A scheduler that shares them
/// fairly lets a thread that watches wait, and one that sleeps run when it is woken: so nobody watches for some of the next forces,
/// the more the more often that happens.
const LOST_TIME: Duration = Duration::from_millis(1);
const UNWATCHED: std::ops::RangeInclusive<u32> = 256..=4096;

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
    /// For how many forces nobody watches after a thread lost its processor, and how many of them are left.
    pause: AtomicU32,
    unwatched: AtomicU32,
}

impl WakeUps {
    pub fn new() -> WakeUps {
        let [woken_at, wake_time, watch_time] = [0; 3].map(AtomicU64::new);
        let [pause, unwatched] = [*UNWATCHED.start(), 0].map(AtomicU32::new);
        WakeUps { origin: Instant::now(), woken_at, wake_time, watch_time, pause, unwatched }
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
        match self.unwatched.load(Ordering::Relaxed) {
            0 => !self.watch_time().is_zero(),
            left => {
                self.unwatched.store(left - 1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Watches until `is_over`, or for as long as nearly every sync takes.
    pub fn watch(&self, is_over: impl Fn() -> bool) {
        let began = Instant::now();
        let (until, mut before, mut lost) = (began + self.watch_time(), began, Duration::ZERO);
        while !is_over() && before <= until {
            std::hint::spin_loop();
            let now = Instant::now();
            lost = lost.max(now - before);
            before = now;
        }
        self.watched(lost);
    }

    /// Notes that a watching thread lost its processor for `lost`.
    fn watched(&self, lost: Duration) {
        let pause = self.pause.load(Ordering::Relaxed);
        let next = if lost > LOST_TIME { pause * 2 } else { pause - pause / 16 };
        let next = next.clamp(*UNWATCHED.start(), *UNWATCHED.end());
        if next != pause {
            self.pause.store(next, Ordering::Relaxed);
        }
        if lost > LOST_TIME {
            self.unwatched.store(pause, Ordering::Relaxed);
        }
    }

    /// How long a thread that was woken early watches the sync under way; zero: none is to be woken early.
    pub fn watch_time(&self) -> Duration {
        Duration::from_nanos(self.watch_time.load(Ordering::Relaxed))
    }
}

/// How long the shortest fifth of syncs takes at most; newer ones weigh more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Syncs(Duration);

impl Syncs {
    /// A sync took so long: the next one is watched until nearly all have ended, if it is watched at all.
    pub fn note(&mut self, time: Duration, wake_ups: &WakeUps) {
        // Four steps up take as much as one down: where one of five is shorter, it stays.
        let step = self.0 / 16;
        self.0 = match time.cmp(&self.0) {
            _ if self.0.is_zero() => time,
            std::cmp::Ordering::Less => self.0 - step,
            _ => self.0 + step / 4,
        };
        let wake_time = Duration::from_nanos(wake_ups.wake_time.load(Ordering::Relaxed));
        let is_worth_it = self.0 <= wake_time * WORTH_WAKE_UPS;
        let [times, of] = WATCHED_TIMES;
        let watch = if is_worth_it { self.0 * times / of } else { Duration::ZERO };
        wake_ups.watch_time.store(watch.as_nanos() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    /// After syncs that take about so long, of which more and more are late because there was no processor.
    fn watch(sync: Duration, wake_us: u64) -> Duration {
        let (wake_ups, mut syncs) = (WakeUps::new(), Syncs::default());
        wake_ups.wake_time.store(wake_us * 1000, Ordering::Relaxed);
        for number in 0..800 {
            let times = if number % 10 < number / 115 { 400 } else { 9 + number % 3 };
            syncs.note(sync * times / 10, &wake_ups);
        }
        wake_ups.watch_time()
    }

    #[test]
    fn a_sync_is_watched_to_its_end_or_not_at_all() {
        for sync in [50, 100, 150, 250, 400, 800].map(us) {
            let watched = watch(sync, 30);
            assert!(sync * 3 / 2 < watched && watched < sync * 7 / 2, "{sync:?} for {watched:?}");
        }
        assert_eq!(watch(us(1400), 30), Duration::ZERO, "it costs more than it saves");
        assert_eq!(watch(us(10_000), 100), Duration::ZERO);
        assert_eq!(watch(us(100), 0), Duration::ZERO, "nobody has been woken yet");
    }

    #[test]
    fn whoever_loses_its_processor_by_watching_does_so_ever_less() {
        let wake_ups = WakeUps::new();
        wake_ups.watch_time.store(150_000, Ordering::Relaxed);
        let watched = |forces: u32, lost| {
            let early = (0..forces).filter(|_| {
                let is_early = wake_ups.is_early();
                if is_early {
                    wake_ups.watched(lost);
                }
                is_early
            });
            early.count()
        };
        assert_eq!(watched(1000, us(1)), 1000);
        assert!(watched(10_000, us(3000)) < 10);
        assert!(watched(100_000, us(1)) > 90_000);
    }
}
