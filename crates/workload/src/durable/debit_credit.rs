//! Debit-credit, TPC-B alike: a deposit changes an account, its teller and its branch, and is recorded in the history
//! (system 001, slides 28 and 29).
//!
//! The paper gives sums: 448 B in a record of 748 B for C++ (so 4 ranges), 80 B in a record of 548 B for the persistent
//! heap Sidney (so 7 ranges), 100,000 accounts whatever the rate. How they are divided is assumed:
//!
//! | style | account, teller, branch | history | others |
//! |---|---|---|---|
//! | `c++` | the whole object, 112 B each | 112 B | |
//! | `sidney` | the balance, 8 B each | 40 B | the account's last entry 4 B, head of the history 4 B, allocation 8 B |
//!
//! Of a C++ object a deposit changes the first 8 bytes, the balance and a stamp that differs from transaction to
//! transaction; of the history 56 B. That makes 80 B, the bytes the persistent heap sends.
//!
//! A teller belongs to the branch of the account; a branch has at most 100,000 accounts and 10 tellers (TPC-B). Balances
//! wrap around: sums agree modulo 2^32.

use super::{Changes, DurableWorkload};
use crate::arrivals::{Arrivals, Limits, Pace};
use crate::words::Words;
use crate::{Pacing, Span, Time, Workload, WorkloadError};
use nvlab_units::Rng;
use nvlab_units::quantity::{self, exact_span, told_bytes};
use std::ops::Range;

/// What a workload's text begins with.
pub const KIND: &str = "debit-credit";
const KEYS: [&str; 7] = ["style", "accounts", "cpu", "threads", "rate", "arrivals", "until"];
const ACCOUNTS_PER_BRANCH: u64 = 100_000;
const TELLERS_PER_BRANCH: u64 = 10;
/// Entries of the history before the oldest is overwritten.
const HISTORY_ROWS: u64 = 1 << 16;
/// Tables begin at multiples of this, at least so far behind the one before.
const ALIGNMENT: u64 = 4096;
/// Programs that commit at the same time, at most.
const THREADS_MAX: u64 = 4096;
/// The largest deposit or withdrawal (TPC-B clause 1.3).
const DELTA_MAX: u64 = 999_999;

/// How a program tells the log what it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A C++ program that logs whole objects.
    Cpp,
    /// A persistent heap that logs what was assigned.
    Sidney,
}

impl Style {
    fn name(self) -> &'static str {
        match self {
            Style::Cpp => "c++",
            Style::Sidney => "sidney",
        }
    }

    /// Bytes of an account, teller or branch; of it those that are logged; bytes of an entry of the history; of it those
    /// that are not zero.
    fn sizes(self) -> [u64; 4] {
        match self {
            Style::Cpp => [112, 112, 112, 56],
            Style::Sidney => [32, 8, 48, 40],
        }
    }

    /// The program's own time for a transaction (slide 38).
    fn cpu(self) -> Span {
        match self {
            Style::Cpp => Span::from_us(300),
            Style::Sidney => Span::from_ms(1),
        }
    }
}

/// Debit-credit before it is opened on a memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DebitCreditConfig {
    /// Which program's records are logged, and so how many bytes.
    pub style: Style,
    /// Rows of the account table.
    pub accounts: u32,
    /// The program's own time for each transaction.
    pub cpu: Span,
    /// A closed loop of `threads=`, or a rate.
    pub pace: Pace,
    /// When it ends; bytes do not count.
    pub limits: Limits,
}

/// `threads=`, or an open loop.
fn pace(words: &Words) -> Result<Pace, WorkloadError> {
    let threads = words.number("threads", 1..=THREADS_MAX)?.map(|threads| threads as u32);
    match (Pace::parse(words, "100/s")?, threads) {
        (Pace::Closed { .. }, Some(depth)) => Ok(Pace::Closed { depth }),
        (_, Some(_)) => Err(words.error("threads= is a closed loop and rate= an open one: give only one")),
        (pace, None) => Ok(pace),
    }
}

impl DebitCreditConfig {
    /// Reads a text such as `'debit-credit style=sidney cpu=1ms'`.
    pub fn parse(text: &str) -> Result<DebitCreditConfig, WorkloadError> {
        let words = Words::new(text, &KEYS, &[])?;
        let styles = [Style::Cpp, Style::Sidney].map(|style| (style.name(), style));
        let style = words.choice("style", &styles)?.unwrap_or(Style::Cpp);
        Ok(DebitCreditConfig {
            style,
            accounts: words.number("accounts", 1..=10_000_000)?.unwrap_or(ACCOUNTS_PER_BRANCH) as u32,
            cpu: words.quantity("cpu", quantity::span)?.unwrap_or(style.cpu()),
            pace: pace(&words)?,
            limits: Limits::parse(&words, "transactions")?,
        })
    }

    /// The workload on a memory of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<DebitCredit, WorkloadError> {
        let workload = DebitCredit::new(self, seed);
        let needed = workload.end;
        if needed <= capacity {
            return Ok(workload);
        }
        let reason = format!(
            "it takes {}, but the memory has {}: use a larger `ftl.memory`, or fewer accounts",
            told_bytes(needed),
            told_bytes(capacity)
        );
        Err(WorkloadError::DoesNotFit { what: what.to_owned(), reason })
    }
}

/// Records of one size, side by side.
#[derive(Clone, Copy, Debug)]
struct Table {
    base: u64,
    stride: u64,
    count: u64,
}

impl Table {
    fn at(&self, number: u64) -> u64 {
        self.base + number * self.stride
    }

    /// The sum of the first word of every record.
    fn sum(&self, memory: &[u8]) -> i32 {
        let balances = (0..self.count).map(|number| word(memory, self.at(number)) as i32);
        balances.fold(0, i32::wrapping_add)
    }
}

fn word(memory: &[u8], offset: u64) -> u32 {
    let bytes = &memory[offset as usize..][..4];
    u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
}

/// The generator. It keeps the balances, so that a transaction is the same whatever became of the memory.
#[derive(Clone, Debug)]
pub struct DebitCredit {
    config: DebitCreditConfig,
    /// Branches, tellers, accounts: records and their balances.
    tables: [Table; 3],
    balances: [Vec<i32>; 3],
    history: Table,
    /// Head of the history, and 64 B behind it where the next object is allocated.
    roots: u64,
    end: u64,
    arrivals: Arrivals,
    choices: Rng,
    done: u64,
}

impl DebitCredit {
    fn new(config: &DebitCreditConfig, seed: u64) -> DebitCredit {
        let [record, _, history, _] = config.style.sizes();
        let mut end = ALIGNMENT;
        let mut table = |count: u64, stride: u64| {
            let base = end;
            end = (base + count * stride + 1).next_multiple_of(ALIGNMENT);
            Table { base, stride, count }
        };
        let accounts = config.accounts as u64;
        let branches = accounts.div_ceil(ACCOUNTS_PER_BRANCH);
        let tables = [branches, branches * TELLERS_PER_BRANCH, accounts].map(|count| table(count, record));
        let history = table(HISTORY_ROWS, history);
        DebitCredit {
            config: *config,
            balances: tables.map(|table| vec![0; table.count as usize]),
            tables,
            history,
            roots: 0,
            end,
            arrivals: Arrivals::new(config.pace, config.limits.time, seed),
            choices: Rng::stream(seed, "accounts"),
            done: 0,
        }
    }

    /// Changes a balance: the record, with its balance and a stamp in the first 8 bytes.
    fn change(&mut self, table: usize, number: u64, delta: i32, stamp: u32, changes: &mut Changes) {
        let [_, logged, ..] = self.config.style.sizes();
        let balance = &mut self.balances[table][number as usize];
        *balance = balance.wrapping_add(delta);
        let mut record = [0; 112];
        record[..4].copy_from_slice(&balance.to_le_bytes());
        record[4..8].copy_from_slice(&stamp.to_le_bytes());
        changes.push(self.tables[table].at(number), &record[..logged as usize]);
    }

    fn record(&mut self, entry: [u32; 4], changes: &mut Changes) {
        let [.., used] = self.config.style.sizes();
        let logged = if self.config.style == Style::Cpp { 112 } else { used as usize };
        let mut row = [0; 112];
        let fields = row[4..].as_chunks_mut::<4>().0.iter_mut();
        for (into, field) in fields.zip(entry) {
            *into = field.to_le_bytes();
        }
        // The number comes first and counts from 1: an entry that is all zero was never written.
        row[..4].copy_from_slice(&(self.done as u32 + 1).to_le_bytes());
        for byte in &mut row[20..used as usize] {
            *byte = self.choices.below(255) as u8 + 1;
        }
        changes.push(self.history.at(self.done % HISTORY_ROWS), &row[..logged]);
    }
}

impl DurableWorkload for DebitCredit {
    fn next(&mut self, changes: &mut Changes) -> Option<Time> {
        changes.clear();
        if self.config.limits.requests.is_some_and(|requests| self.done >= requests) {
            return None;
        }
        let at = self.arrivals.next()?;
        let account = self.choices.below(self.tables[2].count);
        let branch = account / ACCOUNTS_PER_BRANCH;
        let teller = branch * TELLERS_PER_BRANCH + self.choices.below(TELLERS_PER_BRANCH);
        let delta = self.choices.below(2 * DELTA_MAX + 1) as i32 - DELTA_MAX as i32;
        let stamp = self.choices.bits() as u32;
        self.change(2, account, delta, stamp, changes);
        if self.config.style == Style::Sidney {
            let last = self.tables[2].at(account) + 16;
            changes.push(last, &(self.done as u32 + 1).to_le_bytes());
        }
        self.change(1, teller, delta, stamp, changes);
        self.change(0, branch, delta, stamp, changes);
        self.record([account as u32, teller as u32, branch as u32, delta as u32], changes);
        if self.config.style == Style::Sidney {
            changes.push(self.roots, &(self.done as u32 + 1).to_le_bytes());
            let next = self.history.at((self.done + 1) % HISTORY_ROWS);
            changes.push(self.roots + 64, &next.to_le_bytes());
        }
        changes.compute = self.config.cpu;
        self.done += 1;
        Some(at)
    }

    /// The balances of accounts, tellers and branches have the same sum, which is that of the history as long as no entry
    /// was overwritten; and what points to the last entry does.
    fn check(&self, memory: &[u8]) -> Result<(), String> {
        if (memory.len() as u64) < self.end {
            return Err(format!("the memory has {} B, the tables take {}", memory.len(), self.end));
        }
        let [branches, tellers, accounts] = self.tables.map(|table| table.sum(memory));
        if branches != tellers || branches != accounts {
            return Err(format!(
                "the balances do not add up: branches {branches}, tellers {tellers}, accounts {accounts}"
            ));
        }
        let rows: Vec<u64> = (0..HISTORY_ROWS).map(|row| self.history.at(row)).collect();
        let numbers = rows.iter().map(|&row| word(memory, row) as u64);
        let (written, last) = (numbers.clone().filter(|&n| n > 0).count() as u64, numbers.max());
        let last = last.unwrap_or(0);
        if written != last.min(HISTORY_ROWS) {
            return Err(format!("the history has {written} entries, the last has number {last}"));
        }
        let sum = rows.iter().map(|&row| word(memory, row + 16) as i32).fold(0, i32::wrapping_add);
        if last <= HISTORY_ROWS && sum != branches {
            return Err(format!("the history adds up to {sum}, the balances to {branches}"));
        }
        if self.config.style == Style::Sidney && last > 0 {
            let row = self.history.at((last - 1) % HISTORY_ROWS);
            let account = self.tables[2].at(word(memory, row + 4) as u64);
            let next = self.history.at(last % HISTORY_ROWS);
            let found = [word(memory, account + 16), word(memory, self.roots), word(memory, self.roots + 64)];
            let wanted = [last as u32, last as u32, next as u32];
            if found != wanted {
                return Err(format!("account, head and allocation point to {found:?}, not to {wanted:?}"));
            }
        }
        Ok(())
    }
}

impl Workload for DebitCredit {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }

    fn footprint(&self) -> Range<u64> {
        0..self.end
    }

    fn len_hint(&self) -> Option<u64> {
        self.config.limits.requests.map(|requests| requests - self.done)
    }

    fn time_limit(&self) -> Option<Span> {
        self.config.limits.time
    }

    fn describe(&self) -> String {
        let DebitCreditConfig { style, accounts, cpu, .. } = self.config;
        let (bytes, ranges) = match style {
            Style::Cpp => (448, 4),
            Style::Sidney => (80, 7),
        };
        let cpu = exact_span(cpu);
        let style = style.name();
        format!(
            "debit-credit ({style}) on {accounts} accounts: {bytes} B in {ranges} ranges, {cpu} of computing\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(changes: &Changes, memory: &mut [u8]) {
        for (offset, data) in changes.iter() {
            memory[offset as usize..][..data.len()].copy_from_slice(data);
        }
    }

    #[test]
    fn ranges_and_bytes_are_those_of_the_paper_and_balances_add_up() {
        for (text, ranges, bytes) in
            [("debit-credit accounts=1000", 4, 448), ("debit-credit style=sidney accounts=1000", 7, 80)]
        {
            let config = DebitCreditConfig::parse(text).unwrap();
            let mut workload = config.open(text, 1 << 30, 3).unwrap();
            let mut memory = vec![0; workload.footprint().end as usize];
            let mut changes = Changes::default();
            for _ in 0..500 {
                workload.next(&mut changes).unwrap();
                assert_eq!((changes.iter().count(), changes.bytes()), (ranges, bytes), "{text}");
                let mut places: Vec<_> =
                    changes.iter().map(|(offset, data)| (offset, offset + data.len() as u64)).collect();
                places.sort_unstable();
                assert!(places.windows(2).all(|pair| pair[0].1 < pair[1].0), "{places:?}");
                apply(&changes, &mut memory);
                workload.check(&memory).unwrap();
            }
            // A lost range of the last transaction is found, whichever it is.
            for (offset, data) in changes.iter() {
                let mut torn = memory.clone();
                torn[offset as usize..][..data.len()].fill(0);
                workload.check(&torn).unwrap_err();
            }
        }
    }

    #[test]
    fn a_memory_too_small_is_refused() {
        let config = DebitCreditConfig::parse("debit-credit").unwrap();
        assert!(config.open("w", 1 << 20, 1).unwrap_err().to_string().contains("ftl.memory"));
        assert!(DebitCreditConfig::parse("debit-credit style=cobol").is_err());
    }
}
