//! CPU clocks, the load and file systems.

use crate::Result;
use std::path::Path;

/// CPU seconds of all threads of this process.
pub fn process_cpu_seconds() -> f64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU seconds of this thread.
pub fn thread_cpu_seconds() -> f64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock(which: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time.
    let code = unsafe { libc::clock_gettime(which, &mut time) };
    assert_eq!(code, 0, "the clock {which} is there");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The load averages of 1, 5 and 15 minutes.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// The type of the file system at a path.
pub fn file_system(path: &Path) -> Result<String> {
    let path = path.canonicalize()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let fields = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (folder, kind) = (words.nth(1)?, words.next()?);
        path.starts_with(folder).then_some((folder.len(), kind.to_string()))
    });
    Ok(fields.max_by_key(|(bytes, _)| *bytes).map_or("unknown".into(), |(_, kind)| kind))
}
