//! TPC-C as page requests: the transactions of the standard (revision 5.11) on rows and B+trees of its sizes, behind an
//! LRU buffer pool. Pages missing in the pool are read, dirty pages evicted from it are written.
//!
//! The workload of Nam, Na and Lee (APWeb 2010, section IV): their I/O trace "is extracted from the 'new-order', which
//! is a part of the TPC-C benchmark". They name neither the database, nor its size, nor its buffer; those are
//! parameters here.
//!
//! 1. Rows have no content, but keys and positions are real: NURand with its constants, 5 to 15 lines, 1 % of them from
//!    another warehouse, 1 % of new-orders rolled back, order numbers by district, the queue of deliveries, the items
//!    of the newest 20 orders. That takes about 40 B of memory per order with its ten lines.
//! 2. The same seed gives the same requests. Each purpose draws from its own stream.
//! 3. Every request is one page inside [`Workload::footprint`]. A database that has grown to its end stops the
//!    workload: TPC-C deletes no orders.
//! 4. The requests of a transaction are consecutive, at the time of its arrival.
//!
//! What the paper leaves open, and what is done here:
//!
//! * *Mix.* New-order alone, as in the paper; [`Mix::Full`] is the standard's 45, 43, 4, 4, 4 % (clause 5.2.3).
//! * *Log.* Off: a database puts it on its own device, and a trace of page I/O does not contain it. With
//!   [`TpccConfig::log`] each commit forces its pages into a ring of 64 MiB.
//! * *Checkpoints.* Off: pages are written when they leave the pool. With [`TpccConfig::checkpoint_every`] all dirty
//!   pages are written after that many transactions, in order of address.
//! * *Initial state.* The database is loaded and the pool warm: transactions run without requests until every frame
//!   holds a page ([`TpccConfig::warm_up`]).
//! * *Trees and pages.* A full leaf is split after the last insertion if keys are ascending (`grown`); headers and
//!   slots are those of PostgreSQL, without its row headers (`layout`).
//! * *Credit.* Customers of bad credit differ in content only, so there are none.

mod counts;
mod describe;
mod fixed;
mod grown;
mod layout;
mod log;
mod orders;
mod pool;
mod space;
mod spec;
pub mod standard;
mod transactions;

pub use counts::{Counts, RowCounts};
pub use spec::KIND;

use super::BlockWorkload;
use crate::arrivals::{Arrivals, Limits, Pace};
use crate::{Batch, Op, Pacing, Request, Span, Time, Workload};
use layout::Database;
use log::Log;
use nvlab_units::Rng;
use orders::Orders;
use pool::{PageIo, Pool};
use standard::{Constants, NonUniform, Transaction};
use std::ops::Range;
use transactions::{Draws, Engine};

/// The fewest frames of a pool: more than the pages a transaction accesses (stock-level: 300 rows of stock with their
/// leaves, 20 orders with theirs).
pub(crate) const POOL_FRAMES_MIN: u32 = 1024;

/// Which of the five transactions are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Only new-order, the transaction that tpmC counts.
    NewOrder,
    /// All five, in the proportions of clause 5.2.3.
    Full,
}

/// A TPC-C database and how it is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TpccConfig {
    /// The scale of the database: 10 districts and 100,000 stock rows each.
    pub warehouses: u32,
    /// Bytes of the buffer pool; what it holds causes no requests.
    pub pool_bytes: u64,
    /// New-orders alone or the full mix.
    pub mix: Mix,
    /// The page size of the pool, of the trees and of every request.
    pub page_bytes: u32,
    /// All dirty pages are written after this many transactions; 0 for never.
    pub checkpoint_every: u64,
    /// The log is on the same device.
    pub log: bool,
    /// Transactions before the first request; `None`: until the pool is full.
    pub warm_up: Option<u64>,
    /// How large the database may grow; `None` for the whole device.
    pub span: Option<u64>,
    /// When requests are issued; a rate counts transactions.
    pub pace: Pace,
    /// When it ends; requests count transactions, bytes do not count.
    pub limits: Limits,
}

impl Default for TpccConfig {
    /// New-orders of 80 warehouses behind 400 MiB, pages of 4 KiB, one request at a time, without an end.
    fn default() -> TpccConfig {
        TpccConfig {
            warehouses: 80,
            pool_bytes: 400 << 20,
            mix: Mix::NewOrder,
            page_bytes: 4096,
            checkpoint_every: 0,
            log: false,
            warm_up: None,
            span: None,
            pace: Pace::Closed { depth: 1 },
            limits: Limits::default(),
        }
    }
}

/// The page requests of a database that runs TPC-C behind a buffer pool.
#[derive(Clone, Debug)]
pub struct Tpcc {
    config: TpccConfig,
    pages: u32,
    engine: Engine,
    arrivals: Arrivals,
    /// The arrival time of the transaction whose requests are in the queue.
    at: Time,
    /// How many of them were issued.
    issued: usize,
    is_warm: bool,
    until_checkpoint: u64,
    remaining: u64,
}

impl Tpcc {
    /// The loaded database of `config` on a device of `pages` pages, as many as
    /// [`TpccConfig::open`] found to be enough.
    fn new(config: &TpccConfig, pages: u32, seed: u64) -> Tpcc {
        let mut rng = Rng::stream(seed, "population");
        let constants = Constants::draw(&mut rng);
        let orders = Orders::populate(config.warehouses, &NonUniform::names(constants.name_load), &mut rng);
        let database = Database::load(config.warehouses, config.page_bytes, config.log, &orders, pages);
        let engine = Engine {
            warehouses: config.warehouses,
            database,
            orders,
            pool: Pool::new(config.frames()),
            log: Log::new(config.page_bytes),
            counts: Counts::default(),
            draws: Draws::new(&constants, seed),
            sold: Vec::new(),
        };
        Tpcc {
            config: *config,
            pages,
            engine,
            arrivals: Arrivals::new(config.pace, config.limits.time, seed),
            at: Time::ZERO,
            issued: 0,
            is_warm: false,
            until_checkpoint: config.checkpoint_every,
            remaining: config.limits.requests.unwrap_or(u64::MAX),
        }
    }

    /// What it was opened with.
    pub fn config(&self) -> &TpccConfig {
        &self.config
    }

    /// Rows accessed so far, the warm-up included.
    pub fn counts(&self) -> &Counts {
        &self.engine.counts
    }

    /// Fills the pool before the first request. If the database cannot fill the pool, runs as many transactions as
    /// there are frames, which comes close to its steady state.
    fn warm_up(&mut self) {
        let transactions = self.config.warm_up.unwrap_or(self.engine.pool.frames() as u64);
        for _ in 0..transactions {
            if self.config.warm_up.is_none() && self.engine.pool.is_full() || !self.engine.database.can_grow()
            {
                break;
            }
            self.run_one();
        }
        self.engine.pool.queue.clear();
        self.is_warm = true;
    }

    fn run_one(&mut self) {
        self.engine.pool.queue.clear();
        self.issued = 0;
        let kind = match self.config.mix {
            Mix::NewOrder => Transaction::NewOrder,
            Mix::Full => self.engine.draws.kind(),
        };
        self.engine.run(kind);
        if self.config.checkpoint_every > 0 {
            self.until_checkpoint -= 1;
            if self.until_checkpoint == 0 {
                self.until_checkpoint = self.config.checkpoint_every;
                self.engine.pool.checkpoint();
            }
        }
    }

    /// Runs the next transaction; false at the end.
    fn advance(&mut self) -> bool {
        if !self.is_warm {
            self.warm_up();
        }
        if self.remaining == 0 || !self.engine.database.can_grow() {
            return false;
        }
        let Some(at) = self.arrivals.next() else {
            self.remaining = 0;
            return false;
        };
        self.at = at;
        self.remaining -= 1;
        self.run_one();
        true
    }

    #[inline]
    fn request(&self, io: PageIo) -> Request {
        let (page, op, fua) = match io {
            PageIo::Read(page) => (page, Op::Read, false),
            PageIo::Write(page) => (page, Op::Write, false),
            PageIo::Log(page) => (page, Op::Write, true),
            PageIo::Flush => return Request { at: self.at, op: Op::Flush, ..Request::default() },
        };
        let bytes = self.config.page_bytes;
        Request { at: self.at, offset: page as u64 * bytes as u64, bytes, op, fua, ..Request::default() }
    }
}

impl BlockWorkload for Tpcc {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        assert!(batch.room() > 0, "a full batch cannot be filled");
        let before = batch.len();
        while batch.room() > 0 {
            let Some(&io) = self.engine.pool.queue.get(self.issued) else {
                if self.advance() {
                    continue;
                }
                break;
            };
            batch.push(self.request(io));
            self.issued += 1;
        }
        batch.len() - before
    }
}

impl Workload for Tpcc {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }

    /// How many requests remain is never known: their number differs between transactions.
    fn has_end(&self) -> bool {
        self.config.limits.requests.is_some() || self.config.limits.time.is_some()
    }

    fn footprint(&self) -> Range<u64> {
        0..self.pages as u64 * self.config.page_bytes as u64
    }

    fn time_limit(&self) -> Option<Span> {
        self.config.limits.time
    }

    fn describe(&self) -> String {
        self.description()
    }
}

#[cfg(test)]
mod tests;
