//! FIFO: the segment that was filled first (section 4.4). A fully live one is skipped.

use super::Candidates;

/// The index of the victim.
pub(super) fn choose(candidates: Candidates) -> Option<usize> {
    candidates.gaining().next().map(|(place, _)| place)
}
