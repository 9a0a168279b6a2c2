//! What the machine tells: CPU clocks, bytes written, and how often a second it can make a few bytes durable.

use crate::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// CPU seconds of all threads of this process.
pub fn process_cpu_seconds() -> f64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU seconds of this thread.
pub fn thread_cpu_seconds() -> f64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Seconds that this thread was ready to run and had no processor.
pub fn processor_wait_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let field = text.split_whitespace().nth(1).ok_or("the second field of /proc/thread-self/schedstat")?;
    Ok(field.parse::<f64>()? * 1e-9)
}

fn clock(which: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time.
    let code = unsafe { libc::clock_gettime(which, &mut time) };
    assert_eq!(code, 0, "the clock {which} is there");
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Bytes that this process has passed to write calls, and bytes that it has caused to be written to devices.
pub fn written_bytes() -> Result<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        Ok::<u64, Box<dyn std::error::Error + Send + Sync>>(
            line.ok_or("a field of /proc/self/io")?.trim().parse()?,
        )
    };
    Ok((field("wchar:")?, field("write_bytes:")?))
}

/// A preallocated, written file: writing a few bytes and fdatasync is the least a durable commit can do.
pub struct RawFile {
    file: File,
}

impl RawFile {
    const BYTES: u64 = 4 << 20;
    /// About what a transaction logs.
    const WRITE: [u8; 488] = [1; 488];

    pub fn create(folder: &Path) -> Result<RawFile> {
        let file = File::options().read(true).write(true).create_new(true).open(folder.join("raw"))?;
        file.write_all_at(&vec![0; RawFile::BYTES as usize], 0)?;
        file.sync_all()?;
        Ok(RawFile { file })
    }

    /// Writes behind what was written by the call of the number before, and syncs.
    pub fn write_and_sync(&self, number: u64) -> Result<()> {
        let bytes = RawFile::WRITE.len() as u64;
        self.file.write_all_at(&RawFile::WRITE, number % (RawFile::BYTES / bytes) * bytes)?;
        Ok(self.file.sync_data()?)
    }
}
