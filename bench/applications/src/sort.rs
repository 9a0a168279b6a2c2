//! An out-of-core integer sort after the kernel IS of the NAS Parallel Benchmarks (Bailey et al., RNR-94-007): its keys,
//! by its random numbers; the bucket sort is ours.
//!
//! 1. `load` writes the keys, four bytes each.
//! 2. `run` reads them and counts the keys of each bucket, reads them again and writes each to its bucket's place in a
//!    second file, then reads each bucket, sorts it by counting and writes it back.
//! 3. `verify` reads both files: the second is sorted, and a permutation of the first.
//!
//! Memory: a chunk of 16 KiB for each bucket, two pieces of 256 KiB, and the largest bucket twice.

use crate::Result;
use crate::direct::{Buffer, DirectFile, Durability};
use std::path::{Path, PathBuf};

const KEY_BYTES: usize = size_of::<u32>();
/// What is read or written at once where there is a choice.
const PIECE_BYTES: usize = 256 << 10;
/// What is kept for a bucket until it is written; each bucket begins at a multiple of it.
const CHUNK_BYTES: usize = 16 << 10;
const CHUNK_KEYS: usize = CHUNK_BYTES / KEY_BYTES;
/// Fills the last chunk of a bucket; greater than any key.
const PADDING: u32 = u32::MAX;

/// A problem size.
#[derive(Clone, Copy)]
pub struct Class {
    keys: u64,
    /// Keys are below this, a power of two.
    key_end: u32,
    buckets: u32,
}

impl Class {
    /// Class B: 128 MiB of keys. With the buckets 256 MiB; the talk's NAS kernels have 8 to 35 GB, of which 1/128 are 64
    /// to 280 MiB.
    pub const RECORDED: Class = Class { keys: 1 << 25, key_end: 1 << 21, buckets: 256 };

    fn bucket_of(self, key: u32) -> usize {
        (key / (self.key_end / self.buckets)) as usize
    }
}

/// The random numbers of NPB: x = 5^13 x mod 2^46, as a fraction of 2^46.
struct NasRandom(u64);

impl NasRandom {
    const SEED: u64 = 314_159_265;

    fn next(&mut self) -> f64 {
        const MODULUS: u64 = 1 << 46;
        self.0 = (u128::from(self.0) * 5u128.pow(13) % u128::from(MODULUS)) as u64;
        self.0 as f64 / MODULUS as f64
    }

    /// A key: the mean of four numbers.
    fn key(&mut self, key_end: u32) -> u32 {
        let sum = self.next() + self.next() + self.next() + self.next();
        (f64::from(key_end / 4) * sum) as u32
    }
}

pub struct Sort {
    folder: PathBuf,
    class: Class,
}

impl Sort {
    pub fn in_folder(folder: &Path, class: Class) -> Sort {
        Sort { folder: folder.to_path_buf(), class }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn load(&self) -> Result<String> {
        let file = DirectFile::create(&self.path("keys"), self.class.keys * KEY_BYTES as u64)?;
        let (mut random, mut piece) = (NasRandom(NasRandom::SEED), Buffer::new(PIECE_BYTES));
        for offset in (0..file.bytes()?).step_by(PIECE_BYTES) {
            let bytes = PIECE_BYTES.min((file.bytes()? - offset) as usize);
            piece.of_mut().fill_with(|| random.key(self.class.key_end));
            file.write(offset, &piece.bytes()[..bytes])?;
        }
        file.sync()?;
        Ok(format!("{} keys below {}", self.class.keys, self.class.key_end))
    }

    pub fn run(&self) -> Result<String> {
        let keys = DirectFile::open(&self.path("keys"), Durability::OnSync)?;
        let places = self.places(&keys)?;
        let end = places.last().map_or(0, Place::end);
        let sorted = DirectFile::create(&self.path("sorted"), end)?;
        self.distribute(&keys, &places, &sorted)?;
        let mut counts = vec![0; (self.class.key_end / self.class.buckets) as usize];
        for (bucket, place) in places.iter().enumerate() {
            let mut buffer = Buffer::new(place.bytes() as usize);
            for_pieces(place, |at, range| sorted.read(at, &mut buffer.bytes_mut()[range]))?;
            let first = bucket as u32 * counts.len() as u32;
            sort_by_counting(&mut buffer.of_mut::<u32>()[..place.keys as usize], first, &mut counts);
            for_pieces(place, |at, range| sorted.write(at, &buffer.bytes()[range]))?;
        }
        sorted.sync()?;
        Ok(format!("{} keys sorted in {} buckets", self.class.keys, self.class.buckets))
    }

    /// Where each bucket goes.
    fn places(&self, keys: &DirectFile) -> Result<Vec<Place>> {
        let mut places = vec![Place { offset: 0, keys: 0 }; self.class.buckets as usize];
        for_keys(keys, |key| {
            places[self.class.bucket_of(key)].keys += 1;
            Ok(())
        })?;
        let mut offset = 0;
        for place in &mut places {
            place.offset = offset;
            offset = place.end();
        }
        Ok(places)
    }

    /// Writes each key to its bucket's place.
    fn distribute(&self, keys: &DirectFile, places: &[Place], sorted: &DirectFile) -> Result<()> {
        let mut chunks: Vec<Buffer> = places.iter().map(|_| Buffer::new(CHUNK_BYTES)).collect();
        let mut filled: Vec<(u64, usize)> = places.iter().map(|place| (place.offset, 0)).collect();
        for_keys(keys, |key| {
            let bucket = self.class.bucket_of(key);
            let (offset, count) = &mut filled[bucket];
            chunks[bucket].of_mut()[*count] = key;
            *count += 1;
            if *count == CHUNK_KEYS {
                sorted.write(*offset, chunks[bucket].bytes())?;
                (*offset, *count) = (*offset + CHUNK_BYTES as u64, 0);
            }
            Ok(())
        })?;
        for (chunk, (offset, count)) in chunks.iter_mut().zip(filled).filter(|(_, (_, count))| *count > 0) {
            chunk.of_mut()[count..].fill(PADDING);
            sorted.write(offset, chunk.bytes())?;
        }
        Ok(())
    }

    /// Sorted, and as many keys of the same sums as there were.
    pub fn verify(&self) -> Result<String> {
        let [mut before, mut after] = [Sums::default(); 2];
        for_keys(&DirectFile::open(&self.path("keys"), Durability::OnSync)?, |key| {
            before.add(key);
            Ok(())
        })?;
        let mut last = 0;
        for_keys(&DirectFile::open(&self.path("sorted"), Durability::OnSync)?, |key| {
            if key == PADDING {
                return Ok(());
            }
            after.add(key);
            if std::mem::replace(&mut last, key) > key {
                return Err(format!("key {} is before {key}", after.keys).into());
            }
            Ok(())
        })?;
        if before != after || after.keys != self.class.keys {
            return Err(format!("not a permutation: {before:?} became {after:?}").into());
        }
        Ok(format!("{} keys are sorted, and a permutation", self.class.keys))
    }
}

/// The place of a bucket in its file.
#[derive(Clone, Copy)]
struct Place {
    offset: u64,
    keys: u64,
}

impl Place {
    fn bytes(&self) -> u64 {
        self.keys.div_ceil(CHUNK_KEYS as u64) * CHUNK_BYTES as u64
    }
    fn end(&self) -> u64 {
        self.offset + self.bytes()
    }
}

/// Calls `each` with the places in the file and in the bucket of its pieces.
fn for_pieces(place: &Place, mut each: impl FnMut(u64, std::ops::Range<usize>) -> Result<()>) -> Result<()> {
    let bytes = place.bytes() as usize;
    for at in (0..bytes).step_by(PIECE_BYTES) {
        each(place.offset + at as u64, at..bytes.min(at + PIECE_BYTES))?;
    }
    Ok(())
}

fn for_keys(file: &DirectFile, mut each: impl FnMut(u32) -> Result<()>) -> Result<()> {
    let (end, mut piece) = (file.bytes()?, Buffer::new(PIECE_BYTES));
    for offset in (0..end).step_by(PIECE_BYTES) {
        let bytes = PIECE_BYTES.min((end - offset) as usize);
        file.read(offset, &mut piece.bytes_mut()[..bytes])?;
        piece.of::<u32>()[..bytes / KEY_BYTES].iter().try_for_each(|&key| each(key))?;
    }
    Ok(())
}

/// Sorts keys from `first` on; `counts` has a place for each value.
fn sort_by_counting(keys: &mut [u32], first: u32, counts: &mut [usize]) {
    counts.fill(0);
    keys.iter().for_each(|&key| counts[(key - first) as usize] += 1);
    let mut at = 0;
    for (value, &count) in (first..).zip(&*counts) {
        keys[at..at + count].fill(value);
        at += count;
    }
}

/// What a permutation does not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    keys: u64,
    sum: u64,
    mixed: u64,
}

impl Sums {
    fn add(&mut self, key: u32) {
        self.keys += 1;
        self.sum += u64::from(key);
        let mixed = (u64::from(key) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.mixed = self.mixed.wrapping_add((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class S of NPB.
    const SMALL: Class = Class { keys: 1 << 16, key_end: 1 << 11, buckets: 16 };

    #[test]
    fn keys_are_those_of_npb() {
        // The partial verification of class S, iteration 1: the ranks of five keys, after two were replaced.
        let mut random = NasRandom(NasRandom::SEED);
        let mut keys: Vec<u32> = (0..SMALL.keys).map(|_| random.key(SMALL.key_end)).collect();
        (keys[1], keys[11]) = (1, SMALL.key_end - 1);
        let rank = |index: usize| keys.iter().filter(|&&key| key < keys[index]).count();
        assert_eq!([48427, 17148, 23627, 62548, 4431].map(rank), [1, 19, 347, 64916, 65462]);
    }

    #[test]
    fn what_is_not_sorted_or_no_permutation_is_found() {
        let folder = tempfile::tempdir_in(".").unwrap();
        let sort = Sort::in_folder(folder.path(), SMALL);
        sort.load().unwrap();
        sort.run().unwrap();
        sort.verify().unwrap();
        let sorted = DirectFile::open(&sort.path("sorted"), Durability::OnSync).unwrap();
        let mut right = Buffer::new(PIECE_BYTES);
        let bytes = PIECE_BYTES.min(sorted.bytes().unwrap() as usize);
        sorted.read(0, &mut right.bytes_mut()[..bytes]).unwrap();
        let keys: Vec<u32> = right.of::<u32>().to_vec();
        // The middle bucket is full there.
        let step =
            (bytes / KEY_BYTES / 2..).find(|&at| keys[at] < keys[at + 1] && keys[at + 1] != PADDING).unwrap();
        let mut with = |change: &dyn Fn(&mut [u32])| {
            let changed = right.of_mut::<u32>();
            changed.copy_from_slice(&keys);
            change(changed);
            sorted.write(0, &right.bytes()[..bytes]).unwrap();
            sort.verify()
        };
        assert!(with(&|keys| keys.swap(step, step + 1)).unwrap_err().to_string().contains("is before"));
        assert!(
            with(&|keys| keys[step] = keys[step + 1]).unwrap_err().to_string().contains("not a permutation")
        );
        with(&|_| ()).unwrap();
    }
}
