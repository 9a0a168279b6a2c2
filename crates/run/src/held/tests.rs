//! A held device is the device of a run: one batch is that run, several go on where the last ended, and a power cut leaves what was
//! flushed.

use super::*;
use crate::plan::{self, Named, Settings, Source, Task};
use crate::preparation::{Preparation, State};
use nvlab_workload::replay::{Replay, ReplaySpec};

const SMALL: [&str; 3] = ["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"];
const ALL: Limit = Limit::NONE;

fn named() -> Named {
    Named::load("ssd-mlc-2010", &SMALL.map(String::from)).unwrap()
}

fn open(named: &Named, state: &str, keeps: bool) -> HeldDevice {
    let preparation: Preparation = state.parse().unwrap();
    let opening = Opening { preparation, seed: 3, keeps, shelf: None };
    HeldDevice::open(named, opening, &mut |_, _| true).unwrap()
}

fn serve(held: &mut HeldDevice, workload: &str, until: &str) -> Columns {
    let source = Source::read(workload, None).unwrap();
    let (mut requests, limit) = plan::batch(held.design(), &source, Some(until.parse().unwrap()), 3).unwrap();
    held.serve(&mut *requests, &limit, true, &mut |_| true).unwrap()
}

fn list(depth: Option<u32>, at_ps: Option<&[u64]>, requests: &[(Op, u64, u32)]) -> Replay {
    let op: Vec<Op> = requests.iter().map(|request| request.0).collect();
    let offset: Vec<u64> = requests.iter().map(|request| request.1).collect();
    let bytes: Vec<u32> = requests.iter().map(|request| request.2).collect();
    let columns = Columns::of_lists(at_ps, &op, &offset, &bytes, Origin::default()).unwrap();
    let spec = ReplaySpec { depth, ..ReplaySpec::new("requests") };
    Replay::new(columns, &spec, 1 << 30, 1).unwrap()
}

#[test]
fn one_batch_is_the_run() {
    for (workload, until, state) in [
        ("zipf qd=8 read=30%", "20000 io", "fresh"),
        ("uniform rate=900/s", "3000 io", "full"),
        ("zipf rate=2k/s", "2 s", "scattered"),
    ] {
        let named = named();
        let source = Source::read(workload, None).unwrap();
        let (until_read, state_read) = (Some(until.parse().unwrap()), state.parse().unwrap());
        let settings = Settings { seed: 3, until: until_read, state: state_read };
        let plain = Task::new(named.design.clone(), named.name.clone(), &source, settings).unwrap();
        let plain = plain.run(&mut |_, _| true).unwrap();
        let mut held = open(&named, state, false);
        let answers = serve(&mut held, workload, until);
        let found = held.result().unwrap();
        assert_eq!(answers.len() as u64, plain.requests_served, "{workload}");
        assert_ne!(found.key, plain.key);
        let same = RunResult {
            key: plain.key.clone(),
            workload: plain.workload.clone(),
            workload_about: plain.workload_about.clone(),
            until: plain.until.clone(),
            requests_asked: plain.requests_asked,
            wall_s: plain.wall_s,
            series: plain.series.clone(),
            ..found
        };
        assert_eq!(same, plain, "{workload}");
        let mean = answers.response_ps().unwrap().iter().sum::<u64>() as f64 / answers.len() as f64 / 1e3;
        let [read, write] = [&plain.read, &plain.write].map(|op| op.latency.mean_ns * op.count as f64);
        let expected = (read + write) / plain.requests_served as f64;
        // The mean of a kind is cut to whole picoseconds.
        assert!((mean - expected).abs() < 2e-3, "{workload}: {mean} {expected}");
    }
}

#[test]
fn batches_go_on_where_the_last_ended() {
    let named = named();
    let mut held = open(&named, "full", false);
    let first = serve(&mut held, "uniform qd=4", "500 io");
    let before = held.standing().unwrap();
    held.idle(Span::from_us(250_000)).unwrap();
    let second = serve(&mut held, "uniform qd=4", "500 io");
    let after = held.standing().unwrap();
    let last = first.at_ps().last().unwrap();
    assert!(second.at_ps()[0] as f64 / 1e12 >= before.now_s + 0.25 && *last as f64 / 1e12 <= before.now_s);
    assert_eq!((before.requests, after.requests), (500, 1000));
    assert!(after.programmed_bytes > before.programmed_bytes && after.now_s > before.now_s);
    // Asking for it changes nothing; a result waits for what is queued, and then it is the same again.
    assert_eq!(held.standing().unwrap(), after);
    let result = held.result().unwrap();
    assert_eq!(held.result().unwrap().key, result.key);
    assert_eq!((result.requests_served, result.write.count), (1000, 1000));
    let blocks = held.blocks().unwrap().unwrap();
    let live = blocks.live.unwrap();
    assert_eq!(live.len(), blocks.erases.len());
    assert_eq!(blocks.erases.iter().map(|&n| n as u64).sum::<u64>(), {
        let flash = result.flash.unwrap();
        (flash.cycles_mean * blocks.erases.len() as f64).round() as u64
    });
    // Other requests, another key; no requests, no result.
    let mut other = open(&named, "full", false);
    assert!(matches!(other.result(), Err(RunError::Nothing { .. })));
    serve(&mut other, "uniform qd=4", "1000 io");
    assert_ne!(other.result().unwrap().key, result.key);
}

#[test]
fn lists_of_requests_in_a_closed_and_an_open_loop() {
    let mut held = open(&named(), "fresh", false);
    let writes: Vec<(Op, u64, u32)> = (0..64).map(|at| (Op::Write, at * 4096, 4096)).collect();
    held.serve(&mut list(Some(1), None, &writes), &ALL, false, &mut |_| true).unwrap();
    let reads: Vec<(Op, u64, u32)> = (0..8).map(|at| (Op::Read, at * 4096, 4096)).collect();
    let closed = held.serve(&mut list(Some(1), None, &reads), &ALL, true, &mut |_| true).unwrap();
    let (at, response) = (closed.at_ps(), closed.response_ps().unwrap());
    assert!((1..8).all(|row| at[row] == at[row - 1] + response[row - 1]), "one after the other");
    let times: Vec<u64> = (0..8).map(|row| row * 50_000_000_000).collect();
    let open = held.serve(&mut list(None, Some(&times), &reads), &ALL, true, &mut |_| true).unwrap();
    assert!((1..8).all(|row| open.at_ps()[row] - open.at_ps()[0] == times[row]), "each at its time");
    // Stopped between requests; what was served remains.
    let many: Vec<(Op, u64, u32)> = (0..20_000).map(|_| (Op::Read, 0, 4096)).collect();
    let stopped = held.serve(&mut list(Some(1), None, &many), &ALL, true, &mut |_| false).unwrap_err();
    assert!(stopped.is_stopped(), "{stopped}");
    let served = held.standing().unwrap().requests;
    assert!((64 + 16..64 + 16 + 20_000).contains(&served), "{served}");
}

#[test]
fn what_was_flushed_survives_a_cut() {
    for state in ["fresh", "full"] {
        let mut held = open(&named(), state, true);
        let one = |op, offset, bytes| Request { op, offset, bytes, ..Request::default() };
        let mut read = vec![1; 4096];
        held.one(one(Op::Read, 1 << 20, 4096), &[], &mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == 0), "{state}: nothing was written there");
        held.one(one(Op::Write, 4096, 8192), &[7; 8192], &mut []).unwrap();
        held.one(one(Op::Flush, 0, 0), &[], &mut []).unwrap();
        let report = held.cut().unwrap();
        assert!(report.time > Span::ZERO && report.nand_reads > 0, "{report:?}");
        assert_eq!(held.standing().unwrap().requests, 0);
        held.one(one(Op::Read, 8192, 4096), &[], &mut read).unwrap();
        assert!(read.iter().all(|byte| *byte == 7), "{state}");
        let beyond = held.one(one(Op::Read, u64::MAX, 4096), &[], &mut read).unwrap_err();
        assert!(beyond.to_string().contains("beyond the"), "{beyond}");
    }
    let mut held = open(&named(), "fresh", false);
    assert!(matches!(held.cut(), Err(RunError::NoBytes { .. })));
    let write = Request { op: Op::Write, bytes: 4096, ..Request::default() };
    assert!(matches!(held.one(write, &[1; 4096], &mut []), Err(RunError::NoBytes { .. })));
}

#[test]
fn every_kind_of_device_can_be_held() {
    for (name, sets) in [
        (
            "envy",
            &[
                "media.flash.blocks=16",
                "media.flash.block=256 KiB",
                "media.flash.erase=781.25 us",
                "ftl.buffer.size=256 KiB",
            ][..],
        ),
        ("hftl", &["media.nand.blocks=64", "ftl.capacity=4 MiB"]),
        ("mlc-fast", &["media.mlc.blocks=64"]),
        ("hybrid-slc-mlc", &["media.mlc.blocks=64"]),
        ("optane-like", &["media.xpoint.size=12 MiB"]),
    ] {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let named = match Named::load(name, &sets) {
            Ok(named) => named,
            Err(errors) => panic!("{name}: {errors}"),
        };
        for state in [State::Fresh, State::Full] {
            let mut held = open(&named, state.name(), true);
            let write = Request { op: Op::Write, bytes: 4096, fua: true, ..Request::default() };
            held.one(write, &[9; 4096], &mut []).unwrap();
            held.cut().unwrap_or_else(|why| panic!("{name}: {why}"));
            let mut read = [0; 4096];
            let back = Request { op: Op::Read, bytes: 4096, ..Request::default() };
            held.one(back, &[], &mut read).unwrap();
            assert!(read == [9; 4096], "{name}, {state:?}");
            held.result().unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
    let staged = Named::load("ssd-tlc", &["path.stages=io-uring".to_string()]).unwrap();
    let opening = Opening { preparation: State::Fresh.into(), seed: 1, keeps: false, shelf: None };
    let refused = HeldDevice::open(&staged, opening, &mut |_, _| true).err().unwrap();
    assert!(matches!(refused, RunError::Unstaged { .. }), "{refused}");
    let mut held = open(&self::named(), "fresh", false);
    let source = Source::read("uniform + zipf", None).unwrap();
    let (mut both, limit) = plan::batch(held.design(), &source, None, 1).unwrap();
    assert!(matches!(held.serve(&mut *both, &limit, true, &mut |_| true), Err(RunError::Unheld { .. })));
}
