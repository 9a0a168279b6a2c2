//! What recovery costs, counted: a log is read once and written once, and so is each page of a segment, from front to back.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::{Error, Options, PAGE_BYTES, Result, Rvm, Segments, Store, Truncation};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A record that a read of the log has in part is read again as a whole, from the beginning of its page on.
const NEAR: u64 = 16 << 10;

/// What was done to a store.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bytes_read: u64,
    bytes_written: u64,
    /// Reads that began more than [`NEAR`] before the end of the one before, and writes.
    steps_back: u64,
    calls: u64,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    counts: Counts,
    read_to: u64,
    written_to: u64,
}

/// Bytes in memory that count. Clones are the same.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<Mutex<State>>);

impl Counted {
    fn new(bytes: usize) -> Counted {
        Counted(Arc::new(Mutex::new(State { bytes: vec![0; bytes], ..State::default() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// What was done since the last time.
    fn counts(&self) -> Counts {
        let mut state = self.state();
        (state.read_to, state.written_to) = (0, 0);
        std::mem::take(&mut state.counts)
    }
}

impl Store for Counted {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        into.copy_from_slice(&state.bytes[offset as usize..offset as usize + into.len()]);
        state.counts.bytes_read += into.len() as u64;
        state.counts.steps_back += u64::from(offset + NEAR < state.read_to);
        state.counts.calls += 1;
        state.read_to = offset + into.len() as u64;
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        state.bytes[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        state.counts.bytes_written += data.len() as u64;
        state.counts.steps_back += u64::from(offset + NEAR < state.written_to);
        state.counts.calls += 1;
        state.written_to = offset + data.len() as u64;
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.state().bytes.resize(bytes as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Segments for Counted {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        match name {
            "data" => Ok(Box::new(self.clone())),
            _ => Err(Error::io("open", &name)(io::ErrorKind::NotFound.into())),
        }
    }
}

/// Fills a log with commits of `range_bytes` at random places, at multiples of `step`, of a segment of `pages`; recovers what that
/// leaves. Returns what recovery did to the log and to the segment, the bytes of records, and the pages that they change.
fn recover(log_bytes: usize, pages: u64, range_bytes: usize, step: usize) -> (Counts, Counts, u64, u64) {
    let (log, segment) = (Counted::new(log_bytes), Counted::new((pages * PAGE_BYTES) as usize));
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let created = FileLog::create_on(Box::new(log.clone()), "log".into()).unwrap();
    let rvm = Rvm::open(created, segment.clone(), options).unwrap();
    let bytes = pages * PAGE_BYTES;
    let mut region = rvm.map("data", 0..bytes).unwrap();
    let (mut changed, mut random, mut number) = (BTreeSet::new(), 1u64, 0u64);
    while rvm.statistics().live_bytes + 3 * range_bytes as u64 + 20_000 < log_bytes as u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (random >> 20) % ((bytes - range_bytes as u64) / step as u64) * step as u64;
        let mut transaction = region.begin_with(nvlab_rvm::Restore::No);
        let range = transaction.set_range(at as usize..at as usize + range_bytes).unwrap();
        range
            .iter_mut()
            .zip((number as u32).to_le_bytes().iter().cycle())
            .for_each(|(byte, new)| *byte = *new);
        transaction.commit_no_flush().unwrap();
        changed.extend(at / PAGE_BYTES..=(at + range_bytes as u64 - 1) / PAGE_BYTES);
        number += 1;
    }
    rvm.flush().unwrap();
    let expected = region.to_vec();
    // As after a kill: nothing more is done.
    std::mem::forget(rvm);
    assert!(segment.state().bytes != expected, "nothing was left to recover");
    for store in [&log, &segment] {
        store.counts();
    }
    let opened = FileLog::open_on(Box::new(log.clone()), "log".into()).unwrap();
    let rvm = Rvm::open(opened, segment.clone(), options).unwrap();
    let counts = (log.counts(), segment.counts());
    assert!(segment.state().bytes == expected, "{range_bytes} B in {pages} pages");
    (counts.0, counts.1, rvm.recovery().log_bytes, changed.len() as u64)
}

#[test]
fn each_page_is_read_and_written_once_in_order() {
    const LOG: usize = 80 << 20;
    // Small ranges on all pages; large ones on more than fit into a small cache; ones that span pages; whole pages; and few.
    for (log_bytes, pages, range_bytes, step) in [
        (LOG, 8_192, 100, 100),
        (LOG, 24_576, 1_000, 1_000),
        (LOG, 24_576, 9_000, 8),
        (LOG, 32_768, 4_096, 4_096),
        (1 << 20, 32_768, 1_000, 8),
    ] {
        let (log, segment, records, changed) = recover(log_bytes, pages, range_bytes, step);
        let what = format!(
            "{range_bytes} B in {pages} pages, {records} B of records that change {changed} pages: {log:?} {segment:?}"
        );
        println!("{what}");
        let most = records + records / 5;
        assert!(log.bytes_read <= most + (2 << 20) && log.bytes_written <= most, "the log: {what}");
        let most = changed * PAGE_BYTES * 6 / 5;
        assert!(segment.bytes_written <= most, "the segment is written: {what}");
        // Pages between two that are near each other are read with them.
        assert!(segment.bytes_read <= most.max(changed * 9 * PAGE_BYTES), "the segment is read: {what}");
        if changed * 4 > pages {
            assert!(segment.bytes_read <= pages * PAGE_BYTES * 6 / 5, "the segment is read: {what}");
        }
        assert!(log.steps_back <= 4 && segment.steps_back <= 4, "steps back: {what}");
    }
}
