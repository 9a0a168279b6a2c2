//! The Python package on the extension that Cargo has built, without installing anything: a folder with `python/nvlab` and the
//! library beside it is on the path. The interpreter is that of `NVLAB_PYTHON` (see `scripts/python-env.sh`, which `.ci/run`
//! calls), else `python3`; where it lacks what a test needs, the test is skipped and its output says so. With `NVLAB_PYTHON` set,
//! nothing is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// The interpreter, if it has these modules; otherwise says what is missing.
pub fn python(modules: &[&str]) -> Option<PathBuf> {
    let given = std::env::var_os("NVLAB_PYTHON").map(PathBuf::from);
    let python = given.clone().unwrap_or_else(|| PathBuf::from("python3"));
    let imports = modules.join(", ");
    let check = format!("import sys, {imports}; sys.exit(sys.version_info < (3, 11))");
    let found = Command::new(&python).args(["-c", &check]).output();
    if found.as_ref().is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let why =
        found.map_or_else(|error| error.to_string(), |out| String::from_utf8_lossy(&out.stderr).into_owned());
    assert!(given.is_none(), "{} needs Python 3.11 with {imports}: {why}", python.display());
    eprintln!("SKIPPED: there is no Python 3.11 with {imports} (scripts/python-env.sh makes one)");
    None
}

/// A folder from which `import nvlab` takes the package with the built library.
fn package() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("nvlab");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(root().join("python/nvlab")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    // Cargo builds the library for this test; it lies beside the test's program.
    let built = std::env::current_exe().unwrap().with_file_name("lib_nvlab.so");
    std::os::unix::fs::symlink(built, package.join("_nvlab.abi3.so")).unwrap();
    folder
}

/// Runs Python in the root of the repository; its failure is that of the test.
pub fn run(python: &Path, arguments: &[&str]) {
    let folder = package();
    // Each process would compile it again.
    let compiled = Command::new(python).args(["-m", "compileall", "-q"]).arg(folder.path()).status();
    assert!(compiled.unwrap().success());
    let mut command = Command::new(python);
    command
        .args(arguments)
        .current_dir(root())
        .env("PYTHONPATH", folder.path())
        .env("MYPYPATH", folder.path());
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("MPLBACKEND", "agg").env("NVLAB_PACKAGE", folder.path());
    command.env_remove("NVLAB_OUT").env("NVLAB_CACHE", folder.path().join("devices"));
    let output = command.output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{arguments:?}: {}\n{out}\n{error}", output.status);
    println!("{out}");
}
