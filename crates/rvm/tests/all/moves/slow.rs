//! Segments whose writes and syncs take a while, so that a truncation in the background is under way for much of a test.

use nvlab_rvm::{Result, Segments, Store};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Delays what changes the segments behind it.
#[derive(Debug)]
pub struct Slow<S>(pub S);

#[derive(Debug)]
struct SlowStore(Box<dyn Store>);

/// 0 to 400 us, in an order that looks random.
fn wait() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let draw = (call ^ 0x5bd1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
    std::thread::sleep(Duration::from_micros(draw * 57));
}

impl<S: Segments> Segments for Slow<S> {
    fn open(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(SlowStore(self.0.open(name)?)))
    }

    fn open_named(&self, name: &str) -> Result<Box<dyn Store>> {
        Ok(Box::new(SlowStore(self.0.open_named(name)?)))
    }
}

impl Store for SlowStore {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read(into, offset)
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        wait();
        self.0.write(data, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        wait();
        self.0.sync()
    }

    fn start_sync(&self) -> io::Result<bool> {
        self.0.start_sync()
    }
    fn prepare_parts(&self, offset: u64, bytes: usize) -> bool {
        self.0.prepare_parts(offset, bytes)
    }

    fn file(&self) -> Option<&File> {
        self.0.file()
    }
}
