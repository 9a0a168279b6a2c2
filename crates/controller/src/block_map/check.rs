//! Checks all invariants over the whole structure; for tests.

use super::{BlockMap, DATA, IN_PLACE, NOTHING};
use crate::spare;
use nvlab_medium::Store;
use nvlab_units::{BlockId, Die, Lpa, Ppa};

/// What a block is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Free,
    Data(u32),
    /// The sequential or BAST log block of a logical block.
    Own(u32),
    Shared,
}

impl<S: Store> BlockMap<S> {
    /// Checks all invariants; panics with the one violated.
    pub fn check(&self) {
        let roles = self.roles();
        for lpa in (0..self.config.logical_units).map(Lpa) {
            self.check_page(lpa, &roles);
        }
        for (area, roles) in self.areas.iter().zip(&roles) {
            for (block, &role) in roles.iter().enumerate() {
                let id = BlockId(block as u32);
                let bad = area.nand.cells().is_bad(id);
                assert!(role.is_some() || bad, "block {block} has no role");
                if role == Some(Role::Free) {
                    assert!(!bad && area.nand.pages_written(id) == 0, "free block {block} is not erased");
                }
            }
        }
        for (die, &unmapped) in (0..).map(Die).zip(&self.unmapped) {
            let without = (0..self.data.len() as u32)
                .filter(|&lbn| self.home(lbn) == die && self.data[lbn as usize] == NOTHING);
            assert_eq!(
                without.count(),
                unmapped as usize,
                "logical blocks without a data block on die {die}"
            );
        }
        for round in &self.fast.rounds {
            let used = round.full.len() + (round.open != NOTHING) as usize;
            assert_eq!(used, round.used as usize, "{round:?}");
        }
    }

    /// The role of every block of every area; checks that none has two.
    fn roles(&self) -> Vec<Vec<Option<Role>>> {
        let empty = |area: &super::Area<S>| vec![None; area.geometry.blocks() as usize];
        let mut roles: Vec<Vec<Option<Role>>> = self.areas.iter().map(empty).collect();
        let mut assign = |area: usize, block: u32, role: Role| {
            let before = roles[area][block as usize].replace(role);
            assert_eq!(before, None, "block {block} of area {area} is {role:?} too");
        };
        for (index, area) in self.areas.iter().enumerate() {
            for (die, free) in (0..).map(Die).zip(&area.free) {
                for &block in free {
                    assert_eq!(area.die_of(block), die, "block {block} is free on another die");
                    assign(index, block, Role::Free);
                }
            }
        }
        for (lbn, &block) in self.data.iter().enumerate().filter(|(_, block)| **block != NOTHING) {
            assert_eq!(self.areas[DATA].die_of(block), self.home(lbn as u32), "{lbn} is not at home");
            assign(DATA, block, Role::Data(lbn as u32));
        }
        if let Some(open) = self.fast.sequential {
            assign(DATA, open.block, Role::Own(open.lbn));
        }
        for (lbn, &block) in self.bast.log_of.iter().enumerate().filter(|(_, block)| **block != NOTHING) {
            assign(DATA, block, Role::Own(lbn as u32));
            let round = &self.bast.rounds[self.home(lbn as u32).index()];
            assert_eq!(round.iter().filter(|&&other| other == lbn as u32).count(), 1, "{lbn} in {round:?}");
        }
        for round in &self.fast.rounds {
            for &block in round.full.iter().chain([&round.open].into_iter().filter(|open| **open != NOTHING))
            {
                assign(self.log_area(), block, Role::Shared);
            }
        }
        roles
    }

    /// Checks that the newest copy of a page is in a block of a permitted role and holds that page.
    fn check_page(&self, lpa: Lpa, roles: &[Vec<Option<Role>>]) {
        let Some(address) = self.newest(lpa) else { return };
        let (lbn, offset) = self.split(lpa);
        let (area, page) = self.locate(address);
        let block = self.areas[area].block_of(page);
        let index = page - self.areas[area].first_page(block);
        assert!(self.areas[area].nand.is_programmed(BlockId(block), index), "{lpa} at {address} is erased");
        match roles[area][block as usize] {
            Some(Role::Data(owner)) => {
                let in_place = self.place[lpa.index()] == IN_PLACE;
                assert!(owner == lbn && index == offset && in_place, "{lpa} at {address} of {owner}");
            }
            Some(Role::Own(owner)) => assert_eq!(owner, lbn, "{lpa} at {address}"),
            Some(Role::Shared) => assert_eq!(self.owner[(address - self.log_base) as usize], lpa),
            other => panic!("{lpa} at {address} is in a block that is {other:?}"),
        }
        if S::KEEPS {
            let found = spare::peek(&self.areas[area].nand, Ppa(page), &mut vec![0; self.page.len()]);
            assert_eq!(found.map(|found| found.lpa), Ok(lpa), "at {address}");
        }
    }
}
