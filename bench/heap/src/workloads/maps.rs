//! Inserts and deletes random keys: an operation takes a random key of [`KEYS`], inserts it if it is absent and deletes it if it
//! is present, so that half of them are there all the time. Keys and values have 8 B.

use super::{Driver, Part, scramble};
use crate::Result;
use nvlab_units::Rng;

/// Keys that there may be: 500,000 are there on average. A multiple of all numbers of threads.
pub const KEYS: u64 = 1_000_000;

/// A map, sorted or hashed.
pub trait Map: Sync {
    /// Inserts many keys into an empty map, in any order and not necessarily durably.
    fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()>;
    /// Inserts a key that is absent.
    fn insert(&self, key: u64, value: u64) -> Result<()>;
    /// Deletes a key; whether it was there.
    fn delete(&self, key: u64) -> Result<bool>;
    /// Passes on every key and value.
    fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()>;
    fn close(self: Box<Self>) -> Result<()>;
}

pub struct MapDriver {
    /// The value of each key, 0 if it is absent.
    values: Vec<u64>,
}

/// What a thread knows: which of its keys are there.
pub struct Present {
    rng: Rng,
    part: Part,
    bits: Vec<u64>,
}

impl Present {
    /// The next key's number, the value to insert, and whether it is there now; it no longer is what it was.
    fn next(&mut self) -> (u64, u64, bool) {
        let mine = self.rng.below(KEYS / self.part.threads);
        let (word, bit) = ((mine / 64) as usize, 1 << (mine % 64));
        let was_there = self.bits[word] & bit != 0;
        self.bits[word] ^= bit;
        (mine * self.part.threads + self.part.thread, self.rng.bits() | 1, was_there)
    }
}

/// The value with which key `number` begins; 0: it is absent.
fn value_at_start(number: u64) -> u64 {
    let word = scramble(!number);
    if word & 2 == 0 { 0 } else { word | 1 }
}

impl MapDriver {
    pub fn new() -> MapDriver {
        MapDriver { values: (0..KEYS).map(value_at_start).collect() }
    }

    pub fn load(store: &dyn Map) -> Result<()> {
        let pairs = (0..KEYS).map(|number| (scramble(number), value_at_start(number)));
        store.load(&mut pairs.filter(|&(_, value)| value != 0))
    }
}

impl Driver for MapDriver {
    type Store = dyn Map;
    type Worker = Present;

    fn worker(&self, part: Part) -> Present {
        let mut bits = vec![0; (KEYS / part.threads).div_ceil(64) as usize];
        for mine in 0..KEYS / part.threads {
            let is_there = self.values[(mine * part.threads + part.thread) as usize] != 0;
            bits[(mine / 64) as usize] |= u64::from(is_there) << (mine % 64);
        }
        Present { rng: part.rng(), part, bits }
    }

    fn operation(store: &dyn Map, worker: &mut Present) -> Result<()> {
        let (number, value, was_there) = worker.next();
        let key = scramble(number);
        if !was_there {
            return store.insert(key, value);
        }
        if store.delete(key)? { Ok(()) } else { Err(format!("the key {key} is not there").into()) }
    }

    fn replay(&mut self, part: Part, count: u64, _: &Present) -> Result<()> {
        let mut worker = self.worker(part);
        for _ in 0..count {
            let (number, value, was_there) = worker.next();
            self.values[number as usize] = if was_there { 0 } else { value };
        }
        Ok(())
    }

    fn verify(&mut self, store: &dyn Map) -> Result<()> {
        let wanted = (0..KEYS).zip(&self.values).filter(|(_, value)| **value != 0);
        let wanted: std::collections::HashMap<u64, u64> =
            wanted.map(|(number, value)| (scramble(number), *value)).collect();
        let mut count = 0;
        store.each(&mut |key, value| {
            count += 1;
            match wanted.get(&key) {
                Some(wanted) if *wanted == value => Ok(()),
                wanted => Err(format!("the key {key} has {value} instead of {wanted:?}").into()),
            }
        })?;
        if count != wanted.len() {
            return Err(format!("{count} keys instead of {}", wanted.len()).into());
        }
        Ok(())
    }

    fn close(store: Box<dyn Map>) -> Result<()> {
        store.close()
    }
}
