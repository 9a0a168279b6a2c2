//! A folder with a user's files, in which command lines are run, restored before the next one.

use super::grammar::Line;
use crate::common::Folder;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long a line may take before it is killed and its status ignored.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The folder, and what was in it.
pub struct Scratch {
    folder: Folder,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// How a line ended.
pub struct Ended {
    /// Its status; 128 + the signal, as in a shell; `None`: it took too long.
    pub status: Option<i32>,
    /// What it wrote on standard error.
    pub said: String,
}

impl Scratch {
    /// With a design, a broken one, a trace, a job file, notes, an image and a kept result.
    pub fn new(worker: usize) -> Scratch {
        let folder = Folder::new(&format!("fuzz-{worker}"));
        let write = |name: &str, bytes: &[u8]| fs::write(folder.0.join(name), bytes).unwrap();
        write("mine.toml", b"[design]\nextends = \"builtin:bench-4g\"\n[media.nand]\nblocks = 256\n");
        write("broken.toml", b"[ftl]\nkind = \"pag\n");
        write("notes.txt", b"what I must not forget\n");
        write("job.fio", b"[writer]\nrw=randwrite\nbs=4k\nsize=16m\n[reader]\nrw=read\nsize=16m\n");
        write("image.bin", &[7; 4096]);
        let row = |i: u64| format!("{},h,0,Write,{},4096,9\n", 128166372000000000 + i * 1000, i % 100 * 4096);
        write("trace.csv", (0..200).map(row).collect::<String>().as_bytes());
        fs::create_dir(folder.0.join("folder")).unwrap();
        write("folder/inside.txt", b"and this\n");
        let run = [
            "run",
            "mine.toml",
            "-w",
            "uniform",
            "--until",
            "100 io",
            "--precondition",
            "fresh",
            "-o",
            "kept",
        ];
        assert!(folder.run(&run).status.success());
        let kept = fs::read_dir(folder.0.join("kept")).unwrap().map(|entry| entry.unwrap().path());
        let kept: Vec<PathBuf> = kept.filter(|path| path.join("result.json").exists()).collect();
        fs::rename(&kept[0], folder.0.join("kept/one")).unwrap();
        let mut files = BTreeMap::new();
        read(&folder.0, &mut files);
        assert!(files.len() >= 8, "{:?}", files.keys());
        Scratch { folder, files }
    }

    /// Runs a line, with 4 GiB of address space.
    pub fn run(&mut self, line: &Line) -> Ended {
        let said = self.folder.0.join(".said");
        let arguments: Vec<&str> = line.arguments.iter().map(String::as_str).collect();
        let mut command = self.folder.nvlab_limited(4 << 20, &arguments);
        let stderr = fs::File::create(&said).unwrap();
        let mut child = command.stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(of(status));
            }
            if begun.elapsed() > TIME_MAX {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let text = String::from_utf8_lossy(&fs::read(&said).unwrap()).into_owned();
        fs::remove_file(&said).unwrap();
        Ended { status, said: text }
    }

    /// The files that have changed, without those in `outputs`.
    pub fn lost(&self, outputs: &[String]) -> Vec<String> {
        let named = |path: &Path| outputs.iter().any(|output| path.starts_with(self.folder.0.join(output)));
        let changed = self.files.iter().filter(|(path, bytes)| fs::read(path).ok().as_ref() != Some(*bytes));
        let lost = changed.filter(|(path, _)| !named(path));
        lost.map(|(path, _)| format!("{} is lost or changed", path.display())).collect()
    }

    /// Restores the folder.
    pub fn restore(&mut self) {
        let mut now = BTreeMap::new();
        read(&self.folder.0, &mut now);
        for path in now.keys().filter(|path| !self.files.contains_key(*path)) {
            fs::remove_file(path).unwrap();
        }
        for (path, bytes) in self.files.iter().filter(|(path, bytes)| now.get(*path) != Some(*bytes)) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        for name in ["runs", "new.file", "folder/new.file"] {
            let _ = fs::remove_dir_all(self.folder.0.join(name));
        }
    }
}

fn of(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Every file in a folder, with its bytes; sockets and the like have none.
fn read(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.symlink_metadata().unwrap() {
            meta if meta.is_dir() => read(&path, files),
            meta if meta.is_file() => drop(files.insert(path.clone(), fs::read(&path).unwrap())),
            _ => drop(files.insert(path, Vec::new())),
        }
    }
}
