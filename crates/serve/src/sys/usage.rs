//! Processor time: of this thread, of this process, and of the kernel's workers.

use std::fs;
use std::time::Duration;

/// Processor time used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the calling thread.
    pub thread: Duration,
    /// Of all threads of this process.
    pub process: Duration,
}

impl Usage {
    /// Until now.
    pub fn now() -> Usage {
        Usage { thread: clock(libc::CLOCK_THREAD_CPUTIME_ID), process: clock(libc::CLOCK_PROCESS_CPUTIME_ID) }
    }
}

fn clock(which: libc::clockid_t) -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time that outlives the call; it has had both clocks since 2.6.12.
    unsafe { libc::clock_gettime(which, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The kernel's worker threads, by their process numbers; empty where `/proc` does not show them.
pub fn workers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_worker = |number: &u32| {
        fs::read_to_string(format!("/proc/{number}/comm")).is_ok_and(|name| name.starts_with("kworker/"))
    };
    numbers.filter(is_worker).collect()
}

/// Processor time of these threads so far, from `/proc/N/schedstat`; `None` if the kernel does not count it. One that has
/// ended counts nothing.
pub fn of_workers(numbers: &[u32]) -> Option<Duration> {
    let one = |number: &u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{number}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    let times: Vec<u64> = numbers.iter().filter_map(one).collect();
    (!times.is_empty()).then(|| Duration::from_nanos(times.iter().sum()))
}
