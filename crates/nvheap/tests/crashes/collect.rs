//! Circles of objects that keep each other alive: found and destroyed, whatever they lead through, and whenever power fails.

use crate::common::{file, images, is_exhaustive, with_and_without_checksums};
use nvlab_nvheap::{
    Brand, Check, Delays, Heap, Options, PBTreeMap, PHashMap, PList, PVec, Persist, Result, Simulated,
    Strong, Tx, Weak,
};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

struct Club;
impl Brand for Club {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Club)]
#[repr(C)]
struct Root {
    leaf: Option<Strong<Leaf, Club>>,
    watched: Option<Weak<Member, Club>>,
    member: Option<Strong<Member, Club>>,
}

#[derive(Persist)]
#[repr(C)]
struct Leaf {
    number: u64,
}

#[derive(Persist)]
#[persist(heap = Club)]
#[repr(C)]
struct Member {
    next: Option<Strong<Member, Club>>,
    vec: PVec<Strong<Member, Club>, Club>,
    sorted: PBTreeMap<u64, Strong<Member, Club>, Club>,
    hashed: PHashMap<u64, Strong<Member, Club>, Club>,
    list: PList<Strong<Member, Club>, Club>,
    leaf: Strong<Leaf, Club>,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

fn member(tx: &Tx<'_, Club>, leaf: &Strong<Leaf, Club>) -> Result<Strong<Member, Club>> {
    let member = Member {
        next: None,
        vec: PVec::new(),
        sorted: PBTreeMap::new(tx)?,
        hashed: PHashMap::new(tx)?,
        list: PList::new(),
        leaf: leaf.share(tx)?,
    };
    Strong::new(tx, member)
}

fn begin(tx: &Tx<'_, Club>) -> Result<Root> {
    Ok(Root { leaf: Some(Strong::new(tx, Leaf { number: 7 })?), ..Root::default() })
}

/// A circle of `length` members, each of which leads to the next in the way of this number.
fn circle(
    tx: &Tx<'_, Club>,
    leaf: &Strong<Leaf, Club>,
    length: usize,
    way: usize,
) -> Result<Strong<Member, Club>> {
    let first = member(tx, leaf)?;
    let mut last = first.share(tx)?;
    for number in 1..=length {
        let next = if number == length { first.share(tx)? } else { member(tx, leaf)? };
        let mut from = last.write(tx)?;
        let to = next.share(tx)?;
        match way % 5 {
            0 => from.next = Some(to),
            1 => from.vec.push(tx, to)?,
            2 => drop(from.sorted.insert(tx, number as u64, to)?),
            3 => drop(from.hashed.insert(tx, number as u64, to)?),
            _ => from.list.push_back(tx, to)?,
        }
        drop(from);
        last = next;
    }
    Ok(first)
}

fn lose(heap: &Heap<Club>, length: usize, way: usize) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| {
        let leaf = root.read(tx)?.leaf.as_ref().unwrap().share(tx)?;
        circle(tx, &leaf, length, way).map(drop)
    })
}

/// Forgets pointers: to more objects than are freed in one transaction, to some that others lead to, and to a circle.
fn forget(heap: &Heap<Club>) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| {
        let leaf = root.read(tx)?.leaf.as_ref().unwrap().share(tx)?;
        std::mem::forget(leaf.share(tx)?);
        for number in 0..70 {
            std::mem::forget(Strong::new(tx, Leaf { number })?);
        }
        std::mem::forget(member(tx, &leaf)?);
        let first = circle(tx, &leaf, 2, 0)?;
        std::mem::forget((first.share(tx)?, first.downgrade(tx)?));
        Ok(())
    })
}

fn checked(heap: &mut Heap<Club>) -> Check {
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty(), "{found:?}");
    found
}

fn create(options: Options) -> Heap<Club> {
    Heap::create_in(file(), Path::new("club"), options, begin).unwrap()
}

#[test]
fn circles_of_every_kind_are_destroyed() {
    let _turn = turn();
    let mut heap = create(Options { bytes_max: 64 << 20, ..Options::default() });
    let blocks = checked(&mut heap).blocks;
    for way in 0..5 {
        for length in [1, 2, 7] {
            lose(&heap, length, way).unwrap();
        }
    }
    let found = checked(&mut heap);
    assert_eq!((found.cycle_count, found.blocks - blocks), (15, found.unreachable), "{found:?}");
    assert_eq!(heap.collect_cycles().unwrap(), found.unreachable);
    let found = checked(&mut heap);
    assert_eq!((found.cycle_count, found.unreachable, found.blocks), (0, 0, blocks));
    assert_eq!(heap.collect_cycles().unwrap(), 0);
}

/// Two circles that share members, one in the other's way, and what only they lead to.
#[test]
fn a_long_circle_with_branches_takes_many_transactions() {
    let _turn = turn();
    let mut heap = create(Options { bytes_max: 64 << 20, log_bytes: 1 << 20, ..Options::default() });
    let blocks = checked(&mut heap).blocks;
    let root = heap.root().unwrap();
    let handle = heap
        .transaction(|tx| {
            let leaf = root.read(tx)?.leaf.as_ref().unwrap().share(tx)?;
            let first = circle(tx, &leaf, 400, 0)?;
            let other = circle(tx, &leaf, 300, 1)?;
            other.write(tx)?.next = Some(first.share(tx)?);
            first.write(tx)?.list.push_back(tx, other)?;
            let hanging = member(tx, &leaf)?;
            first.write(tx)?.vec.push(tx, hanging)?;
            first.handle(tx)
        })
        .unwrap();
    // As long as the program holds one, all of them live.
    assert_eq!(heap.collect_cycles().unwrap(), 0);
    let found = checked(&mut heap);
    assert_eq!(found.cycle_count, 1, "{found:?}");
    drop(handle);
    assert_eq!(heap.collect_cycles().unwrap(), found.unreachable);
    assert_eq!(checked(&mut heap).blocks, blocks);
}

#[test]
fn what_is_in_use_stays() {
    let _turn = turn();
    let mut heap = create(Options { bytes_max: 64 << 20, ..Options::default() });
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        let leaf = root.leaf.as_ref().unwrap().share(tx)?;
        root.member = Some(circle(tx, &leaf, 3, 0)?);
        root.watched = Some(circle(tx, &leaf, 3, 2)?.downgrade(tx)?);
        Ok(())
    })
    .unwrap();
    let lost = checked(&mut heap);
    assert_eq!(heap.collect_cycles().unwrap(), lost.unreachable);
    let found = checked(&mut heap);
    assert_eq!((found.cycle_count, found.unreachable, found.cycles[0].is_reachable), (1, 0, true));
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        assert!(root.watched.as_ref().unwrap().upgrade(tx)?.is_none());
        assert_eq!(root.leaf.as_ref().unwrap().read(tx)?.number, 7);
        Ok(())
    })
    .unwrap();
}

#[test]
fn power_may_fail_at_any_moment() {
    with_and_without_checksums(|| {
        let _turn = turn();
        let simulated = Simulated::new(Delays::PCM);
        let options = |simulated: &Arc<Simulated>| Options {
            bytes_max: 4 << 20,
            ..crate::common::options(simulated, 64 << 10)
        };
        let mut heap = create(options(&simulated));
        let kept = checked(&mut heap).blocks;
        for way in 0..5 {
            lose(&heap, 3, way).unwrap();
        }
        // More pointers than one transaction drops.
        for _ in 0..if is_exhaustive() { 3 } else { 2 } {
            lose(&heap, 40, 0).unwrap();
        }
        forget(&heap).unwrap();
        heap.checkpoint().unwrap();
        simulated.record();
        heap.collect_cycles().unwrap();
        let points = simulated.take_points();
        drop(heap);
        let (mut seed, mut half) = (88_172_645_463_325_252, 0);
        assert!(points.len() > 10, "{} points", points.len());
        for (number, point) in points.iter().enumerate() {
            for image in images(point, &mut seed, 4, 2) {
                let file = file();
                file.write_all_at(&image, 0).unwrap();
                let simulated = Simulated::new(Delays::PCM);
                let mut heap = Heap::<Club>::open_in(file, Path::new("image"), options(&simulated))
                    .unwrap_or_else(|error| panic!("point {number}: {error}"));
                let found = heap.check().unwrap();
                assert!(found.problems.is_empty(), "point {number}: {found:?}");
                half += u32::from(found.cycle_count > 0 && found.cycle_count < 8);
                heap.collect_cycles().unwrap_or_else(|error| panic!("point {number}: {error}"));
                let found = checked(&mut heap);
                assert_eq!((found.unreachable, found.blocks), (0, kept), "point {number}: {found:?}");
            }
        }
        assert!(half > 0, "no cut was in the middle");
    });
}
