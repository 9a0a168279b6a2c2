//! Processes and processors: where a thread runs, and how processes are ended.

use nvlab_os::check;
use std::io;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The core this thread runs on now.
pub fn core() -> io::Result<usize> {
    // SAFETY: no arguments.
    check(unsafe { libc::sched_getcpu() }).map(|core| core as usize)
}

/// Keeps this thread on one core.
pub fn pin(core: usize) -> io::Result<()> {
    // SAFETY: all-zero is an empty set; the call reads it only.
    unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        if core >= libc::CPU_SETSIZE as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        libc::CPU_SET(core, &mut cores);
        check(libc::sched_setaffinity(0, size_of_val(&cores), &cores)).map(|_| ())
    }
}

/// From now on this thread's sleeps end on time, not up to 50 us later (the kernel's default, which lets it wake several
/// threads at once).
pub fn sleep_precisely() -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) }).map(|_| ())
}

/// A monotonic clock in milliseconds, coarse by a few of them: cheap enough for every request.
pub fn coarse_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time that outlives the call; it has had this clock since 2.6.32.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

pub fn user() -> u32 {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::geteuid() }
}

pub fn group() -> u32 {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::getegid() }
}

/// Whether a process has mapped a file with this number in a range of addresses. A file of another file system with the same
/// number counts, too.
pub fn maps(process: i32, range: Range<u64>, inode: u64) -> io::Result<bool> {
    let text = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    Ok(text.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let bounds = fields.next().and_then(|field| field.split_once('-'));
        let bounds = bounds.map(|(from, to)| [from, to].map(|field| u64::from_str_radix(field, 16)));
        let number = fields.nth(3).and_then(|field| field.parse::<u64>().ok());
        matches!(bounds, Some([Ok(from), Ok(to)]) if from < range.end && to > range.start)
            && number == Some(inode)
    }))
}

/// Kills a process; it may be this one.
pub fn kill(process: i32) {
    // SAFETY: signals touch no memory. A process that has ended needs none.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Kills a process group, whose number is that of its first process.
pub fn kill_group(process: u32) {
    // SAFETY: signals touch no memory. A process that has ended needs none.
    unsafe { libc::kill(-(process as libc::pid_t), libc::SIGKILL) };
}

/// Has the command killed when the thread that starts it ends, for whatever reason.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id() as i32;
    let before = move || {
        // SAFETY: both calls take integers only and may be made between fork and exec.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
            // The parent may have ended before the call.
            match libc::getppid() == parent {
                true => Ok(()),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(before) };
}
