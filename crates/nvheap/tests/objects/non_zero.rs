//! `NonZero` integers: a zero is found from outside and inside, and heaps that were made before they had words of their own.

use nvlab_nvheap::{
    Brand, Error, Heap, Inspection, Maybe, Options, PVec, Pair, Persist, Result, Tx, migrate,
};
use std::fs::File;
use std::num::{NonZeroI16, NonZeroU8, NonZeroU32, NonZeroU64};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

struct Counted;
impl Brand for Counted {
    type Root = Root;
}

const MARK: u64 = 0x1234_5678_9abc_def1;

#[derive(Persist)]
#[persist(heap = Counted)]
#[repr(C)]
struct Root {
    plain: NonZeroU64,
    may_be: Option<NonZeroU64>,
    array: [NonZeroU32; 3],
    pair: Pair<NonZeroI16, NonZeroU8>,
    chosen: Maybe<NonZeroU64>,
    many: PVec<NonZeroU64, Counted>,
}

/// The same as it was described before: `NonZero` integers had the words of their integers.
mod before {
    use super::*;

    pub struct Counted;
    impl Brand for Counted {
        type Root = Root;
    }

    #[derive(Persist)]
    #[persist(heap = Counted)]
    #[repr(C)]
    pub struct Root {
        pub plain: u64,
        pub may_be: Option<NonZeroU64>,
        pub array: [u32; 3],
        pub pair: Pair<i16, u8>,
        pub chosen: Maybe<u64>,
        pub many: PVec<u64, Counted>,
    }
}

fn path() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    (folder, path)
}

fn non_zero(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

/// Offset of the root and bytes of the file.
fn create(path: &Path) -> (usize, Vec<u8>) {
    let heap = Heap::<Counted>::create(path, Options::default(), |tx| {
        Ok(Root {
            plain: non_zero(MARK),
            may_be: None,
            array: [7, 8, 9].map(|value| NonZeroU32::new(value).unwrap()),
            pair: Pair(NonZeroI16::new(-3).unwrap(), NonZeroU8::MIN),
            chosen: Maybe::Some(non_zero(MARK + 1)),
            many: PVec::from_fn(tx, 5, |index| Ok(non_zero(MARK + 2 + index as u64)))?,
        })
    });
    drop(heap.unwrap());
    let whole = std::fs::read(path).unwrap();
    let found = whole.windows(8).rposition(|word| word == MARK.to_le_bytes()).unwrap();
    (found, whole)
}

#[test]
fn a_zero_is_found_wherever_it_is() {
    let (_folder, path) = path();
    let (root, whole) = create(&path);
    assert!(Inspection::open(&path).unwrap().check().unwrap().problems.is_empty());
    let element = whole.windows(8).rposition(|word| word == (MARK + 4).to_le_bytes()).unwrap();
    let places = [
        ("plain", root, 8),
        ("array", root + 20, 4),
        ("pair", root + 28, 2),
        ("pair", root + 30, 1),
        ("chosen", root + 40, 8),
        ("many", element, 8),
    ];
    for (name, at, bytes) in places {
        std::fs::write(&path, &whole).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&[0; 8][..bytes], at as u64).unwrap();
        let problems = Inspection::open(&path).unwrap().check().unwrap().problems;
        let named = problems.iter().filter(|problem| problem.to_string().contains("NonZero"));
        assert_eq!((named.count(), problems.len()), (1, 1), "{name}: {problems:?}");
        let heap = Heap::<Counted>::open(&path, Options::default());
        let root = heap.and_then(|heap| {
            let root = heap.root()?;
            heap.transaction(|tx| {
                let root = root.read(tx)?;
                root.many.iter(tx).try_for_each(|value| value.map(drop))
            })
        });
        assert!(matches!(root, Err(Error::Damaged { .. })), "{name}: {root:?}");
    }
}

fn step(old: &before::Root, _: &Tx<'_, before::Counted>, _: &Tx<'_, Counted>) -> Result<Root> {
    Ok(Root {
        plain: non_zero(old.plain.max(1)),
        may_be: None,
        array: old.array.map(|value| NonZeroU32::new(value).unwrap()),
        pair: Pair(NonZeroI16::MIN, NonZeroU8::MIN),
        chosen: Maybe::None,
        many: PVec::new(),
    })
}

fn back(old: &Root, _: &Tx<'_, Counted>, _: &Tx<'_, before::Counted>) -> Result<before::Root> {
    Ok(before::Root {
        plain: old.plain.get() - 1,
        may_be: None,
        array: [0; 3],
        pair: Pair(0, 0),
        chosen: Maybe::None,
        many: PVec::new(),
    })
}

#[test]
fn heaps_of_before_are_opened_and_those_of_now_not_by_programs_of_before() {
    let (_folder, path) = path();
    let make = |value| {
        let heap = Heap::<before::Counted>::create(&path, Options::default(), |_| {
            Ok(before::Root {
                plain: value,
                may_be: None,
                array: [7, 8, 9],
                pair: Pair(-3, 1),
                chosen: Maybe::None,
                many: PVec::new(),
            })
        });
        drop(heap.unwrap());
    };
    let read = || {
        let heap = Heap::<Counted>::open(&path, Options::default())?;
        let root = heap.root()?;
        heap.transaction(|tx| Ok(root.read(tx)?.plain.get()))
    };
    make(5);
    assert_eq!(read().unwrap(), 5);
    std::fs::remove_file(&path).unwrap();
    make(0);
    let found = read();
    assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
    // A step from the one to the other is taken.
    drop(migrate::<before::Counted, Counted>(step).open(&path, Options::default()).unwrap());
    assert_eq!(read().unwrap(), 1);
    // Whoever takes zero for a value again has other types.
    let found = Heap::<before::Counted>::open(&path, Options::default()).map(drop);
    assert!(matches!(found, Err(Error::Schema { .. })), "{found:?}");
    // A file of before of the first would pass for one of the last, and the step would not be taken.
    let found = migrate::<Counted, before::Counted>(back).open(&path, Options::default()).map(drop);
    assert!(
        matches!(found, Err(Error::Invalid(ref why)) if why.contains("have the same layout")),
        "{found:?}"
    );
}
