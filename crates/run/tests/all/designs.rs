//! A design that is read without an error can be built.

use nvlab_design::Design;
use nvlab_run::device;

/// Designs of each kind, and what makes large ones small enough for a test.
const DESIGNS: &[(&str, &[&str])] = &[
    ("s3c2413", &[]),
    ("lbftl", &[]),
    ("lbftl-fsms", &[]),
    ("hftl", &[]),
    ("hftl-fsms", &[]),
    ("hftl", &["media.pram.level.kind=start-gap", "media.pram.level.regions=128"]),
    ("moneta", &[]),
    ("disk-2010", &["media.disk.size=1 GB"]),
    ("cxl-ms-ssd", &["media.cache.size=1 GiB"]),
    ("envy", &[]),
    ("envy-128m", &[]),
];

#[test]
fn what_is_read_can_be_built() {
    for (name, sets) in DESIGNS {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let design = Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name} {sets:?}\n{errors}"));
        device::any(&design, 1, None).map(drop).unwrap_or_else(|why| panic!("{name} {sets:?}: {why}"));
    }
}
