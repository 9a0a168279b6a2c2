//! What a device is said to take of this machine's memory is what it takes: never less, and not much more. Measured by the
//! data segment of this program, which is why it is one test: nothing else may allocate meanwhile.

#![cfg(target_os = "linux")]

use nvlab_lab::design::{BUILT_IN, Design};
use nvlab_lab::run::device::memory::{Payload, needed};
use nvlab_lab::run::device::{self, Device, InMemory, NoBytes, Visit};
use nvlab_units::Time;

/// Bytes of private memory this program has asked for.
fn taken() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Gives what was taken while the device was there, and what its controller says of its tables.
struct Weigh(u64);

impl Visit for Weigh {
    type Output = (u64, u64);
    fn visit<D: Device>(self, device: D, _: Time) -> (u64, u64) {
        (taken().saturating_sub(self.0), device.insides(nvlab_units::Span::ZERO).memory_bytes)
    }
}

fn design(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_device_takes_what_was_said() {
    // Every kind, large enough for the allocator's own needs not to matter.
    let large: [(&str, &[&str]); 10] = [
        ("ssd-tlc", &[]),
        ("tlc-pslc", &[]),
        ("bench-16g-8x4", &[]),
        ("ssd-tlc", &["ftl.clean.kind=fifo", "media.tlc.faults.wear_out=true", "ftl.unit=16 KiB"]),
        ("mlc-block", &["media.mlc.blocks=40_000"]),
        ("mlc-bast", &["media.mlc.blocks=40_000", "media.dram.size=1 GiB"]),
        ("fusion-fast", &["media.mlc.blocks=40_000", "media.dram.size=1 GiB"]),
        ("hftl", &["media.nand.blocks=60_000", "ftl.capacity=13 GiB", "media.pram.size=256 MiB"]),
        ("lbftl-fsms", &["media.pram.size=1 GiB", "ftl.route.size=512 MiB"]),
        ("envy", &[]),
    ];
    for (name, sets) in large {
        let design = design(name, sets);
        let said = needed(&design, Payload::Nothing);
        let (takes, tables) = device::build(&design, 1, &NoBytes, Weigh(taken())).unwrap();
        let told = format!("{name} {sets:?}: said {said}, takes {takes}, tables {tables}");
        assert!(takes > 4 << 20, "{told}: too small to be measured");
        assert!(said >= tables && said >= takes, "{told}");
        assert!(said as f64 <= takes as f64 * 1.15, "{told}");
    }
    // With the bytes of the media.
    let small = design("hftl", &["media.nand.blocks=1024", "ftl.capacity=240 MiB"]);
    let said = needed(&small, Payload::All);
    let (takes, _) = device::build(&small, 1, &InMemory { filled: true }, Weigh(taken())).unwrap();
    assert!(said >= takes && said as f64 <= takes as f64 * 1.15, "said {said}, takes {takes}");
    // Small ones take no more than was said, but for a little.
    for (name, _) in BUILT_IN {
        let design = design(name, &[]);
        let said = needed(&design, Payload::Nothing);
        let (_, tables) = device::build(&design, 1, &NoBytes, Weigh(taken())).unwrap();
        assert!(said >= tables, "{name}: said {said}, tables {tables}");
    }
}
