//! Caches of blocks in SLC mode.

use super::Scenario;
use nvlab_run::State;

/// Its size is a share of the blocks.
pub const OF_SHARES: Scenario = Scenario {
    name: "SLC cache",
    builtin: "tlc-pslc",
    sets: &[
        "media.tlc.pages=48",
        "media.slc.pages=16",
        "media.tlc.blocks=32",
        "ftl.spare=40 %",
        "ftl.buffer.size=2 MiB",
        "ftl.cache.size_min=10 %",
        "ftl.cache.fold_after=2 ms",
    ],
    workload: "uniform read=30% bs=16KiB rate=2k/s",
    until: "20000 io",
    state: State::Full,
};

/// Its size is stated in bytes, and it may grow until few erased blocks are left.
pub const IN_BYTES: Scenario = Scenario {
    name: "SLC cache in bytes",
    builtin: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/scenarios/cache-in-bytes.toml"),
    sets: &[],
    ..OF_SHARES
};
