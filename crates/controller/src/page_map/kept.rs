//! A page map stored in a file: without the map from physical to logical units, which is half of its bytes and can be
//! derived from the other direction.

use super::{NOTHING, PageMap};
use nvlab_medium::Store;

impl<S: Store> PageMap<S> {
    /// What [`PageMap::restore_owners`] needs and the tables do not say: the physical units that staged units replace, each
    /// with the logical unit it holds. They are dead, but current again if the program of the staged unit fails.
    pub fn dead_owners(&self) -> Vec<(u32, u32)> {
        let staged = self.frontiers.iter().flat_map(|frontier| &frontier.staged);
        let replaced = staged.map(|staged| staged.replaces).filter(|&unit| unit != NOTHING);
        replaced.map(|unit| (unit, self.p2l[unit as usize])).collect()
    }

    /// Completes a deserialised controller. Fails if its tables do not fit together.
    pub fn restore_owners(&mut self, dead: &[(u32, u32)]) -> Result<(), String> {
        let units = self.geometry.units() as usize;
        let mut owners = vec![NOTHING; units];
        for (&unit, lpa) in self.l2p.iter().zip(0..).filter(|(unit, _)| **unit != NOTHING) {
            let owner = owners.get_mut(unit as usize).ok_or("a logical unit is outside the array")?;
            *owner = lpa;
        }
        for &(unit, lpa) in dead {
            *owners.get_mut(unit as usize).ok_or("a replaced unit is outside the array")? = lpa;
        }
        self.p2l = owners;
        Ok(())
    }
}
