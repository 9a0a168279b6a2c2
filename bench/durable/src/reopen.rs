//! Kills a process in the middle of its transactions and measures how long opening takes afterwards.

use crate::Result;
use crate::contenders::{Kind, Scale, Start};
use nvlab_bench_stores::tpcb::Transfer;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Threads of the process that is killed.
pub const THREADS: usize = 2;
/// Contenders that map their store as a whole have one of 1 GiB.
const SCALE: Scale = Scale { history_rows: 6_000_000, region_bytes_min: 1 << 30 };
const ACKNOWLEDGED: &str = "acknowledged";

/// What opening after the kill was like.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reopened {
    /// Opening, with whatever recovery and mapping it takes, and the first read.
    pub seconds: f64,
    /// Transactions whose commit had returned when the process was killed, and transactions that were found.
    pub acknowledged: u64,
    pub found: u64,
}

/// Creates the tables and does transactions until it is killed. Threads note how many were acknowledged in a file.
pub fn work_until_killed(kind: &Kind, folder: &Path) -> Result<()> {
    let contender = kind.make.ok_or("not installed")?(folder, Start::Create, SCALE)?;
    let file = File::create_new(folder.join(ACKNOWLEDGED))?;
    let next = AtomicU64::new(0);
    let work = |thread: u64| -> Result<()> {
        for count in 1u64.. {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= SCALE.history_rows {
                break;
            }
            contender.transaction(&Transfer::new(number))?;
            file.write_all_at(&count.to_le_bytes(), thread * 8)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS as u64).map(|thread| scope.spawn(move || work(thread))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a thread panicked")?)
    })?;
    // To wait for the kill here would measure an idle process.
    Err("all transactions were done before the kill".into())
}

/// Whether the process has begun its transactions.
pub fn has_begun(folder: &Path) -> bool {
    folder.join(ACKNOWLEDGED).metadata().is_ok_and(|file| file.len() > 0)
}

/// Opens what the killed process left. Fails if an acknowledged transaction is lost, one that never began is found, or the
/// balances are wrong.
pub fn reopen(kind: &Kind, folder: &Path) -> Result<Reopened> {
    let noted = std::fs::read(folder.join(ACKNOWLEDGED))?;
    let counts = noted.chunks_exact(8).map(|count| u64::from_le_bytes(count.try_into().expect("8 bytes")));
    let acknowledged: u64 = counts.sum();
    let began = Instant::now();
    let contender = kind.make.ok_or("not installed")?(folder, Start::Open, SCALE)?;
    contender.branch_balance()?;
    let seconds = began.elapsed().as_secs_f64();
    let balances = contender.balances()?;
    balances.check()?;
    let found = balances.history_rows;
    if !(acknowledged..=acknowledged + THREADS as u64).contains(&found) {
        return Err(format!("{acknowledged} transactions were acknowledged, {found} are there").into());
    }
    contender.close()?;
    Ok(Reopened { seconds, acknowledged, found })
}
