//! What a file holds that somebody changed; and kills between two stores.

use super::*;
use crate::mapped_store::MappedStore;
use nvlab_medium::Store;
use nvlab_units::Rng;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

mod shared;

/// Why the program ended.
struct Killed;

/// Does something, or a part of it; returns whether the program was killed.
pub(crate) fn until_killed(act: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(()) => false,
        Err(why) if why.is::<Killed>() => true,
        Err(why) => resume_unwind(why),
    }
}

thread_local! {
    /// The stores that are left before this thread's program is killed.
    static BUDGET: RefCell<Option<Rc<Cell<u64>>>> = const { RefCell::new(None) };
}

/// From now on this thread's stores to slots use up this budget.
pub(crate) fn spend_from(budget: Rc<Cell<u64>>) {
    BUDGET.set(Some(budget));
}

/// Ends the program if no store is left.
pub(crate) fn between_stores() {
    if let Some(budget) = BUDGET.with_borrow(Clone::clone) {
        match budget.get() {
            // Not a panic: the program just ends here.
            0 => resume_unwind(Box::new(Killed)),
            left => budget.set(left - 1),
        }
    }
}

fn geometry() -> Geometry {
    Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 4,
        pages_per_block: 16,
        units_per_page: 4,
        unit_bytes: 4096,
    }
}

fn open(file: &File, layout: SlotLayout, fresh: bool) -> MappedStore {
    let mapping = Mapping::shared(file, layout.bytes()).unwrap();
    let another = file.try_clone().unwrap();
    let slots = Slots::of_file(layout, &mapping, (another, "nand"), !fresh).unwrap();
    MappedStore::slotted(mapping, slots)
}

/// Whatever the words of the table are, every unit is unverified at first, none has the payload of another that is written
/// later, and opening the file alone changes nothing.
#[test]
fn words_that_somebody_changed_lead_to_no_other_unit() {
    let (geometry, unit) = (geometry(), 4096);
    let (layout, units) = (SlotLayout::new(&geometry).unwrap(), geometry.units());
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let file = tempfile::tempfile().unwrap();
        file.set_len(layout.bytes()).unwrap();
        let mut store = open(&file, layout, true);
        let written: Vec<u64> = (0..units).filter(|_| rng.chance(0.7)).collect();
        written.iter().for_each(|&at| store.write(at * unit, &[(at % 250) as u8 + 1; 4096]));
        for _ in 0..5 {
            let at = layout.table_at as usize + 4 * rng.below(units) as usize;
            let word = [rng.below(units + 3) as u32, rng.bits() as u32, 0, ZEROS][rng.below(4) as usize];
            store_word(&mut store, at, word);
        }
        drop(store);
        let before = Mapping::shared(&file, layout.bytes()).unwrap().as_slice().to_vec();
        let mut store = open(&file, layout, false);
        let mut found = vec![0; 4096];
        (0..units).for_each(|at| store.read(at * unit, &mut found));
        assert!(Mapping::shared(&file, layout.bytes()).unwrap().as_slice() == before, "seed {seed}");
        for at in 0..units {
            assert!(store.is_unverified(at * unit), "seed {seed}");
        }
        // A checksum says which of two units a slot belongs to.
        let mut hold = |store: &MappedStore, at: u64| {
            store.read(at * unit, &mut found);
            written.binary_search(&at).is_ok() && found == [(at % 250) as u8 + 1; 4096]
        };
        let right: Vec<u64> = (0..units).filter(|&at| hold(&store, at)).collect();
        assert!(right.len() + 10 >= written.len(), "seed {seed}");
        right.iter().for_each(|&at| store.set_verified(at * unit));
        for at in (0..units).filter(|at| right.binary_search(at).is_err()) {
            assert!(store.is_unverified(at * unit), "seed {seed}: unit {at} passes for verified");
        }
        // The others keep what they have, while these are written again and again.
        let again: Vec<u64> = (0..units).filter(|_| rng.chance(0.3)).collect();
        store.write(again[0] * unit, &[200; 4096]);
        let others: Vec<u64> = (0..units).filter(|at| !again.contains(at)).collect();
        let read = |store: &MappedStore, at: u64| {
            let mut found = vec![0; 4096];
            store.read(at * unit, &mut found);
            found
        };
        let held: Vec<Vec<u8>> = others.iter().map(|&at| read(&store, at)).collect();
        for round in 0..3 {
            again.iter().for_each(|&at| store.write(at * unit, &[201 + round; 4096]));
        }
        assert!(others.iter().zip(&held).all(|(&at, held)| read(&store, at) == *held), "seed {seed}");
    }
}

/// A word names each slot, nothing or zeros: two values are no slots, and a unit that is written again has two.
#[test]
fn an_array_with_more_units_than_words_can_name_is_refused() {
    let of =
        |blocks_per_die| Geometry { blocks_per_die, pages_per_block: 1, units_per_page: 1, ..geometry() };
    assert!(SlotLayout::new(&of(UNITS_MAX as u32)).is_ok());
    let why = SlotLayout::new(&of(UNITS_MAX as u32 + 1)).unwrap_err();
    assert!(why.contains("4294967294 units") && why.contains("4294967293"), "{why}");
}

/// Overwrites a word of the file, wherever it is.
fn store_word(store: &mut MappedStore, at: usize, word: u32) {
    store.mapping_mut().as_mut_slice()[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

/// What a file takes of the disk is what is held, and what a killed process left beside it is given back.
#[test]
fn slots_that_are_free_take_no_disk() {
    use std::os::unix::fs::MetadataExt;
    let geometry = Geometry { blocks_per_die: 512, ..geometry() };
    let (layout, units, unit) = (SlotLayout::new(&geometry).unwrap(), geometry.units(), 4096);
    let file = tempfile::tempfile().unwrap();
    file.set_len(layout.bytes()).unwrap();
    let taken = || file.metadata().unwrap().blocks() * 512;
    let mut store = open(&file, layout, true);
    (0..units).for_each(|at| store.write(at * unit, &[1; 4096]));
    assert!(taken() >= units * unit);
    // All but one in sixteen, scattered.
    (0..units).filter(|at| at % 16 != 3).for_each(|at| store.discard(at * unit, unit));
    let live = units / 16 * unit;
    let most = live + live / 10 + WARM_BYTES_MIN as u64 + units * WORD + (64 << 10);
    assert!(taken() <= most, "{} B for {live} B", taken());
    // Nor do they when what lies between them is written again.
    for round in 2..5 {
        (0..units).filter(|at| at % 16 == 3).for_each(|at| store.write(at * unit, &[round; 4096]));
        store.discard(0, unit);
        assert!(taken() <= most, "{} B for {live} B, written again", taken());
    }
    drop(store);
    let mut store = open(&file, layout, false);
    store.write(0, &[2; 4096]);
    let most = live + units * WORD + (64 << 10);
    assert!(taken() <= most, "{} B for {live} B, found again", taken());
}
