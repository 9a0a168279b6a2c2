//! Cells that slow down, by hand.

use super::{new, small};
use nvlab_medium::MediumError::{EraseFailed, ProgramFailed};
use nvlab_medium::flash::{Endurance, NorConfig, Slowing};
use nvlab_units::{BlockId, Die, Span, Time};

const BLOCK: BlockId = BlockId(0);
const PAGE: [u8; 4] = [0; 4];
/// 4 us and 50 us when fresh: with four rated cycles, 1 us and 10 us more after each.
const SLOWING: Slowing = Slowing {
    program: Span::from_us(8),
    erase: Span::from_us(90),
    program_max: Some(Span::from_us(6)),
    erase_max: Some(Span::from_us(75)),
    cycles_done: 0,
};

fn slow(slowing: Slowing) -> NorConfig {
    let mut config = small(1);
    config.flash.endurance = Endurance { cycles: 4, spread: 0.0 };
    NorConfig { slowing: Some(slowing), ..config }
}

#[test]
fn each_cycle_lengthens_programs_and_erases_until_they_fail() {
    let mut nor = new(slow(SLOWING));
    let mut now = Time::ZERO;
    for (program, erase) in [(4, 50), (5, 60), (6, 70)] {
        let ticket = nor.program(now, 0, 4, &PAGE).unwrap();
        let end = nor.finish(Die(0), ticket, now);
        assert_eq!(end.since(now), Span::from_us(program));
        let ticket = nor.erase(end, BLOCK).unwrap();
        now = nor.finish(Die(0), ticket, end);
        assert_eq!(now.since(end), Span::from_us(erase));
    }
    assert_eq!(nor.stats().failures, [0; 3]);
    // The next would take 7 us and 80 us: each is given up at its limit.
    assert_eq!(nor.program(now, 0, 4, &PAGE), Err(ProgramFailed(BLOCK)));
    let last = nor.last(Die(0));
    let end = nor.finish(Die(0), last, now);
    assert_eq!(end.since(now), Span::from_us(6));
    assert_eq!(nor.erase(end, BLOCK), Err(EraseFailed(BLOCK)));
    assert_eq!(nor.idle_at(Die(0), end).since(end), Span::from_us(75));
    let stats = nor.stats();
    assert_eq!(stats.failures, [0, 1, 1]);
    assert_eq!((stats.programs, stats.program_time.seconds()), (4, 21e-6));
    // Another block is as it was.
    assert_eq!(
        (nor.program_time(BlockId(1)), nor.erase_time(BlockId(1))),
        (Span::from_us(4), Span::from_us(50))
    );
}

#[test]
fn cycles_done_before_count_for_the_times_alone() {
    let mut nor = new(slow(Slowing { cycles_done: 1, ..SLOWING }));
    assert_eq!((nor.program_time(BLOCK), nor.erase_time(BLOCK)), (Span::from_us(5), Span::from_us(60)));
    assert_eq!(nor.cells().erase_count(BLOCK), 0);
    let ticket = nor.program_pages(Time::ZERO, nvlab_units::Ppa(0), 2, Span::ZERO, &[0; 8]).unwrap();
    assert_eq!(nor.finish(Die(0), ticket, Time::ZERO), Time::ZERO + Span::from_us(10));
}

#[test]
fn times_that_cannot_be_are_refused() {
    for wrong in [
        Slowing { program: Span::from_us(3), ..SLOWING },
        Slowing { erase_max: Some(Span::from_us(49)), ..SLOWING },
    ] {
        assert!(slow(wrong).check().is_err(), "{wrong:?}");
    }
}
