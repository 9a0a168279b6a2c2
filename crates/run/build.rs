//! Tells the program what it was built from: `NVLAB_SOURCES` is a digest of all sources that a result depends on.
//!
//! Beside a packaged crate the others are not there: then the version, which they share, stands for them.

mod sources;

use std::path::Path;

/// The crates that compute results, beside this one.
const CRATES: [&str; 10] =
    ["units", "os", "medium", "controller", "access", "workload", "rvm", "nvheap", "nvheap-derive", "design"];

fn main() {
    let crates = CRATES.iter().map(|name| format!("../{name}/src"));
    let folders: Vec<String> = crates.chain(["src".to_string(), "../../parts".to_string()]).collect();
    folders.iter().for_each(|folder| println!("cargo::rerun-if-changed={folder}"));
    let digest = sources::digest(Path::new(env!("CARGO_MANIFEST_DIR")), &folders);
    let digest = digest.unwrap_or_else(|error| panic!("the sources cannot be read: {error}"));
    println!("cargo::rustc-env=NVLAB_SOURCES={digest:016x}");
}
