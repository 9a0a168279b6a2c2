//! Operations on objects that a program keeps: swaps of array elements, a B-tree, a hash table and a graph (Coburn et al.,
//! NV-heaps, ASPLOS 2011; system 004, slide 37). Each is a small trait that a store implements, and a driver that makes the
//! operations, knows what the store must hold after them and verifies it.
//!
//! 1. Operations are a function of (run, threads, thread, number): what each thread did is counted and replayed on plain
//!    memory after the run, so that the model costs nothing while the store is measured.
//! 2. Threads of a run change disjoint sets of keys and edges. Swaps are not disjoint, but their result holds the same
//!    elements in any order.
//!
//! | module | what |
//! |---|---|
//! | [`swaps`], [`maps`], [`graph`] | the workloads |
//! | [`plain`] | stores of plain memory |
//! | [`persistent`] | stores of [`nvlab_nvheap`] |
//! | [`Layer`], [`Workload`] | what is put on top of plain memory, step by step; all workloads, on each of them |
//! | [`program`] | the same as traces of what they do to memory |
//! | [`measure`] | the CPU time of an operation |

pub mod graph;
mod layers;
pub mod maps;
pub mod measure;
pub mod persistent;
pub mod plain;
pub mod program;
pub mod swaps;

pub use graph::{Graph, GraphDriver, Node, Search};
pub use layers::{Layer, Stores, TOGETHER, Visit, Workload};
pub use maps::{Map, MapDriver};
pub use swaps::{Element, Swaps, SwapsDriver};

use nvlab_units::Rng;

/// What a store failed with; only reported, never matched on.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// With [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// One thread's operations in one run: they are a function of these three numbers.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Number of the run; another draws other operations.
    pub run: u64,
    /// Number of the thread, from 0.
    pub thread: u64,
    /// How many threads the run has.
    pub threads: u64,
}

impl Part {
    fn rng(&self) -> Rng {
        Rng::stream(self.run << 32 | self.threads << 16 | self.thread, "heap")
    }
}

/// Several operations, to be done as one by a store that can.
pub type Several<'a> = &'a mut (dyn FnMut() -> Result<()> + Send);

/// A workload: its model, that is, what a store must hold.
pub trait Driver: Sync {
    /// The trait that its stores implement, such as `dyn Map`.
    type Store: ?Sized + Sync;
    /// What a thread keeps between operations of a part.
    type Worker: Send;
    /// What one call of `apply` does.
    type Operation: Send + Sync;

    /// Brings an empty store to the state of the model.
    fn load(&self, store: &Self::Store) -> Result<()>;

    /// The state of a thread before its first operation.
    fn worker(&self, part: Part) -> Self::Worker;

    /// Draws the next operation of a part.
    fn draw(worker: &mut Self::Worker) -> Self::Operation;

    /// Does an operation. It is durable, in the store's sense, when this returns.
    fn apply(store: &Self::Store, worker: &mut Self::Worker, operation: &Self::Operation) -> Result<()>;

    /// Does several operations in one transaction, if the store can; they may be done again.
    fn together(store: &Self::Store, operations: Several<'_>) -> Result<()>;

    /// Does the operations of a part, of which `worker` has done `count` on a store, on the model.
    fn replay(&mut self, part: Part, count: u64, worker: &Self::Worker) -> Result<()>;

    /// Fails unless a store holds what the model says.
    fn verify(&mut self, store: &Self::Store) -> Result<()>;

    /// Closes a store; an error if it cannot be written.
    fn close(store: Box<Self::Store>) -> Result<()>;
}

/// A permutation of all 64-bit numbers without visible order (splitmix64: Steele, Lea, Flood, OOPSLA 2014, figure 17).
pub fn scramble(number: u64) -> u64 {
    let mut word = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests;
