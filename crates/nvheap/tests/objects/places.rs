//! Heaps where nothing grows: block devices and memory windows, as far as they can be tried without privileges; and creation
//! that is interrupted.

use nvlab_nvheap::{Brand, Error, Heap, Options, PVec, Persist, Persistence, Result, Simulated};
use std::fs::File;
use std::path::Path;

struct Placed;
impl Brand for Placed {
    type Root = Root;
}

#[derive(Persist, Default)]
#[persist(heap = Placed)]
#[repr(C)]
struct Root {
    numbers: PVec<u64, Placed>,
}

/// One brand: tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn options() -> Options {
    Options { bytes_max: 4 << 20, logs: 2, log_bytes: 64 << 10, ..Options::default() }
}

fn push(heap: &Heap<Placed>, number: u64) -> Result<Vec<u64>> {
    let root = heap.root()?;
    heap.transaction(|tx| {
        root.write(tx)?.numbers.push(tx, number)?;
        root.read(tx)?.numbers.iter(tx).map(|number| Ok(*number?)).collect()
    })
}

#[test]
fn a_sealed_file_is_mapped_only_by_its_server() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let sealed = || {
        let file = nvlab_os::file::anonymous(c"window", true).unwrap();
        file.set_len(4 << 20).unwrap();
        nvlab_os::file::seal(&file).unwrap();
        file
    };
    let created =
        Heap::<Placed>::create_in(sealed(), Path::new("window"), options(), |_| Ok(Root::default()));
    let error = created.unwrap_err();
    assert!(matches!(&error, Error::NotPersistent(why) if why.contains("memory window")), "{error}");
    let error = Heap::<Placed>::open_in(sealed(), Path::new("window"), options()).unwrap_err();
    assert!(matches!(&error, Error::NotPersistent(why) if why.contains("memory window")), "{error}");
}

#[test]
fn what_is_no_file_is_refused() {
    let created = Heap::<Placed>::create_in(
        File::options().read(true).write(true).open("/dev/null").unwrap(),
        Path::new("/dev/null"),
        options(),
        |_| Ok(Root::default()),
    );
    let error = created.unwrap_err().to_string();
    assert!(error.contains("neither a file nor a block device"), "{error}");
}

#[test]
fn what_is_there_is_not_overwritten() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("precious");
    std::fs::write(&path, "something else").unwrap();
    let root = |_: &nvlab_nvheap::Tx<'_, Placed>| Ok(Root::default());
    assert!(matches!(Heap::create(&path, options(), root), Err(Error::Io { .. })));
    let file = File::options().read(true).write(true).open(&path).unwrap();
    assert!(matches!(Heap::create_in(file, &path, options(), root), Err(Error::Format { .. })));
    assert!(matches!(Heap::<Placed>::open_or_create(&path, options(), root), Err(Error::Format { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"something else");
}

/// The power fails at every moment of a creation: afterwards there is a whole heap, or none and one can be created.
#[test]
fn an_interrupted_creation_begins_again() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("heap");
    let simulated = Simulated::new(nvlab_nvheap::Delays::PCM);
    let persistence = Persistence::Simulated(simulated.clone());
    simulated.record();
    let heap = Heap::<Placed>::create(&path, Options { persistence, ..options() }, |_| Ok(Root::default()));
    drop(heap.unwrap());
    let points = simulated.take_points();
    let (mut whole, mut unfinished) = (0, 0);
    for image in points.iter().flat_map(|point| [point.image(|_| 0), point.image(|_| 1)]) {
        // What is all zero is not told from something else's sparse file.
        if image[..8192].iter().all(|&byte| byte == 0) {
            continue;
        }
        std::fs::write(&path, &image).unwrap();
        match Heap::<Placed>::open(&path, options()) {
            Ok(heap) => {
                whole += 1;
                assert_eq!(push(&heap, 7).unwrap(), [7]);
            }
            Err(_) => unfinished += 1,
        }
        let heap = Heap::<Placed>::open_or_create(&path, options(), |_| Ok(Root::default())).unwrap();
        let found = push(&heap, 8).unwrap();
        assert!(found == [7, 8] || found == [8], "{found:?}");
    }
    assert!(whole > 0 && unfinished > 5, "{whole} whole, {unfinished} unfinished");
}

/// On a block device (as root, where the kernel has loop devices): its size is the heap's, changes are synced, flushes
/// are refused, and what is there is not overwritten.
#[test]
fn a_block_device_holds_a_heap() {
    let _turn = TURN.lock().unwrap_or_else(|error| error.into_inner());
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = folder.path().join("image");
    File::create(&image).unwrap().set_len(2 << 20).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_string())
    };
    let Some(device) = run("losetup", &["--find", "--show", image.to_str().unwrap()]) else {
        return eprintln!("SKIPPED: no loop device can be had");
    };
    let used = std::panic::catch_unwind(|| on_device(Path::new(&device)));
    run("losetup", &["--detach", &device]).expect("the loop device is given back");
    used.unwrap();
}

fn on_device(device: &Path) {
    let link = device.with_file_name(format!("nvheap-link-{}", std::process::id()));
    let root = |_: &nvlab_nvheap::Tx<'_, Placed>| Ok(Root::default());
    let heap = Heap::<Placed>::create(device, options(), root).unwrap();
    // As large as the device, but for what is left of a group of four pages.
    let bytes = heap.stat().bytes;
    assert!(bytes <= 2 << 20 && bytes > (2 << 20) - (5 << 16), "{bytes} B");
    for number in 0..2000 {
        push(&heap, number).unwrap();
    }
    let full = heap.transaction(|tx| PVec::<u64, Placed>::from_fn(tx, 1 << 20, |i| Ok(i as u64)).map(drop));
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    drop(heap);
    assert!(matches!(Heap::<Placed>::create(device, options(), root), Err(Error::Format { .. })));
    if let Some(flush) = nvlab_os::Flush::detect() {
        let options = Options { persistence: Persistence::Lines(flush), ..options() };
        assert!(matches!(Heap::<Placed>::open(device, options), Err(Error::NotPersistent(_))));
    }
    // By another name, as udev makes them.
    std::os::unix::fs::symlink(device, &link).unwrap();
    let opened = Heap::<Placed>::open(&link, options());
    std::fs::remove_file(&link).unwrap();
    let mut heap = opened.unwrap();
    assert_eq!(push(&heap, 1).unwrap().len(), 2001);
    let found = heap.check().unwrap();
    assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
}

#[test]
fn the_tutorial_is_the_example() {
    let program = include_str!("../../examples/todo.rs").split_once("\n\n").unwrap().1;
    assert!(include_str!("../../../../docs/nvheap.md").contains(&format!("```rust\n{program}```\n")));
}
