//! The steady state by way of a coarse twin against the one written to at full size.

use super::*;
use nvlab_workload::block::together::Tenant;
use nvlab_workload::{Batch, Serves, Workload};
use std::ops::Range;

/// A workload that does not say how it draws its addresses.
struct Undrawn<W>(W);

impl<W: std::ops::DerefMut<Target = dyn BlockWorkload>> Workload for Undrawn<W> {
    fn pacing(&self) -> Pacing {
        self.0.pacing()
    }
    fn footprint(&self) -> Range<u64> {
        self.0.footprint()
    }
}

impl<W: std::ops::DerefMut<Target = dyn BlockWorkload>> BlockWorkload for Undrawn<W> {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        self.0.fill(batch)
    }
    fn tenants(&mut self) -> Option<&mut [Tenant]> {
        self.0.tenants()
    }
}

/// TLC with blocks of 9 MiB, 4.6 GiB of them for the host: 1.2 M units.
fn design(base: &str, more: &[&str]) -> Design {
    let small =
        ["media.tlc.blocks=145", "media.tlc.pages=144", "ftl.map.checkpoint=1 GiB", "ftl.buffer.size=2 MiB"];
    let sets: Vec<String> = small.iter().chain(more).map(|set| set.to_string()).collect();
    Design::load(base, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The steady state of a design under a workload: how it was reached, and the write amplification of half a capacity more.
fn steady(design: &Design, workload: &str, seed: u64, by_twin: bool) -> (Precondition, f64) {
    let mut device = device::any(design, seed, None).unwrap();
    let source = Source::read(workload, None).unwrap();
    let open = |seed| {
        let opened = source.open(design.capacity_bytes(), Serves::Blocks, seed).unwrap();
        opened.work.requests().unwrap()
    };
    let mut own = open(seed + 1);
    let mut undrawn = Undrawn(open(seed + 1));
    let own: &mut dyn BlockWorkload = if by_twin { &mut *own } else { &mut undrawn };
    let prepared =
        precondition::precondition(&mut *device, &State::Steady.into(), Some(own), &mut |_, _| true);
    let (report, origin) = prepared.unwrap();
    device.reset_stats();
    let limit = Limit { written_bytes: design.capacity_bytes() / 2, ..Limit::NONE };
    crate::settle::unmeasured(&mut *device, &mut *open(seed + 2), origin, &limit, &mut |_| true).unwrap();
    let counters = device.counters();
    (report, counters.programmed_units() as f64 / counters.host_units as f64)
}

#[test]
fn the_twin_leads_to_the_state_that_writing_leads_to() {
    let cases: [Case<'_>; 6] = [
        (1, "ssd-tlc", &[], "uniform rw=randwrite bs=4KiB"),
        // Writes of several sizes; of the units of one, the twin writes one at a time.
        (1, "ssd-tlc", &[], "jesd219"),
        (1, "tlc-pslc", &["media.slc.blocks=145", "media.slc.pages=48"], "zipf rw=randwrite bs=4KiB"),
        // Most of the device is never written again: nothing may be dead in it, and the units of the twin do not divide 1 MiB.
        // About half a block of a die is lost where what is written meets what is not, so the dies have many blocks.
        (1, "ssd-tlc", &["media.tlc.blocks=435"], "uniform rw=randwrite bs=8KiB span=30%"),
        // Devices that were written at full size are up to 1.6 % apart themselves, from one seed to the other.
        (4, "ssd-tlc", &["ftl.clean.kind=cost-benefit"], "zipf rw=randrw read=50% bs=8KiB"),
        (
            4,
            "ssd-tlc",
            &["ftl.streams=one", "ftl.wear.kind=none"],
            "hotcold hot=20/80 rw=randwrite bs=4KiB offset=64MiB span=3GiB",
        ),
    ];
    agree(&cases);
}

#[test]
fn several_streams_have_a_twin_together() {
    agree(&[
        // One over the other, with flushes, which a protected buffer has no use for.
        (1, "ssd-tlc", &[], "zipf rate=20k/s bs=4KiB flush=64 + uniform rate=10k/s bs=4KiB"),
        // Side by side, from where no unit of the twin begins; a stream that only reads changes nothing.
        (
            1,
            "ssd-tlc",
            &[],
            "hotcold hot=20/80 qd=12 bs=4KiB span=2GiB + uniform qd=4 bs=4KiB offset=2109444KiB + uniform rw=randread bs=4KiB",
        ),
    ]);
}

type Case<'a> = (u64, &'a str, &'a [&'a str], &'a str);

/// Checks that a twin and writing lead to the same state: the same write amplification, in the mean of so many seeds.
fn agree(cases: &[Case<'_>]) {
    for &(seeds, base, sets, workload) in cases {
        let design = design(base, sets);
        let (mut short, mut long) = (0.0, 0.0);
        for seed in (0..seeds).map(|nth| 10 * nth + 1) {
            let (by_twin, found) = steady(&design, workload, seed, true);
            let (written, wanted) = steady(&design, workload, seed, false);
            let converged = (by_twin.converged, written.converged, written.twin_units);
            assert_eq!(converged, (true, true, 1), "{workload}");
            assert!(by_twin.twin_units >= 4, "{workload}: {by_twin:?}");
            (short, long) = (short + found / seeds as f64, long + wanted / seeds as f64);
        }
        assert!((short / long - 1.0).abs() < 0.01, "{workload}: {short} by way of a twin, {long} written");
    }
}
