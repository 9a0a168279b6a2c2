//! Damage that checksums find, and what goes on working beside it.

#![allow(clippy::unit_arg)] // Closures that do something and end in `Ok`.

use crate::checksums::{
    LOG_BYTES, LOGS, MARK, Node, Root, Summed, assert_names, change, element, flip, folder, make, options,
    problems, turn,
};
use nvlab_nvheap::{Error, Heap, Options, PVec, Result, Strong, Tx};

/// What the number of a node is marked with.
const NODE: u64 = MARK + (1 << 40);

fn add_node(root: &mut Root, tx: &Tx<'_, Summed>, number: u64) -> Result<()> {
    let next = root.nodes.take();
    root.nodes = Some(Strong::new(tx, Node { number: NODE + number, next })?);
    Ok(())
}

fn add_nodes(heap: &Heap<Summed>, nodes: u64) {
    for first in (0..nodes).step_by(100) {
        let add = |root: &mut Root, tx: &Tx<'_, Summed>| {
            (first..nodes.min(first + 100)).try_for_each(|number| add_node(root, tx, number))
        };
        change(heap, add).unwrap();
    }
}

/// Objects are destroyed after the transaction that dropped the first: that has happened, and so do others.
#[test]
fn damage_among_dropped_objects_fails_nobody_else() {
    let _turn = turn();
    let (folder, path) = folder();
    let heap = Heap::<Summed>::create(&path, options(), make).unwrap();
    // Of several pages: the first nodes are destroyed last.
    add_nodes(&heap, 4000);
    drop(heap);
    let at = flip(&path, (1 << 40) + 500);
    let heap = Heap::<Summed>::open(&path, options()).unwrap();
    change(&heap, |root, _| Ok(root.nodes = None)).unwrap();
    let works = |heap: &Heap<Summed>| {
        change(heap, |root, tx| Ok(*root.large.write(tx, 7)? = 8)).unwrap();
        assert_eq!(element(heap, 7).unwrap(), 8);
        // More than one transaction destroys.
        add_nodes(heap, 300);
        change(heap, |root, _| Ok(root.nodes = None)).unwrap();
    };
    works(&heap);
    std::thread::scope(|scope| scope.spawn(|| works(&heap)).join()).unwrap();
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    drop(heap);
    for path in [copy, path] {
        for _ in 0..2 {
            works(&Heap::<Summed>::open(&path, options()).unwrap());
        }
        let found = problems(&path);
        assert!(found.iter().any(|problem| problem.contains(&(at / 64 * 64).to_string())), "{found:?}");
    }
}

/// Lists of logs that are wrong are left alone.
#[test]
fn lists_that_are_wrong_are_not_used() {
    let _turn = turn();
    let (folder, path) = folder();
    let heap = Heap::<Summed>::create(&path, options(), make).unwrap();
    add_nodes(&heap, 300);
    drop(heap);
    let whole = std::fs::read(&path).unwrap();
    let head = |log| 65536 + log * (4096 + LOG_BYTES);
    let damage = |at: &[usize]| {
        let mut image = whole.clone();
        at.iter().for_each(|&at| image[at] ^= 4);
        std::fs::write(&path, image).unwrap();
    };
    let drop_nodes = |heap: &Heap<Summed>| change(heap, |root, _| Ok(root.nodes = None));
    // A word that nobody uses.
    damage(&[head(0) + 40]);
    drop_nodes(&Heap::<Summed>::open(&path, options()).unwrap()).unwrap();
    assert!(problems(&path).is_empty(), "{:?}", problems(&path));
    // One log: others are used.
    for word in [8, 24] {
        damage(&[head(0) + word]);
        let heap = Heap::<Summed>::open(&path, options()).unwrap();
        drop_nodes(&heap).unwrap();
        let copy = folder.path().join("copy");
        heap.backup_to(&copy).unwrap();
        drop(heap);
        for path in [copy, path.clone()] {
            let found = problems(&path);
            assert!(found.iter().any(|problem| problem.contains("checksum")), "{word}: {found:?}");
            let _ = std::fs::remove_file(folder.path().join("copy"));
        }
    }
    // All: what does not need them works.
    damage(&[0, 1, 2, 3].map(|log| head(log) + 8));
    let heap = Heap::<Summed>::open(&path, options()).unwrap();
    change(&heap, |root, tx| Ok(*root.large.write(tx, 7)? = 8)).unwrap();
    assert_eq!(element(&heap, 7).unwrap(), 8);
    assert_names(&drop_nodes(&heap).unwrap_err(), head(0));
    drop(heap);
    assert!(problems(&path).iter().filter(|problem| problem.contains("checksum")).count() == LOGS);
}

/// A program that does not pass on the error cannot commit what was half done.
#[test]
fn who_met_damage_does_not_commit() {
    let _turn = turn();
    let (_folder, path) = folder();
    let heap = Heap::<Summed>::create(&path, options(), make).unwrap();
    // Room for more is left behind the last.
    change(&heap, |root, tx| root.rest.push(tx, [NODE; 8])).unwrap();
    drop(heap);
    let at = [flip(&path, 1 << 40), flip(&path, 100_000)];
    let heap = Heap::<Summed>::open(&path, options()).unwrap();
    type Careless = fn(&mut Root, &Tx<'_, Summed>) -> bool;
    let careless: [(usize, Careless); 3] = [
        (at[0], |root, tx| root.rest.push(tx, [1; 8]).is_err()),
        (at[1], |root, tx| root.large.write(tx, 100_000).is_err()),
        (at[1], |root, tx| root.large.read(tx, 100_000).is_err()),
    ];
    for (at, meet) in careless {
        let changed = change(&heap, |root, tx| {
            *root.large.write(tx, 3)? = 9;
            Ok(assert!(meet(root, tx)))
        });
        assert_names(&changed.unwrap_err(), at);
        assert_eq!(element(&heap, 3).unwrap(), MARK + 3);
        let root = heap.root().unwrap();
        assert_eq!(heap.transaction(|tx| Ok(root.read(tx)?.rest.len())).unwrap(), 4001);
    }
}

/// What waits in the logs is replayed though the page table says nothing about a page that it changes.
#[test]
fn a_damaged_entry_of_the_page_table_does_not_stop_replay() {
    let _turn = turn();
    let (_folder, path) = folder();
    let heap = Heap::<Summed>::create(&path, options(), make).unwrap();
    add_nodes(&heap, 10);
    heap.checkpoint().unwrap();
    change(&heap, |root, tx| {
        *root.large.write(tx, 7)? = 8;
        root.nodes.as_mut().map_or(Ok(()), |node| Ok(node.write(tx)?.number = 5))
    })
    .unwrap();
    let mut image = std::fs::read(&path).unwrap();
    drop(heap);
    let entry = entry_of_nodes(&image);
    image[entry] ^= 0x40;
    std::fs::write(&path, image).unwrap();
    assert!(!problems(&path).is_empty());
    for _ in 0..2 {
        let heap = Heap::<Summed>::open(&path, options()).unwrap();
        assert_eq!(element(&heap, 7).unwrap(), 8);
        let root = heap.root().unwrap();
        let read = heap.transaction(|tx| match &root.read(tx)?.nodes {
            Some(node) => Ok(node.read(tx)?.number),
            None => Ok(0),
        });
        assert!(matches!(read, Err(Error::Damaged { .. })), "{read:?}");
    }
    assert!(!problems(&path).is_empty());
}

/// A page of objects of which the page table says that it is free is not given to others; without checksums it is.
#[test]
fn a_page_whose_entry_is_lost_is_not_used_again() {
    let _turn = turn();
    for checksums in [true, false] {
        let (_folder, path) = folder();
        let options = Options { checksums, ..options() };
        let heap = Heap::<Summed>::create(&path, options.clone(), make).unwrap();
        add_nodes(&heap, 500);
        drop(heap);
        let mut image = std::fs::read(&path).unwrap();
        let entry = entry_of_nodes(&image);
        image[entry] = 0;
        std::fs::write(&path, &image).unwrap();
        assert!(!problems(&path).is_empty());
        // Behind the logs, which may have it too.
        let at = image.chunks(8).rposition(|word| word == NODE.to_le_bytes()).unwrap() * 8 / 65536 * 65536;
        for _ in 0..2 {
            let heap = Heap::<Summed>::open(&path, options.clone()).unwrap();
            add_nodes(&heap, 3000);
            let fill = |root: &mut Root, tx: &Tx<'_, Summed>| {
                root.large = PVec::from_fn(tx, 50_000, |index| Ok(index as u64))?;
                Ok(())
            };
            (0..5).for_each(|_| change(&heap, fill).unwrap());
        }
        let mut found = std::fs::read(&path).unwrap();
        assert_eq!(found[at..at + 65536] == image[at..at + 65536], checksums);
        if checksums {
            // With its entry it is what it was.
            found[entry] = 2;
            std::fs::write(&path, found).unwrap();
            assert!(problems(&path).is_empty(), "{:?}", problems(&path));
        }
    }
}

/// Where the page table has the only page of blocks of 48 B, which nodes take.
fn entry_of_nodes(image: &[u8]) -> usize {
    let table = 65536 + LOGS * (4096 + LOG_BYTES);
    let mut entries = (table..table + 256 * 8).step_by(8).filter(|&at| image[at] == 2);
    let entry = entries.next().unwrap();
    assert_eq!(entries.next(), None);
    entry
}
