//! What the tests share: folders, C programs, and windows that a machine may not permit.

// Each test program uses some of it.
#![allow(dead_code)]

use nvlab_design::Design;
use nvlab_serve::{ServeError, TimeMode, WindowOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A folder of its own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A new one; it need not exist to be a state.
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nvlab-serve-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A C program of `tests/programs`, compiled into this folder.
    pub fn program(&self, name: &str) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
        let program = self.0.join(name);
        let status = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(&source).status();
        assert!(
            status.expect("cc, which links this test, too").success(),
            "{} does not compile",
            source.display()
        );
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A design with settings of its own.
pub fn design(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name}: {errors}"))
}

/// A window of so many pages, of which so many may be resident; faults are answered at once.
pub fn options(pages: u64, resident: u64, state: Option<&Path>) -> WindowOptions {
    WindowOptions {
        bytes: Some(pages * PAGE),
        resident_bytes: Some(resident * PAGE),
        state: state.map(Path::to_path_buf),
        time: TimeMode::Fast,
        ..WindowOptions::default()
    }
}

/// What was opened, or `None` on a machine that does not permit it.
pub fn permitted<T>(opened: Result<T, ServeError>) -> Option<T> {
    match opened {
        Ok(opened) => Some(opened),
        Err(ServeError::NotPermitted(error)) => {
            eprintln!("SKIPPED: userfaultfd is not permitted on this machine: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}
