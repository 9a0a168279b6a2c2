//! A controller that panics: from then on every door refuses, says so, and leaves the media to the next start.

use crate::common::{Folder, design};
use crate::hooked::{Hooked, What};
use crate::nbd_client::connect;
use nvlab_serve::fuse::FuseMount;
use nvlab_serve::management::{Endpoint, ManagementServer};
use nvlab_serve::nbd::wire::{command, error};
use nvlab_serve::nbd::{Address, Export, NbdServer};
use nvlab_serve::served::{Drive, DriveError, DriveOptions, Start};
use nvlab_serve::{ServeError, TimeMode};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

/// Whoever writes here, or asks whether it is mapped, makes the controller panic.
const TRAP: u64 = 1 << 20;

fn open(time: TimeMode, state: Option<&Path>) -> Drive {
    let options =
        DriveOptions { time, seed: 3, state: state.map(Path::to_path_buf), ..DriveOptions::default() };
    let design = design("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"]);
    Drive::open("mlc", &design, &options).unwrap()
}

fn trapped(time: TimeMode, state: Option<&Path>) -> Arc<Drive> {
    let trap = |what: What, offset: u64| {
        assert!(what == What::Read || offset != TRAP, "the trap at {offset}");
    };
    Arc::new(open(time, state).wrapped(|device| Box::new(Hooked { device, hook: trap })))
}

fn is_lost<T: std::fmt::Debug>(refused: Result<T, DriveError>) {
    match refused {
        Err(DriveError::Lost(why)) => assert!(why.contains("panicked"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn after_a_panic_the_device_is_asked_nothing_and_the_next_start_recovers_it() {
    let folder = Folder::new("failing-state");
    let state = folder.0.join("kept");
    let drive = trapped(TimeMode::Fast, Some(&state));
    let session = drive.session();
    drive.write(session, 0, &[1; 8192], true).unwrap();
    is_lost(drive.write(session, TRAP, &[2; 8192], false));
    let mut found = [0; 8192];
    is_lost(drive.read(session, 0, &mut found));
    is_lost(drive.write(session, 0, &[3; 8192], true));
    is_lost(drive.flush(session));
    is_lost(drive.trim(session, 0, 8192, false));
    is_lost(drive.mapped(session, (0, 8192), |_, _| true));
    is_lost(drive.cut());
    let counts = drive.counts();
    assert!(counts.lost.is_some_and(|why| why.contains("the trap at 1048576")));
    assert!(drive.result().is_none());
    match drive.close() {
        Err(ServeError::Bug(why)) => assert!(why.contains("the trap at 1048576"), "{why}"),
        other => panic!("{other:?}"),
    }
    drop(drive);
    let drive = open(TimeMode::Fast, Some(&state));
    assert_eq!(drive.start(), Start::Killed);
    drive.read(drive.session(), 0, &mut found).unwrap();
    assert_eq!(found, [1; 8192], "flushed before the panic");
    drive.close().unwrap();
}

/// Also where the panic is not in a request that is timed and counted.
#[test]
fn every_connection_is_told_and_none_hangs() {
    for time in [TimeMode::Fast, TimeMode::Real] {
        for looks in [false, true] {
            let folder = Folder::new(&format!("failing-nbd-{time:?}-{looks}"));
            let (drive, path) = (trapped(time, None), folder.0.join("socket"));
            let exports = vec![Export { name: "one".into(), drive: Arc::clone(&drive) }];
            let mut server = NbdServer::start(&Address::Unix(path.clone()), exports).unwrap();
            let (mut one, mut other) = (connect(&path, true), connect(&path, false));
            other.write(0, &[1; 4096], 0);
            other.done().unwrap();
            if looks {
                // Nothing but the device's own panic ends this one.
                let drive = Arc::clone(&drive);
                let look = move || drive.mapped(drive.session(), (TRAP, 4096), |_, _| true);
                assert!(std::thread::spawn(look).join().is_err());
            } else {
                one.write(TRAP, &[1; 8192], 0);
                assert_eq!(one.done(), Err(error::IO), "{time:?}");
            }
            for client in [&mut one, &mut other, &mut connect(&path, true)] {
                client.request(command::READ, 0, 0, 4096);
                assert_eq!(client.done(), Err(error::IO), "{time:?}");
                client.request(command::FLUSH, 0, 0, 0);
                assert_eq!(client.done(), Err(error::IO), "{time:?}");
            }
            server.stop();
            assert!(matches!(drive.close(), Err(ServeError::Bug(_))));
        }
    }
}

#[test]
fn the_doors_say_so() {
    let folder = Folder::new("failing-doors");
    let (drive, control, http) =
        (trapped(TimeMode::Fast, None), folder.0.join("control"), folder.0.join("http"));
    let open =
        |door, path: &Path| ManagementServer::open(door, &Address::Unix(path.into()), vec![drive.clone()]);
    let _doors = [open(Endpoint::Control, &control).unwrap(), open(Endpoint::Http, &http).unwrap()];
    let ask = |path: &Path, text: &str| {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask(&control, "status\n").contains("nvlab_device_lost{device=\"mlc\"} 0\n"));
    is_lost(drive.write(drive.session(), TRAP, &[1; 4096], false));
    assert!(ask(&control, "status\n").contains("nvlab_device_lost{device=\"mlc\"} 1\n"));
    assert!(ask(&control, "cut\n").starts_with("error: mlc: the device is lost: "));
    // The page hears of it by an event; the stream goes on.
    let mut stream = UnixStream::connect(&http).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let event = lines.find(|line| line.starts_with("data:")).unwrap();
    assert!(event.contains("\"lost\":\"") && event.contains("the trap at 1048576"), "{event}");
}

#[test]
fn a_fuse_file_gives_errors() {
    let folder = Folder::new("failing-fuse");
    let drive = trapped(TimeMode::Fast, None);
    let mount = match FuseMount::open(&folder.0, vec![("disk".into(), drive)]) {
        Ok(mount) => mount,
        Err(error @ ServeError::Io { .. }) => return eprintln!("SKIPPED: {error}"),
        Err(error) => panic!("{error}"),
    };
    let open = || OpenOptions::new().read(true).write(true).open(folder.0.join("disk")).unwrap();
    let (file, eio) = (open(), |error: std::io::Error| assert_eq!(error.raw_os_error(), Some(libc::EIO)));
    file.write_all_at(&[7; 4096], 0).unwrap();
    eio(file.write_all_at(&[7; 4096], TRAP).unwrap_err());
    eio(file.read_exact_at(&mut [0; 4096], 0).unwrap_err());
    eio(file.sync_all().unwrap_err());
    eio(open().read_exact_at(&mut [0; 4096], 0).unwrap_err());
    drop(file);
    mount.close().unwrap();
}
