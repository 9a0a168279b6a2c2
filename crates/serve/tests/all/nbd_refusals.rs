//! What the NBD server refuses: it says so with the reason, and is kept busy by none of it.

use crate::common::{Folder, design};
use crate::nbd_client::{Client, connect};
use nvlab_serve::TimeMode;
use nvlab_serve::nbd::wire::{self, command, error, flag, option, reply};
use nvlab_serve::nbd::{Address, Export, Log, NbdServer, Options};
use nvlab_serve::served::{Drive, DriveOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What was logged.
type Lines = Arc<Mutex<Vec<String>>>;

struct Running {
    lines: Lines,
    path: PathBuf,
    end: u64,
    server: NbdServer,
    _folder: Folder,
}

fn serve(name: &str) -> Running {
    let folder = Folder::new(&format!("nbd-refusals-{name}"));
    let options = DriveOptions { time: TimeMode::Fast, seed: 3, ..DriveOptions::default() };
    let design = design("bench-4g", &["media.nand.blocks=48", "ftl.spare=30%"]);
    let drive = Arc::new(Drive::open("bench-4g", &design, &options).unwrap());
    let (path, end, lines) = (folder.0.join("socket"), drive.capacity_bytes(), Lines::default());
    let logged = Arc::clone(&lines);
    let log = Log::to(move |line| logged.lock().unwrap().push(line.to_string()));
    let options = Options { log, ..Options::default() };
    let exports = vec![Export { name: "one".into(), drive }];
    let server = NbdServer::start_with(&Address::Unix(path.clone()), exports, options).unwrap();
    Running { lines, path, end, server, _folder: folder }
}

#[test]
fn each_refusal_is_logged_with_its_reason() {
    let served = serve("reasons");
    let mut client = connect(&served.path, true);
    client.request(command::READ, 0, 0, 4096);
    client.data(0, 4096).unwrap();
    assert!(served.lines.lock().unwrap().is_empty(), "nothing is wrong so far");
    for (command, flags, offset, bytes, said) in [
        (
            command::READ,
            0,
            served.end - 1,
            2,
            "a read of 2 B at {end-1} was refused: it extends past the end",
        ),
        (command::READ, 0, 0, 0, "a read of 0 B at 0 was refused: reads and writes need 1 to 33554432 B"),
        (command::TRIM, flag::NO_HOLE, 0, 512, "a trim of 512 B at 0 was refused: invalid flags 0x2"),
        (
            command::BLOCK_STATUS,
            0,
            0,
            512,
            "a block status of 512 B at 0 was refused: block status was not negotiated",
        ),
        (command::FLUSH, 0, 5, 0, "a flush of 0 B at 5 was refused: "),
        (77, 0, 1, 512, "command 77 of 512 B at 1 was refused: unknown command"),
    ] {
        client.request(command, flags, offset, bytes);
        assert_eq!(client.done(), Err(error::INVALID));
        let said = said.replace("{end-1}", &(served.end - 1).to_string());
        let line = served.lines.lock().unwrap().pop().unwrap_or_else(|| panic!("silent about {said}"));
        assert!(line.starts_with(&format!("nbd: {said}")), "{line}");
    }
    client.write(served.end, &[7; 512], 0);
    assert_eq!(client.done(), Err(error::NO_SPACE));
    let line = served.lines.lock().unwrap().pop().unwrap();
    assert!(line.contains("a write of 512 B") && line.contains("past the end"), "{line}");
    let mut client = Client::connect(&served.path);
    assert_eq!(client.go("none"), Err(reply::ERR_UNKNOWN));
    // Asking is no mistake.
    client.option(99, b"");
    assert_eq!(client.option_reply(99).0, reply::ERR_UNSUP);
    assert_eq!(*served.lines.lock().unwrap(), ["nbd: option 7 was refused: no such export"]);
}

/// However many there are, and however many connections they come by.
#[test]
fn a_flood_of_refusals_is_no_flood_of_lines() {
    let served = serve("flood");
    for _ in 0..4 {
        let mut client = connect(&served.path, false);
        for _ in 0..500 {
            client.request(77, 0, 0, 512);
            assert_eq!(client.done(), Err(error::INVALID));
        }
    }
    let lines = served.lines.lock().unwrap().len();
    assert!((10..200).contains(&lines), "{lines} lines");
}

/// What is announced and refused is read past, but not without end.
#[test]
fn a_refused_write_of_4_gib_is_not_read_past() {
    let served = serve("skip");
    for structured in [false, true] {
        let mut client = connect(&served.path, structured);
        client.request(command::WRITE, 0, 0, u32::MAX);
        client.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut taken = 0;
        client.stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        while taken < 256 << 20 && client.stream.write_all(&[0; 1 << 20]).is_ok() {
            taken += 1 << 20;
        }
        assert!(taken < 16 << 20, "{taken} B were taken");
        assert_eq!(client.done(), Err(error::INVALID), "it is told why");
    }
    let mut client = Client::connect(&served.path);
    client.option(option::LIST, b"");
    assert_eq!(client.option_reply(option::LIST).0, reply::SERVER);
    let mut server = served.server;
    server.stop();
    let lines = served.lines.lock().unwrap();
    let left = "nbd: a connection ended: the data of a write of 4294967295 B at 0 is too long to skip";
    assert_eq!(lines.iter().filter(|line| *line == left).count(), 2, "{lines:?}");
}

/// As much as a client may have taken for allowed is.
#[test]
fn the_data_of_other_refused_writes_are_read_past() {
    let served = serve("past");
    let mut client = connect(&served.path, true);
    for bytes in [wire::PAYLOAD_MAX as usize + 1, 2 * wire::PAYLOAD_MAX as usize] {
        client.write(0, &vec![1; bytes], 0);
        assert_eq!(client.done(), Err(error::INVALID));
    }
    client.request(command::READ, 0, 0, 4096);
    assert_eq!(client.data(0, 4096), Ok(vec![0; 4096]));
}
