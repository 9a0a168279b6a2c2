//! Traces, converted once: a text is parsed at its first use and stored as a column file, which loads many times
//! faster.
//!
//! 1. The name of a cached file holds a hash of the path, size and time of change of its source and of how it was
//!    read. A source that changes gets another file.
//! 2. A cache that cannot be read or written is not an error: the trace is read again, and a note says why.
//! 3. A cached file is complete or absent: written under another name and renamed. It may be deleted at any time.

use nvlab_trace::{self as trace, Columns, Format, ReadOptions, file_name, nvt};
use nvlab_workload::WorkloadError;
use nvlab_workload::replay::ReplaySpec;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Smaller files are parsed faster than they are looked up.
const CACHED_MIN_BYTES: u64 = 256 << 10;

/// A trace, read.
#[derive(Clone, Debug)]
pub struct ReadTrace {
    /// Its requests.
    pub columns: Columns,
    /// What was read and left out, in one line: the same from the cache as from the source.
    pub report: String,
    /// Why the cache was of no use.
    pub aside: Option<String>,
}

/// Reads a trace, from the folder `cache` if it lies there; otherwise it is put there.
pub fn read(spec: &ReplaySpec, cache: Option<&Path>) -> Result<ReadTrace, WorkloadError> {
    let plain = || {
        let (columns, report) = spec.read()?;
        Ok::<_, WorkloadError>(ReadTrace { columns, report: report.to_string(), aside: None })
    };
    let Some((dir, stem)) = cache.and_then(|dir| Some((dir, name_of(spec)?))) else { return plain() };
    let file = dir.join(format!("{stem}.nvt"));
    let note = dir.join(format!("{stem}.txt"));
    if let Ok(report) = fs::read_to_string(&note)
        && let Ok((columns, _)) = trace::read(&file, &ReadOptions::default())
    {
        return Ok(ReadTrace { columns, report, aside: None });
    }
    let mut read = plain()?;
    if let Err(error) = keep(dir, &file, &note, &read) {
        read.aside = Some(format!("the converted trace cannot be cached in {}: {error}", dir.display()));
    }
    Ok(read)
}

/// The name of the cached file without its ending; `None` if caching it is of no use.
fn name_of(spec: &ReplaySpec) -> Option<String> {
    let path = fs::canonicalize(&spec.path).ok()?;
    let meta = fs::metadata(&path).ok().filter(|meta| meta.is_file() && meta.len() >= CACHED_MIN_BYTES)?;
    let mut head = [0u8; 8];
    fs::File::open(&path).ok()?.read_exact(&mut head).ok()?;
    if nvt::is_nvt(&head) {
        return None;
    }
    let changed = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    let ReadOptions { format, volumes, action, skip_bad, table, .. } = &spec.reading;
    let format = format.map_or("", Format::name);
    // The first line changes with what is read of a trace.
    let identity = format!(
        "with responses and tables\n{}\n{}\n{changed}\n{format}\n{}\n{:?}\n{}\n{:?}",
        path.display(),
        meta.len(),
        action,
        volumes,
        skip_bad,
        table
    );
    let hash = xxhash_rust::xxh3::xxh3_64(identity.as_bytes());
    let name: String = path.file_name()?.to_string_lossy().chars().take(60).collect();
    Some(format!("{}-{hash:016x}", file_name(&name).trim_start_matches('.')))
}

fn keep(dir: &Path, file: &Path, note: &Path, read: &ReadTrace) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| error.to_string())?;
    let own = |path: &Path| -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        dir.join(format!(".{name}.{}", std::process::id()))
    };
    let _ = fs::remove_file(own(file));
    let written =
        trace::write_file(&read.columns, Format::Nvt, &own(file)).map_err(|error| error.to_string());
    let written = written.and_then(|_| {
        fs::write(own(note), &read.report)
            .and_then(|()| fs::rename(own(note), note))
            .and_then(|()| fs::rename(own(file), file))
            .map_err(|error| error.to_string())
    });
    if written.is_err() {
        let _ = fs::remove_file(own(file));
        let _ = fs::remove_file(own(note));
    }
    written
}
