//! NVRamDisk: its delays on the wall clock, in this process and over NBD, and what survives the power.

use crate::common::{Folder, design};
use crate::nbd_client::connect;
use nvlab_serve::nbd::wire::command;
use nvlab_serve::nbd::{Address, Export, NbdServer};
use nvlab_serve::served::Start;
use nvlab_serve::{Drive, DriveOptions, TimeMode};
use nvlab_units::Rng;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BYTES: usize = 1 << 20;
const BLOCK: usize = 4096;
/// What the design takes for 4 KiB: 67 ns and 215 ns of the memory, 640 ns of the bus.
const READ: Duration = Duration::from_nanos(707);
const WRITE: Duration = Duration::from_nanos(855);

fn disk(sets: &[&str], state: Option<&Path>, time: TimeMode) -> Drive {
    let design = design("nvramdisk", &[&["media.dram.size=1MiB"], sets].concat());
    let options =
        DriveOptions { state: state.map(Path::to_path_buf), seed: 1, time, ..DriveOptions::default() };
    Drive::open("nvramdisk", &design, &options).unwrap()
}

/// Delays from under a microsecond, which are busy waits, to a millisecond, which is slept for.
#[test]
fn a_request_takes_no_less_than_its_delay() {
    for times in [1, 20, 1000] {
        let drive = disk(&[], None, TimeMode::Slower(times));
        let (session, mut rng) = (drive.session(), Rng::new(1));
        let (mut block, count) = ([7; BLOCK], 2000 / times.min(20));
        for _ in 0..count {
            let offset = rng.below((BYTES / BLOCK) as u64) * BLOCK as u64;
            let writes = rng.chance(0.5);
            let begun = Instant::now();
            let due = match writes {
                true => drive.write(session, offset, &block, false),
                false => drive.read(session, offset, &mut block),
            };
            drive.hold(due.unwrap());
            let (took, asked) = (begun.elapsed(), if writes { WRITE } else { READ } * times);
            assert!(took >= asked, "{took:?} instead of {asked:?}");
        }
        let late = drive.lateness();
        println!("delays x{times}: {late:?}");
        assert_eq!(late.count, count as u64);
        assert!(late.p50 <= late.p99 && late.p99 <= late.max && late.mean <= late.max, "{late:?}");
        // Other programs may take the core: a forgotten unit would be a thousand times too long.
        assert!(late.p50 < nvlab_units::Span::from_ms(1), "{late:?}");
    }
}

/// Every reply over NBD is that of a plain array, and comes no earlier than the device's; the plug, and a server that is
/// killed, lose nothing that was acknowledged.
#[test]
fn nvramdisk_serves_what_was_written_and_a_cut_loses_nothing() {
    let folder = Folder::new("nvramdisk");
    let (socket, state) = (folder.0.join("socket"), folder.0.join("state"));
    let drive = Arc::new(disk(&[], Some(&state), TimeMode::Real));
    let export = Export { name: "nvramdisk".into(), drive: Arc::clone(&drive) };
    let server = NbdServer::start(&Address::Unix(socket.clone()), vec![export]).unwrap();
    let (mut rng, mut model) = (Rng::new(7), vec![0u8; BYTES]);
    for session in 0..3 {
        let mut client = connect(&socket, session == 1);
        for _ in 0..400 {
            let blocks = 1 + rng.below(3) as usize;
            let offset = rng.below((BYTES / BLOCK - blocks) as u64) as usize * BLOCK;
            let bytes = blocks * BLOCK;
            let begun = Instant::now();
            if rng.chance(0.5) {
                let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
                client.write(offset as u64, &data, 0);
                client.done().unwrap();
                model[offset..][..bytes].copy_from_slice(&data);
                assert!(begun.elapsed() >= WRITE);
            } else {
                client.request(command::READ, 0, offset as u64, bytes as u32);
                let found = client.data(offset as u64, bytes).unwrap();
                assert!(begun.elapsed() >= READ);
                assert!(found == model[offset..][..bytes], "session {session}, offset {offset}");
            }
        }
        drive.cut().unwrap();
    }
    let late = drive.lateness();
    println!("over NBD: {late:?}");
    assert_eq!(late.count, 1200);
    drop(server);
    // Not closed: as if the server had been killed.
    drop(drive);
    let again = disk(&[], Some(&state), TimeMode::Fast);
    assert_eq!(again.start(), Start::Killed);
    let mut found = vec![0; BYTES];
    again.read(again.session(), 0, &mut found).unwrap();
    assert!(found == model);
}

/// Plain DRAM: the plug takes everything.
#[test]
fn without_a_battery_nothing_survives() {
    let drive = disk(&["media.dram.backup=none"], None, TimeMode::Fast);
    drive.write(drive.session(), 0, &[7; BLOCK], true).unwrap();
    drive.cut().unwrap();
    let mut found = [7; BLOCK];
    drive.read(drive.session(), 0, &mut found).unwrap();
    assert!(found.iter().filter(|&&byte| byte == 7).count() < BLOCK / 8, "it survived");
}
