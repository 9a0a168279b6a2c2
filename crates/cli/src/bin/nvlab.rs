//! The `nvlab` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(nvlab_cli::run(std::env::args_os().collect()))
}
