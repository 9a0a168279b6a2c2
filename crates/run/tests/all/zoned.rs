//! Zoned designs: what workloads may do, what the host's one write of a zone in flight costs, and what a device counts.

use nvlab_design::Design;
use nvlab_run::device::{self, InMemory};
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
use nvlab_run::{Preparation, State};
use nvlab_units::Time;

/// A small drive with zones of 180 pages less one, over five of 15 dies.
const SMALL: [&str; 6] = [
    "media.tlc.pages=36",
    "ftl.zone.dies=5",
    "ftl.zone.size=64 MiB",
    "ftl.zone.capacity=34368 KiB",
    "ftl.zone.open_max=8",
    "ftl.zone.active_max=8",
];

fn run(workload: &str, until: &str, state: State) -> Result<RunResult, String> {
    let sets: Vec<String> = SMALL.iter().map(|set| set.to_string()).collect();
    let design = Design::load("zns-ssd", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let source = Source::read(workload, None).map_err(|error| error.to_string())?;
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: Preparation::from(state) };
    let task = Task::new(design, "zns-ssd".into(), &source, settings).map_err(|error| error.to_string())?;
    task.run(&mut |_, _| true).map_err(|error| error.to_string())
}

#[test]
fn one_write_of_a_zone_is_in_flight_and_many_appends() {
    let iops = |workload: &str| {
        // Less than the buffer holds: the dies do not matter.
        let run = run(workload, "2500 io", State::Fresh).unwrap();
        run.write.count as f64 / run.simulated_s
    };
    let alone = iops("zones bs=4KiB qd=1");
    for (workload, times) in [
        ("zones bs=4KiB qd=4", 1.0),
        ("zones bs=4KiB qd=4 open=4", 4.0),
        ("zones bs=4KiB qd=4 append", 4.0),
        ("zones bs=4KiB qd=2 append", 2.0),
    ] {
        let ratio = iops(workload) / alone;
        assert!((ratio / times - 1.0).abs() < 0.02, "{workload}: {ratio} times one at a time");
    }
}

#[test]
fn zones_are_written_over_and_over_without_moving_anything() {
    for state in [State::Fresh, State::Full, State::Steady] {
        let run = run("zones open=3 bs=192KiB qd=16 append read=20%", "20000 io", state).unwrap();
        assert_eq!(run.write_amplification.total, 1.0, "{state:?}");
        assert!(run.trim.count > 20 && run.read.count > 3000, "{state:?}");
    }
    let run = run("sequential bs=128KiB qd=4", "5000 io", State::Full).unwrap();
    assert!(run.trim.count >= 18, "{} resets", run.trim.count);
}

#[test]
fn what_breaks_the_rules_of_zones_is_refused() {
    let refused = run("uniform bs=4KiB", "10 io", State::Fresh).unwrap_err();
    assert!(refused.contains("the zones of this device are written in order"), "{refused}");
    run("uniform rw=randread bs=4KiB qd=8", "1000 io", State::Full).unwrap();
    // Without the resets the second pass finds full zones.
    let failed = run("zones noreset bs=1MiB span=128MiB", "100 io", State::Fresh).unwrap_err();
    assert!(failed.contains("zone 0: it is full: reset it first"), "{failed}");
}

#[test]
fn a_device_keeps_its_zones_through_a_power_cycle() {
    let sets: Vec<String> = SMALL.iter().map(|set| set.to_string()).collect();
    let design = Design::load("zns-ssd", &sets).unwrap();
    let mut device = device::any(&design, 1, Some(InMemory { filled: false })).unwrap();
    let data: Vec<u8> = (0..8 * 4096u32).map(|byte| (byte / 7) as u8).collect();
    let mut now = Time::ZERO;
    for zone in 0..3u64 {
        now = device.write(now, zone << 26, data.len() as u32, &data).unwrap().end;
    }
    let (mut device, report) = device.power_cycle(now).unwrap();
    now += report.time;
    for zone in 0..3u64 {
        let mut found = vec![0; data.len()];
        device.read(now, zone << 26, data.len() as u32, &mut found).unwrap();
        assert!(found == data, "zone {zone}");
        // It goes on at the write pointer.
        now = device.write(now, (zone << 26) + data.len() as u64, 4096, &data[..4096]).unwrap().end;
    }
}
