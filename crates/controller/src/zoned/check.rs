//! Checks all invariants over the whole structure; for tests.

use super::{NO_BLOCK, ZoneMap, ZoneState};
use nvlab_medium::Store;
use nvlab_units::BlockId;

impl<S: Store> ZoneMap<S> {
    /// Checks all invariants; panics with the one violated.
    pub fn check(&self) {
        self.states.check();
        let mut uses = vec![0; self.geometry.blocks() as usize];
        let mut claimed = vec![0; self.layout.groups() as usize];
        for zone in 0..self.config.zones {
            let (state, report) = (self.states.of(zone), self.zones[zone as usize]);
            self.members(zone).for_each(|block| uses[block as usize] += 1);
            assert!(report.written <= report.capacity, "zone {zone} is {state}: {report:?}");
            assert!(report.capacity <= self.layout.units_in(report.superblocks), "zone {zone}: {report:?}");
            match state {
                ZoneState::Empty => claimed[self.layout.group(zone) as usize] += report.superblocks,
                ZoneState::Full | ZoneState::Offline => {}
                _ => {
                    assert!(self.filled(zone) < self.geometry.units_per_page || state == ZoneState::ReadOnly)
                }
            }
            if matches!(state, ZoneState::Empty | ZoneState::Offline) {
                assert_eq!((report.written, self.members(zone).count()), (0, 0), "zone {zone} is {state}");
            } else {
                self.check_members(zone);
            }
        }
        assert_eq!(claimed, self.pool.claimed);
        self.log.blocks().for_each(|block| uses[block as usize] += 1);
        for (die, free) in self.geometry.all_dies().zip(&self.pool.free) {
            for &block in free {
                uses[block as usize] += 1;
                assert_eq!(self.nand.die_of(BlockId(block)), die, "block {block} is free on another die");
                assert_eq!(self.nand.pages_written(BlockId(block)), 0, "block {block} is free");
            }
        }
        for (block, uses) in (0..).zip(uses) {
            let gone = self.nand.cells().is_bad(BlockId(block)) || self.pool.is_retiring(block);
            assert_eq!(uses, !gone as u32, "uses of block {block}");
        }
    }

    /// Checks that each block of a zone is on its die and holds the pages that are programmed.
    fn check_members(&self, zone: u32) {
        for member in 0..self.width {
            let block = self.blocks[self.index(zone, member)];
            if block == NO_BLOCK {
                continue;
            }
            assert_eq!(self.nand.die_of(BlockId(block)), self.layout.die(zone, member), "zone {zone}");
            let mut pages = 0;
            while self
                .layout
                .number(member, pages)
                .is_some_and(|number| number < self.zones[zone as usize].programmed)
            {
                pages += 1;
            }
            // One that is not written on may have a failed page, or padding of a finish that was cut.
            let written = self.nand.pages_written(BlockId(block));
            let has_more = written > pages && !self.states.of(zone).is_active();
            assert!(
                written == pages || has_more,
                "member {member} of zone {zone}: {written} of {pages} pages"
            );
        }
    }
}
