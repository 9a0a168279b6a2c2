//! FIFO: the segment that was filled first (section 4.4). One that is live throughout is passed over.

use super::Candidates;

/// The place of the victim.
pub(super) fn choose(candidates: Candidates) -> Option<usize> {
    candidates.gaining().next().map(|(place, _)| place)
}
