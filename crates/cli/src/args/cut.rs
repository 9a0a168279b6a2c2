//! The command line of `nvlab cut`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The program runs once, as NVLAB_PHASE=run, on a served device that records what changes it. The device is at
$NVLAB_URI (NBD), with --fuse it is the file $NVLAB_DEV; with --check fs=KIND it has a file system, mounted at
$NVLAB_MNT, where the program begins. Then the recorded run is done again, up to each of N moments and the moments
around as many flushes: the power fails, the device finds everything again, and this is checked:

  device            (always) every unit reads as the newest version that was flushed, or as a newer one
  fs=ext4|xfs|btrfs a copy of the device is mounted, and its fsck finds nothing; needs root
  program           the program runs again as NVLAB_PHASE=check, on that copy: whatever it ends with but 0 is a loss
  program=SCRIPT    the same with sh -c SCRIPT

Lines that the program printed are marks of what was acknowledged; those from before the cut are in the file
$NVLAB_MARKS of the check. A line must leave the program when it is true: print it after the commit, unbuffered.
The first loss is made smaller (an earlier moment; for the device, fewer operations) and saved for --replay.

Examples:
  nvlab cut ssd-mlc-2010 --check fs=ext4 --check program -- ./commits.sh
  nvlab cut ssd-mlc-2010 --ignore-flush --check fs=ext4 --check program -- ./commits.sh      # must find a loss
  nvlab cut ssd-mlc-2010 --check fs=ext4 --replay cut-failure.nvcut
  nvlab cut ssd-tlc --fuse dev --check program='./verify.sh' -- fio my.fio --filename=dev/ssd-tlc";

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
    /// Number of cuts at any operation, and at most as many more around flushes
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cuts: u64,
    /// What is checked: device | fs=ext4|xfs|btrfs | program[=SCRIPT] (repeatable)
    #[arg(long, value_name = "WHAT")]
    pub check: Vec<String>,
    /// The device is also a file in DIR: an empty directory, or one to create
    #[arg(long, value_name = "DIR")]
    pub fuse: Option<PathBuf>,
    /// A device that lies: FLUSH is acknowledged and nothing is made durable for it
    #[arg(long)]
    pub ignore_flush: bool,
    /// Where the first loss is written, for --replay; replaced if it exists
    #[arg(long, default_value = "cut-failure.nvcut", value_name = "FILE")]
    pub save: PathBuf,
    /// Repeat only the cut saved in this file, with the checks named; only --check program needs the program
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "replay", num_args = 1.., value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
