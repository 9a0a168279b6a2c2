//! C programs that use the library as Coda's: compiled with `cc` against the headers, linked with a library, run.

mod compiler;

use compiler::Library;
use std::path::{Path, PathBuf};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

/// Runs a program on an empty folder and returns what it printed.
fn output(name: &str, library: Library) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = compiler::compile(&source(name), folder.path(), library);
    let work = folder.path().canonicalize().unwrap().join("work");
    std::fs::create_dir(&work).unwrap();
    compiler::run(&program, &[&work])
}

#[test]
fn every_function_does_what_the_header_says() {
    let output = output("interface.c", Library::Static);
    assert_eq!(output.lines().count(), 14, "{output}");
}

#[test]
fn termination_leaves_nothing_to_recover_unless_that_is_wanted() {
    let output = output("stop.c", Library::Static);
    assert_eq!(output.lines().count(), 5, "{output}");
}

#[test]
fn what_the_stress_program_of_coda_uses_is_there() {
    for library in [Library::Static, Library::Shared] {
        assert_eq!(output("hooks.c", library), "loading\nthreads\n");
    }
}

#[test]
fn a_copied_log_is_recovered_into_the_copies() {
    assert_eq!(output("relocate.c", Library::Static).lines().count(), 7);
}

#[test]
fn a_program_in_the_style_of_coda_keeps_its_ledger() {
    assert_eq!(output("ledger.c", Library::Static), "5 runs\n");
    assert_eq!(output("ledger.c", Library::Shared), "5 runs\n");
}
