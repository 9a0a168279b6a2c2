//! The command line of `nvlab cut`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The program runs first without a cut, to count operations; then once for each cut, on a new device, as NVLAB_PHASE=run.
When the power fails it is killed with all it started; the device finds everything again, and the program runs as
NVLAB_PHASE=check: whatever it ends with but 0 is a loss. The device is at $NVLAB_URI (NBD), and with --fuse it is the
file $NVLAB_DEV. $NVLAB_NOTES is a folder that outlives the cut, for what was acknowledged.

Examples:
  nvlab cut ssd-mlc-2010 --cuts 200 -- ./commits.sh
  nvlab cut ssd-mlc-2010 --ignore-flush --cuts 50 -- ./commits.sh      # must find a loss
  nvlab cut ssd-mlc-2010 --replay cut-failure.json -- ./commits.sh";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Cut {
    /// Design: NAME or FILE.toml, with changes after commas
    pub design: String,
    /// Change one design value (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the moments and of the device's random choices
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// How many cuts
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cuts: u64,
    /// The device is a file in DIR, too: an empty directory, or one that is made
    #[arg(long, value_name = "DIR")]
    pub fuse: Option<PathBuf>,
    /// A device that lies: FLUSH is acknowledged and nothing is made durable for it
    #[arg(long)]
    pub ignore_flush: bool,
    /// Where the first failure is written, for --replay; replaced if it exists
    #[arg(long, default_value = "cut-failure.json", value_name = "FILE")]
    pub save: PathBuf,
    /// Only the cut of this failure
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
