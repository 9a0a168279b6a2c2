//! Files that somebody has changed: opening and using them returns values or errors, whatever they contain.

use nvlab_nvheap::{
    Brand, Error, Heap, Inspection, Options, PBox, PString, PVec, Persist, Result, Strong, Weak,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

struct Hostile;
impl Brand for Hostile {
    type Root = Root;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Persist)]
#[repr(u8)]
enum Colour {
    #[default]
    Red = 1,
    Green = 5,
}

#[derive(Persist, Default)]
#[persist(heap = Hostile)]
#[repr(C)]
struct Root {
    colour: Colour,
    flag: bool,
    letter: char,
    list: Option<Strong<Node, Hostile>>,
    owned: Option<PBox<Node, Hostile>>,
    weak: Option<Weak<Node, Hostile>>,
    text: PString<Hostile>,
    large: PVec<u64, Hostile>,
    nodes: PVec<Option<Strong<Node, Hostile>>, Hostile>,
}

#[derive(Persist, Default)]
#[persist(heap = Hostile)]
#[repr(C)]
struct Node {
    colour: Colour,
    next: Option<Strong<Node, Hostile>>,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn options() -> Options {
    Options { bytes_max: 4 << 20, logs: 2, log_bytes: 16 << 10, ..Options::default() }
}

fn file(image: &[u8]) -> File {
    let file = nvlab_os::file::anonymous(c"heap", false).unwrap();
    file.write_all_at(image, 0).unwrap();
    file
}

/// Reads and changes everything; errors are as good as values.
fn use_it(heap: &mut Heap<Hostile>) -> Result<()> {
    heap.check()?;
    let root = heap.root()?;
    let _ = heap.transaction(|tx| {
        let root = root.read(tx)?;
        assert!([Colour::Red, Colour::Green].contains(&root.colour) && root.flag as u8 <= 1);
        let mut next = root.list.as_ref().map(|first| first.share(tx)).transpose()?;
        // A list may be a circle now.
        for _ in 0..100 {
            let Some(node) = next else { break };
            next = node.read(tx)?.next.as_ref().map(|next| next.share(tx)).transpose()?;
        }
        if let Some(weak) = &root.weak {
            let _ = weak.upgrade(tx);
        }
        let _ = root.text.get(tx);
        for i in [0, 1, 2000, root.large.len().wrapping_sub(1), 1 << 40] {
            let _ = root.large.read(tx, i);
        }
        root.nodes.iter(tx).take(100).for_each(drop);
        Err::<(), _>(Error::abort("only looked"))
    });
    for round in 0..4 {
        let _ = heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            match round {
                0 => root.text.set(tx, "other text")?,
                1 => root.list = None,
                2 => root.large.swap(tx, 3, 1500)?,
                _ => (root.nodes, root.owned, root.weak) = (PVec::new(), None, None),
            }
            let next = root.list.take();
            root.list = Some(Strong::new(tx, Node { colour: Colour::Green, next })?);
            Ok(())
        });
    }
    Ok(())
}

/// A heap with some of everything, as a program leaves it that is killed.
fn image(checksums: bool) -> Vec<u8> {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let heap = Heap::<Hostile>::create(&path, Options { checksums, ..options() }, |tx| {
        Ok(Root { large: PVec::from_fn(tx, 3000, |i| Ok(i as u64))?, ..Root::default() })
    })
    .unwrap();
    let root = heap.root().unwrap();
    for i in 0..12 {
        heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            let next = root.list.take();
            let node = Strong::new(tx, Node { colour: Colour::Green, next })?;
            root.weak = Some(node.downgrade(tx)?);
            root.nodes.push(tx, Some(node.share(tx)?))?;
            root.list = Some(node);
            root.owned = Some(PBox::new(tx, Node::default())?);
            root.text.set(tx, &format!("text number {i}"))
        })
        .unwrap();
    }
    std::fs::read(&path).unwrap()
}

fn try_image(image: &[u8]) -> bool {
    let inspected = Inspection::open_in(file(image), Path::new("inspected")).and_then(|heap| heap.check());
    let is_whole = inspected.as_ref().is_ok_and(|found| found.problems.is_empty());
    match Heap::<Hostile>::open_in(file(image), Path::new("hostile"), options()) {
        Ok(mut heap) => {
            let found = heap.check();
            // Opening destroys what waits for it, which an inspection only looks at.
            let is_sound = found.as_ref().is_ok_and(|found| found.problems.is_empty());
            assert!(!is_whole || is_sound, "not found from outside: {found:?}");
            let _ = use_it(&mut heap);
            true
        }
        Err(error) => {
            assert!(!is_whole, "not found from outside: {error}");
            false
        }
    }
}

pub(crate) fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn no_file_makes_it_access_other_memory_or_panic() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    for checksums in [false, true] {
        change_files(&image(checksums));
    }
    for bytes in [0, 1, 8, 100, 4096, 8192, 65536] {
        assert!(!try_image(&vec![0xa5; bytes]), "{bytes} bytes of noise");
    }
}

fn change_files(whole: &[u8]) {
    assert!(try_image(whole));
    let used: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0).collect();
    let mut seed = 88_172_645_463_325_252;
    let mut opened = 0;
    for round in 0..2000 {
        let mut image = whole.to_vec();
        match round % 5 {
            // A flipped bit where something is.
            0 | 1 => image[used[draw(&mut seed) as usize % used.len()]] ^= 1 << (draw(&mut seed) % 8),
            // Words that look like others.
            2 => {
                for _ in 0..8 {
                    let into = used[draw(&mut seed) as usize % used.len()] / 8 * 8;
                    let from = used[draw(&mut seed) as usize % used.len()] / 8 * 8;
                    image.copy_within(from..from + 8, into);
                }
            }
            // A line of noise.
            3 => {
                let at = used[draw(&mut seed) as usize % used.len()] / 64 * 64;
                image[at..at + 64].iter_mut().for_each(|byte| *byte = draw(&mut seed) as u8);
            }
            // The end is missing.
            _ => image.truncate(draw(&mut seed) as usize % whole.len()),
        }
        opened += u32::from(try_image(&image));
    }
    assert!((100..1900).contains(&opened), "{opened} of 2000 were opened");
}

/// Damage to what is checked is found.
#[test]
fn damage_is_found_or_harmless() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let whole = image(false);
    let inspect = |image: &[u8]| {
        let found = Inspection::open_in(file(image), Path::new("damaged"))?.check()?;
        found.problems.into_iter().next().map_or(Ok(()), Err)
    };
    let text = |image: &[u8]| {
        let inspected = inspect(image);
        let mut heap = Heap::<Hostile>::open_in(file(image), Path::new("damaged"), options())?;
        let problems = heap.check()?.problems;
        if let Some(problem) = problems.into_iter().next() {
            assert!(inspected.is_err(), "{problem}");
            return Err(problem);
        }
        let root = heap.root()?;
        heap.transaction(|tx| root.read(tx)?.text.get(tx))
    };
    assert_eq!(text(&whole).unwrap(), "text number 11");
    // Both copies of the header are needed to lose it.
    let mut one = whole.clone();
    one[70] ^= 4;
    assert_eq!(text(&one).unwrap(), "text number 11");
    one[4096 + 70] ^= 4;
    assert!(text(&one).is_err() && inspect(&one).is_err());
    // The first record of each half of the log: one holds what has not been written home.
    let log = 65536 + 4096;
    let found = [log, log + 8192].map(|half| {
        let mut damaged = whole.clone();
        damaged[half + 30] ^= 1;
        let found = text(&damaged);
        assert_eq!(found.is_err(), inspect(&damaged).is_err(), "{found:?}");
        found
    });
    let refused = found.iter().filter(|found| matches!(found, Err(Error::Damaged { .. }))).count();
    let harmless =
        found.iter().filter(|found| found.as_ref().is_ok_and(|text| text == "text number 11")).count();
    assert_eq!((refused, harmless), (1, 1), "{found:?}");
}
