//! The `nvlab` program.

use nvlab_os::HugeAlloc;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: HugeAlloc = HugeAlloc;

fn main() -> ExitCode {
    ExitCode::from(nvlab_cli::run(std::env::args_os().collect()))
}
