//! `nvlab heap`: what a program left in a heap of persistent objects.

use crate::common::{Folder, said};
use nvlab_nvheap::{Brand, Heap, Options, PBTreeMap, PString, PVec, Persist, Strong};
use std::path::Path;

struct Bank;
impl Brand for Bank {
    type Root = Ledger;
}

#[derive(Persist)]
#[persist(heap = Bank)]
#[repr(C)]
struct Ledger {
    name: PString<Bank>,
    accounts: PBTreeMap<PString<Bank>, Strong<Account, Bank>, Bank>,
    favourite: Option<Strong<Account, Bank>>,
    rates: PVec<u32, Bank>,
}

#[derive(Persist)]
#[persist(heap = Bank)]
#[repr(C)]
struct Account {
    balance: i64,
    kind: Kind,
    guarantor: Option<Strong<Account, Bank>>,
}

#[derive(Clone, Copy, Persist)]
#[repr(u8)]
enum Kind {
    Current = 1,
    Savings = 2,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

fn options() -> Options {
    Options { bytes_max: 16 << 20, logs: 2, log_bytes: 64 << 10, ..Options::default() }
}

/// Three accounts, and two more that guarantee for each other and that nothing leads to.
fn create(path: &Path) -> Heap<Bank> {
    Heap::create(path, options(), |tx| {
        let account = |balance, kind| Strong::new(tx, Account { balance, kind, guarantor: None });
        let accounts = PBTreeMap::new(tx)?;
        let ann = account(100, Kind::Current)?;
        for (name, other) in [("ann", ann.share(tx)?), ("bob", account(-5, Kind::Savings)?)] {
            accounts.insert(tx, PString::new(tx, name)?, other)?;
        }
        let (one, two) = (account(1, Kind::Current)?, account(2, Kind::Current)?);
        two.write(tx)?.guarantor = Some(one.share(tx)?);
        one.write(tx)?.guarantor = Some(two);
        Ok(Ledger {
            name: PString::new(tx, "the ledger")?,
            accounts,
            favourite: Some(ann),
            rates: PVec::from_fn(tx, 3, |i| Ok(i as u32 * 10))?,
        })
    })
    .unwrap()
}

fn json(folder: &Folder, arguments: &[&str]) -> serde_json::Value {
    let output = folder.run(arguments);
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn printed(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_heap_is_shown_checked_and_compacted() {
    let _turn = turn();
    let folder = Folder::new("heap");
    let path = folder.0.join("bank");
    let heap = create(&path);
    let busy = folder.run(&["heap", "stat", "bank"]);
    assert_eq!(busy.status.code(), Some(2), "{}", said(&busy));
    assert!(said(&busy).contains("bank is in use"), "{}", said(&busy));
    drop(heap);
    let before = std::fs::read(&path).unwrap();

    let stat = json(&folder, &["heap", "stat", "bank", "--json"]);
    let facts = ["version", "root_type", "logs", "records_waiting", "closed_in_order", "opens"];
    let facts = facts.map(|key| stat[key].to_string());
    assert_eq!(facts, ["2", "\"Ledger\"", "2", "0", "true", "1"]);
    let blocks: u64 =
        stat["sizes"].as_array().unwrap().iter().map(|size| size["blocks"].as_u64().unwrap()).sum();
    assert_eq!(stat["blocks"], blocks);

    let dump = printed(&folder, &["heap", "dump", "bank"]);
    let lines: Vec<&str> = dump.lines().map(|line| line.split(" @").next().unwrap()).collect();
    let expected = [
        "Ledger",
        "  name: \"the ledger\"",
        "  accounts: 2 entries",
        "    \"ann\": Account",
        "      balance: 100",
        "      kind: Current",
        "      guarantor: none",
        "    \"bob\": Account",
        "      balance: -5",
        "      kind: Savings",
        "      guarantor: none",
        "  favourite: Account",
        "  rates: [0, 10, 20]",
    ];
    assert_eq!(lines, expected, "{dump}");
    assert!(dump.lines().nth(11).unwrap().ends_with(", above"), "{dump}");
    let short = printed(&folder, &["heap", "dump", "bank", "--depth", "0", "--limit", "1"]);
    assert!(
        short.contains("1 more") && short.contains("[0, 2 more]") && !short.contains("balance"),
        "{short}"
    );
    let document = json(&folder, &["heap", "dump", "bank", "--json"]);
    let objects = document["objects"].as_array().unwrap();
    assert_eq!((objects.len(), &objects[0]["at"]), (3, &document["root"]));
    assert_eq!(objects[0]["value"]["accounts"]["entries"][1][0], "bob");
    assert_eq!(objects[0]["value"]["favourite"]["to"], objects[1]["at"]);

    let checked = printed(&folder, &["heap", "check", "bank"]);
    assert!(checked.contains("without checksums, undamaged\n2 blocks are unreachable, 96 B\n"), "{checked}");
    assert!(checked.contains("lost: 2 Account"), "{checked}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "looking changes nothing");

    let compacted = json(&folder, &["heap", "compact", "bank", "--drop-unreachable", "--json"]);
    assert_eq!(compacted["dropped"], 2);
    assert!(compacted["bytes"].as_u64() < compacted["bytes_before"].as_u64(), "{compacted}");
    let heap = Heap::<Bank>::open(&path, options()).unwrap();
    let root = heap.root().unwrap();
    let balance = heap.transaction(|tx| {
        let ledger = root.read(tx)?;
        let ann = ledger.accounts.get(tx, "ann")?.unwrap().read(tx)?;
        assert!(matches!(ann.kind, Kind::Current));
        Ok(ann.balance)
    });
    assert_eq!(balance.unwrap(), 100);
    assert_eq!(Kind::Savings as u8, 2);
}

/// A number that is another one is noticed by a heap that has been given checksums.
#[test]
fn a_heap_is_given_checksums() {
    let _turn = turn();
    let folder = Folder::new("heap-checksums");
    let path = folder.0.join("bank");
    drop(create(&path));
    printed(&folder, &["heap", "compact", "bank", "--checksums"]);
    let stat = json(&folder, &["heap", "stat", "bank", "--json"]);
    assert_eq!((&stat["version"], &stat["checksums"]), (&3.into(), &true.into()));
    let checked = printed(&folder, &["heap", "check", "bank"]);
    assert!(checked.contains("with checksums, undamaged\n"), "{checked}");
    assert_eq!(json(&folder, &["heap", "check", "bank", "--json"])["checksums"], true);
    let mut damaged = std::fs::read(&path).unwrap();
    let balance = damaged.chunks(8).rposition(|word| word == 100_u64.to_le_bytes()).unwrap() * 8;
    damaged[balance] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let found = folder.run(&["heap", "check", "bank"]);
    assert_eq!(found.status.code(), Some(1), "{}", said(&found));
    assert!(
        String::from_utf8_lossy(&found.stdout).contains("do not match their checksum"),
        "{}",
        said(&found)
    );
    let dumped = folder.run(&["heap", "dump", "bank"]);
    assert_eq!(dumped.status.code(), Some(1), "{}", said(&dumped));
}

#[test]
fn damage_of_a_heap_is_reported() {
    let _turn = turn();
    let folder = Folder::new("heap-damage");
    let path = folder.0.join("bank");
    drop(create(&path));
    let whole = std::fs::read(&path).unwrap();
    let root = json(&folder, &["heap", "stat", "bank", "--json"])["root"].as_u64().unwrap() as usize;
    // The references of the root, and a word of a text that is no UTF-8 then.
    let text = whole.windows(10).position(|words| words == b"the ledger").unwrap();
    let damages = [
        (root + 8, 1, "references counted"),
        (text, 0x82, "not UTF-8"),
        (8192 + 40, 1, "the types do not match"),
    ];
    for (at, bits, why) in damages {
        let mut damaged = whole.clone();
        damaged[at] ^= bits;
        std::fs::write(&path, &damaged).unwrap();
        for arguments in [&["heap", "check", "bank"][..], &["heap", "check", "bank", "--json"]] {
            let found = folder.run(arguments);
            assert_eq!(found.status.code(), Some(1), "{why}: {}", said(&found));
            let all = String::from_utf8_lossy(&found.stdout).into_owned() + &said(&found);
            assert!(all.contains(why), "{all}");
        }
    }
    for (file, status, why) in [("none", 4, "No such file"), ("text", 2, "is not a heap")] {
        std::fs::write(folder.0.join("text"), "a text").unwrap();
        let refused = folder.run(&["heap", "check", file]);
        assert_eq!(refused.status.code(), Some(status), "{}", said(&refused));
        assert!(said(&refused).contains(why), "{}", said(&refused));
    }
}
