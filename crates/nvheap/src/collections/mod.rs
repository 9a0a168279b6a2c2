//! Collections that grow and shrink entry by entry: [`PBTreeMap`], [`PHashMap`] and [`PList`].
//!
//! Methods are named as those of std's collections; each takes the transaction and returns a [`crate::Result`]. A map
//! is shared: its methods take `&self`, and transactions that change different nodes of it do not conflict. They
//! return [`Ref`], a copy of the value at that moment, and [`RefMut`].
//!
//! An insertion or removal changes three or four words of one node, and a count.

mod btree;
mod counter;
mod guard;
mod hash;
mod key;
mod list;
mod order;
mod slot;

pub use btree::{OccupiedTreeEntry, PBTreeMap, Range, TreeEntry, VacantTreeEntry};
pub use guard::{Ref, RefMut};
pub use hash::{Entry, OccupiedEntry, PHashMap, VacantEntry};
pub use key::Key;
pub use list::PList;
