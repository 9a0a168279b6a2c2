//! Memory that a device will need, before it is built; and memory available on this computer.
//!
//! Each kind of controller counts its tables and media as they are laid out
//! ([`Kind::memory_bytes`](nvlab_design::Kind::memory_bytes)); a fixed share on top covers small amounts.
//! `tests/memory.rs` compares the figure with devices that were built: it is what they take, or up to 15 % more.
//! Bytes that media store in memory are counted only if the run is sure to write them all ([`Payload::All`]): a store
//! takes no memory for bytes never written, only address space, which the system may refuse too (`reservable`).

use nvlab_design::{Design, Payload};

/// A device too large for this machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEnough {
    /// Bytes the device takes.
    pub needed: u64,
    /// Bytes that are available.
    pub available: u64,
}

/// The share on top for what is small: one part in this many.
const REST: u64 = 32;

/// Refuses a design whose device does not fit in this computer's memory, if that is known.
pub(super) fn check(design: &Design, payload: Payload) -> Result<(), NotEnough> {
    let needed = needed(design, payload);
    match available() {
        Some(available) if needed > available => Err(NotEnough { needed, available }),
        _ => Ok(()),
    }
}

/// Bytes the device of a design takes.
pub fn needed(design: &Design, payload: Payload) -> u64 {
    let tables = design.ftl.kind().memory_bytes(design, payload);
    let route = design.route.as_ref().map_or(0, |route| route.memory_bytes(design, payload));
    (tables + route) + (tables + route) / REST
}

/// Bytes this program may still allocate before the system swaps or kills it; `None` if unknown.
pub fn available() -> Option<u64> {
    let machine = read("/proc/meminfo").and_then(|text| kib(&text, "MemAvailable:"));
    let groups = read("/proc/self/cgroup").map_or(Vec::new(), |text| groups(&text));
    let limited = groups.iter().filter_map(|group| {
        let number = |file: &str| read(&format!("{group}/{file}"))?.trim().parse::<u64>().ok();
        let limit = number("memory.max")?;
        // Unused pages of files are reclaimed when memory is short.
        let idle = read(&format!("{group}/memory.stat"))
            .and_then(|text| field(&text, "inactive_file "))
            .unwrap_or(0);
        Some(limit.saturating_sub(number("memory.current")?.saturating_sub(idle)))
    });
    machine.into_iter().chain(limited).chain(space()).min()
}

/// Maximum bytes that one store may reserve, however few of them are written; `None` if there is no limit.
pub(super) fn reservable() -> Option<u64> {
    let policy = read("/proc/sys/vm/overcommit_memory").unwrap_or_default();
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let machine = match policy.trim() {
        "1" => None,
        "2" => kib(&meminfo, "CommitLimit:")
            .zip(kib(&meminfo, "Committed_AS:"))
            .map(|(limit, taken)| limit.saturating_sub(taken)),
        // More than the machine has at all is refused.
        _ => kib(&meminfo, "MemTotal:").map(|total| total + kib(&meminfo, "SwapTotal:").unwrap_or(0)),
    };
    machine.into_iter().chain(space()).min()
}

/// Bytes of address space that are left, where they are limited.
fn space() -> Option<u64> {
    let limit = field(&read("/proc/self/limits")?, "Max address space ")?;
    Some(limit.saturating_sub(kib(&read("/proc/self/status")?, "VmSize:")?))
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The folders of a control group and those around it, from `/proc/self/cgroup`.
fn groups(text: &str) -> Vec<String> {
    let Some(path) = text.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let mut folder = "/sys/fs/cgroup".to_string();
    let mut all = vec![folder.clone()];
    for name in path.split('/').filter(|name| !name.is_empty()) {
        folder = format!("{folder}/{name}");
        all.push(folder.clone());
    }
    all
}

/// The number behind a name that begins a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn kib(text: &str, name: &str) -> Option<u64> {
    Some(field(text, name)? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let meminfo =
            "MemTotal:       16306528 kB\nMemFree:          219316 kB\nMemAvailable:    9876540 kB\n";
        assert_eq!(kib(meminfo, "MemAvailable:"), Some(9_876_540 << 10));
        assert_eq!(kib("", "MemAvailable:"), None);
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         4294967296           unlimited            bytes     \n";
        assert_eq!(field(limits, "Max address space "), Some(4 << 30));
        assert_eq!(field(&limits.replace("4294967296", "unlimited"), "Max address space "), None);
        let own = "0::/user.slice/a.scope\n";
        let root = "/sys/fs/cgroup";
        assert_eq!(
            groups(own),
            [root.to_string(), format!("{root}/user.slice"), format!("{root}/user.slice/a.scope")]
        );
        assert_eq!((groups("0::/\n"), groups("1:memory:/x\n")), (vec![root.to_string()], Vec::new()));
        assert!(available().is_none_or(|bytes| bytes > 1 << 20));
    }
}
