//! Progress on stderr: one line for each run in progress; without a terminal, a line of text now and then.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// Steps of a bar.
const STEPS: u64 = 1000;
/// Without a terminal: a line for a run that takes longer, and another one each time.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// The bars of all runs in progress.
#[derive(Clone, Debug)]
pub struct Progress {
    all: MultiProgress,
    name_width: usize,
    lines: bool,
}

/// The bar of one run; without a terminal, its lines.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    text: String,
    phase: Phase,
    /// With lines instead of a bar: the name of the run, and when the last line was printed.
    line: Option<(String, Instant)>,
}

/// The phase a run is in: settling in rounds is one.
#[derive(Debug)]
struct Phase {
    name: String,
    began: Instant,
    /// The share that was done when it began: more than nothing if it goes on where another run was interrupted.
    from: f64,
}

impl Phase {
    fn new(name: &str, from: f64) -> Phase {
        Phase { name: name.to_string(), began: Instant::now(), from }
    }

    /// How long the rest will take at the pace so far; `None` while that says nothing.
    fn rest(&self, share: f64) -> Option<Duration> {
        let (done, elapsed) = (share - self.from, self.began.elapsed());
        let known = done > 0.01 && share < 1.0 && elapsed > Duration::from_secs(1);
        known.then(|| elapsed.mul_f64((1.0 - share) / done))
    }
}

impl Progress {
    /// `shown`: on stderr; otherwise nowhere. `name_width`: characters of the longest name. `lines`: where no bars are
    /// drawn, a line is printed now and then.
    pub fn new(shown: bool, name_width: usize, lines: bool) -> Progress {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Progress { all: MultiProgress::with_draw_target(target), name_width: name_width.min(48), lines }
    }

    /// A bar for a run that begins now.
    pub fn begin(&self, name: &str) -> Bar {
        let bar = self.all.add(ProgressBar::new(STEPS));
        let template = "  {prefix} {bar:24} {percent:>3} %  {elapsed:>4}  {msg}";
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        bar.set_style(style.progress_chars("━╸ "));
        bar.set_prefix(format!("{name:width$}", width = self.name_width));
        bar.enable_steady_tick(Duration::from_millis(200));
        let line = self.lines.then(|| (name.to_string(), Instant::now()));
        Bar { bar, text: String::new(), phase: Phase::new("", 0.0), line }
    }

    pub fn end(&self) {
        let _ = self.all.clear();
    }

    /// Prints lines while bars are drawn.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.all.suspend(print)
    }
}

impl Bar {
    /// Shows what a run is doing (`settling: round 3, ...`; what stands before the colon is the phase), and the share of
    /// the phase that is done, if it is known.
    pub fn at(&mut self, text: &str, share: f64) {
        let share = share.clamp(0.0, 1.0);
        let name = text.split(':').next().unwrap_or_default();
        if self.phase.name != name {
            self.phase = Phase::new(name, share);
        }
        if self.text != text {
            self.text = text.to_string();
        }
        self.bar.set_position((share * STEPS as f64) as u64);
        let is_due = match &self.line {
            Some((_, last)) => last.elapsed() >= LINE_EVERY,
            None => false,
        };
        if self.line.is_none() {
            self.bar.set_message(told(&self.text, self.phase.rest(share)));
        } else if is_due && let Some((run, last)) = &mut self.line {
            *last = Instant::now();
            let percent = (share * 100.0) as u32;
            eprintln!("{run}: {}; {percent} % of it", told(&self.text, self.phase.rest(share)));
        }
    }
}

fn told(text: &str, rest: Option<Duration>) -> String {
    match rest.map(|rest| rest.as_secs()) {
        None => text.to_string(),
        Some(seconds @ 0..120) => format!("{text}; about {seconds} s left"),
        Some(seconds @ 120..7200) => format!("{text}; about {} min left", seconds / 60),
        Some(seconds) => format!("{text}; about {} h left", seconds / 3600),
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_told_when_the_pace_says_something() {
        let began = Instant::now().checked_sub(Duration::from_secs(30)).unwrap();
        let phase = Phase { name: "settling".into(), began, from: 0.5 };
        assert_eq!(phase.rest(0.5), None);
        let rest = phase.rest(0.75).unwrap().as_secs();
        assert!((29..=31).contains(&rest), "a quarter in 30 s leaves another 30 s, not {rest}");
        assert_eq!(told("filling", None), "filling");
        assert_eq!(told("settling", Some(Duration::from_secs(300))), "settling; about 5 min left");
    }
}
