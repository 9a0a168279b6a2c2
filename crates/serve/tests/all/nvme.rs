//! The NVMe/TCP server against a host of its own: discovery, connecting, identify, features, logs, keep-alive, events.

use crate::common::design;
use crate::nvme_client::{BLOCK, Completion, DISCOVERY, Host, Wish, command};
use nvlab_serve::TimeMode;
use nvlab_serve::nvme::{NvmeServer, Options};
use nvlab_serve::served::{Drive, DriveOptions};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server over two small devices.
pub struct Running {
    pub server: NvmeServer,
    pub drives: Vec<Arc<Drive>>,
}

pub const DESIGNS: [(&str, &[&str]); 2] = [
    ("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"]),
    ("bench-4g", &["media.nand.blocks=96", "ftl.spare=30%"]),
];

pub fn serve(options: &DriveOptions) -> Running {
    let drives =
        DESIGNS.map(|(name, sets)| Arc::new(Drive::open(name, &design(name, sets), options).unwrap()));
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = NvmeServer::start(local, drives.to_vec(), Options::default()).unwrap();
    Running { server, drives: drives.to_vec() }
}

pub fn fast() -> DriveOptions {
    DriveOptions { time: TimeMode::Fast, seed: 3, ..DriveOptions::default() }
}

impl Running {
    fn admin(&self) -> Host {
        Host::admin(self.server.address(), self.server.nqn(), Wish::default(), 0)
    }

    pub fn io(&self, admin: &Host, queue: u16, wish: Wish) -> Host {
        Host::io(self.server.address(), self.server.nqn(), wish, admin.controller, queue)
    }
}

/// A controller with one I/O queue.
pub fn connected(served: &Running, wish: Wish) -> (Host, Host) {
    let admin = Host::admin(served.server.address(), served.server.nqn(), wish, 0);
    let io = served.io(&admin, 1, wish);
    (admin, io)
}

pub fn identify(admin: &mut Host, structure: u32, namespace: u32) -> Result<Vec<u8>, Completion> {
    admin.fetch(command(0x06, namespace, &[structure]), 4096)
}

pub fn log_page(admin: &mut Host, id: u32, namespace: u32, bytes: usize) -> Result<Vec<u8>, Completion> {
    admin.fetch(command(0x02, namespace, &[(bytes as u32 / 4 - 1) << 16 | id]), bytes)
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(page[at..at + 2].try_into().unwrap())
}

pub fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().unwrap())
}

#[test]
fn discovery_tells_where_the_subsystem_is() {
    let served = serve(&fast());
    let mut host = Host::admin(served.server.address(), DISCOVERY, Wish::default(), 0);
    let controller = identify(&mut host, 1, 0).unwrap();
    assert_eq!((controller[111], &controller[768..768 + DISCOVERY.len()]), (2, DISCOVERY.as_bytes()));
    let header = log_page(&mut host, 0x70, 0, 1024).unwrap();
    assert_eq!(u64_at(&header, 8), 1, "one record");
    // The record alone, by its offset.
    let record = host.fetch(command(0x02, 0, &[255 << 16 | 0x70, 0, 1024]), 1024).unwrap();
    assert_eq!(record[..4], [3, 1, 2, 2]);
    let text = |from: usize, to: usize| {
        String::from_utf8_lossy(&record[from..to]).trim_end_matches([' ', '\0']).to_string()
    };
    assert_eq!(text(32, 64), served.server.address().port().to_string());
    assert_eq!((text(256, 512), text(512, 768)), (served.server.nqn().to_string(), "127.0.0.1".to_string()));
    assert_eq!(log_page(&mut host, 0x02, 0, 512).unwrap_err().status, 0x109);
    assert_eq!(host.run(command(0x02, 0, &[0x70, 0, 4096])).status, 0x0f, "the lengths differ");
}

#[test]
fn connect_refuses_what_is_wrong() {
    let served = serve(&fast());
    let (address, nqn) = (served.server.address(), served.server.nqn());
    let mut admin = served.admin();
    let mut host = Host::initialized(address, Wish::default());
    let any = Host::connect_data(nqn, 0xffff);
    let same = Host::connect_data(nqn, admin.controller);
    let mut other_host = same.clone();
    other_host[0] = 1;
    let data = 1u64 << 16;
    for (data, queue, size, status, result) in [
        (&Host::connect_data("nqn.other", 0xffff), 0, 31, 0x182, data | 256),
        (&Host::connect_data(nqn, 1), 0, 31, 0x182, data | 16),
        (&any, 0, 0, 0x182, 44),
        (&any, 0, 1024, 0x182, 44),
        (&any, 1, 31, 0x182, data | 16),
        (&same, 17, 31, 0x182, 42),
        (&other_host, 1, 31, 0x184, 0),
        (&vec![0xff; 1024], 0, 31, 0x182, data | 256),
    ] {
        let done = host.connect(data, queue, size, 0);
        assert_eq!((done.status, done.result, done.no_retry), (status, result, true));
    }
    // Nothing else is served before it.
    assert_eq!(host.run(command(0x06, 0, &[1])).status, 0x0c);
    assert_eq!(host.connect(&same, 1, 31, 0).status, 0);
    assert_eq!(host.read(1, 0, 1), Ok(vec![0; BLOCK]));
    let mut twice = Host::initialized(address, Wish::default());
    assert_eq!(twice.connect(&same, 1, 31, 0).status, 0x0c);
    // A controller that is disabled has no queues.
    admin.set_property(0x14, 0x0046_0060);
    assert!(host.is_closed());
    assert_eq!(admin.property(0x1c, false), 0);
    assert_eq!(identify(&mut admin, 1, 0).unwrap_err().status, 0x0c);
    assert_eq!(twice.connect(&same, 1, 31, 0).status, 0x0c);
    admin.set_property(0x14, 0x0046_0061);
    assert_eq!(twice.connect(&same, 1, 31, 0).status, 0);
    // An I/O queue is disconnected alone; the controller goes with its admin queue.
    let mut leaves = served.io(&admin, 2, Wish::default());
    let mut disconnect = command(0x7f, 0, &[]);
    disconnect[4] = 8;
    assert_eq!(leaves.run(disconnect).status, 0);
    assert!(leaves.is_closed());
    assert_eq!(twice.read(1, 0, 1), Ok(vec![0; BLOCK]));
    drop(admin);
    assert!(twice.is_closed());
}

#[test]
fn identify_describes_controller_and_namespaces() {
    let served = serve(&fast());
    let mut admin = served.admin();
    assert_eq!(admin.property(0, true) & 0xffff, 1023, "entries of a queue, from 0");
    assert_eq!(admin.property(8, false), 0x20000);
    let controller = identify(&mut admin, 1, 0).unwrap();
    assert_eq!(u16_at(&controller, 78), admin.controller);
    assert_eq!((controller[77], controller[111], controller[512], controller[513]), (8, 1, 0x66, 0x44));
    assert_eq!(u16_at(&controller, 520), 0x8d);
    assert!(controller[768..].starts_with(served.server.nqn().as_bytes()));
    let numbers =
        |page: &[u8]| -> Vec<u64> { (0..4).map(|place| u64_at(page, 4 * place) & 0xffff_ffff).collect() };
    assert_eq!(numbers(&identify(&mut admin, 2, 0).unwrap()), [1, 2, 0, 0]);
    assert_eq!(numbers(&identify(&mut admin, 2, 1).unwrap()), [2, 0, 0, 0]);
    assert_eq!(numbers(&identify(&mut admin, 7, 2).unwrap()), [0, 0, 0, 0]);
    let mut uuids = Vec::new();
    for (drive, number) in served.drives.iter().zip(1..) {
        let namespace = identify(&mut admin, 0, number).unwrap();
        assert_eq!(u64_at(&namespace, 0), drive.capacity_bytes() / BLOCK as u64);
        assert_eq!(u16_at(&namespace, 64) as u32 + 1, drive.unit_bytes() / BLOCK as u32);
        assert_eq!(namespace[130], 9, "blocks of 512 bytes");
        let descriptors = identify(&mut admin, 3, number).unwrap();
        assert_eq!((&descriptors[..2], &descriptors[20..25]), (&[3, 16][..], &[4, 1, 0, 0, 0][..]));
        uuids.push(descriptors[4..20].to_vec());
        assert_eq!(identify(&mut admin, 8, number).unwrap()[14], 1, "ready");
    }
    assert_ne!(uuids[0], uuids[1]);
    assert_eq!(identify(&mut admin, 0x1c, 0xffff).unwrap()[0], 1);
    assert_eq!(identify(&mut admin, 0x13, 0).unwrap()[..2], [1, 0]);
    for (structure, namespace, status) in [
        (0, 0, 0x0b),
        (0, 3, 0x0b),
        (3, u32::MAX, 0x0b),
        (2, u32::MAX, 0x0b),
        (0x99, 1, 0x02),
        (0x0200_0006, 0, 0x02),
    ] {
        // A command set other than NVM is in double word 11.
        let words = [structure & 0xff, structure & 0xff00_0000];
        let done = admin.fetch(command(0x06, namespace, &words), 4096).unwrap_err();
        assert_eq!(done.status, status, "{structure:#x} of {namespace}");
    }
}

#[test]
fn features_logs_and_unknown_commands() {
    let served = serve(&fast());
    let (mut admin, mut io) = connected(&served, Wish::default());
    let set = |admin: &mut Host, number: u32, value: u32| admin.run(command(0x09, 0, &[number, value]));
    let get = |admin: &mut Host, number: u32| admin.run(command(0x0a, 0, &[number]));
    assert_eq!(set(&mut admin, 7, 3 << 16 | 5).result, 3 << 16 | 3, "as many of either kind");
    assert_eq!(set(&mut admin, 7, 0xfffe << 16 | 0xfffe).result, 15 << 16 | 15);
    assert_eq!(set(&mut admin, 7, 0xffff).status, 0x02);
    for (number, value) in [(6, 0), (0x0b, 0x1ff), (0x0f, 5000), (4, 300)] {
        assert_eq!(
            (set(&mut admin, number, value).status, get(&mut admin, number).result),
            (0, value as u64)
        );
    }
    assert_eq!((set(&mut admin, 1, 0).status, set(&mut admin, 0xee, 0).status), (0x10e, 0x02));
    assert_eq!(set(&mut admin, 1 << 31 | 6, 1).status, 0x10d, "nothing is saved");
    assert_eq!(admin.fetch(command(0x0a, 0, &[0x81, 1]), 16).unwrap(), [7; 16], "who the host is");
    // Without a write cache a write is durable: a cut loses none.
    assert_eq!(io.write(1, 8, &[5; 4096], 0).status, 0);
    for opcode in [0x00, 0x11, 0x80, 0xff] {
        assert_eq!(admin.run(command(opcode, 0, &[])).status, 0x01);
    }
    assert_eq!(io.run(command(0x55, 1, &[])).status, 0x01);
    assert_eq!(io.run(command(0x55, 9, &[])).status, 0x0b);
    // The latest error first.
    let errors = log_page(&mut admin, 1, 0, 4096).unwrap();
    assert_eq!((u64_at(&errors, 0), u16_at(&errors, 8)), (u64_at(&errors, 64) + 1, 1));
    assert_eq!(u16_at(&errors, 12) >> 1 & 0x7ff, 0x0b);
    let effects = log_page(&mut admin, 5, 0, 4096).unwrap();
    assert_eq!((effects[4 * 0x06], effects[1024 + 4], effects[1024 + 4 * 4]), (1, 3, 0));
    assert_eq!(log_page(&mut admin, 0xc0, 0, 512).unwrap_err().status, 0x109);
    served.drives[0].cut().unwrap();
    assert!(io.is_closed() && admin.is_closed());
    let (_admin, mut io) = connected(&served, Wish::default());
    assert_eq!(io.read(1, 8, 8), Ok(vec![5; 4096]));
}

#[test]
fn health_tells_what_was_done_to_a_device() {
    let served = serve(&fast());
    let (mut admin, mut io) = connected(&served, Wish::default());
    let data = vec![1; 1 << 20];
    for place in 0..60u64 {
        assert_eq!(io.write(2, place * 8, &data, 0).status, 0);
    }
    io.read(1, 0, 2048).unwrap();
    let health = log_page(&mut admin, 2, 2, 512).unwrap();
    assert_eq!((health[0], u16_at(&health, 1), health[3]), (0, 298, 100));
    assert_eq!((u64_at(&health, 32), u64_at(&health, 48)), (0, (60u64 << 20).div_ceil(512_000)));
    assert_eq!((u64_at(&health, 112), u64_at(&health, 144)), (1, 0), "power cycles, unsafe shutdowns");
    // All namespaces: the read is there as well.
    let health = log_page(&mut admin, 2, u32::MAX, 512).unwrap();
    assert_eq!(u64_at(&health, 32), 3);
    served.drives[1].cut().unwrap();
    let mut admin = served.admin();
    let health = log_page(&mut admin, 2, 2, 512).unwrap();
    assert_eq!((u64_at(&health, 112), u64_at(&health, 144)), (2, 1));
    assert_eq!(log_page(&mut admin, 2, 3, 512).unwrap_err().status, 0x0b);
}

#[test]
fn a_host_that_is_silent_loses_its_controller() {
    let served = serve(&fast());
    let mut admin = Host::admin(served.server.address(), served.server.nqn(), Wish::default(), 400);
    let mut io = served.io(&admin, 1, Wish::default());
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1200) {
        assert_eq!(admin.run(command(0x18, 0, &[])).status, 0);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(io.read(1, 0, 1), Ok(vec![0; BLOCK]));
    let begun = Instant::now();
    assert!(io.is_closed() && admin.is_closed());
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
}

#[test]
fn events_wait_and_can_be_aborted() {
    let served = serve(&fast());
    let mut admin = served.admin();
    let event = command(0x0c, 0, &[]);
    let waiting: Vec<u16> = (0..4).map(|_| admin.ask(event, 0)).collect();
    assert_eq!(admin.run(event).status, 0x105, "no more than four");
    // The abort, and the request that was aborted.
    let abort = admin.ask(command(0x08, 0, &[(waiting[1] as u32) << 16]), 0);
    let mut both = [admin.completion(), admin.completion()];
    both.sort_by_key(|done| done.id);
    assert_eq!(both.map(|done| (done.id, done.status, done.result)), [(waiting[1], 0x07, 0), (abort, 0, 0)]);
    assert_eq!(admin.run(command(0x08, 0, &[77 << 16 | 1])).result, 1, "not aborted");
    // Too warm, by a threshold below the temperature: reported once, until the host has read why.
    assert_eq!(admin.run(command(0x09, 0, &[0x0b, 0xff])).status, 0);
    admin.ask(command(0x09, 0, &[4, 290]), 0);
    assert_eq!(admin.completion().status, 0);
    let reported = admin.completion();
    assert_eq!((reported.id, reported.result), (waiting[0], 2 << 16 | 1 << 8 | 1));
    assert_eq!(admin.run(command(0x18, 0, &[])).status, 0);
    assert_eq!(log_page(&mut admin, 2, 0, 512).unwrap()[0], 2);
    assert_eq!(admin.completion().id, waiting[2], "it still is");
}
