//! Compiles C programs against the headers and the static library, and runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The static library that Cargo built for this test: it lies beside the test's program.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let path = folder.join("librvm.a");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

/// The program made of a C file, with every warning an error.
pub fn compile(source: &Path, folder: &Path) -> PathBuf {
    let program = folder.join(source.file_stem().unwrap());
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(include)
        .arg(source)
        .arg(library())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("cc can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a program and returns what it printed; fails with its output if it does.
pub fn run(program: &Path, arguments: &[&Path]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {}\n{out}{error}", program.display(), output.status);
    out.into_owned()
}
