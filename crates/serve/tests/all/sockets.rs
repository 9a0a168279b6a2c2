//! Where servers listen: what lies at the path of a socket is theirs to remove only if it is a socket nobody has any more.

use crate::common::{Folder, design};
use nvlab_serve::management::{Endpoint, ManagementServer};
use nvlab_serve::nbd::{Address, Export, NbdServer};
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_serve::{ServeError, TimeMode};
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Barrier};

fn drive() -> Arc<Drive> {
    let options = DriveOptions { time: TimeMode::Fast, seed: 3, ..DriveOptions::default() };
    let design = design("bench-4g", &["media.nand.blocks=48", "ftl.spare=30%"]);
    Arc::new(Drive::open("bench-4g", &design, &options).unwrap())
}

/// Both servers that listen at a path.
enum Listens {
    Nbd(NbdServer),
    Control(ManagementServer),
}

fn listen(control: bool, path: &Path, drive: &Arc<Drive>) -> Result<Listens, ServeError> {
    let (address, drive) = (Address::Unix(path.into()), Arc::clone(drive));
    match control {
        true => ManagementServer::open(Endpoint::Control, &address, vec![drive]).map(Listens::Control),
        false => NbdServer::start(&address, vec![Export { name: "one".into(), drive }]).map(Listens::Nbd),
    }
}

fn end(listens: Listens) {
    match listens {
        Listens::Nbd(mut server) => server.stop(),
        Listens::Control(door) => drop(door),
    }
}

#[test]
fn only_a_socket_that_nobody_has_is_removed() {
    let (folder, drive) = (Folder::new("sockets"), drive());
    for control in [false, true] {
        let at = |name: &str| folder.0.join(format!("{name}-{control}"));
        let refused = |path: &Path, why: &str| match listen(control, path, &drive) {
            Ok(_) => panic!("{} was taken", path.display()),
            Err(error) => assert!(error.to_string().contains(why), "{error}"),
        };
        let file = at("my.toml");
        fs::write(&file, "name = \"mine\"").unwrap();
        refused(&file, "is not a socket");
        assert_eq!(fs::read_to_string(&file).unwrap(), "name = \"mine\"");
        fs::create_dir(at("folder")).unwrap();
        refused(&at("folder"), "is not a socket");
        // Left behind by a server that was killed; a link to it is not it.
        let stale = at("stale");
        drop(UnixListener::bind(&stale).unwrap());
        symlink(&stale, at("link")).unwrap();
        refused(&at("link"), "is not a socket");
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        let listens = listen(control, &stale, &drive).unwrap();
        UnixStream::connect(&stale).unwrap();
        // Somebody else's, of whatever kind, also one that was just made and does not listen yet.
        refused(&stale, "in use");
        let other = UnixDatagram::bind(at("other")).unwrap();
        refused(&at("other"), "in use");
        UnixDatagram::unbound().unwrap().send_to(b"still there", at("other")).unwrap();
        assert_eq!(other.recv(&mut [0; 32]).unwrap(), 11);
        UnixStream::connect(&stale).unwrap();
        end(listens);
        assert!(!stale.exists());
    }
    let names: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 8, "nothing else is left: {names:?}");
}

/// Whoever removed the socket and put something else there keeps that.
#[test]
fn what_replaced_the_socket_stays() {
    let (folder, drive) = (Folder::new("sockets-replaced"), drive());
    for control in [false, true] {
        let path = folder.0.join(format!("socket-{control}"));
        let listens = listen(control, &path, &drive).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file by now").unwrap();
        end(listens);
        assert_eq!(fs::read_to_string(&path).unwrap(), "a file by now");
    }
}

/// Several servers find the same dead socket: one has the path, and can be reached there.
#[test]
fn one_of_several_takes_a_dead_socket() {
    const SERVERS: usize = 4;
    let (folder, drive) = (Folder::new("sockets-race"), drive());
    let path = folder.0.join("socket");
    for round in 0..50 {
        drop(UnixListener::bind(&path).unwrap());
        let barrier = Barrier::new(SERVERS);
        let open: Vec<Listens> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                listen(true, &path, &drive).ok()
            };
            let threads: Vec<_> = (0..SERVERS).map(|_| scope.spawn(start)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(open.len(), 1, "round {round}");
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
        UnixStream::connect(&path).unwrap_or_else(|error| panic!("round {round}: {error}"));
        open.into_iter().for_each(end);
    }
}
