//! Response times of requests whose ends are events of their own, as in the text of blkparse.
//!
//! 1. An end belongs to the oldest request of its volume and operation that begins at the same address and has not ended; that
//!    of a flush to the oldest flush. A request may end in pieces.
//! 2. A few requests may lack an end: those in flight when the recording stopped, and events that the recorder lost. They are
//!    taken to have lasted as long as the longest other one, or until the recording stopped. If more than [`MISSING_MAX`] lack
//!    one, no response times are known.

use super::store::Store;
use crate::Op;
use crate::columns::op_of;
use std::collections::{HashMap, VecDeque};

/// Of so many requests, one may lack its end; and so many may in any case.
const MISSING_MAX: usize = 1000;
const MISSING_FEW: usize = 256;

/// The end of a request, in the ticks of its trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub ticks: u64,
    pub offset: u64,
    pub bytes: u64,
    pub op: u8,
    pub volume: u16,
}

/// What was found.
#[derive(Default)]
pub(super) struct Responses {
    /// Of each row; empty if they are not known.
    pub ticks: Vec<u64>,
    /// Rows with an end, and without.
    pub answered: u64,
    pub unanswered: u64,
}

/// Of the rows of `store`, which are settled and sorted by time.
pub(super) fn responses(store: &Store, completions: &mut [Completion]) -> Responses {
    const UNKNOWN: u64 = u64::MAX;
    completions.sort_by_key(|one| one.ticks);
    let count = store.ticks.len();
    let mut response = vec![UNKNOWN; count];
    // Rows in flight and the bytes of each that are not done, by volume, operation and address.
    let mut in_flight: HashMap<(u16, u8, u64), VecDeque<(usize, u64)>> = HashMap::new();
    let mut next = 0;
    for end in completions.iter() {
        while next < count && store.ticks[next] <= end.ticks {
            let key = (store.volume[next], op_of(store.op[next]) as u8, store.offset[next]);
            in_flight.entry(key).or_default().push_back((next, store.bytes[next].into()));
            next += 1;
        }
        let Some(waiting) = in_flight.get_mut(&(end.volume, end.op, end.offset)) else { continue };
        let Some((row, left)) = waiting.pop_front() else { continue };
        if waiting.is_empty() {
            in_flight.remove(&(end.volume, end.op, end.offset));
        }
        let is_piece = end.op != Op::Flush as u8 && (1..left).contains(&end.bytes);
        if is_piece {
            let rest = (end.volume, end.op, end.offset + end.bytes);
            in_flight.entry(rest).or_default().push_front((row, left - end.bytes));
        } else {
            response[row] = end.ticks - store.ticks[row];
        }
    }
    let known = || response.iter().copied().filter(|&ticks| ticks != UNKNOWN);
    let (answered, longest) = (known().count(), known().max().unwrap_or(0));
    let unanswered = count - answered;
    let found = Responses { answered: answered as u64, unanswered: unanswered as u64, ticks: Vec::new() };
    if answered == 0 || unanswered > MISSING_FEW.max(count / MISSING_MAX) || unanswered > answered {
        return found;
    }
    let last = completions.last().map_or(0, |end| end.ticks);
    for (ticks, at) in response.iter_mut().zip(&store.ticks).filter(|(ticks, _)| **ticks == UNKNOWN) {
        *ticks = longest.min(last.saturating_sub(*at));
    }
    Responses { ticks: response, ..found }
}
