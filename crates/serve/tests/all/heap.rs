//! A heap of persistent objects in a served window, with a tenth of it resident: the program, the server, or both are killed at
//! random moments. Everything acknowledged is there afterwards, nothing else is, and every block and count agrees.

use crate::common::{Folder, options, permitted};
use nvlab_nvheap::{Brand, Error, Heap, Options, PBTreeMap, PVec, Persist, Persistence};
use nvlab_serve::{Found, ServeError, WindowServer};
use nvlab_units::Rng;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PAGES: u64 = 2560;
const RESIDENT: u64 = PAGES / 10;
/// Half of them are there after a while, however fast the machine: some 6 MB, as an element of a vector takes a word.
const KEYS: u64 = 8_000;
const SERVER: &str = "NVLAB_TEST_HEAP_SERVER";
/// Bytes of each value on its own, so that the heap does not fit in what is resident.
const NOTE: usize = 160;

struct Windowed;
impl Brand for Windowed {
    type Root = Root;
}

#[derive(Persist)]
#[persist(heap = Windowed)]
#[repr(C)]
struct Root {
    done: u64,
    values: PBTreeMap<u64, PVec<u8, Windowed>, Windowed>,
}

fn heap(persistence: Persistence) -> Result<Heap<Windowed>, Error> {
    let window = std::env::var_os("NVLAB_WINDOW").expect("a program of a window");
    let options = Options { persistence, logs: 2, log_bytes: 128 << 10, ..Options::default() };
    Heap::open_or_create(window, options, |tx| Ok(Root { done: 0, values: PBTreeMap::new(tx)? }))
}

/// Operation `n` inserts a key, or removes it if it is there.
fn key(n: u64) -> u64 {
    Rng::stream(n, "key").below(KEYS)
}

/// The program in the window: `work` until it is killed, or `check` once.
fn program(what: &str, ack: &Path) {
    if what == "check" {
        let refused = heap(Persistence::Sync).unwrap_err();
        assert!(matches!(&refused, Error::NotPersistent(why) if why.contains("msync")), "{refused}");
    }
    let mut heap = heap(Persistence::Detect).unwrap();
    let root = heap.root().unwrap();
    let ack = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(ack).unwrap();
    if what == "check" {
        let mut words = [0; 8];
        ack.read_exact_at(&mut words, 0).unwrap();
        let last = u64::from_ne_bytes(words);
        let done = heap.transaction(|tx| Ok(root.read(tx)?.done)).unwrap();
        assert!(done == last || done == last + 1, "{done} operations are there, {last} were acknowledged");
        let mut model = BTreeMap::new();
        for n in 1..=done {
            if model.remove(&key(n)).is_none() {
                model.insert(key(n), n);
            }
        }
        let found = heap.transaction(|tx| {
            let root = root.read(tx)?;
            let entries = root.values.iter(tx).map(|entry| {
                let (key, value) = entry?;
                let bytes =
                    value.iter(tx).map(|byte| Ok(*byte?)).collect::<nvlab_nvheap::Result<Vec<u8>>>()?;
                assert!(bytes.len() == NOTE && bytes.chunks(8).all(|word| word == &bytes[..8]));
                Ok((*key, u64::from_ne_bytes(bytes[..8].try_into().unwrap())))
            });
            entries.collect::<nvlab_nvheap::Result<BTreeMap<u64, u64>>>()
        });
        assert!(found.unwrap() == model, "other values than those of {done} operations");
        let found = heap.check().unwrap();
        assert!(found.problems.is_empty() && found.unreachable == 0, "{found:?}");
        return;
    }
    loop {
        let done = heap.transaction(|tx| {
            let mut root = root.write(tx)?;
            root.done += 1;
            let (done, key) = (root.done, key(root.done));
            if root.values.remove(tx, &key)?.is_none() {
                let bytes = done.to_ne_bytes();
                let value = PVec::from_fn(tx, NOTE, |i| Ok(bytes[i % 8]))?;
                root.values.insert(tx, key, value)?;
            }
            Ok(done)
        });
        let words = [done.unwrap(), u64::from(std::process::id())];
        ack.write_all_at(&words.map(u64::to_ne_bytes).concat(), 0).unwrap();
    }
}

fn open(state: &Path) -> WindowServer {
    let give_up = Instant::now() + Duration::from_secs(20);
    loop {
        match WindowServer::open(&options(PAGES, RESIDENT, Some(state))) {
            Ok(server) => return server,
            // The program of a server that was killed is about to end.
            Err(ServeError::Busy(_)) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Not a test of its own: the server and its program, each a process that can be killed.
#[test]
fn program_with_a_heap_in_a_window() {
    let Ok(arguments) = std::env::var(SERVER) else { return };
    let arguments: Vec<&str> = arguments.split('\n').collect();
    let [state, ack, what] = arguments[..] else { panic!("three arguments") };
    if std::env::var_os("NVLAB_WINDOW").is_some() {
        return program(what, Path::new(ack));
    }
    let server = open(Path::new(state));
    let arguments = ["--exact", "heap::program_with_a_heap_in_a_window", "--nocapture"].map(Into::into);
    let status = server.run(std::env::current_exe().unwrap().as_os_str(), &arguments).unwrap();
    let found = server.found().clone();
    server.close().unwrap();
    if what == "check" {
        std::fs::write(Path::new(ack).with_extension("found"), format!("{found:?}")).unwrap();
    }
    assert!(status.success() || what == "work", "the program: {status}");
}

fn start(state: &Path, ack: &Path, what: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "heap::program_with_a_heap_in_a_window", "--nocapture"])
        .env(SERVER, [state.to_str().unwrap(), ack.to_str().unwrap(), what].join("\n"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The last operation that was acknowledged, and by which process.
fn acknowledged(ack: &Path) -> [u64; 2] {
    let bytes = std::fs::read(ack).unwrap_or_default();
    let word =
        |i: usize| bytes.get(i * 8..i * 8 + 8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    [word(0).unwrap_or(0), word(1).unwrap_or(0)]
}

fn kill(process: u64) {
    // SAFETY: a signal to a process that this test started.
    unsafe { libc::kill(process as i32, libc::SIGKILL) };
}

#[test]
fn a_killed_heap_in_a_window_loses_nothing_acknowledged() {
    let folder = Folder::new("heap");
    if permitted(WindowServer::open(&options(PAGES, RESIDENT, None))).is_none() {
        return;
    }
    let [state, ack]: [PathBuf; 2] = ["state", "ack"].map(|name| folder.0.join(name));
    let (mut rng, mut done, mut resident) = (Rng::stream(19, "kills"), 0, 0);
    for round in 0..12 {
        let mut server = start(&state, &ack, "work");
        let give_up = Instant::now() + Duration::from_secs(30);
        while acknowledged(&ack)[0] < done + 10 {
            assert!(server.try_wait().unwrap().is_none() && Instant::now() < give_up, "round {round}");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(rng.below(300_000)));
        let program = acknowledged(&ack)[1];
        match round % 3 {
            0 => kill(u64::from(server.id())),
            1 => kill(program),
            _ => {
                kill(program);
                // While the server writes back, perhaps.
                std::thread::sleep(Duration::from_micros(rng.below(20_000)));
                kill(u64::from(server.id()));
            }
        }
        server.wait().unwrap();
        let status = start(&state, &ack, "check").wait().unwrap();
        assert!(status.success(), "round {round}, {:?}: {status}", acknowledged(&ack));
        let found = std::fs::read_to_string(ack.with_extension("found")).unwrap();
        resident += u32::from(found == format!("{:?}", Found::Resident));
        done = acknowledged(&ack)[0] + 1;
    }
    eprintln!("{done} operations; the window was recovered {resident} times");
    assert!(resident >= 4, "the window was recovered {resident} times only");
}
