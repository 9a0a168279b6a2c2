//! Group commit where a sync takes a given time, however busy the disk of this machine is: `threads SYNC_US`.
//!
//! Commits of 8 B by one thread and by two in turns, 0.2 s each, 10 times; printed are the medians of commits a second, and of what two
//! threads did by what one did just before.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::log::status;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Region, Rvm, Store};
use std::error::Error;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const BYTES: usize = 16 << 20;

/// Memory whose sync takes a while.
#[derive(Debug)]
struct Slow {
    bytes: Mutex<Vec<u8>>,
    sync: Duration,
}

impl Store for Slow {
    fn len(&self) -> io::Result<u64> {
        Ok(BYTES as u64)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        into.copy_from_slice(&bytes[offset as usize..offset as usize + into.len()]);
        Ok(())
    }

    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn set_len(&self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        std::thread::sleep(self.sync);
        Ok(())
    }
}

/// Commits a second of so many threads.
fn rate(region: &Mutex<Region>, threads: usize) -> Result<f64, Box<dyn Error>> {
    let began = Instant::now();
    let work = || {
        let mut commits = 0;
        while began.elapsed() < Duration::from_millis(200) {
            let mut region = region.lock().unwrap_or_else(PoisonError::into_inner);
            let mut transaction = region.begin();
            *transaction.get_mut::<u64>(0)? += 1;
            let pending = transaction.commit_later()?;
            drop(region);
            pending.wait()?;
            commits += 1;
        }
        nvlab_rvm::Result::Ok(commits)
    };
    let commits = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum::<nvlab_rvm::Result<u64>>()
    })?;
    Ok(commits as f64 / began.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let sync: u64 = std::env::args().nth(1).ok_or("usage: threads SYNC_US")?.parse()?;
    let folder = std::env::temp_dir().join(format!("nvlab-rvm-threads-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let segments = SegmentFolder::new(&folder);
    segments.create("data", 4096)?;
    assert!(BYTES as u64 > status::BYTES);
    let store = Slow { bytes: Mutex::new(vec![0; BYTES]), sync: Duration::from_micros(sync) };
    let rvm = Rvm::open(FileLog::create_on(Box::new(store), "slow".into())?, segments, Options::default())?;
    let region = Mutex::new(rvm.map("data", 0..4096)?);
    let (mut one, mut two, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..10 {
        let rates = [rate(&region, 1)?, rate(&region, 2)?];
        one.push(rates[0]);
        two.push(rates[1]);
        ratios.push(rates[1] / rates[0]);
    }
    let [one, two, ratio] = [one, two, ratios].map(median);
    println!("sync {sync} us: one thread {one:.0} commits/s, two {two:.0}, two by one {ratio:.2}");
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
