//! A hash table of chains of buckets: 15 entries each, in 32 words. It has as many chains as it was made with.

use crate::durable::{Durable, How};

const WORDS: usize = 32;
const SLOTS: usize = 15;
/// Of a bucket: which slots are used, in 16 bits, and the number of the next one; then keys, then values.
const KEYS: usize = 1;
const VALUES: usize = KEYS + SLOTS;
/// How many entries there are, the first free bucket, and how many buckets were ever used.
const COUNT: usize = 8;
const FREE: usize = 9;
const END: usize = 10;

pub struct Table {
    pub memory: Durable,
    chains: usize,
}

impl Table {
    pub fn new(elements: usize, how: How) -> Table {
        let chains = (elements / 16).next_power_of_two();
        let mut memory = Durable::new((1 + chains + chains / 8 + 64) * WORDS, how);
        memory.put(END, [1 + chains as u64]);
        memory.commit();
        Table { memory, chains }
    }

    pub fn of(memory: Durable, elements: usize) -> Table {
        Table { memory, chains: (elements / 16).next_power_of_two() }
    }

    #[inline]
    fn bucket(&self, number: usize) -> (u64, &[[u8; 8]]) {
        let words = &self.memory.words(number * WORDS)[..WORDS];
        (u64::from_le_bytes(words[0]), words)
    }

    fn chain(&self, key: u64) -> usize {
        1 + ((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.chains - 1))
    }

    #[inline]
    fn slot(head: u64, words: &[[u8; 8]], key: u64) -> Option<usize> {
        let found = words[KEYS..KEYS + SLOTS]
            .iter()
            .enumerate()
            .fold(0, |found, (slot, other)| found | u64::from(u64::from_le_bytes(*other) == key) << slot);
        let slot = (found & head).trailing_zeros() as usize;
        (slot < SLOTS).then_some(slot)
    }

    /// Inserts a key with itself as its value, or deletes it.
    #[inline]
    pub fn toggle(&mut self, key: u64) {
        let (mut at, mut before, mut free) = (self.chain(key), None, None);
        let count = self.memory.word(COUNT);
        loop {
            let (head, words) = self.bucket(at);
            if let Some(slot) = Self::slot(head, words, key) {
                let head = head & !(1 << slot);
                self.memory.put(COUNT, [count - 1]);
                match before.filter(|_| head & 0xffff == 0) {
                    Some((before, its)) => self.unlink(before, its, (at, head)),
                    None => self.memory.put(at * WORDS, [head]),
                }
                return self.memory.commit();
            }
            let unused = (!head).trailing_zeros() as usize;
            if unused < SLOTS && free.is_none() {
                free = Some((at, head, unused));
            }
            match (head >> 16) as usize {
                0 => break before = Some((at, head)),
                next => (before, at) = (Some((at, head)), next),
            }
        }
        let (at, head, slot) = free.unwrap_or_else(|| self.append(before.expect("the last one")));
        self.memory.put(COUNT, [count + 1]);
        self.memory.put(at * WORDS, [head | 1 << slot]);
        self.memory.put(at * WORDS + KEYS + slot, [key]);
        self.memory.put(at * WORDS + VALUES + slot, [key]);
        self.memory.commit();
    }

    /// Takes an empty bucket out of its chain.
    #[cold]
    fn unlink(&mut self, before: usize, its: u64, (at, head): (usize, u64)) {
        self.memory.put(before * WORDS, [its & 0xffff | head >> 16 << 16]);
        self.memory.put(at * WORDS, [self.memory.word(FREE)]);
        self.memory.put(FREE, [at as u64]);
    }

    /// Appends an empty bucket to a chain.
    #[cold]
    fn append(&mut self, (last, head): (usize, u64)) -> (usize, u64, usize) {
        let at = match self.memory.word(FREE) {
            0 => {
                let end = self.memory.word(END);
                self.memory.put(END, [end + 1]);
                end
            }
            free => {
                self.memory.put(FREE, [self.memory.word(free as usize * WORDS)]);
                free
            }
        };
        self.memory.put(last * WORDS, [head | at << 16]);
        (at as usize, 0, 0)
    }

    /// Every key, sorted; and whether their count is what the table says.
    pub fn keys(&self) -> (Vec<u64>, bool) {
        let mut keys = Vec::new();
        for chain in 1..=self.chains {
            let mut at = chain;
            while at != 0 {
                let (head, words) = self.bucket(at);
                for slot in (0..SLOTS).filter(|slot| head >> slot & 1 == 1) {
                    let [key, value] = [words[KEYS + slot], words[VALUES + slot]].map(u64::from_le_bytes);
                    assert!(key == value && self.chain(key) == chain, "key {key} in chain {chain}");
                    keys.push(key);
                }
                at = (head >> 16) as usize;
            }
        }
        keys.sort_unstable();
        let count = keys.len() as u64;
        (keys, count == self.memory.word(COUNT))
    }
}
