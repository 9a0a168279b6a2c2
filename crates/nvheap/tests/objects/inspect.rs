//! Heaps seen from outside: values, figures and circles, and no file that makes it panic or go on for ever.

use nvlab_nvheap::{
    Brand, Error, Heap, Inspection, Limits, Options, PBTreeMap, PBox, PHashMap, PList, PString, PVec, Pair,
    Persist, Reference, Result, Strong, Tx, Value, Weak,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

struct Zoo;
impl Brand for Zoo {
    type Root = Root;
}

#[derive(Clone, Copy, Debug, Persist)]
#[repr(i16)]
enum Mood {
    Grim = -3,
    Fine = 700,
}

#[derive(Persist)]
#[persist(heap = Zoo)]
#[repr(C)]
struct Root {
    mood: Mood,
    flag: bool,
    letter: char,
    small: i8,
    single: f32,
    double: f64,
    nothing: (),
    pair: Pair<u16, [i32; 3]>,
    text: PString<Zoo>,
    shared: [Option<Strong<Animal, Zoo>>; 3],
    owned: PBox<Animal, Zoo>,
    weak: Option<Weak<Animal, Zoo>>,
    words: PVec<PString<Zoo>, Zoo>,
    sorted: PBTreeMap<PString<Zoo>, u64, Zoo>,
    hashed: PHashMap<u32, Strong<Animal, Zoo>, Zoo>,
    list: PList<Pair<bool, char>, Zoo>,
}

#[derive(Persist)]
#[persist(heap = Zoo)]
#[repr(C)]
struct Animal {
    name: PString<Zoo>,
    legs: u8,
    friend: Option<Strong<Animal, Zoo>>,
    others: PVec<Strong<Animal, Zoo>, Zoo>,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

fn options() -> Options {
    Options { bytes_max: 4 << 20, logs: 2, log_bytes: 256 << 10, ..Options::default() }
}

fn animal(tx: &Tx<'_, Zoo>, name: &str, legs: u8) -> Result<Animal> {
    Ok(Animal { name: PString::new(tx, name)?, legs, friend: None, others: PVec::new() })
}

fn create(path: &Path) -> Heap<Zoo> {
    Heap::create(path, options(), |tx| {
        let shared = Strong::new(tx, animal(tx, "an ant", 6)?)?;
        let mut root = Root {
            mood: Mood::Grim,
            flag: true,
            letter: 'ä',
            small: -5,
            single: 0.1,
            double: 1e100,
            nothing: (),
            pair: Pair(65_535, [1, -2, 3]),
            text: PString::new(tx, "a text with \"quotes\" ✓")?,
            weak: Some(shared.downgrade(tx)?),
            shared: [Some(shared.share(tx)?), None, Some(shared.share(tx)?)],
            owned: PBox::new(tx, animal(tx, "a snake", 0)?)?,
            words: PVec::new(),
            sorted: PBTreeMap::new(tx)?,
            hashed: PHashMap::new(tx)?,
            list: PList::new(),
        };
        for i in 0..300_u32 {
            root.sorted.insert(tx, PString::new(tx, &format!("key {i:03}"))?, u64::from(i))?;
            root.hashed.insert(tx, i, shared.share(tx)?)?;
        }
        for word in ["", "one", "and another that is longer"] {
            root.words.push(tx, PString::new(tx, word)?)?;
        }
        root.list.push_back(tx, Pair(true, 'x'))?;
        root.list.push_back(tx, Pair(false, 'y'))?;
        Ok(root)
    })
    .unwrap()
}

fn path(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    match value {
        Value::Struct { fields, .. } => &fields.iter().find(|(field, _)| field == name).expect(name).1,
        other => panic!("{other:?} has no fields"),
    }
}

fn text(value: &Value) -> &str {
    match value {
        Value::Text { text, .. } => text,
        other => panic!("{other:?} is no text"),
    }
}

/// Animals in a circle that nothing leads to.
fn lose(heap: &Heap<Zoo>, number: usize) {
    heap.transaction(|tx| {
        let first = Strong::new(tx, animal(tx, "lost", 4)?)?;
        let mut last = first.share(tx)?;
        for _ in 1..number {
            let next = Strong::new(tx, animal(tx, "lost too", 4)?)?;
            last.write(tx)?.friend = Some(next.share(tx)?);
            last = next;
        }
        last.write(tx)?.others.push(tx, first)
    })
    .unwrap();
}

#[test]
fn values_are_those_that_the_program_wrote() {
    let _turn = turn();
    let (_folder, path) = path("zoo");
    let heap = create(&path);
    assert!(matches!(Inspection::open(&path), Err(Error::Busy(_))));
    drop(heap);
    let before = std::fs::read(&path).unwrap();
    let inspection = Inspection::open(&path).unwrap();
    let other = Inspection::open(&path).unwrap();
    assert_eq!(other.root(), inspection.root(), "two may look at it");
    let root = inspection.read(inspection.root(), Limits::default()).unwrap();
    assert_eq!(inspection.type_name(inspection.root()), "Root");
    let plain =
        ["mood", "flag", "letter", "small", "single", "double", "nothing"].map(|name| field(&root, name));
    let written = [
        &Value::Variant("Grim".into()),
        &Value::Bool(true),
        &Value::Char('ä'),
        &Value::Integer(-5),
        &Value::Single(0.1),
        &Value::Double(1e100),
        &Value::None,
    ];
    assert_eq!(plain, written);
    let array = Value::List { elements: [1, -2, 3].map(Value::Integer).to_vec(), len: 3 };
    assert_eq!(field(field(&root, "pair"), "0"), &Value::Integer(65_535));
    assert_eq!(field(field(&root, "pair"), "1"), &array);
    assert_eq!(text(field(&root, "text")), "a text with \"quotes\" ✓");
    let Value::List { elements: shared, .. } = field(&root, "shared") else { panic!("{root:?}") };
    let Value::Pointer(ant) = shared[0] else { panic!("{shared:?}") };
    assert_eq!(shared[1..], [Value::None, Value::Pointer(ant)]);
    assert_eq!(field(&root, "weak"), &Value::Weak { to: ant, is_alive: true });
    let value = inspection.read(ant, Limits::default()).unwrap();
    assert_eq!((text(field(&value, "name")), field(&value, "legs")), ("an ant", &Value::Integer(6)));
    let Value::List { elements: words, len: 3 } = field(&root, "words") else { panic!("{root:?}") };
    assert_eq!(words.iter().map(text).collect::<Vec<_>>(), ["", "one", "and another that is longer"]);
    let Value::Map { entries, len: 300 } = field(&root, "sorted") else { panic!("{root:?}") };
    for (i, (key, value)) in entries.iter().enumerate() {
        assert_eq!((text(key), value), (format!("key {i:03}").as_str(), &Value::Integer(i as i128)));
    }
    let Value::Map { entries, len: 300 } = field(&root, "hashed") else { panic!("{root:?}") };
    assert!(entries.iter().all(|(_, value)| *value == Value::Pointer(ant)));
    let keys: BTreeSet<String> = entries.iter().map(|(key, _)| format!("{key:?}")).collect();
    assert_eq!((entries.len(), keys.len()), (300, 300));
    let Value::List { elements, len: 2 } = field(&root, "list") else { panic!("{root:?}") };
    assert_eq!(field(&elements[1], "1"), &Value::Char('y'));

    let few = Limits { elements: 2, text_bytes: 21, ..Limits::default() };
    let root = inspection.read(inspection.root(), few).unwrap();
    assert_eq!(field(&root, "text"), &Value::Text { text: "a text with \"quotes\" ".into(), bytes: 24 });
    let Value::Map { entries, len: 300 } = field(&root, "sorted") else { panic!("{root:?}") };
    assert_eq!(entries.len(), 2);
    drop((inspection, other));
    assert_eq!(std::fs::read(&path).unwrap(), before, "nothing has changed");
    Heap::<Zoo>::open(&path, options()).unwrap();
}

#[test]
fn circles_and_figures_are_found() {
    let _turn = turn();
    let (_folder, path) = path("zoo");
    let heap = create(&path);
    lose(&heap, 3);
    lose(&heap, 1);
    // One that the root leads to.
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let root = root.write(tx)?;
        let ant = root.shared[0].as_ref().unwrap();
        ant.write(tx)?.friend = Some(ant.share(tx)?);
        Ok(())
    })
    .unwrap();
    // As a killed program leaves it: everything is in the log.
    let image = std::fs::read(&path).unwrap();
    drop((root, heap));
    for is_closed in [false, true] {
        let inspection = match is_closed {
            true => Inspection::open(&path).unwrap(),
            false => Inspection::open_in(file(&image), Path::new("image")).unwrap(),
        };
        let found = inspection.check().unwrap();
        assert!(found.problems.is_empty(), "{found:?}");
        // Each circle has an array; each animal a name.
        assert_eq!((found.cycle_count, found.unreachable), (3, 4 + 2 + 4), "{found:?}");
        let circles: Vec<_> = found.cycles.iter().map(|cycle| (cycle.is_reachable, cycle.blocks)).collect();
        assert_eq!(circles, [(false, 4), (false, 2), (true, 1)]);
        let types = [("Animal".to_string(), 3), ("[Strong<Animal, Zoo>]".to_string(), 1)];
        assert_eq!(found.cycles[0].types, types);
        let summary = inspection.summary().unwrap();
        assert_eq!(summary.blocks, found.blocks);
        assert_eq!(summary.records == 0, is_closed, "{summary:?}");
        assert_eq!(summary.sizes.iter().map(|size| size.blocks).sum::<u64>(), found.blocks);
        assert_eq!(summary.live_bytes + summary.free_bytes, summary.pages * 65_536);
        assert_eq!((summary.types[0].as_str(), summary.logs, summary.log_bytes), ("Root", 2, 256 << 10));
    }
    let mut heap = Heap::<Zoo>::open(&path, options()).unwrap();
    assert_eq!(heap.check().unwrap().cycle_count, 3);
}

fn file(image: &[u8]) -> File {
    let file = nvlab_os::file::anonymous(c"heap", false).unwrap();
    file.write_all_at(image, 0).unwrap();
    file
}

/// Looks at everything; whether all of it is in order.
fn look(image: &[u8]) -> Result<bool> {
    let inspection = Inspection::open_in(file(image), Path::new("image"))?;
    let is_whole = inspection.check()?.problems.is_empty();
    let _ = inspection.summary();
    let limits = Limits { values: 10_000, ..Limits::default() };
    let (mut next, mut seen) = (vec![inspection.root()], BTreeSet::new());
    while let Some(object) = next.pop() {
        if seen.len() < 1000 && seen.insert(object) {
            match inspection.read(object, limits) {
                Ok(value) => references(&value, &mut next),
                Err(error) => assert!(!is_whole, "{error}"),
            }
        }
    }
    Ok(is_whole)
}

fn references(value: &Value, found: &mut Vec<Reference>) {
    match value {
        Value::Pointer(to) => found.push(*to),
        Value::Weak { to, is_alive: true } => found.push(*to),
        Value::Struct { fields, .. } => fields.iter().for_each(|(_, value)| references(value, found)),
        Value::List { elements, .. } => elements.iter().for_each(|value| references(value, found)),
        Value::Map { entries, .. } => entries.iter().for_each(|(key, value)| {
            references(key, found);
            references(value, found);
        }),
        _ => {}
    }
}

fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Words that are 1, such as that of a list's node that has its value, made 0 one at a time.
#[test]
fn no_damaged_word_is_whole_and_then_refused() {
    let _turn = turn();
    let (_folder, path) = path("zoo");
    drop(create(&path));
    let whole = std::fs::read(&path).unwrap();
    let is_one = |at: &usize| whole[*at..*at + 8] == 1_u64.to_le_bytes();
    let ones: Vec<usize> = (0..whole.len() / 8 * 8).step_by(8).filter(is_one).collect();
    let (mut image, mut refused) = (whole.clone(), 0);
    for &at in &ones {
        image[at] = 0;
        refused += u32::from(!look(&image).unwrap_or(false));
        image[at] = 1;
    }
    // The root's list has two nodes; the rest are counts, lengths and numbers, of which few may have any value.
    assert!(ones.len() > 10 && refused as usize > ones.len() / 4, "{refused} of {}", ones.len());
}

#[test]
fn two_thousand_damages_end_in_values_or_errors() {
    let _turn = turn();
    let (_folder, path) = path("zoo");
    let heap = create(&path);
    lose(&heap, 3);
    let whole = std::fs::read(&path).unwrap();
    drop(heap);
    assert!(look(&whole).unwrap());
    // Where blocks, types and logs are, not the space that is not used.
    let used: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0).collect();
    let (mut seed, mut outcomes) = (88_172_645_463_325_252, [0; 3]);
    for round in 0..2000 {
        let mut image = whole.clone();
        let at = |seed: &mut u64| used[draw(seed) as usize % used.len()];
        match round % 5 {
            0 | 1 => image[at(&mut seed)] ^= 1 << (draw(&mut seed) % 8),
            2 => {
                for _ in 0..8 {
                    let (into, from) = (at(&mut seed) / 8 * 8, at(&mut seed) / 8 * 8);
                    image.copy_within(from..from + 8, into);
                }
            }
            3 => {
                let at = at(&mut seed) / 64 * 64;
                image[at..at + 64].iter_mut().for_each(|byte| *byte = draw(&mut seed) as u8);
            }
            _ => image.truncate(draw(&mut seed) as usize % whole.len()),
        }
        outcomes[match look(&image) {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(_) => 2,
        }] += 1;
    }
    assert!(outcomes.iter().all(|&outcome| outcome > 100), "{outcomes:?} whole, damaged, refused");
}
