//! Random command lines: whatever is typed, the program ends with a documented status, never with a bug, and no file of
//! the user is lost.
//!
//! The grammar is the program's own: verbs and options are read from its help, keys and their values from the key table.
//! Each line is a function of (seed, number). The gate runs some hundred; `make fuzz` runs 20,000, and NVLAB_FUZZ_COUNT,
//! NVLAB_FUZZ_SEED and NVLAB_FUZZ_FIRST choose others. A failure prints how to run its line alone.

#![cfg(target_os = "linux")]

use crate::lines::grammar::{Grammar, Line};
use crate::lines::scratch::{Ended, Scratch};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const COUNT: u64 = 300;
const SEED: u64 = 1;
/// One in this many lines may exceed its time limit.
const SLOW_ONE_OF: u64 = 10;

/// The statuses of `nvlab explain exit-codes` that input can cause. 130 and 141 are signals that are not sent here.
const DOCUMENTED: [i32; 5] = [0, 1, 2, 3, 4];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// What is wrong with the outcome of a line.
fn wrong(line: &Line, ended: &Ended, scratch: &Scratch) -> Vec<String> {
    let mut wrong = Vec::new();
    match ended.status {
        None => {}
        Some(status) if DOCUMENTED.contains(&status) => {}
        Some(status) => wrong.push(format!("ended with {status}")),
    }
    if ended.said.contains("panicked at") || ended.said.contains("bug in nvlab") {
        wrong.push("a panic".to_string());
    }
    wrong.extend(scratch.lost(line.outputs()));
    wrong
}

#[test]
fn no_command_line_ends_in_a_fault_or_loses_a_file() {
    let (seed, count) = (number("NVLAB_FUZZ_SEED", SEED), number("NVLAB_FUZZ_COUNT", COUNT));
    let first = number("NVLAB_FUZZ_FIRST", 0);
    let grammar = Grammar::of_the_program();
    let (next, slow, failures) = (AtomicU64::new(first), AtomicU64::new(0), Mutex::new(Vec::new()));
    let statuses: Mutex<[u64; 5]> = Mutex::new([0; 5]);
    let work = |worker: usize| {
        let mut scratch = Scratch::new(worker);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= first + count {
                break;
            }
            let line = grammar.line(seed, number);
            let ended = scratch.run(&line);
            match ended.status {
                None => drop(slow.fetch_add(1, Ordering::Relaxed)),
                Some(status) => {
                    if let Some(count) = statuses.lock().unwrap().get_mut(status as usize) {
                        *count += 1;
                    }
                }
            }
            let wrong = wrong(&line, &ended, &scratch);
            if !wrong.is_empty() {
                let text = ended.said.lines().take(8).collect::<Vec<_>>().join("\n    ");
                let again = format!("NVLAB_FUZZ_SEED={seed} NVLAB_FUZZ_FIRST={number} NVLAB_FUZZ_COUNT=1");
                failures
                    .lock()
                    .unwrap()
                    .push(format!("{again}\n  {line}\n  {}\n    {text}", wrong.join("; ")));
            }
            scratch.restore();
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(2, |count| count.get());
        (0..workers).for_each(|worker| drop(scope.spawn(move || work(worker))));
    });
    let (slow, failures) = (slow.into_inner(), failures.into_inner().unwrap());
    let statuses = statuses.into_inner().unwrap();
    println!("{count} lines: statuses 0 to 4 {statuses:?}, {slow} took too long, {} failed", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    if count >= COUNT {
        assert!(slow * SLOW_ONE_OF <= count, "{slow} of {count} lines took too long");
        assert!(statuses[0] * 8 > count && statuses[2] * 8 > count, "the lines are all alike: {statuses:?}");
    }
}
