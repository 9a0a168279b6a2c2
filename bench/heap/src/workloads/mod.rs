//! What is measured: five workloads, each a small trait that contenders implement, and a driver that makes its operations,
//! knows what the store must hold after them and verifies it.
//!
//! Operations are a function of (run, threads, thread, number): what each thread did is counted and replayed on plain memory
//! after the run, so that the model costs nothing while the store is measured. Threads of a run change disjoint sets
//! of keys, edges and so on, but for swaps and balances, whose result does not depend on the order.

mod bank;
mod graph;
mod maps;
mod swaps;

pub use bank::{Bank, BankDriver, HISTORY_BYTES, HistoryRow};
pub use graph::{Graph, GraphDriver, NODES, Node, Search};
pub use maps::{KEYS, Map, MapDriver};
pub use swaps::{ELEMENT_BYTES, ELEMENTS, Element, Swaps, SwapsDriver};

use crate::Result;
use nvlab_units::Rng;

/// A thread's part of a run.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub run: u64,
    pub thread: u64,
    pub threads: u64,
}

impl Part {
    /// The random numbers of this part.
    fn rng(&self) -> Rng {
        Rng::stream(self.run << 32 | self.threads << 16 | self.thread, "heap")
    }
}

/// A workload: its model, that is, what a store must hold.
pub trait Driver: Sync {
    /// What contenders implement.
    type Store: ?Sized + Sync;
    /// What a thread keeps between operations of a part.
    type Worker: Send;

    /// Begins a part.
    fn worker(&self, part: Part) -> Self::Worker;

    /// Does the next operation of a part. It is durable, in the contender's sense, when this returns.
    fn operation(store: &Self::Store, worker: &mut Self::Worker) -> Result<()>;

    /// Does the operations of a part, of which `worker` has done `count` on a store, on the model.
    fn replay(&mut self, part: Part, count: u64, worker: &Self::Worker) -> Result<()>;

    /// Fails unless a store holds what the model says.
    fn verify(&mut self, store: &Self::Store) -> Result<()>;

    /// Closes a store.
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
mod tests {
    use super::*;
    use crate::contenders::{KINDS, Sort, Start};
    use crate::measure::{Plan, Workload, load, measure};
    use nvlab_bench_stores::tpcb::Transfer;

    /// Every contender that is installed does every workload, with one thread and with two.
    #[test]
    fn everybody_is_right() {
        let plan = Plan { threads: vec![1, 2], operations: 300, seconds: 100.0 };
        for kind in KINDS.iter().filter(|kind| kind.contender.is_some()) {
            for workload in Workload::ALL {
                let folder = tempfile::tempdir_in("/dev/shm").unwrap();
                load(kind, workload, folder.path(), &plan).unwrap();
                let measured = measure(kind, workload, folder.path(), &plan);
                let measured = measured.unwrap_or_else(|error| panic!("{} {workload:?}: {error}", kind.name));
                // The first of nine slices does not count.
                assert_eq!(measured.iter().map(|run| run.operations).collect::<Vec<_>>(), [264, 528]);
            }
        }
    }

    /// One change that the model does not know.
    #[test]
    fn wrong_contents_are_noticed() {
        let (contender, folder) = (KINDS[0].contender.unwrap(), || tempfile::tempdir_in("/dev/shm").unwrap());
        let (swaps_in, bank_in, map_in, graph_in) = (folder(), folder(), folder(), folder());

        let swaps = contender.swaps(swaps_in.path(), Start::Create).unwrap();
        SwapsDriver::load(swaps.as_ref()).unwrap();
        SwapsDriver::new().verify(swaps.as_ref()).unwrap();
        swaps.swap(3, 5).unwrap();
        assert!(SwapsDriver::new().verify(swaps.as_ref()).is_err());

        let bank = contender.bank(bank_in.path(), Start::Create, 2).unwrap();
        bank.load().unwrap();
        BankDriver::new().verify(bank.as_ref()).unwrap();
        bank.transfer(&Transfer::new(7)).unwrap();
        assert!(BankDriver::new().verify(bank.as_ref()).is_err());

        let map = contender.map(map_in.path(), Start::Create, Sort::Sorted).unwrap();
        MapDriver::load(map.as_ref()).unwrap();
        MapDriver::new().verify(map.as_ref()).unwrap();
        map.insert(scramble(KEYS), 1).unwrap();
        assert!(MapDriver::new().verify(map.as_ref()).is_err());

        let graph = contender.graph(graph_in.path(), Start::Create).unwrap();
        GraphDriver::load(graph.as_ref()).unwrap();
        GraphDriver::new().verify(graph.as_ref()).unwrap();
        graph.toggle(1, 9).unwrap();
        assert!(GraphDriver::new().verify(graph.as_ref()).is_err());
    }

    #[test]
    fn six_edges_are_found_and_seven_are_not() {
        let mut search = GraphDriver::new().worker(Part { run: 0, thread: 0, threads: 1 }).search;
        let mut nodes = vec![Node::default(); 10];
        (0..9).for_each(|node| graph::toggle(&mut nodes, (node, node + 1)));
        for (to, is_near) in [(0, true), (1, true), (5, true), (6, true), (7, false), (9, false)] {
            search.begin(0, to);
            assert_eq!(search.run(|node| Ok(nodes[node as usize])).unwrap(), is_near, "0 to {to}");
        }
    }
}
