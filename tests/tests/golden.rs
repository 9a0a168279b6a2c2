//! Golden runs: the same design, workload and seed give the same integers, on every machine and for ever. A
//! change here is a change of results: raise `RESULTS_VERSION` and say why in the commit.

use nvlab_lab::design::Design;
use nvlab_lab::result::RunResult;
use nvlab_lab::run::{Limit, RunPlan, State, run};
use nvlab_units::Span;
use nvlab_workload::AnyWorkload;
use nvlab_workload::spec::WorkloadSpec;

fn golden(design: &str, sets: &[&str], workload: &str, state: State, requests: u64) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let resolved = Design::load(design, &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let spec = WorkloadSpec::parse(workload).unwrap();
    let unit = resolved.ftl.unit_bytes() as u64;
    let make = |seed| -> AnyWorkload {
        let opened = spec.open(resolved.capacity_bytes(), unit, seed).unwrap();
        opened.phases.into_iter().next().unwrap().remove(0).workload
    };
    let plan = RunPlan {
        design_name: design.into(),
        workload_text: workload.into(),
        workload_about: String::new(),
        seed: 1,
        state,
        precondition_with_workload: true,
        until: None,
        limit: Limit { requests, time: Span::from_ps(u64::MAX), ..Limit::NONE },
        requests_asked: Some(requests),
    };
    run(&resolved, &plan, make, &mut |_, _| true).unwrap()
}

/// What is compared: integers only.
fn integers(result: &RunResult) -> Vec<u64> {
    vec![
        result.requests_served,
        (result.simulated_s * 1e12).round() as u64,
        result.read.count,
        result.read.latency.p50_ns,
        result.read.latency.max_ns,
        result.write.latency.p50_ns,
        result.write.latency.max_ns,
        result.flash.reads,
        result.flash.programs,
        result.flash.erases,
        result.flash.cycles_max as u64,
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

const GOLDEN: [[u64; 11]; 4] = [
    [40000, 520431257436, 19943, 221183, 5505539, 9855, 5439187, 19941, 854, 1, 9],
    [40000, 216159314276, 0, 0, 0, 9471, 4850641, 0, 860, 1, 9],
    [40000, 410567200620500, 0, 0, 0, 47103, 3143486797, 569464, 609464, 4761, 567],
    [40000, 51189585240000, 0, 0, 0, 802815, 99650000, 186067, 226067, 883, 132],
];
