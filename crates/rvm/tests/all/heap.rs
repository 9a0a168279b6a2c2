//! The heap against a plain map of blocks, with aborted transactions, and against programs that overwrite it.

use nvlab_rvm::heap::{Error, Heap, InRegion, Words};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Part, Region, Rvm};
use std::collections::BTreeMap;
use std::path::Path;

/// Words with the old values of a transaction, and the changed words counted.
#[derive(Clone)]
struct Memory {
    words: Vec<u64>,
    undo: Vec<(u64, u64)>,
}

impl Memory {
    fn new(bytes: usize) -> Memory {
        Memory { words: vec![0xdead_beef_dead_beef; bytes / 8], undo: Vec::new() }
    }

    fn abort(&mut self) {
        for (at, old) in self.undo.drain(..).rev() {
            self.words[at as usize / 8] = old;
        }
    }
}

impl Words for Memory {
    fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    fn get(&self, at: u64) -> u64 {
        self.words[at as usize / 8]
    }

    fn set(&mut self, at: u64, word: u64) -> nvlab_rvm::Result<()> {
        self.undo.push((at, self.get(at)));
        self.words[at as usize / 8] = word;
        Ok(())
    }
}

/// A small generator, so that a failing seed can be replayed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

fn fill(memory: &mut Memory, at: u64, bytes: u64, pattern: u64) {
    for at in (at..at + bytes / 8 * 8).step_by(8) {
        memory.set(at, pattern).unwrap();
    }
}

/// One history: blocks keep their contents, never overlap, and an abort undoes everything.
/// Returns how many allocations found no room.
fn history(seed: u64) -> u64 {
    let mut random = Random(seed);
    let (chunk, lists) = (32 + 16 * random.below(4), 1 + random.below(20));
    let mut memory = Memory::new(16384);
    let heap = Heap::create(&mut memory, chunk, lists).unwrap();
    let (mut blocks, mut refused) = (BTreeMap::<u64, (u64, u64)>::new(), 0);
    for step in 0..400 {
        memory.undo.clear();
        let before = blocks.clone();
        for _ in 0..1 + random.below(6) {
            let bytes = match random.below(8) {
                0 => random.below(4000),
                _ => random.below(200),
            };
            let victim = blocks.keys().nth(random.below(blocks.len().max(1) as u64) as usize).copied();
            match random.below(20) {
                0 => _ = heap.preallocate(&mut memory, bytes, random.below(5)),
                1..11 => match heap.allocate(&mut memory, bytes) {
                    Ok(at) => {
                        assert!(at % 16 == 0 && heap.usable(&memory, at).unwrap() >= bytes);
                        fill(&mut memory, at, bytes, seed ^ at);
                        blocks.insert(at, (bytes, seed ^ at));
                    }
                    Err(Error::NoRoom(_)) => {
                        assert!(!heap.fits(&memory, bytes).unwrap());
                        refused += 1;
                    }
                    Err(error) => panic!("seed {seed} step {step}: {error}"),
                },
                _ if let Some(at) = victim => {
                    heap.free(&mut memory, at).unwrap();
                    blocks.remove(&at);
                    let again = heap.free(&mut memory, at);
                    assert!(matches!(again, Err(Error::FreedTwice(_))), "seed {seed} step {step}: {again:?}");
                }
                _ => {}
            }
        }
        if random.below(4) == 0 {
            memory.abort();
            blocks = before;
        }
        heap.check(&memory).unwrap_or_else(|error| panic!("seed {seed} step {step}: {error}"));
        let mut used = Vec::new();
        heap.for_each_block(&memory, |at, bytes, is_used| used.extend(is_used.then_some((at, bytes))))
            .unwrap();
        assert!(used.iter().map(|(at, _)| at).eq(blocks.keys()), "seed {seed} step {step}");
        for (&at, &(bytes, pattern)) in &blocks {
            let intact = (at..at + bytes / 8 * 8).step_by(8).all(|at| memory.get(at) == pattern);
            assert!(intact, "seed {seed} step {step}: the block at {at}");
        }
    }
    for &at in blocks.keys() {
        heap.free(&mut memory, at).unwrap();
    }
    heap.check(&memory).unwrap();
    assert_eq!(heap.statistics(&memory).used_bytes, 0);
    refused
}

#[test]
fn blocks_keep_their_contents_and_aborts_undo_them() {
    let refused: u64 = (0..200).map(history).sum();
    assert!(refused > 100, "only {refused} allocations found no room");
}

#[test]
fn a_heap_freed_whole_is_one_block_again() {
    let mut memory = Memory::new(1 << 16);
    let heap = Heap::create(&mut memory, 64, 16).unwrap();
    let room = heap.statistics(&memory).free_bytes - 8;
    let blocks: Vec<u64> = (0..100).map(|i| heap.allocate(&mut memory, 8 * i).unwrap()).collect();
    for at in blocks.iter().step_by(2).chain(blocks.iter().skip(1).step_by(2)) {
        heap.free(&mut memory, *at).unwrap();
    }
    let all = heap.allocate(&mut memory, room).unwrap();
    assert!(matches!(heap.allocate(&mut memory, 1), Err(Error::NoRoom(1))));
    heap.free(&mut memory, all).unwrap();
    heap.check(&memory).unwrap();
}

/// What is logged for one allocation and one release that split and merge a large block: header, shrunk header and size,
/// the next block's header, two counters; and one counter more for the release.
#[test]
fn an_allocation_logs_few_words() {
    let mut memory = Memory::new(1 << 16);
    let heap = Heap::create(&mut memory, 32, 16).unwrap();
    memory.undo.clear();
    let at = heap.allocate(&mut memory, 80).unwrap();
    assert_eq!(memory.undo.len(), 6);
    memory.undo.clear();
    heap.free(&mut memory, at).unwrap();
    assert_eq!(memory.undo.len(), 7);
}

#[test]
fn preallocated_blocks_are_found_without_a_split() {
    let mut memory = Memory::new(1 << 16);
    let heap = Heap::create(&mut memory, 32, 16).unwrap();
    heap.preallocate(&mut memory, 50, 10).unwrap();
    heap.check(&memory).unwrap();
    heap.clear_statistics(&mut memory).unwrap();
    for _ in 0..10 {
        heap.allocate(&mut memory, 50).unwrap();
    }
    heap.allocate(&mut memory, 50).unwrap();
    let counted = heap.statistics(&memory);
    assert_eq!((counted.hits, counted.large_misses), (10, 1));
}

#[test]
fn a_heap_is_opened_only_where_there_is_one() {
    let mut memory = Memory::new(1 << 12);
    assert!(matches!(Heap::open(&memory), Err(Error::Version)));
    assert!(matches!(Heap::create(&mut memory, 40, 16), Err(Error::Invalid(_))));
    assert!(matches!(Heap::create(&mut memory, 16, 16), Err(Error::Invalid(_))));
    assert!(matches!(Heap::create(&mut memory, 32, 0), Err(Error::Invalid(_))));
    assert!(matches!(Heap::create(&mut memory, 32, 600), Err(Error::NoRoom(_))));
    assert!(matches!(Heap::create(&mut memory, 32, u64::MAX / 8), Err(Error::NoRoom(_))));
    let made = Heap::create(&mut memory, 32, 16).unwrap();
    let at = made.allocate(&mut memory, 100).unwrap();
    assert_eq!(Heap::length(&memory).unwrap(), 1 << 12);
    Heap::open(&memory).unwrap().free(&mut memory, at).unwrap();
    memory.words.truncate(300);
    assert!(matches!(Heap::open(&memory), Err(Error::Version)), "it was larger");
}

/// A program that writes past the end of a block is found out when either block is freed.
#[test]
fn overwritten_headers_are_found() {
    let mut memory = Memory::new(1 << 14);
    let heap = Heap::create(&mut memory, 32, 16).unwrap();
    let after = heap.allocate(&mut memory, 24).unwrap();
    let before = heap.allocate(&mut memory, 24).unwrap();
    assert_eq!(before + 32, after);
    memory.set(after - 8, 0).unwrap();
    assert!(matches!(heap.free(&mut memory, after), Err(Error::Damaged { .. })));
    assert!(matches!(heap.free(&mut memory, before), Err(Error::Damaged { .. })));
    assert!(matches!(heap.free(&mut memory, before + 1), Err(Error::Invalid(_))));
    assert!(matches!(heap.free(&mut memory, u64::MAX), Err(Error::Invalid(_))));
    assert!(heap.check(&memory).is_err());
}

/// Every bit of every word of the heap is flipped: each operation succeeds or fails with an error that names the damage, and never
/// reads or writes outside the heap (indexing a word outside [`Memory`] panics).
#[test]
fn flipped_bits_are_errors_or_without_effect() {
    let (mut succeeded, mut refused) = (0, 0);
    let mut memory = Memory::new(1 << 12);
    let heap = Heap::create(&mut memory, 32, 4).unwrap();
    let blocks: Vec<u64> = (0..20).map(|i| heap.allocate(&mut memory, 16 * (i % 5)).unwrap()).collect();
    for at in blocks.iter().step_by(3) {
        heap.free(&mut memory, *at).unwrap();
    }
    for word in 0..memory.words.len() {
        for bit in 0..64 {
            let mut damaged = memory.clone();
            damaged.words[word] ^= 1 << bit;
            let Ok(heap) = Heap::open(&damaged) else { continue };
            let checked = heap.check(&damaged);
            let allocated = heap.allocate(&mut damaged, 40);
            assert!(
                allocated.as_ref().is_ok_and(|&at| at + 40 <= 1 << 12) || allocated.is_err(),
                "{allocated:?}"
            );
            let freed = [blocks[1], blocks[4]].map(|at| heap.free(&mut damaged, at));
            for result in [checked, allocated.map(drop)].into_iter().chain(freed) {
                match result {
                    Ok(()) => succeeded += 1,
                    Err(
                        Error::Damaged { .. } | Error::Invalid(_) | Error::FreedTwice(_) | Error::NoRoom(_),
                    ) => refused += 1,
                    Err(other) => panic!("word {word}, bit {bit}: {other}"),
                }
            }
        }
    }
    assert!(succeeded > 1000 && refused > 1000, "{succeeded} succeeded, {refused} refused");
}

const SEGMENT: u64 = 1 << 16;
/// Where the heap is in the region: behind the offset of a list's first block.
const HEAP: std::ops::Range<usize> = 16..SEGMENT as usize;

fn open(folder: &Path) -> (Rvm, Region) {
    let log = FileLog::open(&folder.join("log")).unwrap();
    let rvm = Rvm::open(log, SegmentFolder::new(folder), Options::default()).unwrap();
    let region = rvm.map("data", 0..SEGMENT).unwrap();
    (rvm, region)
}

/// A list in the heap of a region: each block has the offset of the next and a number. Every second transaction is undone,
/// every eighth not forced, and the log is opened again in between.
#[test]
fn a_list_in_a_region_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    FileLog::create(&folder.path().join("log"), 1 << 16).unwrap();
    SegmentFolder::new(folder.path()).create("data", SEGMENT).unwrap();
    let (mut rvm, mut region) = open(folder.path());
    let mut transaction = region.begin();
    Heap::create(&mut InRegion::new(&mut transaction, Part::FIRST, HEAP), 32, 8).unwrap();
    transaction.commit().unwrap();
    for number in 0..64 {
        let mut transaction = region.begin();
        let first = *transaction.get_mut::<u64>(0).unwrap();
        let mut words = InRegion::new(&mut transaction, Part::FIRST, HEAP);
        let heap = Heap::open(&words).unwrap();
        let block = heap.allocate(&mut words, 16 + number).unwrap();
        words.set(block, first).unwrap();
        words.set(block + 8, number).unwrap();
        *transaction.get_mut::<u64>(0).unwrap() = block;
        match number % 8 {
            1 | 3 | 5 => transaction.abort().unwrap(),
            7 => drop(transaction),
            6 => transaction.commit_no_flush().unwrap(),
            _ => transaction.commit().unwrap(),
        }
        if number % 16 == 9 {
            drop((region, rvm));
            (rvm, region) = open(folder.path());
        }
    }
    let first = *region.get::<u64>(0).unwrap();
    let mut transaction = region.begin();
    let mut words = InRegion::new(&mut transaction, Part::FIRST, HEAP);
    let heap = Heap::open(&words).unwrap();
    heap.check(&words).unwrap();
    let (mut found, mut at) = (Vec::new(), first);
    while at != 0 {
        found.push(words.get(at + 8));
        let next = words.get(at);
        heap.free(&mut words, at).unwrap();
        at = next;
    }
    found.reverse();
    assert!(found.into_iter().eq((0..64).step_by(2)));
    assert_eq!(heap.statistics(&words).used_bytes, 0);
    transaction.commit().unwrap();
    drop(rvm);
}
