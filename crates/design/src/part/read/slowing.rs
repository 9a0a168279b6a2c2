//! How the cells of a NOR part slow down.

use super::Reader;
use nvlab_medium::flash::Slowing;
use nvlab_units::Span;

impl Reader<'_> {
    /// `Some(None)`: the cells do not slow down.
    pub(super) fn slowing(&mut self, program: Option<Span>, erase: Option<Span>) -> Option<Option<Slowing>> {
        const KEYS: [&str; 4] = ["program_worn", "erase_worn", "program_limit", "erase_limit"];
        let mut set = |key: &str| match self.context.has(&self.path(key)) {
            true => self.time(key).map(Some),
            false => Some(None),
        };
        let [program_worn, erase_worn, program_max, erase_max] = KEYS.map(&mut set);
        let cycles_done = self.count("cycles_done");
        let slowing = Slowing {
            program: program_worn?.or(program)?,
            erase: erase_worn?.or(erase)?,
            program_max: program_max?,
            erase_max: erase_max?,
            cycles_done: cycles_done?,
        };
        let is_any = KEYS.iter().any(|key| self.context.has(&self.path(key)));
        Some(is_any.then_some(slowing))
    }
}
