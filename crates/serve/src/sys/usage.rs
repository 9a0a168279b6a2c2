//! Processor time: of this thread, of this process, and of the kernel's workers. Memory of this process.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Processor time used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the calling thread.
    pub thread: Duration,
    /// Summed over all threads of this process.
    pub process: Duration,
    /// How often a thread of this process had to leave a processor to somebody else.
    pub preempted: u64,
}

impl Usage {
    pub fn now() -> Usage {
        Usage {
            thread: clock(libc::CLOCK_THREAD_CPUTIME_ID),
            process: clock(libc::CLOCK_PROCESS_CPUTIME_ID),
            preempted: preempted(),
        }
    }
}

fn clock(which: libc::clockid_t) -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time that outlives the call; it has had both clocks since 2.6.12.
    unsafe { libc::clock_gettime(which, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn preempted() -> u64 {
    // SAFETY: all-zero is a valid value, and the kernel writes one that outlives the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_nivcsw as u64
    }
}

/// Bytes of memory this process has now; from now on, [`peak`] is counted.
pub fn begin_peak() -> io::Result<u64> {
    fs::write("/proc/self/clear_refs", "5")?;
    status("VmRSS:")
}

/// The most bytes of memory this process had since [`begin_peak`].
pub fn peak() -> io::Result<u64> {
    status("VmHWM:")
}

fn status(name: &str) -> io::Result<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let number = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let kib = number.and_then(|number| number.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Counts of the scheduler, summed over some threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    pub ran: Duration,
    /// Time in the queue for one.
    pub queued: Duration,
    /// How often one was got.
    pub turns: u64,
}

impl Scheduled {
    /// Of these threads so far, each a folder of `/proc`; of those that have ended, or where the kernel does not count it,
    /// nothing.
    pub fn of<'a>(threads: impl Iterator<Item = &'a PathBuf>) -> Scheduled {
        let mut sum = Scheduled::default();
        for thread in threads {
            let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
            let numbers: Vec<u64> =
                text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
            let [ran, queued, turns] = numbers[..] else { continue };
            sum.ran += Duration::from_nanos(ran);
            sum.queued += Duration::from_nanos(queued);
            sum.turns += turns;
        }
        sum
    }

    /// What came since an earlier count. A thread that ended meanwhile may take more away than came.
    pub fn since(self, earlier: Scheduled) -> Scheduled {
        Scheduled {
            ran: self.ran.saturating_sub(earlier.ran),
            queued: self.queued.saturating_sub(earlier.queued),
            turns: self.turns.saturating_sub(earlier.turns),
        }
    }
}

/// The numbered folders in a folder.
fn numbered(folder: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_number = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    entries.filter(move |entry| is_number(&entry.file_name())).map(|entry| entry.path())
}

/// The kernel's worker threads, as folders of `/proc`; none where it does not show them.
pub fn workers() -> Vec<PathBuf> {
    let is_worker = |folder: &PathBuf| {
        fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.starts_with("kworker/"))
    };
    numbered("/proc").filter(is_worker).collect()
}

/// The threads of this process, as folders of `/proc`.
pub fn threads() -> Vec<PathBuf> {
    numbered("/proc/self/task").collect()
}
