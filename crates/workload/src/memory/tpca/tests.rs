//! Tests of the TPC-A driver: the paper's sizes, searches followed through a stored tree, counts, rates, errors.

use super::*;
use crate::memory::AccessKind;
use crate::{Target, WorkloadSpec};
use std::collections::BTreeSet;

const SEED: u64 = 1;

fn open(text: &str) -> Tpca {
    TpcaConfig::parse(text).unwrap().open(text, u64::MAX, SEED).unwrap()
}

fn reason(text: &str) -> String {
    WorkloadSpec::parse(text).unwrap_err().to_string()
}

/// Section 5.2, figure 12, and what SEEDS derives from them.
#[test]
fn tpca_has_the_sizes_of_the_paper() {
    let tpca = open("tpca");
    assert_eq!([tpca.branches.count, tpca.tellers.count, tpca.accounts.count], [155, 1550, 15_500_000]);
    let trees = [&tpca.branch_tree, &tpca.teller_tree, &tpca.account_tree];
    assert_eq!(trees.map(Tree::levels), [2, 3, 5]);
    assert_eq!(tpca.account_tree.nodes(), 500_002);
    assert_eq!(tpca.account_tree.node_bytes(), 256);
    // 128 MB of index and 1.55 GB of accounts: within 80 % of 2 GiB, above 78 %.
    let share = tpca.footprint_bytes as f64 / (1u64 << 31) as f64;
    assert!(share > 0.78 && share < 0.80, "{share}");
}

/// A tree as a program would store it: every word of every node.
fn stored(tree: &Tree, count: u64, memory: &mut [u32]) {
    let fanout = 1u64 << tree.fanout_bits;
    let (mut entries, mut keys_below) = (count, 1u64);
    for level in 0..tree.levels {
        let nodes = entries.div_ceil(fanout);
        for slot in 0..nodes * fanout {
            let at = (tree.bases[level] + slot * 8) as usize / 4;
            let key = if slot < entries { slot * keys_below } else { u32::MAX as u64 };
            // What it points at: the record's number on a leaf, the first byte of the node below elsewhere.
            let below = if level == 0 { slot } else { tree.bases[level - 1] + slot * fanout * 8 };
            (memory[at], memory[at + 1]) = (key as u32, below as u32);
        }
        (entries, keys_below) = (nodes, keys_below * fanout);
    }
}

/// The search a program would make, by comparing keys and following pointers: its loads in order.
fn searched(tree: &Tree, key: u64, memory: &[u32]) -> (Vec<Access>, u32) {
    let mut loads = Vec::new();
    let mut load = |offset: u64| {
        loads.push(Access::load(offset, 4));
        memory[offset as usize / 4]
    };
    let mut node = tree.bases[tree.levels - 1];
    for level in (0..tree.levels).rev() {
        let (mut slot, mut half) = (0u64, 1u64 << (tree.fanout_bits - 1));
        while half > 0 {
            if load(node + (slot + half) * 8) as u64 <= key {
                slot += half;
            }
            half /= 2;
        }
        if level == 0 {
            assert_eq!(load(node + slot * 8) as u64, key, "the leaf holds the key");
        }
        node = load(node + slot * 8 + 4) as u64;
    }
    (loads, node as u32)
}

#[test]
fn computed_searches_are_those_of_a_stored_tree() {
    for (count, fanout) in
        [(1, 32), (31, 32), (32, 32), (33, 32), (1000, 32), (70_000, 32), (70_000, 4), (9, 2)]
    {
        let tree = Tree::new(512, count, fanout);
        let mut memory = vec![0u32; (512 + tree.bytes()) as usize / 4];
        stored(&tree, count, &mut memory);
        let mut computed = Vec::new();
        for key in (0..count).step_by(1 + count as usize / 997).chain([count - 1]) {
            computed.clear();
            tree.search(key, &mut computed);
            let (loads, record) = searched(&tree, key, &memory);
            assert_eq!(computed, loads, "key {key} of {count}, fanout {fanout}");
            assert_eq!(record as u64, key);
        }
    }
}

/// The mean per transaction, counted, against [`Tpca::counts`].
#[test]
fn counts_are_what_is_done() {
    for (text, loads, stores) in [
        ("tpca", 66.0, 3.0),
        ("tpca history=on", 66.0, 16.0),
        // 13 bus words hold a record of 100 B, whether it begins on a bus word or in the middle of one.
        ("tpca reads=record", 102.0, 3.0),
        ("tpca branches=1 accounts=1000", 4.0 * 6.0 + 3.0 + 3.0, 3.0),
    ] {
        let mut tpca = open(text);
        let (mut accesses, mut counted, transactions) = (Vec::new(), [0u64; 2], 2000);
        for _ in 0..transactions {
            assert!(tpca.next(&mut accesses).is_some());
            for access in &accesses {
                counted[usize::from(access.kind == AccessKind::Store)] += 1;
            }
        }
        assert_eq!(counted.map(|count| count as f64 / transactions as f64), [loads, stores], "{text}");
        let said = tpca.counts();
        assert_eq!([said.loads() as f64, said.stores() as f64], [loads, stores], "{text}");
    }
}

/// Every access is one aligned word inside the footprint, on the records that belong together.
#[test]
fn accesses_are_aligned_and_inside() {
    for text in
        ["tpca branches=3 accounts=777 spread-hot=on history=on reads=record", "tpca home=85%", "tpca"]
    {
        let mut tpca = open(text);
        let mut accesses = Vec::new();
        for _ in 0..5000 {
            tpca.next(&mut accesses).unwrap();
            for access in &accesses {
                assert!(access.offset.is_multiple_of(access.bytes as u64), "{text}: {access:?}");
                assert!(access.offset + access.bytes as u64 <= tpca.footprint_bytes, "{text}: {access:?}");
            }
        }
    }
}

#[test]
fn the_home_branch_gets_its_share() {
    let mut tpca = open("tpca branches=20 home=85%");
    let transactions = 100_000;
    let at_home = (0..transactions).filter(|_| {
        let [account, teller, branch] = tpca.choose();
        assert_eq!(teller / 10, branch);
        account / 100_000 == branch
    });
    let share = at_home.count() as f64 / transactions as f64;
    assert!((share - 0.85).abs() < 0.005, "{share}");
    let mut tpca = open("tpca branches=20");
    for _ in 0..1000 {
        let [account, teller, branch] = tpca.choose();
        assert_eq!([account / 10_000, account / 100_000], [teller, branch]);
    }
}

#[test]
fn spread_records_have_a_page_each() {
    let pages = |text: &str| {
        let tpca = open(text);
        let page = |records: &Records, key: u64| (records.at(key) + BALANCE_AT) / 256;
        let tellers = (0..tpca.tellers.count).map(|key| page(&tpca.tellers, key));
        let branches = (0..tpca.branches.count).map(|key| page(&tpca.branches, key));
        tellers.chain(branches).collect::<BTreeSet<u64>>().len()
    };
    assert_eq!(pages("tpca spread-hot=on"), 1705);
    assert_eq!(pages("tpca"), 606 + 61);
}

/// A first-in-first-out buffer of pages, of which those beyond a threshold leave: the paper's 10,376 flushes for
/// 10,000 transactions (section 5.5) with a quarter of 65,536 pages and packed records, or with 40,960 pages and a page for each
/// branch and teller.
#[test]
fn flushes_per_transaction_behind_a_buffer() {
    let flushes = |text: &str, threshold: usize| {
        let (mut tpca, mut accesses) = (open(text), Vec::new());
        let mut is_buffered = vec![false; (tpca.footprint_bytes / 256) as usize];
        let mut fifo = std::collections::VecDeque::new();
        let (warm_up, transactions) = (100_000, 400_000);
        let mut left = 0;
        for transaction in 0..warm_up + transactions {
            tpca.next(&mut accesses).unwrap();
            for access in accesses.iter().filter(|access| access.kind == AccessKind::Store) {
                let page = (access.offset / 256) as usize;
                if !std::mem::replace(&mut is_buffered[page], true) {
                    fifo.push_back(page);
                }
            }
            while fifo.len() > threshold {
                is_buffered[fifo.pop_front().unwrap()] = false;
                left += u64::from(transaction >= warm_up);
            }
        }
        left as f64 / transactions as f64
    };
    let packed = flushes("tpca", 16_384);
    assert!((packed - 1.038).abs() < 0.002, "{packed}");
    let spread = flushes("tpca spread-hot=on", 40_960);
    assert!((spread - 1.036).abs() < 0.002, "{spread}");
}

#[test]
fn tpca_arrives_and_ends_as_configured() {
    let mut tpca = open("tpca rate=10k/s until=2s");
    assert_eq!(tpca.pacing(), Pacing::Open);
    let mut accesses = Vec::new();
    let (mut count, mut last) = (0u64, Time::ZERO);
    while let Some(at) = tpca.next(&mut accesses) {
        assert!(at >= last);
        (count, last) = (count + 1, at);
    }
    assert!((count as f64 - 20_000.0).abs() < 5.0 * 20_000f64.sqrt(), "{count}");
    assert!(tpca.next(&mut accesses).is_none() && accesses.is_empty());
    let mut tpca = open("tpca until=1e3 transactions");
    assert_eq!((tpca.pacing(), tpca.len_hint()), (Pacing::Closed { depth: 1 }, Some(1000)));
    assert_eq!(std::iter::from_fn(|| tpca.next(&mut accesses)).count(), 1000);
    assert_eq!(tpca.len_hint(), Some(0));
}

#[test]
fn golden_transactions_of_tpca() {
    let mut tpca = open("tpca rate=10k/s");
    let mut accesses = Vec::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let at = tpca.next(&mut accesses).unwrap().ps();
        let stores = accesses.iter().filter(|access| access.kind == AccessKind::Store);
        seen.push((at, stores.map(|access| access.offset).collect::<Vec<_>>()));
    }
    assert_eq!(seen, GOLDEN.map(|(at, stores)| (at, stores.to_vec())));
}
const GOLDEN: [(u64, [u64; 3]); 3] = [
    (103_260_099, [828_029_256, 98_320, 8_204]),
    (277_541_440, [1_333_017_956, 148_820, 13_304]),
    (296_661_839, [366_897_556, 52_220, 3_604]),
];

#[test]
fn wrong_texts_of_tpca_say_what_is_allowed() {
    for (text, expected) in [
        ("tpca brunches=2", "did you mean 'branches'?"),
        ("tpca fanout=33", "fanout=33 is wrong: a power of two, at least 2"),
        ("tpca record=102B", "record=102 is wrong: a multiple of 4 B, at least 8 B"),
        ("tpca history=yes", "history=yes is wrong: on or off"),
        ("tpca reads=all", "reads=all is wrong: balance or record"),
        ("tpca arrivals=regular", "arrivals= needs rate=, e.g. rate=10k/s"),
        ("tpca until=1e6 io", "until=1e6 io is wrong: a time (60 s) or a number (1e6 transactions)"),
        ("tpca branches=1000", "exceed the 4 GiB addressable by pointers of 4 B"),
    ] {
        let message = reason(text);
        assert!(message.starts_with(&format!("workload '{text}': ")), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let config = TpcaConfig::parse("tpca").unwrap();
    let message = config.open("workload 'tpca'", 1 << 30, 1).unwrap_err().to_string();
    assert!(message.ends_with("branches=99 would fit"), "{message}");
    assert!(config.open("workload 'tpca'", 2 << 30, 1).is_ok());
    let fitted = TpcaConfig::parse("tpca branches=fit").unwrap();
    assert_eq!(fitted.open("workload", 1 << 30, 1).unwrap().branches.count, 99);
    let message = fitted.open("workload 'tpca branches=fit'", 1 << 20, 1).unwrap_err().to_string();
    assert!(message.contains("but the memory holds 1 MiB: accounts= makes branches smaller"), "{message}");
    let spec = WorkloadSpec::parse("tpca").unwrap();
    let message = spec.open(Target::blocks(2 << 30, 512), 1).unwrap_err().to_string();
    assert!(message.contains("loads and stores words of a memory"), "{message}");
}

#[test]
fn tpca_describes_what_it_counts() {
    let text = open("tpca").describe();
    assert!(text.contains("66 loads (53 keys, 10 pointers, 3 of records), 3 stores"), "{text}");
    assert!(text.contains("index of 5 levels, 500002 nodes"), "{text}");
}
