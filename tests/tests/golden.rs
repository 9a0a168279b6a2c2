//! Golden runs: the same design, workload and seed give the same integers, on every machine and for ever. A
//! change here is a change of results: raise `RESULTS_VERSION` and say why in the commit.

use nvlab_design::Design;
use nvlab_run::State;
use nvlab_run::plan::{Settings, Source, Task, Until};
use nvlab_run::result::RunResult;

fn golden(design: &str, sets: &[&str], workload: &str, state: State, requests: u64) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let resolved = Design::load(design, &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(Until::Requests(requests)), state: state.into() };
    Task::new(resolved, design.into(), &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

/// What is compared: integers only.
fn integers(result: &RunResult) -> Vec<u64> {
    let flash = result.flash.as_ref().unwrap();
    vec![
        result.requests_served,
        (result.simulated_s * 1e12).round() as u64,
        result.read.count,
        result.read.latency.p50_ns,
        result.read.latency.max_ns,
        result.write.latency.p50_ns,
        result.write.latency.max_ns,
        flash.reads,
        flash.programs,
        flash.erases,
        flash.cycles_max as u64,
    ]
}

#[test]
fn runs_repeat_exactly() {
    let small = ["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"];
    let cases: [(&str, &[&str], &str, State); 4] = [
        ("ssd-tlc", &small, "uniform rw=randrw read=50% bs=8KiB qd=16 span=400MiB flush=100", State::Full),
        ("ssd-tlc", &small, "zipf rw=randwrite theta=0.99 bs=4KiB qd=8", State::Full),
        (
            "ssd-mlc-2010",
            &["media.mlc.blocks=64"],
            "hotcold hot=20/80 rw=randwrite bs=4KiB qd=1",
            State::Steady,
        ),
        ("bench-4g", &["media.nand.blocks=64"], "uniform rw=randwrite bs=4KiB qd=4", State::Steady),
    ];
    let mut found = Vec::new();
    for (design, sets, workload, state) in cases {
        let first = golden(design, sets, workload, state, 40_000);
        let second = golden(design, sets, workload, state, 40_000);
        let (mut a, mut b) = (first.clone(), second);
        (a.wall_s, b.wall_s) = (0.0, 0.0);
        assert_eq!(a, b, "{design}, {workload}: two runs differ");
        found.push(integers(&first));
    }
    assert_eq!(found, GOLDEN);
}

/// eNVy as a memory and as a RAM disk, small: with one long operation at a time and with four.
#[test]
fn envy_repeats_exactly() {
    const SMALL: [&str; 5] = [
        "media.flash.block=64 KiB",
        "media.flash.erase=200 us",
        "ftl.buffer.size=64 KiB",
        "ftl.clean.partition=8",
        "ftl.map.cache=64",
    ];
    let cases: [(&str, &str, State, &str); 4] = [
        ("1", "tpca branches=1 accounts=20000", State::Steady, "2000 io"),
        ("4", "tpca branches=1 accounts=20000 rate=20k/s", State::Steady, "2000 io"),
        ("1", "uniform rw=randrw read=50% bs=4KiB qd=1", State::Full, "4000 io"),
        ("4", "hotcold hot=20/80 rw=randwrite bs=512B qd=4", State::Steady, "40000 io"),
    ];
    let mut found = Vec::new();
    for (concurrent, workload, state, until) in cases {
        let mut sets: Vec<String> = SMALL.iter().map(|set| set.to_string()).collect();
        sets.push(format!("ftl.concurrent={concurrent}"));
        let design = Design::load("envy", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let source = Source::read(workload, None).unwrap();
        let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: state.into() };
        let result = Task::new(design, "envy".into(), &source, settings).unwrap().run(&mut |_, _| true);
        let result = result.unwrap();
        let memory = result.memory.as_ref().expect("a memory");
        let mut all = integers(&result);
        all.extend([memory.loads, memory.stores, memory.buffer_hits, memory.copied_pages]);
        all.extend([memory.flushed_pages, memory.mapping_misses, memory.wear_swaps]);
        found.push(all);
    }
    assert_eq!(found, GOLDEN_ENVY);
}

/// The kinds of controller that are not above, small: a block map of each sort, hFTL, lines in front of a page map, memory used
/// in place, a RAM disk, recoverable memory.
const OTHERS: [(&str, &[&str], &str, State, &str); 8] = [
    (
        "mlc-block",
        &["media.mlc.blocks=24", "media.mlc.block=64 KiB"],
        "zipf rw=randrw theta=0.9 read=20% trim=5% bs=8KiB qd=4",
        State::Full,
        "2000 io",
    ),
    (
        "mlc-bast",
        &["media.mlc.blocks=24", "media.mlc.block=64 KiB", "ftl.log.share=20 %"],
        "zipf rw=randrw theta=0.9 read=20% trim=5% bs=8KiB qd=4",
        State::Full,
        "4000 io",
    ),
    (
        "fusion-fast",
        &["media.mlc.blocks=24", "media.mlc.block=64 KiB", "media.slc.block=32 KiB", "ftl.merge_blocks=4"],
        "zipf rw=randrw theta=0.9 read=20% bs=8KiB qd=4",
        State::Full,
        "4000 io",
    ),
    (
        "hftl",
        &["media.nand.blocks=64", "media.nand.pages=32", "ftl.capacity=3 MiB", "media.pram.size=64 KiB"],
        "zipf rw=randrw theta=0.9 read=20% trim=5% bs=2KiB qd=4",
        State::Full,
        "4000 io",
    ),
    (
        "cxl-ms-ssd",
        &[
            "media.tlc.pages=48",
            "media.tlc.blocks=24",
            "ftl.spare=40 %",
            "ftl.buffer.size=2 MiB",
            "ftl.map.checkpoint=64 MiB",
            "media.cache.size=1 MiB",
        ],
        "words hot=20/60 page=4KiB load=60%",
        State::Full,
        "20000 io",
    ),
    (
        "moneta",
        &["media.pcm.size=4 MiB", "media.pcm.level.interval=2", "media.pcm.level.regions=4"],
        "zipf rw=randrw theta=0.9 read=40% trim=5% bs=16KiB qd=16 flush=50",
        State::Fresh,
        "10000 io",
    ),
    ("nvramdisk", &[], "uniform rw=randrw read=50% bs=4KiB qd=4", State::Fresh, "10000 io"),
    (
        "rvm-flash",
        &["media.flash.block=2 KiB", "ftl.log.size=256 KiB"],
        "debit-credit accounts=1000",
        State::Fresh,
        "2000 io",
    ),
];

#[test]
fn every_other_kind_repeats_exactly() {
    let mut found = Vec::new();
    for (design, sets, workload, state, until) in OTHERS {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let resolved = Design::load(design, &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let source = Source::read(workload, None).unwrap();
        let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: state.into() };
        let task = Task::new(resolved, design.into(), &source, settings).unwrap();
        let result = task.run(&mut |_, _| true).unwrap_or_else(|error| panic!("{design}: {error}"));
        let (read, write, transaction) = (&result.read, &result.write, &result.transaction);
        let [reads, programs, erases] =
            result.flash.as_ref().map_or([0; 3], |flash| [flash.reads, flash.programs, flash.erases]);
        let words = result.pram.as_ref().map_or(0, |pram| pram.words_programmed);
        found.push([
            result.requests_served,
            (result.simulated_s * 1e12).round() as u64,
            read.count,
            read.latency.p50_ns,
            read.latency.max_ns,
            write.latency.p50_ns,
            write.latency.max_ns,
            transaction.latency.p50_ns,
            transaction.latency.max_ns,
            reads,
            programs,
            erases,
            words,
        ]);
    }
    assert_eq!(found, GOLDEN_OTHERS);
}

const GOLDEN_OTHERS: [[u64; 13]; 8] = [
    [2000, 8208174288000, 451, 1146879, 45717568, 16515071, 60560000, 0, 0, 20372, 22390, 1421, 0],
    [4000, 17589355632000, 846, 589823, 55377568, 20971519, 75007232, 0, 0, 30090, 34364, 3546, 0],
    [4000, 16215504824000, 846, 794623, 149682632, 983039, 149707264, 0, 0, 18676, 23292, 1845, 0],
    [4000, 10197517482412, 846, 3571711, 109754085, 4390911, 113005290, 0, 0, 4185, 6337, 185, 17543],
    [20000, 1411390200758, 11991, 70655, 2351013, 70655, 133159, 70655, 2351013, 19788, 165, 1, 0],
    [10000, 68907700585, 3979, 112639, 201649, 115711, 191044, 0, 0, 0, 0, 0, 47290],
    [10000, 6508257000, 5039, 2591, 3124, 2783, 3124, 0, 0, 0, 0, 0, 0],
    [2000, 56340433775000, 0, 0, 0, 565247, 9602740555, 868351, 9603040555, 187135, 188045, 91, 0],
];

const GOLDEN: [[u64; 11]; 4] = [
    [40000, 382811739972, 19943, 103423, 828337, 9855, 4375618, 19940, 809, 1, 2],
    [40000, 110455822856, 0, 0, 0, 9471, 1077169, 0, 479, 1, 2],
    [40000, 477043049219000, 0, 0, 0, 802815, 2696520000, 641010, 681010, 5320, 334],
    [40000, 58317735240000, 0, 0, 0, 802815, 92675000, 216941, 256941, 1004, 121],
];

const GOLDEN_ENVY: [[u64; 18]; 4] = [
    [
        2000,
        41951860000,
        72000,
        161,
        260,
        161,
        919840,
        70110,
        4785,
        19,
        22,
        72000,
        6000,
        3945,
        2055,
        2055,
        6197,
        0,
    ],
    [
        2000,
        96165038439,
        72000,
        161,
        460,
        161,
        320,
        70268,
        5723,
        24,
        162,
        72000,
        6000,
        3866,
        2134,
        2134,
        6197,
        5,
    ],
    [
        4000,
        884916480000,
        2019,
        83520,
        83520,
        217087,
        2080960,
        1061104,
        86458,
        315,
        3,
        1033728,
        1014272,
        224,
        31472,
        31472,
        63840,
        0,
    ],
    [
        40000,
        510031540000,
        0,
        0,
        0,
        44031,
        1511460,
        79356,
        196896,
        770,
        600,
        0,
        2560000,
        644,
        79356,
        79356,
        79376,
        0,
    ],
];
