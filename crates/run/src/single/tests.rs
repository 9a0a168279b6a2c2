//! Runs on a memory: accesses one after the other, transactions in order of arrival, what they cost, and what is refused.

use super::*;
use crate::plan::{Settings, Source, Task};
use crate::{Limit, Preparation, drive};

/// eNVy with 16 segments of 512 pages, 1.5 MB for the host.
/// Its erases are shorter in proportion, otherwise it would do nothing else.
const SMALL: [&str; 7] = [
    "media.flash.erase=500 us",
    "media.flash.blocks=16",
    "media.flash.block=128 KiB",
    "array.ways=1",
    "ftl.buffer.size=16 KiB",
    "ftl.clean.partition=4",
    "ftl.map.cache=0",
];
/// A database that fits: 3 branches of 1000 accounts.
const BANK: &str = "tpca branches=3 accounts=1000";

fn small(more: &[&str]) -> Design {
    let sets: Vec<String> = SMALL.iter().chain(more).map(|set| set.to_string()).collect();
    Design::load("envy", &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

fn run_on(
    design: Design,
    workload: &str,
    until: &str,
    state: impl Into<Preparation>,
) -> Result<RunResult, RunError> {
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: state.into() };
    Task::new(design, "envy".into(), &source, settings).unwrap().run(&mut |_, _| true)
}

fn same(a: &RunResult, b: &RunResult) -> bool {
    RunResult { wall_s: 0.0, ..a.clone() } == RunResult { wall_s: 0.0, ..b.clone() }
}

#[test]
fn transactions_are_measured_and_repeat() {
    let workload = format!("{BANK} rate=10k/s");
    let run = || run_on(small(&[]), &workload, "100 ms", State::Full).unwrap();
    let (first, second) = (run(), run());
    assert!(same(&first, &second), "two runs differ");
    let (transactions, loads, stores) = (first.transaction.count, first.read.count, first.write.count);
    assert!(transactions.abs_diff(1000) < 100, "{transactions} arrivals in 100 ms at 10 k/s");
    assert_eq!((first.requests_served, stores % transactions, loads % transactions), (transactions, 0, 0));
    assert_eq!(stores / transactions, 3);
    let memory = first.memory.unwrap();
    assert_eq!((memory.loads, memory.stores), (loads, stores));
    assert_eq!(memory.buffer_hits + memory.copied_pages, stores, "a store hits, or its page is copied");
    let wa = &first.write_amplification;
    assert!((wa.total - wa.host - wa.clean - wa.transfer - wa.wear).abs() < 1e-9, "{wa:?}");
    assert!((memory.cleaning_cost - (wa.clean + wa.transfer)).abs() < 1e-9);
    let time = &memory.time;
    let sum = time.read + time.write + time.flush + time.clean + time.wear + time.erase + time.idle;
    assert!((sum - 1.0).abs() < 1e-9, "the split covers the time: {time:?}");
    // Section 5.5: cycles x pages / (pages programmed per second).
    let per_s = memory.flushed_pages as f64 * wa.total / first.simulated_s;
    let days = 1e6 * (16 * 512) as f64 / per_s / 86_400.0;
    assert!((first.lifetime.years.unwrap() * 365.25 / days - 1.0).abs() < 1e-9);
    let windows: u64 = first.series.iter().map(|window| window.requests).sum();
    assert_eq!(windows, transactions, "windows count transactions");
}

/// One after the other without contention: a transaction takes as long as its accesses, 160 ns each.
#[test]
fn a_closed_loop_is_the_sum_of_its_accesses() {
    // A buffer that all pages fit in: nothing is flushed, and nothing waits.
    let design = small(&["ftl.buffer.size=2 MiB"]);
    let result = run_on(design, BANK, "500 io", State::Fresh).unwrap();
    let access_ns = 160 * (result.read.count + result.write.count);
    let copies_ns = 160 * result.write.count;
    assert_eq!((result.requests_asked, result.memory.unwrap().flushed_pages), (Some(500), 0));
    let total_ns = (result.simulated_s * 1e9).round() as u64;
    assert!(total_ns >= access_ns && total_ns <= access_ns + copies_ns, "{total_ns} of {access_ns}");
    assert!((result.transaction.latency.mean_ns * 500.0 - total_ns as f64).abs() < 1.0);
    assert_eq!(result.read.latency.p50_ns, 160);
}

/// More than the one processor can serve: the queue and latency grow, throughput does not.
#[test]
fn an_overload_waits_in_order() {
    let slow = run_on(small(&[]), &format!("{BANK} rate=20k/s"), "20 ms", State::Fresh).unwrap();
    let fast = run_on(small(&[]), &format!("{BANK} rate=2M/s"), "20 ms", State::Fresh).unwrap();
    assert!(fast.transaction.per_s < 200_000.0, "{}", fast.transaction.per_s);
    assert!(fast.transaction.latency.mean_ns > 50.0 * slow.transaction.latency.mean_ns);
    assert!(fast.transaction.latency.max_ns > 15_000_000, "the last has waited almost for the whole run");
}

#[test]
fn blocks_go_through_a_ram_disk() {
    let result = run_on(small(&[]), "uniform bs=512B read=50%", "4000 io", State::Full).unwrap();
    assert_eq!((result.requests_served, result.transaction.count), (4000, 0));
    // A block is 64 words.
    assert_eq!(result.read.latency.p50_ns, 64 * 160);
    assert!(result.write_amplification.total >= 1.0 && result.memory.unwrap().flushed_pages > 0);
    assert!(same(&result, &run_on(small(&[]), "uniform bs=512B read=50%", "4000 io", State::Full).unwrap()));
}

/// A scattered fill writes every unit once, in an order that the seed decides, on a controller of any kind; under
/// locality gathering it leaves hot addresses in every partition, while a fill in order gathers them.
#[test]
fn a_scattered_fill_mixes_what_lies_together_in_address() {
    let unbuffered = || small(&["ftl.buffer.kind=none", "ftl.utilization_of=in-service"]);
    let hot = |state: &str| {
        run_on(unbuffered(), "words hot=10/90", "40k io", state.parse::<Preparation>().unwrap()).unwrap()
    };
    let (ordered, scattered) = (hot("full"), hot("scattered"));
    assert_eq!(ordered.precondition.host_bytes, scattered.precondition.host_bytes);
    assert_eq!(scattered.precondition.kind, "scattered");
    let cost = |run: &RunResult| run.memory.as_ref().unwrap().cleaning_cost;
    // Partitions of 4 segments that each hold hot and cold data clean like FIFO: 2.5 and more at 10/90.
    assert!(cost(&scattered) > 2.3 && cost(&ordered) < 1.9, "{} {}", cost(&scattered), cost(&ordered));
    assert!(same(&scattered, &hot("full,order=random")), "two runs differ");
    // Of segments as small as these it sorts what it finds mixed before it is steady.
    let (ordered, scattered) = (hot("steady"), hot("steady,order=random"));
    assert!(
        (cost(&scattered) / cost(&ordered) - 1.0).abs() < 0.05,
        "{} {}",
        cost(&scattered),
        cost(&ordered)
    );
    assert_ne!(scattered.precondition.host_bytes, ordered.precondition.host_bytes);
    let line = scattered.precondition.line(scattered.design.capacity_bytes);
    assert!(line.starts_with("filled once in random order, then "), "{line}");

    let sets = ["media.tlc.blocks=24", "ftl.spare=30 %"].map(String::from);
    let drive = || Design::load("ssd-tlc", &sets).unwrap();
    // 16 units of 4 KiB: on a few pages of 16 KiB, or on as many as there are units.
    let read = |state: &str| {
        let state = state.parse::<Preparation>().unwrap();
        run_on(drive(), "sequential rw=read bs=64KiB qd=1", "200 io", state).unwrap()
    };
    let (ordered, scattered) = (read("full"), read("scattered"));
    assert_eq!(ordered.precondition.host_bytes, scattered.precondition.host_bytes);
    let reads = |run: &RunResult| run.flash.as_ref().unwrap().reads;
    assert!(reads(&scattered) > 2 * reads(&ordered), "neighbours lie on the same pages");
}

#[test]
fn transactions_need_a_memory_that_is_large_enough() {
    let source = Source::read(BANK, None).unwrap();
    let settings = Settings { seed: 1, until: None, state: State::Fresh.into() };
    let refused = |design: Design| Task::new(design, "x".into(), &source, settings).unwrap_err().to_string();
    let drive = Design::load("ssd-tlc", &[]).unwrap();
    assert!(refused(drive).contains("this is a block device; use a design of kind envy"));
    let tiny = small(&["ftl.capacity=64 KiB"]);
    assert!(refused(tiny).contains("the memory holds 64 KiB"));
    let design = small(&[]);
    let task = Task::new(design, "envy".into(), &source, settings).unwrap();
    assert_eq!(task.plan.limit.requests, 1_000_000, "{}", task.plan.workload_about);
    assert!(task.plan.workload_about.ends_with("until 1000000 transactions"), "{}", task.plan.workload_about);
}

mod depth;
mod endings;
mod fills;
mod precision;
mod staged;
mod tenants;
mod twins;
