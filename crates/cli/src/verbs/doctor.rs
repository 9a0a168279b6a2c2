//! `nvlab doctor`: the capabilities of this computer, and their consequences for nvlab.

use crate::failure::Failure;
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use crate::{COMMIT, VERSION};
use nvlab_serve::window::latency::{self, Latency, Placement};
use nvlab_units::quantity::display_bytes;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One thing that was checked.
struct Finding {
    what: &'static str,
    /// Good, bad, or (`None`) neither.
    good: Option<bool>,
    found: String,
    meaning: String,
}

pub fn doctor(output: &Output) -> Result<(), Failure> {
    let findings =
        [program(), cores(output), memory(), results(output), fuse(), fusermount(), userfaultfd(), python()];
    let columns = vec![
        Column::text("what", "what"),
        Column::text("state", ""),
        Column::text("found", "found"),
        Column::text("meaning", "for nvlab"),
    ];
    let rows = findings.into_iter().map(|finding| {
        let state = match finding.good {
            Some(true) => "ok",
            Some(false) => "no",
            None => "",
        };
        let value = match finding.good {
            Some(true) => "ok",
            Some(false) => "missing",
            None => "info",
        };
        vec![
            Cell::text(finding.what),
            Cell::new(state, value),
            Cell::text(finding.found),
            Cell::text(finding.meaning),
        ]
    });
    let table = Table { schema: "nvlab.doctor/1", columns, rows: rows.collect() };
    output.table(&table);
    Ok(())
}

fn program() -> Finding {
    let commit = if COMMIT.is_empty() { "no checkout".to_string() } else { format!("commit {COMMIT}") };
    let build = if cfg!(debug_assertions) { "a debug build: many times slower" } else { "a release build" };
    Finding { what: "nvlab", good: None, found: format!("{VERSION}, {commit}"), meaning: build.into() }
}

fn cores(output: &Output) -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
    let runs = if output.jobs == 1 { "run".to_string() } else { "runs".to_string() };
    let meaning = format!("{} {runs} at a time", output.jobs);
    Finding { what: "cores", good: None, found: cores.to_string(), meaning }
}

fn memory() -> Finding {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
    };
    let (Some(total), Some(free)) = (field("MemTotal:"), field("MemAvailable:")) else {
        return Finding { what: "memory", good: None, found: "not known".into(), meaning: String::new() };
    };
    // Two maps of 4 B, counts and buffers: about 10 B for each mapping unit.
    let simulated = free / 10 * 4096;
    Finding {
        what: "memory",
        good: None,
        found: format!("{}, {} free", display_bytes(total), display_bytes(free)),
        meaning: format!("drives of about {} in total, with units of 4 KiB", display_bytes(simulated)),
    }
}

fn results(output: &Output) -> Finding {
    let dir = output.out.display().to_string();
    let (good, meaning) = match fs::metadata(&output.out) {
        Err(_) => (None, "results are stored there; created by the first run".to_string()),
        Ok(meta) if !meta.is_dir() => (Some(false), "not a folder: choose another with --out".to_string()),
        Ok(meta) if meta.permissions().readonly() => {
            (Some(false), "not writable: choose another with --out".to_string())
        }
        Ok(_) => (Some(true), "results are stored there".to_string()),
    };
    Finding { what: "results", good, found: dir, meaning }
}

/// Whether a device file can be used.
fn device(path: &str) -> (bool, String) {
    if !Path::new(path).exists() {
        return (false, format!("no {path}"));
    }
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => (true, path.to_string()),
        Err(error) => (false, format!("{path}: {error}")),
    }
}

fn fuse() -> Finding {
    let (good, found) = device("/dev/fuse");
    let meaning = match good {
        true => "simulated devices can be served as files",
        false => "no simulated device as a file; load the module fuse, or get access to /dev/fuse",
    };
    Finding { what: "FUSE", good: Some(good), found, meaning: meaning.into() }
}

fn fusermount() -> Finding {
    let path = in_path("fusermount3");
    let meaning = match path {
        Some(_) => "mounting without root",
        None => "mounting needs root; install fuse3",
    };
    Finding {
        what: "fusermount3",
        good: Some(path.is_some()),
        found: path.map_or("not in PATH".into(), |path| path.display().to_string()),
        meaning: meaning.into(),
    }
}

/// Accesses of each kind that are measured: takes some tens of milliseconds.
const WINDOW_ACCESSES: u32 = 2000;

fn userfaultfd() -> Finding {
    let (good, found, meaning) = match latency::measure(WINDOW_ACCESSES, Placement::Free) {
        Ok(found) => {
            let us = |latency: Latency| latency.median_ns as f64 * 1e-3;
            let text = format!(
                "hit {} ns, first store {:.1} us, miss {:.1} us, {:.1} us if a dirty page must be evicted",
                found.resident.median_ns,
                us(found.first_store),
                us(found.miss_clean),
                us(found.miss_dirty)
            );
            (true, text, "memory for programs (medians, without the device's own time)".into())
        }
        Err(error) => (false, "not usable".into(), format!("no simulated memory for programs: {error}")),
    };
    Finding { what: "userfaultfd", good: Some(good), found, meaning }
}

fn python() -> Finding {
    let output = Command::new("python3").arg("--version").stderr(Stdio::null()).output();
    let version = output.ok().filter(|output| output.status.success());
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    let enough = version.as_deref().is_some_and(|text| at_least(text, 3, 11));
    let meaning = match (&version, enough) {
        (_, true) => "new enough for the Python package",
        (Some(_), false) => "too old: the Python package needs 3.11 or later",
        (None, _) => "only the Python package needs it, 3.11 or later",
    };
    Finding {
        what: "Python",
        good: Some(enough),
        found: version.unwrap_or("no python3 in PATH".into()),
        meaning: meaning.into(),
    }
}

/// True if `Python 3.11.7` is at least `major.minor`.
fn at_least(text: &str, major: u32, minor: u32) -> bool {
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::at_least;

    #[test]
    fn versions_are_numbers() {
        assert!(at_least("Python 3.11.7", 3, 11) && at_least("Python 3.100.0", 3, 11));
        assert!(!at_least("Python 3.9.2", 3, 11) && !at_least("", 3, 11));
    }
}
