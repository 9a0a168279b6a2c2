//! A page map stored in a file: without the map from physical to logical units, which is half of its bytes and can be
//! derived from the other direction.

use super::PageMap;
use nvlab_medium::Store;
use nvlab_units::{Lpa, Ppa};

impl<S: Store> PageMap<S> {
    /// What [`PageMap::restore_owners`] needs and the tables do not say: the physical units that staged units replace, each
    /// with the logical unit it holds. They are dead, but current again if the program of the staged unit fails.
    pub fn dead_owners(&self) -> Vec<(Ppa, Lpa)> {
        let staged = self.writers.all().iter().flat_map(|frontier| &frontier.staged);
        let replaced = staged.map(|staged| staged.replaces).filter(|&unit| unit != Ppa::NONE);
        replaced.map(|unit| (unit, self.map.owner(unit))).collect()
    }

    /// Completes a deserialised controller. Fails if its tables do not fit together.
    pub fn restore_owners(&mut self, dead: &[(Ppa, Lpa)]) -> Result<(), String> {
        self.map.restore_owners(dead, self.geometry.units())
    }
}
