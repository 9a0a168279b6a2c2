//! The `nvlab` program: parse, call, print. The work is in `nvlab-lab`; messages and exit statuses are here.
//!
//! | module | what |
//! |---|---|
//! | `args` | the command line |
//! | `verbs` | one file for each verb |
//! | `runs` | what is printed while the engine runs |
//! | `output`, `table`, `progress` | stdout, stderr, lists, bars |
//! | `failure` | why it failed, and the exit status |

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
use std::panic;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// The version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit it was built from; empty outside a checkout.
pub const COMMIT: &str = env!("NVLAB_COMMIT");

fn main() -> ExitCode {
    panic::set_hook(Box::new(|fault| say(fault_text(&fault.to_string()))));
    match panic::catch_unwind(start) {
        Ok(status) => ExitCode::from(status),
        Err(_) => ExitCode::from(STATUS_FAULT),
    }
}

fn start() -> u8 {
    let cli = match parse() {
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
            match &failure {
                Failure::Program(_) => {}
                Failure::Design(errors) => say(errors.render(output.colors_errors())),
                other => output.error(other),
            }
            failure.status()
        }
    }
}

/// `--color` also applies to help and usage errors, which are printed before it is parsed.
fn parse() -> Result<Cli, clap::Error> {
    let arguments: Vec<String> =
        std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    let asked = |word: &str| {
        let together = format!("--color={word}");
        arguments.contains(&together)
            || arguments.windows(2).any(|pair| pair[0] == "--color" && pair[1] == word)
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
    let matches = Cli::command().color(choice).try_get_matches()?;
    Cli::from_arg_matches(&matches)
}

/// The message for a bug in nvlab.
fn fault_text(fault: &str) -> String {
    let arguments: Vec<String> = std::env::args().collect();
    let commit = if COMMIT.is_empty() { String::new() } else { format!(" ({COMMIT})") };
    format!(
        "error: this is a fault of nvlab, not of your input\n  {}\n  nvlab {VERSION}{commit}\n  {}\nPlease report it \
         with the lines above and the files they name.",
        fault.replace('\n', "\n  "),
        arguments.join(" ")
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_fault_says_what_to_report() {
        let text = super::fault_text("panicked at x.rs:1:2:\nboom");
        assert!(text.starts_with(
            "error: this is a fault of nvlab, not of your input\n  panicked at x.rs:1:2:\n  boom\n  nvlab 0."
        ));
        assert!(text.ends_with("Please report it with the lines above and the files they name."), "{text}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Cli::command().debug_assert();
    }
}
