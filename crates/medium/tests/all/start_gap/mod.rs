//! Start-Gap: every line in a slot of its own, a hot line over all cells, and a power cut at every step.

mod life;
mod store;

use nvlab_medium::banks::Access;
use nvlab_medium::pcm::{LineWear, Pcm, PcmConfig, Selection, Tear};
use nvlab_medium::{InPlace, MediumError, MemStore, PowerCut, StartGap, StartGapConfig, Store};
use nvlab_units::{Rng, Span, Time};

const LINE: u64 = 16;

fn pcm<S: Store>(lines: u64, banks: u32, wear: Option<LineWear>, store: S) -> Pcm<S> {
    let config = PcmConfig {
        capacity_bytes: lines * LINE,
        word_bytes: 2,
        read: Access { first: Span::from_ns(80), next: Span::from_ns(10) },
        program: Span::from_us(10),
        words_per_step: 1,
        selection: Selection::Differing { share: 1.0 },
        wear,
        atomic_bytes: 8,
        tear: Tear::Atomic,
        banks,
        stripe_bytes: LINE,
        seed: 7,
    };
    Pcm::new(config, store)
}

fn config(regions: u32, interval: u32, permutation: Option<u64>) -> StartGapConfig {
    StartGapConfig { line_bytes: LINE as u32, regions, interval, permutation }
}

#[test]
fn lines_and_slots_correspond_one_to_one_after_every_move() {
    for (lines, regions, interval, permutation) in
        [(7, 1, 1, None), (64, 1, 3, Some(1)), (150, 4, 2, Some(2)), (33, 2, 100, Some(3))]
    {
        let medium = pcm(lines, 1, None, ());
        let mut levelled = StartGap::new(config(regions, interval, permutation), medium).unwrap();
        let mut rng = Rng::new(lines);
        let mut now = Time::ZERO;
        let total = levelled.capacity() / LINE;
        for _ in 0..total * 12 {
            let line = rng.below(total);
            now = levelled.write(now, line * LINE, LINE, &[]).unwrap().end;
            let mut slots: Vec<u64> = (0..total).map(|line| levelled.locate(line * LINE)).collect();
            assert!(slots.iter().all(|slot| slot + LINE <= lines * LINE));
            slots.sort_unstable();
            slots.dedup();
            assert_eq!(slots.len() as u64, total, "two lines in one slot");
        }
        let writes = total * 12;
        let most = writes / interval as u64;
        assert!(levelled.moved() <= most && levelled.moved() + regions as u64 > most, "{}", levelled.moved());
    }
}

/// A line that is held keeps the bank of its slot busy, and no other.
#[test]
fn a_line_is_held_where_it_is() {
    let (mut levelled, until) =
        (StartGap::new(config(1, 1, None), pcm(16, 2, None, ())).unwrap(), Time::from_ns(500_000));
    let now = levelled.write(Time::ZERO, 0, LINE, &[]).unwrap().end + Span::from_us(100);
    let (of_line_1, of_line_2) = (levelled.locate(LINE) / LINE % 2, levelled.locate(2 * LINE) / LINE % 2);
    assert_ne!(of_line_1, of_line_2);
    levelled.hold(LINE, LINE, until);
    assert!(levelled.read(now, 2 * LINE, LINE, &mut []).unwrap().end < until);
    assert_eq!(levelled.read(now, LINE, 2, &mut []).unwrap().start, until);
    levelled.hold(LINE, LINE, now);
    assert!(
        levelled.read(until, LINE, 2, &mut []).unwrap().start > until,
        "the read before is not forgotten"
    );
}

/// The rule of the paper, step by step on four lines: PA = (LA + Start) mod N, one more from the gap on.
#[test]
fn the_gap_walks_as_the_paper_says() {
    let mut levelled = StartGap::new(config(1, 1, None), pcm(10, 1, None, ())).unwrap();
    assert_eq!(levelled.capacity(), 4 * LINE);
    let mut slots = Vec::new();
    for _ in 0..7 {
        slots.push([0, 1, 2, 3].map(|line| levelled.locate(line * LINE) / LINE));
        levelled.write(Time::ZERO, 0, LINE, &[]).unwrap();
    }
    let expected =
        [[0, 1, 2, 3], [0, 1, 2, 4], [0, 1, 3, 4], [0, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 0], [1, 2, 4, 0]];
    assert_eq!(slots, expected);
}

/// Writes to the lines that `line` names until a cell is worn out.
fn writes_until_worn<M: InPlace>(medium: &mut M, mut line: impl FnMut(u64) -> u64) -> u64 {
    let mut now = Time::ZERO;
    for done in 0.. {
        match medium.write(now, line(done) * LINE, LINE, &[]) {
            Ok(served) => now = served.end,
            Err(MediumError::WornOut { .. }) => return done,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[test]
fn a_hot_line_lives_nearly_as_long_as_all_cells_together() {
    let (lines, interval, endurance) = (34, 8, 5_000);
    let wear = LineWear { line_bytes: LINE as u32, endurance, refuse: true };
    let mut plain = pcm(lines, 1, Some(wear), ());
    assert_eq!(writes_until_worn(&mut plain, |_| 3), endurance as u64);
    let medium = pcm(lines, 1, Some(wear), ());
    let mut levelled = StartGap::new(config(1, interval, Some(1)), medium).unwrap();
    let n = levelled.capacity() / LINE;
    let share = writes_until_worn(&mut levelled, |_| 3) as f64 / (n as f64 * endurance as f64);
    // A slot bears whole visits of N x interval writes, and one write in `interval` is a move.
    let visit = (n * interval as u64) as f64 / endurance as f64;
    assert!(share > 1.0 - visit - 2.0 / interval as f64 && share <= 1.01, "{share} of the ideal");
}

#[test]
fn regions_must_be_small_against_the_endurance() {
    let wear = LineWear { line_bytes: LINE as u32, endurance: 500, refuse: true };
    let mut levelled = StartGap::new(config(1, 100, None), pcm(64, 1, Some(wear), ())).unwrap();
    // N x interval is above the endurance: the line dies where it lies.
    assert!(writes_until_worn(&mut levelled, |_| 3) < 2 * 500);
}

/// Every cut of every write, in one bank and in several, must leave each line as it was or as it was written.
#[test]
fn no_cut_loses_a_line() {
    for (banks, regions, interval) in [(1, 1, 1), (4, 1, 1), (1, 2, 3), (2, 2, 2)] {
        let lines = 20;
        let medium = pcm(lines, banks, None, MemStore::new(lines * LINE));
        let config = config(regions, interval, Some(5));
        let mut levelled = StartGap::new(config, medium).unwrap();
        let total = levelled.capacity() / LINE;
        let mut model = vec![0u8; total as usize];
        let mut rng = Rng::new(banks as u64);
        let mut now = Time::ZERO;
        for version in 1..120u8 {
            let line = rng.below(total);
            // One unit of 8 bytes, so that old and new are the only possibilities.
            let served = levelled.write(now, line * LINE, 8, &[version; 8]).unwrap();
            let step = Span::from_us(5);
            let mut cut = now;
            while cut < served.end + Span::from_us(400) {
                let mut after = levelled.clone();
                after.cut(cut);
                let (mut again, ready) = StartGap::recover(config, after.into_medium(), cut).unwrap();
                for (l, &expected) in model.iter().enumerate() {
                    let mut bytes = [0; 8];
                    again.read(ready, l as u64 * LINE, 8, &mut bytes).unwrap();
                    let new = l as u64 == line && bytes == [version; 8];
                    let old = bytes == [expected; 8] && (l as u64 != line || cut < served.end);
                    assert!(new || old, "line {l} reads {bytes:?}, cut at {} ps", cut.ps());
                }
                cut += step;
            }
            model[line as usize] = version;
            // Sometimes at once, while the move is under way.
            now = if rng.chance(0.5) { served.end } else { served.end + Span::from_us(500) };
        }
        assert!(levelled.moved() >= 38, "{}", levelled.moved());
    }
}

#[test]
fn impossible_configurations_of_start_gap_are_refused() {
    let refused = |config| StartGap::new(config, pcm(8, 1, None, ())).unwrap_err();
    assert!(refused(config(4, 10, None)).contains("too few"));
    assert!(refused(config(1, 0, None)).contains("interval"));
    let narrow = StartGapConfig { line_bytes: 4, ..config(1, 1, None) };
    assert!(refused(narrow).contains("at least 8 B"));
}
