//! eNVy: what its design says, and what is wrong with one.

use super::{errors_of, load};
use crate::*;
use nvlab_controller::envy::{Gathering, SegmentCleaning};
use nvlab_units::Span;

fn envy(design: &Design) -> &Envy {
    match &design.ftl {
        Ftl::Envy(envy) => envy,
        other => panic!("{}: {other:?}", design.name),
    }
}

/// Section 5.1 and figure 12, digit for digit.
#[test]
fn the_system_of_the_paper() {
    let design = load("envy", &[]);
    let geometry = design.array.geometry;
    assert_eq!((geometry.blocks(), geometry.dies(), geometry.units()), (128, 1, 8_388_608));
    assert_eq!(
        (geometry.units_per_block(), geometry.page_bytes(), design.raw_bytes()),
        (65_536, 256, 2 << 30)
    );
    assert_eq!(design.price().total_usd(), Some(69_120.0), "2048 MiB x 30 USD + 64 MiB x 120 USD");
    let controller = &envy(&design).config;
    assert_eq!(controller.logical_pages, 8_388_608 / 10 * 8 + 6, "80 % of all 128 segments");
    assert_eq!((controller.buffer_pages, controller.flush_at), (65_536, 16_384));
    assert_eq!(controller.cleaning, SegmentCleaning::gathering(16));
    assert_eq!((controller.wear_spread, controller.control), (Some(100), Span::from_ns(60)));
    assert_eq!((controller.word_bytes, controller.path_bytes), (8, 256));
    let nor = envy(&design).nor_config(&design, 1);
    assert_eq!((nor.flash.timing.program, nor.flash.timing.erase), (Span::from_us(4), Span::from_ms(50)));
    let sram = envy(&design).ram_config(&design, 1);
    assert_eq!((sram.capacity_bytes, sram.word_bytes, sram.read.first), (64 << 20, 256, Span::from_ns(100)));
}

/// A narrow array moves and programs a page in steps; a word lies in one of them.
#[test]
fn the_prototype_is_narrow() {
    let design = load("envy-128m", &[]);
    assert_eq!((design.raw_bytes(), design.array.geometry.blocks()), (128 << 20, 64));
    assert_eq!(design.array.geometry.page_bytes(), 256);
    let controller = &envy(&design).config;
    assert_eq!((controller.path_bytes, controller.word_bytes), (32, 4));
    let timing = envy(&design).nor_config(&design, 1).flash.timing;
    assert_eq!((timing.program, timing.read[0]), (Span::from_us(32), Span::from_ns(100)));
    assert_eq!(design.price().total_usd(), Some(128.0 * 30.0 + 5.0 * 120.0));
}

#[test]
fn cleaners_utilization_and_concurrency() {
    let with = |sets: &[&str]| envy(&load("envy", sets)).clone();
    assert_eq!(with(&["ftl.clean.kind=greedy"]).config.cleaning, SegmentCleaning::Greedy);
    assert_eq!(with(&["ftl.clean.kind=gathering"]).config.cleaning, SegmentCleaning::gathering(1));
    let tuned = with(&["ftl.clean.partition=4", "ftl.clean.dead_band=5 %", "ftl.clean.exchange=0.1 %"]);
    let expected = Gathering { dead_band: 0.05, exchange: 0.001, ..Gathering::new(4) };
    assert_eq!(tuned.config.cleaning, SegmentCleaning::Gathering(expected));
    let in_service = with(&["ftl.utilization_of=in-service"]).config.logical_pages;
    assert_eq!(in_service, 127 * 65_536 / 10 * 8, "of 127 segments");
    assert_eq!(with(&["ftl.buffer.kind=none"]).config.buffer_pages, 0);
    assert_eq!(with(&["ftl.buffer.flush_at=100 %"]).config.flush_at, 65_535, "or it would never begin");
    assert_eq!(with(&["ftl.wear.kind=none"]).config.wear_spread, None);
    let four = load("envy", &["ftl.concurrent=4", "ftl.utilization_of=in-service"]);
    assert_eq!((four.array.geometry.dies(), four.array.geometry.blocks_per_die), (4, 32));
    assert_eq!(envy(&four).config.logical_pages, 124 * 65_536 / 10 * 8 + 2, "each keeps a segment erased");
}

#[test]
fn a_memory_bus_and_nothing_else() {
    let errors = errors_of("envy", &["path.kind=nvme", "path.rate=1 GB/s"]);
    let expected = r#"error[design]: `path.kind`: eNVy is memory accessed by loads and stores
 --> --set:1:11
  |
1 | path.kind=nvme
  |           ^^^^
  |
help: kind = "memory-bus"; as a block device it is then a RAM disk"#;
    assert_eq!(errors, expected, "\n{errors}");
    let errors = errors_of("ssd-tlc", &["path.kind=memory-bus"]);
    assert!(errors.contains("`path.kind`: a page map serves blocks, not words"), "{errors}");
    let errors = errors_of("envy", &["path.queue=4"]);
    assert!(errors.contains("`path.queue` does not apply to kind = \"memory-bus\""), "{errors}");
}

#[test]
fn media_that_cannot_be_an_envy() {
    let errors = errors_of("envy", &["media.flash.part=tlc-2022", "ftl.utilization=70 %"]);
    assert!(errors.contains("`ftl.medium`: `flash` is of kind \"nand\""), "{errors}");
    assert!(errors.contains("eNVy needs a medium of kind \"nor\""), "{errors}");
    let errors = errors_of("envy", &["media.sram.backup=none"]);
    assert!(errors.contains("`sram` loses the page table"), "{errors}");
    let errors = errors_of("envy", &["media.sram.size=48 MiB"]);
    let expected = r#"error[design]: `sram` has 48 MiB, but the page table takes 48 MiB and the buffer 16 MiB
 --> --set:1:17
  |
1 | media.sram.size=48 MiB
  |                 ^^^^^^
  |
help: give `media.sram.size` at least 64 MiB"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn numbers_that_do_not_fit() {
    for (set, problem, help) in [
        (
            "ftl.concurrent=3",
            "`ftl.concurrent` is 3, the array has 8 bank(s)",
            "a divisor of the number of banks",
        ),
        ("ftl.clean.partition=128", "`ftl.clean.partition` is 128", "from 1 to 127, the segments in service"),
        ("ftl.unit=300 B", "does not fit an array 256 B wide", "a page is a multiple of the width"),
        ("path.width=512 B", "`path.width` (512 B) does not divide a page of 256 B", "a multiple of a word"),
        ("path.width=12 B", "`path.width` is not a power of two", "8 B"),
        (
            "ftl.capacity=2040 MiB",
            "`ftl.capacity` leaves nothing to clean: 8355840 pages in 127 segments",
            "less live data than the segments in service can hold",
        ),
        ("ftl.buffer.size=100 B", "`ftl.buffer.size` is out of range", "at least one page of 256 B"),
        (
            "ftl.buffer.in=flash",
            "`ftl.buffer.in`: `flash` is not the memory of the page table",
            "in = \"sram\"",
        ),
        (
            "ftl.clean.kind=d-choices",
            "`d-choices` is not a kind this version knows",
            "greedy, fifo, cost-benefit",
        ),
        (
            "ftl.clean.partitoin=4",
            "there is no key `ftl.clean.partitoin`",
            "did you mean `ftl.clean.partition`?",
        ),
        ("ftl.streams=one", "`ftl.streams` does not apply to kind = \"envy\"", "it is for kind = \"page\""),
        ("ftl.transaction_pages=16777216", "invalid controller", "nvlab explain ftl"),
    ] {
        let errors = errors_of("envy", &[set]);
        assert!(errors.contains(problem) && errors.contains(help), "{set}\n{errors}");
    }
}

/// A mistake in a file is shown with its line.
#[test]
fn a_mistake_in_a_file() {
    let text = include_str!("../../../../designs/envy.toml")
        .replace("flush_at  = \"25 %\"", "flush_at = \"60 pages\"");
    let errors = Design::parse("mine.toml", &text, &[]).unwrap_err().to_string();
    let line = text.lines().position(|line| line.starts_with("flush_at")).unwrap() + 1;
    assert!(
        errors.starts_with("error[design]: `ftl.buffer.flush_at`: `60 pages` is not a share"),
        "{errors}"
    );
    assert!(errors.contains(&format!("--> mine.toml:{line}:12")), "{errors}");
}

/// Numbers that are right by themselves and absurd together.
#[test]
fn extreme_numbers_resolve_or_are_errors() {
    let paths = keys::all().flat_map(|key| ["flash", "sram"].map(|medium| key.path.replace('*', medium)));
    for path in paths {
        for value in
            ["0", "1", "4294967295", "1 B", "7 B", "18446744073709551615 B", "24 h", "0 ns", "99 %", "none"]
        {
            match Design::load("envy", &[format!("{path}={value}")]) {
                Ok(design) => {
                    let own = envy(&design);
                    let _ = (own.config.clone(), own.nor_config(&design, 0), own.ram_config(&design, 0));
                    let _ = (design.price(), design.canonical_text());
                    assert!(design.resolved_toml().contains("[ftl]"), "{path}={value}");
                }
                Err(errors) => {
                    assert!(errors.to_string().starts_with("error[design]: "), "{path}={value}: {errors}")
                }
            }
        }
    }
}
