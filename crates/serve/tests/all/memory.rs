//! How much memory a served device takes at most, while it is served and while it recovers: no more than is said of smaller
//! siblings, and of the large drives no more than 10 GiB is said. Measured as the most address space of a separate program for each device, without that of its files: also memory that is
//! asked for and not yet used counts.

use crate::common::Folder;
use nvlab_design::{Design, Ftl, Payload};
use nvlab_run::device::memory::needed;
use nvlab_serve::{Drive, DriveOptions, TimeMode};
use nvlab_units::Rng;
use std::path::Path;
use std::process::Command;

/// The large drives, with fewer blocks; with a checkpoint of the map often enough that one is complete.
const SIBLINGS: [(&str, &[&str]); 2] = [
    ("qlc-16tb", &["media.qlc.blocks=24", "ftl.map.checkpoint=0.01%", "ftl.spare=50%"]),
    ("qlc-61tb", &["media.qlc.blocks=24", "ftl.map.checkpoint=0.01%", "ftl.spare=50%"]),
];
/// What the large ones may take.
const MOST: u64 = 10 << 30;
/// Threads, and what the allocator has reserved.
const REST: u64 = 48 << 20;
/// The environment variable that tells a program which of them to build.
const WHICH: &str = "NVLAB_SERVE_WEIGH";

fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

fn geometry_units(design: &Design) -> u64 {
    design.flash_config(0).geometry.units()
}

/// Serves it, cuts its power, kills it (it is not closed) and starts it again. Returns the most bytes of memory it took.
fn weigh(which: usize, folder: &Path) -> u64 {
    let (name, sets) = SIBLINGS[which];
    let design = crate::common::design(name, sets);
    let before = status("VmSize:");
    let options =
        DriveOptions { time: TimeMode::Fast, state: Some(folder.into()), seed: 1, ..DriveOptions::default() };
    let open = || Drive::open(name, &design, &options).unwrap();
    let drive = open();
    let (mut rng, unit) = (Rng::new(1), drive.unit_bytes() as usize);
    let data = vec![7; unit];
    for _ in 0..2000 {
        let at = rng.below(drive.capacity_bytes() / unit as u64) * unit as u64;
        drive.write(drive.session(), at, &data, false).unwrap();
    }
    drive.cut().unwrap();
    drop(drive);
    drop(open());
    let files: u64 = ["nand", "battery"].map(|file| folder.join(file).metadata().unwrap().len()).iter().sum();
    status("VmPeak:") - before - files
}

#[test]
fn a_large_drive_is_served_in_ten_gibibytes() {
    if let Ok(which) = std::env::var(WHICH) {
        let folder = Folder::new(&format!("weigh-{which}"));
        return println!("weighed {}", weigh(which.parse().unwrap(), &folder.0));
    }
    for (which, (name, sets)) in SIBLINGS.iter().enumerate() {
        let large = Design::load(name, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let said = needed(&large, Payload::AsWritten);
        assert!(matches!(large.ftl, Ftl::Page(_)) && said <= MOST, "{name}: {said} B");
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone
            .args(["--exact", "memory::a_large_drive_is_served_in_ten_gibibytes", "--nocapture"])
            .env(WHICH, which.to_string());
        let output = String::from_utf8(alone.output().unwrap().stdout).unwrap();
        let taken = output.lines().find_map(|line| line.split("weighed ").nth(1)).expect(&output);
        let taken: u64 = taken.trim().parse().unwrap();
        let small = crate::common::design(name, sets);
        let units = geometry_units(&small);
        let estimate = needed(&small, Payload::AsWritten);
        println!("{name}: {taken} B for {units} units, {estimate} said");
        assert!(taken <= estimate + REST, "{name}: {taken} B, {estimate} said");
        assert!(taken > 5 * units, "{name}: {taken} B for {units} units are not all");
    }
}
