//! SNIA's performance test on small devices: its figures agree with runs of the same requests, its rule decides.

use nvlab_design::Design;
use nvlab_lab::pts::{PtsPlan, PtsResult, Test, page, run};
use nvlab_units::Span;

fn small(sets: &[&str]) -> Design {
    let all = ["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"];
    let sets: Vec<String> = all.iter().chain(sets).map(|set| set.to_string()).collect();
    Design::load("ssd-tlc", &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Bytes a second that four dies program: 192 KiB in 1.013 ms each, after two thirds of the 123 us in which they arrive, and
/// one 384th of an erasure of 5 ms.
const DIES: f64 = 4.0 * 196_608.0 / (1.013e-3 + 82e-6 + 5e-3 / 384.0);

const PLAN: PtsPlan = PtsPlan { cell: Span::from_ms(100), capacities: 3.0, seed: 1 };

#[test]
fn latency_at_one_request_is_the_sum_of_its_steps() {
    let found = run(&small(&[]), &PLAN, Test::Latency, &mut |_, _| true).unwrap();
    let [rounds] = found.rounds.as_slice() else { panic!("one set of rounds") };
    assert_eq!(rounds.cells.len(), 9);
    assert!((5..=25).contains(&rounds.tracked_by_round.len()));
    let of = |block, reads| {
        *rounds.cells.iter().find(|cell| (cell.block_bytes, cell.read_percent) == (block, reads)).unwrap()
    };
    // Host 4 us, link 1 us, controller 2 us, cells 45 to 75 us, transfers of 2.6 us and 1.2 us; after a queued program or
    // relocation a read waits 25 us for its suspension.
    let read = of(4096, 100);
    assert!((60.0..110.0).contains(&read.latency_mean_us), "{read:?}");
    // One in flight: rate times latency is one.
    let in_flight = read.iops * read.latency_mean_us / 1e6;
    assert!((in_flight - 1.0).abs() < 0.02, "{in_flight}");
    assert!((read.bytes_per_s / read.iops - 4096.0).abs() < 1.0);
    assert!(of(4096, 0).latency_mean_us < read.latency_mean_us, "writes end in the buffer");
}

#[test]
fn throughput_is_bounded_by_dies_and_link() {
    let design = small(&[]);
    let plan = PtsPlan { cell: Span::from_ms(1000), ..PLAN };
    let found = run(&design, &plan, Test::Throughput, &mut |_, _| true).unwrap();
    assert_eq!(found.rounds.len(), 2);
    for rounds in &found.rounds {
        let [read, write] = rounds.cells.as_slice() else { panic!("reads and writes") };
        // The map, wear levelling and gaps between dies take up to a tenth of the time. The buffer, empty after the reads, takes
        // another 16 MiB in a cell of a second. The link carries 3.5 GB/s.
        let most = DIES + (16 << 20) as f64;
        assert!(write.bytes_per_s < most && write.bytes_per_s > 0.9 * DIES, "{write:?}");
        assert!(read.bytes_per_s < 3.5e9 && read.bytes_per_s > write.bytes_per_s, "{read:?}");
        assert!(rounds.window.unwrap().is_steady);
    }
    assert!(found.is_steady());
}

#[test]
fn write_saturation_of_pts_reaches_three_capacities() {
    let design = small(&[]);
    let found = run(&design, &PLAN, Test::WriteSaturation, &mut |_, _| true).unwrap();
    let points = &found.saturation;
    let (first, last) = (points[1], points[points.len() - 1]);
    assert!((last.written_bytes as f64 / design.capacity_bytes() as f64 - 3.0).abs() < 0.01);
    // A new device programs what it is sent, and in one point of 152 MB one checkpoint of its map, 1.3 M entries of 4 B: 3.4 %.
    // Later the cleaner takes its share of the dies.
    assert!((1.0..1.04).contains(&first.write_amplification), "{first:?}");
    assert!(last.write_amplification > 1.5 && last.iops < 0.8 * first.iops, "{last:?}");
    for point in [first, last] {
        assert!(point.iops * point.write_amplification < 1.05 * DIES / 4096.0, "{point:?}");
    }
}

#[test]
fn a_test_is_repeatable_and_its_page_says_if_it_is_not_steady() {
    let design = small(&[]);
    let one = || run(&design, &PLAN, Test::Latency, &mut |_, _| true).unwrap();
    let first = one();
    assert_eq!(first, one());
    let result = PtsResult {
        schema: "nvlab.pts/1",
        design: "small".into(),
        capacity_bytes: design.capacity_bytes(),
        cell_s: 0.1,
        seed: 1,
        tests: vec![first],
    };
    let page = page::page(&result);
    assert!(page.contains("<svg") && page.contains("4 KiB") && !page.contains("NOT STEADY"), "{page}");
    let mut unsteady = result.clone();
    unsteady.tests[0].rounds[0].window.as_mut().unwrap().is_steady = false;
    assert!(page::page(&unsteady).contains("NOT STEADY"));
}

#[test]
fn a_test_can_be_stopped() {
    let error = run(&small(&[]), &PLAN, Test::Iops, &mut |_, _| false).unwrap_err();
    assert!(error.is_stopped(), "{error}");
}
