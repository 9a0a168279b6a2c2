//! Heaps in a simulated cache.

use nvlab_nvheap::{CrashPoint, Options, Persistence, Simulated};
use std::cell::Cell;
use std::fs::File;
use std::sync::Arc;

thread_local! {
    static HAS_CHECKSUMS: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test on heaps of both kinds.
pub fn with_and_without_checksums(test: impl Fn()) {
    for checksums in [true, false] {
        HAS_CHECKSUMS.set(checksums);
        test();
    }
}

/// A small heap with one log of so many bytes.
pub fn options(simulated: &Arc<Simulated>, log_bytes: u64) -> Options {
    Options {
        persistence: Persistence::Simulated(simulated.clone()),
        bytes_max: 2 << 20,
        logs: 1,
        log_bytes,
        checksums: HAS_CHECKSUMS.get(),
        ..Options::default()
    }
}

/// A file in memory.
pub fn file() -> File {
    nvlab_os::file::anonymous(c"heap", false).unwrap()
}

/// A random number, by xorshift.
pub fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Whether as much is to be tried as is practical, instead of what takes seconds: NVLAB_EXHAUSTIVE=1.
pub fn is_exhaustive() -> bool {
    std::env::var_os("NVLAB_EXHAUSTIVE").is_some()
}

/// Images of a crash point: all of them if there are at most `all_max`, otherwise so many random ones and the extremes; a sixteenth of
/// both if not everything is to be tried.
pub fn images(point: &CrashPoint, seed: &mut u64, all_max: usize, random: usize) -> Vec<Vec<u8>> {
    let choices = point.choices();
    let all = choices.iter().try_fold(1_usize, |all, &choices| all.checked_mul(choices));
    let numbered = |mut number: usize| {
        point.image(|line| {
            let pick = number % choices[line];
            number /= choices[line];
            pick
        })
    };
    match all.filter(|&all| all <= all_max) {
        Some(all) => (0..all).map(numbered).collect(),
        None => {
            let mut images = vec![point.image(|_| 0), point.image(|line| choices[line] - 1)];
            let part = if is_exhaustive() { 1 } else { 16 };
            // The first lines, those of a log, are durable and the others are not; and the other way round.
            for end in (1..choices.len().min(40)).step_by(part) {
                images.push(point.image(|line| if line < end { choices[line] - 1 } else { 0 }));
                images.push(point.image(|line| if line < end { 0 } else { choices[line] - 1 }));
            }
            images.extend(
                (0..random.div_ceil(part)).map(|_| point.image(|line| draw(seed) as usize % choices[line])),
            );
            images
        }
    }
}
