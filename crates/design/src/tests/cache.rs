//! `[ftl.cache]`: what it becomes, and what is refused.

use super::{errors_of, load, page_map};
use crate::*;
use nvlab_controller::page_map::{CacheFull, CacheTakes, SlcCache};
use nvlab_medium::flash::SlcMode;

#[test]
fn the_cache_of_the_tlc_drive() {
    let design = load("tlc-pslc", &[]);
    let cache = page_map(&design).cache.as_ref().expect("it has one");
    // 2 % and 25 % of 460 blocks; 4 planes of 16 KiB are 16 units, where all bits make 48.
    let expected = SlcCache {
        blocks_min: 9,
        blocks_max: 115,
        blocks_spared: 2,
        fold_after: Some(Span::from_ms(100)),
        takes: CacheTakes::All,
        when_full: CacheFull::WriteDirectly,
    };
    let us = Span::from_us;
    let mode = SlcMode {
        pages_per_block: 384,
        units_per_page: 16,
        read: us(30),
        program: us(250),
        erase: us(5000),
        cycles: 30_000,
    };
    assert_eq!((cache.config, cache.slc.mode), (expected, mode));
    assert!(design.uses("slc") && design.media.contains_key("slc"), "it says what the blocks are like");
    assert_eq!(design.price(), load("ssd-tlc", &[]).price(), "it is not bought");
    assert_eq!(page_map(&load("tlc-pslc", &["ftl.cache.kind=none"])).cache, None);
}

#[test]
fn the_hot_cold_hybrid_is_as_large_as_the_fusion_flash() {
    let (hybrid, fusion) = (load("hot-cold", &[]), load("fusion-fast", &[]));
    assert_eq!(hybrid.capacity_bytes(), 8 << 30);
    assert_eq!(fusion.capacity_bytes(), 8 << 30);
    let block = hybrid.array.geometry.block_bytes();
    assert!(hybrid.raw_bytes().abs_diff(fusion.raw_bytes()) <= 4 * block, "a block of each die at most");
    let cache = page_map(&hybrid).cache.as_ref().unwrap().config;
    assert_eq!((cache.blocks_min, cache.blocks_max, cache.takes), (1229, 1229, CacheTakes::Hot));
}

#[test]
fn a_cache_in_bytes_as_drives_state_it() {
    // A block of 384 pages of 16 units holds 24 MiB in SLC mode, one on each of the 4 dies 96 MiB.
    let no_shares = ["ftl.cache.size_min", "ftl.cache.size_max"];
    let text = include_str!("../../../../designs/tlc-pslc.toml");
    let lines = text.lines().filter(|line| !line.starts_with("size_"));
    let text: Vec<&str> = lines.collect();
    let text = text.join("\n");
    assert!(no_shares.iter().all(|key| !text.contains(key)));
    let blocks = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let design = Design::parse("bytes.toml", &text, &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let cache = page_map(&design).cache.as_ref().unwrap().config;
        (cache.blocks_min, cache.blocks_max)
    };
    // 600 MB are 5.96 rows of blocks, 3.6 GB more 41.7.
    assert_eq!(blocks(&["ftl.cache.fixed=600 MB", "ftl.cache.dynamic=3600 MB"]), (6, 42));
    assert_eq!(blocks(&["ftl.cache.fixed=960 MiB"]), (10, 10), "no dynamic part");
    assert_eq!(blocks(&["ftl.cache.dynamic=960 MiB"]), (0, 10), "no fixed part");
    assert_eq!(blocks(&["ftl.cache.fixed=1 MB"]), (1, 1), "a block at least");
    assert_eq!(blocks(&[]), (0, 115), "neither: the shares' defaults");
    let both = errors_of("tlc-pslc", &["ftl.cache.fixed=6 GB"]);
    assert!(both.contains("`ftl.cache.size_min`: the size of the cache is also given in bytes"), "{both}");
    let sets = ["ftl.cache.fixed=1 GB".to_string(), "ftl.cache.dynamic=1 TB".to_string()];
    let large = Design::parse("bytes.toml", &text, &sets).map(|_| ()).unwrap_err().to_string();
    assert!(
        large.contains(
            "`ftl.cache.dynamic`: the cache is larger than the SLC capacity of the device, 43.1 GiB"
        ),
        "{large}"
    );
}

/// Every way to get it wrong names the key and says what helps.
#[test]
fn a_cache_that_cannot_be() {
    for (design, sets, problem, help) in [
        (
            "tlc-pslc",
            &["ftl.streams=one"][..],
            "`ftl.streams`: with this `ftl.cache.kind` relocated data needs a stream of its own",
            "host-and-relocated",
        ),
        (
            "tlc-pslc",
            &["ftl.cache.kind=hot", "ftl.cache.in=slc"],
            "hot data needs a stream",
            "hot-cold-relocated",
        ),
        ("tlc-pslc", &["ftl.cache.in=tlc"], "`tlc` is the data medium itself", "one bit per cell"),
        ("tlc-pslc", &["ftl.cache.in=dram"], "`dram` is of kind \"ram\"", "kind \"nand\""),
        ("tlc-pslc", &["ftl.cache.in=none"], "there is no medium `none`", "dram, slc, tlc"),
        ("tlc-pslc", &["media.slc.pages=385"], "blocks of `slc` have 385 pages", "has 384"),
        ("tlc-pslc", &["media.slc.page=64 KiB"], "pages of `slc` make 256 KiB", "has 192 KiB"),
        ("tlc-pslc", &["ftl.cache.size_max=0.1 %"], "is 0 blocks of a die", "at least one block"),
        ("tlc-pslc", &["ftl.cache.size_min=30 %"], "`ftl.cache.size_min` 138", "not less than `size_min`"),
        ("tlc-pslc", &["ftl.cache.size_min=20 %"], "blocks of the cache hold", "a spare of at least"),
        ("tlc-pslc", &["ftl.cache.when_full=wait"], "`wait` is not a", "known: direct, fold"),
        (
            "tlc-pslc",
            &["ftl.cache.kind=none", "ftl.cache.in=slc"],
            "does not apply to kind = \"none\"",
            "pslc",
        ),
        ("mlc-fast", &["ftl.cache.kind=pslc"], "does not apply", "kind = \"page\""),
    ] {
        let errors = errors_of(design, sets);
        assert!(errors.contains(problem) && errors.contains(help), "{sets:?}\n{errors}");
    }
}
