//! What each kind of access to a window costs on this machine: the mechanism alone, without the device's time.

use super::in_process::Window;
use super::service::WindowOptions;
use crate::ServeError;
use crate::clock::TimeMode;
use crate::sys::abi;
use crate::sys::process;
use std::time::Instant;

/// Where the handler runs while a thread faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the scheduler puts it.
    Free,
    /// On the core of the thread.
    Same,
    /// On the next core after that of the thread.
    Apart,
}

/// Quantiles of one kind of access, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half of the accesses take longer.
    pub median_ns: u64,
    /// One access in a hundred takes longer.
    pub p99_ns: u64,
}

/// The four kinds of access to a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// A load of a resident page: the cost of the machine and of reading the clock.
    pub resident: Latency,
    /// The first store to a clean page.
    pub first_store: Latency,
    /// A load of an absent page, when a clean page must be evicted.
    pub miss_clean: Latency,
    /// A load of an absent page, when a dirty page must be evicted, which is stored to the device first.
    pub miss_dirty: Latency,
}

/// Measures `count` accesses of each kind, in a window of four times as many pages created for it. Every miss
/// evicts one page: batches would hide the cost.
pub fn measure(count: u32, placement: Placement) -> Result<Latencies, ServeError> {
    let page = abi::PAGE_BYTES as u64;
    let here = process::core().map_err(ServeError::io("cannot determine the current core"))?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let handler_core = match placement {
        Placement::Free => None,
        Placement::Same => Some(here),
        Placement::Apart => Some((here + 1) % cores),
    };
    let options = WindowOptions {
        bytes: Some(4 * count as u64 * page),
        // A few more than are touched, so that none of them is evicted ahead of time.
        resident_bytes: Some((count as u64 + 16) * page),
        time: TimeMode::Fast,
        evict_pages: 1,
        handler_core,
        ..WindowOptions::default()
    };
    let body = move || -> Result<Latencies, ServeError> {
        if placement != Placement::Free {
            process::pin(here).map_err(ServeError::io("cannot pin the thread to a core"))?;
        }
        let mut window = Window::open(&options)?;
        Ok(accesses(&mut window, count as usize))
    };
    // In a thread of its own: the caller must not be pinned.
    std::thread::scope(|scope| scope.spawn(body).join().expect("measuring does not panic"))
}

fn accesses(window: &mut Window, count: usize) -> Latencies {
    let bytes = window.as_mut_slice();
    let mut samples = Vec::with_capacity(count);
    let mut each = |pages: std::ops::Range<usize>, access: &mut dyn FnMut(&mut u8)| {
        samples.clear();
        for page in pages {
            let byte = &mut bytes[page * abi::PAGE_BYTES];
            let begun = Instant::now();
            access(byte);
            samples.push(begun.elapsed().as_nanos() as u64);
        }
        samples.sort_unstable();
        Latency { median_ns: samples[samples.len() / 2], p99_ns: samples[samples.len() * 99 / 100] }
    };
    let mut load = |byte: &mut u8| {
        std::hint::black_box(*byte);
    };
    // Fills the resident part with clean pages; then (but for the first few) every miss evicts one of them.
    each(0..count, &mut load);
    let miss_clean = each(count..2 * count, &mut load);
    let resident = each(count..2 * count, &mut load);
    let first_store = each(count..2 * count, &mut |byte| *byte = std::hint::black_box(1));
    let miss_dirty = each(2 * count..3 * count, &mut load);
    Latencies { resident, first_store, miss_clean, miss_dirty }
}
