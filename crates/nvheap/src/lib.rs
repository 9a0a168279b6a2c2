//! Persistent objects: ordinary-looking objects in a mapped file that survive the program, changed in transactions.
//!
//! ```
//! use nvlab_nvheap::{Brand, Heap, Options, Persist, Strong};
//!
//! struct Bank;                                // the brand: a type for this heap
//! impl Brand for Bank {
//!     type Root = Ledger;
//! }
//!
//! #[derive(Persist)]
//! #[persist(heap = Bank)]                     // it has pointers into this heap
//! #[repr(C)]
//! struct Ledger {
//!     first: Option<Strong<Account, Bank>>,
//! }
//!
//! #[derive(Persist)]
//! #[repr(C)]
//! struct Account {
//!     balance: i64,
//! }
//!
//! # fn main() -> nvlab_nvheap::Result<()> {
//! # let folder = tempfile::tempdir_in("/dev/shm").unwrap();
//! # let path = folder.path().join("bank");
//! let heap = Heap::<Bank>::create(&path, Options::default(), |_| Ok(Ledger { first: None }))?;
//! let ledger = heap.root()?;
//! heap.transaction(|tx| {
//!     let account = Strong::new(tx, Account { balance: 100 })?;
//!     account.write(tx)?.balance += 5;
//!     ledger.write(tx)?.first = Some(account);
//!     Ok(())
//! })?;
//! drop((ledger, heap));
//!
//! let heap = Heap::<Bank>::open(&path, Options::default())?;
//! let ledger = heap.root()?;
//! let balance = heap.transaction(|tx| {
//!     let ledger = ledger.read(tx)?;
//!     let account = ledger.first.as_ref().expect("made above");
//!     let balance = account.read(tx)?.balance;
//!     Ok(balance)
//! })?;
//! assert_eq!(balance, 105);
//! # Ok(())
//! # }
//! ```
//!
//! How it is used
//! * A heap is named by a type ([`Brand`]) that also names the type of its root. Types stored in it derive
//!   [`Persist`] and are `#[repr(C)]`; one with pointers states into which heap: `#[persist(heap = Bank)]`, or has a
//!   parameter `H: Brand`.
//! * All access is inside [`Heap::transaction`]: `pointer.read(tx)?` and `pointer.write(tx)?` borrow the value,
//!   pointers are fields like others (`Option<PBox<T, H>>`, `Option<Strong<T, H>>`, `Option<Weak<T, H>>`, [`PVec`],
//!   [`PString`], and the [`collections`] [`PBTreeMap`], [`PHashMap`], [`PList`]), and dropping or overwriting one
//!   releases its reference.
//! * Between transactions programs hold [`Handle`]s.
//! * A fingerprint of all types is checked when a heap is opened. To change a type: keep the old ones in a module
//!   with their own brand, and define how the new ones are made from them: [`migrate()`]. `#[persist(version = 2)]`
//!   distinguishes types with the same layout.
//!
//! Values that can be stored in a heap: numbers, `bool`, `char`, `()`, arrays, [`Pair`], [`Maybe`], [`U128`] and
//! [`I128`]; `NonZero` numbers and `Option`s of them; pointers, `Option`s of them and collections; structs of these,
//! and enums whose fields hold no pointers. Tuples, other `Option`s and `u128` have no guaranteed layout, and the
//! compiler refuses them.
//!
//! Promises
//! 1. A transaction that returned `Ok` is durable; no crash leaves part of one. It waits for memory once.
//! 2. Transactions are isolated: each sees the state left by those before it, and nothing of those in progress. One
//!    that only reads ends, whatever others do.
//! 3. No crash leaks a block or loses a reference. Objects in a cycle, and those to which all pointers were forgotten
//!    (`mem::forget`), are freed by [`Heap::collect_cycles`] only. The size of a transaction is not limited.
//! 4. Whatever a file contains, opening and using it returns values or errors; it never accesses memory outside the
//!    file. A heap with checksums ([`Options::checksums`]) returns errors for damaged values.
//! 5. A file can be examined without its program ([`Inspection`]), and shrunk to its contents ([`compact`]).
//! 6. On a disk, durable means synced. On tmpfs it means that a killed process loses nothing; a power cut loses the
//!    file. In a memory window it means what its device promises (eNVy: neither a killed program nor a killed server
//!    loses anything).
//!
//! After J. Coburn et al., NV-Heaps (ASPLOS 2011), and system 004.

/// The tutorial is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/nvheap.md")]
mod tutorial {}

// What `Persist` is derived to names this crate.
extern crate self as nvlab_nvheap;

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("the format of heaps is that of little-endian 64-bit machines");

mod arena;
mod backup;
mod block;
mod collect;
pub mod collections;
mod compare;
mod core;
mod domain;
mod error;
mod hash;
mod heap;
mod inspect;
mod layout;
mod lock;
mod locked;
mod log;
mod memory;
mod migrate;
mod mutex;
mod on_log;
mod persist;
mod place;
mod plain;
mod pointer;
mod reap;
mod recover;
mod region;
mod renewal;
mod replace;
mod simulated;
mod snapshot;
mod space;
mod strays;
mod string;
mod sums;
mod sync;
#[cfg(test)]
mod tests;
mod tx;
mod vec;
mod wait;

pub use collections::{Key, PBTreeMap, PHashMap, PList};
pub use domain::Persistence;
pub use error::{Error, Result};
pub use heap::{Heap, Options, Stat};
pub use inspect::{
    BlockSize, Check, Compacted, Cycle, Inspection, Limits, Reference, Summary, Unreachable, Value, compact,
    compact_with_checksums,
};
pub use migrate::{Migration, migrate};
pub use nvlab_nvheap_derive::Persist;
pub use persist::{Brand, Pair, Persist, Shape};
pub use plain::{I128, Maybe, U128};
pub use pointer::{Handle, PBox, Read, Strong, Weak, Write};
pub use simulated::{Counts, CrashPoint, Delays, Simulated};
pub use string::PString;
pub use tx::Tx;
pub use vec::PVec;
