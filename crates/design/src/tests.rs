//! Tests of designs as a whole: files, errors as people see them, precedence, and garbage.

use super::*;

mod cache;
mod cached;
mod direct;
mod envy;
mod errors;
mod files;
mod garbage;
mod pram;
mod scale;
mod stacks;
mod values;

/// A design that must be right.
fn load(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name} {sets:?}\n{errors}"))
}

/// The page map of a design that must have one.
fn page_map(design: &Design) -> &PageMapped {
    match &design.ftl {
        Ftl::Page(page) => page,
        other => panic!("{}: {other:?}", design.name),
    }
}

/// The errors of a design that must be wrong.
fn errors_of(name: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    match Design::load(name, &sets) {
        Ok(_) => panic!("{name} {sets:?} should be refused"),
        Err(errors) => errors.to_string(),
    }
}

/// A small design that is right, to put mistakes in.
const SMALL: &str = r#"schema = 1

[media.nand]
part = "slc-2010"

[media.dram]
part = "dram"
size = "16 MiB"

[ftl]
kind = "page"
medium = "nand"
spare = "10 %"

[ftl.map]
in = "dram"
"#;

/// [`SMALL`] with one text replaced by another, which must change it.
fn small(from: &str, to: &str) -> Result<Design, DesignErrors> {
    assert!(from.is_empty() || SMALL.contains(from), "{from}");
    Design::parse("small.toml", &SMALL.replacen(from, to, 1), &[])
}
