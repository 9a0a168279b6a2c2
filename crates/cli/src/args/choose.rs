//! The command line of `nvlab choose`.

use clap::Args;
use nvlab_run::Preparation;
use nvlab_run::plan::Until;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  nvlab choose ssd-tlc --free 'ftl.spare=5%..40%' --free 'ftl.clean.kind=*' --free 'array.channels=2,4,8' \\
      -w 'zipf read=70% rate=20k/s' --need 'write.p99 <= 2ms' --need 'life >= 5y' --best price
  nvlab choose ssd-tlc --free 'ftl.spare=5%..40%' -w web.csv.gz:msr --best price --best lifetime --html front.html

More: nvlab explain choose";

#[derive(Args)]
pub struct Choose {
    /// Design: NAME | FILE.toml, with changes after commas
    pub design: String,
    /// A key that may be changed, and to what: KEY=LO..HI (16 values) | KEY=LO..HI:STEP | KEY=LO..HI*FACTOR |
    /// KEY=V1,V2,... | KEY=* for all names (repeatable)
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub free: Vec<String>,
    /// Workload, as for `run` (repeated: they run together)
    #[arg(short = 'w', long, value_name = "WORKLOAD", required = true)]
    pub workload: Vec<String>,
    /// What must hold, e.g. --need 'write.p99 <= 2ms' (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub need: Vec<String>,
    /// What is to be best: a metric. Several: all designs of which none is better in each
    #[arg(long, value_name = "METRIC", required = true)]
    pub best: Vec<String>,
    /// Change one value in all designs (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs at most
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: u32,
    /// Seed of the search and of what is measured
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Where a run ends, as for `run`
    #[arg(long, value_name = "LIMIT")]
    pub until: Option<Until>,
    /// Bring the devices to a known state first, as for `run`
    #[arg(long, default_value = "steady", value_name = "STATE")]
    pub precondition: Preparation,
    /// Write the answer as a page to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
