//! What a single flipped bit in the used part of a heap does: what docs/nvheap.md says of damaged files is measured here.

use crate::hostile::draw;
use nvlab_nvheap::{
    Brand, Heap, Inspection, Options, PBTreeMap, PHashMap, PList, PString, PVec, Persist, Result, Strong,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

struct Flipped;
impl Brand for Flipped {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Flipped)]
#[repr(C)]
struct Root {
    numbers: PVec<u64, Flipped>,
    sorted: PBTreeMap<u64, u64, Flipped>,
    hashed: PHashMap<u64, u64, Flipped>,
    list: PList<u64, Flipped>,
    text: PString<Flipped>,
    people: PVec<Option<Strong<Person, Flipped>>, Flipped>,
}

#[derive(Persist)]
#[persist(heap = Flipped)]
#[repr(C)]
struct Person {
    name: PString<Flipped>,
    is_here: bool,
    age: u32,
}

const FLIPS: usize = 600;
/// No record needs pages: what lies in those would count as used.
const LOG_BYTES: u64 = 256 << 10;

/// The image of a heap that was closed.
fn image(checksums: bool) -> Vec<u8> {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let options =
        Options { bytes_max: 4 << 20, logs: 2, log_bytes: LOG_BYTES, checksums, ..Options::default() };
    let heap = Heap::<Flipped>::create(&path, options, |tx| {
        let mut root = Root {
            numbers: PVec::from_fn(tx, 300, |index| Ok(index as u64 * 7))?,
            sorted: PBTreeMap::new(tx)?,
            hashed: PHashMap::new(tx)?,
            list: PList::new(),
            text: PString::new(tx, &"some text ".repeat(40))?,
            people: PVec::new(),
        };
        for number in 0..200 {
            root.sorted.insert(tx, number * 3, number)?;
            root.hashed.insert(tx, number * 5, number)?;
            root.list.push_back(tx, number)?;
        }
        for age in 0..40 {
            let name = PString::new(tx, &format!("person {age}"))?;
            root.people.push(tx, Some(Strong::new(tx, Person { name, is_here: age % 2 == 0, age })?))?;
        }
        Ok(root)
    });
    drop(heap.unwrap());
    std::fs::read(&path).unwrap()
}

fn file(image: &[u8]) -> File {
    let file = nvlab_os::file::anonymous(c"heap", false).unwrap();
    file.write_all_at(image, 0).unwrap();
    file
}

/// All that a program reads, as text.
fn read(image: &[u8]) -> Result<String> {
    let options = Options { bytes_max: 4 << 20, ..Options::default() };
    let heap = Heap::<Flipped>::open_in(file(image), Path::new("flipped"), options)?;
    let root = heap.root()?;
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        let mut said = root.text.get(tx)?;
        for number in root.numbers.iter(tx).take(1000) {
            said += &format!(" {}", *number?);
        }
        for number in root.list.iter(tx).take(1000) {
            said += &format!(" {}", *number?);
        }
        for entry in root.sorted.iter(tx).take(1000) {
            let (key, value) = entry?;
            said += &format!(" {}={}", *key, *value);
        }
        for key in 0..1000 {
            if let Some(value) = root.hashed.get(tx, &key)? {
                said += &format!(" {key}={}", *value);
            }
        }
        for person in root.people.iter(tx).take(1000) {
            let Some(person) = &*person? else { continue };
            let person = person.read(tx)?;
            said += &format!(" {} {} {}", person.name.get(tx)?, person.is_here, person.age);
        }
        Ok(said)
    })
}

fn check(image: &[u8]) -> bool {
    let found = Inspection::open_in(file(image), Path::new("flipped")).and_then(|heap| heap.check());
    found.is_ok_and(|found| found.problems.is_empty() && found.unreachable == 0)
}

/// Calls `flipped` with images of which a bit in a line that holds something is another, and with the number of the byte.
fn flip(whole: &[u8], mut flipped: impl FnMut(usize, &[u8])) {
    // Behind the headers, types and logs.
    let start = 65536 + 2 * (4096 + LOG_BYTES as usize);
    let used: Vec<usize> = (start / 64..whole.len() / 64)
        .map(|line| line * 64)
        .filter(|&at| whole[at..at + 64].iter().any(|byte| *byte != 0))
        .collect();
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..FLIPS {
        let drawn = draw(&mut state);
        let bit = (drawn >> 9) as usize % 512;
        let at = used[(drawn >> 20) as usize % used.len()] + bit / 8;
        let mut image = whole.to_vec();
        image[at] ^= 1 << (bit % 8);
        flipped(at, &image);
    }
}

/// What a program would refuse, the check finds; of what it cannot know to be wrong there is as much as the documentation says.
#[test]
fn flipped_bits_are_noticed_or_change_numbers_and_texts() {
    let whole = image(false);
    let said = read(&whole).unwrap();
    assert!(check(&whole));
    let (mut silent, mut noticed, mut harmless) = (0, 0, 0);
    flip(&whole, |at, image| {
        if !check(image) {
            // What the check finds may be a list that has no end.
            noticed += 1;
            return;
        }
        match read(image) {
            Err(error) => panic!("byte {at}: the check has not found {error}"),
            Ok(found) if found == said => harmless += 1,
            Ok(_) => silent += 1,
        }
    });
    println!("of {FLIPS}: {noticed} noticed by the check, {harmless} harmless, {silent} silent");
    // What the documentation says.
    assert!((25..=40).contains(&(silent * 100 / FLIPS)), "{silent} of {FLIPS}");
}

/// Small numbers say how high a tree is, among others: one that a program cannot read with one more or less, the check finds.
#[test]
fn a_wrong_height_is_found() {
    let whole = image(false);
    let start = 65536 + 2 * (4096 + LOG_BYTES as usize);
    let mut refused = 0;
    for at in (start..whole.len())
        .step_by(8)
        .filter(|&at| matches!(whole[at..at + 8], [1 | 2, 0, 0, 0, 0, 0, 0, 0]))
    {
        for other in [whole[at] - 1, whole[at] + 1] {
            let mut image = whole.clone();
            image[at] = other;
            if let Err(error) = read(&image) {
                assert!(!check(&image), "byte {at}: the check has not found {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}

/// With checksums both find what is not harmless.
#[test]
fn no_flipped_bit_is_silent_with_checksums() {
    let whole = image(true);
    let said = read(&whole).unwrap();
    assert!(check(&whole));
    let (mut noticed, mut refused, mut harmless) = (0, 0, 0);
    flip(&whole, |at, image| {
        let (is_whole, found) = (check(image), read(image));
        match &found {
            Ok(found) => assert_eq!(*found, said, "byte {at}: silent"),
            Err(error) => assert!(!is_whole, "byte {at}: the check has not found {error}"),
        }
        noticed += usize::from(!is_whole);
        refused += usize::from(found.is_err());
        harmless += usize::from(is_whole);
    });
    println!("of {FLIPS}: {noticed} noticed by the check, {refused} by the program, {harmless} harmless");
    assert!(noticed > FLIPS * 9 / 10 && refused > FLIPS * 8 / 10, "{noticed} and {refused} of {FLIPS}");
}
