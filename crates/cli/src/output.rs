//! Output to stdout and stderr, and its style.
//!
//! 1. stdout is for results, stderr for everything else.
//! 2. If the reader of stdout is gone (`nvlab parts | head -1`), the program ends quietly.
//! 3. Printing to stderr never fails.

use crate::args::{FormatName, Global, When};
use crate::failure::STATUS_PIPE;
use crate::table::Table;
use nvlab_report::{Format, Style};
use nvlab_run::prepared;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

/// Where and how results and messages are printed, from the global options.
#[derive(Clone, Debug)]
pub struct Output {
    /// Format of results.
    pub format: Format,
    /// Folder of results.
    pub out: PathBuf,
    /// Runs at the same time.
    pub jobs: usize,
    /// Where prepared devices are kept, and how many bytes they may take; `None`: nothing is cached.
    pub cache: Option<(PathBuf, u64)>,
    /// -2 (errors only) to 2 (everything).
    pub loudness: i32,
    /// Progress bars are drawn.
    pub progress: bool,
    /// Where they are not, a line is printed now and then.
    pub progress_lines: bool,
    color_out: bool,
    color_err: bool,
}

/// The folder for prepared devices; `None` without a home.
fn cache(global: &Global) -> Option<(PathBuf, u64)> {
    let folder = global.cache.clone().or_else(prepared::user_folder);
    folder.filter(|_| !global.no_cache).map(|folder| (folder, global.cache_size))
}

impl Output {
    pub fn new(global: &Global) -> Output {
        let format = match (global.json, global.format) {
            (true, _) => Format::Json,
            (false, name) => name.unwrap_or(FormatName::Human).format(),
        };
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
        let jobs = global.jobs.map_or(cores, |jobs| jobs as usize);
        let loudness = i32::from(global.verbose) - i32::from(global.quiet);
        let err_is_terminal = io::stderr().is_terminal() && !is_dumb();
        let progress = err_is_terminal && !global.no_progress && loudness >= 0;
        Output {
            format,
            out: global.out.clone(),
            jobs,
            cache: cache(global),
            loudness,
            progress,
            progress_lines: !progress && !global.no_progress && loudness >= 0,
            color_out: color(global.color, io::stdout().is_terminal()),
            color_err: color(global.color, io::stderr().is_terminal()),
        }
    }

    pub fn style(&self) -> Style {
        Style { color: self.color_out, width: width() }
    }

    /// Prints a result, with a line end after it.
    pub fn print(&self, text: impl Display) {
        print(text);
    }

    /// Prints a table in the format asked for.
    pub fn table(&self, table: &Table) {
        let style = self.style();
        self.print(table.render(self.format, style.width, style.color));
    }

    /// Prints to stderr, unless `--quiet`.
    pub fn note(&self, text: impl Display) {
        if self.loudness >= 0 {
            say(text);
        }
    }

    /// Prints to stderr with `--verbose`.
    pub fn detail(&self, text: impl Display) {
        if self.loudness >= 1 {
            say(text);
        }
    }

    /// Prints a note that matters to stderr, unless `-qq`.
    pub fn warn(&self, text: impl Display) {
        if self.loudness >= -1 {
            say(format_args!("{} {text}", self.painted("33", "note:")));
        }
    }

    /// Prints to stderr, always.
    pub fn error(&self, text: impl Display) {
        say(format_args!("{} {text}", self.painted("1;31", "error:")));
    }

    pub fn colors_errors(&self) -> bool {
        self.color_err
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.color_err { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Prints a text on stdout, with a line end after it.
pub fn print(text: impl Display) {
    let text = text.to_string();
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| match text.ends_with('\n') {
        true => Ok(()),
        false => out.write_all(b"\n"),
    });
    if let Err(error) = written.and_then(|()| out.flush()) {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(i32::from(STATUS_PIPE));
        }
        say(format_args!("error: cannot write to stdout: {error}"));
        std::process::exit(4);
    }
}

/// Prints a line on stderr if it can be printed.
pub fn say(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Columns of the terminal that shows stdout; 100 if it is not a terminal.
pub fn width() -> usize {
    let terminal = console::Term::stdout();
    let (_, columns) = terminal.size_checked().unwrap_or((0, 100));
    usize::from(columns).clamp(60, 140)
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether to use colours: depends on the option, the environment and where the text goes.
pub fn color(when: When, is_terminal: bool) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto if set("NO_COLOR") => false,
        When::Auto if forced => true,
        When::Auto => is_terminal && !is_dumb(),
    }
}

/// A word as a POSIX shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
