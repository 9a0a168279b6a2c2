//! Lines in front of a page map: what a design becomes, and what is refused.

use super::{errors_of, load};
use crate::*;
use nvlab_controller::cached::CachedConfig;
use nvlab_medium::ram::Backup;
use nvlab_workload::Serves;

fn cached(design: &Design) -> &Cached {
    match &design.ftl {
        Ftl::Cached(cached) => cached,
        other => panic!("{}: {other:?}", design.name),
    }
}

#[test]
fn the_memory_semantic_drive() {
    let design = load("cxl-ms-ssd", &[]);
    let lines = cached(&design);
    let expected = CachedConfig {
        line_bytes: 4096,
        ways: 16,
        sets: 1 << 18,
        // 40 % of 2^22 lines.
        dirty_lines_max: 1_677_721,
        prefetch_lines: 4,
        write_backs: 32,
        word_bytes: 64,
        // 120 ns, and 64 B at 28 GB/s.
        control: Span::from_ps(120_000 + 2_286),
    };
    assert_eq!(lines.config, expected);
    assert_eq!(
        (design.capacity_bytes(), lines.serves()),
        (load("ssd-tlc", &[]).capacity_bytes(), Serves::Words)
    );
    let memory = lines.ram_config(&design, 1);
    assert_eq!(memory.backup, Backup::Capacitor { hold: Span::from_ms(10_000) });
    // A mark of 4 B for each line is this program's; the price is that of the memory.
    assert_eq!(memory.capacity_bytes, (16 << 30) + (4 << 22));
    let bought = design.price().items.into_iter().find(|item| item.medium == "cache").unwrap();
    assert_eq!(bought.bytes, 16 << 30);
    assert_eq!(design.raw_bytes(), load("ssd-tlc", &[]).raw_bytes(), "of flash");
    // Without them it is the drive it was made of, once it has its link.
    let nvme = ["ftl.cache.kind=none", "path.kind=nvme", "path.rate=3.5 GB/s"];
    assert!(matches!(load("cxl-ms-ssd", &nvme).ftl, Ftl::Page(_)));
}

#[test]
fn lines_that_cannot_be() {
    for (sets, problem, help) in [
        (&["ftl.cache.ways=12"][..], "is not a power of two of sets of 48 KiB", "ftl.cache.ways"),
        (&["media.cache.size=24 GiB"], "a memory of 24 GiB is not a power of two", "size of the memory"),
        (&["ftl.cache.line=6 KiB"], "is not a power of two", "ftl.cache.line"),
        (&["ftl.cache.line=2 KiB"], "a whole number of units of 4096 B", "explain ftl"),
        (&["ftl.cache.in=dram"], "`dram` holds the map", "use another memory"),
        (&["ftl.cache.in=tlc"], "`tlc` is of kind \"nand\"", "kind \"ram\""),
        (&["path.kind=nvme"], "serves memory behind CXL", "cxl-mem"),
        (&["path.width=48 B"], "`path.width` is not a power of two", "64 B"),
        (&["media.cache.size=256 KiB"], "fewer than the 4 sets", "explain ftl"),
        (&["ftl.cache.kind=none"], "a page map serves blocks, not words", "nvme"),
        (&["ftl.cache.size_max=20 %"], "does not apply to kind = \"set-associative\"", "pslc"),
    ] {
        let errors = errors_of("cxl-ms-ssd", sets);
        assert!(errors.contains(problem) && errors.contains(help), "{sets:?}\n{errors}");
    }
}
