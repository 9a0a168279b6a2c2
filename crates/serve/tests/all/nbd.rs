//! The NBD server against a client of its own: handshakes, requests, flags, errors, several exports, a deep queue, real
//! time, power cuts and clients that mean harm.

use crate::common::Folder;
use crate::nbd_client::{Client, connect, wait_for_operations};
use nvlab_design::Design;
use nvlab_serve::TimeMode;
use nvlab_serve::nbd::wire::{self, Request, can, command, error, flag, option, reply};
use nvlab_serve::nbd::{Address, Export, NbdServer};
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_units::Rng;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server over small devices, and where it listens.
struct Running {
    server: NbdServer,
    drives: Vec<Arc<Drive>>,
    path: PathBuf,
    _folder: Folder,
}

fn serve(name: &str, options: &DriveOptions) -> Running {
    let folder = Folder::new(&format!("nbd-{name}"));
    let designs: [(&str, &[&str]); 2] = [
        ("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"]),
        ("bench-4g", &["media.nand.blocks=96", "ftl.spare=30%"]),
    ];
    let drives: Vec<Arc<Drive>> = designs
        .iter()
        .map(|(name, sets)| {
            let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
            Arc::new(Drive::open(name, &Design::load(name, &sets).unwrap(), options).unwrap())
        })
        .collect();
    let export = |drive: &Arc<Drive>| Export { name: drive.name().into(), drive: Arc::clone(drive) };
    let path = folder.0.join("socket");
    let exports = drives.iter().map(export).collect();
    let server = NbdServer::start(&Address::Unix(path.clone()), exports).unwrap();
    Running { server, drives, path, _folder: folder }
}

fn fast() -> DriveOptions {
    DriveOptions { time: TimeMode::Fast, seed: 3, ..DriveOptions::default() }
}

#[test]
fn a_handshake_tells_what_there_is() {
    let served = serve("handshake", &fast());
    let mut client = Client::connect(&served.path);
    // What is unknown, empty or too long is refused, and the next option is understood.
    for (number, data, kind) in [
        (99, &b"whatever"[..], reply::ERR_UNSUP),
        (5, b"", reply::ERR_UNSUP),
        (option::LIST, b"x", reply::ERR_INVALID),
        (option::GO, b"\0\0\0\x09short", reply::ERR_INVALID),
        (option::GO, b"\0\0\0\x04none\0\0", reply::ERR_UNKNOWN),
        (option::SET_META_CONTEXT, b"\0\0\0\0\0\0\0\0", reply::ERR_INVALID),
        (99, &vec![7; 1 << 20], reply::ERR_TOO_BIG),
    ] {
        client.option(number, data);
        assert_eq!(client.option_reply(number).0, kind, "option {number}");
    }
    client.option(option::LIST, b"");
    let mut names = Vec::new();
    loop {
        let (kind, data) = client.option_reply(option::LIST);
        if kind == reply::ACK {
            break;
        }
        assert_eq!(kind, reply::SERVER);
        names.push(String::from_utf8(data[4..].to_vec()).unwrap());
    }
    assert_eq!(names, ["ssd-mlc-2010", "bench-4g"]);
    client.option(option::STRUCTURED_REPLY, b"");
    assert_eq!(client.option_reply(option::STRUCTURED_REPLY).0, reply::ACK);
    let (bytes, flags) = client.go("bench-4g").unwrap();
    assert_eq!(bytes, served.drives[1].capacity_bytes());
    let all = can::HAS_FLAGS | can::FLUSH | can::FUA | can::TRIM | can::WRITE_ZEROES | can::DF;
    assert_eq!(flags, all | can::MULTI_CONN | can::CACHE | can::FAST_ZERO);
    // The old way, with and without the zeros.
    for no_zeroes in [false, true] {
        let mut old = Client::connect_with(&served.path, no_zeroes);
        old.option(option::EXPORT_NAME, b"");
        let told = old.bytes(if no_zeroes { 10 } else { 134 });
        assert_eq!(told[..8], served.drives[0].capacity_bytes().to_be_bytes());
        old.request(command::READ, 0, 0, 512);
        assert_eq!(old.simple(512), Ok(vec![0; 512]));
    }
    let mut leaves = Client::connect(&served.path);
    leaves.option(option::ABORT, b"");
    assert_eq!(leaves.option_reply(option::ABORT).0, reply::ACK);
    assert_eq!(leaves.stream.read(&mut [0; 1]).unwrap(), 0);
}

/// Random requests on several connections of one export against a plain array.
#[test]
fn an_export_is_a_plain_array() {
    const BYTES: u64 = 3 << 20;
    let served = serve("model", &fast());
    for structured in [false, true] {
        let mut rng = Rng::new(5 + structured as u64);
        let mut clients = [connect(&served.path, structured), connect(&served.path, structured)];
        let mut model = vec![0u8; BYTES as usize];
        clients[0].request(command::WRITE_ZEROES, flag::NO_HOLE, 0, BYTES as u32);
        clients[0].done().unwrap();
        for _ in 0..1500 {
            let client = &mut clients[rng.below(2) as usize];
            let most = if rng.chance(0.05) { 900_000 } else { 20_000 };
            let bytes = 1 + rng.below(most);
            let offset = rng.below(BYTES - bytes);
            let range = offset as usize..(offset + bytes) as usize;
            let fua = if rng.chance(0.1) { flag::FUA } else { 0 };
            match rng.below(8) {
                0..=2 => {
                    let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
                    client.write(offset, &data, fua);
                    client.done().unwrap();
                    model[range].copy_from_slice(&data);
                }
                3 => {
                    let hole = if rng.chance(0.5) { flag::NO_HOLE } else { 0 };
                    client.request(command::WRITE_ZEROES, fua | hole, offset, bytes as u32);
                    client.done().unwrap();
                    model[range].fill(0);
                }
                4 => {
                    client.request(command::FLUSH, 0, 0, 0);
                    client.done().unwrap();
                }
                5 => {
                    client.request(command::CACHE, 0, offset, bytes as u32);
                    client.done().unwrap();
                }
                _ => {
                    client.request(command::READ, 0, offset, bytes as u32);
                    let found = client.data(offset, bytes as usize).unwrap();
                    assert!(found == model[range], "{bytes} B at {offset}");
                }
            }
        }
    }
}

/// Large reads are sent from the media, as far as the socket takes them at once.
#[test]
fn large_reads_are_whole_however_slowly_they_are_taken() {
    const BYTES: u64 = 4 << 20;
    let served = serve("large", &fast());
    for structured in [false, true] {
        let mut client = connect(&served.path, structured);
        let mut rng = Rng::new(11 + structured as u64);
        let mut model = vec![0u8; BYTES as usize];
        client.request(command::TRIM, 0, 0, BYTES as u32);
        client.done().unwrap();
        // Units lie anywhere; some hold nothing, the last wait in the controller.
        for _ in 0..1200 {
            let offset = rng.below(BYTES / 4096) * 4096;
            let data: Vec<u8> = (0..4096).map(|_| rng.bits() as u8).collect();
            client.write(offset, &data, 0);
            client.done().unwrap();
            model[offset as usize..][..4096].copy_from_slice(&data);
        }
        let asked: Vec<(u64, u64)> = (0..24)
            .map(|i| {
                // Whole units most of the time.
                let align = if i % 4 == 3 { 512 } else { 4096 };
                let bytes = (1 + rng.below((2 << 20) / align)) * align;
                (rng.below((BYTES - bytes) / align + 1) * align, bytes)
            })
            .collect();
        // All of them before the first answer is taken: the socket is full soon.
        let mut asking = client.stream.try_clone().unwrap();
        for (i, &(offset, bytes)) in asked.iter().enumerate() {
            let request =
                Request { flags: 0, command: command::READ, cookie: i as u64, offset, bytes: bytes as u32 };
            asking.write_all(&request.encode()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
        for (i, &(offset, bytes)) in asked.iter().enumerate() {
            client.expect_cookie(i as u64);
            let found = client.data(offset, bytes as usize).unwrap();
            assert!(found == model[offset as usize..][..bytes as usize], "{bytes} B at {offset}");
        }
    }
}

#[test]
fn wrong_requests_are_refused_and_the_next_is_served() {
    let served = serve("wrong", &fast());
    let end = served.drives[0].capacity_bytes();
    for structured in [false, true] {
        let mut client = connect(&served.path, structured);
        let zero = command::WRITE_ZEROES;
        for (command, flags, offset, bytes, why) in [
            (command::READ, 0, end - 1, 2, error::INVALID),
            (command::READ, 0, u64::MAX, 2, error::INVALID),
            (command::READ, 0, 0, 0, error::INVALID),
            (command::READ, 0, 0, wire::PAYLOAD_MAX + 1, error::INVALID),
            (command::READ, 0, 0, u32::MAX, error::INVALID),
            (command::READ, flag::FAST_ZERO, 0, 512, error::INVALID),
            (command::TRIM, 0, end, 1, error::INVALID),
            (zero, 0, 1, u32::MAX, error::NO_SPACE),
            (zero, flag::FAST_ZERO, end, 1, error::NO_SPACE),
            (zero, flag::FAST_ZERO, 0, 4096, error::NOT_SUPPORTED),
            (command::FLUSH, 0, 0, 1, error::INVALID),
            (command::BLOCK_STATUS, 0, 0, 0, error::INVALID),
            (77, 0, 0, 512, error::INVALID),
        ] {
            client.request(command, flags, offset, bytes);
            assert_eq!(client.done(), Err(why), "command {command} of {bytes} B at {offset}");
        }
        // The data of a write are read past, however many.
        client.write(end, &[7; 1 << 20], 0);
        assert_eq!(client.done(), Err(error::NO_SPACE));
        client.write(0, &vec![1; wire::PAYLOAD_MAX as usize + 1], 0);
        assert_eq!(client.done(), Err(error::INVALID));
        // As much as is allowed, all at once.
        let much = (end as u32).min(wire::PAYLOAD_MAX);
        client.write(0, &vec![9; much as usize], flag::FUA);
        client.done().unwrap();
        client.request(command::READ, 0, 0, much);
        assert!(client.data(0, much as usize).unwrap().iter().all(|&byte| byte == 9));
        client.request(command::TRIM, 0, 0, end as u32);
        client.done().unwrap();
    }
}

#[test]
fn block_status_tells_what_is_allocated() {
    let served = serve("status", &fast());
    let mut client = Client::connect(&served.path);
    client.option(option::STRUCTURED_REPLY, b"");
    client.option_reply(option::STRUCTURED_REPLY);
    client.option(option::SET_META_CONTEXT, b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation");
    let (kind, data) = client.option_reply(option::SET_META_CONTEXT);
    assert_eq!((kind, &data[4..]), (reply::META_CONTEXT, &b"base:allocation"[..]));
    assert_eq!(client.option_reply(option::SET_META_CONTEXT).0, reply::ACK);
    client.go("").unwrap();
    client.structured = true;
    client.write(16384, &[1; 8192], 0);
    client.done().unwrap();
    client.request(command::BLOCK_STATUS, 0, 8192, 65536);
    assert_eq!(client.extents(), [(8192, 3), (8192, 0), (49152, 3)]);
    client.request(command::BLOCK_STATUS, flag::REQ_ONE, 8192, 65536);
    assert_eq!(client.extents(), [(8192, 3)]);
}

/// Requests that were sent before any answer was read, as a deep queue does; and answers to all when the server stops.
#[test]
fn a_deep_queue_is_answered_also_at_the_end() {
    for time in [TimeMode::Fast, TimeMode::Real] {
        let options = DriveOptions { time, ..fast() };
        let mut served = serve(&format!("deep-{time:?}"), &options);
        let mut client = connect(&served.path, false);
        // As many as the sockets hold, or the server waits for somebody to take the answers.
        for i in 0..32u64 {
            client.write(i * 4096, &[i as u8; 4096], 0);
            client.request(command::READ, 0, i * 4096, 4096);
        }
        // What has not been begun then is refused.
        wait_for_operations(&served.drives[0], 64);
        served.server.stop();
        let mut bytes = Vec::new();
        client.stream.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 32 * (2 * wire::SIMPLE_REPLY_BYTES + 4096), "{time:?}");
        assert!(!served.path.exists(), "the socket is removed");
    }
}

/// In real time an answer is not early, and the queue is not served one by one.
#[test]
fn nbd_replies_take_the_time_of_the_model() {
    let served = serve("real", &DriveOptions { time: TimeMode::Slower(20), ..fast() });
    let mut client = connect(&served.path, false);
    for i in 0..16u64 {
        client.write(i * 4096, &[1; 4096], flag::FUA);
        client.done().unwrap();
    }
    // bench-4g and ssd-mlc-2010 read a page in 25 us or more; this device is 20 times slower.
    let begun = Instant::now();
    client.request(command::READ, 0, 0, 4096);
    client.data(0, 4096).unwrap();
    let one = begun.elapsed();
    assert!(one >= Duration::from_micros(500), "{one:?}");
    let result = served.drives[0].result().unwrap();
    let modelled = result.read.latency.max_ns * 20;
    assert!(one.as_nanos() as u64 >= modelled, "{one:?} for {modelled} ns");
    drop(client);
    let mut server = served.server;
    server.stop();
    let late = served.drives[0].lateness();
    assert!(late.count >= 17 && late.p50 <= late.p99 && late.p99 <= late.max, "{late:?}");
}

#[test]
fn the_plug_closes_every_connection_and_flushed_data_are_found_again() {
    for time in [TimeMode::Fast, TimeMode::Real] {
        let served = serve(&format!("plug-{time:?}"), &DriveOptions { time, ..fast() });
        let mut clients = [connect(&served.path, true), connect(&served.path, false)];
        clients[0].write(0, &[5; 65536], 0);
        clients[0].done().unwrap();
        clients[1].request(command::FLUSH, 0, 0, 0);
        clients[1].done().unwrap();
        served.drives[0].cut().unwrap();
        for client in &mut clients {
            assert_eq!(client.stream.read(&mut [0; 1]).unwrap_or(0), 0, "{time:?}: still open");
        }
        let mut again = connect(&served.path, true);
        again.request(command::READ, 0, 0, 65536);
        assert!(again.data(0, 65536).unwrap().iter().all(|&byte| byte == 5), "{time:?}");
    }
}

/// Memory that this process cannot do without, in bytes.
fn resident_bytes() -> u64 {
    // SAFETY: it gives back what is free, and nothing else.
    unsafe { libc::malloc_trim(0) };
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A handshake and requests of every kind, as a decent client would send them.
fn decent_bytes() -> Vec<u8> {
    let mut bytes = 1u32.to_be_bytes().to_vec();
    bytes.extend(Client::option_bytes(option::LIST, b""));
    bytes.extend(Client::option_bytes(option::STRUCTURED_REPLY, b""));
    let query = b"\0\0\0\0\0\0\0\x01\0\0\0\x0fbase:allocation";
    bytes.extend(Client::option_bytes(option::SET_META_CONTEXT, query));
    bytes.extend(Client::option_bytes(option::GO, b"\0\0\0\0\0\0"));
    // All commands there are and one there is not, again and again; the last read is large enough to be sent from the media.
    let commands = [
        command::READ,
        command::WRITE,
        command::FLUSH,
        command::TRIM,
        command::CACHE,
        command::WRITE_ZEROES,
        command::BLOCK_STATUS,
        8,
    ];
    for i in 0..40 {
        let (command, large) = (commands[i % commands.len()], i == 32);
        let (offset, length) = ((i as u64) << 12, if large { 256 << 10 } else { 512 });
        let (offset, length) = if command == command::FLUSH { (0, 0) } else { (offset, length) };
        bytes.extend(Request { flags: 0, command, cookie: i as u64, offset, bytes: length }.encode());
        if command == command::WRITE {
            bytes.extend([i as u8; 512]);
        }
    }
    let leaves = Request { flags: 0, command: command::DISCONNECT, cookie: 40, offset: 0, bytes: 0 };
    bytes.extend(leaves.encode());
    bytes
}

/// Bytes that are no protocol, or break off anywhere: their connection ends, the others are served, and no memory stays
/// behind. NVLAB_FUZZ_ROUNDS sets how many connections, NVLAB_FUZZ_SEED which.
#[test]
fn hostile_clients_end_alone() {
    const GROWTH_MAX: u64 = 16 << 20;
    // One arena: of others the allocator keeps as much free memory as the largest answer that was made in each.
    // SAFETY: it changes where memory is taken from next.
    assert_eq!(unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) }, 1);
    let served = serve("hostile", &fast());
    let mut good = connect(&served.path, true);
    // Or the device's own memory would grow, as it is written for the first time.
    let end = served.drives[0].capacity_bytes();
    for offset in (0..2 * end / (1 << 20)).map(|i| (i << 20) % end).filter(|offset| offset + (1 << 20) <= end)
    {
        good.write(offset, &[1; 1 << 20], 0);
        good.done().unwrap();
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (rounds, seed) =
        (number("NVLAB_FUZZ_ROUNDS").unwrap_or(400), number("NVLAB_FUZZ_SEED").unwrap_or(11));
    let (mut rng, decent) = (Rng::new(seed), decent_bytes());
    let (mut settled, mut answered) = (0, 0);
    for round in 0..rounds {
        let mut bytes = decent.clone();
        let changes = rng.below(6);
        for _ in 0..changes {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.bits() as u8;
        }
        bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize);
        let mut client = Client::connect_raw(&served.path);
        // The server may leave in the middle of it.
        let _ = client.stream.write_all(&bytes);
        if rng.chance(0.3) {
            let _ = client.stream.shutdown(std::net::Shutdown::Write);
            client.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            match std::io::copy(&mut (&client.stream).take(1 << 20), &mut std::io::sink()) {
                Ok(bytes) => answered += bytes,
                // It may have left; it must not hang.
                Err(error) => assert_ne!(error.kind(), ErrorKind::WouldBlock, "seed {seed}, round {round}"),
            }
        }
        drop(client);
        if round % 40 == 0 {
            good.request(command::READ, 0, 4096, 4096);
            good.data(4096, 4096).unwrap();
        }
        if round == rounds / 2 {
            settled = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(settled);
    println!(
        "{rounds} connections, {answered} B of answers to three in ten; {grown} B of memory more at the end"
    );
    // In the short form other tests of this process change its memory meanwhile.
    let alone = number("NVLAB_FUZZ_ROUNDS").is_some();
    assert!(!alone || grown < GROWTH_MAX, "seed {seed}: {rounds} connections left {grown} B behind");
    assert!(answered > rounds, "seed {seed}: nobody was answered");
}
