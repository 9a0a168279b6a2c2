//! rvm: a region behind a lock. A transaction is appended to the log inside the lock and waited for outside, so that one
//! force serves many threads.

use super::{Contender, Counters, Scale, Start, tables};
use crate::Result;
use nvlab_bench_stores::tpcb::{Balances, History, ROW_BYTES, Row, Table, Transfer};
use nvlab_rvm::log::battery_ram::{BatteryRam, FlushCounts};
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Region, Rvm, Transaction};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zerocopy::IntoBytes;

const LOG_BYTES: u64 = 64 << 20;
const SEGMENT: &str = "data";

/// Which log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Logs {
    File,
    BatteryRam,
}

/// What a transaction announces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Whole rows: 448 B in 4 ranges, the C++ program of system 001.
    Rows,
    /// What changes: 80 B in 7 ranges, its Sidney program.
    Words,
}

/// How long recovery is to take at most.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// What is the default.
    Usual,
    /// 5 ms.
    Short,
}

impl Target {
    fn options(self) -> Options {
        match self {
            Target::Usual => Options::default(),
            Target::Short => Options { recovery_target: Duration::from_millis(5), ..Options::default() },
        }
    }
}

struct Contestant {
    region: Mutex<Region>,
    rvm: Rvm,
    shape: Shape,
    counts: Option<Arc<FlushCounts>>,
}

pub fn make(
    folder: &Path,
    start: Start,
    scale: Scale,
    logs: Logs,
    shape: Shape,
    target: Target,
) -> Result<Box<dyn Contender>> {
    let (segments, path) = (SegmentFolder::new(folder), folder.join("log"));
    let bytes = tables::region_bytes(scale);
    if start == Start::Create {
        segments.create(SEGMENT, bytes)?;
    }
    let (rvm, counts) = match (logs, start) {
        (Logs::File, start) => {
            if start == Start::Create {
                FileLog::create(&path, LOG_BYTES)?;
            }
            (Rvm::open(FileLog::open_direct(&path)?, segments, target.options())?, None)
        }
        (Logs::BatteryRam, start) => {
            let log = match start {
                Start::Create => BatteryRam::create(&path, LOG_BYTES)?,
                Start::Open => BatteryRam::open(&path)?,
            };
            let counts = log.counts();
            (Rvm::open(log, segments, target.options())?, Some(counts))
        }
    };
    let mut region = rvm.map(SEGMENT, 0..bytes)?;
    if start == Start::Create {
        // Opening takes what it takes without: a page is taken when it is first used.
        region.populate();
        let mut load = region.begin_with(nvlab_rvm::Restore::No);
        for rows in load.set_range(0..tables::offset(Table::History, 0))?.chunks_exact_mut(ROW_BYTES) {
            rows.copy_from_slice(Row::NEW.as_bytes());
        }
        load.commit()?;
        rvm.truncate()?;
    }
    Ok(Box::new(Contestant { region: Mutex::new(region), rvm, shape, counts }))
}

impl Contestant {
    fn region(&self) -> MutexGuard<'_, Region> {
        self.region.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change_rows(transaction: &mut Transaction<'_>, transfer: &Transfer) -> nvlab_rvm::Result<()> {
    let Transfer { number, account, teller, branch, delta } = *transfer;
    transaction.get_mut::<Row>(tables::offset(Table::Accounts, account))?.balance += delta;
    transaction.get_mut::<Row>(tables::offset(Table::Tellers, teller))?.balance += delta;
    transaction.get_mut::<Row>(tables::offset(Table::Branches, branch))?.balance += delta;
    *transaction.get_mut::<History>(tables::offset(Table::History, number))? = History::new(transfer);
    Ok(())
}

fn change_words(transaction: &mut Transaction<'_>, transfer: &Transfer) -> nvlab_rvm::Result<()> {
    let Transfer { number, account, teller, branch, delta } = *transfer;
    *transaction.get_mut::<i64>(tables::offset(Table::Accounts, account))? += delta;
    *transaction.get_mut::<i64>(tables::offset(Table::Tellers, teller))? += delta;
    *transaction.get_mut::<i64>(tables::offset(Table::Branches, branch))? += delta;
    let (row, at) = (History::new(transfer), tables::offset(Table::History, number));
    for (from, bytes) in History::FIELDS {
        transaction.write(at + from, &row.as_bytes()[from..from + bytes])?;
    }
    Ok(())
}

impl Contender for Contestant {
    fn transaction(&self, transfer: &Transfer) -> Result<()> {
        let mut region = self.region();
        let account = tables::offset(Table::Accounts, transfer.account);
        region.prefetch(account..account + ROW_BYTES);
        let mut transaction = region.begin();
        match self.shape {
            Shape::Rows => change_rows(&mut transaction, transfer)?,
            Shape::Words => change_words(&mut transaction, transfer)?,
        }
        let pending = transaction.commit_later()?;
        drop(region);
        Ok(pending.wait()?)
    }

    fn branch_balance(&self) -> Result<i64> {
        Ok(*self.region().get::<i64>(tables::offset(Table::Branches, 0))?)
    }

    fn balances(&self) -> Result<Balances> {
        tables::balances(&self.region())
    }

    fn counters(&self) -> Counters {
        let statistics = self.rvm.statistics();
        Counters {
            logged_bytes: Some(statistics.logged_bytes),
            forces: Some(statistics.forces),
            truncations: Some(statistics.truncations),
            fences: self.counts.as_ref().map(|counts| counts.fences()),
            lines: self.counts.as_ref().map(|counts| counts.lines()),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Contestant { region, rvm, .. } = *self;
        drop(region);
        Ok(rvm.truncate()?)
    }
}
