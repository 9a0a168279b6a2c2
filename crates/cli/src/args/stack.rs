//! The command line of `nvlab stack`.

use super::size;
use clap::Args;
use nvlab_serve::stack;
use nvlab_workload::Op;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Loop devices and file systems need root; what cannot be measured is listed with the reason. With --path the stages of one
path are differences of layers; if they add up to something else than the whole path (by more than 10 %), the status is 1.

Examples:
  nvlab stack                                              every layer, some 10 s
  nvlab stack --path ext4-direct --stages stages.toml      the stages of one path, for path.stages of a design
  nvlab stack --quick --html stack.html                    a first look, and a page with plots";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Stack {
    /// Take this path apart: mmap, tmpfs, loop, io_uring, ext4-cached, ext4-direct, ext4-io_uring, ext4-fdatasync, xfs-direct,
    /// fuse, nbd [default: all that could be measured]
    #[arg(long, value_name = "PATH")]
    pub path: Option<stack::Path>,
    /// Take it apart for reads or for writes
    #[arg(long, default_value = "read", value_name = "OP", value_parser = op)]
    pub op: Op,
    /// Write the stages of the path to FILE, for path.stages of a design; replaced if it exists
    #[arg(long, value_name = "FILE", requires = "path")]
    pub stages: Option<PathBuf>,
    /// Bytes of a request: a multiple of 4 KiB
    #[arg(long, default_value = "4 KiB", value_name = "SIZE", value_parser = size)]
    pub size: u64,
    /// Slices of each layer, at least 4 [default: 60]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub rounds: Option<u32>,
    /// A short look: few and short slices
    #[arg(long)]
    pub quick: bool,
    /// Write the plot of the paths as SVG to FILE
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write a page with the table and plots to FILE
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
