//! Who is compared: one file each, behind one small trait.

#[cfg(has_berkeley_db)]
mod berkeley_db;
#[cfg(has_lmdb)]
mod lmdb;
#[cfg(has_pmemobj)]
mod pmemobj;
#[cfg(has_rocksdb)]
mod rocksdb;
mod rvm;
#[cfg(has_sqlite)]
mod sqlite;
mod tables;

use crate::Result;
use nvlab_bench_stores::tpcb::{Balances, Transfer};
use std::path::Path;

/// What to make room for.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Rows of the history at most.
    pub history_rows: u64,
    /// The least bytes of a store that is mapped as a whole.
    pub region_bytes_min: u64,
}

/// What a contender counts of itself since it was opened; `None`: it does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub logged_bytes: Option<u64>,
    pub forces: Option<u64>,
    pub truncations: Option<u64>,
    /// Fences, and cache lines written to memory.
    pub fences: Option<u64>,
    pub lines: Option<u64>,
}

/// A store with the tables of TPC-B. Threads share it.
pub trait Contender: Sync {
    /// Does a transaction. It is durable, in the contender's sense, when this returns.
    fn transaction(&self, transfer: &Transfer) -> Result<()>;
    /// The balance of the branch.
    fn branch_balance(&self) -> Result<i64>;
    /// Sums all rows.
    fn balances(&self) -> Result<Balances>;
    /// Counts.
    fn counters(&self) -> Counters {
        Counters::default()
    }
    /// Closes it; everything is durable.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Creates the tables in an empty folder, or opens what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Create,
    Open,
}

type Make = fn(&Path, Start, Scale) -> Result<Box<dyn Contender>>;

/// A contender and what is said of it.
pub struct Kind {
    pub name: &'static str,
    /// The Debian package without which it is not there.
    pub package: &'static str,
    /// What a commit guarantees, and how it was set up.
    pub guarantee: &'static str,
    /// It needs memory that keeps its contents.
    pub memory_only: bool,
    /// Environment on a file system in memory.
    pub memory_environment: &'static [(&'static str, &'static str)],
    /// `None`: not installed.
    pub make: Option<Make>,
}

impl Kind {
    const fn new(
        name: &'static str,
        package: &'static str,
        guarantee: &'static str,
        make: Option<Make>,
    ) -> Kind {
        Kind { name, package, guarantee, memory_only: false, memory_environment: &[], make }
    }
}

/// The creating function of a contender that may not be installed.
macro_rules! if_installed {
    ($installed:ident, $make:path) => {{
        #[cfg($installed)]
        let make: Option<Make> = Some(|folder, start, scale| Ok(Box::new($make(folder, start, scale)?)));
        #[cfg(not($installed))]
        let make: Option<Make> = None;
        make
    }};
}

/// One of ours, which needs no package.
const fn rvm(name: &'static str, guarantee: &'static str, make: Make) -> Kind {
    Kind::new(name, "", guarantee, Some(make))
}

const fn in_memory(kind: Kind) -> Kind {
    Kind { memory_only: true, ..kind }
}

/// All of them.
pub const KINDS: [Kind; 12] = [
    rvm(
        "rvm",
        "file log of 64 MiB, fdatasync; whole rows are logged (448 B in 4 ranges); the lock is released before the wait for the force",
        |folder, start, scale| {
            rvm::make(folder, start, scale, rvm::Logs::File, rvm::Shape::Rows, rvm::Target::Usual)
        },
    ),
    rvm("rvm-5ms", "as rvm; truncated so often that recovery takes 5 ms", |folder, start, scale| {
        rvm::make(folder, start, scale, rvm::Logs::File, rvm::Shape::Rows, rvm::Target::Short)
    }),
    rvm("rvm-words", "as rvm; only what changes is logged (80 B in 7 ranges)", |folder, start, scale| {
        rvm::make(folder, start, scale, rvm::Logs::File, rvm::Shape::Words, rvm::Target::Usual)
    }),
    rvm(
        "rvm-words-5ms",
        "as rvm-words; truncated so often that recovery takes 5 ms",
        |folder, start, scale| {
            rvm::make(folder, start, scale, rvm::Logs::File, rvm::Shape::Words, rvm::Target::Short)
        },
    ),
    in_memory(rvm(
        "rvm-bram",
        "battery-RAM log of 64 MiB: stores past the caches, one fence; whole rows (448 B in 4 ranges); durable if the memory is",
        |folder, start, scale| {
            rvm::make(folder, start, scale, rvm::Logs::BatteryRam, rvm::Shape::Rows, rvm::Target::Usual)
        },
    )),
    in_memory(rvm(
        "rvm-bram-5ms",
        "as rvm-bram; truncated so often that recovery takes 5 ms",
        |folder, start, scale| {
            rvm::make(folder, start, scale, rvm::Logs::BatteryRam, rvm::Shape::Rows, rvm::Target::Short)
        },
    )),
    in_memory(rvm(
        "rvm-bram-words",
        "as rvm-bram; only what changes is logged (80 B in 7 ranges)",
        |folder, start, scale| {
            rvm::make(folder, start, scale, rvm::Logs::BatteryRam, rvm::Shape::Words, rvm::Target::Usual)
        },
    )),
    Kind::new(
        "sqlite",
        "libsqlite3-dev",
        "WAL, synchronous=FULL: the write-ahead log is synced; one connection behind a lock, as there is one writer at a time",
        if_installed!(has_sqlite, sqlite::Sqlite::make),
    ),
    Kind::new(
        "berkeley-db",
        "libdb5.3-dev",
        "transactions commit with DB_TXN_NOSYNC, which releases their locks, and log_flush makes them durable: so flushes are shared",
        if_installed!(has_berkeley_db, berkeley_db::make),
    ),
    Kind::new(
        "lmdb",
        "liblmdb-dev",
        "default flags: data pages, then the meta page, are synced under the writer's lock",
        if_installed!(has_lmdb, lmdb::make),
    ),
    Kind::new(
        "rocksdb",
        "librocksdb-dev",
        "sync=true: the write-ahead log is synced; balances are added blindly by a merge operator, so that commits share syncs",
        if_installed!(has_rocksdb, rocksdb::RocksDb::make),
    ),
    Kind {
        memory_environment: &[("PMEM_IS_PMEM_FORCE", "1")],
        ..Kind::new(
            "pmemobj",
            "libpmemobj-dev",
            "undo log, one lock; on a disk by msync; in memory with PMEM_IS_PMEM_FORCE=1: flushed cache lines, durable if the memory is",
            if_installed!(has_pmemobj, pmemobj::Pmemobj::make),
        )
    },
];

/// The contender of this name.
pub fn find(name: &str) -> Result<&'static Kind> {
    const { &KINDS }
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| format!("no contender {name}").into())
}
