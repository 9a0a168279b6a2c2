//! Compiles the preloaded library (`crates/window-preload`) and leaves it where `preload.rs` embeds it.
//!
//! Cargo has no stable way to depend on a cdylib of the same workspace, and a library beside the program would be lost
//! by `cargo run`, `cargo test` and `cargo install` alike. The library has no dependencies, so the compiler is called
//! directly; the crate is also a member of the workspace, so that it is checked as all others.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is"));
    let source = here.join("../window-preload/src/lib.rs");
    let library =
        PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where to build")).join("preload.so");
    println!("cargo::rerun-if-changed={}", here.join("../window-preload/src").display());
    println!("cargo::rerun-if-changed=src/sys/abi.rs");
    let mut compiler = Command::new(env::var_os("RUSTC").expect("cargo says which compiler"));
    compiler.args(["--crate-name", "nvlab_window_preload", "--crate-type", "cdylib", "--edition", "2024"]);
    compiler.args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols", "-C", "lto=fat"]);
    compiler.arg("--target").arg(env::var_os("TARGET").expect("cargo says the target"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        compiler.arg("-C").arg(format!("linker={}", linker.display()));
    }
    compiler.arg("-o").arg(&library).arg(&source);
    let status = compiler.status().expect("the compiler can be started");
    assert!(status.success(), "{} does not compile: {status}", source.display());
}
