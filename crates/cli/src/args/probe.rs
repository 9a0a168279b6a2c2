//! `nvlab probe`.

use clap::Args;
use nvlab_fit::figures::State;
use nvlab_units::Span;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  nvlab probe /dev/nvme0n1                               reads only: a minute
  nvlab probe /dev/nvme1n1 --write '100 GB' --state full writes, too: what is on it is lost
  nvlab fit mine.toml nvme0n1.probe.json -o drive.toml   the design of the drive

More: nvlab explain fit";

#[derive(Args)]
pub struct Probe {
    /// The drive: a block device, a file on it, or the address of an NBD export
    pub target: String,
    /// The file to write; one that is there is continued [default: TARGET.probe.json]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How long each pattern is measured
    #[arg(long, default_value = "5 s", value_name = "TIME", value_parser = seconds)]
    pub each: Span,
    /// Also write, at most so many bytes: WHAT IS ON THE TARGET IS LOST
    #[arg(long, value_name = "SIZE", value_parser = super::size, requires = "state")]
    pub write: Option<u64>,
    /// In which state the drive is: fresh, cache, after cache, full, steady (no program can tell)
    #[arg(long, requires = "write")]
    pub state: Option<State>,
    /// Instead of typing it when asked: the name of the target whose contents may be lost
    #[arg(long, value_name = "TARGET")]
    pub lose: Option<String>,
}

fn seconds(text: &str) -> Result<Span, String> {
    let span = nvlab_units::quantity::span(text).map_err(|error| error.to_string())?;
    let allowed = Span::from_seconds(1.0)..=Span::from_seconds(3600.0);
    if allowed.contains(&span) { Ok(span) } else { Err("from 1 s to 1 h".to_string()) }
}
