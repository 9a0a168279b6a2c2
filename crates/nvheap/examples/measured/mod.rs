//! What examples that measure share.

/// CPU time of this thread in nanoseconds: what others do on the machine is not in it.
pub fn cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
