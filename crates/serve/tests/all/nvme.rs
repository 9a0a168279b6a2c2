//! The NVMe/TCP server against a host of its own: connecting, identify, features, logs, commands in every way in which data
//! can be moved, keep-alive, events, power cuts, and hosts that mean harm.

use crate::common::{Folder, design};
use crate::nvme_client::{BLOCK, Completion, DISCOVERY, Host, Wish, blocks, command};
use nvlab_serve::TimeMode;
use nvlab_serve::nvme::{NvmeServer, Options};
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_units::Rng;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server over two small devices.
struct Running {
    server: NvmeServer,
    drives: Vec<Arc<Drive>>,
}

const DESIGNS: [(&str, &[&str]); 2] = [
    ("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"]),
    ("bench-4g", &["media.nand.blocks=96", "ftl.spare=30%"]),
];

fn serve(options: &DriveOptions) -> Running {
    let drives =
        DESIGNS.map(|(name, sets)| Arc::new(Drive::open(name, &design(name, sets), options).unwrap()));
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = NvmeServer::start(local, drives.to_vec(), Options::default()).unwrap();
    Running { server, drives: drives.to_vec() }
}

fn fast() -> DriveOptions {
    DriveOptions { time: TimeMode::Fast, seed: 3, ..DriveOptions::default() }
}

impl Running {
    fn admin(&self) -> Host {
        Host::admin(self.server.address(), self.server.nqn(), Wish::default(), 0)
    }

    fn io(&self, admin: &Host, queue: u16, wish: Wish) -> Host {
        Host::io(self.server.address(), self.server.nqn(), wish, admin.controller, queue)
    }
}

/// A controller with one I/O queue.
fn connected(served: &Running, wish: Wish) -> (Host, Host) {
    let admin = Host::admin(served.server.address(), served.server.nqn(), wish, 0);
    let io = served.io(&admin, 1, wish);
    (admin, io)
}

fn identify(admin: &mut Host, structure: u32, namespace: u32) -> Result<Vec<u8>, Completion> {
    admin.fetch(command(0x06, namespace, &[structure]), 4096)
}

fn log_page(admin: &mut Host, id: u32, namespace: u32, bytes: usize) -> Result<Vec<u8>, Completion> {
    admin.fetch(command(0x02, namespace, &[(bytes as u32 / 4 - 1) << 16 | id]), bytes)
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(page[at..at + 2].try_into().unwrap())
}

fn u64_at(page: &[u8], at: usize) -> u64 {
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

/// Random commands over two queues against a plain array, with every combination of digests, alignment and flow control.
#[test]
fn a_namespace_is_a_plain_array() {
    const BLOCKS: usize = 6000;
    let served = serve(&fast());
    for seed in 0..8u64 {
        let wish = Wish {
            header_digest: seed & 1 != 0,
            data_digest: seed & 2 != 0,
            alignment: (seed * 4) as u8,
            no_flow_control: seed & 4 != 0,
        };
        let (admin, first) = connected(&served, wish);
        let mut queues = [first, served.io(&admin, 2, wish)];
        let (mut rng, namespace) = (Rng::new(seed), 1 + (seed % 2) as u32);
        let mut model = vec![0u8; BLOCKS * BLOCK];
        let zeroes = |io: &mut Host, block: usize, count: usize, flags: u32| {
            assert_eq!(io.run(blocks(0x08, namespace, block as u64, count, flags)).status, 0);
        };
        zeroes(&mut queues[0], 0, BLOCKS, 0);
        for step in 0..300 {
            let io = &mut queues[rng.below(2) as usize];
            let most = if rng.chance(0.1) { 2048 } else { 40 };
            let count = 1 + rng.below(most) as usize;
            let block = rng.below((BLOCKS - count) as u64) as usize;
            let range = block * BLOCK..(block + count) * BLOCK;
            let force = if rng.chance(0.1) { 1 << 30 } else { 0 };
            match rng.below(9) {
                0..=3 => {
                    let data: Vec<u8> = (0..count * BLOCK).map(|_| rng.bits() as u8).collect();
                    let inline = data.len() <= 128 << 10 && rng.chance(0.5);
                    let most = [4096, 5000 / 4 * 4, 200_000, usize::MAX][rng.below(4) as usize];
                    let entry = blocks(0x01, namespace, block as u64, count, force);
                    let done = io.give(entry, &data, inline, most);
                    assert_eq!(done.status, 0, "{done:?}");
                    model[range].copy_from_slice(&data);
                }
                4 => {
                    zeroes(io, block, count, force | if rng.chance(0.5) { 1 << 25 } else { 0 });
                    model[range].fill(0);
                }
                5 => {
                    let mut data = model[range].to_vec();
                    let wrong = rng.chance(0.5);
                    if wrong {
                        let place = rng.below(data.len() as u64) as usize;
                        data[place] ^= 1;
                    }
                    let entry = blocks(0x05, namespace, block as u64, count, 0);
                    let inline = data.len() <= 128 << 10 && rng.chance(0.5);
                    let done = io.give(entry, &data, inline, 8192);
                    assert_eq!(done.status, if wrong { 0x285 } else { 0 });
                }
                6 => assert_eq!(io.run(command(0x00, namespace, &[])).status, 0),
                7 => assert_eq!(io.run(blocks(0x0c, namespace, block as u64, count, 0)).status, 0),
                _ => {
                    let found = io.read(namespace, block as u64, count).unwrap();
                    assert!(found == model[range], "seed {seed}, step {step}: {count} blocks at {block}");
                }
            }
        }
    }
}

#[test]
fn deallocated_blocks_read_as_zero() {
    let served = serve(&fast());
    let (mut admin, mut io) = connected(&served, Wish::default());
    let namespace = identify(&mut admin, 0, 2).unwrap();
    assert_eq!(io.write(2, 0, &vec![9; 1 << 20], 0).status, 0);
    let range = |blocks: u32, start: u64| [&[0; 4][..], &blocks.to_le_bytes(), &start.to_le_bytes()].concat();
    let mut ranges = [range(1024, 0), range(16, 1500)].concat();
    // Linux sends a page, whatever it holds.
    ranges.resize(4096, 0xff);
    assert_eq!(io.give(command(0x09, 2, &[1, 4]), &ranges, true, 0).status, 0);
    assert_eq!(io.run(command(0x00, u32::MAX, &[])).status, 0);
    if namespace[33] & 7 == 1 {
        assert_eq!(io.read(2, 0, 1024), Ok(vec![0; 1024 * BLOCK]));
    }
    assert_eq!(io.read(2, 1024, 400), Ok(vec![9; 400 * BLOCK]));
    // Asked for, in two PDUs of which neither is whole; a hint alone changes nothing.
    assert_eq!(io.give(command(0x09, 2, &[0, 3]), &range(512, 1024), false, 12).status, 0);
    assert_eq!(io.read(2, 1024, 400), Ok(vec![9; 400 * BLOCK]));
    let past = range(1, u64_at(&namespace, 0));
    assert_eq!(io.give(command(0x09, 2, &[0, 4]), &past, true, 0).status, 0x80);
    assert_eq!(io.give(command(0x09, 2, &[1, 4]), &past, true, 0).status, 0x0f);
}

#[test]
fn ranges_and_descriptors_that_are_wrong_fail_their_command_only() {
    let served = serve(&fast());
    let (_admin, mut io) = connected(&served, Wish::default());
    let end = served.drives[0].capacity_bytes() / BLOCK as u64;
    assert_eq!(io.read(1, end - 1, 1), Ok(vec![0; BLOCK]));
    for (block, count) in [(end, 1), (end - 1, 2), (u64::MAX, 1), (u64::MAX - 5, 6)] {
        assert_eq!(io.read(1, block, count).unwrap_err().status, 0x80);
        assert_eq!(io.write(1, block, &vec![0; count * BLOCK], 0).status, 0x80);
        assert_eq!(io.run(blocks(0x08, 1, block, count, 0)).status, 0x80);
    }
    assert_eq!(io.read(1, 0, 2049).unwrap_err().status, 0x02, "more than the most data of a command");
    assert_eq!(io.fetch(blocks(0x02, 1, 0, 2, 0), BLOCK).unwrap_err().status, 0x0f);
    assert_eq!(io.fetch(blocks(0x02, 3, 0, 2, 0), 2 * BLOCK).unwrap_err().status, 0x0b);
    assert_eq!(io.give(blocks(0x01, 1, 0, 3, 0), &[0; 2 * BLOCK], true, 0).status, 0x0f);
    assert_eq!(
        io.fetch(blocks(0x02, 1, 0, 1, 1 << 28), BLOCK).unwrap_err().status,
        0x02,
        "protection information"
    );
    let mut fused = blocks(0x02, 1, 0, 1, 0);
    fused[1] |= 1;
    assert_eq!(io.fetch(fused, BLOCK).unwrap_err().status, 0x02);
    let mut offset = blocks(0x01, 1, 0, 1, 0);
    offset[24] = 4;
    assert_eq!(io.give(offset, &[0; BLOCK], true, 0).status, 0x16);
    // Data of a read in its capsule.
    io.send_inline(blocks(0x02, 1, 0, 1, 0), &[0; BLOCK]);
    assert_eq!(io.completion().status, 0x11);
    assert_eq!(io.read(1, 0, 8), Ok(vec![0; 8 * BLOCK]));
}

/// Many commands in flight, data of several of them interleaved.
#[test]
fn transfers_of_several_commands_interleave() {
    let served = serve(&fast());
    let (_admin, mut io) =
        connected(&served, Wish { header_digest: true, data_digest: true, ..Wish::default() });
    let data: Vec<Vec<u8>> = (0..6u8).map(|fill| vec![fill + 1; 16 * BLOCK]).collect();
    for place in 0..6 {
        io.ask(blocks(0x01, 1, 16 * place, 16, 0), 16 * BLOCK);
    }
    let ready: Vec<_> = (0..6).map(|_| io.pdu()).collect();
    for half in 0..2 {
        for place in [3, 0, 5, 1, 4, 2] {
            let pdu = &ready[place];
            assert_eq!(pdu.kind, 9);
            let mut header = vec![0; 24];
            header[8..12].copy_from_slice(&pdu.header[8..12]);
            header[12..16].copy_from_slice(&(half * 8 * BLOCK as u32).to_le_bytes());
            header[16..20].copy_from_slice(&(8 * BLOCK as u32).to_le_bytes());
            io.send(6, if half == 1 { 4 } else { 0 }, header, &data[place][..8 * BLOCK]);
        }
    }
    for _ in 0..6 {
        assert_eq!(io.completion().status, 0);
    }
    assert_eq!(io.read(1, 0, 96), Ok(data.concat()));
}

#[test]
fn a_wrong_digest_of_data_fails_the_command_and_writes_nothing() {
    let served = serve(&fast());
    let (_admin, mut io) = connected(&served, Wish { data_digest: true, ..Wish::default() });
    assert_eq!(io.write(1, 0, &[3; 8 * BLOCK], 0).status, 0);
    let mut entry = blocks(0x01, 1, 0, 8, 0);
    (entry[2], entry[33], entry[39]) = (200, 16, 1);
    let length = 72 + 8 * BLOCK as u32 + 4;
    let mut pdu = [&[4, 2, 72, 72][..], &length.to_le_bytes(), &entry].concat();
    pdu.extend([4; 8 * BLOCK + 4]);
    std::io::Write::write_all(&mut io.stream, &pdu).unwrap();
    let done = io.completion();
    assert_eq!((done.id, done.status, done.no_retry), (200, 0x22, false));
    assert_eq!(io.read(1, 0, 8), Ok(vec![3; 8 * BLOCK]));
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

/// A shutdown makes durable what was answered; a cut without it loses what a write cache may lose, and nothing more.
#[test]
fn nothing_that_was_made_durable_is_lost() {
    let folder = Folder::new("nvme-durable");
    let state = |time| DriveOptions { state: Some(folder.0.join("state")), time, ..fast() };
    let (name, sets) = DESIGNS[0];
    let mut rng = Rng::new(4);
    let mut model = vec![0u8; 2000 * BLOCK];
    for round in 0..6 {
        let drive = Arc::new(Drive::open(name, &design(name, sets), &state(TimeMode::Fast)).unwrap());
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = NvmeServer::start(local, vec![Arc::clone(&drive)], Options::default()).unwrap();
        let served = Running { server, drives: vec![drive] };
        let (mut admin, mut io) = connected(&served, Wish::default());
        assert!(io.read(1, 0, 2000).unwrap() == model, "round {round}");
        for _ in 0..60 {
            let (block, count) = (rng.below(1900) as usize, 1 + rng.below(90) as usize);
            let data = vec![rng.bits() as u8; count * BLOCK];
            let force = rng.chance(0.5);
            assert_eq!(io.write(1, block as u64, &data, if force { 1 << 30 } else { 0 }).status, 0);
            if !force {
                assert_eq!(io.run(command(0x00, 1, &[])).status, 0);
            }
            model[block * BLOCK..(block + count) * BLOCK].copy_from_slice(&data);
        }
        match round % 3 {
            0 => {
                served.drives[0].cut_after(1);
                io.ask(blocks(0x02, 1, 0, 8, 0), 8 * BLOCK);
                assert!(io.is_closed() && admin.is_closed());
            }
            1 => {
                admin.set_property(0x14, 0x0046_4061);
                assert_eq!(admin.property(0x1c, false), 9, "shutdown complete");
                served.drives[0].cut().unwrap();
            }
            _ => {}
        }
        let Running { mut server, drives } = served;
        server.stop();
        drop(server);
        if round % 3 == 2 {
            drives[0].close().unwrap();
        }
    }
}

/// In real time replies come when they are due, in that order, and admin commands do not wait for them.
#[test]
fn replies_come_when_the_device_would_send_them() {
    let served = serve(&DriveOptions { time: TimeMode::Slower(100), ..fast() });
    let (mut admin, mut io) = connected(&served, Wish::default());
    assert_eq!(io.write(1, 0, &vec![6; 64 * BLOCK], 1 << 30).status, 0);
    let begun = Instant::now();
    let reads: Vec<u16> =
        (0..4).map(|place| io.ask(blocks(0x02, 1, place * 16, 16, 0), 16 * BLOCK)).collect();
    assert_eq!(admin.run(command(0x18, 0, &[])).status, 0);
    let mut done: Vec<u16> = (0..4)
        .map(|_| {
            assert_eq!(io.pdu().data, [6; 16 * BLOCK]);
            io.completion().id
        })
        .collect();
    assert!(begun.elapsed() > Duration::from_millis(2), "{:?}", begun.elapsed());
    done.sort_unstable();
    assert_eq!(done, reads);
    assert!(served.drives[0].lateness().count >= 5);
}
