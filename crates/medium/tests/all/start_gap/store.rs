//! What the store below Start-Gap sees: lines in their order, wherever their cells are.

use crate::start_gap::{LINE, config, pcm};
use nvlab_medium::{InPlace, PowerCut, StartGap, Store};
use nvlab_units::{Rng, Time};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const PAGE: u64 = 256;

/// A store that notes which of its pages are touched.
struct Noted {
    bytes: Vec<u8>,
    touched: Rc<RefCell<BTreeSet<u64>>>,
}

impl Noted {
    fn note(&self, offset: u64, bytes: usize) {
        let pages = offset / PAGE..=(offset + bytes.max(1) as u64 - 1) / PAGE;
        self.touched.borrow_mut().extend(pages);
    }
}

impl Store for Noted {
    const KEEPS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        self.note(offset, into.len());
        into.copy_from_slice(&self.bytes[offset as usize..][..into.len()]);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.note(offset, data.len());
        self.bytes[offset as usize..][..data.len()].copy_from_slice(data);
    }
}

/// A write of neighbouring lines touches as many pages of the store as it has bytes for, not one for each line; a recovery
/// touches those with the numbers of moves, not one for each line of a ring. It was so many until the store had lines in the
/// order of the cells.
#[test]
fn neighbours_are_neighbours_in_the_store() {
    let lines = 4096;
    let touched = Rc::<RefCell<BTreeSet<u64>>>::default();
    let store = Noted { bytes: vec![0; (lines * LINE) as usize], touched: Rc::clone(&touched) };
    let config = config(4, 10, Some(9));
    let mut levelled = StartGap::new(config, pcm(lines, 4, None, store)).unwrap();
    let (mut rng, mut now) = (Rng::new(1), Time::ZERO);
    let total = levelled.capacity() / LINE;
    // Moves first, so that no line is where it was.
    for _ in 0..4 * total {
        now = levelled.write(now, rng.below(total) * LINE, LINE, &[1; LINE as usize]).unwrap().end;
    }
    assert!(levelled.moved() > total / 4);
    let count = 64;
    for _ in 0..100 {
        let first = rng.below(total - count);
        touched.borrow_mut().clear();
        let data = vec![2; (count * LINE) as usize];
        now = levelled.write(now, first * LINE, count * LINE, &data).unwrap().end;
        // A move for ten writes, each with its number: those of a region lie in one page or two.
        let pages = touched.borrow().len() as u64;
        assert!(pages <= count * LINE / PAGE + 1 + 2 * 4, "{pages} pages for {count} lines");
        let spread: BTreeSet<u64> =
            (first..first + count).map(|line| levelled.locate(line * LINE) / PAGE).collect();
        assert!(spread.len() > 40, "the cells are spread");
    }
    touched.borrow_mut().clear();
    levelled.cut(now);
    let entries = lines / 10 + 2 * 4;
    let pages = touched.borrow().len() as u64;
    assert!(pages <= entries * 8 / PAGE + 2, "a recovery touches {pages} pages for {entries} numbers");
}
