//! `nvlab completions` and `nvlab man`: made from the command line's own description.

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::Output;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

pub fn completions(output: &Output, shell: Shell) -> Result<(), Failure> {
    // Into memory first: the generator panics if stdout is closed.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "nvlab", &mut text);
    output.print(String::from_utf8_lossy(&text));
    Ok(())
}

pub fn man(output: &Output, dir: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::machine(dir.display(), &error);
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
    output.note(format_args!("man pages: {}", dir.display()));
    Ok(())
}
