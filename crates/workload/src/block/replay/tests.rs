//! Tests of replays: every modifier, and their order.

use super::*;
use nvlab_trace::columns::Origin;
use nvlab_trace::{Format, ReadOptions};

/// `(microseconds, offset, bytes, op, volume)`.
fn trace(rows: &[(u64, u64, u32, Op, u16)]) -> Columns {
    let mut columns = Columns::new(Origin::default());
    while columns.volumes().len() <= rows.iter().map(|row| row.4 as usize).max().unwrap_or(0) {
        let name = columns.volumes().len().to_string();
        columns.add_volume(name);
    }
    for &(us, offset, bytes, op, volume) in rows {
        columns.push(Request {
            at: Time::from_ps(us * 1_000_000),
            offset,
            bytes,
            op,
            volume,
            ..Request::default()
        });
    }
    columns
}

fn spec(text: &str) -> ReplaySpec {
    ReplaySpec::parse(&format!("t.nvt {text}")).unwrap()
}

fn all(replay: &mut Replay) -> Vec<Request> {
    let (mut batch, mut requests) = (Batch::new(), Vec::new());
    let foreseen = replay.len_hint();
    while replay.fill(&mut batch) > 0 {
        requests.extend_from_slice(batch.requests());
        batch.clear();
    }
    assert_eq!(foreseen, Some(requests.len() as u64));
    assert_eq!(replay.len_hint(), Some(0));
    requests
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn small() -> Columns {
    trace(&[
        (0, 4096, 4096, Op::Write, 0),
        (10, 512, 1024, Op::Read, 0),
        (20, 0, 0, Op::Flush, 0),
        (40, 100 * MIB + 100, 8192, Op::Trim, 0),
    ])
}

#[test]
fn requests_are_replayed_as_recorded() {
    let mut replay = Replay::new(small(), &spec(""), GIB, 1).unwrap();
    assert_eq!((replay.pacing(), replay.footprint()), (Pacing::Open, 0..100 * MIB + 100 + 8192));
    let expected: Vec<Request> = small().iter().collect();
    assert_eq!(all(&mut replay), expected);
}

#[test]
fn times_are_cut_scaled_and_repeated() {
    let mut replay = Replay::new(small(), &spec("first=20us scale-time=0.5 loop=2"), GIB, 1).unwrap();
    let times: Vec<u64> = all(&mut replay).iter().map(|r| r.at.ns()).collect();
    // A period is the 5 us that are left and one mean gap of 5 us.
    assert_eq!(times, [0, 5000, 10_000, 15_000]);
    assert_eq!(replay.report().too_late, 2);
    let mut closed = Replay::new(small(), &spec("qd=4"), GIB, 1).unwrap();
    assert_eq!(closed.pacing(), Pacing::Closed { depth: 4 });
    assert!(all(&mut closed).iter().all(|r| r.at == Time::ZERO));
}

#[test]
fn alignment_widens_data_and_narrows_trims() {
    let mut replay = Replay::new(small(), &spec("align=4KiB"), GIB, 1).unwrap();
    let ranges: Vec<_> = all(&mut replay).iter().map(|r| (r.offset, r.bytes)).collect();
    assert_eq!(ranges, [(4096, 4096), (0, 4096), (0, 0), (100 * MIB + 4096, 4096)]);
    let report = replay.report();
    assert_eq!((report.widened, report.widened_bytes, report.narrowed_trims), (1, 3072, 1));
    let replay = Replay::new(small(), &spec("align=64KiB"), GIB, 1).unwrap();
    assert_eq!((replay.report().dropped_trims, replay.report().requests), (1, 3));
}

#[test]
fn compaction_keeps_order_and_contents_of_extents() {
    let columns = trace(&[
        (0, 900 * MIB + 7, 10, Op::Write, 0),
        (1, 5 * MIB - 4096, 8192, Op::Write, 0),
        (2, 900 * MIB, 4096, Op::Read, 0),
        (3, 300 * MIB, 1, Op::Write, 0),
    ]);
    let mut replay = Replay::new(columns, &spec("compact"), 4 * MIB, 1).unwrap();
    let offsets: Vec<u64> = all(&mut replay).iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [3 * MIB + 7, MIB - 4096, 3 * MIB, 2 * MIB]);
    assert_eq!(replay.report().footprint_bytes, 3 * MIB + 4096);
}

#[test]
fn volumes_lie_one_after_another() {
    let columns =
        trace(&[(0, 0, 512, Op::Write, 1), (1, MIB, 512, Op::Write, 0), (2, 512, 512, Op::Read, 1)]);
    let mut replay = Replay::new(columns, &spec(""), GIB, 1).unwrap();
    let places: Vec<_> = all(&mut replay).iter().map(|r| (r.offset, r.volume)).collect();
    assert_eq!(places, [(2 * MIB, 1), (MIB, 0), (2 * MIB + 512, 1)]);
}

#[test]
fn tenants_have_their_parts_and_their_phases() {
    let rows: Vec<_> = (0..100).map(|i| (i * 10, i * 4096, 4096, Op::Write, 0)).collect();
    let mut replay = Replay::new(trace(&rows), &spec("copies=4 loop=2"), 4 * MIB, 1).unwrap();
    assert_eq!(replay.footprint(), 0..3 * MIB + 100 * 4096);
    let requests = all(&mut replay);
    assert_eq!(requests.len(), 800);
    assert!(requests.is_sorted_by_key(|r| r.at));
    for tenant in 0..4u64 {
        let own: Vec<u64> = (requests.iter().filter(|r| r.volume == tenant as u16))
            .map(|r| (r.offset - tenant * MIB) / 4096)
            .collect();
        assert_eq!(own.len(), 200);
        assert!(own.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 100), "tenant {tenant} goes round");
        assert_eq!(own[0] == 0, tenant == 0, "tenant {tenant} begins at {}", own[0]);
    }
    let twin = Replay::new(trace(&rows), &spec("copies=4 loop=2"), 4 * MIB, 1);
    assert_eq!(all(&mut twin.unwrap()), requests);
}

#[test]
fn a_trace_too_large_says_what_to_add() {
    let reason =
        |text: &str, capacity: u64| Replay::new(small(), &spec(text), capacity, 1).unwrap_err().to_string();
    assert_eq!(
        reason("", 4 * MIB),
        "t.nvt: its requests extend to 100 MiB, but the device has 4 MiB; add compact (only 2 MiB of it is touched) \
         or wrap (addresses modulo the capacity)"
    );
    assert_eq!(
        reason("", MIB),
        "t.nvt: its requests extend to 100 MiB, but the device has 1 MiB; add wrap (addresses modulo the capacity); \
         compact would still need 2 MiB"
    );
    assert_eq!(
        reason("compact", MIB),
        "t.nvt: its requests extend to 1.01 MiB, but the device has 1 MiB, even compacted; add wrap \
         (addresses modulo the capacity) or first=TIME"
    );
    assert!(reason("copies=2", 64 * MIB).contains("each of 2 copies has 32 MiB"));
    assert_eq!(reason("wrap", 4096), "t.nvt: request 3 of 8 KiB is larger than the room of 4 KiB");
    assert_eq!(reason("first=0ns", GIB), "t.nvt: nothing is left to replay");
}

#[test]
fn wrapping_keeps_everything_inside() {
    let mut replay = Replay::new(small(), &spec("wrap"), 3 * MIB, 1).unwrap();
    assert_eq!(all(&mut replay)[3].offset, MIB + 100);
    assert_eq!(replay.report().wrapped, 1);
    let columns = trace(&[(0, 3 * MIB - 512, 4096, Op::Write, 0)]);
    let mut replay = Replay::new(columns, &spec("wrap"), 3 * MIB, 1).unwrap();
    assert_eq!(all(&mut replay)[0].end(), 3 * MIB);
}

#[test]
fn what_is_only_trimmed_can_be_squeezed_out() {
    let rows = [
        (0, 0, 100 * MIB as u32, Op::Trim, 0),
        (1, 10 * MIB, 4096, Op::Write, 0),
        (2, 11 * MIB, 4096, Op::Write, 0),
        (3, 50 * MIB + 8192, 4096, Op::Read, 0),
        (4, 20 * MIB, 4096, Op::Trim, 0),
        (5, 11 * MIB + 4096, 4096, Op::Trim, 0),
    ];
    let mut replay = Replay::new(trace(&rows), &spec("compact clip-trims"), 3 * MIB, 1).unwrap();
    let found: Vec<_> =
        all(&mut replay).iter().map(|r| (r.at.ns() / 1000, r.offset, r.bytes, r.op)).collect();
    let expected = [
        (0, 0, 2 * MIB as u32, Op::Trim),
        (0, 2 * MIB, MIB as u32, Op::Trim),
        (1, 0, 4096, Op::Write),
        (2, MIB, 4096, Op::Write),
        (3, 2 * MIB + 8192, 4096, Op::Read),
        (5, MIB + 4096, 4096, Op::Trim),
    ];
    assert_eq!(found, expected);
    assert_eq!((replay.report().narrowed_trims, replay.report().dropped_trims), (1, 1));
    assert!(
        ReplaySpec::parse("a.nvt clip-trims").unwrap_err().to_string().contains("clip-trims needs compact")
    );
}

#[test]
fn a_program_needs_response_times() {
    let refused = Replay::new(small(), &spec("think=keep"), 1 << 30, 1).unwrap_err().to_string();
    assert!(refused.contains("it has no response times"), "{refused}");
    let mut columns = Columns::new(Origin::default());
    for request in small().iter() {
        columns.push_answered(Request { volume: 0, ..request }, crate::Span::from_us(70));
    }
    let replay = Replay::new(columns.clone(), &spec("think=keep align=4KiB"), 1 << 30, 1).unwrap();
    assert_eq!(replay.pacing(), Pacing::Program);
    // What is left out takes its response time with it.
    let program = replay.program().unwrap();
    assert_eq!(program.recorded.ps(), replay.columns().at_ps().last().unwrap() + 70_000_000);
    assert_eq!(replay.columns().response_ps().unwrap().len() as u64, replay.report().requests);
}

#[test]
fn texts_are_read_and_slips_explained() {
    let spec =
        ReplaySpec::parse("\"my trace.csv.gz\":msr first=1 h scale-time=0.5 compact=2MiB wrap volume=a,b")
            .unwrap();
    let expected = ReplaySpec {
        reading: ReadOptions {
            format: Some(Format::Msr),
            volumes: vec!["a".to_owned(), "b".to_owned()],
            ..ReadOptions::default()
        },
        first: Some(crate::Span::from_ms(3_600_000)),
        scale_time: 0.5,
        compact: Some(2 * MIB),
        wrap: true,
        ..ReplaySpec::new("my trace.csv.gz")
    };
    assert_eq!(spec, expected);
    assert_eq!(ReplaySpec::parse("a.csv compact").unwrap().compact, Some(MIB));
    for (text, expected) in [
        (
            "a.csv:mrs",
            "workload 'a.csv:mrs': unknown trace format 'mrs'; did you mean 'msr'? (known: msr, spc, blkparse, \
             iolog, mqsim, alibaba, tencent, systor, fiu, vscsi, cachelib, baleen, table, nvt, parquet)",
        ),
        (
            "a.csv compat",
            "workload 'a.csv compat': unknown key 'compat'; did you mean 'compact'? (known: scale-time, first, \
             loop, copies, compact, align, qd, volume, action, think, skip-bad, columns, separator, header, read, \
             write, trim, flush, clip-trims, wrap)",
        ),
        ("a.csv wrap=yes", "workload 'a.csv wrap=yes': 'wrap' has no value: write wrap alone"),
        (
            "a.csv scale-time=0",
            "workload 'a.csv scale-time=0': scale-time=0 is wrong: a number above 0, at most 1e6",
        ),
        ("a.csv align=0B", "workload 'a.csv align=0B': align=0B is wrong: a unit from 1 B to 1 GiB"),
        ("a.csv think=drop", "workload 'a.csv think=drop': think=drop is wrong: keep"),
        (
            "a.csv think=keep qd=4",
            "workload 'a.csv think=keep qd=4': qd cannot be combined with think=keep: the program runs once, at its own pace",
        ),
        (
            "a.csv compact=6KiB align=4KiB",
            "workload 'a.csv compact=6KiB align=4KiB': the extent of compact must be a multiple of align",
        ),
    ] {
        assert_eq!(ReplaySpec::parse(text).unwrap_err().to_string(), expected);
    }
}
