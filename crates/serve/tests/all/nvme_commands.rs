//! Commands of the NVM command set against a host of its own: data in capsules and when asked for, digests, ranges that are
//! wrong, power cuts, real time.

use crate::common::{Folder, design};
use crate::nvme::{DESIGNS, Running, connected, fast, identify, log_page, serve, u64_at};
use crate::nvme_client::{BLOCK, Host, Wish, blocks, command};
use nvlab_serve::TimeMode;
use nvlab_serve::nvme::{NvmeServer, Options};
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_units::Rng;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// The health log counts over all of it. A shutdown makes durable what was answered; a cut without it loses what a write cache may lose, and nothing more.
#[test]
fn nothing_that_was_made_durable_is_lost() {
    let folder = Folder::new("nvme-durable");
    let state = |time| DriveOptions { state: Some(folder.0.join("state")), time, ..fast() };
    let (name, sets) = DESIGNS[0];
    let mut rng = Rng::new(4);
    let mut model = vec![0u8; 2000 * BLOCK];
    let (mut power_cycles, mut unsafe_shutdowns, mut writes) = (0, 0, 0);
    for round in 0..6 {
        let drive = Arc::new(Drive::open(name, &design(name, sets), &state(TimeMode::Fast)).unwrap());
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = NvmeServer::start(local, vec![Arc::clone(&drive)], Options::default()).unwrap();
        let served = Running { server, drives: vec![drive] };
        let (mut admin, mut io) = connected(&served, Wish::default());
        assert!(io.read(1, 0, 2000).unwrap() == model, "round {round}");
        power_cycles += 1;
        // Except every third time it was not switched off in good order before.
        unsafe_shutdowns += u64::from(round % 3 != 0);
        let health = log_page(&mut admin, 2, 1, 512).unwrap();
        let found = [80, 112, 144].map(|at| u64_at(&health, at));
        assert_eq!(found, [writes, power_cycles, unsafe_shutdowns], "round {round}");
        writes += 60;
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
        if round % 3 < 2 {
            power_cycles += 1;
            unsafe_shutdowns += 1;
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
