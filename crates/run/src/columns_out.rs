//! A run's directory: its stored results, for users, programs and the next run.
//!
//! `DIR/NAME-KEY8/`, where NAME is the design's name made safe for a file name and KEY8 the first 8 digits of the key:
//!
//! | file | what |
//! |---|---|
//! | `result.json` | the whole [`RunResult`] |
//! | `design.resolved.toml` | every value of the design; loads as the same design |
//! | `workload.txt` | the workload |
//! | `series.parquet` | one row for each window of the run |
//! | `hist.parquet` | one row for each latency bucket: `op`, `upper_ns`, `count` |
//! | `manifest.json` | the files with their sizes and CRC-32C, and the command to repeat the run |
//!
//! 1. A directory is complete or absent: it is written under another name and renamed.
//! 2. A directory is never changed. The same key is the same run: an existing directory stays. Another key with the
//!    same first 8 digits gets a directory with the whole key in its name.
//! 3. Parquet files contain no wall-clock time and nothing about the computer: equal results give equal bytes.

mod tables;

pub use tables::{histograms, series};

use crate::result::{RunResult, SCHEMA};
use nvlab_units::checksum::crc32c;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fs, process};

/// Name of the document in a run's directory.
const RESULT: &str = "result.json";
const MANIFEST: &str = "manifest.json";
/// Version of `manifest.json`.
const MANIFEST_SCHEMA: &str = "nvlab.manifest/1";

/// Keeps a run below `dir`, which is created if missing. Returns the run's directory; if the run is already there,
/// its directory is left as it is.
pub fn write_run_dir(dir: &Path, run: &RunResult) -> io::Result<PathBuf> {
    if run.key.len() < 8 || !run.key.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` is not a key", run.key)));
    }
    let [short, long] = run_dirs(dir, &run.design.name, &run.key);
    let target = match key_in(&short)? {
        Some(key) if key != run.key => long,
        Some(_) => return Ok(short),
        None => short,
    };
    if key_in(&target)?.is_some() {
        return Ok(target);
    }
    fs::create_dir_all(dir)?;
    let temporary = dir.join(format!(".{}-{}.{}", file_name(&run.design.name), run.key, process::id()));
    match fs::create_dir(&temporary) {
        // Left by a process that died and had our process id.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_dir_all(&temporary)?;
            fs::create_dir(&temporary)?;
        }
        made => made?,
    }
    let written = write_files(&temporary, run).and_then(|()| fs::rename(&temporary, &target));
    if let Err(error) = written {
        let _ = fs::remove_dir_all(&temporary);
        // Another process may have kept the same run in the meantime.
        return match key_in(&target)? {
            Some(key) if key == run.key => Ok(target),
            _ => Err(error),
        };
    }
    sync(dir)?;
    Ok(target)
}

/// The directories below `dir` that may be of the run of a design with this key, the usual one first.
pub(crate) fn run_dirs(dir: &Path, design: &str, key: &str) -> [PathBuf; 2] {
    let name = file_name(design);
    [key.get(..8).unwrap_or(key), key].map(|key| dir.join(format!("{name}-{key}")))
}

/// Reads the result of a run's directory, or of a `result.json` itself.
pub fn read_run(path: &Path) -> io::Result<RunResult> {
    let file = if path.is_dir() { path.join(RESULT) } else { path.to_path_buf() };
    let wrong = |problem: String| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {problem}", file.display()))
    };
    let text = fs::read(&file)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    let document: serde_json::Value = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
    match document["schema"].as_str() {
        Some(SCHEMA) => {
            let run: RunResult = serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))?;
            Ok(RunResult { wall_s: wall_beside(&file), ..run })
        }
        Some(other) => Err(wrong(format!("its schema is `{other}`; this nvlab reads `{SCHEMA}`"))),
        None => Err(wrong("it is not a result of nvlab: `schema` is missing".to_string())),
    }
}

/// The wall time of a run, from the manifest beside its result; 0 if there is none.
fn wall_beside(result: &Path) -> f64 {
    let manifest = fs::read(result.with_file_name(MANIFEST)).unwrap_or_default();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap_or_default();
    manifest["wall_s"].as_f64().unwrap_or(0.0)
}

/// The key of the run in a directory; `None` if there is no such directory.
fn key_in(dir: &Path) -> io::Result<Option<String>> {
    if !dir.exists() {
        return Ok(None);
    }
    read_run(dir).map(|run| Some(run.key))
}

fn write_files(dir: &Path, run: &RunResult) -> io::Result<()> {
    let mut json = serde_json::to_vec_pretty(run)?;
    json.push(b'\n');
    let files = [
        (RESULT, json),
        ("design.resolved.toml", run.design.resolved_toml.clone().into_bytes()),
        ("workload.txt", format!("{}\n", run.workload).into_bytes()),
        ("series.parquet", series(run).parquet()?),
        ("hist.parquet", histograms(run).parquet()?),
    ];
    let mut listed = Vec::new();
    for (name, bytes) in &files {
        write_file(&dir.join(name), bytes)?;
        let crc = format!("{:08x}", crc32c(&[bytes]));
        listed.push(json!({"name": name, "bytes": bytes.len(), "crc32c": crc}));
    }
    let manifest = json!({
        "schema": MANIFEST_SCHEMA,
        "key": run.key,
        "nvlab": run.nvlab,
        "results_version": run.results_version,
        "design": run.design.name,
        "workload": run.workload,
        "seed": run.seed,
        "wall_s": run.wall_s,
        "repeat": run.repeat_command(),
        "files": listed,
    });
    write_file(&dir.join(MANIFEST), format!("{manifest:#}\n").as_bytes())?;
    sync(dir)
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the names in a directory durable, where the system supports it.
fn sync(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(dir)?.sync_all() } else { Ok(()) }
}

/// A design's name made safe for a directory: letters, digits, `-`, `_`, `.`, at most 60 of them, no leading dot.
fn file_name(name: &str) -> String {
    let mut fit = String::new();
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || "-_.".contains(c) => fit.push(c),
            _ if fit.ends_with('-') => {}
            _ => fit.push('-'),
        }
    }
    fit.truncate(60);
    let fit = fit.trim_start_matches(['.', '-']).trim_end_matches('-');
    if fit.is_empty() { "design".to_string() } else { fit.to_string() }
}

#[cfg(test)]
mod tests;
