//! Which payload an array gives up, and which it no longer trusts.

use super::{BLOCK, UNIT, config};
use nvlab_medium::flash::nand::{DeadUnits, Payload};
use nvlab_medium::flash::{CellRules, Faults, FlashConfig, Nand, SPARE_BYTES};
use nvlab_medium::{MediumError, MemStore, PowerCut, Store};
use nvlab_units::{BlockId, Die, Geometry, Ppa, Rng, Span, Ticket, Time};
use std::collections::BTreeSet;

/// A store that knows which of its units were written and not discarded.
#[derive(Clone, Debug)]
struct Holding {
    bytes: MemStore,
    held: Vec<bool>,
}

impl Store for Holding {
    const KEEPS: bool = true;
    const SHOWS: bool = true;
    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        self.bytes.view(offset, bytes)
    }
    fn prefetch(&self, offset: u64, bytes: usize) {
        self.bytes.prefetch(offset, bytes);
    }
    fn write_zeros(&mut self, offset: u64, bytes: u64) {
        self.bytes.write_zeros(offset, bytes);
    }
    fn is_unverified(&self, offset: u64) -> bool {
        self.bytes.is_unverified(offset)
    }
    fn set_verified(&mut self, offset: u64) {
        self.bytes.set_verified(offset);
    }
    fn place(&self, offset: u64) -> Option<(&'static str, u64)> {
        self.bytes.place(offset)
    }
    fn read(&self, offset: u64, into: &mut [u8]) {
        self.bytes.read(offset, into);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.bytes.write(offset, data);
        for unit in offset as usize / UNIT..(offset as usize + data.len()) / UNIT {
            self.held.get_mut(unit).into_iter().for_each(|held| *held = true);
        }
    }
    fn copy(&mut self, from: u64, to: u64, bytes: usize) {
        self.bytes.copy(from, to, bytes);
        self.held[to as usize / UNIT..][..bytes / UNIT].fill(true);
    }
    fn discard(&mut self, offset: u64, bytes: u64) {
        self.held[offset as usize / UNIT..][..bytes as usize / UNIT].fill(false);
    }
    fn holds(&self, offset: u64) -> bool {
        self.held[offset as usize / UNIT]
    }
}

fn array(config: FlashConfig) -> Nand<Holding> {
    let bytes = MemStore::new(Nand::<MemStore>::store_bytes(&config.geometry));
    let held = vec![false; config.geometry.units() as usize];
    Nand::new(config, Holding { bytes, held })
}

fn program(nand: &mut Nand<Holding>, block: BlockId, page: u32) -> Result<Ticket, MediumError> {
    let units = nand.units_per_page(block) as usize;
    let (data, spare) = (vec![7; units * UNIT], vec![7; units * SPARE_BYTES]);
    nand.program(Time::ZERO, block, page, 1, Payload::new(&data, &spare), false)
}

fn held(nand: &Nand<Holding>) -> usize {
    (0..nand.geometry().units() as u32).filter(|&unit| nand.holds(Ppa(unit))).count()
}

/// Its block may be bad from then on, and never be erased.
#[test]
fn a_program_that_fails_leaves_no_payload() {
    for cut in [None, Some(0), Some(400), Some(10_000)] {
        for seed in 0..20 {
            let faults = Faults { program_failure: 1e9, seed, ..Faults::NONE };
            let mut nand = array(FlashConfig { faults, ..config(CellRules::Nand, 2, seed) });
            program(&mut nand, BLOCK, 0).unwrap();
            // Blocks that were never erased do not fail.
            nand.erase(Time::ZERO, BlockId(0)).unwrap();
            let now = Time::ZERO + Span::from_ms(10);
            nand.settle(now);
            assert_eq!(held(&nand), 2);
            assert_eq!(program(&mut nand, BlockId(0), 0), Err(MediumError::ProgramFailed(BlockId(0))));
            if let Some(us) = cut {
                nand.cut(now + Span::from_us(us));
            }
            assert_eq!(held(&nand), 2, "cut {cut:?}, seed {seed}");
        }
    }
}

/// Nor does one that a power cut tears, if what it left cannot be read.
#[test]
fn a_page_that_cannot_be_read_holds_no_payload() {
    let mut torn = 0;
    for seed in 0..20 {
        let mut nand = array(config(CellRules::Nand, 2, seed));
        program(&mut nand, BLOCK, 0).unwrap();
        nand.cut(Time::ZERO + Span::from_us(400));
        let is_readable = nand.is_readable(nand.geometry().first_unit(BLOCK));
        assert_eq!(held(&nand), if is_readable { 2 } else { 0 }, "seed {seed}");
        torn += !is_readable as u32;
    }
    assert!(torn > 3, "only {torn} pages were torn");
}

/// What is noted stays so until it is programmed again or compared, also if a power cut brings it back.
#[test]
fn what_a_cut_brings_back_is_in_doubt() {
    let mut nand = array(config(CellRules::Nand, 2, 1));
    let first = nand.geometry().first_unit(BLOCK);
    let doubted = |nand: &Nand<Holding>| {
        (0..4).filter(|&unit| nand.is_unverified(Ppa(first.0 + unit), 1)).collect::<Vec<u32>>()
    };
    program(&mut nand, BLOCK, 0).unwrap();
    program(&mut nand, BLOCK, 1).unwrap();
    nand.settle(Time::ZERO + Span::from_ms(10));
    nand.doubt(Ppa(first.0 + 3));
    assert_eq!(doubted(&nand), [3]);
    assert!(nand.is_unverified(first, 4) && !nand.is_unverified(first, 3));
    let found = nand.clone();
    // Erased, programmed again, and all of that undone.
    nand.erase(Time::ZERO + Span::from_ms(20), BLOCK).unwrap();
    program(&mut nand, BLOCK, 0).unwrap();
    assert_eq!(doubted(&nand), [3]);
    let mut again = nand.clone();
    nand.cut(Time::ZERO + Span::from_ms(20));
    assert_eq!(nand.pages_written(BLOCK), 2);
    assert_eq!(doubted(&nand), [0, 1, 3]);
    nand.set_verified(first);
    assert_eq!(doubted(&nand), [1, 3]);
    // Programmed again for good.
    program(&mut again, BLOCK, 1).unwrap();
    assert!(doubted(&again).is_empty());
    // Erased for good.
    let mut nand = found;
    nand.erase(Time::ZERO + Span::from_ms(20), BLOCK).unwrap();
    nand.settle(Time::ZERO + Span::from_ms(30));
    assert!(doubted(&nand).is_empty());
}

/// Blocks of 1024 units, all programmed.
fn full(blocks: u32) -> Nand<Holding> {
    let config = config(CellRules::Nand, 4, 0);
    let geometry = Geometry { blocks_per_die: blocks, pages_per_block: 256, ..config.geometry };
    let mut nand = array(FlashConfig { geometry, ..config });
    for block in (0..blocks).map(BlockId) {
        (0..256).for_each(|page| assert!(program(&mut nand, block, page).is_ok()));
    }
    nand.settle(Time::ZERO + Span::from_ms(10_000_000));
    nand
}

#[test]
fn many_dead_units_are_given_up_one_by_one() {
    let never = Time::ZERO + Span::from_ms(10_000_000);
    for seed in 0..30 {
        let mut nand = full(4);
        let (units, mut rng) = (nand.geometry().units(), Rng::new(seed));
        let (mut dead, mut model) = (DeadUnits::default(), BTreeSet::new());
        for _ in 0..1 << rng.below(13) {
            let unit = Ppa(rng.below(units) as u32);
            nand.add_dead(&mut dead, unit);
            model.insert(unit.0);
        }
        // One of the blocks begins another life, in which one unit is dead, and one that is not programmed yet will be.
        nand.erase(never, BlockId(2)).unwrap();
        model.retain(|unit| !(2048..3072).contains(unit));
        program(&mut nand, BlockId(2), 0).unwrap();
        if rng.chance(0.5) {
            nand.add_dead(&mut dead, Ppa(2048));
            nand.add_dead(&mut dead, Ppa(2052));
            model.extend([2048, 2052]);
        }
        nand.supersede_all(dead, Die(0), Ticket::default());
        program(&mut nand, BlockId(2), 1).unwrap();
        let taken: Vec<u32> = std::iter::from_fn(|| nand.take_needless(never)).map(|unit| unit.0).collect();
        assert_eq!(taken.iter().copied().collect::<BTreeSet<u32>>(), model, "seed {seed}");
        assert_eq!(nand.superseded_bytes(), 0);
    }
}

/// However they lie, they take no more than a bit for each unit of the array, and something for each block.
#[test]
fn many_dead_units_take_little_memory() {
    let nand = full(16);
    let units = nand.geometry().units();
    let most = units / 8 + 16 * 64;
    let mut order: Vec<u32> = (0..units as u32).collect();
    let mut rng = Rng::new(1);
    (1..order.len()).rev().for_each(|at| order.swap(at, rng.below(at as u64 + 1) as usize));
    let mut dead = DeadUnits::default();
    for (added, unit) in order.into_iter().enumerate() {
        nand.add_dead(&mut dead, Ppa(unit));
        assert!(dead.memory_bytes() <= most, "{} B for {added} units", dead.memory_bytes());
    }
    assert!(dead.memory_bytes() > units / 8);
}
