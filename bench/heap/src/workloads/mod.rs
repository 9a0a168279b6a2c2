//! What is measured: the operations on objects of [`nvlab_workload::objects`], at these sizes, and TPC-B ([`bank`]).

mod bank;

pub use bank::{Bank, BankDriver, HISTORY_BYTES, HistoryRow};
pub use nvlab_workload::objects::swaps::ELEMENT_BYTES;
pub use nvlab_workload::objects::{
    Driver, Element, Graph, GraphDriver, Map, MapDriver, Node, Part, Search, Several, Swaps, SwapsDriver,
    scramble,
};

/// Elements of the array.
pub const ELEMENTS: u64 = 1_000_000;
/// Keys that there may be: 500,000 are there on average. A multiple of all numbers of threads.
pub const KEYS: u64 = 1_000_000;
/// Nodes of the graph.
pub const NODES: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::{KINDS, Start};
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
    fn wrong_balances_are_noticed() {
        let (contender, folder) = (KINDS[0].contender.unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
        let bank = contender.bank(folder.path(), Start::Create, 2).unwrap();
        bank.load().unwrap();
        BankDriver::new().verify(bank.as_ref()).unwrap();
        bank.transfer(&Transfer::new(7)).unwrap();
        assert!(BankDriver::new().verify(bank.as_ref()).is_err());
    }
}
