//! Hosts that mean harm: PDUs that are random, mutated, too long, too short or out of order. Whatever they send, others are
//! served. `NVLAB_TEST_CONNECTIONS=1000000` makes it as many, `NVLAB_TEST_SEED` others.

use crate::common::design;
use crate::nvme_client::{BLOCK, Host, Wish, blocks, command};
use nvlab_serve::TimeMode;
use nvlab_serve::nvme::{NvmeServer, Options};
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_units::Rng;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

fn serve() -> NvmeServer {
    let options = DriveOptions { time: TimeMode::Fast, ..DriveOptions::default() };
    let design = design("bench-4g", &["media.nand.blocks=96", "ftl.spare=30%"]);
    let drive = Drive::open("bench-4g", &design, &options).unwrap();
    let quiet = Options { log: nvlab_serve::nbd::Log::to(|_| {}), ..Options::default() };
    NvmeServer::start(SocketAddr::from(([127, 0, 0, 1], 0)), vec![Arc::new(drive)], quiet).unwrap()
}

/// A connection in one of the states that it goes through.
fn in_state(server: &NvmeServer, admin: &Host, state: u64) -> Host {
    let (address, nqn) = (server.address(), server.nqn());
    match state {
        0 => Host::raw(address),
        1 => Host::initialized(address, Wish::default()),
        2 => Host::admin(address, nqn, Wish::default(), 0),
        // Each has its own number, as long as the one before may still be there.
        state => Host::io(address, nqn, Wish::default(), admin.controller, state as u16 % 14 + 2),
    }
}

/// The fatal error that ends a connection.
fn fatal_error(host: &mut Host) -> (u16, u32) {
    loop {
        let pdu = host.pdu();
        if pdu.kind == 3 {
            assert!(host.is_closed());
            let header = &pdu.header;
            return (header[8] as u16, u32::from_le_bytes(header[10..14].try_into().unwrap()));
        }
    }
}

#[test]
fn fatal_errors_are_named() {
    let server = serve();
    let admin = Host::admin(server.address(), server.nqn(), Wish::default(), 0);
    let capsule = |length: u32| [&[4, 0, 72, 0][..], &length.to_le_bytes(), &[0; 64]].concat();
    let with = |mut pdu: Vec<u8>, at: usize, byte: u8| {
        pdu[at] = byte;
        pdu
    };
    let initialize = [&[0, 0, 128, 0, 128, 0, 0, 0][..], &[0; 120]].concat();
    let data = |offset: u32, bytes: u32| {
        let mut header = [&[6, 4, 24, 24][..], &(24 + bytes).to_le_bytes(), &[9; 4]].concat();
        header.extend(offset.to_le_bytes());
        header.extend(bytes.to_le_bytes());
        header.extend([0; 4]);
        header.extend(vec![0; bytes as usize]);
        header
    };
    let mut number = 3;
    for (state, sent, expected) in [
        (0, capsule(72), (2, 0)),
        (0, with(initialize.clone(), 8, 1), (6, 8)),
        (0, with(initialize.clone(), 10, 32), (1, 10)),
        (0, with(initialize.clone(), 2, 127), (1, 2)),
        (1, initialize.clone(), (2, 0)),
        (1, with(capsule(72), 0, 5), (1, 0)),
        (1, with(capsule(72), 0, 99), (1, 0)),
        (2, capsule(71), (1, 4)),
        (2, capsule(0), (1, 4)),
        (2, with(capsule(72 + 512), 3, 72), (1, 1)),
        (2, with(capsule(72 + (16 << 10)), 3, 72), (5, 4)),
        (3, with(capsule(72 + (1 << 20)), 3, 72), (5, 4)),
        (3, with(capsule(u32::MAX), 3, 72), (5, 4)),
        (3, with(capsule(72), 1, 1), (1, 1)),
        (3, data(0, 512), (1, 10)),
    ] {
        number += u64::from(state == 3);
        let mut host = in_state(&server, &admin, if state == 3 { number } else { state });
        // An admin capsule with data and the flag of a digest that was not agreed.
        let sent = if expected == (1, 1) { with(sent, 1, 3) } else { sent };
        host.stream.write_all(&sent).unwrap();
        assert_eq!(fatal_error(&mut host), expected, "{state}: {:?}", &sent[..16]);
    }
    // Data that were asked for, at a wrong place or too long.
    for (offset, bytes, expected) in [(512, 512, (4, 12)), (0, 4608, (4, 16)), (0, 4096, (1, 1))] {
        number += 1;
        let mut host = in_state(&server, &admin, number);
        host.ask(blocks(0x01, 1, 0, 8, 0), 8 * BLOCK);
        let ready = host.pdu();
        let mut pdu = data(offset, bytes);
        pdu[8..12].copy_from_slice(&ready.header[8..12]);
        if expected == (1, 1) {
            // All of them, but not the last.
            pdu[1] = 0;
        }
        host.stream.write_all(&pdu).unwrap();
        assert_eq!(fatal_error(&mut host), expected);
    }
}

#[test]
fn whatever_a_host_sends_others_are_served() {
    let server = serve();
    let (address, nqn) = (server.address(), server.nqn());
    let good = Host::admin(address, nqn, Wish::default(), 0);
    let mut io = Host::io(address, nqn, Wish::default(), good.controller, 1);
    assert_eq!(io.write(1, 0, &[7; 8 * BLOCK], 0).status, 0);
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seed = number("NVLAB_TEST_SEED").unwrap_or(11);
    let mut rng = Rng::new(seed);
    for round in 0..number("NVLAB_TEST_CONNECTIONS").unwrap_or(400) {
        let state = if rng.chance(0.4) { rng.below(3) } else { round + 3 };
        let mut host = in_state(&server, &good, state);
        for _ in 0..1 + rng.below(4) {
            let sent = hostile(&mut rng);
            // The server may have disconnected it already.
            if host.stream.write_all(&sent).is_err() {
                break;
            }
        }
        let _ = host.stream.shutdown(Shutdown::Write);
        host.stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
        let mut rest = Vec::new();
        // It ends: nothing is waited for that could not come any more.
        if let Err(error) = host.stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "seed {seed}, round {round}");
        }
        if round % 16 == 0 {
            let found = io.read(1, 100_000, 8).unwrap();
            assert_eq!(found.len(), 8 * BLOCK);
        }
    }
    assert_eq!(io.run(command(0x00, 1, &[])).status, 0);
}

/// A few PDUs: valid ones, mutated, cut short, or bytes of no meaning.
fn hostile(rng: &mut Rng) -> Vec<u8> {
    let mut sent = Vec::new();
    for _ in 0..1 + rng.below(3) {
        let mut pdu = match rng.below(6) {
            0 => (0..rng.below(300)).map(|_| rng.bits() as u8).collect(),
            1 => {
                let mut pdu = vec![0; 128];
                (pdu[2], pdu[4], pdu[11]) = (128, 128, rng.below(4) as u8);
                pdu
            }
            2 => {
                let bytes = rng.below(3) as u32 * 256;
                let mut pdu = vec![0; 24 + bytes as usize];
                pdu[..4].copy_from_slice(&[6, 4, 24, 24]);
                pdu[4..8].copy_from_slice(&(24 + bytes).to_le_bytes());
                pdu[16..20].copy_from_slice(&bytes.to_le_bytes());
                pdu
            }
            _ => {
                let data = [0, 512, 1024, 4096][rng.below(4) as usize];
                let opcodes = [0, 1, 2, 5, 6, 8, 9, 0x0a, 0x0c, 0x7f, rng.bits() as u8];
                let mut entry =
                    command(opcodes[rng.below(11) as usize], rng.below(3) as u32, &[rng.below(200) as u32]);
                entry[32..36].copy_from_slice(&(data as u32).to_le_bytes());
                entry[39] = [0x01, 0x5a][rng.below(2) as usize];
                let offset = if data > 0 { 72 } else { 0 };
                let mut pdu = vec![4, 0, 72, offset];
                pdu.extend((72 + data as u32).to_le_bytes());
                pdu.extend(entry);
                pdu.extend((0..data).map(|_| rng.below(4) as u8));
                pdu
            }
        };
        for _ in 0..rng.below(4) {
            if !pdu.is_empty() {
                let place = rng.below(pdu.len().min(90) as u64) as usize;
                pdu[place] =
                    [0, 0xff, rng.bits() as u8, pdu[place] ^ 1 << rng.below(8)][rng.below(4) as usize];
            }
        }
        if rng.chance(0.1) {
            pdu.truncate(rng.below(pdu.len() as u64 + 1) as usize);
        }
        sent.extend(pdu);
    }
    sent
}
