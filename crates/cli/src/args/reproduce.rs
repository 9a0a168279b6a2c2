//! The command line of `nvlab reproduce`.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct Reproduce {
    /// The system: 000 (eNVy), 001 (transaction logs on flash), 002 (SLC log over MLC), 003 (PRAM beside NAND), 004 (fast
    /// non-volatile memories), drives (published figures of real drives, and held-out: each predicted from the others), or a folder
    /// of experiment files (with a /)
    pub seed: String,
    /// Only these figures, e.g. fig08,fig13
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub only: Vec<String>,
    /// Smoke test with small arrays: shows that it works, and checks what theory predicts at that size
    #[arg(long)]
    pub smoke: bool,
    /// Run again even if the same runs are among the results
    #[arg(long)]
    pub force: bool,
    /// HTML page with all figures; replaced if it exists [default: reproduce-SEED.html under --out]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
