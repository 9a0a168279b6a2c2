//! NAND arrays: the order of programs, blocks in SLC mode, and what a power cut leaves of an erase.

mod channel;
mod payload;
mod planes;
mod reopen;

use crate::kept::Kept;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::flash::{
    CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand, SPARE_BYTES, SlcMode,
};
use nvlab_medium::{MediumError, MemStore, PowerCut};
use nvlab_units::{BlockId, Die, Geometry, Ppa, Rate, Span, Time};

const UNIT: usize = 8;
const BLOCK: BlockId = BlockId(1);

/// One die of two blocks of eight pages.
fn config(rules: CellRules, units_per_page: u32, seed: u64) -> FlashConfig {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 2,
        pages_per_block: 8,
        units_per_page,
        unit_bytes: UNIT as u32,
    };
    let timing = FlashTiming {
        transfer: Rate::from_bytes_per_second(40_000_000),
        copy_back: true,
        ..FlashTiming::plain(Span::from_us(60), Span::from_us(800), Span::from_us(1500))
    };
    let faults = Faults { seed, ..Faults::NONE };
    let endurance = Endurance { cycles: 1000, spread: 0.0 };
    FlashConfig { rules, geometry, timing, endurance, faults }
}

fn array(rules: CellRules, units_per_page: u32, seed: u64) -> Nand<MemStore> {
    let config = config(rules, units_per_page, seed);
    let store = MemStore::new(Nand::<MemStore>::store_bytes(&config.geometry));
    Nand::new(config, store)
}

fn program(nand: &mut Nand<MemStore>, page: u32, fill: u8) -> Result<(), MediumError> {
    let units = nand.units_per_page(BLOCK) as usize;
    let (data, spare) = (vec![fill; units * UNIT], vec![fill; units * SPARE_BYTES]);
    nand.program(Time::ZERO, BLOCK, page, 1, Payload::new(&data, &spare), false).map(|_| ())
}

/// What a unit of the block reads as, if it can be read.
fn peek(nand: &Nand<MemStore>, unit: u32) -> Result<u8, MediumError> {
    let (mut data, mut spare) = ([0; UNIT], [0; SPARE_BYTES]);
    let first = nand.geometry().first_unit(BLOCK).0;
    nand.peek(Ppa(first + unit), &mut data, &mut spare).map(|()| data[0])
}

#[test]
fn strict_order_is_refused_where_any_order_is_not() {
    let mut strict = array(CellRules::Nand, 1, 0);
    let error = program(&mut strict, 3, 1).unwrap_err();
    assert_eq!(error, MediumError::OutOfOrder { block: BLOCK, page: 3, next: 0 });
    let mut any = array(CellRules::NandAnyOrder, 1, 0);
    for (page, fill) in [(3, 1), (7, 2), (0, 3)] {
        program(&mut any, page, fill).unwrap();
    }
    assert_eq!(program(&mut any, 7, 4), Err(MediumError::Programmed { block: BLOCK, page: 7 }));
    assert_eq!((peek(&any, 3), peek(&any, 7), peek(&any, 0)), (Ok(1), Ok(2), Ok(3)));
    assert!(matches!(peek(&any, 5), Err(MediumError::Erased(_))), "a hole is erased");
}

#[test]
fn programs_that_had_not_begun_leave_holes_where_they_were() {
    let mut nand = array(CellRules::NandAnyOrder, 1, 0);
    for page in [3, 7, 0] {
        program(&mut nand, page, page as u8).unwrap();
    }
    // The first is done at 800 us, the others have not begun.
    nand.cut(Time::from_ns(800_000));
    assert_eq!(peek(&nand, 3), Ok(3));
    assert_eq!((nand.pages_written(BLOCK), nand.is_programmed(BLOCK, 7)), (4, false));
    program(&mut nand, 7, 9).unwrap();
    assert_eq!(peek(&nand, 7), Ok(9));
}

/// Found by a served device: its counts begin anew after a recovery, with the recovery's erases still queued.
#[test]
fn an_erase_from_before_the_count_began_is_taken_back_from_the_wear_alone() {
    let mut nand = array(CellRules::Nand, 1, 0);
    program(&mut nand, 0, 1).unwrap();
    nand.erase(Time::ZERO, BLOCK).unwrap();
    nand.reset_stats();
    nand.cut(Time::ZERO);
    assert_eq!((nand.cells().erase_count(BLOCK), nand.stats().erases), (0, 0));
}

/// Found by the block map's power cuts: the second torn erase of a block forgot which pages the first had made
/// unreadable, and among them holes gave back what an earlier generation of the block had held.
#[test]
fn what_a_torn_erase_made_unreadable_stays_so() {
    for seed in 0..50 {
        let mut nand = array(CellRules::NandAnyOrder, 1, seed);
        (0..8).for_each(|page| program(&mut nand, page, 1).unwrap());
        nand.erase(Time::ZERO, BLOCK).unwrap();
        program(&mut nand, 2, 2).unwrap();
        let mut now = nand.finish(Die(0), nand.clone().last(Die(0)), Time::ZERO);
        nand.settle(now);
        for _ in 0..3 {
            nand.erase(now, BLOCK).unwrap();
            now += Span::from_us(700);
            nand.cut(now);
            for page in (0..8).filter(|&page| page != 2) {
                assert!(peek(&nand, page).is_err(), "seed {seed}: page {page} came back");
            }
            assert!(matches!(peek(&nand, 2), Ok(2) | Err(_)), "seed {seed}");
        }
    }
}

#[test]
fn a_block_in_slc_mode_is_smaller_and_faster_until_it_is_erased() {
    let [read, program_time, erase] = [25, 200, 1000].map(Span::from_us);
    let mode =
        SlcMode { pages_per_block: 6, units_per_page: 1, read, program: program_time, erase, cycles: 1000 };
    let mut nand = array(CellRules::Nand, 3, 0).with_slc_mode(mode);
    nand.set_slc(BLOCK, true);
    (0..6).for_each(|page| program(&mut nand, page, 5).unwrap());
    assert_eq!(program(&mut nand, 6, 5), Err(MediumError::OutOfOrder { block: BLOCK, page: 6, next: 6 }));
    // Slots 1 and 2 of a page hold nothing.
    assert_eq!(peek(&nand, 3), Ok(5));
    assert!(matches!(peek(&nand, 4), Err(MediumError::Erased(_))));
    let programs = nand.finish(Die(0), nand.clone().last(Die(0)), Time::ZERO);
    assert_eq!(programs, Time::ZERO + program_time * 6);
    let first = nand.geometry().first_unit(BLOCK);
    let served = nand.read(programs, first, 1, &mut [0; UNIT]).unwrap();
    assert_eq!(served.end, programs + read + Span::from_ns(200), "8 B over 40 MB/s");
    nand.erase(served.end, BLOCK).unwrap();
    let erased = nand.finish(Die(0), nand.clone().last(Die(0)), served.end);
    assert_eq!(erased.since(served.end), erase);
    let slc = nand.cells().slc_operations();
    assert_eq!((slc.reads, slc.programs, slc.erases, nand.is_slc(BLOCK)), (1, 6, 1, false));
    // With all bits again; a cut takes the erase back if it had not begun, and the mode with it.
    nand.set_slc(BLOCK, true);
    program(&mut nand, 0, 7).unwrap();
    let now = nand.finish(Die(0), nand.clone().last(Die(0)), erased);
    nand.settle(now);
    nand.erase(now + Span::from_us(50), BLOCK).unwrap();
    assert!(!nand.is_slc(BLOCK));
    nand.cut(now);
    assert_eq!((nand.is_slc(BLOCK), peek(&nand, 0)), (true, Ok(7)));
    assert_eq!(nand.cells().slc_operations().erases, 1);
}

/// Ten cycles with one bit per cell take as much of the life of a block as one with all: 90 of them and 11 of 20 make it as worn as 20
/// would. It wore out after 20 of either kind, and 101 of them were not to be had.
#[test]
fn a_block_wears_by_the_mode_it_is_used_in() {
    let mode_of = |cycles| {
        let [read, program, erase] = [25, 200, 1000].map(Span::from_us);
        SlcMode { pages_per_block: 6, units_per_page: 1, read, program, erase, cycles }
    };
    let faults = Faults { wear_out: true, ..Faults::NONE };
    let endurance = Endurance { cycles: 20, spread: 0.0 };
    let config = FlashConfig { faults, endurance, ..config(CellRules::Nand, 3, 0) };
    let store = Kept::new(Nand::<Kept>::store_bytes(&config.geometry));
    let mut nand = Nand::new(config.clone(), store.clone()).with_slc_mode(mode_of(200));
    let mut at = Time::ZERO;
    let mut erase = |nand: &mut Nand<Kept>, slc| {
        nand.set_slc(BLOCK, slc);
        at += Span::from_ms(10);
        nand.erase(at, BLOCK).is_ok()
    };
    for _ in 0..90 {
        assert!(erase(&mut nand, true));
    }
    assert!((0..6).all(|_| erase(&mut nand, false)));
    // What was counted survives a restart.
    let mut nand = Nand::reopen(config, store, Some(mode_of(200)));
    assert!((0..5).all(|_| erase(&mut nand, false)), "90 / 200 + 11 / 20 is the whole of it");
    assert!(!erase(&mut nand, false) && !erase(&mut nand, true));
}
