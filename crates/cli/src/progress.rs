//! Progress on stderr: one line for each run under way; without a terminal, nothing.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Steps of a bar.
const STEPS: u64 = 1000;

/// All bars of a program.
#[derive(Clone, Debug)]
pub struct Progress {
    all: MultiProgress,
    name_width: usize,
}

/// The bar of one run.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    phase: String,
}

impl Progress {
    /// `shown`: on stderr; otherwise nowhere. `name_width`: characters of the longest name.
    pub fn new(shown: bool, name_width: usize) -> Progress {
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Progress { all: MultiProgress::with_draw_target(target), name_width: name_width.min(48) }
    }

    /// A bar for a run that begins now.
    pub fn begin(&self, name: &str) -> Bar {
        let bar = self.all.add(ProgressBar::new(STEPS));
        let template = "  {prefix} {msg:10} {bar:32} {percent:>3} %  {elapsed:>4}";
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        bar.set_style(style.progress_chars("━╸ "));
        bar.set_prefix(format!("{name:width$}", width = self.name_width));
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar, phase: String::new() }
    }

    /// Removes all remaining bars.
    pub fn end(&self) {
        let _ = self.all.clear();
    }

    /// Prints lines while bars are drawn.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.all.suspend(print)
    }
}

impl Bar {
    /// Shows the share of a phase that is done, if it is known; settling may take longer than expected.
    pub fn at(&mut self, phase: &str, share: f64) {
        if self.phase != phase {
            self.phase = phase.to_string();
            self.bar.set_message(self.phase.clone());
        }
        // How long settling takes is not known in advance: the bar cycles.
        let share = if phase == "settling" && share > 1.0 { share.fract() } else { share.clamp(0.0, 1.0) };
        self.bar.set_position((share * STEPS as f64) as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
