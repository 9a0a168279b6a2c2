//! Transactions whose records no half of a log can hold: whole or not there after every power cut, of 100 MB with default options,
//! refused without a trace if there is no room, and beside those of other threads.

use crate::common::{draw, file, images, with_and_without_checksums};
use nvlab_nvheap::{
    Brand, Delays, Error, Heap, Options, PBox, PString, PVec, Persist, Result, Simulated, Tx,
};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

struct Large;
impl Brand for Large {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Large)]
#[repr(C)]
struct Root {
    numbers: PVec<[u64; 8], Large>,
    trees: PVec<Option<PBox<Tree, Large>>, Large>,
    text: PString<Large>,
    small: u64,
}

#[derive(Persist)]
#[persist(heap = Large)]
#[repr(C)]
struct Tree {
    values: [u64; 20],
    child: Option<PBox<Tree, Large>>,
}

type State = (Vec<u64>, Vec<u64>, String, u64);
type Step = fn(&mut Root, &Tx<'_, Large>) -> Result<()>;

/// One brand: tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|error| error.into_inner())
}

/// A record takes at most 8 KiB of a log.
fn options(simulated: &Arc<Simulated>) -> Options {
    crate::common::options(simulated, 16 << 10)
}

fn apply(heap: &Heap<Large>, step: Step) -> Result<()> {
    let root = heap.root()?;
    heap.transaction(|tx| step(&mut *root.write(tx)?, tx))
}

fn state(heap: &Heap<Large>) -> State {
    let root = heap.root().unwrap();
    heap.transaction(|tx| {
        let root = root.read(tx)?;
        let mut numbers = Vec::new();
        for element in root.numbers.iter(tx) {
            let element = element?;
            assert!(element.iter().all(|&word| word == element[0]), "a torn element: {:?}", *element);
            numbers.push(element[0]);
        }
        let mut values = Vec::new();
        for tree in root.trees.iter(tx) {
            if let Some(tree) = &*tree? {
                let tree = tree.read(tx)?;
                values.extend(tree.values);
                if let Some(child) = &tree.child {
                    values.extend(child.read(tx)?.values);
                }
            }
        }
        Ok((numbers, values, root.text.get(tx)?, root.small))
    })
    .unwrap()
}

fn change_numbers(root: &mut Root, tx: &Tx<'_, Large>, by: u64) -> Result<()> {
    for i in 0..root.numbers.len() {
        root.numbers.write(tx, i)?.iter_mut().for_each(|word| *word += by);
    }
    Ok(())
}

fn plant(root: &mut Root, tx: &Tx<'_, Large>, values: u64) -> Result<()> {
    let child = PBox::new(tx, Tree { values: [values; 20], child: None })?;
    let tree = PBox::new(tx, Tree { values: [values + 1; 20], child: Some(child) })?;
    root.trees.push(tx, Some(tree))
}

fn checked(heap: &mut Heap<Large>, what: &str) {
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{what}: {found:?}");
}

fn make(numbers: usize) -> impl FnMut(&Tx<'_, Large>) -> Result<Root> + Send {
    move |tx| {
        let numbers = PVec::from_fn(tx, numbers, |i| Ok([i as u64; 8]))?;
        Ok(Root { numbers, ..Root::default() })
    }
}

/// Runs steps one after the other with power cuts everywhere, in recovery too.
fn cut_everywhere(steps: &[Step]) {
    let _turn = turn();
    with_and_without_checksums(|| cut(steps));
}

fn cut(steps: &[Step]) {
    let simulated = Simulated::new(Delays::PCM);
    let heap =
        Heap::<Large>::create_in(file(), Path::new("simulated"), options(&simulated), make(300)).unwrap();
    let (mut states, mut points) = (vec![state(&heap)], Vec::new());
    for &step in steps {
        simulated.record();
        apply(&heap, step).unwrap();
        let acknowledged = states.len() - 1;
        points.extend(simulated.take_points().into_iter().map(|point| (acknowledged, point)));
        states.push(state(&heap));
    }
    // What is left to be written home.
    simulated.record();
    heap.checkpoint().unwrap();
    points.extend(simulated.take_points().into_iter().map(|point| (steps.len(), point)));
    drop(heap);

    let mut seed = 88_172_645_463_325_252;
    let (mut before, mut after) = (0, 0);
    let mut verify = |image: &[u8], acknowledged: usize, what: &str| {
        let image_file = file();
        image_file.write_all_at(image, 0).unwrap();
        let simulated = Simulated::new(Delays::PCM);
        simulated.record();
        let heap = Heap::<Large>::open_in(image_file, Path::new("image"), options(&simulated));
        let mut heap = heap.unwrap_or_else(|error| panic!("{what}: {error}"));
        let recovery = simulated.take_points();
        let now = state(&heap);
        checked(&mut heap, what);
        let found =
            states.iter().position(|state| *state == now).unwrap_or_else(|| panic!("{what}: {now:?}"));
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{what}: state {found} after {acknowledged} transactions"
        );
        (before, after) =
            (before + u32::from(found == acknowledged), after + u32::from(found > acknowledged));
        // It takes another large one, and gives everything back.
        apply(&heap, |root, tx| {
            change_numbers(root, tx, 1000)?;
            plant(root, tx, 7)
        })
        .unwrap();
        apply(&heap, |root, _| {
            (root.numbers, root.trees, root.text) = Default::default();
            Ok(())
        })
        .unwrap();
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty() && found.blocks == 1, "{what}, emptied: {found:?}");
        recovery
    };
    for (number, (acknowledged, point)) in points.iter().enumerate() {
        for (i, image) in images(point, &mut seed, 8, 4).iter().enumerate() {
            let recovery = verify(image, *acknowledged, &format!("point {number}, image {i}"));
            // Again while it recovers, for a few of them.
            if i % 4 == 1 {
                for (step, point) in recovery.iter().enumerate() {
                    let picked = point.image(|line| draw(&mut seed) as usize % point.choices()[line]);
                    verify(&picked, *acknowledged, &format!("point {number}, image {i}, recovery {step}"));
                }
            }
        }
    }
    assert!(before > 10 && after > 10, "{before} cuts before a commit and {after} after one");
}

#[test]
fn a_large_transaction_is_whole_or_not_there() {
    cut_everywhere(&[
        |root, _| {
            root.small = 1;
            Ok(())
        },
        |root, tx| {
            change_numbers(root, tx, 10)?;
            (0..8).try_for_each(|i| plant(root, tx, i * 100))?;
            root.text.set(tx, &"some text ".repeat(500))
        },
        // Its pages are the last one's, after the end of the epoch.
        |root, tx| {
            change_numbers(root, tx, 20)?;
            root.trees = PVec::new();
            root.numbers.reserve(tx, 500)
        },
        |root, _| {
            root.small = 2;
            Ok(())
        },
    ]);
}

#[test]
fn an_old_value_never_comes_back_over_a_new_one() {
    // Small, large and small changes of the same words, replayed in their order.
    cut_everywhere(&[
        |root, tx| change_numbers(root, tx, 1),
        |root, tx| {
            root.numbers.write(tx, 7)?.fill(4);
            Ok(())
        },
        |root, tx| change_numbers(root, tx, 1),
        |root, tx| {
            root.numbers.write(tx, 7)?.fill(3);
            Ok(())
        },
    ]);
}

/// The exact price: the record's lines in its pages, one in the log, one fence.
#[test]
fn a_large_transaction_waits_once() {
    let _turn = turn();
    let simulated = Simulated::new(Delays::PCM);
    let heap =
        Heap::<Large>::create_in(file(), Path::new("simulated"), options(&simulated), make(300)).unwrap();
    let before = simulated.counts();
    apply(&heap, |root, tx| change_numbers(root, tx, 1 << 32)).unwrap();
    let after = simulated.counts();
    // 3 words, and 9 for each element.
    let lines = (3_u64 + 300 * 9).div_ceil(8) + 1;
    assert_eq!((after.fences - before.fences, after.streamed_lines - before.streamed_lines), (1, lines));
}

/// What a torn record can and cannot be told from.
#[test]
fn a_damaged_large_record_is_torn_if_it_is_the_last_and_damage_if_not() {
    let _turn = turn();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let options = || Options { bytes_max: 4 << 20, logs: 1, log_bytes: 16 << 10, ..Options::default() };
    let found = |is_last: bool| {
        let _ = std::fs::remove_file(&path);
        let heap = Heap::create(&path, options(), make(300)).unwrap();
        heap.checkpoint().unwrap();
        apply(&heap, |root, tx| change_numbers(root, tx, 0xab << 40)).unwrap();
        if !is_last {
            apply(&heap, |root, _| {
                root.small = 1;
                Ok(())
            })
            .unwrap();
        }
        let mut image = std::fs::read(&path).unwrap();
        drop(heap);
        // The new elements are at home and in the record, whose pages are behind theirs.
        let element = [((0xab_u64 << 40) + 299).to_le_bytes(); 8].concat();
        let at = image.windows(64).rposition(|bytes| bytes == element).unwrap();
        image[at + 20] ^= 1;
        let image_file = file();
        image_file.write_all_at(&image, 0).unwrap();
        Heap::<Large>::open_in(image_file, Path::new("damaged"), options()).map(|heap| state(&heap))
    };
    // Home has it, but nobody knows: a torn record is none. On real memory its changes are not at home yet.
    assert!(found(true).is_ok_and(|(numbers, ..)| numbers.len() == 300));
    let found = found(false);
    assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
}

/// Set in a program that runs one test alone.
const ALONE: &str = "NVLAB_NVHEAP_ALONE";

/// Memory of this process that is no file's.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn one_of_100_mb_works_with_default_options_and_is_replayed() {
    let _turn = turn();
    if std::env::var_os(ALONE).is_none() {
        // The memory of other tests does not count.
        let name = "large::one_of_100_mb_works_with_default_options_and_is_replayed";
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let status = program.args(["--exact", name, "--nocapture"]).env(ALONE, "1").status().unwrap();
        return assert!(status.success(), "{status}");
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let (path, copy) = (folder.path().join("heap"), folder.path().join("copy"));
    const ELEMENTS: usize = 100 * 1000 * 1000 / 64;
    let heap = Heap::create(&path, Options::default(), make(ELEMENTS)).unwrap();
    let before = anonymous_bytes();
    apply(&heap, |root, tx| change_numbers(root, tx, 5)).unwrap();
    let after = anonymous_bytes();
    // It needed some 400 MB; the C library keeps up to 64 MiB of what is returned to it.
    assert!(after < before + (72 << 20), "{before} B of memory before it and {after} B after it");
    apply(&heap, |root, _| {
        root.small = 1;
        Ok(())
    })
    .unwrap();
    std::fs::copy(&path, &copy).unwrap();
    drop(heap);
    // What is at home is not looked at: the record has to bring it there.
    let mut heap = Heap::<Large>::open(&copy, Options::default()).unwrap();
    assert!(heap.stat().replayed >= 2, "{:?}", heap.stat());
    checked(&mut heap, "100 MB");
    let root = heap.root().unwrap();
    let sum = |heap: &Heap<Large>| {
        let sum = heap.transaction(|tx| {
            let root = root.read(tx)?;
            (0..ELEMENTS).step_by(1000).map(|i| Ok(root.numbers.read(tx, i)?[7])).sum::<Result<u64>>()
        });
        sum.unwrap()
    };
    let expected: u64 = (0..ELEMENTS as u64).step_by(1000).map(|i| i + 5).sum();
    assert_eq!(sum(&heap), expected);
    // Again and again it needs the same room.
    let bytes: Vec<u64> = (0..3)
        .map(|_| {
            apply(&heap, |root, tx| change_numbers(root, tx, 1)).unwrap();
            heap.stat().bytes
        })
        .collect();
    assert_eq!(sum(&heap), expected + 3 * ELEMENTS.div_ceil(1000) as u64);
    assert_eq!(bytes[1], bytes[2], "{bytes:?}");
}

#[test]
fn a_large_transaction_without_room_changes_nothing() {
    let _turn = turn();
    let options = Options { bytes_max: 1 << 20, logs: 1, log_bytes: 16 << 10, ..Options::default() };
    let mut heap = Heap::create_in(file(), Path::new("full"), options, make(8000)).unwrap();
    let before = state(&heap);
    for _ in 0..3 {
        let full = apply(&heap, |root, tx| {
            plant(root, tx, 5)?;
            change_numbers(root, tx, 1)
        });
        assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
        assert!(state(&heap) == before);
        checked(&mut heap, "full");
    }
    // What fits is done.
    apply(&heap, |root, tx| {
        plant(root, tx, 5)?;
        (0..1000).try_for_each(|i| {
            root.numbers.write(tx, i)?[0] += 0;
            root.numbers.write(tx, i)?.fill(9);
            Ok(())
        })
    })
    .unwrap();
    checked(&mut heap, "used");
    assert_eq!(state(&heap).0[..1000], [9; 1000]);
}

#[test]
fn large_and_small_ones_run_side_by_side() {
    let _turn = turn();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = Options { logs: 4, log_bytes: 16 << 10, ..Options::default() };
    const ROUNDS: u64 = 300;
    let gate = std::sync::Barrier::new(3);
    let mut heap = Heap::create(folder.path().join("heap"), options, make(1200)).unwrap();
    let root = heap.root().unwrap();
    std::thread::scope(|scope| {
        // Each changes a third of the elements at once; the last one single elements everywhere.
        for third in 0..3 {
            let (heap, root, gate) = (&heap, &root, &gate);
            scope.spawn(move || {
                gate.wait();
                for round in 0..ROUNDS {
                    let changed = heap.transaction(|tx| {
                        let root = root.read(tx)?;
                        let range = if third < 2 { third * 400..third * 400 + 400 } else { 0..1200 };
                        for i in range.skip(round as usize % 16).step_by(if third < 2 { 1 } else { 397 }) {
                            root.numbers.write(tx, i)?.iter_mut().for_each(|word| *word += 1);
                        }
                        Ok(())
                    });
                    changed.unwrap();
                }
            });
        }
    });
    drop(root);
    checked(&mut heap, "threads");
    let found: u64 = state(&heap).0.iter().sum();
    let each = |third: usize, round: usize| match third {
        2 => (0..1200).skip(round % 16).step_by(397).count() as u64,
        _ => 400 - (round % 16) as u64,
    };
    let added: u64 = (0..ROUNDS as usize).flat_map(|round| [0, 1, 2].map(|third| each(third, round))).sum();
    assert_eq!(found, (0..1200).sum::<u64>() + added);
}
