//! Memory and disks used in place: how a design is shared among memory controllers, and what is wrong with such designs.

use super::{Direct, Ftl, errors_of, load};
use crate::Design;
use nvlab_medium::pcm::Selection;
use nvlab_units::{Rate, Span};

fn direct(design: &Design) -> &Direct {
    match &design.ftl {
        Ftl::Direct(direct) => direct,
        other => panic!("{}: {other:?}", design.name),
    }
}

/// System 004 slides 9 and 12, and what SEEDS has of the paper from memory.
#[test]
fn moneta_as_published() {
    let design = load("moneta", &[]);
    let moneta = direct(&design);
    assert_eq!((moneta.controllers, moneta.config.tags, moneta.config.split_bytes), (8, 64, 8192));
    assert_eq!(moneta.config.ring, Some(Rate::from_bytes_per_second(4_000_000_000)));
    assert_eq!(design.raw_bytes(), 64 << 30);
    // Start-Gap takes a line of a hundred for its registers, and one of each region.
    assert!((98..100).contains(&(design.capacity_bytes() * 100 / design.raw_bytes())));
    let (memory, levelling) = moneta.pcm_config(&design, 3, 1);
    assert_eq!((memory.capacity_bytes, memory.banks), (8 << 30, 8));
    assert_eq!((memory.read.first, memory.program), (Span::from_ns(67), Span::from_ns(215)));
    assert_eq!(memory.selection, Selection::All);
    let levelling = levelling.unwrap();
    assert_eq!((levelling.interval, levelling.regions, levelling.line_bytes), (100, 8, 4096));
    // Every memory has a permutation of its own.
    assert_ne!(levelling.permutation, moneta.pcm_config(&design, 4, 1).1.unwrap().permutation);
    let plain = load("moneta", &["media.pcm.level.randomise=false"]);
    assert_eq!(direct(&plain).pcm_config(&plain, 0, 1).1.unwrap().permutation, None);
}

/// Slide 15: 128 requests of 64 B for 8 KB.
#[test]
fn memory_on_a_channel_is_accessed_in_bursts() {
    let design = load("ddr-scm", &[]);
    let bursts = direct(&design).config.bursts.unwrap();
    assert_eq!(8192 / bursts.bytes, 128);
    assert_eq!((bursts.row_bytes, bursts.latency), (Some(8192), Span::from_ns(10)));
    let lines = load("ddr-scm", &["media.pcm.step=64 B"]);
    let bursts = direct(&lines).config.bursts.unwrap();
    assert_eq!((bursts.row_bytes, bursts.latency), (None, Span::from_ns(67) + Span::from_ns(10)));
    assert_eq!(direct(&load("moneta", &[])).config.bursts, None);
}

#[test]
fn disks_are_several_and_a_memory_is_shared() {
    let design = load("disk-2010", &[]);
    assert_eq!((direct(&design).controllers, design.raw_bytes()), (4, 1_200_000_000_000));
    assert_eq!(direct(&design).atomic_bytes(&design), 512);
}

#[test]
fn impossible_designs_are_refused() {
    for (name, set, problem) in [
        ("moneta", "media.pcm.banks=12", "cannot be shared among 8 memory controllers"),
        ("moneta", "array.ways=2", "does not apply to a memory used in place"),
        ("moneta", "array.split=5000 B", "not a whole number of units"),
        ("ddr-scm", "array.split=16 KiB", "is not a whole number of parts of"),
        ("moneta", "media.pcm.size=256 KiB", "too few for start-gap"),
        ("moneta", "path.kind=memory-bus", "serves blocks, not words"),
        ("optane-like", "ftl.buffer.size=1 KiB", "smaller than a part of a request"),
        ("disk-2010", "path.kind=ddr", "only a memory is on the channels of a processor"),
        ("hftl", "path.kind=ddr", "serves blocks, not words"),
    ] {
        let errors = errors_of(name, &[set]);
        assert!(errors.contains(problem), "{name} {set}: {errors}");
    }
}
