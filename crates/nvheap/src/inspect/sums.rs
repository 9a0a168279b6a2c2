//! Compares a heap with its checksums, if it has them.

use super::survey::{Problems, View};
use crate::compare::WRONG;
use crate::error::Result;
use crate::layout::PAGE;
use crate::space::{self, Kind};
use std::sync::atomic::Ordering;

/// Compares the lists of all logs and every page in use. An open heap has nothing left to write home.
pub(super) fn compare(view: View<'_>, problems: &mut Problems) -> Result<()> {
    let View { memory, layout, .. } = view;
    let Some(sums) = memory.sums() else { return Ok(()) };
    for line in sums.find_wrong_heads(memory)? {
        problems.add(line, WRONG);
    }
    let (mut page, pages) = (0, (memory.bytes() - layout.data()) / PAGE);
    while page < pages {
        let count = match space::kind(memory, layout, page)? {
            Kind::Small(_) => 1,
            Kind::Large(count) if count <= pages - page => count,
            // The survey says what is wrong with it, if anything.
            _ => {
                page += 1;
                continue;
            }
        };
        for page in page..page + count {
            match sums.wrong(memory, page) {
                Ok(None) => {}
                Ok(Some(line)) => problems.add(line, WRONG),
                Err(error) => problems.add(layout.bytes(page), error.to_string()),
            }
        }
        for inner in page + 1..page + count {
            let entry = layout.page_table() + inner * 8;
            if memory.word(entry)?.load(Ordering::Relaxed) != 0 {
                problems.add(entry, "the page table has a word for the middle of a large block");
            }
        }
        page += count;
    }
    Ok(())
}
