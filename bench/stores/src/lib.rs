//! What the comparisons share: databases that may be installed, each behind a small safe interface over its C library
//! ([`berkeley_db`], [`lmdb`], [`pmemobj`], [`sqlite`]); the rows and transactions of TPC-B ([`tpcb`]); clocks and what else the
//! machine tells ([`machine`]).
//!
//! A database module exists only where its library is installed (`cfg(has_lmdb)` and so on). A build script of a package that
//! depends on this one finds the names in `DEP_NVLAB_BENCH_STORES_INSTALLED`, separated by commas.

#[cfg(has_berkeley_db)]
pub mod berkeley_db;
#[cfg(has_lmdb)]
pub mod lmdb;
pub mod machine;
#[cfg(has_pmemobj)]
pub mod pmemobj;
#[cfg(has_sqlite)]
pub mod sqlite;
pub mod tpcb;

mod run;
pub use run::run;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;
