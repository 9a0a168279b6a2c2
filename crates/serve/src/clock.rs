//! The wall clock, as the time that is passed down.
//!
//! Below the serving edge time is an argument (DESIGN.md, Time 1); here the argument is made. In [`TimeMode::Real`]
//! an answer is held until the modelled device would have it. In [`TimeMode::Fast`] it is given at once, and the
//! device's clock is moved on instead, so that the device is never asked before its last answer: it may run ahead of
//! the wall.

use nvlab_units::{Span, Time};
use std::time::{Duration, Instant};

/// When a fault is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeMode {
    /// No earlier than the modelled device would answer.
    #[default]
    Real,
    /// At once.
    Fast,
}

/// A wait shorter than this is spun: a sleeping thread wakes some 50 us late.
const SPIN: Duration = Duration::from_micros(100);

/// Time since the device was switched on.
#[derive(Debug)]
pub(crate) struct Clock {
    mode: TimeMode,
    start: Instant,
    /// How far the device is ahead of the wall (only in fast mode), and when it answered last.
    ahead: Span,
    last: Time,
}

impl Clock {
    /// The wall clock from now on, at `begin` of the device's time.
    pub(crate) fn new(mode: TimeMode, begin: Time) -> Clock {
        Clock { mode, start: Instant::now(), ahead: begin.since(Time::ZERO), last: begin }
    }

    /// The device's time now.
    pub(crate) fn now(&self) -> Time {
        self.wall().max(self.last)
    }

    /// The device answered at `end`: waits for it, or moves on.
    pub(crate) fn reach(&mut self, end: Time) {
        self.last = self.last.max(end);
        let early = end.since(self.wall());
        match self.mode {
            TimeMode::Fast => self.ahead += early,
            TimeMode::Real => self.wait(early),
        }
    }

    /// The wall clock on the device's scale.
    fn wall(&self) -> Time {
        Time::ZERO + Span::from_ns(self.start.elapsed().as_nanos() as u64) + self.ahead
    }

    fn wait(&self, span: Span) {
        let until = Instant::now() + Duration::from_nanos(span.ps().div_ceil(1000));
        if let Some(sleep) = until.checked_duration_since(Instant::now() + SPIN) {
            std::thread::sleep(sleep);
        }
        while Instant::now() < until {
            std::hint::spin_loop();
        }
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
    fn a_fast_answer_moves_the_device_ahead() {
        let mut clock = Clock::new(TimeMode::Fast, Time::from_ns(7));
        let begun = Instant::now();
        let end = clock.now() + Span::from_seconds(3600.0);
        clock.reach(end);
        assert!(clock.now() >= end && begun.elapsed() < Duration::from_secs(60));
        assert!(clock.now() < end + Span::from_seconds(60.0));
    }
}
