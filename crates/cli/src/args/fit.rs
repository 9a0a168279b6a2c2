//! The command line of `nvlab fit`.

use clap::Args;
use nvlab_fit::figures::State;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  nvlab design new --figures mine.toml          a file of figures to start from
  nvlab fit mine.toml -o drive.toml             the design, in a file that `run` takes
  nvlab fit mine.toml --json                    numbers, intervals, residuals for programs
  nvlab fit mine.toml fio-*.json --state steady
                                                what fio measured (--output-format=json), besides

More: nvlab explain fit";

#[derive(Args)]
pub struct Fit {
    /// Figures: FILE.toml (nvlab design new --figures). With -o NAME.toml the design is written there, replacing it
    pub figures: PathBuf,
    /// What fio measured of the drive, besides: its JSON (--output-format=json), of any jobs
    pub measured: Vec<PathBuf>,
    /// In which state the drive was when fio wrote to it: fresh, cache, after cache, full, steady
    #[arg(long, requires = "measured")]
    pub state: Option<State>,
    /// The capacity whose design is wanted, if the file has several [default: the first]
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub capacity: Option<u64>,
    /// Seed of the search
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Write the answer as a page to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "held_out")]
    pub html: Option<PathBuf>,
    /// Instead of the design: predict each figure from all others
    #[arg(long)]
    pub held_out: bool,
}
