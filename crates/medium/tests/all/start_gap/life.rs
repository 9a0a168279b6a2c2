//! How long a memory lives behind Start-Gap, against closed forms: one hot line over the size of a region and the
//! interval, and an attack on one region with and without randomisation.

use crate::start_gap::{LINE, config, pcm, writes_until_worn};
use nvlab_medium::pcm::LineWear;
use nvlab_medium::{InPlace, StartGap};

fn levelled(
    lines: u64,
    endurance: u32,
    (regions, interval, seed): (u32, u32, Option<u64>),
) -> StartGap<nvlab_medium::pcm::Pcm<()>> {
    let wear = LineWear { line_bytes: LINE as u32, endurance, refuse: true };
    StartGap::new(config(regions, interval, seed), pcm(lines, 1, Some(wear), ())).unwrap()
}

/// Writes to one line until a cell is worn out, as a share of what all slots of its region bear.
///
/// The gap passes a line once in a pass of N + 1 moves, and at the end of the region once more: a line has been in all
/// N + 1 slots after N passes. In such a turn every slot receives N moved lines, and the hot line stays in it for a visit of
/// N x interval writes on average. After the last whole turn the slot visited first bears what is left.
fn share_of_ideal(slots: u64, interval: u64, endurance: u64) -> f64 {
    let visit = (slots - 1) * interval;
    let turn = visit + slots - 1;
    let (turns, rest) = (endurance / turn, endurance % turn);
    (turns * slots * visit + rest.min(visit)) as f64 / (slots * endurance) as f64
}

#[test]
fn a_hot_line_over_region_size_and_interval() {
    for memory in [12, 24, 48, 96] {
        for interval in [2, 8, 32, 100] {
            let endurance = 20_000;
            let mut memory = levelled(memory, endurance, (1, interval, None));
            let slots = memory.capacity() / LINE + 1;
            let writes = writes_until_worn(&mut memory, |_| 1);
            let measured = writes as f64 / (slots * endurance as u64) as f64;
            let expected = share_of_ideal(slots, interval as u64, endurance as u64);
            assert!(
                (measured - expected).abs() < 0.015,
                "{slots} slots, interval {interval}: {measured:.3} of the ideal, expected {expected:.3}"
            );
        }
    }
}

/// With visits short against the endurance all that is lost is the moves: 1 of interval + 1 writes.
#[test]
fn proper_regions_reach_95_percent_of_the_ideal() {
    let (interval, endurance) = (50, 60_000);
    let mut memory = levelled(36, endurance, (1, interval, Some(3)));
    let slots = memory.capacity() / LINE + 1;
    assert!(slots * interval as u64 * 30 < endurance as u64, "{slots} slots are no proper region");
    let share = writes_until_worn(&mut memory, |_| 5) as f64 / (slots * endurance as u64) as f64;
    assert!((0.95..=0.99).contains(&share), "{share}");
}

/// An attacker writes to neighbouring lines, as many as a region has. Without randomisation they are one region, and only
/// that wears. With it they are in all regions, and the one that has most of them wears out first.
#[test]
fn an_attack_on_one_region_with_and_without_randomisation() {
    let (regions, interval, endurance) = (8, 4, 10_000u64);
    let shares = [None, Some(11)].map(|seed| {
        let mut memory = levelled(8 * 80, endurance as u32, (regions, interval, seed));
        let lines = memory.capacity() / LINE / regions as u64;
        let slots = lines + 1;
        let region_bytes = 80 * LINE;
        let mut attacked = vec![0u64; regions as usize];
        (0..lines).for_each(|line| attacked[(memory.locate(line * LINE) / region_bytes) as usize] += 1);
        let most = *attacked.iter().max().unwrap();
        assert_eq!(most == lines, seed.is_none(), "{attacked:?}");
        let writes = writes_until_worn(&mut memory, |done| done % lines);
        let measured = writes as f64 / (regions as u64 * slots * endurance) as f64;
        // The region takes `most` of `lines` writes, and one move for `interval` of them.
        let moves = interval as f64 / (interval + 1) as f64;
        let expected = lines as f64 / most as f64 / regions as f64 * moves;
        assert!(
            (measured / expected - 1.0).abs() < 0.06,
            "{measured:.4}, expected {expected:.4}: {attacked:?}"
        );
        measured
    });
    assert!(shares[1] > 4.0 * shares[0], "{shares:?}");
}
