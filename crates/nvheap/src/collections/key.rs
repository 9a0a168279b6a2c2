//! Requirements of maps on their keys.

use crate::error::Result;
use crate::hash::{fold, hash_bytes};
use crate::persist::{Brand, Persist};
use crate::string::PString;
use crate::tx::Tx;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A key of [`crate::PBTreeMap`] or [`crate::PHashMap`].
///
/// Every type with an order and a hash is a key and is looked up by reference; [`PString`] is looked up by `&str`.
/// The hash is part of the format, so `Hash` must not change between versions of a program: `#[derive(Hash)]` does
/// not.
pub trait Key<H: Brand>: Persist<H> {
    /// The type used to look up a key.
    type Query: ?Sized;

    /// Compares it with a query.
    fn compare(&self, tx: &Tx<'_, H>, query: &Self::Query) -> Result<Ordering>;

    /// Compares it with another key.
    fn compare_keys(&self, tx: &Tx<'_, H>, other: &Self) -> Result<Ordering>;

    /// The hash of a query.
    fn hash_query(query: &Self::Query, seed: u64) -> u64;

    /// Its own hash.
    fn hash_key(&self, tx: &Tx<'_, H>, seed: u64) -> Result<u64>;
}

/// A hash that is the same in all versions of a program.
struct Stable(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Stable {
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.0 ^ FACTOR, 0xd6e8_feb8_6659_fd93)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash_bytes(self.0, bytes);
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = fold(self.0 ^ value, FACTOR).wrapping_add(value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

impl<H: Brand, K: Persist<H> + Ord + Hash> Key<H> for K {
    type Query = K;

    #[inline]
    fn compare(&self, _: &Tx<'_, H>, query: &K) -> Result<Ordering> {
        Ok(self.cmp(query))
    }

    #[inline]
    fn compare_keys(&self, _: &Tx<'_, H>, other: &K) -> Result<Ordering> {
        Ok(self.cmp(other))
    }

    #[inline]
    fn hash_query(query: &K, seed: u64) -> u64 {
        let mut hasher = Stable(seed);
        query.hash(&mut hasher);
        hasher.finish()
    }

    #[inline]
    fn hash_key(&self, _: &Tx<'_, H>, seed: u64) -> Result<u64> {
        Ok(Self::hash_query(self, seed))
    }
}

impl<H: Brand> Key<H> for PString<H> {
    type Query = str;

    fn compare(&self, tx: &Tx<'_, H>, query: &str) -> Result<Ordering> {
        Ok(self.text(tx)?.as_str().cmp(query))
    }

    fn compare_keys(&self, tx: &Tx<'_, H>, other: &Self) -> Result<Ordering> {
        Ok(self.text(tx)?.cmp(&other.text(tx)?))
    }

    fn hash_query(query: &str, seed: u64) -> u64 {
        hash_bytes(seed, query.as_bytes())
    }

    fn hash_key(&self, tx: &Tx<'_, H>, seed: u64) -> Result<u64> {
        Ok(hash_bytes(seed, self.text(tx)?.as_bytes()))
    }
}
