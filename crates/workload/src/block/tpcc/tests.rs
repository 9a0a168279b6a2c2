//! Tests of the engine: what is loaded, what each transaction does, shares, bounds, the same for ever.

use super::layout::{Database, fanout, rows_per_page};
use super::pool::PageIo;
use super::space::EXTENT_PAGES;
use super::standard::*;
use super::*;
use crate::{Target, WorkloadSpec};
use std::collections::BTreeSet;

const SMALL: &str = "tpcc warehouses=2 pool=4MiB warm-up=off";
const SMALL_BYTES: u64 = 512 << 20;

fn open_on(text: &str, capacity: u64, seed: u64) -> Tpcc {
    TpccConfig::parse(text).unwrap().open(text, capacity, seed).unwrap()
}

fn open(text: &str) -> Tpcc {
    open_on(text, SMALL_BYTES, 1)
}

fn requests(tpcc: &mut Tpcc, most: usize) -> Vec<Request> {
    let (mut batch, mut all) = (Batch::new(), Vec::new());
    while all.len() < most && tpcc.fill(&mut batch) > 0 {
        all.extend_from_slice(batch.requests());
        batch.clear();
    }
    all
}

/// Whole structure: every row is in its trees, nothing twice.
fn check(tpcc: &Tpcc) {
    let Engine { database, orders, .. } = &tpcc.engine;
    let count = orders.all.len();
    assert_eq!(database.order.rows() as usize, count);
    assert_eq!(database.order_tree.entries() as usize, count);
    let lines: u64 = orders.all.iter().map(|order| order.lines as u64).sum();
    assert_eq!([database.line.rows() as u64, database.line_tree.entries()], [lines; 2]);
    let waiting: u64 = orders.districts.iter().map(|district| district.undelivered as u64).sum();
    assert_eq!(database.new_order.entries(), waiting);
    let mut keys = Vec::new();
    for (district, state) in (0..).zip(&orders.districts) {
        let first = district * ORDERS as usize;
        let mut next = (first as u32, 0, 0);
        while next.0 != orders::NONE {
            let order = orders.all[next.0 as usize];
            assert_eq!((order.number, order.first_line), (next.1, next.2), "district {district}");
            keys.push(layout::customer_order_key(district as u32, order.customer as u32, order.number));
            next = (order.next, next.1 + 1, next.2 + order.lines as u32);
        }
        assert_eq!((state.next_number, state.next_line), (next.1, next.2));
        assert_eq!(orders.all[state.newest as usize].number + 1, state.next_number);
    }
    keys.sort_unstable();
    assert_eq!(database.customer_order.all(), keys);
}

#[test]
fn the_initial_database_is_the_standards() {
    let tpcc = open(SMALL);
    let Engine { database, orders, .. } = &tpcc.engine;
    let tables =
        [&database.warehouse, &database.district, &database.customer, &database.item, &database.stock];
    assert_eq!(tables.map(|table| table.rows.rows()), [2, 20, 60_000, 100_000, 200_000]);
    assert_eq!([database.history.rows(), database.order.rows()], [60_000; 2]);
    assert_eq!(database.new_order.entries(), 18_000);
    // 10 lines in the mean; the variance of 5 to 15 is (11^2 - 1) / 12 = 10.
    let deviation = (database.line.rows() as f64 - 600_000.0) / (60_000.0f64 * 10.0).sqrt();
    assert!(deviation.abs() < 5.0, "{} lines", database.line.rows());
    check(&tpcc);
    for district in 0..20 {
        let first = district * ORDERS as usize;
        let customers: BTreeSet<u16> =
            orders.all[first..][..3000].iter().map(|order| order.customer).collect();
        assert_eq!(customers.len(), 3000, "each customer has one order");
        let named: BTreeSet<u32> = (0..NAMES)
            .flat_map(|name| orders.named(district as u32, name))
            .map(|place| orders.customer_at(district as u32, place))
            .collect();
        assert_eq!(named.len(), 3000, "each customer has one name");
        assert!((0..NAMES).all(|name| !orders.named(district as u32, name).is_empty()));
    }
}

#[test]
fn rows_and_entries_on_a_page() {
    assert_eq!(rows_per_page(4096, CUSTOMER.row_bytes), (4096 - 24) / 659);
    assert_eq!(rows_per_page(4096, STOCK.row_bytes), 13);
    assert_eq!(rows_per_page(8192, ORDER_LINE.row_bytes), 140);
    assert_eq!(fanout(4096, ORDER_LINE.key_bytes), 4072 / 28);
    // Of 80 warehouses by hand: rows / rows on a page, leaves / fanout and so on.
    let stock = 8_000_000u64.div_ceil(13);
    let leaves = 8_000_000u64.div_ceil(203);
    let tpcc = open_on("tpcc", 8 << 30, 1);
    let database = &tpcc.engine.database;
    assert_eq!(database.stock.rows.pages() as u64, stock);
    assert_eq!(database.stock.tree.pages() as u64, leaves + leaves.div_ceil(203) + 1);
    assert_eq!(database.customer.rows.pages(), 400_000);
    let bound = Database::pages_for(80, 4096, false) - 7 * EXTENT_PAGES as u64;
    let under = 1.0 - database.loaded_pages as f64 / bound as f64;
    assert!((0.0..0.005).contains(&under), "{} pages of {bound}", database.loaded_pages);
    let text = tpcc.describe();
    assert!(text.starts_with("TPC-C new-order: 80 warehouses in 6.49 GiB of 8 GiB, pool 400 MiB"), "{text}");
    assert!(
        text.contains("stock: 8000000 rows of 306 B, 2.35 GiB; index by primary key of depth 3"),
        "{text}"
    );
}

#[test]
fn new_order_does_what_the_standard_says() {
    let mut tpcc = open(SMALL);
    let (transactions, mut of_lines) = (20_000u64, [0u64; 16]);
    for _ in 0..transactions {
        let (before, orders) = (tpcc.counts().clone(), tpcc.engine.orders.all.len());
        tpcc.run_one();
        let after = tpcc.counts();
        let lines = after.lines - before.lines;
        let (a, b) = (after.of(Transaction::NewOrder), before.of(Transaction::NewOrder));
        let done =
            [a.selects - b.selects, a.updates - b.updates, a.inserts - b.inserts, a.deletes - b.deletes];
        // Warehouse, district and customer; item and stock of each line. An item that does not exist is looked for.
        let missing = after.rollbacks - before.rollbacks;
        assert_eq!(done, [3 + 2 * lines + missing, 1 + lines, 2 + lines, 0]);
        assert_eq!(tpcc.engine.orders.all.len() - orders, 1 - missing as usize);
        of_lines[(lines + missing) as usize] += 1;
    }
    let expected = transactions as f64 / 11.0;
    assert!(of_lines[..5].iter().all(|&count| count == 0), "{of_lines:?}");
    assert!(of_lines[5..].iter().all(|&count| (count as f64 - expected).abs() < 5.0 * expected.sqrt()));
    let counts = tpcc.counts();
    let rows = counts.of(Transaction::NewOrder);
    for (name, rows, expected) in
        [("selects", rows.selects, 23.0), ("updates", rows.updates, 11.0), ("inserts", rows.inserts, 12.0)]
    {
        // Twice the deviation of the lines at most, and the line that a rollback leaves out.
        let mean = rows as f64 / transactions as f64;
        assert!(
            (mean - expected).abs() < 0.01 + 5.0 * 2.0 * (10.0 / transactions as f64).sqrt(),
            "{name}: {mean}"
        );
    }
    share(counts.rollbacks, transactions, ROLLBACKS);
    share(counts.remote_lines, counts.lines, REMOTE_LINES);
    check(&tpcc);
}

fn share(part: u64, whole: u64, expected: f64) {
    let deviation = (whole as f64 * expected * (1.0 - expected)).sqrt();
    let error = (part as f64 - whole as f64 * expected) / deviation;
    assert!(error.abs() < 5.0, "{part} of {whole}, {expected} expected");
}

#[test]
fn the_full_mix_has_its_shares_and_stays_whole() {
    let mut tpcc = open(&format!("{SMALL} mix=full"));
    let transactions = 40_000;
    (0..transactions).for_each(|_| tpcc.run_one());
    check(&tpcc);
    let counts = tpcc.counts().clone();
    assert_eq!(counts.transactions(), transactions);
    for kind in Transaction::ALL {
        share(counts.of(kind).transactions, transactions, kind.percent() as f64 / 100.0);
    }
    let [payment, status, delivery, stock] = [1, 2, 3, 4].map(|kind| *counts.of(Transaction::ALL[kind]));
    assert_eq!([payment.updates, payment.inserts], [3 * payment.transactions, payment.transactions]);
    assert_eq!(tpcc.engine.database.history.rows() as u64, 60_000 + payment.transactions);
    assert_eq!(delivery.deletes + counts.skipped_deliveries, 10 * delivery.transactions);
    assert_eq!([status.updates, status.inserts, stock.updates, stock.inserts], [0; 4]);
    // Every order that was delivered was the oldest of its district.
    for (district, state) in tpcc.engine.orders.districts.iter().enumerate() {
        if state.undelivered > 0 {
            let oldest = tpcc.engine.orders.all[state.oldest as usize].number;
            assert_eq!(oldest + state.undelivered, state.next_number, "district {district}");
        }
    }
    // 20 orders of 10 lines; of 200 draws from 100,000 by NURand a few are the same.
    let rows = stock.selects as f64 / stock.transactions as f64;
    assert!((380.0..401.0).contains(&rows), "{rows}");
}

#[test]
fn deliveries_empty_the_queues() {
    let mut tpcc = open("tpcc warehouses=1 pool=4MiB mix=full");
    let engine = &mut tpcc.engine;
    (0..900).for_each(|_| engine.run(Transaction::Delivery));
    assert_eq!(engine.counts.skipped_deliveries, 0);
    engine.run(Transaction::Delivery);
    assert_eq!(engine.counts.skipped_deliveries, 10);
    let warm = engine.counts.of(Transaction::NewOrder).transactions - engine.counts.rollbacks;
    assert_eq!(warm, 0);
    (0..200).for_each(|_| engine.run(Transaction::NewOrder));
    let entered = 200 - engine.counts.rollbacks;
    (0..200).for_each(|_| engine.run(Transaction::Delivery));
    assert_eq!(engine.counts.of(Transaction::Delivery).deletes, 9000 + entered);
    check(&tpcc);
}

/// A page is read after it was loaded or written, and the page of a running transaction never leaves the pool.
#[test]
fn what_is_read_was_written() {
    let mut tpcc = open(&format!("{SMALL} mix=full"));
    let loaded = tpcc.engine.database.loaded_pages;
    let mut written = BTreeSet::new();
    let mut counts = [0u64; 2];
    for _ in 0..40_000 {
        tpcc.run_one();
        let mut read = BTreeSet::new();
        for &io in &tpcc.engine.pool.queue {
            match io {
                PageIo::Read(page) => {
                    assert!(page < loaded || written.contains(&page), "page {page} was never written");
                    assert!(read.insert(page), "page {page} is read twice in a transaction");
                    counts[0] += 1;
                }
                PageIo::Write(page) => {
                    assert!(!read.contains(&page), "page {page} left in the transaction that read it");
                    written.insert(page);
                    counts[1] += 1;
                }
                other => panic!("{other:?} without log and checkpoints"),
            }
        }
    }
    assert!(counts[1] > 100_000 && counts[0] > counts[1], "{counts:?}");
    assert!(written.last().is_some_and(|&page| page >= loaded), "nothing new was written");
}

#[test]
fn requests_stay_inside_and_the_end_is_reached() {
    let span = 200u64 << 20;
    let mut tpcc = open(&format!("{SMALL} span=200MiB qd=4"));
    assert_eq!((tpcc.footprint(), tpcc.pacing()), (0..span, Pacing::Closed { depth: 4 }));
    let all = requests(&mut tpcc, usize::MAX);
    assert!(all.iter().all(|request| request.end() <= span && request.offset.is_multiple_of(4096)));
    assert!(all.iter().all(|request| request.bytes == 4096 && request.at == Time::ZERO));
    let last = all.iter().map(Request::end).max().unwrap();
    let extent = EXTENT_PAGES as u64 * 4096;
    assert!(last > span - 8 * extent, "it ends at {last} of {span}");
    assert_eq!(tpcc.fill(&mut Batch::new()), 0);
    let added = (last - tpcc.engine.database.loaded_pages as u64 * 4096) as f64;
    let of_each = added / tpcc.counts().transactions() as f64;
    let said = tpcc.added_bytes();
    // Extents that are not full yet and inner nodes.
    assert!((of_each / said - 1.0).abs() < 0.05, "{of_each} B added by a transaction, {said} said");
}

#[test]
fn requests_stay_the_same_across_versions() {
    let hash = |text: &str, seed: u64| {
        let requests = requests(&mut open_on(text, SMALL_BYTES, seed), 200_000);
        requests.iter().fold(0u64, |sum, request| {
            sum.wrapping_mul(31).wrapping_add(request.offset << 2 | request.op as u64)
        })
    };
    let text = "tpcc warehouses=2 pool=4MiB";
    assert_eq!(hash(text, 1), hash(text, 1));
    assert_ne!(hash(text, 1), hash(text, 2));
    assert_eq!([hash(text, 1), hash(&format!("{text} mix=full"), 1)], GOLDEN);
}
const GOLDEN: [u64; 2] = [973_645_654_407_351_049, 16_764_355_321_519_487_013];

#[test]
fn the_log_is_forced_at_every_commit() {
    let mut tpcc = open(&format!("{SMALL} log=on"));
    let ring = (64 << 20) / 4096;
    let mut last = 0;
    for _ in 0..30_000 {
        let before = tpcc.counts().rollbacks;
        tpcc.run_one();
        let is_rolled_back = tpcc.counts().rollbacks > before;
        let queue = &tpcc.engine.pool.queue;
        let forced = queue.iter().position(|io| matches!(io, PageIo::Log(_))).unwrap_or(queue.len());
        assert_eq!(forced == queue.len(), is_rolled_back);
        for io in &queue[forced..] {
            let PageIo::Log(page) = *io else { panic!("{io:?} behind the commit") };
            assert!(page < ring && (page == last || page == (last + 1) % ring), "{page} after {last}");
            last = page;
        }
    }
    assert!(last > 0);
    let mut tpcc = open(&format!("{SMALL} log=on"));
    let all = requests(&mut tpcc, 10_000);
    assert!(all.iter().all(|request| request.fua == (request.offset < 64 << 20)));
}

#[test]
fn checkpoints_leave_no_changed_page() {
    let mut tpcc = open(&format!("{SMALL} checkpoint=1k transactions"));
    let all = requests(&mut tpcc, 100_000);
    let flushes: Vec<usize> = all
        .iter()
        .enumerate()
        .filter(|(_, request)| request.op == Op::Flush)
        .map(|(place, _)| place)
        .collect();
    assert!(flushes.len() >= 2, "{flushes:?}");
    let before = &all[..flushes[1]];
    let run = before.iter().rev().take_while(|request| request.op == Op::Write);
    let addresses: Vec<u64> = run.map(|request| request.offset).collect();
    assert!(addresses.len() > 100 && addresses[..100].is_sorted_by(|a, b| a > b));
    tpcc.engine.pool.queue.clear();
    tpcc.engine.pool.checkpoint();
    tpcc.engine.pool.queue.clear();
    tpcc.engine.pool.checkpoint();
    assert_eq!(tpcc.engine.pool.queue, [PageIo::Flush]);
}

#[test]
fn warm_up_arrivals_and_ends() {
    let mut tpcc = open("tpcc warehouses=2 pool=4MiB rate=1k/s until=10s");
    let all = requests(&mut tpcc, usize::MAX);
    assert!(all.is_sorted_by_key(|request| request.at) && all.len() > 50_000);
    assert!(
        all[0].op == Op::Write || all[1].op == Op::Write,
        "a full pool gives a page up for each it reads"
    );
    assert!(tpcc.has_end() && !open(SMALL).has_end());
    let mut tpcc = open(&format!("{SMALL} until=500 transactions"));
    assert!(tpcc.has_end() && tpcc.len_hint().is_none());
    requests(&mut tpcc, usize::MAX);
    assert_eq!(tpcc.counts().transactions(), 500);
    let mut tpcc = open("tpcc warehouses=2 pool=4MiB warm-up=300 until=500 transactions");
    requests(&mut tpcc, usize::MAX);
    assert_eq!(tpcc.counts().transactions(), 800);
    // More frames than the database has pages: it ends all the same.
    let mut tpcc = open("tpcc warehouses=1 pool=200MiB until=100 transactions");
    assert!(!requests(&mut tpcc, usize::MAX).is_empty());
    assert_eq!(tpcc.counts().transactions(), 51_200 + 100);
}

#[test]
fn wrong_texts_of_tpcc_say_what_is_allowed() {
    for (text, expected) in [
        ("tpcc warehouse=2", "did you mean 'warehouses'?"),
        ("tpcc warehouses=0", "warehouses=0 is wrong: a whole number from 1 to 10000"),
        ("tpcc page=3KiB", "page=3KiB is wrong: a power of two from 1 KiB to 64 KiB"),
        ("tpcc pool=1MiB", "pool=1 MiB is wrong: at least 1024 pages, 4 MiB"),
        ("tpcc mix=all", "mix=all is wrong: new-order or full"),
        ("tpcc log=yes", "log=yes is wrong: on or off"),
        ("tpcc checkpoint=0", "checkpoint=0 is wrong: off, or a count such as 10k transactions"),
        (
            "tpcc warm-up=some",
            "warm-up=some is wrong: full (until the pool is full), off, or a count such as 10k transactions",
        ),
        ("tpcc rate=1k/s qd=2", "qd= is a closed loop and rate= an open one"),
        ("tpcc until=1e6 io", "until=1e6 io is wrong: a time (60 s) or a number (1e6 transactions)"),
    ] {
        let message = WorkloadSpec::parse(text).unwrap_err().to_string();
        assert!(message.starts_with(&format!("workload '{text}': ")), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let refused = |text: &str, capacity: u64, unit: u64| {
        WorkloadSpec::parse(text).unwrap().open(Target::blocks(capacity, unit), 1).unwrap_err().to_string()
    };
    let message = refused("tpcc", 2 << 30, 512);
    assert!(
        message.contains("80 warehouses take 6.5 GiB, 2 GiB are available: warehouses=24 would fit"),
        "{message}"
    );
    let message = refused("tpcc", 64 << 20, 512);
    assert!(message.contains("one warehouse is too large"), "{message}");
    let message = refused("tpcc warehouses=2 span=2GiB", 1 << 30, 512);
    assert!(message.contains("it may grow to 2 GiB, but the device ends at 1 GiB"), "{message}");
    let message = refused("tpcc warehouses=2 pool=2GiB", 1 << 30, 512);
    assert!(
        message
            .contains("the pool of 2 GiB holds the whole database of 1 GiB: nothing would ever be written"),
        "{message}"
    );
    let message = refused("tpcc", 8 << 30, 16_384);
    assert!(message.contains("requests of 4096 B are not whole units of the device's 16384 B"), "{message}");
}
