//! Who is compared: databases with one table each ([`tables`]), and structures in mapped memory ([`in_place`]).

#[cfg(has_berkeley_db)]
mod berkeley_db;
pub mod in_place;
#[cfg(has_lmdb)]
mod lmdb;
mod nvheap;
mod redb;
#[cfg(has_sqlite)]
mod sqlite;
mod tables;

use crate::Result;
use crate::workloads::{Bank, Graph, Map, Swaps};
pub use nvlab_workload::objects::persistent::Start;
use std::path::Path;

/// The structure of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Sorted,
    /// A contender without hash tables uses its tree.
    Hashed,
}

/// Opens its stores for the workloads.
pub trait Contender: Sync {
    fn swaps(&self, folder: &Path, start: Start) -> Result<Box<dyn Swaps>>;
    /// With room for so many rows of the history.
    fn bank(&self, folder: &Path, start: Start, history_rows: u64) -> Result<Box<dyn Bank>>;
    fn map(&self, folder: &Path, start: Start, sort: Sort) -> Result<Box<dyn Map>>;
    fn graph(&self, folder: &Path, start: Start) -> Result<Box<dyn Graph>>;
}

impl Contender for tables::Open {
    fn swaps(&self, folder: &Path, _: Start) -> Result<Box<dyn Swaps>> {
        Ok(Box::new(tables::Tables(self(folder, Sort::Sorted)?)))
    }

    fn bank(&self, folder: &Path, _: Start, _: u64) -> Result<Box<dyn Bank>> {
        Ok(Box::new(tables::Tables(self(folder, Sort::Sorted)?)))
    }

    fn map(&self, folder: &Path, _: Start, sort: Sort) -> Result<Box<dyn Map>> {
        Ok(Box::new(tables::Tables(self(folder, sort)?)))
    }

    fn graph(&self, folder: &Path, _: Start) -> Result<Box<dyn Graph>> {
        Ok(Box::new(tables::Tables(self(folder, Sort::Sorted)?)))
    }
}

/// A contender and what is said of it.
pub struct Kind {
    pub name: &'static str,
    /// The Debian package without which it is not there.
    pub package: &'static str,
    /// What a commit guarantees, and how it was set up.
    pub guarantee: &'static str,
    /// It needs memory that keeps its contents.
    pub memory_only: bool,
    /// Environment on a file system in memory; also while a store is filled, which is not measured.
    pub memory_environment: &'static [(&'static str, &'static str)],
    /// `None`: not installed.
    pub contender: Option<&'static dyn Contender>,
}

/// A contender that may not be installed.
macro_rules! if_installed {
    ($installed:ident, $contender:expr) => {{
        #[cfg($installed)]
        let contender: Option<&'static dyn Contender> = Some($contender);
        #[cfg(not($installed))]
        let contender: Option<&'static dyn Contender> = None;
        contender
    }};
}

/// All of them.
pub static KINDS: [Kind; 8] = [
    Kind {
        name: "unsafe",
        package: "",
        guarantee: "none: plain memory, one lock each for tree, graph and bank, locks by stripes for elements and chains",
        memory_only: true,
        memory_environment: &[],
        contender: Some(&in_place::InPlace::<in_place::Plain<false>>::NEW),
    },
    Kind {
        name: "unsafe-fence",
        package: "",
        guarantee: "none: as unsafe; the changed lines are written back (clwb) before one fence an operation; half an operation may survive a crash",
        memory_only: true,
        memory_environment: &[],
        contender: Some(&in_place::InPlace::<in_place::Plain<true>>::NEW),
    },
    Kind {
        name: "nvheap",
        package: "",
        guarantee: "a redo record in the thread's log, one fence; objects are locked one by one; on a disk by msync; in memory durable if the memory is",
        memory_only: false,
        memory_environment: &[],
        contender: Some(&nvheap::Nvheap),
    },
    Kind {
        name: "pmemobj",
        package: "libpmemobj-dev",
        guarantee: "transactions with an undo log; the same structures and locks as unsafe; on a disk by msync; in memory with PMEM_IS_PMEM_FORCE=1: flushed cache lines, durable if the memory is",
        memory_only: false,
        memory_environment: &[("PMEM_IS_PMEM_FORCE", "1")],
        contender: if_installed!(has_pmemobj, &in_place::InPlace::<in_place::Pmemobj>::NEW),
    },
    Kind {
        name: "berkeley-db",
        package: "libdb5.3-dev",
        guarantee: "commit with DB_TXN_NOSYNC, which releases the locks, then log_flush; cache of 512 MiB",
        memory_only: false,
        memory_environment: &[],
        contender: if_installed!(has_berkeley_db, &(berkeley_db::open as tables::Open)),
    },
    Kind {
        name: "lmdb",
        package: "liblmdb-dev",
        guarantee: "default flags: data pages, then the meta page, are synced under the writer's lock",
        memory_only: false,
        memory_environment: &[],
        contender: if_installed!(has_lmdb, &(lmdb::open as tables::Open)),
    },
    Kind {
        name: "sqlite",
        package: "libsqlite3-dev",
        guarantee: "WAL, synchronous=FULL: the write-ahead log is synced",
        memory_only: false,
        memory_environment: &[],
        contender: if_installed!(has_sqlite, &(sqlite::open as tables::Open)),
    },
    Kind {
        name: "redb",
        package: "",
        guarantee: "Durability::Immediate: pages, then the header, are synced",
        memory_only: false,
        memory_environment: &[],
        contender: Some(&(redb::open as tables::Open)),
    },
];

/// The contender of this name.
pub fn find(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| format!("no contender {name}").into())
}
