//! How long recovery takes, beside what the disk does: `recovery FOLDER LOG_MIB SEGMENT_MIB RANGE_BYTES [direct|close]`.
//!
//! A program fills the log with commits of one range each, at random places of the segment, and ends without closing it. Then the page
//! cache is dropped, if that is allowed, and the log is opened. Printed are the times, the calls, and the bytes that the device
//! read and wrote (`/proc/self/io`), and the time of a sequential read and a write with fdatasync of as many bytes as the log has.
//! With `close` the program stops cleanly instead, and that is timed, and the opening after it.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Rvm, Truncation};
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn open(folder: &Path, is_direct: bool, truncation: Truncation) -> nvlab_rvm::Result<Rvm> {
    let path = folder.join("log");
    let log = if is_direct { FileLog::open_direct(&path)? } else { FileLog::open(&path)? };
    let options = Options { truncation, ..Options::default() };
    Rvm::open(log, SegmentFolder::new(folder), options)
}

/// Fills the log.
fn fill(
    folder: &Path,
    [log_bytes, segment_bytes]: [u64; 2],
    range_bytes: usize,
    truncation: Truncation,
) -> Result<Rvm, Box<dyn Error>> {
    SegmentFolder::new(folder).create("data", segment_bytes)?;
    // Written, so that pages are read from the disk.
    let mut data = File::options().write(true).open(folder.join("data"))?;
    (0..segment_bytes / MIB).try_for_each(|_| data.write_all(&[1; MIB as usize]))?;
    data.sync_all()?;
    drop(FileLog::create(&folder.join("log"), log_bytes)?);
    let rvm = open(folder, false, truncation)?;
    let mut region = rvm.map("data", 0..segment_bytes)?;
    let mut random = 1u64;
    while rvm.statistics().live_bytes + 2 * range_bytes as u64 + 1024 < log_bytes {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (random >> 20) % (segment_bytes / range_bytes as u64) * range_bytes as u64;
        let mut transaction = region.begin_with(nvlab_rvm::Restore::No);
        transaction.set_range(at as usize..at as usize + range_bytes)?.fill(random as u8);
        transaction.commit_no_flush()?;
    }
    rvm.flush()?;
    Ok(rvm)
}

/// Stops cleanly and opens again.
fn close(folder: &Path, rvm: Rvm) -> Result<(), Box<dyn Error>> {
    let (live, began) = (rvm.statistics().live_bytes, Instant::now());
    drop(rvm);
    let stopped = began.elapsed();
    let began = Instant::now();
    let rvm = open(folder, false, Truncation::WhenFull)?;
    println!("stop with {} MiB in the log {stopped:.1?}, opening {:.1?}", live / MIB, began.elapsed());
    assert_eq!(rvm.recovery().commits, 0);
    Ok(())
}

/// Reads a file, then writes as many bytes to another one.
fn raw(folder: &Path, bytes: u64) -> Result<[Duration; 2], Box<dyn Error>> {
    drop_caches();
    let mut buffer = vec![7; MIB as usize];
    let began = Instant::now();
    let mut log = File::open(folder.join("log"))?;
    while log.read(&mut buffer)? > 0 {}
    let read = began.elapsed();
    let path = folder.join("raw");
    let mut file = File::create(&path)?;
    let mut written = Duration::ZERO;
    // The second time nothing is allocated.
    for _ in 0..2 {
        std::io::Seek::rewind(&mut file)?;
        let began = Instant::now();
        (0..bytes / MIB).try_for_each(|_| file.write_all(&buffer))?;
        file.sync_data()?;
        written = began.elapsed();
    }
    std::fs::remove_file(path)?;
    Ok([read, written])
}

fn drop_caches() {
    // Only root may.
    let _ = std::fs::write("/proc/sys/vm/drop_caches", "1");
}

/// Calls that read and write, and bytes that came from and went to the device.
fn calls() -> Result<[u64; 4], Box<dyn Error>> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let of = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.trim().parse::<u64>()
    };
    Ok([of("syscr:")?, of("syscw:")?, of("read_bytes:")?, of("write_bytes:")?])
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, log, segment, range, rest @ ..] = &arguments[..] else {
        return Err("usage: recovery FOLDER LOG_MIB SEGMENT_MIB RANGE_BYTES [direct|close]".into());
    };
    let (folder, log_bytes, segment_bytes) =
        (Path::new(folder), log.parse::<u64>()? * MIB, segment.parse::<u64>()? * MIB);
    let option = rest.first().map_or("", String::as_str);
    let sizes = [log_bytes, segment_bytes];
    if option == "fill" {
        fill(folder, sizes, range.parse()?, Truncation::WhenFull)?;
        // As if it had been killed.
        std::process::exit(0);
    }
    let folder = folder.join("recovery");
    std::fs::create_dir(&folder)?;
    if option == "close" {
        close(&folder, fill(&folder, sizes, range.parse()?, Truncation::Background { at_percent: 99 })?)?;
        return Ok(std::fs::remove_dir_all(folder)?);
    }
    let filled = Command::new(&arguments[0]).arg(&folder).args([log, segment, range, "fill"]).status()?;
    assert!(filled.success());
    let [read, written] = raw(&folder, log_bytes)?;
    drop_caches();
    let before = calls()?;
    let began = Instant::now();
    let rvm = open(&folder, option == "direct", Truncation::WhenFull)?;
    let took = began.elapsed();
    let after = calls()?;
    let recovery = rvm.recovery();
    let [reads, writes, bytes_read, bytes_written] =
        std::array::from_fn(|index| after[index] - before[index]);
    println!(
        "log {} MiB, segment {segment} MiB, {} commits of {range} B",
        recovery.log_bytes / MIB,
        recovery.commits
    );
    println!("read of the log {read:.1?}, write of as much {written:.1?}");
    println!(
        "recovery {took:.1?}: {reads} reads, {writes} writes, {} MiB read, {} MiB written",
        bytes_read / MIB,
        bytes_written / MIB
    );
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
