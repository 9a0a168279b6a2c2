//! kill -9 of a program that changes a sorted map, a hash map and a list, again and again on what it left: their structure is
//! sound, they hold what the acknowledged operations make, and every block and count agrees.

use crate::killed;
use nvlab_nvheap::{Brand, Heap, Options, PBTreeMap, PHashMap, PList, PString, Persist, Result};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const PATH: &str = "NVLAB_NVHEAP_KILLED_COLLECTIONS";
const KEYS: u64 = 700;

struct Collected;
impl Brand for Collected {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Collected)]
#[repr(C)]
struct Root {
    done: u64,
    sorted: PBTreeMap<u64, PString<Collected>, Collected>,
    hashed: PHashMap<u64, u64, Collected>,
    list: PList<u64, Collected>,
}

fn options() -> Options {
    Options { bytes_max: 64 << 20, logs: 2, log_bytes: 64 << 10, checksums: true, ..Options::default() }
}

fn draw(n: u64) -> u64 {
    let mixed = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20
}

/// A text of 0 to 199 B.
fn text(n: u64) -> String {
    n.to_string().repeat(40)[..draw(n) as usize % 40].to_string()
}

/// Operation `n` inserts a key into both maps, or removes it from the one that has it; and changes an end of the list.
fn operate(heap: &Heap<Collected>) -> Result<u64> {
    let root = heap.root()?;
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        root.done += 1;
        let n = root.done;
        let (key, other) = (draw(n) % KEYS, draw(n + 7) % KEYS);
        if root.sorted.remove(tx, &key)?.is_none() {
            let value = PString::new(tx, &text(n))?;
            root.sorted.insert(tx, key, value)?;
        }
        if root.hashed.remove(tx, &other)?.is_none() {
            root.hashed.insert(tx, other, n)?;
        }
        match draw(n + 3) % 5 {
            0 | 1 => root.list.push_back(tx, n)?,
            2 => root.list.push_front(tx, n)?,
            3 => drop(root.list.pop_front(tx)?),
            _ => drop(root.list.pop_back(tx)?),
        }
        Ok(n)
    })
}

/// What so many operations make, in the collections of std.
#[derive(Default)]
struct Model {
    done: u64,
    sorted: BTreeMap<u64, String>,
    hashed: BTreeMap<u64, u64>,
    list: VecDeque<u64>,
}

impl Model {
    fn advance(&mut self, last: u64) {
        for n in self.done + 1..=last {
            let (key, other) = (draw(n) % KEYS, draw(n + 7) % KEYS);
            if self.sorted.remove(&key).is_none() {
                self.sorted.insert(key, text(n));
            }
            if self.hashed.remove(&other).is_none() {
                self.hashed.insert(other, n);
            }
            match draw(n + 3) % 5 {
                0 | 1 => self.list.push_back(n),
                2 => self.list.push_front(n),
                3 => drop(self.list.pop_front()),
                _ => drop(self.list.pop_back()),
            }
        }
        self.done = self.done.max(last);
    }
}

/// Not a test of its own: the program that is killed.
#[test]
fn program() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let heap = Heap::<Collected>::open(Path::new(&path), options()).unwrap();
    loop {
        let n = operate(&heap).unwrap();
        std::io::stdout().write_all(format!("durable {n}\n").as_bytes()).unwrap();
    }
}

fn verify(heap: &mut Heap<Collected>, model: &Model, round: u64) {
    let root = heap.root().unwrap();
    let verified = heap.transaction(|tx| {
        let root = root.read(tx)?;
        let sorted = root.sorted.iter(tx).map(|entry| {
            let (key, value) = entry?;
            Ok((*key, value.get(tx)?))
        });
        let sorted = sorted.collect::<Result<Vec<_>>>()?;
        assert!(sorted.iter().eq(&model.sorted.clone().into_iter().collect::<Vec<_>>()), "round {round}");
        for (key, value) in &model.sorted {
            let found = root.sorted.get(tx, key)?.map(|value| value.get(tx)).transpose()?;
            assert_eq!(found.as_ref(), Some(value), "round {round}, key {key}");
        }
        for key in 0..KEYS {
            let found = root.hashed.get(tx, &key)?.map(|value| *value);
            assert_eq!(found, model.hashed.get(&key).copied(), "round {round}, key {key}");
        }
        assert_eq!(root.hashed.iter(tx).count(), model.hashed.len(), "round {round}");
        let list = root.list.iter(tx).map(|item| Ok(*item?)).collect::<Result<VecDeque<u64>>>()?;
        assert_eq!(list, model.list, "round {round}");
        Ok(())
    });
    verified.unwrap();
    drop(root);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "round {round}: {found:?}");
}

#[test]
fn collections_survive_kills() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let made = Heap::<Collected>::create(&path, options(), |tx| {
        let (sorted, hashed) = (PBTreeMap::new(tx)?, PHashMap::new(tx)?);
        Ok(Root { done: 0, sorted, hashed, list: PList::new() })
    });
    drop(made.unwrap());
    let mut model = Model::default();
    for round in 0..25 {
        let said = killed::run(
            "kill_collections::program",
            PATH,
            &path,
            Duration::from_millis(20 + round * 17 % 80),
        );
        let last = said.last().map_or(0, |number| number.parse().unwrap()).max(model.done);
        let mut heap = Heap::<Collected>::open(&path, options()).unwrap();
        let root = heap.root().unwrap();
        let done = heap.transaction(|tx| Ok(root.read(tx)?.done)).unwrap();
        assert!((last..=last + 1).contains(&done), "round {round}: {done}, {last} acknowledged");
        drop(root);
        model.advance(done);
        verify(&mut heap, &model, round);
    }
    assert!(model.done > 2000, "only {} operations", model.done);
}
