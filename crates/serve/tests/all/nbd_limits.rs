//! Clients that take places and do nothing with them: they are left when others want to come, and nobody else is.

use crate::common::{Folder, design};
use crate::hooked::Hooked;
use crate::nbd_client::{Client, connect};
use nvlab_serve::TimeMode;
use nvlab_serve::nbd::wire::{command, option};
use nvlab_serve::nbd::{Address, Export, NbdServer};
use nvlab_serve::served::{Drive, DriveOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Connections at a time.
const CONNECTIONS: usize = 64;

/// `read` is called before each read of the device.
fn serve(name: &str, read: impl Fn() + Send + 'static) -> (NbdServer, PathBuf, Folder) {
    let folder = Folder::new(&format!("nbd-limits-{name}"));
    let options = DriveOptions { time: TimeMode::Fast, seed: 3, ..DriveOptions::default() };
    let design = design("bench-4g", &["media.nand.blocks=48", "ftl.spare=30%"]);
    let drive = Drive::open("bench-4g", &design, &options).unwrap();
    let drive = Arc::new(drive.wrapped(|device| Box::new(Hooked { device, hook: move |_, _| read() })));
    let path = folder.0.join("socket");
    let server = NbdServer::start(&Address::Unix(path.clone()), vec![Export { name: "one".into(), drive }]);
    (server.unwrap(), path, folder)
}

/// Connected, and nothing else. Whoever waits for a place may have no greeting yet.
fn dial(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    stream
}

/// The other side has closed it.
fn is_closed(mut stream: &UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let closed = loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => break true,
            Ok(_) => {}
            Err(error) => break error.kind() != ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).unwrap();
    closed
}

/// Reads and is answered.
fn is_served(client: &mut Client) {
    client.request(command::READ, 0, 0, 4096);
    client.data(0, 4096).unwrap();
}

#[test]
fn a_handshake_has_an_end_however_busily_it_talks() {
    let (_server, path, _folder) = serve("handshake", || {});
    // A byte now and then, and whole options without end.
    let (mut drips, mut talks) = (dial(&path), Client::connect(&path));
    let begun = Instant::now();
    let long = Duration::from_secs(14);
    while begun.elapsed() < long && !(is_closed(&drips) && is_closed(&talks.stream)) {
        let _ = drips.write(&[0]);
        let _ = talks.stream.write(&Client::option_bytes(option::LIST, b""));
        std::thread::sleep(Duration::from_millis(300));
    }
    let took = begun.elapsed();
    assert!(took < long, "they talk for ever");
    assert!(took > Duration::from_secs(5), "{took:?} are short for a handshake over a network");
}

#[test]
fn who_is_idle_gives_its_place_to_who_waits_the_longest_idle_first() {
    let (_server, path, _folder) = serve("idle", || {});
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| connect(&path, false)).collect();
    // All but two of them have something to do, now and then.
    let until = Instant::now() + Duration::from_secs(7);
    while Instant::now() < until {
        clients[2..].iter_mut().for_each(is_served);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(!clients.iter().any(|client| is_closed(&client.stream)), "nobody waits");
    for _ in 0..2 {
        let begun = Instant::now();
        clients.push(connect(&path, false));
        is_served(clients.last_mut().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    assert!(is_closed(&clients[0].stream) && is_closed(&clients[1].stream), "idle all the time");
    clients[2..].iter_mut().for_each(is_served);
}

/// Nothing said, or half a request.
#[test]
fn silent_clients_lock_nobody_out() {
    let (_server, path, _folder) = serve("silent", || {});
    let mut silent: Vec<UnixStream> = (0..CONNECTIONS / 2).map(|_| dial(&path)).collect();
    silent.extend((0..CONNECTIONS / 2).map(|_| {
        let mut client = connect(&path, true);
        client.stream.write_all(&[0x25]).unwrap();
        client.stream
    }));
    let begun = Instant::now();
    let mut clients: Vec<Client> = (0..CONNECTIONS / 4).map(|_| connect(&path, false)).collect();
    clients.iter_mut().for_each(is_served);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// A device that does not come back from a read for long: whoever waits for an answer is not idle.
#[test]
fn who_waits_for_an_answer_keeps_its_place() {
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    // Also if this test fails.
    let wait = move || {
        let _ = gate.lock().unwrap().recv_timeout(Duration::from_secs(20));
    };
    let (_server, path, _folder) = serve("working", wait);
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| connect(&path, false)).collect();
    clients.iter_mut().for_each(|client| client.request(command::READ, 0, 0, 512));
    let mut late = dial(&path);
    late.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    assert_eq!(
        late.read_exact(&mut [0; 18]).unwrap_err().kind(),
        ErrorKind::WouldBlock,
        "it waits for a place"
    );
    drop(go);
    clients.iter_mut().for_each(|client| drop(client.data(0, 512).unwrap()));
    // One of them has been answered everything, and rests.
    late.read_exact(&mut [0; 18]).unwrap();
}
