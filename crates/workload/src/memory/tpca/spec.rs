//! The text of the workload: `'tpca branches=155 rate=10k/s history=off home=off'`, and making it for a memory.

use super::{RecordReads, TELLERS_PER_BRANCH, Tpca, TpcaConfig};
use crate::WorkloadError;
use crate::arrivals::{Limits, Pace};
use crate::words::{self, Words};
use nvlab_units::quantity;

/// What a workload's text begins with.
pub const KIND: &str = "tpca";
const KEYS: [&str; 12] = [
    "branches",
    "accounts",
    "record",
    "fanout",
    "page",
    "spread-hot",
    "reads",
    "home",
    "history",
    "rate",
    "arrivals",
    "until",
];
const READS: [(&str, RecordReads); 2] = [("balance", RecordReads::Balance), ("record", RecordReads::Whole)];
const BRANCHES_MAX: u64 = 1_000_000;
/// Keys and pointers are words of 4 B.
const SPACE_MAX: u64 = 1 << 32;

impl TpcaConfig {
    /// Reads a text such as `'tpca branches=155 rate=10k/s home=85%'`. `accounts=` is per branch; `branches=fit`
    /// takes as many as the memory holds.
    pub fn parse(whole: &str) -> Result<TpcaConfig, WorkloadError> {
        let words = Words::new(whole, &KEYS, &[])?;
        let default = TpcaConfig::default();
        let size = |key: &str, default: u32, range: std::ops::RangeInclusive<u64>| {
            let allowed = format!("{} to {} bytes", range.start(), range.end());
            match words.quantity(key, words::size)? {
                None => Ok(default),
                Some(bytes) if range.contains(&bytes) => Ok(bytes as u32),
                Some(_) => Err(words.wrong(key, &allowed)),
            }
        };
        let number = |key: &str, default: u32, max: u64| {
            Ok::<u32, WorkloadError>(words.number(key, 1..=max)?.map_or(default, |number| number as u32))
        };
        let config = TpcaConfig {
            branches: match words.value("branches") {
                Some("fit") => 0,
                _ => number("branches", default.branches, BRANCHES_MAX)?,
            },
            accounts_per_branch: number("accounts", default.accounts_per_branch, 1_000_000)?,
            record_bytes: size("record", default.record_bytes, 8..=4096)?,
            fanout: number("fanout", default.fanout, 4096)?,
            page_bytes: size("page", default.page_bytes, 64..=65_536)?,
            spread_hot: words.on_off("spread-hot")?.unwrap_or(default.spread_hot),
            record_reads: words.choice("reads", &READS)?.unwrap_or(default.record_reads),
            home: match words.value("home") {
                None | Some("off") => None,
                Some(_) => words.quantity("home", quantity::fraction)?,
            },
            history: words.on_off("history")?.unwrap_or(default.history),
            pace: Pace::parse(&words, "10k/s")?,
            limits: Limits::parse(&words, "transactions")?,
        };
        config.check().map_err(|reason| words.error(reason))?;
        Ok(config)
    }

    /// Checks that a database can be made of it; the error names the bound exceeded.
    pub fn check(&self) -> Result<(), String> {
        let TpcaConfig { fanout, record_bytes, page_bytes, .. } = *self;
        if self.accounts_per_branch == 0 {
            return Err("a branch must have at least one account".to_owned());
        }
        if !fanout.is_power_of_two() || fanout < 2 {
            return Err(format!("fanout={fanout} is wrong: a power of two, at least 2"));
        }
        if record_bytes < 8 || !record_bytes.is_multiple_of(4) {
            return Err(format!("record={record_bytes} is wrong: a multiple of 4 B, at least 8 B"));
        }
        if page_bytes < 64 || !page_bytes.is_power_of_two() {
            return Err(format!("page={page_bytes} is wrong: a power of two, at least 64 B"));
        }
        // A lower bound: the records alone.
        let tellers = self.branches as u64 * TELLERS_PER_BRANCH;
        let records = self.branches as u64 * self.accounts_per_branch as u64 + tellers;
        if records * record_bytes as u64 > SPACE_MAX {
            let space = quantity::display_bytes(SPACE_MAX);
            return Err(format!(
                "{records} records of {record_bytes} B exceed the {space} addressable by pointers of 4 B"
            ));
        }
        Ok(())
    }

    /// The configuration with as many branches as fit ("the database can be scaled to fit any storage system",
    /// section 5.2).
    fn fitted(&self, what: &str, capacity: u64) -> Result<TpcaConfig, WorkloadError> {
        let with = |branches: u32| TpcaConfig { branches, ..*self };
        let fits = |branches: u32| {
            let config = with(branches);
            config.check().is_ok() && Tpca::new(&config, 0).footprint_bytes <= capacity
        };
        if !fits(1) {
            return with(1).open(what, capacity, 0).map(|_| with(1));
        }
        // Bisection between a number that fits and one that does not.
        let (mut low, mut high) = (1, BRANCHES_MAX as u32 + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) { low = middle } else { high = middle }
        }
        Ok(with(low))
    }

    /// The workload on a memory of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<Tpca, WorkloadError> {
        if self.branches == 0 {
            return Ok(Tpca::new(&self.fitted(what, capacity)?, seed));
        }
        let workload = Tpca::new(self, seed);
        let needed = workload.footprint_bytes;
        if needed <= capacity {
            return Ok(workload);
        }
        let per_branch = needed / self.branches as u64;
        let advice = match capacity / per_branch {
            0 => "accounts= makes branches smaller".to_owned(),
            branches => format!("branches={branches} would fit"),
        };
        let exact = quantity::told_bytes;
        let reason =
            format!("it takes {}, but the memory holds {}: {advice}", exact(needed), exact(capacity));
        Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason })
    }
}
