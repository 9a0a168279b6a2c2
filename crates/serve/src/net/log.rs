//! A log of what remote clients cause, a line each, limited to a rate that a person can read.

use std::fmt::{self, Arguments};
use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines in a [`PERIOD`]; the others are counted.
const LINES_MAX: u32 = 50;
const PERIOD: Duration = Duration::from_secs(10);

/// Writes lines for the operator: at most 50 in 10 s, then how many were left out.
pub struct Log {
    sink: Box<dyn Fn(&str) + Send + Sync>,
    said: Mutex<Said>,
}

#[derive(Debug, Default)]
struct Said {
    /// Beginning of the period.
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl Said {
    /// If one more line may be written: how many were left out before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now - since >= PERIOD) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(mem::take(&mut self.left_out))
    }
}

impl Log {
    /// A log whose lines go to `sink`.
    pub fn to(sink: impl Fn(&str) + Send + Sync + 'static) -> Log {
        Log { sink: Box::new(sink), said: Mutex::default() }
    }

    pub(crate) fn say(&self, line: Arguments<'_>) {
        // Counts are consistent after a panic, too.
        let admitted = self.said.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now());
        match admitted {
            None => {}
            Some(0) => (self.sink)(&line.to_string()),
            Some(count) => (self.sink)(&format!("{line} ({count} lines before this one were suppressed)")),
        }
    }
}

impl Default for Log {
    /// Lines go to stderr.
    fn default() -> Log {
        Log::to(|line| eprintln!("nvlab: {line}"))
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Log").field("said", &self.said).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_the_next_period_says_so() {
        let (mut said, begun) = (Said::default(), Instant::now());
        for _ in 0..LINES_MAX {
            assert_eq!(said.admit(begun), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(said.admit(begun + PERIOD / 2), None);
        }
        assert_eq!(said.admit(begun + PERIOD), Some(7));
        assert_eq!(said.admit(begun + PERIOD), Some(0));
    }
}
