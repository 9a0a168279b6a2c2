//! The same kind of drive with another capacity.

use super::{load, page_map};
use crate::*;

#[test]
fn a_scaled_design_has_the_shares_of_the_one_it_comes_from() {
    let scaled = |name: &str, sets: &[&str], bytes: u64| {
        scale::scaled(name, &load(name, sets), bytes).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let spare = |design: &Design| 1.0 - design.capacity_bytes() as f64 / design.array.geometry.bytes() as f64;
    let every = |design: &Design| {
        page_map(design).config(0).checkpoint_units.unwrap() as f64 / design.ftl.logical_units() as f64
    };
    let small = load("ssd-tlc", &[]);
    for bytes in [60_000_000_000, 1_000_000_000_000, 4_000_000_000_000] {
        let large = scaled("ssd-tlc", &[], bytes).design;
        assert_eq!(large.capacity_bytes(), bytes / 4096 * 4096);
        // A row of blocks, one of each die, is a few thousandths of the drive.
        assert!(
            (spare(&large) - spare(&small)).abs() < 0.004,
            "{bytes}: {} of {}",
            spare(&large),
            spare(&small)
        );
        assert!(
            (every(&large) - every(&small)).abs() < 1e-6,
            "{bytes}: {} of {}",
            every(&large),
            every(&small)
        );
        let per_die = |design: &Design| {
            page_map(design).buffer.as_ref().unwrap().bytes as f64 / design.array.geometry.dies() as f64
        };
        assert!(per_die(&large) >= per_die(&small) && per_die(&large) < 1.3 * per_die(&small));
        assert_eq!(large.implausible(), Vec::<String>::new());
    }
    // 1 TB / .88 are 32.7 of dies of 34.7 GB; 4 GB of map and 9 times the buffer.
    let text = scaled("ssd-tlc", &["op=25%", "ftl.clean.kind=fifo"], 1_000_000_000_000).text;
    for line in [
        "channels = 4",
        "ways = 9",
        "capacity = \"1 TB\"",
        "kind = \"fifo\"",
        "size = \"2 GiB\"",
        "a spare of 20 %",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    // Sizes in bytes grow; of a map on demand the cache on the chip does not, but the buffer beside it.
    let twice = |name: &str| scaled(name, &[], 2 * load(name, &[]).capacity_bytes()).design;
    assert_eq!(twice("970-evo-plus-1tb").media["dram"].part.bytes(), 2 << 30);
    assert_eq!(twice("dramless-hmb-512gb").media["sram"].part.bytes(), 32 << 20);
    let refused = scale::scaled("envy", &load("envy", &[]), 1 << 40).unwrap_err().to_string();
    assert!(refused.contains("not a page map over NAND"), "{refused}");
}
