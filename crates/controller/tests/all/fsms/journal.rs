//! The journal of the sectors in PRAM over the wrap of 32 bits of its sequence.

use crate::fsms::devices::{Behind, Paged, config, cut_and_mount, separator};
use nvlab_controller::fsms::{Fsms, FsmsConfig, SECTOR, Update};
use nvlab_controller::{Background, BesidePram, Controller};
use nvlab_medium::{InPlace, PowerCut};
use nvlab_units::checksum::crc32c;
use nvlab_units::{Extent, Lpa, Span, Time};

const SECTORS: u32 = 6;
const RECORD_BYTES: u64 = 24 + SECTOR as u64;

/// Lets the journal go on from a sequence number: its record there names no slot. Not by the driver's own code.
fn journal_stands_at(device: Fsms<Paged>, sequence: u64, at: Time) -> (Fsms<Paged>, Time) {
    let ((offset, _), (_, slots)) = (device.pram_part(), device.sectors_in_pram());
    let config = device.config().clone();
    let mut record = [0; 24];
    record[..4].copy_from_slice(&(sequence as u32).to_le_bytes());
    record[8..12].fill(0xff);
    record[12..16].copy_from_slice(&((sequence >> 32) as u32).to_le_bytes());
    let crc = crc32c(&[&record[..4], &record[8..]]);
    record[4..8].copy_from_slice(&crc.to_le_bytes());
    let first = (offset + 64 + slots as u64 * 4).next_multiple_of(8);
    let mut behind = device.into_behind();
    let position = first + sequence % config.journal_records as u64 * RECORD_BYTES;
    let end = behind.pram_mut().write(at, position, 24, &record).unwrap().end;
    behind.pram_mut().settle(end);
    let (behind, ready) = cut_and_mount(behind, end);
    Fsms::mount(config, behind, ready).unwrap()
}

/// The contents of a sector: many pieces of 8 B differ from one version to the next.
fn contents(sector: u32, version: u32) -> Vec<u8> {
    (0..SECTOR as u32).map(|i| if i % 40 < 8 { (version * 7 + sector + i) as u8 } else { 1 }).collect()
}

fn sector(device: &mut Fsms<Paged>, now: Time, sector: u32) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR];
    device.read(now, Extent::one(Lpa(sector)), &mut bytes).unwrap();
    bytes
}

/// Overwrites go through the journal from `sequence` on, and the power fails in and after each of them.
fn over(sequence: u64, records: u32) {
    let regions = vec![Extent { start: Lpa(0), count: SECTORS }];
    let config = FsmsConfig { regions, journal_records: records, ..config(Update::Journalled, false) };
    let mut device = separator(config, Paged::build(1_000, 2048), 1 << 16);
    let mut now = Time::ZERO;
    for sector in 0..SECTORS {
        now = device.write(now, Extent::one(Lpa(sector)), &contents(sector, 0)).unwrap().end;
    }
    device.behind_mut().settle(now);
    (device, now) = journal_stands_at(device, sequence, now);
    let mut versions = [0; SECTORS as usize];
    for i in 0..3 * records + 8 {
        // Mostly one of two, so that the record before the newest names a sector that changed since.
        let changed = if i % 5 == 4 { 2 + i / 5 % (SECTORS - 2) } else { i % 2 };
        let version = versions[changed as usize] + 1;
        let at = now;
        now = device.write(at, Extent::one(Lpa(changed)), &contents(changed, version)).unwrap().end;
        let step = Span::from_ps(now.since(at).ps() / 50);
        for cut in (0..52).map(|step_count| at + step * step_count) {
            let (mut mounted, ready) = cut_and_mount(device.clone(), cut);
            for other in 0..SECTORS {
                let is = sector(&mut mounted, ready, other);
                let old = contents(other, versions[other as usize]);
                let under_way = other == changed && cut < now && is == contents(changed, version);
                let done = other == changed && cut >= now;
                let right = if done { is == contents(changed, version) } else { under_way || is == old };
                assert!(
                    right,
                    "sector {other}, {i} writes from {sequence} on in {records} records, cut at {cut:?}"
                );
            }
        }
        versions[changed as usize] = version;
        device.behind_mut().settle(now);
    }
}

#[test]
fn the_newest_record_is_the_newest_beyond_32_bits() {
    for records in [1, 3, 4] {
        over((1 << 32) - 5, records);
    }
}

#[test]
fn the_journal_works_from_any_sequence() {
    over(0, 4);
    over(1 << 40, 3);
}
