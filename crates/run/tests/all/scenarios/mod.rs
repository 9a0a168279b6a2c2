//! Small devices under short runs, one for each thing a key may be about.

mod cache;
mod lines;
mod logs;
mod map;

use nvlab_design::{Design, DesignErrors};
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
use nvlab_run::{RunError, State};

/// A design, and a run that shows what its keys do.
pub struct Scenario {
    /// Its name in messages.
    pub name: &'static str,
    builtin: &'static str,
    sets: &'static [&'static str],
    workload: &'static str,
    until: &'static str,
    state: State,
}

impl Scenario {
    /// Its design with further changes.
    pub fn design(&self, more: &[String]) -> Result<Design, DesignErrors> {
        let sets: Vec<String> =
            self.sets.iter().map(|set| set.to_string()).chain(more.iter().cloned()).collect();
        Design::load(self.builtin, &sets)
    }

    /// The run on a design.
    pub fn run(&self, design: Design) -> Result<RunResult, RunError> {
        let source = Source::read(self.workload, None).unwrap();
        let (until, state) = (Some(self.until.parse().unwrap()), self.state.into());
        let task = Task::new(design, self.name.into(), &source, Settings { seed: 1, until, state });
        let mut result =
            task.unwrap_or_else(|error| panic!("{}: {error}", self.name)).run(&mut |_, _| true)?;
        result.workload_about.clear();
        Ok(result)
    }
}

/// A drive of 4 dies with blocks of 3 MiB.
const TLC: &[&str] = &[
    "media.tlc.pages=48",
    "media.tlc.blocks=24",
    "ftl.spare=40 %",
    "ftl.buffer.size=2 MiB",
    "ftl.map.checkpoint=64 MiB",
    "ftl.wear.threshold=2",
];
/// Zones of 34 MiB over five of 15 dies.
const ZONES: &[&str] = &[
    "media.tlc.pages=36",
    "ftl.zone.dies=5",
    "ftl.zone.size=64 MiB",
    "ftl.zone.capacity=34176 KiB",
    "ftl.zone.open_max=3",
    "ftl.zone.active_max=8",
];
const MIXED: &str = "uniform rw=randrw read=30% trim=5% bs=4KiB qd=16 flush=50";

/// The scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "zones",
        builtin: "zns-ssd",
        sets: ZONES,
        workload: "zones bs=64KiB qd=16 append read=20%",
        until: "20000 io",
        state: State::Full,
    },
    Scenario {
        name: "page map",
        builtin: "ssd-tlc",
        sets: TLC,
        workload: MIXED,
        until: "60000 io",
        state: State::Full,
    },
    Scenario {
        name: "page map with faults",
        builtin: "ssd-tlc",
        sets: &[
            "media.tlc.pages=48",
            "media.tlc.blocks=16",
            "ftl.spare=45 %",
            "ftl.clean.kind=d-choices",
            "ftl.buffer.kind=none",
            "media.tlc.copy_back=true",
            "media.tlc.endurance=40",
            "media.tlc.endurance_spread=20 %",
            "media.tlc.faults.factory_bad=2 %",
            "media.tlc.faults.program_failure=0.1 %",
            "media.tlc.faults.erase_failure=0.1 %",
            "media.tlc.ecc.kind=threshold",
            "media.tlc.ecc.rate_fresh=1.5e-3",
            "media.tlc.ecc.rate_worn=4e-3",
            "media.tlc.ecc.codeword=4608 B",
            "media.tlc.ecc.correctable=60",
            "media.tlc.ecc.retries=4",
        ],
        workload: MIXED,
        until: "24000 io",
        state: State::Full,
    },
    Scenario {
        name: "page map of superblocks",
        builtin: "ssd-tlc",
        sets: &["media.tlc.pages=48", "media.tlc.blocks=24", "ftl.allocation=superblock", "ftl.spare=45 %"],
        workload: MIXED,
        until: "30000 io",
        state: State::Full,
    },
    Scenario {
        name: "blocks that wear out",
        builtin: "ssd-tlc",
        sets: &[
            "media.tlc.pages=12",
            "media.tlc.blocks=40",
            "ftl.spare=45 %",
            "ftl.clean.kind=windowed-greedy",
            "ftl.clean.window=4",
            "ftl.buffer.size=2 MiB",
            "media.tlc.endurance=8",
            "media.tlc.endurance_spread=20 %",
            "media.tlc.faults.wear_out=true",
        ],
        workload: "uniform bs=16KiB qd=16",
        until: "12000 io",
        state: State::Full,
    },
    cache::OF_SHARES,
    cache::IN_BYTES,
    map::ON_DEMAND,
    Scenario {
        name: "hot and cold",
        builtin: "hot-cold",
        sets: &[
            "media.mlc.blocks=40",
            "media.mlc.block=128 KiB",
            "media.slc.block=64 KiB",
            "ftl.utilization=60 %",
        ],
        workload: "zipf theta=0.9 read=20% bs=4KiB qd=4",
        until: "20000 io",
        state: State::Full,
    },
    Scenario {
        name: "FAST with a log array",
        builtin: "hybrid-slc-mlc",
        sets: &["media.mlc.blocks=24", "media.mlc.block=128 KiB", "ftl.merge_blocks=4"],
        workload: "zipf theta=0.9 read=20% trim=5% bs=8KiB qd=4",
        until: "6000 io",
        state: State::Full,
    },
    Scenario {
        name: "FAST with a log inside",
        builtin: "lbftl",
        sets: &[
            "media.nand.blocks=64",
            "media.nand.pages=32",
            "ftl.kind=fast",
            "ftl.medium=nand",
            "ftl.map.in=dram",
            "ftl.spare=45 %",
            "ftl.log.blocks=16",
            "ftl.wear.kind=static",
            "ftl.wear.threshold=3",
            "array.ways=2",
            "path.queue=8",
        ],
        workload: "zipf theta=0.9 read=20% bs=8KiB qd=4",
        until: "6000 io",
        state: State::Full,
    },
    Scenario {
        name: "FAST with a log in SLC mode",
        builtin: "fusion-fast",
        sets: &[
            "media.mlc.blocks=24",
            "media.mlc.block=64 KiB",
            "media.slc.block=32 KiB",
            "ftl.merge_blocks=4",
        ],
        workload: "zipf theta=0.9 read=20% bs=8KiB qd=4",
        until: "6000 io",
        state: State::Full,
    },
    Scenario {
        name: "BAST",
        builtin: "mlc-bast",
        sets: &["media.mlc.blocks=24", "media.mlc.block=64 KiB", "ftl.log.share=20 %"],
        workload: "zipf theta=0.9 read=20% trim=5% bs=8KiB qd=4",
        until: "6000 io",
        state: State::Full,
    },
    Scenario {
        name: "block map",
        builtin: "mlc-block",
        sets: &["media.mlc.blocks=24", "media.mlc.block=64 KiB"],
        workload: "zipf theta=0.9 read=20% trim=5% bs=8KiB qd=4",
        until: "2000 io",
        state: State::Full,
    },
    Scenario {
        name: "hFTL",
        builtin: "hftl",
        sets: &[
            "media.nand.blocks=64",
            "media.nand.pages=32",
            "ftl.capacity=3 MiB",
            "ftl.wear.kind=static",
            "ftl.wear.threshold=2",
            "media.pram.size=64 KiB",
            "media.pram.level.kind=start-gap",
            "media.pram.level.regions=2",
            "media.pram.banks=4",
            "media.pram.stripe=256 B",
            "path.queue=8",
            "array.ways=2",
        ],
        workload: "zipf theta=0.9 read=20% trim=5% bs=2KiB qd=4",
        until: "6000 io",
        state: State::Full,
    },
    Scenario {
        name: "hFTL with FSMS",
        builtin: "hftl-fsms",
        sets: &[
            "media.nand.blocks=256",
            "media.nand.pages=32",
            "ftl.capacity=14 MiB",
            "media.pram.size=256 KiB",
            "ftl.route.size=128 KiB",
            "ftl.route.first=64 KiB",
        ],
        workload: "iozone mode=rewrite record=4KiB file=1MiB fill=20%",
        until: "250 io",
        state: State::Fresh,
    },
    Scenario {
        name: "BAST with FSMS",
        builtin: "lbftl-fsms",
        sets: &[
            "media.nand.blocks=256",
            "media.nand.pages=32",
            "ftl.capacity=12 MiB",
            "ftl.route.size=128 KiB",
            "ftl.route.first=64 KiB",
        ],
        workload: "uniform read=30% bs=2KiB",
        until: "1000 io",
        state: State::Fresh,
    },
    Scenario {
        name: "eNVy, hybrid",
        builtin: "envy-128m",
        sets: &[
            "media.flash.block=4 KiB",
            "media.sram.size=2 MiB",
            "ftl.buffer.size=64 KiB",
            "ftl.map.cache=64",
            "ftl.wear.threshold=2",
            "ftl.clean.partition=4",
        ],
        workload: "tpca branches=3 accounts=1000 rate=20k/s",
        until: "3000 io",
        state: State::Full,
    },
    Scenario {
        name: "eNVy, gathering",
        builtin: "envy-128m",
        sets: &[
            "media.flash.block=4 KiB",
            "media.sram.size=2 MiB",
            "ftl.buffer.size=64 KiB",
            "ftl.clean.kind=gathering",
            "ftl.clean.exchange=5 %",
            "ftl.concurrent=2",
        ],
        workload: "hotcold hot=10/90 bs=512B",
        until: "20000 io",
        state: State::Full,
    },
    Scenario {
        name: "eNVy, hybrid, hot and cold",
        builtin: "envy-128m",
        sets: &[
            "media.flash.block=4 KiB",
            "media.sram.size=2 MiB",
            "ftl.buffer.size=64 KiB",
            "ftl.clean.partition=2",
        ],
        workload: "hotcold hot=10/90 bs=512B",
        until: "20000 io",
        state: State::Full,
    },
    Scenario {
        name: "a cache of hot data that grows",
        builtin: "hot-cold",
        sets: &[
            "media.mlc.blocks=40",
            "media.mlc.block=128 KiB",
            "media.slc.block=64 KiB",
            "ftl.utilization=55 %",
            "ftl.cache.size_min=5 %",
            "ftl.cache.size_max=20 %",
            "ftl.cache.when_full=direct",
            "ftl.cache.fold_after=1 ms",
        ],
        workload: "zipf theta=0.9 read=20% bs=4KiB rate=400/s",
        until: "20000 io",
        state: State::Full,
    },
    Scenario {
        name: "a cache of hot data that is full",
        builtin: "hot-cold",
        sets: &[
            "media.mlc.blocks=40",
            "media.mlc.block=128 KiB",
            "media.slc.block=64 KiB",
            "ftl.utilization=50 %",
            "ftl.hot_within=60 %",
            "ftl.cache.size_min=5 %",
            "ftl.cache.size_max=15 %",
            "ftl.cache.when_full=direct",
        ],
        workload: "zipf theta=0.9 read=20% bs=4KiB qd=4",
        until: "20000 io",
        state: State::Full,
    },
    Scenario {
        name: "a log on flash",
        builtin: "rvm-flash",
        sets: &[
            "media.flash.block=2 KiB",
            "ftl.log.size=256 KiB",
            "ftl.log.headers=compact",
            "ftl.log.compress=true",
            "ftl.log.compress_rate=1 MB/s",
            "ftl.log.decompress_rate=1 MB/s",
            "ftl.memory=64 MiB",
        ],
        workload: "debit-credit accounts=1000",
        until: "2000 io",
        state: State::Fresh,
    },
    logs::WORN,
    logs::SLOWING,
    Scenario {
        name: "a log on a flash disk",
        builtin: "rvm-flash-disk",
        sets: &["ftl.log.sector=1 KiB", "ftl.log.page_buffers=true", "ftl.log.size=256 KiB"],
        workload: "debit-credit accounts=1000",
        until: "1000 io",
        state: State::Fresh,
    },
    Scenario {
        name: "a log in battery-backed memory",
        builtin: "rvm-battery-ram",
        sets: &["media.dram.size=512 KiB"],
        workload: "debit-credit style=sidney accounts=1000",
        until: "1000 io",
        state: State::Fresh,
    },
    Scenario {
        name: "a log on a disk, and data on another",
        builtin: "rvm-disk",
        sets: &[
            "ftl.log.size=256 KiB",
            "media.other.part=disk-7200",
            "ftl.log.data=other",
            "media.other.size=200 MB",
            "media.other.seek=12 ms",
            "media.other.seek_full=22 ms",
            "ftl.log.truncate_at=50 %",
        ],
        workload: "debit-credit rate=60/s",
        until: "3000 io",
        state: State::Fresh,
    },
    Scenario {
        name: "a hybrid log",
        builtin: "rvm-hybrid",
        sets: &["media.flash.block=2 KiB", "ftl.log.size=1 MiB", "ftl.log.write_ahead=true"],
        workload: "compiler passes=4 cpu=20ms",
        until: "150 io",
        state: State::Fresh,
    },
    lines::WORDS,
    lines::BLOCKS,
    Scenario {
        name: "memory used in place",
        builtin: "moneta",
        sets: &["media.pcm.size=4 MiB", "media.pcm.level.interval=2", "media.pcm.level.regions=4"],
        workload: "zipf theta=0.9 read=40% trim=5% bs=16KiB qd=16 flush=50",
        until: "20000 io",
        state: State::Fresh,
    },
    Scenario {
        name: "memory on the processor's channels, with posted writes",
        builtin: "optane-like",
        sets: &["media.xpoint.size=12 MiB"],
        workload: MIXED,
        until: "20000 io",
        state: State::Fresh,
    },
];
