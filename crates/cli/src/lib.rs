//! The `nvlab` program: parse, call, print. The work is in `nvlab-lab`; messages and exit statuses are here.
//!
//! | module | what |
//! |---|---|
//! | `args` | the command line |
//! | `verbs` | one file for each verb |
//! | `runs` | output while the engine runs |
//! | `output`, `table`, `progress` | stdout, stderr, lists, bars |
//! | `failure` | errors and exit statuses |
//!
//! A library, so that the program `nvlab` and the command of the Python package are the same: both call [`run`].

mod args;
mod failure;
mod output;
mod progress;
mod runs;
mod table;
mod verbs;

use args::{Cli, When};
use clap::{ColorChoice, CommandFactory, FromArgMatches};
use failure::{Failure, STATUS_FAULT, STATUS_INTERRUPTED};
use output::{Output, say};
use std::ffi::OsString;
use std::panic;
use std::sync::atomic::Ordering;

/// Of the package, such as `0.1.0`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit it was built from; empty outside a checkout.
pub const COMMIT: &str = env!("NVLAB_COMMIT");

/// Runs the program with its arguments, the first of them its own name, and returns the exit status. It takes over the
/// process: the handler of Ctrl-C, and what a panic prints.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = words.join(" ");
    panic::set_hook(Box::new(move |fault| say(fault_text(&fault.to_string(), &command))));
    panic::catch_unwind(|| start(arguments, &words)).unwrap_or(STATUS_FAULT)
}

fn start(arguments: Vec<OsString>, words: &[String]) -> u8 {
    let cli = match parse(arguments, words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are not errors.
            let _ = error.print();
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    let output = Output::new(&cli.global);
    // Without a handler Ctrl-C still ends the program, but less gracefully.
    let _ = ctrlc::set_handler(|| {
        if runs::interrupted().swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(STATUS_INTERRUPTED));
        }
    });
    match verbs::dispatch(&output, cli.verb) {
        Ok(()) => 0,
        Err(failure) => {
            tell(&output, &failure);
            failure.status()
        }
    }
}

fn tell(output: &Output, failure: &Failure) {
    match failure {
        Failure::Program(_) => {}
        Failure::Design(errors) => say(errors.render(output.colors_errors())),
        Failure::Inputs(all) => all.iter().for_each(|one| tell(output, one)),
        other => output.error(other),
    }
}

/// `--color` also applies to help and usage errors, which are printed before it is parsed.
fn parse(arguments: Vec<OsString>, words: &[String]) -> Result<Cli, clap::Error> {
    let asked = |word: &str| {
        let together = format!("--color={word}");
        words.contains(&together) || words.windows(2).any(|pair| pair[0] == "--color" && pair[1] == word)
    };
    let when = match (asked("always"), asked("never")) {
        (true, _) => When::Always,
        (_, true) => When::Never,
        _ => When::Auto,
    };
    let choice = match when {
        When::Always => ColorChoice::Always,
        When::Never => ColorChoice::Never,
        When::Auto => ColorChoice::Auto,
    };
    let matches = Cli::command().color(choice).try_get_matches_from(arguments)?;
    Cli::from_arg_matches(&matches)
}

/// The message for a bug in nvlab.
fn fault_text(fault: &str, command: &str) -> String {
    let commit = if COMMIT.is_empty() { String::new() } else { format!(" ({COMMIT})") };
    format!(
        "error: this is a bug in nvlab, not in your input\n  {}\n  nvlab {VERSION}{commit}\n  {command}\nPlease report \
         it with the lines above and the files they name.",
        fault.replace('\n', "\n  ")
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_fault_says_what_to_report() {
        let text = super::fault_text("panicked at x.rs:1:2:\nboom", "nvlab run");
        assert!(text.starts_with(
            "error: this is a bug in nvlab, not in your input\n  panicked at x.rs:1:2:\n  boom\n  nvlab 0."
        ));
        assert!(text.ends_with("Please report it with the lines above and the files they name."), "{text}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Cli::command().debug_assert();
    }
}
