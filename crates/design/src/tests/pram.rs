//! PRAM beside NAND: the board of system 003, and what is wrong with such designs.

use super::{errors_of, load};
use nvlab_medium::pcm::Tear;
use nvlab_units::Span;

/// Slides 5, 16 and 17.
#[test]
fn the_board_of_the_paper() {
    for name in ["s3c2413", "lbftl", "lbftl-fsms", "hftl", "hftl-fsms"] {
        let design = load(name, &[]);
        assert_eq!((design.capacity_bytes(), design.raw_bytes()), (1000 << 20, 1 << 30), "{name}");
        let timing = design.flash_config(1).timing;
        // 4.25 and 1.7 MB/s for pages of 2 KiB.
        assert_eq!((timing.read[0], timing.program), (Span::from_us(482), Span::from_us(1205)), "{name}");
        assert_eq!(timing.erase, Span::from_us(1400));
    }
    let hftl = load("hftl-fsms", &[]);
    assert_eq!(hftl.media.keys().collect::<Vec<_>>(), ["nand", "pram"], "one PRAM for both");
    let (pcm, levelling) = hftl.pcm_config("pram", 1);
    assert_eq!((pcm.capacity_bytes, pcm.word_bytes, pcm.program), (64 << 20, 2, Span::from_us(10)));
    assert_eq!((pcm.atomic_bytes, pcm.tear, levelling), (8, Tear::Atomic, None));
    let lbftl = load("lbftl", &[]);
    assert_eq!(
        lbftl.media.keys().collect::<Vec<_>>(),
        ["dram", "nand"],
        "and none where there is no use for it"
    );
}

#[test]
fn lines_of_pram_may_move_round() {
    let sets = ["media.pram.level.kind=start-gap", "media.pram.level.regions=128"];
    let design = load("hftl", &sets);
    let (_, levelling) = design.pcm_config("pram", 1);
    let levelling = levelling.unwrap();
    assert_eq!((levelling.line_bytes, levelling.regions, levelling.interval), (64, 128, 100));
}

#[test]
fn mistakes_are_named() {
    let torn = errors_of("hftl", &["media.pram.atomic=2B"]);
    assert!(
        torn.contains(
            "`ftl.map.in`: a power cut can tear map entries in `pram`: its writes are atomic only up to 2 B"
        ),
        "{torn}"
    );
    let torn = errors_of("lbftl-fsms", &["media.pram.atomic=4B"]);
    assert!(torn.contains("`ftl.route.in`: a power cut can tear map entries"), "{torn}");
    let dram = errors_of("lbftl-fsms", &["ftl.route.in=dram"]);
    assert!(dram.contains("it must be a medium of kind \"pcm\""), "{dram}");
    let small = errors_of("hftl", &["media.pram.size=1MiB"]);
    assert!(small.contains("the map and the block table take 2146368 B"), "{small}");
    let large = errors_of("hftl-fsms", &["ftl.route.size=65MiB"]);
    assert!(large.contains("`pram` is smaller") && large.contains("at most 64 MiB"), "{large}");
    let update = errors_of("hftl-fsms", &["ftl.route.update=journalled"]);
    assert!(update.contains("did you mean `journal`?"), "{update}");
}
