//! Test only: made-up results. [`run`] is small with round numbers, [`rich`] looks like a real run.

use crate::result::*;
use nvlab_units::{Histogram, Rng, Span};

const RESOLVED: &str = "schema = 1\n\n[design]\nname = \"ssd-tlc\"  # file\n\n[array]\nchannels = 2  # file\n\
                        ways = 2  # default\n\n[ftl.clean]\nkind = \"greedy\"  # file\n";

fn latency(scale: u64) -> Latency {
    Latency {
        mean_ns: 61_000.5 * scale as f64,
        p50_ns: 58_000 * scale,
        p95_ns: 95_000 * scale,
        p99_ns: 183_000 * scale,
        p99_9_ns: 1_240_000 * scale,
        p99_99_ns: 4_200_000 * scale,
        max_ns: 12_700_000 * scale,
    }
}

fn operations(count: u64, seconds: f64, scale: u64) -> OpResult {
    let bytes = count * 4096;
    let histogram = vec![(58_000 * scale, count / 2), (12_700_000 * scale, count - count / 2)];
    let (per_s, bytes_per_s) = (count as f64 / seconds, bytes as f64 / seconds);
    OpResult { count, bytes, per_s, bytes_per_s, latency: latency(scale), histogram_ns: histogram }
}

fn flash() -> FlashResult {
    FlashResult {
        reads: 1_400_000,
        programs: 61_875,
        erases: 12_345,
        busy_read: 0.09,
        busy_program: 0.22,
        busy_erase: 0.1,
        busy_channel: 0.314,
        cycles_min: 1,
        cycles_mean: 5.875,
        cycles_max: 12,
        cycles_deviation: 3.2,
        cycles_histogram: vec![(1, 1), (4, 2), (5, 2), (7, 1), (9, 1), (12, 1)],
        cycles: vec![1, 4, 4, 5, 5, 7, 9, 12],
        ..FlashResult::default()
    }
}

fn window(index: u64) -> Window {
    Window {
        from_s: index as f64 * 30.0,
        to_s: (index + 1) as f64 * 30.0,
        requests: 900_000,
        read_bytes: 700_000 * 4096,
        write_bytes: 200_000 * 4096,
        read_p50_ns: 58_000,
        read_p99_ns: 183_000,
        write_p50_ns: 116_000,
        write_p99_ns: 366_000,
        write_amplification: 2.96 + 0.01 * index as f64,
        cleaning_cost: 1.94 + 0.01 * index as f64,
        erases: 6_172,
    }
}

fn lifetime() -> Lifetime {
    Lifetime {
        years: Some(8.4),
        years_worst_block: Some(6.12),
        host_bytes: Some(2.4e14),
        drive_writes_per_day: Some(1.13),
        rated_cycles: 3000,
        caveat: None,
        retention_years: None,
        levelling: None,
    }
}

/// Software of two stages and a lock.
pub fn software() -> SoftwareResult {
    let stage = |name: &str, submits, cpu_ns, lock_ns, wait_ns| StageResult {
        name: name.to_string(),
        submits,
        cpu_ns,
        lock_ns,
        wait_ns,
    };
    SoftwareResult {
        stack: "mine".to_string(),
        threads: 8,
        cores: Some(4),
        locks: 1,
        latency_ns: 10_000.0,
        device_ns: 30_000.0,
        queue_ns: 500.0,
        cpu_ns: 4_000.0,
        spin_ns: 0.0,
        lock_ns: 2_000.0,
        cores_used: 1.25,
        lock_share: 0.05,
        stages: vec![
            stage("issue", true, 3_000.0, 2_000.0, 0.0),
            stage("wake-up", false, 1_000.0, 0.0, 3_500.0),
        ],
    }
}

/// A small result with round numbers.
pub fn run(name: &str, seed: u64) -> RunResult {
    RunResult {
        schema: SCHEMA.to_string(),
        key: format!("3f9c01ab{:024x}", seed),
        nvlab: "0.1.0".to_string(),
        results_version: RESULTS_VERSION,
        design: DesignInfo {
            name: name.to_string(),
            about: "A small NVMe drive of today".to_string(),
            cite: String::new(),
            resolved_toml: RESOLVED.to_string(),
            capacity_bytes: 114 << 30,
            raw_bytes: 129 << 30,
        },
        workload: "zipf theta=0.99 read=70% bs=4KiB qd=32".to_string(),
        workload_about: "29.8 M units of 4 KiB, 32 requests at a time".to_string(),
        seed,
        precondition: precondition(),
        requests_asked: Some(1_800_000),
        until: None,
        requests_served: 1_800_000,
        arrivals: None,
        simulated_s: 60.0,
        wall_s: 3.1,
        read: operations(1_260_000, 60.0, 1),
        write: operations(540_000, 60.0, 2),
        trim: OpResult::default(),
        flush: OpResult::default(),
        commit: OpResult::default(),
        transaction: OpResult::default(),
        write_amplification: WriteAmplification {
            total: 2.97,
            host: 1.0,
            clean: 1.92,
            wear: 0.03,
            map: 0.02,
            cleaned_blocks: 12_001,
            cleaned_live_share: 0.657,
            ..WriteAmplification::default()
        },
        flash: Some(flash()),
        closed_loop: true,
        lifetime: lifetime(),
        price: price(),
        retention_ma: None,
        controller_memory_bytes: 240 << 20,
        transfers: None,
        unwritten_read_share: 0.0,
        queue_wait_s: 0.0,
        buffer_wait_s: 0.0,
        merge_wait_s: 0.0,
        memory: None,
        cache: None,
        client_bytes: None,
        program: None,
        pram: None,
        media: Vec::new(),
        lines: None,
        map: None,
        part_of_pass: None,
        mount: None,
        durable: None,
        software: None,
        tenants: Vec::new(),
        precision: Vec::new(),
        series: (0..2).map(window).collect(),
    }
}

fn precondition() -> Precondition {
    Precondition {
        host_bytes: 581 << 30,
        fill_bytes: 114 << 30,
        writes: Some("the workload's own writes".to_string()),
        last_windows: [2.96, 2.97],
        last_window: Some(WriteAmplification {
            total: 2.97,
            host: 1.0,
            clean: 1.95,
            map: 0.02,
            ..WriteAmplification::default()
        }),
        ..Precondition::none("steady")
    }
}

fn price() -> Price {
    let parts = [("tlc", 129 << 30, 55.2), ("dram", 256 << 20, 7.1)];
    let parts = parts.map(|(name, bytes, usd)| PricePart { name: name.into(), bytes, usd: Some(usd) });
    Price { total_usd: Some(62.3), usd_per_gib: Some(0.546), parts: parts.to_vec() }
}

/// A histogram of `count` latencies: mostly around `typical_ns`, some behind a program or an erase.
fn drawn(rng: &mut Rng, count: u64, typical_ns: f64, blocked: f64, program_ns: f64) -> Histogram {
    let mut histogram = Histogram::new();
    for _ in 0..count {
        let mut ns = typical_ns * rng.normal(0.0, 0.12).exp();
        if rng.chance(blocked) {
            ns += rng.unit() * program_ns;
        }
        if rng.chance(blocked / 40.0) {
            ns += rng.exponential(2.2 * program_ns);
        }
        histogram.add(Span::from_ns(ns as u64));
    }
    histogram
}

fn operation_of(histogram: &Histogram, seconds: f64) -> OpResult {
    let at = |q: f64| histogram.quantile(q).ns();
    let count = histogram.count();
    OpResult {
        count,
        bytes: count * 4096,
        per_s: count as f64 / seconds,
        bytes_per_s: (count * 4096) as f64 / seconds,
        latency: Latency {
            mean_ns: histogram.mean().ps() as f64 / 1e3,
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p99_9_ns: at(0.999),
            p99_99_ns: at(0.9999),
            max_ns: histogram.max().ns(),
        },
        histogram_ns: histogram.buckets().map(|(span, count)| (span.ns(), count)).collect(),
    }
}

/// Erase counts of 4 dies of 448 blocks: some blocks cold, one die more worn.
fn worn(rng: &mut Rng, flash: &mut FlashResult, mean: f64) {
    let of_die = |die: u32| 1.0 + 0.12 * (die == 2) as u32 as f64;
    let cycles: Vec<u32> = (0..4 * 448)
        .map(|block| {
            let cold = if (block / 61) % 5 == 0 { 0.55 } else { 1.0 };
            (mean * of_die(block / 448) * cold * rng.normal(1.0, 0.08)).max(0.0) as u32
        })
        .collect();
    let mut counts = std::collections::BTreeMap::new();
    cycles.iter().for_each(|&cycle| *counts.entry(cycle).or_insert(0) += 1);
    flash.cycles_min = *cycles.iter().min().unwrap();
    flash.cycles_max = *cycles.iter().max().unwrap();
    flash.cycles_mean = cycles.iter().map(|&c| c as f64).sum::<f64>() / cycles.len() as f64;
    flash.cycles_histogram = counts.into_iter().collect();
    flash.cycles = cycles;
}

/// A result that looks like a real one: `slow` is 1 for a good drive, more for a worse one.
pub fn rich(name: &str, seed: u64, slow: f64) -> RunResult {
    let mut rng = Rng::stream(seed, name);
    let mut run = run(name, seed);
    run.simulated_s = 60.0 * slow;
    let reads = drawn(&mut rng, 1_260_000, 71_000.0, 0.08 * slow, 900_000.0 * slow);
    let writes = drawn(&mut rng, 540_000, 19_000.0, 0.03 * slow, 2_400_000.0 * slow);
    run.read = operation_of(&reads, run.simulated_s);
    run.write = operation_of(&writes, run.simulated_s);
    let clean = 1.92 * slow;
    let wa = &mut run.write_amplification;
    (wa.clean, wa.wear, wa.map, wa.padding) = (clean, 0.03, 0.02, 0.11 * slow);
    wa.total = 1.0 + clean + 0.05 + 0.11 * slow;
    let total = wa.total;
    let flash = run.flash.as_mut().expect("a sample has flash");
    flash.busy_program = (0.3 * slow).min(0.6);
    worn(&mut rng, flash, 140.0 * slow);
    run.lifetime.years = Some(8.4 / slow);
    let step = run.simulated_s / 200.0;
    run.series = (0..200)
        .map(|index| {
            let wave = 1.0 + 0.08 * (index as f64 / 9.0).sin() + rng.normal(0.0, 0.015);
            let stall = if index % 47 == 30 { 0.6 } else { 1.0 };
            Window {
                from_s: index as f64 * step,
                to_s: (index + 1) as f64 * step,
                requests: 9000,
                read_bytes: (86e6 * step / slow * stall * wave) as u64,
                write_bytes: (36.9e6 * step / slow * stall * wave) as u64,
                read_p50_ns: 71_000,
                read_p99_ns: (490_000.0 * slow * slow * wave / stall) as u64,
                write_p50_ns: 19_100,
                write_p99_ns: (1_310_000.0 * slow * wave / stall) as u64,
                write_amplification: total * (1.0 + rng.normal(0.0, 0.01)),
                cleaning_cost: clean,
                erases: (61.0 * wave) as u64,
            }
        })
        .collect();
    run
}
