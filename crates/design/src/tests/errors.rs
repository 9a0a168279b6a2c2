//! Errors as people see them: whole texts, so that a change of wording is a decision.

use super::{errors_of, small};

fn text_of(from: &str, to: &str) -> String {
    match small(from, to) {
        Ok(_) => panic!("{to} should be refused"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn unknown_key() {
    let errors = text_of("medium = \"nand\"", "medium = \"nand\"\nspair = \"7 %\"");
    let expected = r#"error[design]: there is no key `ftl.spair`
  --> small.toml:13:1
   |
13 | spair = "7 %"
   | ^^^^^ unknown key
   |
help: did you mean `ftl.spare`?"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn unknown_table() {
    let errors = text_of("[ftl.map]", "[flt.clean]\nkind = \"greedy\"\n[ftl.map]");
    let expected = r#"error[design]: there is no table `flt`
  --> small.toml:15:2
   |
15 | [flt.clean]
   |  ^^^ unknown table
   |
help: did you mean `ftl`?"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn unknown_kind() {
    let errors = text_of("kind = \"page\"", "kind = \"evny\"");
    let expected = r#"error[design]: `ftl.kind`: `evny` is not a kind this version knows
  --> small.toml:11:8
   |
11 | kind = "evny"
   |        ^^^^^^
   |
help: known: page, block, bast, fast, hftl, zoned, envy, ram-disk, rvm, direct; did you mean `envy`?"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_key_of_another_kind() {
    let errors = text_of("[ftl.map]", "[ftl.clean]\nd = 4\n[ftl.map]");
    let expected = r#"error[design]: `ftl.clean.d` does not apply to kind = "greedy"
  --> small.toml:16:1
   |
16 | d = 4
   | ^ does not apply
   |
help: it is for kind = "d-choices""#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn wrong_unit() {
    let errors = text_of("\"16 MiB\"", "\"16 M\"");
    let expected = r#"error[design]: `media.dram.size`: `16 M` is not a size: there is no unit `M`
 --> small.toml:8:8
  |
8 | size = "16 M"
  |        ^^^^^^
  |
help: write "16 MiB" or "16 MB""#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_bare_number() {
    let errors = text_of("\"16 MiB\"", "16");
    let expected = r#"error[design]: `media.dram.size`: `16` is not a size: it has no unit
 --> small.toml:8:8
  |
8 | size = 16
  |        ^^
  |
help: units: B, KiB, MiB, GiB, TiB (of 1024) or kB, MB, GB, TB (of 1000)"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn out_of_range() {
    let errors = text_of("[ftl]", "[array]\nchannels = 0\n[ftl]");
    let expected = r#"error[design]: `array.channels`: `0` is out of range
  --> small.toml:11:12
   |
11 | channels = 0
   |            ^
   |
help: a whole number from 1 to 1024"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn missing_key() {
    let errors = text_of("in = \"dram\"\n", "");
    let expected = r#"error[design]: `ftl.map.in` is missing
  --> small.toml:15:1
   |
15 | [ftl.map]
   | ^^^^^^^^^ in this table
   |
help: in = "dram" (the name of a medium under [media])
help: nvlab explain ftl.map.in"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn missing_table() {
    let errors = text_of("[ftl.map]\nin = \"dram\"\n", "");
    let expected = r#"error[design]: `ftl.map.in` is missing
  --> small.toml:10:1
   |
10 | [ftl]
   | ^^^^^ in this table
   |
help: in = "dram" in a table [ftl.map] (the name of a medium under [media])
help: nvlab explain ftl.map.in"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn no_such_medium() {
    let errors = text_of("in = \"dram\"", "in = \"drum\"");
    let expected = r#"error[design]: `ftl.map.in`: there is no medium `drum`
  --> small.toml:16:6
   |
16 | in = "drum"
   |      ^^^^^^
   |
help: media of this design: dram, nand"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn the_map_is_not_in_flash() {
    let errors = text_of("in = \"dram\"", "in = \"nand\"");
    let expected = r#"error[design]: `ftl.map.in`: `nand` is of kind "nand"
  --> small.toml:16:6
   |
16 | in = "nand"
   |      ^^^^^^
   |
help: it must be a medium of kind "ram""#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn no_such_part() {
    let errors = text_of("slc-2010", "slc-2011");
    let expected = r#"error[design]: there is no part `slc-2011`
 --> small.toml:4:8
  |
4 | part = "slc-2011"
  |        ^^^^^^^^^^
  |
help: did you mean `slc-2010`?"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn the_map_does_not_fit() {
    let errors = text_of("16 MiB", "512 KiB");
    let expected = r#"error[design]: `dram` has 512 KiB, but the map takes 922 KiB
 --> small.toml:8:8
  |
8 | size = "512 KiB"
  |        ^^^^^^^^^
  |
help: give `media.dram.size` at least 922 KiB"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn said_twice() {
    let errors = text_of("spare = \"10 %\"", "spare = \"10 %\"\nutilization = \"90 %\"");
    let expected = r#"error[design]: `ftl.spare` and `ftl.utilization` set the same value
  --> small.toml:14:15
   |
14 | utilization = "90 %"
   |               ^^^^^^
   |
help: keep one of `spare`, `op`, `utilization` and `capacity`"#;
    assert_eq!(errors, expected, "\n{errors}");
    let errors = text_of("spare = \"10 %\"", "spare = \"10 %\"\nop = \"25 %\"");
    let expected = r#"error[design]: `ftl.spare` and `ftl.op` set the same value
  --> small.toml:14:6
   |
14 | op = "25 %"
   |      ^^^^^^
   |
help: keep one of `spare`, `op`, `utilization` and `capacity`"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn too_little_spare() {
    let errors = text_of("10 %", "0.01 %");
    let expected = r#"error[design]: `ftl.spare` is too tight: 4 of 4096 blocks are reserved for cleaning and open streams
  --> small.toml:13:9
   |
13 | spare = "0.01 %"
   |         ^^^^^^^^
   |
help: a spare of at least 0.1 %, or more and smaller blocks"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_unit_that_does_not_fit() {
    let errors = text_of("[ftl]", "[ftl]\nunit = \"16 KiB\"");
    let expected = r#"error[design]: `ftl.unit` (16 KiB) does not divide a page of the array (4 KiB: 1 chip(s) x 1 plane(s) x 1 page(s) of 4 KiB)
  --> small.toml:11:8
   |
11 | unit = "16 KiB"
   |        ^^^^^^^^
   |
help: a page must hold a whole number of units"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn not_toml() {
    let errors = text_of("[ftl]", "[ftl");
    let expected = r#"error[design]: this is not TOML: unclosed table, expected `]`
  --> small.toml:10:5
   |
10 | [ftl
   |     ^"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn all_errors_at_once() {
    let errors = text_of("[ftl]", "[array]\nways = \"two\"\nplains = 1\n[ftl]\nunit = \"4k\"");
    let expected = r#"error[design]: `array.ways`: `two` is not a count: it does not begin with a number
  --> small.toml:11:8
   |
11 | ways = "two"
   |        ^^^^^
   |
help: a whole number, with k, M or G for thousands, millions or billions if you like

error[design]: there is no key `array.plains`
  --> small.toml:12:1
   |
12 | plains = 1
   | ^^^^^^ unknown key
   |
help: did you mean `array.planes`?

error[design]: `ftl.unit`: `4k` is not a size: there is no unit `k`
  --> small.toml:14:8
   |
14 | unit = "4k"
   |        ^^^^
   |
help: write "4 KiB" or "4 kB""#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_set_points_at_itself() {
    let errors = errors_of("ssd-tlc", &["ftl.clean.knd=fifo", "ftl.unit = 4k", "nonsense"]);
    let expected = r#"error[design]: a change is written KEY=VALUE
 --> --set:1:1
  |
1 | nonsense
  | ^^^^^^^^ not a change
  |
help: for example --set ftl.clean.kind=greedy

error[design]: there is no key `ftl.clean.knd`
 --> --set:1:1
  |
1 | ftl.clean.knd=fifo
  | ^^^^^^^^^^^^^ unknown key
  |
help: did you mean `ftl.clean.kind`?

error[design]: `ftl.unit`: `4k` is not a size: there is no unit `k`
 --> --set:1:12
  |
1 | ftl.unit = 4k
  |            ^^
  |
help: write "4 KiB" or "4 kB""#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_set_of_a_table() {
    let errors = errors_of("ssd-tlc", &["ftl.clean=fifo"]);
    let expected = r#"error[design]: `ftl.clean` is a table, not a value
 --> --set:1:1
  |
1 | ftl.clean=fifo
  | ^^^^^^^^^ a table
  |
help: its keys: d, dead_band, exchange, kind, partition, reserve, smoothing, sorted, step, step_max, window"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn an_unknown_design() {
    let errors = errors_of("ssd-tcl", &[]);
    let expected = r#"error[design]: there is no built-in design `ssd-tcl`
 |
help: did you mean `ssd-tlc`? (for a file, give the extension: ssd-tcl.toml)"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn superblocks_cannot_copy_back() {
    let errors = errors_of("ssd-tlc", &["ftl.allocation=superblock", "media.tlc.copy_back=true"]);
    let expected = r#"error[design]: `media.tlc.copy_back`: data relocated from a superblock may go to another die
 --> --set:1:21
  |
1 | media.tlc.copy_back=true
  |                     ^^^^
  |
help: copy_back = false, or ftl.allocation = "dynamic""#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_buffer_that_is_too_small() {
    let errors = errors_of("ssd-tlc", &["ftl.buffer.size=1 MiB"]);
    let expected = r#"error[design]: `ftl.buffer.size` is too small: 1 MiB
 --> --set:1:17
  |
1 | ftl.buffer.size=1 MiB
  |                 ^^^^^
  |
help: at least 1.5 MiB: one page of 192 KiB for each of 4 dies and 2 streams"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_promise_the_memory_cannot_keep() {
    let errors = errors_of("ssd-tlc", &["media.dram.backup=none", "power.on_cut=keep-buffer"]);
    let expected = r#"error[design]: `power.on_cut`: `dram` loses its contents when power fails
 --> --set:1:14
  |
1 | power.on_cut=keep-buffer
  |              ^^^^^^^^^^^
  |
help: media.dram.backup = "battery" or "capacitor", or on_cut = "lose-buffer""#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_kind_that_contradicts_its_part() {
    let errors = text_of("part = \"dram\"", "part = \"dram\"\nkind = \"pcm\"");
    let expected = r#"error[design]: `media.dram.kind` contradicts its part
 --> small.toml:8:8
  |
8 | kind = "pcm"
  |        ^^^^^
  |
help: the part is of kind "ram"; leave out `kind`"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn times_for_pages_that_are_not_there() {
    let errors = errors_of("ssd-tlc", &["media.tlc.read=[\"1 us\", \"2 us\"]"]);
    let expected = r#"error[design]: `media.tlc.read` has 2 times, but one program operation writes 3 page(s)
 --> --set:1:16
  |
1 | media.tlc.read=["1 us", "2 us"]
  |                ^^^^^^^^^^^^^^^^
  |
help: one time for all pages, or one per page (see `one_shot`)"#;
    assert_eq!(errors, expected, "\n{errors}");
}

/// A wrong value ends the reading of the controller: what was not reached is not called meaningless.
#[test]
fn nothing_false_follows_a_true_error() {
    let errors = errors_of("hftl-fsms", &["ftl.capacity=99 GiB"]);
    assert_eq!(errors.matches("error[design]").count(), 1, "{errors}");
    assert!(errors.contains("`ftl.capacity` leaves 99 GiB for the host of "), "{errors}");
    // Names that do not exist, and keys of another kind, are certain.
    let errors = errors_of(
        "hftl-fsms",
        &["ftl.capacity=99 GiB", "ftl.rout.kind=fsms", "ftl.clean.d=3", "ftl.page_size=4 KiB"],
    );
    for text in [
        "there is no key `ftl.rout.kind`",
        "`ftl.clean.d` does not apply to kind",
        "there is no key `ftl.page_size`",
    ] {
        assert!(errors.contains(text), "{text}: {errors}");
    }
    assert_eq!(errors.matches("error[design]").count(), 4, "{errors}");
}
