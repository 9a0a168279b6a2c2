//! Heaps of older types become heaps of newer ones: through every version, whatever is in the logs, and as a whole or not at all
//! when a step fails, the program is killed or the power is cut.

use nvlab_nvheap::{
    Brand, Delays, Error, Heap, Migration, Options, PBTreeMap, PString, PVec, Persist, Persistence, Result,
    Simulated, Strong, Tx, migrate,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

const PATH: &str = "NVLAB_NVHEAP_MIGRATED";

/// People with their names in one piece, and what they work on.
struct V1;
/// Names in two pieces; people are found by their last name.
struct V2;
/// Hours instead of minutes.
struct V3;

mod v1 {
    use super::*;

    #[derive(Persist, Default)]
    #[persist(heap = V1)]
    #[repr(C)]
    pub struct Root {
        pub people: PVec<Person, V1>,
    }

    #[derive(Persist)]
    #[persist(heap = V1)]
    #[repr(C)]
    pub struct Person {
        pub name: PString<V1>,
        pub task: Option<Strong<Task, V1>>,
    }

    #[derive(Persist)]
    #[repr(C)]
    pub struct Task {
        pub minutes: u32,
    }
}

mod v2 {
    use super::*;

    #[derive(Persist)]
    #[persist(heap = V2)]
    #[repr(C)]
    pub struct Root {
        pub people: PBTreeMap<PString<V2>, Person, V2>,
    }

    #[derive(Persist, Default)]
    #[persist(heap = V2)]
    #[repr(C)]
    pub struct Person {
        pub first: PString<V2>,
        pub minutes: u32,
        pub rest: u32,
    }
}

mod v3 {
    use super::*;

    #[derive(Persist)]
    #[persist(heap = V3)]
    #[repr(C)]
    pub struct Root {
        pub people: PVec<Person, V3>,
    }

    #[derive(Persist)]
    #[persist(heap = V3)]
    #[repr(C)]
    pub struct Person {
        pub name: PString<V3>,
        pub hours: f64,
    }
}

impl Brand for V1 {
    type Root = v1::Root;
}
impl Brand for V2 {
    type Root = v2::Root;
}
impl Brand for V3 {
    type Root = v3::Root;
}

/// One set of brands: tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

fn options() -> Options {
    Options { bytes_max: 4 << 20, logs: 2, log_bytes: 16 << 10, ..Options::default() }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("people");
    (folder, path)
}

/// A heap of the first version with so many people, of whom two share each task.
fn create(path: &Path, people: usize) -> Heap<V1> {
    let heap = Heap::<V1>::create(path, options(), |_| Ok(v1::Root::default())).unwrap();
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let mut root = root.write(tx)?;
        let mut last: Option<Strong<v1::Task, V1>> = None;
        for i in 0..people {
            let task = match last.take() {
                Some(task) => task,
                None => {
                    let task = Strong::new(tx, v1::Task { minutes: i as u32 * 30 })?;
                    last = Some(task.share(tx)?);
                    task
                }
            };
            let name = PString::new(tx, &format!("first{i} last{i:04}"))?;
            root.people.push(tx, v1::Person { name, task: Some(task) })?;
        }
        Ok(())
    })
    .unwrap();
    heap
}

fn first(old: &v1::Root, from: &Tx<'_, V1>, to: &Tx<'_, V2>) -> Result<v2::Root> {
    let people = PBTreeMap::new(to)?;
    for person in old.people.iter(from) {
        let person = person?;
        let name = person.name.get(from)?;
        let (first, last) = name.split_once(' ').ok_or_else(|| Error::abort(format!("{name:?}")))?;
        let minutes = match &person.task {
            Some(task) => task.read(from)?.minutes,
            None => 0,
        };
        let person = v2::Person { first: PString::new(to, first)?, minutes, rest: 0 };
        people.insert(to, PString::new(to, last)?, person)?;
    }
    Ok(v2::Root { people })
}

fn second(old: &v2::Root, from: &Tx<'_, V2>, to: &Tx<'_, V3>) -> Result<v3::Root> {
    let mut people = PVec::new();
    for entry in old.people.iter(from) {
        let entry = entry?;
        let (last, person) = (entry.0.get(from)?, &entry.1);
        let name = PString::new(to, &format!("{} {last}", person.first.get(from)?))?;
        people.push(to, v3::Person { name, hours: f64::from(person.minutes) / 60.0 })?;
    }
    Ok(v3::Root { people })
}

fn chain() -> Migration<'static, V3> {
    migrate::<V1, V2>(first).then::<V3>(second)
}

/// The heap holds what the steps make of what [`create`] made.
fn verify(mut heap: Heap<V3>, people: usize) {
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
    let root = heap.root().unwrap();
    let found = heap.transaction(|tx| {
        let root = root.read(tx)?;
        let lines = root.people.iter(tx).map(|person| {
            let person = person?;
            Ok((person.name.get(tx)?, person.hours))
        });
        lines.collect::<Result<Vec<_>>>()
    });
    let expected: Vec<(String, f64)> =
        (0..people).map(|i| (format!("first{i} last{i:04}"), (i / 2) as f64)).collect();
    assert_eq!(found.unwrap(), expected);
}

fn files(folder: &tempfile::TempDir) -> usize {
    std::fs::read_dir(folder.path()).unwrap().count()
}

#[test]
fn every_version_becomes_the_last() {
    let _turn = turn();
    let (folder, path) = folder();
    // With a log that has to be replayed, as a killed program leaves it.
    let heap = create(&path, 100);
    let killed = path.with_extension("killed");
    std::fs::copy(&path, &killed).unwrap();
    drop(heap);
    verify(chain().open(&killed, Options::default()).unwrap(), 100);
    // One step, and then the other.
    drop(migrate::<V1, V2>(first).open(&path, options()).unwrap());
    assert!(matches!(Heap::<V1>::open(&path, options()), Err(Error::Schema { .. })));
    let calls = Mutex::new(0);
    let only_second = migrate::<V1, V2>(|_, _, _| unreachable!("it is of the second version"));
    let only_second = only_second.then::<V3>(|old, from, to| {
        *calls.lock().unwrap() += 1;
        second(old, from, to)
    });
    verify(only_second.open(&path, options()).unwrap(), 100);
    assert_eq!(*calls.lock().unwrap(), 1);
    // Nothing is left to do, and the file stays the one it is.
    let before = std::fs::read(&killed).unwrap().len();
    verify(chain().open(&killed, options()).unwrap(), 100);
    assert_eq!((std::fs::read(&killed).unwrap().len(), files(&folder)), (before, 2));
}

/// Owner's permissions stay, and so do the limits, if the options have less.
#[test]
fn the_new_heap_is_where_and_as_large_as_the_old_one() {
    use std::os::unix::fs::PermissionsExt;
    let _turn = turn();
    let (_folder, path) = folder();
    drop(create(&path, 10));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let small = Options { bytes_max: 1 << 20, ..options() };
    let heap = chain().open(&path, small).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let name = PString::new(tx, &"x".repeat(3 << 20))?;
        root.write(tx)?.people.push(tx, v3::Person { name, hours: 0.0 })
    })
    .unwrap();
}

#[test]
fn what_cannot_be_migrated_is_refused() {
    let _turn = turn();
    let (folder, path) = folder();
    struct Other;
    impl Brand for Other {
        type Root = [u64; 3];
    }
    drop(Heap::<Other>::create(&path, options(), |_| Ok([1, 2, 3])).unwrap());
    let error = chain().open(&path, options()).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Schema { .. }) && text.contains("V2") && text.contains(".array"),
        "{text}"
    );
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(chain().open(&path, options()), Err(Error::Io { .. })), "nothing is there");
    let heap = create(&path, 10);
    assert!(matches!(chain().open(&path, options()), Err(Error::Busy(_))));
    drop(heap);
    // Two versions that cannot be told apart.
    struct Same;
    impl Brand for Same {
        type Root = [u64; 3];
    }
    let same = migrate::<Other, Same>(|old, _, _| Ok(*old));
    let error = same.open(&path, options()).unwrap_err();
    assert!(matches!(&error, Error::Invalid(why) if why.contains("same layout")), "{error}");
    let link = path.with_extension("link");
    std::fs::hard_link(&path, &link).unwrap();
    assert!(matches!(chain().open(&path, options()), Err(Error::Invalid(_))), "another name");
    std::fs::remove_file(&link).unwrap();
    // Another heap of a version is open.
    let elsewhere = path.with_extension("elsewhere");
    let _open = create(&elsewhere, 1);
    assert_eq!(files(&folder), 2);
    verify(chain().open(&path, options()).unwrap(), 10);
}

#[test]
fn a_step_that_fails_changes_nothing() {
    let _turn = turn();
    let (folder, path) = folder();
    drop(create(&path, 100));
    let before = std::fs::read(&path).unwrap();
    let unchanged = |what: &str| {
        assert_eq!(files(&folder), 1, "{what}");
        assert!(std::fs::read(&path).unwrap() == before, "{what}");
    };
    let fails = migrate::<V1, V2>(first).then::<V3>(|old, from, to| {
        second(old, from, to)?;
        Err(Error::abort("not today"))
    });
    assert!(matches!(fails.open(&path, options()), Err(Error::Aborted(_))));
    unchanged("an error");
    let panics = migrate::<V1, V2>(first).then::<V3>(|_, _, _| panic!("as the test wants it"));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panics.open(&path, options())));
    assert!(result.is_err());
    unchanged("a panic");
    let larger = migrate::<V1, V2>(|old, from, to| {
        PString::new(from, &"x".repeat(1 << 20))?;
        first(old, from, to)
    });
    let error = larger.open(&path, options()).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "the old heap cannot grow: {error}");
    unchanged("a change that the old heap has no room for");
    // What a step changes in the old heap is thrown away.
    let changes = migrate::<V1, V2>(|old, from, to| {
        let made = first(old, from, to)?;
        old.people.write(from, 0)?.task = None;
        Err(Error::abort(format!("{} people", made.people.len(to)?)))
    });
    assert!(matches!(changes.open(&path, options()), Err(Error::Aborted(_))));
    unchanged("a change of the old heap");
    verify(chain().open(&path, options()).unwrap(), 100);
}

/// At every moment of the new file, in a simulated cache: the old one is what it was, and the next attempt succeeds.
#[test]
fn a_power_cut_leaves_the_old_heap() {
    let _turn = turn();
    let (folder, path) = folder();
    drop(create(&path, 40));
    let before = std::fs::read(&path).unwrap();
    let simulated = Simulated::new(Delays::PCM);
    simulated.record();
    let cut = Options { persistence: Persistence::Simulated(simulated.clone()), logs: 1, ..options() };
    verify(chain().open(&path, cut).unwrap(), 40);
    let points = simulated.take_points();
    assert!(points.len() > 10, "{} points", points.len());
    let beside = folder.path().join(".people.nvheap-new");
    for point in points {
        for all in [false, true] {
            let choices = point.choices();
            std::fs::write(&beside, point.image(|line| if all { choices[line] - 1 } else { 0 })).unwrap();
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, &before).unwrap();
            let heap = chain().open(&path, Options { persistence: Persistence::Process, ..options() });
            verify(heap.unwrap(), 40);
            assert_eq!(files(&folder), 1);
        }
    }
}

/// The other way round, for a program that goes on for ever.
fn back(old: &v2::Root, from: &Tx<'_, V2>, to: &Tx<'_, V1>) -> Result<v1::Root> {
    let mut people = PVec::new();
    for entry in old.people.iter(from) {
        let entry = entry?;
        let name = format!("{} {}", entry.1.first.get(from)?, entry.0.get(from)?);
        let task = Some(Strong::new(to, v1::Task { minutes: entry.1.minutes })?);
        people.push(to, v1::Person { name: PString::new(to, &name)?, task })?;
    }
    Ok(v1::Root { people })
}

/// The program that is killed.
#[test]
fn program() {
    let Some(path) = std::env::var_os(PATH) else { return };
    loop {
        drop(migrate::<V1, V2>(first).open(Path::new(&path), options()).unwrap());
        drop(migrate::<V2, V1>(back).open(Path::new(&path), options()).unwrap());
    }
}

#[test]
fn a_killed_migration_leaves_the_one_or_the_other() {
    let _turn = turn();
    let (folder, path) = folder();
    drop(create(&path, 300));
    let (mut seed, mut left_behind, mut seen) = (1_u64, 0, [0; 2]);
    for _ in 0..40 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "migrate::program", "--nocapture"])
            .env(PATH, &path)
            .spawn()
            .unwrap();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros(10_000 + (seed >> 33) % 40_000));
        child.kill().unwrap();
        child.wait().unwrap();
        left_behind += usize::from(files(&folder) > 1);
        let copy = folder.path().join("copy");
        std::fs::copy(&path, &copy).unwrap();
        seen[usize::from(Heap::<V1>::open(&path, options()).is_err())] += 1;
        verify(chain().open(&copy, options()).unwrap(), 300);
        std::fs::remove_file(&copy).unwrap();
    }
    assert!(left_behind > 5, "only {left_behind} were killed in the middle");
    assert!(seen[0] > 2 && seen[1] > 2, "{seen:?}");
    verify(chain().open(&path, options()).unwrap(), 300);
    assert_eq!(files(&folder), 1);
}
