//! Real programs in a served window: an unmodified C program under eviction, killed with and without its server; corners
//! of mapping; callers that mean no good.

use crate::common::{Folder, options, permitted};
use nvlab_serve::{Found, ServeError, WindowServer};
use nvlab_units::Rng;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PAGES: u64 = 1024;
const RESIDENT: u64 = PAGES / 4;
/// 1 to this: so many keys has the C program's table.
const KEYS: u64 = PAGES * crate::common::PAGE / 16 / 2;
/// Where a server says how its program ended, in the test's folder.
const ENDED: &str = "ended";

fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn run(server: &WindowServer, program: &Path, arguments: &[&OsStr]) -> std::process::ExitStatus {
    let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
    server.run(program.as_os_str(), &arguments).unwrap()
}

fn window(server: &WindowServer) -> OsString {
    let [window, ..] = server.environment();
    window.1
}

/// Not a test of its own: the server of `kills_of_program_and_server_lose_nothing_acknowledged`, in a process that can be killed.
#[test]
fn served_by_another_process() {
    let Ok(arguments) = std::env::var("NVLAB_TEST_SERVER") else { return };
    let [state, program, ack, first]: [&str; 4] =
        arguments.split('\n').collect::<Vec<_>>().try_into().expect("four arguments");
    let give_up = Instant::now() + Duration::from_secs(20);
    let server = loop {
        match WindowServer::open(&options(PAGES, RESIDENT, Some(Path::new(state)))) {
            Ok(server) => break server,
            // The program of a server that was killed is about to end.
            Err(ServeError::Busy(_)) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(error) => panic!("{error}"),
        }
    };
    let file = window(&server);
    let status = run(&server, Path::new(program), &["update".as_ref(), &file, ack.as_ref(), first.as_ref()]);
    std::fs::write(ENDED, status.to_string()).unwrap();
    server.close().unwrap();
}

fn start(folder: &Folder, state: &Path, program: &Path, ack: &Path, first: u64) -> Child {
    for gone in [ack, &folder.0.join(ENDED)] {
        let _ = std::fs::remove_file(gone);
    }
    let arguments = [state, program, ack].map(|path| path.to_str().unwrap().to_string());
    let arguments = [arguments.join("\n"), first.to_string()].join("\n");
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "program::served_by_another_process", "--nocapture"])
        .env("NVLAB_TEST_SERVER", arguments)
        .current_dir(&folder.0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The last operation acknowledged, and who acknowledged it.
fn acknowledged(ack: &Path) -> Option<(u64, i32)> {
    let bytes = std::fs::read(ack).ok()?;
    let word = |i: usize| Some(u64::from_ne_bytes(bytes.get(i * 8..i * 8 + 8)?.try_into().unwrap()));
    Some((word(0)?, word(1)? as i32))
}

/// Waits until the program has acknowledged so many operations and says which process it is. A program that ended
/// instead is said to have, and how.
fn at_work(server: &mut Child, folder: &Folder, ack: &Path, operations: u64) -> i32 {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        match acknowledged(ack) {
            Some((n, process)) if n >= operations => return process,
            _ => lives(server, folder),
        }
        assert!(Instant::now() < give_up, "the program does nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Nobody has ended yet: the program runs until it is killed.
fn lives(server: &mut Child, folder: &Folder) {
    if let Some(status) = server.try_wait().unwrap() {
        let program = std::fs::read_to_string(folder.0.join(ENDED)).unwrap_or_else(|_| "nothing".into());
        panic!("the server ended ({status}), and the program before it ({program})");
    }
}

fn kill(process: i32) {
    // SAFETY: a signal to a process that this test started.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Opens the window again and reads the whole table with the C program.
fn dump(folder: &Folder, state: &Path, program: &Path, founds: &mut Vec<Found>) -> BTreeMap<u64, u64> {
    let give_up = Instant::now() + Duration::from_secs(20);
    let server = loop {
        match WindowServer::open(&options(PAGES, RESIDENT, Some(state))) {
            Ok(server) => break server,
            Err(ServeError::Busy(_)) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(1))
            }
            Err(error) => panic!("{error}"),
        }
    };
    founds.push(server.found().clone());
    let out = folder.0.join("dump");
    let _ = std::fs::remove_file(&out);
    let file = window(&server);
    let status = run(&server, program, &["dump".as_ref(), &file, out.as_ref()]);
    assert!(status.success(), "the program that reads the table: {status}");
    server.close().unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    bytes.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..]))).collect()
}

/// The table after operations 1 to `last`.
fn advance(model: &mut BTreeMap<u64, u64>, operations: std::ops::RangeInclusive<u64>) {
    for n in operations {
        model.insert(1 + mix(n) % KEYS, n);
    }
}

/// A hash table four times as large as what is resident; the program, the server, or both are killed at random
/// moments, also while the server writes back. Every acknowledged value is found, and nothing that was never stored.
#[test]
fn kills_of_program_and_server_lose_nothing_acknowledged() {
    let folder = Folder::new("killed");
    if permitted(WindowServer::open(&options(PAGES, RESIDENT, None))).is_none() {
        return;
    }
    let (program, state, ack) = (folder.program("hash_table"), folder.0.join("state"), folder.0.join("ack"));
    let (mut model, mut done, mut founds) = (BTreeMap::new(), 0u64, Vec::new());
    // The moments depend on the machine, too; the seed is there to draw others: NVLAB_TEST_SEED=12, 13, ...
    let seed = std::env::var("NVLAB_TEST_SEED").map_or(11, |seed| seed.parse().expect("a number"));
    let mut rng = Rng::stream(seed, "kills");
    for round in 0..16 {
        let mut server = start(&folder, &state, &program, &ack, done + 1);
        let process = at_work(&mut server, &folder, &ack, 0);
        std::thread::sleep(Duration::from_micros(rng.below(400_000)));
        lives(&mut server, &folder);
        match round % 4 {
            0 => kill(server.id() as i32),
            1 => kill(process),
            2 => {
                kill(process);
                // In the middle of writing back, perhaps.
                std::thread::sleep(Duration::from_micros(rng.below(20_000)));
                kill(server.id() as i32);
            }
            _ => {
                kill(server.id() as i32);
                kill(process);
            }
        }
        server.wait().unwrap();
        let found = dump(&folder, &state, &program, &mut founds);
        let (last, _) = acknowledged(&ack).unwrap();
        assert!(last > done, "round {round} did nothing");
        advance(&mut model, done + 1..=last);
        done = last;
        if found != model {
            // The operation after the last acknowledged may have been done in full.
            advance(&mut model, last + 1..=last + 1);
            done = last + 1;
        }
        let differ = model.iter().find(|(key, value)| found.get(key) != Some(value));
        assert!(
            differ.is_none(),
            "round {round}, after {done}: {differ:?}, found {:?}",
            found.get(differ.unwrap().0)
        );
        assert_eq!(found.len(), model.len(), "round {round}: keys that were never stored");
    }
    eprintln!("{done} operations, found {founds:?}");
    assert!(done > 5_000, "only {done} operations in all");
    assert!(founds.contains(&Found::Resident) && founds.contains(&Found::Closed), "{founds:?}");
}

/// A program that is not the server's own child is killed with the server all the same, though it waits for a fault.
#[test]
fn a_grandchild_ends_with_its_server() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("grandchild");
    if permitted(WindowServer::open(&options(PAGES, RESIDENT, None))).is_none() {
        return;
    }
    let program = folder.program("hash_table");
    let (script, ack) = (folder.0.join("script"), folder.0.join("ack"));
    let text = format!("#!/bin/sh\n{} \"$@\" &\nwait $!\n", program.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut server = start(&folder, &folder.0.join("state"), &script, &ack, 1);
    let process = at_work(&mut server, &folder, &ack, 100);
    kill(server.id() as i32);
    server.wait().unwrap();
    let give_up = Instant::now() + Duration::from_secs(20);
    // SAFETY: signal 0 only asks whether the process is there.
    while unsafe { libc::kill(process, 0) } == 0 {
        // Ended, and not yet waited for by whoever adopted it.
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        if status.contains(") Z ") {
            break;
        }
        assert!(Instant::now() < give_up, "process {process} lives on: {status}");
        std::thread::sleep(Duration::from_millis(1));
    }
    // It held the state; now it is free, and what was stored is there.
    let found = dump(&folder, &folder.0.join("state"), &program, &mut Vec::new());
    let (last, _) = acknowledged(&ack).unwrap();
    let value = found.get(&(1 + mix(last) % KEYS));
    assert!(
        value.is_some_and(|&value| value == last || value == last + 1),
        "{value:?} where {last} was stored"
    );
}

/// No program is killed by what the kernel says late of the handshake: 2 in 100,000 mappings were, when the socket of the
/// handshake was also the lifeline. NVLAB_TEST_MAPPINGS=1000000 makes so many. The server forgets those that were unmapped, also where
/// the next one has the same addresses: each mapping took 2 us more for each before it.
#[test]
fn a_mapping_does_not_end_its_program() {
    let folder = Folder::new("mappings");
    let Some(server) = permitted(WindowServer::open(&options(PAGES, RESIDENT, None))) else { return };
    let count = std::env::var("NVLAB_TEST_MAPPINGS").unwrap_or_else(|_| "2000".into());
    let status = run(&server, &folder.program("mappings"), &[count.as_ref()]);
    assert!(status.success(), "among {count} mappings: {status}");
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = links.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    let watched = links.filter(|link| link.as_os_str() == "anon_inode:[userfaultfd]").count();
    assert!(watched < 100, "{watched} mappings are watched");
    server.close().unwrap();
}

/// What comes late on the socket of the handshake ends nobody; a lifeline that is closed does.
#[test]
fn a_lifeline_and_nothing_else_ends_the_program() {
    let folder = Folder::new("lifeline");
    let Some(server) = permitted(WindowServer::open(&options(PAGES, RESIDENT, None))) else { return };
    let program = folder.program("lifeline");
    let late = run(&server, &program, &["late".as_ref()]);
    assert!(late.success(), "a notification of the handshake came late: {late}");
    let closed = run(&server, &program, &["close".as_ref()]);
    assert_eq!(closed.signal(), Some(libc::SIGKILL), "the lifeline was closed: {closed}");
    server.close().unwrap();
}

#[test]
fn a_window_is_mapped_in_every_allowed_way() {
    let folder = Folder::new("corners");
    let Some(server) = permitted(WindowServer::open(&options(PAGES, RESIDENT, None))) else { return };
    let status = run(&server, &folder.program("corners"), &[]);
    assert!(status.success(), "{status}");
    let stats = server.close().unwrap();
    assert!(stats.evictions > PAGES && stats.minor > 0, "{stats:?}");
}

/// Whatever is said at the door, the server goes on serving, and no descriptor stays behind.
#[test]
fn callers_that_mean_no_good() {
    let folder = Folder::new("hostile");
    let Some(server) = permitted(WindowServer::open(&options(PAGES, RESIDENT, None))) else { return };
    let (hostile, corners) = (folder.program("hostile"), folder.program("corners"));
    let status = run(&server, &hostile, &[]);
    assert!(status.success(), "{status}");
    assert!(run(&server, &corners, &[]).success());
    server.close().unwrap();
}
