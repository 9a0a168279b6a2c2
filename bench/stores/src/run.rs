//! How a comparison runs: itself, or as the process of one contender.

use crate::Result;
use std::process::ExitCode;

/// Runs `child` with what follows `--child`, or `all` with all arguments. The status is 1 if it failed, or if `all` says that somebody
/// did.
pub fn run(child: impl Fn(&[String]) -> Result<()>, all: impl Fn(&[String]) -> Result<bool>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.split_first() {
        Some((first, rest)) if first == "--child" => child(rest).map(|()| true),
        _ => all(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
