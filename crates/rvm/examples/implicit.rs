//! What implicit logging costs: debit-credit as in the persistent heap of system 001 (80 B in 7 ranges, slide 29), with
//! ranges named by the program, found by a typed heap, and found by page protection.
//!
//! `cargo run --release -p nvlab-rvm --example implicit`; the argument is the number of transactions (default 200,000).
//! Files are in `/dev/shm` and nobody waits for the log: only the processor's time counts. The last column is a hash of the
//! region, the same for all ways.

use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::record::Headers;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Part, Region, Rvm, Truncation};
use zerocopy::{FromBytes, IntoBytes};

const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;
const ROWS: u64 = 1 << 16;

/// An account, teller or branch: its balance, owner, last entry in the history, and when it was opened.
type Record = [i64; 4];
/// An entry of the history: its number, account, teller, amount and stamp; the last word is not used.
type Row = [i64; 6];

const BRANCH: usize = 4096;
const TELLER: usize = 8192;
const ACCOUNT: usize = 12288;
const HISTORY: usize = (ACCOUNT + ACCOUNTS as usize * size_of::<Record>()).next_multiple_of(4096);
/// The head of the history, and where the next object is allocated.
const ROOTS: usize = 0;
const REGION: usize = HISTORY + ROWS as usize * size_of::<Row>();

/// One deposit.
struct Deposit {
    number: u64,
    account: u64,
    delta: i64,
}

impl Deposit {
    /// Multiplicative draws, the same for every way.
    fn of(number: u64) -> Deposit {
        let draw = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        Deposit { number, account: draw % ACCOUNTS, delta: (draw % 1_999_999) as i64 - 999_999 }
    }

    /// Offsets of the account, the teller, the branch and the entry.
    fn places(&self) -> [usize; 4] {
        let account = ACCOUNT + self.account as usize * size_of::<Record>();
        let teller = TELLER + (self.account % TELLERS) as usize * size_of::<Record>();
        [account, teller, BRANCH, HISTORY + (self.number % ROWS) as usize * size_of::<Row>()]
    }

    fn row(&self) -> Row {
        let (number, account) = (self.number as i64, self.account as i64);
        [number, account, account % TELLERS as i64, self.delta, number ^ 0x5555, 0]
    }

    /// The first 40 B of the entry are written.
    fn explicit(&self, region: &mut Region) -> nvlab_rvm::Result<()> {
        let [account, teller, branch, entry] = self.places();
        let mut transaction = region.begin();
        for at in [account, teller, branch] {
            *transaction.get_mut::<i64>(at)? += self.delta;
        }
        *transaction.get_mut::<u32>(account + 16)? = self.number as u32;
        transaction.write(entry, &self.row().as_bytes()[..40])?;
        *transaction.get_mut::<u32>(ROOTS)? = self.number as u32;
        *transaction.get_mut::<u64>(ROOTS + 64)? = entry as u64;
        transaction.commit_no_flush()
    }

    fn typed(&self, region: &mut Region) -> nvlab_rvm::Result<()> {
        let [account, teller, branch, entry] = self.places();
        let mut transaction = region.begin();
        for at in [teller, branch] {
            transaction.get_mut::<Record>(at)?[0] += self.delta;
        }
        let account: &mut Record = transaction.get_mut(account)?;
        account[0] += self.delta;
        account[2] = i64::from(self.number as u32);
        *transaction.get_mut::<Row>(entry)? = self.row();
        *transaction.get_mut::<u32>(ROOTS)? = self.number as u32;
        *transaction.get_mut::<u64>(ROOTS + 64)? = entry as u64;
        transaction.commit_no_flush()
    }

    fn protected(&self, region: &mut Region) -> nvlab_rvm::Result<()> {
        let [account, teller, branch, entry] = self.places();
        let mut transaction = region.begin();
        let bytes = transaction.implicit(Part::FIRST)?;
        for at in [account, teller, branch] {
            record(bytes, at)[0] += self.delta;
        }
        record(bytes, account)[2] = i64::from(self.number as u32);
        bytes[entry..entry + 40].copy_from_slice(&self.row().as_bytes()[..40]);
        bytes[ROOTS..ROOTS + 4].copy_from_slice(&(self.number as u32).to_le_bytes());
        bytes[ROOTS + 64..ROOTS + 72].copy_from_slice(&entry.to_le_bytes());
        transaction.commit_no_flush()
    }
}

fn record(bytes: &mut [u8], at: usize) -> &mut Record {
    Record::mut_from_bytes(&mut bytes[at..at + size_of::<Record>()]).expect("records are aligned")
}

/// CPU time of this program, which other programs on the machine do not lengthen.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux keeps scheduling figures");
    let ns = text.split_whitespace().next().and_then(|text| text.parse().ok());
    ns.expect("the first figure is time on the processor")
}

type Way = fn(&Deposit, &mut Region) -> nvlab_rvm::Result<()>;

fn measure(name: &str, way: Way, count: u64, options: Options) -> nvlab_rvm::Result<()> {
    let folder = tempfile::tempdir_in("/dev/shm").expect("Linux has /dev/shm");
    let log = folder.path().join("log");
    // Room for every record, so that no truncation is part of the figure.
    FileLog::create(&log, (count * 700).max(1 << 20))?;
    let segments = SegmentFolder::new(folder.path());
    segments.create("data", REGION.next_multiple_of(4096) as u64)?;
    let rvm = Rvm::open(FileLog::open(&log)?, segments, options)?;
    let mut region = rvm.map("data", 0..REGION.next_multiple_of(4096) as u64)?;
    // A tenth to warm up: pages of the region, buffers, the watch.
    (0..count / 10).try_for_each(|number| way(&Deposit::of(number), &mut region))?;
    let (before, begun) = (rvm.statistics(), cpu_ns());
    (count / 10..count).try_for_each(|number| way(&Deposit::of(number), &mut region))?;
    let (after, ns) = (rvm.statistics(), cpu_ns() - begun);
    let done = (count - count / 10) as f64;
    let per = |after: u64, before: u64| (after - before) as f64 / done;
    let sum = region.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    println!(
        "{name:<34} {:>6.1} {:>7.1} {:>9.1} {:>10.0}   {sum:016x}",
        per(after.ranges, before.ranges),
        per(after.range_bytes, before.range_bytes),
        per(after.logged_bytes, before.logged_bytes),
        ns as f64 / done
    );
    Ok(())
}

fn main() -> nvlab_rvm::Result<()> {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200_000);
    println!("{count} transactions; each of:");
    println!("{:<34} {:>6} {:>7} {:>9} {:>10}", "", "ranges", "bytes", "logged B", "CPU-ns");
    let plain = Options { truncation: Truncation::WhenFull, spool_bytes_max: 1 << 16, ..Options::default() };
    let original = Options { headers: Headers::Original, ..plain };
    let diff = Options { diff: true, ..plain };
    measure("explicit, the original's headers", Deposit::explicit, count, original)?;
    measure("explicit", Deposit::explicit, count, plain)?;
    measure("explicit, diff", Deposit::explicit, count, diff)?;
    measure("typed", Deposit::typed, count, plain)?;
    measure("typed, diff", Deposit::typed, count, diff)?;
    measure("page protection", Deposit::protected, count, plain)?;
    measure("page protection, original headers", Deposit::protected, count, original)
}
