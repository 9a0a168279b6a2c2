//! Runs the tests of the Python package, checks its types, and makes the documentation site.

mod package;
mod site;

use package::{python, run};
use std::fs;

#[test]
fn tests_of_the_package_pass() {
    let Some(python) = python(&["pytest", "pyarrow", "polars", "matplotlib"]) else { return };
    run(&python, &["-m", "pytest", "-q", "-p", "no:cacheprovider", "python/tests"]);
}

#[test]
fn types_are_complete_and_stubs_match_the_extension() {
    let Some(python) = python(&["mypy"]) else { return };
    let cache = tempfile::tempdir().unwrap();
    let cache = format!("--cache-dir={}", cache.path().display());
    run(&python, &["-m", "mypy", &cache, "--no-error-summary"]);
    let allowed = tempfile::NamedTempFile::new().unwrap();
    fs::write(&allowed, "nvlab._nvlab.__all__\n").unwrap();
    let allowed = allowed.path().display().to_string();
    run(&python, &["-m", "mypy.stubtest", "nvlab._nvlab", "--allowlist", &allowed]);
}
