//! Precedence, origins, and what the values turn into.

use super::{SMALL, errors_of, load, page_map, small};
use crate::toml_reader::Source;
use crate::*;
use nvlab_controller::page_map::{Cleaning, Streams, WearLevelling};
use nvlab_medium::flash::{PlaneReads, Registers};
use nvlab_units::Interruption;

fn origin(design: &Design, path: &str) -> String {
    let found = design.resolved.iter().find(|resolved| resolved.path == path);
    found.unwrap_or_else(|| panic!("{path} is not resolved")).origin.text()
}

#[test]
fn every_value_knows_its_origin() {
    let design = load("ssd-qlc", &["ftl.spare=20 %", "media.qlc.erase=12 ms"]);
    assert_eq!(origin(&design, "ftl.spare"), "--set ftl.spare=20 %");
    assert_eq!(origin(&design, "media.qlc.erase"), "--set media.qlc.erase=12 ms");
    assert_eq!(origin(&design, "ftl.medium"), "builtin:ssd-qlc:20");
    assert_eq!(origin(&design, "ftl.clean.kind"), "builtin:ssd-tlc:43");
    assert_eq!(origin(&design, "media.qlc.resume"), "parts/qlc-2022.toml:21 (assumed: no source)");
    assert_eq!(origin(&design, "ftl.hot_within"), "default");
    assert_eq!(origin(&design, "array.planes"), "from the planes of the part");
    assert!(!design.media.contains_key("tlc"), "what was inherited and is not used is no part of the device");
}

#[test]
fn set_changes_one_value() {
    let design = load(
        "ssd-tlc",
        &[
            "ftl.clean.kind = d-choices",
            "ftl.clean.d=4",
            "ftl.streams=\"one\"",
            "ftl.wear.threshold=7",
            "array.ways=2",
        ],
    );
    let controller = page_map(&design).config(0);
    assert_eq!((controller.cleaning, controller.streams), (Cleaning::DChoices { d: 4 }, Streams::One));
    assert_eq!(controller.wear, WearLevelling { dynamic: true, static_threshold: Some(7) });
    assert_eq!(design.array.geometry.dies(), 8);
    let names: Vec<String> = diff(&load("ssd-tlc", &[]), &design).into_iter().map(|d| d.path).collect();
    assert_eq!(names, ["array.ways", "ftl.clean.d", "ftl.clean.kind", "ftl.streams", "ftl.wear.threshold"]);
}

#[test]
fn another_kind_drops_the_keys_of_the_old_one() {
    let text = format!("{SMALL}\n[ftl.clean]\nkind = \"d-choices\"\nd = 3\n");
    let design = Design::parse("x.toml", &text, &["ftl.clean.kind=greedy".into()]).unwrap();
    assert_eq!(page_map(&design).config(0).cleaning, Cleaning::Greedy);
    let same = Design::parse("x.toml", &text, &["ftl.clean.kind=d-choices".into()]).unwrap();
    assert_eq!(page_map(&same).config(0).cleaning, Cleaning::DChoices { d: 3 }, "the same kind keeps them");
    let part = load("ssd-tlc", &["media.tlc.erase=9 ms", "media.tlc.part=qlc-2022", "media.dram.size=1 GiB"]);
    assert_eq!(
        part.flash_config(0).timing.erase,
        Span::from_ms(10),
        "another part drops what was said of the old"
    );
}

#[test]
fn spare_utilization_and_capacity_say_the_same() {
    let raw = 1 << 18; // 1 GiB in units of 4 KiB
    for (text, units) in [
        ("spare = \"20 %\"", raw * 4 / 5),
        ("spare = 0.2", raw * 4 / 5),
        ("op = \"25 %\"", raw * 4 / 5),
        ("utilization = \"80 %\"", raw * 4 / 5),
        ("capacity = \"800 MiB\"", 204_800),
        ("", (raw as f64 * 0.93) as u32),
    ] {
        assert_eq!(small("spare = \"10 %\"", text).unwrap().ftl.logical_units(), units, "{text}");
    }
    // Exactly 80 % of 1000 blocks although 0.8 has no exact binary form.
    let text =
        SMALL.replace("size =", "banks = 1\nsize =").replace("slc-2010\"", "slc-2010\"\nblocks = 1000");
    let design = Design::parse("x.toml", &text, &["ftl.utilization=80 %".into()]).unwrap();
    assert_eq!(
        design.ftl.logical_units(),
        1000 * 64 * 8 / 10,
        "--set takes the place of the spare in the file"
    );
}

#[test]
fn a_change_without_a_table_is_of_the_controller() {
    let spare = load("ssd-tlc", &["ftl.spare=20%"]);
    for change in ["op=25%", "ftl.op=25 %", "spare=20 %"] {
        assert_eq!(load("ssd-tlc", &[change]).ftl, spare.ftl, "{change}");
    }
    assert!(errors_of("ssd-tlc", &["size=1 GiB"]).contains("there is no key `size`"));
}

#[test]
fn a_design_extends_a_file_beside_it() {
    let folder = std::env::temp_dir().join(format!("nvlab-design-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let part = sheets::find("slc-2010", None).unwrap().text.replace("\"25 us\"", "\"26 us\"");
    write("sub/mine.toml", &part);
    write("sub/base.toml", &SMALL.replace("slc-2010", "./mine.toml"));
    write("top.toml", "[design]\nextends = \"sub/base.toml\"\n[ftl]\nspare = \"30 %\"\n");
    let path = folder.join("top.toml").display().to_string();
    let design = load(&path, &[]);
    assert_eq!(design.name, "top");
    assert_eq!(design.flash_config(0).timing.read, [Span::from_us(26)]);
    assert_eq!(design.ftl.logical_units(), ((1 << 18) as f64 * 0.7) as u32);
    write("top.toml", "[design]\nextends = \"./top.toml\"\n");
    assert!(Design::load(&path, &[]).unwrap_err().to_string().contains("extend each other in a circle"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn canonical_text_is_about_values_not_spelling() {
    let a = small("spare = \"10 %\"", "spare = 0.1").unwrap();
    let b = small("[media.nand]", "[design]\nname = \"other\"\n[media.nand]\nread = \"25000 ns\"").unwrap();
    assert_eq!(a.canonical_text(), b.canonical_text());
    assert!(
        a.canonical_text().contains("ftl.spare = \"10 %\"\n") && !a.canonical_text().contains("slc-2010")
    );
    let c = small("10 %", "11 %").unwrap();
    assert_ne!(a.canonical_text(), c.canonical_text());
}

#[test]
fn suspension_and_bit_errors() {
    let wait = small("", "").unwrap();
    assert_eq!(wait.flash_config(0).timing.interruption, Interruption::Wait);
    let extra = "part = \"slc-2010\"\nsuspend = \"20 us\"\nresume = \"5 us\"\nfaults.wear_out = true\n\
                 ecc = { kind = \"threshold\", rate_fresh = \"1e-6\", rate_worn = 1e-4, codeword = \"1 KiB\", correctable = 8 }";
    let config = small("part = \"slc-2010\"", extra).unwrap().flash_config(9);
    let suspend =
        Interruption::Suspend { latency: Span::from_us(20), resume: Span::from_us(5), limit: u32::MAX };
    assert_eq!(config.timing.interruption, suspend);
    let bits = config.faults.bit_errors.unwrap();
    assert_eq!((bits.codeword_bits, bits.correctable, bits.retries), (8192, 8, 0));
    assert_eq!(
        (bits.rate_fresh, bits.rate_worn, config.faults.wear_out, config.faults.seed),
        (1e-6, 1e-4, true, 9)
    );
}

/// What a part says of its reads reaches the array; units larger than a page lie in several planes.
#[test]
fn planes_registers_and_decoding() {
    let reads = |sets: &[&str]| load("ssd-tlc", sets).flash_config(0).timing.reads;
    let tlc = PlaneReads { planes: 4, together: true, independent: true, registers: Registers::Two };
    assert_eq!(reads(&[]), tlc);
    assert_eq!(load("ssd-tlc", &[]).flash_config(0).timing.decode, Span::from_us(5));
    assert_eq!(reads(&["media.tlc.plane_reads=multi"]), PlaneReads { independent: false, ..tlc });
    assert_eq!(
        reads(&["media.tlc.plane_reads=one", "media.tlc.registers=one"]),
        PlaneReads { registers: Registers::One, ..PlaneReads::ONE }
    );
    assert_eq!(reads(&["ftl.unit=32 KiB"]).planes, 2);
    assert_eq!(reads(&["ftl.unit=64 KiB"]), PlaneReads { registers: Registers::Two, ..PlaneReads::ONE });
    assert_eq!(reads(&["array.planes=2", "ftl.buffer.size=8 MiB"]).planes, 2);
    assert_eq!(load("bench-4g", &[]).flash_config(0).timing.reads, PlaneReads::ONE);
    // Of three pages of each of four planes, at 1600 MB/s, two cross the channel while the die waits.
    let timing = |sets: &[&str]| {
        let config = load("ssd-tlc", sets).flash_config(0);
        (config.program_time() - config.timing.program, config.timing.programs)
    };
    assert_eq!(timing(&[]), (Span::from_ns(81_920), None));
    assert_eq!(timing(&["media.tlc.registers=unlimited", "array.programs=3"]), (Span::ZERO, Some(3)));
    assert_eq!(timing(&["array.programs=4"]).1, None, "as many as there are dies");
    let limit = |sets: &[&str]| match load("ssd-tlc", sets).flash_config(0).timing.interruption {
        Interruption::Suspend { limit, .. } => limit,
        Interruption::Wait => 0,
    };
    assert_eq!((limit(&[]), limit(&["media.tlc.suspends=3"])), (16, 3));
}

#[test]
fn reads_that_a_part_cannot_do_are_errors() {
    for (key, says) in [
        ("plane_reads = \"multi\"", "the part has one plane"),
        ("suspends = 4", "`suspend` is not set"),
        ("registers = \"three\"", "registers"),
    ] {
        let text = format!("part = \"slc-2010\"\n{key}");
        let error = small("part = \"slc-2010\"", &text).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("small.toml:"), "{error}");
    }
}

#[test]
fn fewer_planes_make_more_blocks() {
    let design = load("ssd-tlc", &["array.planes=2", "ftl.buffer.size=8 MiB"]);
    let geometry = design.array.geometry;
    assert_eq!((geometry.blocks_per_die, geometry.units_per_page), (920, 24));
    assert_eq!(geometry.bytes(), load("ssd-tlc", &[]).raw_bytes());
}

#[test]
fn the_schema_is_json_and_knows_every_key() {
    let schema: serde_json::Value = serde_json::from_str(&schema::schema()).unwrap();
    for key in keys::all() {
        let mut at = &schema;
        for name in key.path.split('.') {
            at = if name == "*" { &at["additionalProperties"] } else { &at["properties"][name] };
        }
        assert!(at.is_object(), "{}", key.path);
    }
    let cleaners = &schema["properties"]["ftl"]["properties"]["clean"]["properties"]["kind"]["anyOf"];
    assert_eq!(
        (&cleaners[0]["enum"][0], &cleaners[1]["enum"][4]),
        (&"greedy".into(), &"hybrid".into()),
        "cleaners of a page map and of eNVy"
    );
}

/// The table is consistent with itself: defaults and examples are what their keys take.
#[test]
fn defaults_and_examples_are_values_of_their_keys() {
    for key in keys::all() {
        let example = format!("x = {}", key.example);
        let source = Source::file("x", example);
        let layer = source::read(&std::sync::Arc::new(source), &mut Vec::new());
        let value = &layer.leaves["x"].value;
        let read = crate::toml_reader::datum::read(key.shape, value);
        assert!(read.is_ok(), "{}: example {}: {read:?}", key.path, key.example);
        assert!(key.about.ends_with(['.', ')']), "{}: {}", key.path, key.about);
    }
}

/// What would be read and change nothing is refused; what is only checked contradicts something.
#[test]
fn nothing_is_set_in_vain() {
    let nor = errors_of("envy", &["media.flash.page_buffer=256 B"]);
    assert!(nor.contains("`media.flash.page_buffer_rate` is missing"), "{nor}");
    let both = ["media.flash.page_buffer=256 B", "media.flash.page_buffer_rate=465 KiB/s"];
    let nor = errors_of("envy", &both);
    assert!(nor.contains("`media.flash.page_buffer` does not apply to eNVy"), "{nor}");
    for (key, value) in
        [("oob", "8 B"), ("copy_back", "true"), ("endurance_spread", "5 %"), ("transfer", "40 MB/s")]
    {
        let path = format!("media.flash.{key}");
        let why = errors_of("envy", &[&format!("{path}={value}")]);
        assert!(why.contains(&format!("`{path}` does not apply to")), "{why}");
    }
    let wired = errors_of("envy", &["array.transfer=40 MB/s"]);
    assert!(wired.contains("`array.transfer` does not apply to NOR flash"), "{wired}");
    let unused = errors_of("lbftl", &["media.pram.write=1 us"]);
    assert!(unused.contains("`media.pram.write` has no effect"), "{unused}");
    assert!(unused.contains("this design does not use the medium `pram`"), "{unused}");
    let late = errors_of("ssd-tlc", &["design.extends=builtin:hftl"]);
    assert!(late.contains("`design.extends` has no effect"), "{late}");
    let disk = errors_of("ssd-tlc", &["media.disk.part=disk-7200"]);
    assert!(disk.contains("this design does not use the medium `disk`"), "{disk}");
    let cell = errors_of("ssd-tlc", &["media.tlc.cell=mlc"]);
    assert!(cell.contains("a word line of mlc has fewer than 3 pages"), "{cell}");
    let ecc = ["kind=threshold", "rate_fresh=1e-5", "rate_worn=1e-3", "codeword=4608 B", "correctable=60"];
    let ecc: Vec<String> = ecc.iter().map(|set| format!("media.tlc.ecc.{set}")).collect();
    let mut sets: Vec<&str> = ecc.iter().map(String::as_str).collect();
    load("ssd-tlc", &sets);
    sets.push("media.tlc.oob=1 KiB");
    let spare = errors_of("ssd-tlc", &sets);
    assert!(
        spare.contains("4 codeword(s) of 4608 B do not fit a page of 16384 B with its 1024 B"),
        "{spare}"
    );
}

#[test]
fn windowed_greedy_considers_a_quarter_of_a_die_unless_told() {
    let cleaning = |sets: &[&str]| page_map(&load("ssd-tlc", sets)).config(0).cleaning;
    let kind = "ftl.clean.kind=windowed-greedy";
    assert_eq!(cleaning(&[kind]), Cleaning::WindowedGreedy { window: 115 });
    assert_eq!(cleaning(&[kind, "ftl.clean.window=64"]), Cleaning::WindowedGreedy { window: 64 });
}
