//! Every built-in part and design loads, and says what it should.

use super::{SMALL, load, page_map};
use crate::sheets::Sheet;
use crate::source::Basis;
use crate::toml_reader::{Source, SourceKind};
use crate::*;
use std::sync::Arc;

#[test]
fn every_part_loads_and_says_its_name() {
    for (name, _) in sheets::BUILT_IN {
        let sheet = Sheet::load(name).unwrap_or_else(|errors| panic!("{name}\n{errors}"));
        assert_eq!(sheet.name, *name, "a part is called as its file");
        assert!(!sheet.about.is_empty() && !sheet.facts.is_empty());
        assert!(sheet.facts.iter().all(|fact| sheet.show().contains(&fact.evidence.source)));
    }
    assert_eq!(sheets::list().len(), sheets::BUILT_IN.len());
}

/// The folder and the list in the binary are the same.
#[test]
fn no_file_is_forgotten() {
    for (folder, list) in [("parts", sheets::BUILT_IN), ("designs", BUILT_IN), ("stacks", stacks::BUILT_IN)] {
        let path = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
        let entries = std::fs::read_dir(&path).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name());
        let files = files.filter_map(|name| name.into_string().ok());
        // The folder of priors is of `nvlab-fit`.
        let mut files: Vec<String> = files.filter(|name| name.ends_with(".toml")).collect();
        files.sort();
        let mut listed: Vec<String> = list.iter().map(|(name, _)| format!("{name}.toml")).collect();
        listed.sort();
        assert_eq!(files, listed);
    }
}

/// Numbers of the reference (reference/SEEDS.md) against the parts.
#[test]
fn parts_agree_with_the_reference() {
    let flash = |name: &str| match Sheet::load(name).unwrap().part {
        Part::Nand(flash) | Part::Nor(flash) => flash,
        other => panic!("{other:?}"),
    };
    let us = Span::from_us;
    let envy = flash("envy-flash-256");
    assert_eq!(
        (envy.page_bytes, envy.pages_per_block, envy.bytes() * 8),
        (256, 65_536, 2 << 30),
        "128 segments of 65 536 pages in 8 banks make 2 GiB"
    );
    assert_eq!(
        (envy.read.as_slice(), envy.program, envy.erase),
        (&[Span::from_ns(100)][..], us(4), us(50_000))
    );
    let total = envy.price.unwrap().of(2 << 30)
        + Sheet::load("envy-sram").unwrap().part.price().unwrap().of(64 << 20);
    assert_eq!(total.round(), 69_120.0, "eNVy section 5.1: about 70 000 USD");
    for (name, read, program, erase, cycles, pages) in [
        ("slc-2010", 25, 200, 1500, 100_000, 64),
        ("mlc-2010", 60, 800, 1500, 10_000, 128),
        ("fusion-slc", 45, 240, 500, 50_000, 64),
        ("fusion-mlc", 50, 1000, 500, 10_000, 128),
        ("mlc-k9g8g08u0m", 60, 800, 1400, 10_000, 128),
        ("slc-2008", 20, 200, 1400, 100_000, 64),
    ] {
        let flash = flash(name);
        let times = (flash.read[0], flash.program, flash.erase, flash.endurance, flash.pages_per_block);
        assert_eq!(times, (us(read), us(program), us(erase), cycles, pages), "{name}");
    }
    let tlc = flash("tlc-2022");
    let rate = (tlc.page_bytes * 12) as f64 / tlc.program.seconds() / 1e6;
    assert!((rate - 194.0).abs() < 0.2, "{rate} MB/s");
    let stated = Sheet::load("tlc-2022").unwrap().facts;
    assert!(
        stated.iter().all(|fact| fact.evidence.basis != Basis::Stated),
        "there is no datasheet to state it"
    );
}

#[test]
fn a_part_without_a_source_is_refused() {
    let text = "name = \"x\"\nabout = \"y\"\nkind = \"ram\"\nsize = \"1 MiB\"\n\
                word = { value = \"64 B\", basis = \"guessed\", source = \"me\" }\n\
                read = { value = \"10 ns\", basis = \"stated\", source = \"\" }\n\
                write = { value = \"10\", basis = \"stated\", source = \"me\" }\n";
    let source = Source { kind: SourceKind::Part, name: "x.toml".into(), text: text.into() };
    let errors = Sheet::read(&Arc::new(source)).unwrap_err().to_string();
    for expected in
        ["`word` has no basis", "`size` has no source", "`read` has no source", "`10` is not a time"]
    {
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
}

#[test]
fn every_design_loads_and_survives_being_shown() {
    for (name, _) in BUILT_IN {
        let design = load(name, &[]);
        assert_eq!(design.name, *name, "a design is called as its file");
        assert!(!design.about.is_empty());
        let shown = Design::parse("shown.toml", &design.resolved_toml(), &[])
            .unwrap_or_else(|errors| panic!("{}\n{errors}", design.resolved_toml()));
        assert_eq!(shown.canonical_text(), design.canonical_text());
        let medium = &design.media[design.ftl.medium()].part;
        if medium.nand().or(medium.nor()).is_some() {
            assert_eq!(shown.flash_config(1), design.flash_config(1));
        }
        assert_eq!(shown.ftl, design.ftl);
        assert!(diff(&shown, &design).is_empty());
    }
    let template =
        Design::parse("new.toml", &template("mine"), &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(template.name, "mine");
}

#[test]
fn the_tlc_drive_has_the_shape_of_its_part() {
    let design = load("ssd-tlc", &[]);
    let geometry = design.array.geometry;
    assert_eq!((geometry.dies(), geometry.blocks_per_die, geometry.pages_per_block), (4, 460, 384));
    assert_eq!(
        (geometry.page_bytes(), geometry.units_per_page, design.array.units_per_read),
        (192 << 10, 48, 4)
    );
    assert_eq!(geometry.block_bytes(), 72 << 20);
    assert_eq!(design.ftl.logical_units(), (geometry.units() as f64 * 0.88) as u32);
    let controller = page_map(&design).config(7);
    let buffer = controller.buffer.unwrap();
    assert_eq!((buffer.units, buffer.protected, controller.seed), (4096, true, 7));
    // 60 ns for the first word of 64 B, 2.5 ns for each of the 63 others.
    assert_eq!(buffer.store, Span::from_ps(60_000 + 63 * 2_500));
    // 7 % of 29,845,094 units: 7.97 GiB.
    assert_eq!(controller.checkpoint_units, Some(2_089_156));
    let price = design.price();
    let expected = 0.06 * design.raw_bytes() as f64 / (1u64 << 30) as f64 + 3.0 / 4.0;
    assert!((price.total_usd().unwrap() - expected).abs() < 1e-9);
    assert_eq!(load("bench-4g", &[]).price().total_usd(), None, "a bench medium has no price");
}

#[test]
fn benches_have_the_same_capacity_in_both_shapes() {
    for size in ["4g", "16g"] {
        let one = load(&format!("bench-{size}"), &[]);
        let many = load(&format!("bench-{size}-8x4"), &[]);
        assert_eq!(one.raw_bytes(), many.raw_bytes());
        assert_eq!(one.ftl.logical_units(), many.ftl.logical_units());
        assert_eq!((one.array.geometry.dies(), many.array.geometry.dies()), (1, 32));
    }
}

/// Chips in lockstep are one chip with wider pages.
#[test]
fn a_gang_is_one_wide_chip() {
    let ganged = |gang: u32| {
        let text = SMALL.replace("[ftl]\n", &format!("[array]\ngang = {gang}\n[ftl]\n"));
        Design::parse("small.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let (one, four) = (ganged(1), ganged(4));
    assert_eq!(four.raw_bytes(), 4 * one.raw_bytes());
    let (one, four) = (one.array.geometry, four.array.geometry);
    assert_eq!((four.page_bytes(), four.blocks()), (4 * one.page_bytes(), one.blocks()));
}

/// The page map follows NAND's rules; a NOR array needs a controller of its own.
#[test]
fn a_page_map_over_nor_is_refused() {
    let text = SMALL.replace("slc-2010", "envy-flash-256");
    let errors = Design::parse("envy.toml", &text, &[]).unwrap_err().to_string();
    assert!(errors.contains("`ftl.medium`: `nand` is of kind \"nor\""), "{errors}");
}
