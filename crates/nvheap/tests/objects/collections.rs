//! Collections against those of std: any operations, some of whose transactions are given up, then everything that can be
//! read, and the same again after reopening.

use nvlab_nvheap::collections::Entry;
use nvlab_nvheap::{
    Brand, Error, Heap, Options, PBTreeMap, PBox, PHashMap, PList, PString, Persist, Result, Tx,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

struct Lab;
impl Brand for Lab {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Lab)]
#[repr(C)]
struct Root {
    tree: PBTreeMap<u64, u64, Lab>,
    hash: PHashMap<u64, u64, Lab>,
    /// Keys and values that own other objects.
    names: PBTreeMap<PString<Lab>, PBox<u64, Lab>, Lab>,
    index: PHashMap<PString<Lab>, PBox<u64, Lab>, Lab>,
    list: PList<PString<Lab>, Lab>,
}

#[derive(Default, Clone)]
struct Model {
    map: BTreeMap<u64, u64>,
    list: VecDeque<String>,
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    Remove(u64),
    Change(u64, u64),
    Toggle(u64, u64),
    PopFirst,
    PopLast,
    Retain(u64),
    Clear,
    Push(bool, u64),
    Pop(bool),
    RetainList(u64),
}

fn step(keys: u64) -> impl Strategy<Value = Step> {
    let key = 0..keys;
    prop_oneof![
        12 => (key.clone(), any::<u64>()).prop_map(|(key, value)| Step::Insert(key, value)),
        9 => key.clone().prop_map(Step::Remove),
        3 => (key.clone(), any::<u64>()).prop_map(|(key, value)| Step::Change(key, value)),
        6 => (key, any::<u64>()).prop_map(|(key, value)| Step::Toggle(key, value)),
        1 => Just(Step::PopFirst),
        1 => Just(Step::PopLast),
        1 => (2..9_u64).prop_map(Step::Retain),
        1 => (0..40_u32).prop_map(|chance| if chance == 0 { Step::Clear } else { Step::PopFirst }),
        4 => (any::<bool>(), any::<u64>()).prop_map(|(front, value)| Step::Push(front, value)),
        3 => any::<bool>().prop_map(Step::Pop),
        1 => (2..9_u64).prop_map(Step::RetainList),
    ]
}

fn name(key: u64) -> String {
    // Of different lengths, in the order of the numbers.
    format!("{key:05}{}", "x".repeat(key as usize % 13))
}

fn insert(tx: &Tx<'_, Lab>, root: &mut Root, model: &mut Model, key: u64, value: u64) -> Result<()> {
    let old = model.map.insert(key, value);
    assert_eq!(root.tree.insert(tx, key, value)?, old);
    assert_eq!(root.hash.insert(tx, key, value)?, old);
    let (text, boxed) = (|| PString::new(tx, &name(key)), || PBox::new(tx, value));
    let read = |old: Option<PBox<u64, Lab>>| old.map(|old| old.read(tx).map(|old| *old)).transpose();
    assert_eq!(read(root.names.insert(tx, text()?, boxed()?)?)?, old);
    assert_eq!(read(root.index.insert(tx, text()?, boxed()?)?)?, old);
    Ok(())
}

fn remove(tx: &Tx<'_, Lab>, root: &mut Root, model: &mut Model, key: u64) -> Result<()> {
    let old = model.map.remove(&key);
    assert_eq!(root.tree.remove(tx, &key)?, old);
    assert_eq!(root.hash.remove_entry(tx, &key)?, old.map(|old| (key, old)));
    assert_eq!(root.names.remove(tx, &name(key))?.is_some(), old.is_some());
    assert_eq!(root.index.remove(tx, &name(key))?.is_some(), old.is_some());
    Ok(())
}

fn change(tx: &Tx<'_, Lab>, root: &mut Root, model: &mut Model, key: u64, value: u64) -> Result<()> {
    let is_there = model.map.get_mut(&key).map(|old| *old = value).is_some();
    assert_eq!(root.tree.get_mut(tx, &key)?.map(|mut old| *old = value).is_some(), is_there);
    assert_eq!(root.hash.get_mut(tx, &key)?.map(|mut old| *old = value).is_some(), is_there);
    if let Some(old) = root.names.get_mut(tx, &name(key))? {
        *old.write(tx)? = value;
    }
    if let Some(mut old) = root.index.get_mut(tx, &name(key))? {
        *old = PBox::new(tx, value)?;
    }
    Ok(())
}

/// Inserts a key if it is absent, removes it if it is present; the hash maps say which.
fn toggle(tx: &Tx<'_, Lab>, root: &mut Root, model: &mut Model, key: u64, value: u64) -> Result<()> {
    let old = model.map.remove(&key);
    if old.is_none() {
        model.map.insert(key, value);
    }
    match root.hash.entry(tx, key)? {
        Entry::Occupied(mut found) => {
            *found.get_mut() += 1;
            assert_eq!(Some(found.remove()?), old.map(|old| old.wrapping_add(1)));
        }
        Entry::Vacant(free) => {
            assert_eq!(old, None);
            free.insert(value)?;
        }
    }
    match root.index.entry(tx, PString::new(tx, &name(key))?)? {
        Entry::Occupied(found) => {
            assert_eq!(Some(*found.get().read(tx)?), old);
            drop(found.remove()?);
        }
        Entry::Vacant(free) => free.insert(PBox::new(tx, value)?)?,
    }
    if root.tree.remove(tx, &key)?.is_none() {
        root.tree.insert(tx, key, value)?;
    }
    if root.names.remove(tx, &name(key))?.is_none() {
        root.names.insert(tx, PString::new(tx, &name(key))?, PBox::new(tx, value)?)?;
    }
    Ok(())
}

fn run(tx: &Tx<'_, Lab>, root: &mut Root, model: &mut Model, step: &Step) -> Result<()> {
    match *step {
        Step::Insert(key, value) => insert(tx, root, model, key, value)?,
        Step::Remove(key) => remove(tx, root, model, key)?,
        Step::Toggle(key, value) => toggle(tx, root, model, key, value)?,
        Step::Change(key, value) => change(tx, root, model, key, value)?,
        Step::PopFirst | Step::PopLast => {
            let (is_first, map) = (matches!(step, Step::PopFirst), &mut model.map);
            let wanted = if is_first { map.pop_first() } else { map.pop_last() };
            let found = if is_first { root.tree.pop_first(tx)? } else { root.tree.pop_last(tx)? };
            assert_eq!(found, wanted);
            let found = if is_first { root.names.pop_first(tx)? } else { root.names.pop_last(tx)? };
            assert_eq!(found.is_some(), wanted.is_some());
            if let Some((key, _)) = wanted {
                root.hash.remove(tx, &key)?;
                root.index.remove(tx, &name(key))?;
            }
        }
        Step::Retain(divisor) => {
            model.map.retain(|key, _| key % divisor != 0);
            let is_kept = |name: &PString<Lab>| -> bool {
                name.get(tx).unwrap()[..5].parse::<u64>().unwrap() % divisor != 0
            };
            root.tree.retain(tx, |key, _| key % divisor != 0)?;
            root.hash.retain(tx, |key, _| key % divisor != 0)?;
            root.names.retain(tx, |name, _| is_kept(name))?;
            root.index.retain(tx, |name, _| is_kept(name))?;
        }
        Step::Clear => {
            model.map.clear();
            root.tree.clear(tx)?;
            root.hash.clear(tx)?;
            root.names.clear(tx)?;
            root.index.clear(tx)?;
        }
        Step::Push(is_front, value) => {
            let text = name(value % 1000);
            let element = PString::new(tx, &text)?;
            if is_front {
                model.list.push_front(text);
                root.list.push_front(tx, element)?;
            } else {
                model.list.push_back(text);
                root.list.push_back(tx, element)?;
            }
        }
        Step::Pop(is_front) => {
            let (found, wanted) = match is_front {
                true => (root.list.pop_front(tx)?, model.list.pop_front()),
                false => (root.list.pop_back(tx)?, model.list.pop_back()),
            };
            assert_eq!(found.map(|text| text.get(tx)).transpose()?, wanted);
        }
        Step::RetainList(divisor) => {
            let is_kept = |text: &str| !(text.len() as u64).is_multiple_of(divisor);
            model.list.retain(|text| is_kept(text));
            root.list.retain(tx, |text| is_kept(&text.get(tx).unwrap()))?;
        }
    }
    Ok(())
}

/// Everything that can be read.
fn compare(tx: &Tx<'_, Lab>, root: &Root, model: &Model, keys: u64) -> Result<()> {
    let wanted: Vec<_> = model.map.iter().map(|(key, value)| (*key, *value)).collect();
    let owned = |entry: Result<(
        nvlab_nvheap::collections::Ref<'_, u64>,
        nvlab_nvheap::collections::Ref<'_, u64>,
    )>| { entry.map(|(key, value)| (*key, *value)) };
    let lengths = [root.tree.len(tx)?, root.hash.len(tx)?, root.names.len(tx)?, root.index.len(tx)?];
    assert_eq!(lengths, [wanted.len(); 4]);
    assert_eq!(root.tree.iter(tx).map(owned).collect::<Result<Vec<_>>>()?, wanted);
    let mut back = root.tree.iter(tx).rev().map(owned).collect::<Result<Vec<_>>>()?;
    back.reverse();
    assert_eq!(back, wanted);
    let mut hashed = root.hash.iter(tx).map(owned).collect::<Result<Vec<_>>>()?;
    hashed.sort_unstable();
    assert_eq!(hashed, wanted);
    for (entry, wanted) in root.names.iter(tx).zip(&wanted) {
        let (key, value) = entry?;
        assert_eq!((key.get(tx)?, *value.read(tx)?), (name(wanted.0), wanted.1));
    }
    for key in 0..keys {
        let wanted = model.map.get(&key).copied();
        assert_eq!(root.tree.get(tx, &key)?.map(|value| *value), wanted);
        assert_eq!(root.hash.get(tx, &key)?.map(|value| *value), wanted);
        assert_eq!(
            root.index.get(tx, &name(key))?.map(|value| value.read(tx).map(|value| *value)).transpose()?,
            wanted
        );
        assert_eq!(root.names.contains_key(tx, &name(key))?, wanted.is_some());
    }
    let ranges = [
        (Bound::Included(keys / 3), Bound::Excluded(keys / 2)),
        (Bound::Excluded(keys / 5), Bound::Included(keys / 4)),
        (Bound::Unbounded, Bound::Excluded(keys / 2)),
    ];
    for range in ranges {
        let wanted: Vec<_> = model.map.range(range).map(|(key, value)| (*key, *value)).collect();
        assert_eq!(root.tree.range(tx, range).map(owned).collect::<Result<Vec<_>>>()?, wanted);
        // From both ends until they meet.
        let (mut ends, mut at) = (root.tree.range(tx, range), (0, wanted.len()));
        while let Some(entry) = ends.next() {
            assert_eq!(owned(entry)?, wanted[at.0]);
            at.0 += 1;
            if let Some(entry) = ends.next_back() {
                at.1 -= 1;
                assert_eq!(owned(entry)?, wanted[at.1]);
            }
        }
        assert!(at.0 == at.1 && ends.next_back().is_none());
    }
    assert_eq!(root.tree.first_key_value(tx)?.map(|entry| *entry.0), wanted.first().map(|entry| entry.0));
    assert_eq!(root.tree.last_key_value(tx)?.map(|entry| *entry.1), wanted.last().map(|entry| entry.1));
    if let Some(text) = root.list.front_mut(tx)? {
        assert_eq!(Some(&text.get(tx)?), model.list.front());
    }
    if let Some(text) = root.list.back_mut(tx)? {
        assert_eq!(Some(&text.get(tx)?), model.list.back());
    }
    let list = root.list.iter(tx).map(|text| text?.get(tx)).collect::<Result<Vec<_>>>()?;
    assert_eq!((list.clone(), root.list.len()), (model.list.iter().cloned().collect(), model.list.len()));
    let back = root.list.iter(tx).rev().map(|text| text?.get(tx)).collect::<Result<Vec<_>>>()?;
    assert!(back.iter().eq(list.iter().rev()));
    Ok(())
}

fn make(tx: &Tx<'_, Lab>) -> Result<Root> {
    Ok(Root {
        tree: PBTreeMap::new(tx)?,
        hash: PHashMap::new(tx)?,
        names: PBTreeMap::new(tx)?,
        index: PHashMap::new(tx)?,
        list: PList::new(),
    })
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn check(keys: u64, transactions: &[(Vec<Step>, bool)]) {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let options = Options { log_bytes: 16 << 20, ..Options::default() };
    let mut heap = Heap::<Lab>::create(&path, options, make).unwrap();
    let (root, mut model) = (heap.root().unwrap(), Model::default());
    for (steps, is_committed) in transactions {
        let mut after = model.clone();
        let result = heap.transaction(|tx| {
            after = model.clone();
            let mut root = root.write(tx)?;
            for step in steps {
                run(tx, &mut root, &mut after, step)?;
            }
            compare(tx, &root, &after, keys)?;
            if *is_committed { Ok(()) } else { Err(Error::abort("given up")) }
        });
        match is_committed {
            true => {
                result.unwrap();
                model = after;
            }
            false => assert!(matches!(result, Err(Error::Aborted(_))), "{result:?}"),
        }
        heap.transaction(|tx| compare(tx, &*root.read(tx)?, &model, keys)).unwrap();
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
    }
    drop((root, heap));
    let heap = Heap::<Lab>::open(&path, Options::default()).unwrap();
    let root = heap.root().unwrap();
    heap.transaction(|tx| compare(tx, &*root.read(tx)?, &model, keys)).unwrap();
}

fn cases() -> u32 {
    if std::env::var_os("NVLAB_EXHAUSTIVE").is_some() { 40 } else { 16 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn they_do_what_those_of_std_do(
        transactions in vec((vec(step(300), 0..60), prop::bool::weighted(0.8)), 1..12)
    ) {
        check(300, &transactions);
    }
}

/// Trees of three levels of inner nodes, and hash maps that grow all the time.
#[test]
fn many_entries_come_and_go() {
    let spread = |i: u64| i.wrapping_mul(7919) % 12_000;
    let grow: Vec<_> = (0..12_000).map(|i| Step::Insert(spread(i), i)).collect();
    let shrink: Vec<_> = (0..12_000).map(|i| Step::Remove(spread(i * 5))).collect();
    let transactions: Vec<_> =
        grow.chunks(1500).chain(shrink.chunks(1500)).map(|steps| (steps.to_vec(), true)).collect();
    check(12_000, &transactions);
}

/// Threads insert and remove keys of their own in the same maps; nothing is lost and the counts are right.
#[test]
fn threads_share_maps() {
    const THREADS: u64 = 3;
    const KEYS: u64 = 2_000;
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut heap = Heap::<Lab>::create(folder.path().join("heap"), Options::default(), make).unwrap();
    let root = heap.root().unwrap();
    let work = &|thread: u64| {
        for round in 0..3 {
            for key in (0..KEYS).map(|i| i * THREADS + thread) {
                let changed = heap.transaction(|tx| {
                    let root = root.read(tx)?;
                    // Both or neither: other threads never see one of them.
                    assert_eq!(
                        root.tree.get(tx, &key)?.map(|value| *value),
                        root.hash.get(tx, &key)?.map(|value| *value)
                    );
                    Ok(match (round + key) % 3 {
                        0 => (root.tree.remove(tx, &key)?, root.hash.remove(tx, &key)?),
                        _ => (root.tree.insert(tx, key, round)?, root.hash.insert(tx, key, round)?),
                    })
                });
                let (tree, hash) = changed.unwrap();
                assert_eq!(tree, hash);
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|thread| _ = scope.spawn(move || work(thread))));
    let wanted: BTreeMap<u64, u64> =
        (0..THREADS * KEYS).filter(|key| (2 + key) % 3 != 0).map(|key| (key, 2)).collect();
    let model = Model { map: wanted, list: VecDeque::new() };
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        assert_eq!([root.tree.len(tx)?, root.hash.len(tx)?], [model.map.len(); 2]);
        for (key, value) in &model.map {
            assert_eq!(root.tree.get(tx, key)?.map(|value| *value), Some(*value));
            assert_eq!(root.hash.get(tx, key)?.map(|value| *value), Some(*value));
        }
        Ok(())
    })
    .unwrap();
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}
