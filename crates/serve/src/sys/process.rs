//! Processes and cores: where a thread runs, and how a program ends that cannot go on.

use nvlab_os::check;
use std::io;
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

/// From now on this thread is woken when its time is over, and not up to 50 us later, so that several can be woken at once.
pub fn sleep_precisely() -> io::Result<()> {
    // SAFETY: the call takes integers only.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) }).map(|_| ())
}

/// Milliseconds of a clock that only goes forward, a few of them late: cheap enough for every request.
pub fn coarse_ms() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a time that outlives the call; it has had this clock since 2.6.32.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut now) };
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Whose process this is.
pub fn user() -> u32 {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::geteuid() }
}

/// Whose group.
pub fn group() -> u32 {
    // SAFETY: no arguments, and it cannot fail.
    unsafe { libc::getegid() }
}

/// Ends a process that waits for an answer it will not get. This one, too.
pub fn kill(process: i32) {
    // SAFETY: signals touch no memory. Who has gone meanwhile needs no signal.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Ends a process and everything in its group, which has its number.
pub fn kill_group(process: u32) {
    // SAFETY: signals touch no memory. Who has gone meanwhile needs no signal.
    unsafe { libc::kill(-(process as libc::pid_t), libc::SIGKILL) };
}

/// The command is killed when the thread that starts it ends, however that comes.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id() as i32;
    let before = move || {
        // SAFETY: both calls take integers only and may be made between fork and exec.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong))?;
            // It may have ended before it was asked.
            match libc::getppid() == parent {
                true => Ok(()),
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(before) };
}
