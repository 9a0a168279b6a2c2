//! Compiles the C file for Berkeley DB, whose interface is macros and tables of functions, and links the library.

use std::process::Command;

fn main() {
    let (source, out) = ("src/store.c", std::env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-env-changed=CC");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let object = format!("{out}/store.o");
    let status = Command::new(compiler).args(["-O2", "-Wall", "-c", source, "-o", &object]).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{source} does not compile: it needs a C compiler and Berkeley DB 5.3 (Debian: libdb5.3-dev)"
    );
    println!("cargo::rustc-link-arg={object}");
    println!("cargo::rustc-link-lib=db-5.3");
}
