//! The NOR array against a plain array of bytes with AND semantics: contents, times to the picosecond, and what
//! a power cut at any moment may leave.

mod model;
mod slowing;

use model::{Change, Model, Op, Step, check_ticket, draw, perform};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nor, NorConfig};
use nvlab_medium::{MediumError, MemStore, PowerCut};
use nvlab_units::{BlockId, Die, Geometry, Interruption, Rng, Span, Time};
use std::collections::BTreeSet;

const PS: Span = Span::from_ps(1);
const SUSPEND: Interruption =
    Interruption::Suspend { latency: Span::from_us(2), resume: Span::from_us(5), limit: u32::MAX };

/// Two banks of two blocks, eight pages of four chips each: eNVy made small (erase 50 us, not 50 ms).
fn small(seed: u64) -> NorConfig {
    NorConfig {
        flash: FlashConfig {
            rules: CellRules::Nor,
            geometry: Geometry {
                channels: 1,
                dies_per_channel: 2,
                blocks_per_die: 2,
                pages_per_block: 8,
                units_per_page: 1,
                unit_bytes: 4,
            },
            timing: FlashTiming {
                interruption: SUSPEND,
                ..FlashTiming::plain(Span::from_ns(100), Span::from_us(4), Span::from_us(50))
            },
            endurance: Endurance { cycles: 10_000, spread: 0.0 },
            faults: Faults { seed, ..Faults::NONE },
        },
        slowing: None,
    }
}

const BLOCK: usize = 32;
const BYTES: usize = 4 * BLOCK;

fn new(config: NorConfig) -> Nor<MemStore> {
    let store = MemStore::new(Nor::<MemStore>::store_bytes(&config.flash.geometry));
    Nor::new(config, store)
}

fn contents(nor: &Nor<MemStore>) -> Vec<u8> {
    let mut all = vec![0; nor.capacity() as usize];
    nor.peek(0, &mut all);
    all
}

#[test]
fn random_operations_and_cut_after_cut() {
    for seed in 0..100 {
        let config = small(seed);
        let mut rng = Rng::stream(seed, "nor");
        let mut nor = new(config.clone());
        let mut model = Model::new(&config, vec![0xFF; BYTES], BTreeSet::new());
        let mut now = Time::ZERO;
        for _ in 0..5 {
            let (before, half) = (model.image.clone(), model.half_erased.clone());
            for _ in 0..30 {
                now += Span::from_ns(rng.below(20_000));
                let op = draw(&mut rng, &model.image);
                perform(&mut nor, &mut model, now, &op);
                assert!(contents(&nor) == model.image, "seed {seed}");
                if rng.chance(0.1) {
                    nor.settle(now);
                }
            }
            now += Span::from_ns(rng.below(150_000));
            nor.cut(now);
            let found = contents(&nor);
            let (erasing, _) = model.check_cut(&before, now, &found);
            // Half-erased is what was being erased, and what had been and whose erase had not begun.
            let erased = |block: &usize| {
                let is_it = |step: &Step| matches!(step.change, Change::Erase(it) if it == *block);
                model.steps.iter().any(|step| is_it(step) && step.begin < now)
            };
            let mut half: BTreeSet<usize> = half.into_iter().filter(|block| !erased(block)).collect();
            half.extend(erasing);
            for block in 0..4 {
                assert_eq!(nor.is_half_erased(BlockId(block as u32)), half.contains(&block), "seed {seed}");
            }
            model = Model::new(&config, found, half);
        }
    }
}

#[test]
fn cut_at_every_moment() {
    let (mut bits, mut looks_erased, mut torn_erases) = ([0, 0], 0, 0);
    for seed in 0..6 {
        let config = small(seed);
        let mut rng = Rng::stream(seed, "nor cuts");
        let (mut nor, mut now) = (new(config.clone()), Time::ZERO);
        let mut model = Model::new(&config, vec![0xFF; BYTES], BTreeSet::new());
        let mut ops = Vec::new();
        for _ in 0..14 {
            now += Span::from_ns(rng.below(12_000));
            ops.push((now, draw(&mut rng, &model.image)));
            perform(&mut nor, &mut model, now, &ops[ops.len() - 1].1);
        }
        let mut moments = BTreeSet::new();
        for Step { begin, done, .. } in &model.steps {
            let middle = *begin + (*done - *begin) / 2;
            moments.extend([
                begin.before(PS),
                *begin,
                *begin + PS,
                middle,
                done.before(PS),
                *done,
                *done + PS,
            ]);
        }
        for (i, cut) in moments.into_iter().enumerate() {
            let flash =
                FlashConfig { faults: Faults { seed: i as u64, ..Faults::NONE }, ..config.flash.clone() };
            let mut nor = new(NorConfig { flash, slowing: None });
            let mut replay = Model::new(&config, vec![0xFF; BYTES], BTreeSet::new());
            for (at, op) in ops.iter().filter(|(at, _)| *at <= cut) {
                perform(&mut nor, &mut replay, *at, op);
            }
            nor.cut(cut);
            let found = contents(&nor);
            let (erasing, [cleared, kept]) = replay.check_cut(&[0xFF; BYTES], cut, &found);
            bits = [bits[0] + cleared, bits[1] + kept];
            let torn_here = erasing.len();
            for block in erasing {
                torn_erases += 1;
                let held = &found[block * BLOCK..(block + 1) * BLOCK];
                looks_erased += held.iter().all(|&byte| byte == 0xFF) as u32;
                let refused = nor.program(cut, (block * BLOCK) as u64, 1, &[0]);
                assert_eq!(refused, Err(MediumError::ProgramFailed(BlockId(block as u32))));
                nor.erase(cut, BlockId(block as u32)).unwrap();
                nor.program(cut, (block * BLOCK) as u64, 1, &[0x5A]).unwrap();
            }
            // Erases that had not begun do not wear; those torn were done again above.
            let is_erase = |step: &&Step| matches!(step.change, Change::Erase(_)) && step.begin < cut;
            let erases = replay.steps.iter().filter(is_erase).count() + torn_here;
            let counted = nor.cells().erase_counts().iter().map(|&count| count as usize).sum::<usize>();
            assert_eq!(counted, erases);
        }
    }
    assert!(bits[0] > 100 && bits[1] > 100, "torn programs clear some bits and not others: {bits:?}");
    assert!(looks_erased > 0 && looks_erased < torn_erases / 2, "{looks_erased} of {torn_erases}");
}

#[test]
fn a_suspended_program_ends_later_by_all_it_waited() {
    let mut nor = new(small(0));
    let four = nor.program(Time::ZERO, 0, 16, &[0; 16]).unwrap();
    let mut byte = [0];
    // The second page has 1 us behind it: 2 us to suspend, 100 ns to read, 5 us to resume, 3 us to go.
    let served = nor.read(Time::from_ns(5_000), 32, 1, &mut byte).unwrap();
    assert_eq!((served.start, served.end), (Time::from_ns(7_000), Time::from_ns(7_100)));
    check_ticket(&nor, 0, four, Time::from_ns(23_100));
    let second_done = Time::from_ns(15_100);
    let zeros_after = |cut| {
        let mut nor = nor.clone();
        nor.cut(cut);
        contents(&nor).iter().filter(|&&byte| byte == 0).count()
    };
    assert!((4..8).contains(&zeros_after(second_done.before(PS))));
    assert_eq!(zeros_after(second_done), 8);
    // The other bank is not disturbed.
    let served = nor.read(Time::from_ns(7_000), 64, 8, &mut [0; 8]).unwrap();
    assert_eq!((served.start, served.end), (Time::from_ns(7_000), Time::from_ns(7_200)));
}

#[test]
fn nor_refuses_what_would_set_bits_or_lies_outside() {
    let mut nor = new(small(0));
    let now = Time::ZERO;
    nor.program(now, 5, 2, &[0xF0, 0x0F]).unwrap();
    nor.program(now, 5, 2, &[0x30, 0xFF]).unwrap();
    assert_eq!(contents(&nor)[5..7], [0x30, 0x0F], "fewer bits may follow, and 0xFF changes nothing");
    let before = (contents(&nor), nor.unsettled(), nor.stats());
    let refused = nor.program(now, 4, 3, &[0, 0x31, 0]);
    assert_eq!(refused, Err(MediumError::BitsSet { offset: 5, value: 0x31, held: 0x30 }));
    assert_eq!(nor.program(now, 31, 2, &[0; 2]), Err(MediumError::OutOfRange(32, 32)), "two blocks");
    assert_eq!(nor.program(now, 128, 1, &[0]), Err(MediumError::OutOfRange(128, 128)));
    assert_eq!(nor.read(now, 127, 2, &mut [0; 2]), Err(MediumError::OutOfRange(128, 128)));
    assert_eq!(nor.erase(now, BlockId(4)), Err(MediumError::OutOfRange(4, 4)));
    nor.mark_bad(BlockId(1));
    assert_eq!(nor.program(now, 32, 1, &[0]), Err(MediumError::BadBlock(BlockId(1))));
    assert_eq!(nor.erase(now, BlockId(1)), Err(MediumError::BadBlock(BlockId(1))));
    assert!(before == (contents(&nor), nor.unsettled(), nor.stats()), "what is refused changes nothing");
    let mut across = [0; 8];
    nor.read(now, 28, 8, &mut across).unwrap();
    assert_eq!(across, [0xFF; 8], "a bad block still reads");
    let nand = FlashConfig { rules: CellRules::Nand, ..small(0).flash };
    assert!(NorConfig { flash: nand, slowing: None }.check().is_err());
}

#[test]
fn failures_leave_what_was_there_readable() {
    let faulty = |program_failure, erase_failure| {
        let mut config = small(9);
        config.flash.endurance.cycles = 1;
        config.flash.faults = Faults { program_failure, erase_failure, ..config.flash.faults };
        new(config)
    };
    let mut nor = faulty(1.0, 0.0);
    nor.program(Time::ZERO, 0, 8, &[0x0F; 8]).unwrap();
    nor.erase(Time::ZERO, BlockId(1)).unwrap();
    let failed = nor.program(Time::ZERO, 32, 8, &[0; 8]);
    assert_eq!(failed, Err(MediumError::ProgramFailed(BlockId(1))));
    assert_eq!(contents(&nor)[..8], [0x0F; 8]);
    assert_eq!(contents(&nor)[36..40], [0xFF; 4], "what follows the failing step was not tried");

    let mut nor = faulty(0.0, 1.0);
    nor.program(Time::ZERO, 32, 8, &[0x0F; 8]).unwrap();
    assert_eq!(nor.erase(Time::ZERO, BlockId(0)), Err(MediumError::EraseFailed(BlockId(0))));
    assert!(nor.is_half_erased(BlockId(0)));
    assert_eq!(contents(&nor)[32..40], [0x0F; 8]);
}

/// Times do not depend on whether bytes are kept, nor on the bytes.
#[test]
fn payload_does_not_change_the_time_of_nor() {
    let config = small(0);
    let (mut with, mut without) = (new(config.clone()), Nor::new(config, ()));
    let (mut rng, mut now) = (Rng::new(4), Time::ZERO);
    for _ in 0..500 {
        now += Span::from_ns(rng.below(20_000));
        match (rng.chance(0.5), draw(&mut rng, &contents(&with))) {
            (true, Op::Program { offset, data }) => {
                let (offset, bytes) = (offset as u64, data.len() as u64);
                let ticket = with.program(now, offset, bytes, &data);
                assert_eq!(ticket, without.program(now, offset, bytes, &[]));
            }
            (false, Op::Program { offset, mut data }) => {
                let (offset, bytes) = (offset as u64, data.len() as u64);
                let served = with.read(now, offset, bytes, &mut data);
                assert_eq!(served, without.read(now, offset, bytes, &mut []));
            }
            (_, Op::Erase(block)) => {
                let block = BlockId(block as u32);
                assert_eq!(with.erase(now, block), without.erase(now, block));
            }
        }
    }
    assert_eq!(with.stats(), without.stats());
}

/// 28F016SV, system 001 slides 14, 15 and 31, and section 1.4: 163 KB/s byte by byte, 64.4 KiB/s with the erase; eight
/// chips in lockstep are eight times as fast.
#[test]
fn rates_of_the_28f016sv() {
    for chips in [1, 8] {
        let mut config = small(0);
        let geometry = &mut config.flash.geometry;
        (geometry.dies_per_channel, geometry.blocks_per_die, geometry.pages_per_block) = (1, 32, 65_536);
        geometry.unit_bytes = chips;
        config.flash.timing.read = vec![Span::from_ns(65)];
        config.flash.timing.program = Span::from_us(6);
        config.flash.timing.erase = Span::from_ms(600);
        let block = 65_536 * chips as u64;
        let time = |config: &NorConfig, piece: u64, erase: bool| {
            let mut nor = Nor::new(config.clone(), ());
            for offset in (0..block).step_by(piece as usize) {
                nor.program(Time::ZERO, offset, piece, &[]).unwrap();
            }
            if erase {
                nor.erase(Time::ZERO, BlockId(0)).unwrap();
            }
            assert_eq!(nor.unsettled(), 0, "without payload nothing is remembered");
            let last = nor.last(Die(0));
            block as f64 / nor.finish(Die(0), last, Time::ZERO).seconds() / chips as f64
        };
        let close = |rate: f64, expected: f64| (rate / expected - 1.0).abs() < 0.03;
        assert!(close(time(&config, 512, false), 163_000.0));
        assert!(close(time(&config, 512, true), 64.4 * 1024.0));
        assert!(close(time(&config, chips as u64, false), 163_000.0));
        let mut nor = Nor::new(config, ());
        let read = nor.read(Time::ZERO, 0, 512, &mut []).unwrap();
        assert_eq!(read.end, Time::ZERO + Span::from_ns(65) * (512 / chips as u64));
    }
}
