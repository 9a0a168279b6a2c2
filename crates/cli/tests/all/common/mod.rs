//! What the tests share: the program in a folder of its own, and what it printed.

// Each test program uses some of it.
#![allow(dead_code)]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder of its own, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nvlab-cli-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The program, run in this folder, without influence of the environment.
    pub fn nvlab(&self, arguments: &[&str]) -> Command {
        let mut command = self.in_folder(Command::new(env!("CARGO_BIN_EXE_nvlab")));
        command.args(arguments);
        command
    }

    /// The same with a limit on address space in KiB.
    pub fn nvlab_limited(&self, kib: u64, arguments: &[&str]) -> Command {
        let mut command = self.in_folder(Command::new("sh"));
        command.args(["-c", &format!("ulimit -v {kib}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_nvlab")]);
        command.args(arguments);
        command
    }

    fn in_folder(&self, mut command: Command) -> Command {
        command.current_dir(&self.0).stdin(Stdio::null());
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "NVLAB_OUT", "NVLAB_FORMAT", "NVLAB_JOBS"] {
            command.env_remove(name);
        }
        command.env("NVLAB_CACHE", self.0.with_extension("cache"));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.nvlab(arguments).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        let _ = std::fs::remove_dir_all(self.0.with_extension("cache"));
    }
}

/// What it wrote on standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
