//! Inserts and deletes random keys: an operation takes a random key, inserts it if it is absent and deletes it if it is
//! present, so that half of the keys are there all the time. Keys and values have 8 B.

use super::{Driver, Part, Result, Several, scramble};
use nvlab_units::Rng;

/// A map from keys to values, sorted or hashed, shared by several threads.
pub trait Map: Sync {
    /// Inserts many keys into an empty map, in any order and not necessarily durably.
    fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()>;
    /// Inserts a key that the caller knows to be absent.
    fn insert(&self, key: u64, value: u64) -> Result<()>;
    /// Deletes a key; true if it was there.
    fn delete(&self, key: u64) -> Result<bool>;
    /// [`Driver::together`].
    fn together(&self, operations: Several<'_>) -> Result<()> {
        operations()
    }
    /// Calls `each` with every key and its value, in any order.
    fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()>;
    /// Closes the store; an error if it cannot be written.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Inserts and deletes, with the pairs that stores must hold.
#[derive(Debug)]
pub struct MapDriver {
    /// The value of each key, 0 if it is absent.
    values: Vec<u64>,
}

/// What a thread knows: which of its keys are there.
#[derive(Debug)]
pub struct Present {
    rng: Rng,
    part: Part,
    keys: u64,
    bits: Vec<u64>,
}

/// A key's number, the value to insert, and whether the key is there.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    number: u64,
    value: u64,
    is_there: bool,
}

/// The value with which key `number` begins; 0: it is absent.
fn value_at_start(number: u64) -> u64 {
    let word = scramble(!number);
    if word & 2 == 0 { 0 } else { word | 1 }
}

impl MapDriver {
    /// Of `keys` keys half are there. The number of threads must divide it.
    pub fn new(keys: u64) -> MapDriver {
        MapDriver { values: (0..keys).map(value_at_start).collect() }
    }
}

impl Driver for MapDriver {
    type Store = dyn Map;
    type Worker = Present;
    type Operation = Change;

    fn load(&self, store: &dyn Map) -> Result<()> {
        let pairs = (0..self.values.len() as u64).map(|number| (scramble(number), value_at_start(number)));
        store.load(&mut pairs.filter(|&(_, value)| value != 0))
    }

    fn worker(&self, part: Part) -> Present {
        let keys = self.values.len() as u64 / part.threads;
        let mut bits = vec![0; keys.div_ceil(64) as usize];
        for mine in 0..keys {
            let is_there = self.values[(mine * part.threads + part.thread) as usize] != 0;
            bits[(mine / 64) as usize] |= u64::from(is_there) << (mine % 64);
        }
        Present { rng: part.rng(), part, keys, bits }
    }

    fn draw(worker: &mut Present) -> Change {
        let mine = worker.rng.below(worker.keys);
        let (word, bit) = ((mine / 64) as usize, 1 << (mine % 64));
        let is_there = worker.bits[word] & bit != 0;
        worker.bits[word] ^= bit;
        let number = mine * worker.part.threads + worker.part.thread;
        Change { number, value: worker.rng.bits() | 1, is_there }
    }

    fn apply(store: &dyn Map, _: &mut Present, change: &Change) -> Result<()> {
        let key = scramble(change.number);
        if !change.is_there {
            return store.insert(key, change.value);
        }
        if store.delete(key)? { Ok(()) } else { Err(format!("the key {key} is missing").into()) }
    }

    fn together(store: &dyn Map, operations: Several<'_>) -> Result<()> {
        store.together(operations)
    }

    fn replay(&mut self, part: Part, count: u64, _: &Present) -> Result<()> {
        let mut worker = self.worker(part);
        for _ in 0..count {
            let Change { number, value, is_there } = Self::draw(&mut worker);
            self.values[number as usize] = if is_there { 0 } else { value };
        }
        Ok(())
    }

    fn verify(&mut self, store: &dyn Map) -> Result<()> {
        let wanted = (0..).zip(&self.values).filter(|(_, value)| **value != 0);
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
