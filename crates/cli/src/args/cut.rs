//! The command line of `nvlab cut`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The program runs once, with NVLAB_PHASE=run, on a served device that records every write, trim and flush. The device
is $NVLAB_URI (NBD) and, with --fuse, the file $NVLAB_DEV. With --check fs=KIND it has a file system, mounted at
$NVLAB_MNT, which is the program's working directory. Then the recording is replayed up to each of N random points
and up to points around as many flushes: power fails, the device recovers, and these checks run:

  device            (always) every unit reads as its last flushed version or a newer one
  fs=ext4|xfs|btrfs a copy of the device mounts, and fsck finds no error; needs root
  program           the program runs again with NVLAB_PHASE=check on that copy; any exit status but 0 is a loss
  program=SCRIPT    the same with sh -c SCRIPT

Each line the program prints states what it considers durable. The lines printed before the cut are in the file
$NVLAB_MARKS of the check. Print a line only after its commit, unbuffered.
The first loss is minimized (an earlier cut; for the device check, fewer operations) and saved for --replay.

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
    /// Seed of the cut points and of the device's random choices
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Number of cuts at random operations, plus at most as many around flushes
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub cuts: u64,
    /// What to check: device | fs=ext4|xfs|btrfs | program[=SCRIPT] (repeatable)
    #[arg(long, value_name = "WHAT")]
    pub check: Vec<String>,
    /// Also serve the device as a file in DIR, an empty directory or one to create
    #[arg(long, value_name = "DIR")]
    pub fuse: Option<PathBuf>,
    /// Acknowledge FLUSH without making anything durable (a lying device)
    #[arg(long)]
    pub ignore_flush: bool,
    /// File for the first loss, for --replay; replaced if it exists
    #[arg(long, default_value = "cut-failure.nvcut", value_name = "FILE")]
    pub save: PathBuf,
    /// Replay only the cut saved in FILE, with the given checks; the program is needed only for --check program
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "replay", num_args = 1.., value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
