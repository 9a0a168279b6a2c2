//! Compiles C programs against the headers and a library, and runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library a program is linked with.
#[allow(dead_code, reason = "not every test program uses both")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Static,
    Shared,
}

/// The program made of a C file, with every warning an error.
pub fn compile(source: &Path, folder: &Path, library: Library) -> PathBuf {
    let program = folder.join(source.file_stem().unwrap());
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    // Cargo builds the libraries for this test; they lie beside the test's program.
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap();
    let name = if library == Library::Static { "librvm.a" } else { "librvm.so" };
    let output = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(include)
        .arg(source)
        .arg(built.join(name))
        .arg(format!("-Wl,-rpath,{}", built.display()))
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
