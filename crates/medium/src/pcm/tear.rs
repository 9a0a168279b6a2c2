//! What a power cut leaves of the write in progress: how far it had come, and the words being programmed.

use super::config::PcmConfig;
use super::part;
use super::select::Select;
use crate::Store;
use crate::banks::pieces;
use crate::undo::Entry;
use nvlab_units::{Rng, Time};

/// The bytes `[done, under_way)` being programmed at a cut; everything below is new, everything above old.
/// Between two steps the range is empty, and inside an atomic unit only if a step of that unit was done.
pub(super) fn frontier<S: Store>(
    (config, select): (&PcmConfig, Select),
    store: &S,
    entry: &Entry<()>,
    at: Time,
) -> (u64, u64) {
    let mut new = vec![0; entry.old.len()];
    store.read(entry.offset, &mut new);
    let mut steps = select.differing(entry.offset, &entry.old, &new);
    let (elapsed, program) = ((at - entry.start).ps(), config.program.ps());
    let last_done = match elapsed / program {
        0 => None,
        done => steps.nth(done as usize - 1),
    };
    let (next, bytes) = steps.next().expect("a write under way has a step to program");
    if !elapsed.is_multiple_of(program) {
        return (next, next + bytes);
    }
    let (last_done, _) = last_done.expect("a write that has begun and is between two steps");
    let unit = config.atomic_bytes as u64;
    let done = if last_done / unit == next / unit { next } else { next / unit * unit };
    (done, done)
}

/// Leaves the words of `[done, under_way)` that were being programmed with arbitrary contents.
pub(super) fn spoil<S: Store>(
    word_bytes: u64,
    all: bool,
    store: &mut S,
    entry: &Entry<()>,
    (done, under_way): (u64, u64),
    rng: &mut Rng,
) {
    for (offset, bytes) in pieces(done, under_way - done, word_bytes) {
        let mut new = vec![0; bytes as usize];
        store.read(offset, &mut new);
        if all || part(&entry.old, entry.offset, (offset, bytes)) != new {
            let garbage: Vec<u8> = (0..word_bytes).map(|_| rng.bits() as u8).collect();
            store.write(offset / word_bytes * word_bytes, &garbage);
        }
    }
}
