//! What records change, segment by segment.

use super::pages::Pages;
use crate::record::{Contents, Record};
use crate::{Result, Store};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Segments that records change, by number.
#[derive(Debug, Default)]
pub(super) struct Changes(pub BTreeMap<u32, Pages>);

impl Changes {
    /// Applies a record. `find` opens a segment that is changed for the first time.
    pub fn apply(
        &mut self,
        record: &Record<'_>,
        find: &mut dyn FnMut(u32) -> Result<(String, Arc<dyn Store>)>,
    ) -> Result<()> {
        let Contents::Commit(modifications) = &record.contents else { return Ok(()) };
        let mut result = Ok(());
        let listed = modifications.each(|change| {
            if result.is_ok() {
                result = self
                    .segment(change.segment, find)
                    .and_then(|pages| pages.insert(change.offset, change.data));
            }
        });
        listed.expect("the list was read when the record was checked");
        result
    }

    fn segment(
        &mut self,
        number: u32,
        find: &mut dyn FnMut(u32) -> Result<(String, Arc<dyn Store>)>,
    ) -> Result<&mut Pages> {
        match self.0.entry(number) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let (name, store) = find(number)?;
                Ok(entry.insert(Pages::new(name, store)?))
            }
        }
    }

    /// Makes the changes durable and is ready for the next ones. Returns their bytes.
    pub fn finish(&mut self) -> Result<u64> {
        self.0.values_mut().map(Pages::finish).sum()
    }
}
