//! The text of the workload: `'tpcc warehouses=80 pool=400MiB mix=full qd=8'`, and making it for a device.

use super::layout::Database;
use super::{Mix, POOL_FRAMES_MIN, Tpcc, TpccConfig};
use crate::WorkloadError;
use crate::arrivals::{Limits, Pace};
use crate::words::{self, Words};
use nvlab_units::quantity::{self, told_bytes};

/// What a workload's text begins with.
pub const KIND: &str = "tpcc";
const KEYS: [&str; 12] = [
    "warehouses",
    "pool",
    "mix",
    "page",
    "checkpoint",
    "log",
    "warm-up",
    "span",
    "qd",
    "rate",
    "arrivals",
    "until",
];
/// Rows are counted in 32 bits: 4.3 billion order lines.
const WAREHOUSES_MAX: u32 = 10_000;
const MIXES: [(&str, Mix); 2] = [("new-order", Mix::NewOrder), ("full", Mix::Full)];
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 1024..=65_536;

impl TpccConfig {
    /// Reads a text such as `'tpcc warehouses=20 mix=full until=1e6 transactions'`.
    pub fn parse(whole: &str) -> Result<TpccConfig, WorkloadError> {
        let words = Words::new(whole, &KEYS, &[])?;
        let default = TpccConfig::default();
        let page_bytes = words.quantity("page", words::size)?.unwrap_or(default.page_bytes as u64);
        if !PAGE_BYTES.contains(&page_bytes) || !page_bytes.is_power_of_two() {
            return Err(words.wrong("page", "a power of two from 1 KiB to 64 KiB"));
        }
        let pool_bytes = words.quantity("pool", words::size)?.unwrap_or(default.pool_bytes);
        let frames = pool_bytes / page_bytes;
        if frames < POOL_FRAMES_MIN as u64 || frames >= u32::MAX as u64 {
            let least = told_bytes(POOL_FRAMES_MIN as u64 * page_bytes);
            let value = told_bytes(pool_bytes);
            return Err(
                words.error(format!("pool={value} is wrong: at least {POOL_FRAMES_MIN} pages, {least}"))
            );
        }
        let warehouses = words.number("warehouses", 1..=WAREHOUSES_MAX as u64)?;
        Ok(TpccConfig {
            warehouses: warehouses.map_or(default.warehouses, |number| number as u32),
            pool_bytes,
            mix: words.choice("mix", &MIXES)?.unwrap_or(default.mix),
            page_bytes: page_bytes as u32,
            checkpoint_every: match words.value("checkpoint") {
                None | Some("off") => 0,
                Some(value) => counted(value)
                    .ok_or_else(|| words.wrong("checkpoint", "off, or a count such as 10k transactions"))?,
            },
            log: words.on_off("log")?.unwrap_or(default.log),
            warm_up: match words.value("warm-up") {
                None | Some("full") => None,
                Some("off") => Some(0),
                Some(value) => {
                    let allowed = "full (until the pool is full), off, or a count such as 10k transactions";
                    Some(counted(value).ok_or_else(|| words.wrong("warm-up", allowed))?)
                }
            },
            span: words.quantity("span", words::size)?,
            pace: Pace::parse(&words, "10k/s")?,
            limits: Limits::parse(&words, "transactions")?,
        })
    }

    /// Frames of the pool.
    pub(super) fn frames(&self) -> u32 {
        (self.pool_bytes / self.page_bytes as u64) as u32
    }

    /// The workload on a device of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<Tpcc, WorkloadError> {
        let refuse = |reason: String| Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason });
        let page = self.page_bytes as u64;
        let span = self.span.unwrap_or(capacity);
        if span > capacity {
            let (end, capacity) = (told_bytes(span), told_bytes(capacity));
            return refuse(format!("it may grow to {end}, but the device ends at {capacity}"));
        }
        let pages = u32::try_from(span / page).unwrap_or(u32::MAX - 1);
        let needed = |warehouses: u32| Database::pages_for(warehouses, self.page_bytes, self.log);
        if needed(self.warehouses) > pages as u64 {
            let advice = match (1..self.warehouses).rev().find(|&count| needed(count) <= pages as u64) {
                Some(count) => format!("warehouses={count} would fit"),
                None => "one warehouse is too large".to_owned(),
            };
            let bytes = quantity::display_bytes(needed(self.warehouses) * page);
            return refuse(format!(
                "{} warehouses take {bytes}, {} are available: {advice}",
                self.warehouses,
                told_bytes(span)
            ));
        }
        if self.frames() >= pages && self.checkpoint_every == 0 && !self.log {
            let (pool, span) = (told_bytes(self.pool_bytes), told_bytes(span));
            return refuse(format!(
                "the pool of {pool} holds the whole database of {span}: nothing would ever be written"
            ));
        }
        Ok(Tpcc::new(self, pages, seed))
    }
}

/// `10k transactions` or `10k`; more than none.
fn counted(value: &str) -> Option<u64> {
    let number = value.strip_suffix("transactions").unwrap_or(value);
    quantity::count(number.trim()).ok().filter(|&count| count > 0)
}
