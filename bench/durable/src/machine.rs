//! What the machine tells: waits for a processor, bytes written, and how often a second it can make a few bytes durable.

use crate::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Seconds that this thread was ready to run and had no processor.
pub fn processor_wait_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let field = text.split_whitespace().nth(1).ok_or("the second field of /proc/thread-self/schedstat")?;
    Ok(field.parse::<f64>()? * 1e-9)
}

/// Bytes that this process has passed to write calls. (What reaches the device is not to be had: `write_bytes` of the same file
/// counts whole folios of the page cache when they are dirtied, 64 KiB for 488 B, though only the changed blocks are written.)
pub fn written_bytes() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let field = text.lines().find_map(|line| line.strip_prefix("wchar:"));
    Ok(field.ok_or("wchar in /proc/self/io")?.trim().parse()?)
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
