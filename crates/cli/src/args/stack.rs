//! The command line of `nvlab stack`.

use super::size;
use clap::Args;
use nvlab_serve::stack;
use nvlab_workload::Op;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Loop devices and file systems need root; layers that cannot be measured are listed with the reason. With --path, the
stages of one path are computed as differences between layers. If their sum is more than 10 % off the time of the
whole path, the exit status is 1.

Examples:
  nvlab stack                                              every layer, takes about 10 s
  nvlab stack --path ext4-direct --stages stages.toml      the stages of one path, for path.stages of a design
  nvlab stack --quick --html stack.html                    a quick measurement, as a page with plots";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Stack {
    /// Split this path into stages: mmap, tmpfs, loop, io_uring, ext4-cached, ext4-direct, ext4-io_uring,
    /// ext4-fdatasync, xfs-direct, fuse, nbd [default: every path that can be measured]
    #[arg(long, value_name = "PATH")]
    pub path: Option<stack::Path>,
    /// Operation to measure: read or write
    #[arg(long, default_value = "read", value_name = "OP", value_parser = op)]
    pub op: Op,
    /// Write the stages to FILE, for path.stages in a design; replaced if it exists
    #[arg(long, value_name = "FILE", requires = "path")]
    pub stages: Option<PathBuf>,
    /// Request size, a multiple of 4 KiB
    #[arg(long, default_value = "4 KiB", value_name = "SIZE", value_parser = size)]
    pub size: u64,
    /// Time slices per layer, at least 4 [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub rounds: Option<u32>,
    /// Measure quickly: fewer and shorter slices
    #[arg(long)]
    pub quick: bool,
    /// Write a plot of the paths to FILE, as SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write an HTML page with the table and plots to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

fn op(text: &str) -> Result<Op, String> {
    match text {
        "read" => Ok(Op::Read),
        "write" => Ok(Op::Write),
        _ => Err("write read or write".into()),
    }
}
