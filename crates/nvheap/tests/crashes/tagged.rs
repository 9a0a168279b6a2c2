//! Values of more than a word whose parts belong together, as the tag of an enum and what it says is there: a power cut never leaves
//! the one without the other.

use crate::common::{file, images, options, with_and_without_checksums};
use nvlab_nvheap::{
    Brand, Delays, Heap, I128, Maybe, PBTreeMap, PVec, Pair, Persist, Result, Simulated, U128,
};
use std::os::unix::fs::FileExt;
use std::path::Path;

struct Tagged;
impl Brand for Tagged {
    type Root = Root;
}

/// Every variant is as long as another one, or longer.
#[derive(Persist, Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Kind {
    Nothing,
    Short(u16),
    Long { number: u64, again: u64 },
    Wide(U128, [u32; 3]),
    Nested(Maybe<Maybe<u64>>),
}

#[derive(Persist, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Value {
    /// So that words begin in the middle of those of an object.
    before: u32,
    kind: Kind,
    maybe: Maybe<u64>,
    wide: U128,
    signed: I128,
    pair: Pair<u8, Maybe<u32>>,
    array: [Maybe<u64>; 3],
}

#[derive(Persist)]
#[persist(heap = Tagged)]
#[repr(C)]
struct Root {
    value: Value,
    list: PVec<Value, Tagged>,
    map: PBTreeMap<Maybe<u64>, Kind, Tagged>,
}

const ROUNDS: u64 = 20;

fn kind(round: u64) -> Kind {
    match round % 5 {
        0 => Kind::Nothing,
        1 => Kind::Short(round as u16 * 257),
        2 => Kind::Long { number: round, again: !round },
        3 => Kind::Wide(U128::from(u128::from(round) << 64 | u128::from(!round)), [round as u32; 3]),
        _ => Kind::Nested(if round.is_multiple_of(2) {
            Maybe::Some(Maybe::Some(round))
        } else {
            Maybe::Some(Maybe::None)
        }),
    }
}

/// Every part says which round it is of.
fn value(round: u64) -> Value {
    let maybe =
        |is: u64| if round.is_multiple_of(is) { Maybe::Some(round << 32 | round) } else { Maybe::None };
    Value {
        before: round as u32,
        kind: kind(round),
        maybe: maybe(2),
        wide: (u128::MAX - u128::from(round) * (1 + (1 << 64))).into(),
        signed: (-i128::from(round) * (1 << 70)).into(),
        pair: Pair(
            round as u8,
            if round.is_multiple_of(3) { Maybe::Some(round as u32) } else { Maybe::None },
        ),
        array: [maybe(1), maybe(3), maybe(4)],
    }
}

fn change(heap: &Heap<Tagged>, round: u64) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        root.value = value(round);
        *root.list.write(tx, round as usize % 3)? = value(round);
        let key = if round.is_multiple_of(4) { Maybe::None } else { Maybe::Some(round % 4) };
        root.map.insert(tx, key, kind(round)).map(drop)
    })
}

/// The round after which the heap is, all of whose parts are of it.
fn round(heap: &Heap<Tagged>) -> u64 {
    let root = heap.root().unwrap();
    let found = heap.transaction(|tx| {
        let root = root.read(tx)?;
        let round = u64::from(root.value.before);
        assert_eq!(root.value, value(round));
        for index in 0..3 {
            let last = (0..=round).rev().find(|round| round % 3 == index).unwrap_or(0);
            assert_eq!(*root.list.read(tx, index as usize)?, value(last), "round {round}, element {index}");
        }
        for index in 0..4 {
            let last = (1..=round).rev().find(|round| round % 4 == index);
            let key = if index == 0 { Maybe::None } else { Maybe::Some(index) };
            let found = root.map.get(tx, &key)?.map(|kind| *kind);
            assert_eq!(found, last.map(kind), "round {round}, key {index}");
        }
        Ok(round)
    });
    found.unwrap()
}

#[test]
fn a_power_cut_leaves_no_tag_without_its_value() {
    with_and_without_checksums(|| {
        let mut seed = 0x5eed;
        let mut tried = 0;
        let simulated = Simulated::new(Delays::PCM);
        let heap =
            Heap::<Tagged>::create_in(file(), Path::new("simulated"), options(&simulated, 16 << 10), |tx| {
                let mut list = PVec::new();
                for _ in 0..3 {
                    list.push(tx, value(0))?;
                }
                Ok(Root { value: value(0), list, map: PBTreeMap::new(tx)? })
            })
            .unwrap();
        for next in 1..=ROUNDS {
            simulated.record();
            change(&heap, next).unwrap();
            let points = simulated.take_points();
            assert!(!points.is_empty());
            for point in &points {
                for image in images(point, &mut seed, 64, 64) {
                    let file = file();
                    file.write_all_at(&image, 0).unwrap();
                    let opened = Simulated::new(Delays::PCM);
                    let mut heap =
                        Heap::<Tagged>::open_in(file, Path::new("image"), options(&opened, 16 << 10))
                            .unwrap();
                    let found = round(&heap);
                    assert!(found == next || found + 1 == next, "round {found} while {next} was committed");
                    assert!(heap.check().unwrap().problems.is_empty());
                    tried += 1;
                }
            }
            assert_eq!(round(&heap), next);
        }
        assert!(tried > 300, "only {tried} images");
    });
}
