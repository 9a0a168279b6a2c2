//! The estimate of a device's memory is right: never below what the device takes, and not much above. Measured as the data
//! segment of a separate program for each device, so that no freed memory is reused.

#![cfg(target_os = "linux")]

use nvlab_design::{BUILT_IN, Design, Ftl, Payload};
use nvlab_run::device::memory::needed;
use nvlab_run::device::{self, InMemory};
use std::process::Command;

/// Bytes of private memory this program has asked for.
fn taken() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Builds a device. Returns the bytes it takes, and the bytes its controller reports for its tables.
fn built(design: &Design, bytes: Option<InMemory>) -> (u64, u64) {
    let before = taken();
    let device = device::any(design, 1, bytes).unwrap();
    (taken().saturating_sub(before), device.insides(nvlab_units::Span::ZERO).memory_bytes)
}

fn design(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Every kind, large enough that the allocator's overhead does not matter.
const LARGE: [(&str, &[&str]); 12] = [
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
    ("cxl-ms-ssd", &[]),
    // With the bytes of its media.
    ("hftl", &["media.nand.blocks=1024", "ftl.capacity=240 MiB"]),
];
/// The environment variable that tells a program which of them to build.
const WHICH: &str = "NVLAB_WEIGH";

/// For one of them: the estimate, the bytes taken, and the bytes its controller reports for its tables.
fn weigh(which: usize) -> [u64; 3] {
    let (name, sets) = LARGE[which];
    let design = design(name, sets);
    let filled = which == LARGE.len() - 1;
    let said = needed(&design, if filled { Payload::All } else { Payload::Nothing });
    let (takes, tables) = built(&design, filled.then_some(InMemory { filled }));
    [said, takes, tables]
}

#[test]
fn a_device_takes_what_was_said() {
    if let Ok(which) = std::env::var(WHICH) {
        return println!("weighed {:?}", weigh(which.parse().unwrap()));
    }
    for (which, (name, sets)) in LARGE.iter().enumerate() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone
            .args(["--exact", "memory::a_device_takes_what_was_said", "--nocapture"])
            .env(WHICH, which.to_string());
        let output = String::from_utf8(alone.output().unwrap().stdout).unwrap();
        let found = output.lines().find_map(|line| line.split("weighed [").nth(1)).expect(&output);
        let numbers: Vec<u64> =
            found.trim_end_matches(']').split(", ").map(|number| number.parse().unwrap()).collect();
        let [said, takes, tables] = numbers[..] else { panic!("{output}") };
        let told = format!("{name} {sets:?}: said {said}, takes {takes}, tables {tables}");
        println!("{told}");
        assert!(takes > 4 << 20, "{told}: too small to be measured");
        assert!(said >= tables && said >= takes && said as f64 <= takes as f64 * 1.15, "{told}");
    }
}

/// The estimate of a small one is no less than what its controller reports for its tables.
#[test]
fn what_is_said_covers_the_tables() {
    for (name, _) in BUILT_IN {
        let design = self::design(name, &[]);
        if let Ftl::Rvm(_) = design.ftl {
            // There is no controller.
            continue;
        }
        // A large drive has the same tables with fewer blocks: as few as its map in flash, if it has one, leaves it.
        let large = needed(&design, Payload::Nothing) > 1 << 30;
        let fewer = |blocks: u32| {
            let blocks = format!("media.{}.blocks={blocks}", design.ftl.medium());
            Design::load(name, &[blocks]).ok()
        };
        let small = [64, 128, 256].into_iter().filter(|_| large).find_map(fewer);
        assert!(small.is_some() || !large, "{name} stays large");
        let design = small.unwrap_or(design);
        let said = needed(&design, Payload::Nothing);
        let (_, tables) = built(&design, None);
        assert!(said >= tables, "{name}: said {said}, tables {tables}");
    }
}
