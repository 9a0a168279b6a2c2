//! The wall clock as a source of device time.
//!
//! Below the serving edge time is an argument (DESIGN.md, Time 1); here it comes from a clock. In [`TimeMode::Real`]
//! a reply is held until the modelled device would send it, in [`TimeMode::Slower`] a multiple of that time. In
//! [`TimeMode::Fast`] it is sent at once, and the device's clock advances instead, so that the device is never
//! called before the end of its last operation: it may run ahead of the wall clock.

use crate::sys::process;
use nvlab_units::{Span, Time};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// When a request is answered, by the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeMode {
    /// No earlier than the modelled device would.
    #[default]
    Real,
    /// As soon as it is computed; the device's time still passes as modelled.
    Fast,
    /// As `Real`, with the device and the path to it slower by this factor: makes visible what is too fast to be seen.
    Slower(u32),
}

impl FromStr for TimeMode {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeMode, String> {
        let slower = |text: &str| text.parse().ok().filter(|times| (1..=1_000_000).contains(times));
        match text {
            "real" => Ok(TimeMode::Real),
            "fast" => Ok(TimeMode::Fast),
            text => match text.strip_prefix('x').and_then(slower) {
                Some(times) => Ok(TimeMode::Slower(times)),
                None => Err("write real, fast, or xN (N times slower, 1 to 1000000), e.g. x10".into()),
            },
        }
    }
}

/// The last part of a wait is a busy wait: a sleeping thread wakes late. How late depends on the machine, a virtual one is
/// slower, so it is measured once: the 99th percentile of some short sleeps, within these limits.
const SPIN_LIMITS: [Duration; 2] = [Duration::from_micros(10), Duration::from_micros(200)];
const SPIN_SLEEPS: usize = 64;
const SPIN_SLEEP: Duration = Duration::from_micros(100);

/// How long before its end a wait becomes a busy wait. The first call takes some milliseconds.
pub(crate) fn spin() -> Duration {
    static MEASURED: OnceLock<Duration> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        // In a thread of its own: how the caller sleeps is not changed.
        let measured = std::thread::spawn(|| {
            sleep_precisely();
            let over = |_| {
                let begun = Instant::now();
                std::thread::sleep(SPIN_SLEEP);
                begun.elapsed().saturating_sub(SPIN_SLEEP)
            };
            let mut over: Vec<Duration> = (0..SPIN_SLEEPS).map(over).collect();
            over.sort_unstable();
            over[SPIN_SLEEPS - 2]
        });
        let [least, most] = SPIN_LIMITS;
        measured.join().unwrap_or(most).clamp(least, most)
    })
}

/// From now on this thread's sleeps end as early as the machine can; if the kernel refuses, replies are later, which is
/// counted.
pub(crate) fn sleep_precisely() {
    let _ = process::sleep_precisely();
}

/// Time since the device was switched on.
#[derive(Debug)]
pub(crate) struct Clock {
    mode: TimeMode,
    start: Instant,
    /// Since when it stands still, if it does.
    paused: Option<Instant>,
    /// How far the device is ahead of the wall clock.
    ahead: Span,
    /// The device is not called at an earlier time.
    last: Time,
}

impl Clock {
    /// The wall clock from now on, at `begin` of the device's time.
    pub(crate) fn new(mode: TimeMode, begin: Time) -> Clock {
        if mode != TimeMode::Fast {
            spin();
        }
        Clock { mode, start: Instant::now(), paused: None, ahead: begin.since(Time::ZERO), last: begin }
    }

    /// The device's time now.
    pub(crate) fn now(&self) -> Time {
        self.wall().max(self.last)
    }

    /// Wall-clock time since it was created, without pauses.
    pub(crate) fn running(&self) -> Duration {
        self.paused.map_or_else(|| self.start.elapsed(), |paused| paused - self.start)
    }

    /// It stands still from now on.
    pub(crate) fn pause(&mut self) {
        self.paused.get_or_insert_with(Instant::now);
    }

    /// It goes on from where it stands.
    pub(crate) fn resume(&mut self) {
        if let Some(paused) = self.paused.take() {
            self.start += paused.elapsed();
        }
    }

    /// The device is busy until then and not called before.
    pub(crate) fn skip(&mut self, to: Time) {
        self.last = self.last.max(to);
    }

    /// When the reply of an operation that ends at `end` is due on the wall clock; `None`: at once.
    pub(crate) fn due(&mut self, end: Time) -> Option<Instant> {
        let times = match self.mode {
            TimeMode::Fast => {
                self.last = self.last.max(end);
                self.ahead += end.since(self.wall());
                return None;
            }
            TimeMode::Real => 1,
            TimeMode::Slower(times) => times,
        };
        let ps = (end.since(Time::ZERO).saturating_sub(self.ahead)).ps() as u128 * times as u128;
        Some(self.start + Duration::from_nanos(ps.div_ceil(1000) as u64))
    }

    /// Waits for the end of an operation, or advances the device's clock to it.
    pub(crate) fn reach(&mut self, end: Time) {
        if let Some(due) = self.due(end) {
            wait_until(due);
        }
    }

    /// The wall clock in the device's time.
    fn wall(&self) -> Time {
        let times = match self.mode {
            TimeMode::Real | TimeMode::Fast => 1,
            TimeMode::Slower(times) => times as u128,
        };
        // Rounded up: with a fraction lost here, which counts `times` over, a reply would be early.
        let ps = (self.running().as_nanos() * 1000).div_ceil(times);
        Time::ZERO + Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)) + self.ahead
    }
}

/// Sleeps, with a busy wait at the end. Returns when it ended, which is no earlier than `due`.
pub(crate) fn wait_until(due: Instant) -> Instant {
    if let Some(sleep) = due.checked_duration_since(Instant::now() + spin()) {
        sleep_precisely();
        std::thread::sleep(sleep);
    }
    loop {
        let now = Instant::now();
        if now >= due {
            return now;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_answer_is_held_and_not_much_longer() {
        let mut clock = Clock::new(TimeMode::Real, Time::ZERO);
        for span in [Span::from_us(3), Span::from_us(300)] {
            let end = clock.now() + span;
            let begun = Instant::now();
            clock.reach(end);
            assert!(clock.now() >= end, "{} was asked for at {}", end, clock.now());
            // Other programs may take the core; a forgotten unit would be a thousand times too long.
            assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
        }
    }

    #[test]
    fn a_slower_device_answers_so_much_later() {
        let mut clock = Clock::new(TimeMode::Slower(50), Time::from_ns(7));
        let begun = Instant::now();
        let (end, before) = (clock.now() + Span::from_us(100), begun.elapsed());
        clock.reach(end);
        assert!(clock.now() >= end);
        assert!((Duration::from_millis(5) - before..Duration::from_millis(500)).contains(&begun.elapsed()));
        assert_eq!("x50".parse(), Ok(TimeMode::Slower(50)));
        for wrong in ["x0", "x", "slow", "x1000001", "X2"] {
            assert!(wrong.parse::<TimeMode>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_paused_clock_stands_still() {
        let mut clock = Clock::new(TimeMode::Slower(1), Time::ZERO);
        clock.pause();
        let then = clock.now();
        std::thread::sleep(Duration::from_millis(30));
        clock.pause();
        assert_eq!(clock.now(), then);
        clock.resume();
        assert!(clock.now() >= then && clock.now().since(then) < Span::from_us(25_000));
        clock.resume();
    }

    #[test]
    fn a_device_is_not_asked_while_it_recovers() {
        let mut clock = Clock::new(TimeMode::Real, Time::ZERO);
        clock.skip(Time::ZERO + Span::from_seconds(30.0));
        assert_eq!(clock.now(), Time::ZERO + Span::from_seconds(30.0));
    }

    #[test]
    fn a_fast_answer_moves_the_device_ahead() {
        let mut clock = Clock::new(TimeMode::Fast, Time::from_ns(7));
        let begun = Instant::now();
        let end = clock.now() + Span::from_seconds(3600.0);
        clock.reach(end);
        assert!(clock.now() >= end && begun.elapsed() < Duration::from_secs(60));
        assert!(clock.now() < end + Span::from_seconds(60.0));
    }
}
