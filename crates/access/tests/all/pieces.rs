//! A link takes over the parts of a request one by one, by hand.

use nvlab_access::{Attached, BlockDevice, HostPath};
use nvlab_controller::bare_ram::BareRam;
use nvlab_controller::scm::ScmConfig;
use nvlab_controller::{Controller, Scm};
use nvlab_medium::banks::Access;
use nvlab_medium::ram::{Backup, Ram, RamConfig};
use nvlab_units::{Rate, Span, Time};

const READ: u64 = 67;
const WRITE: u64 = 215;
/// A unit of 512 B over channel or ring at 4 GB/s.
const RING: u64 = 128;
/// The same over the link at 2 GB/s.
const LINK: u64 = 256;

fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

fn rate(gigabytes: u64) -> Option<Rate> {
    Some(Rate::from_bytes_per_second(gigabytes * 1_000_000_000))
}

fn memory(banks: u32) -> Ram<()> {
    let access = |first| Access { first: Span::from_ns(first), next: Span::ZERO };
    let config = RamConfig {
        capacity_bytes: 64 << 10,
        word_bytes: 64,
        read: access(READ),
        write: access(WRITE),
        backup: Backup::Battery { hold: None },
        banks,
        stripe_bytes: 1024,
        seed: 1,
    };
    Ram::new(config, ())
}

fn attached<C: Controller>(controller: C) -> Attached<C> {
    let (overhead, command) = (Span::ZERO, Span::ZERO);
    Attached::new(
        controller,
        HostPath {
            rate: rate(2),
            rate_write: rate(2),
            full_duplex: true,
            overhead,
            command,
            command_write: command,
        },
    )
}

/// Two memories on a ring, a unit in turn on each.
fn on_a_ring() -> Attached<Scm<Ram<()>>> {
    let config = ScmConfig {
        unit_bytes: 512,
        logical_units: 256,
        split_bytes: 512,
        channel: rate(4),
        ring: rate(4),
        tags: 64,
        bursts: None,
        posted: None,
        trim: true,
        overhead: Span::ZERO,
    };
    attached(Scm::new(config, vec![memory(64), memory(64)]).unwrap())
}

#[test]
fn a_part_is_on_the_link_while_the_next_is_on_the_ring() {
    let read = |units: u32| on_a_ring().read(Time::ZERO, 0, units * 512, &mut []).unwrap().end;
    let first = READ + 2 * RING;
    assert_eq!(read(1), ns(first + LINK), "a part alone is the sum of its steps");
    assert_eq!(read(2), ns(first + 2 * LINK));
    // As fast as the slowest stage, plus one part on each other.
    assert_eq!(read(100), ns(first + 100 * LINK));
    let write = |units: u32| on_a_ring().write(Time::ZERO, 0, units * 512, &[]).unwrap().end;
    assert_eq!(write(1), ns(LINK + 2 * RING + WRITE));
    assert_eq!(write(100), ns(100 * LINK + 2 * RING + WRITE));
}

#[test]
fn what_is_not_whole_units_crosses_in_one_piece() {
    let read = on_a_ring().read(Time::ZERO, 256, 512, &mut []).unwrap().end;
    assert_eq!(read, ns(READ + 2 * RING + RING + LINK), "two units from the ring, then half of each");
    let write = on_a_ring().write(Time::ZERO, 256, 256, &[]).unwrap().end;
    assert_eq!(write, ns(LINK / 2 + READ + 2 * RING + 2 * RING + WRITE));
}

#[test]
fn rows_of_a_ram_disk_leave_one_by_one_and_stay_open_until_then() {
    let ram_disk = |banks| attached(BareRam::new(memory(banks)));
    const ROW: u64 = 2 * LINK;
    let read = |banks, rows: u32| ram_disk(banks).read(Time::ZERO, 0, rows * 1024, &mut []).unwrap().end;
    assert_eq!(read(2, 1), ns(READ + ROW));
    assert_eq!(read(2, 2), ns(READ + 2 * ROW), "in two banks at the same time");
    assert_eq!(read(2, 3), ns(READ + 3 * ROW), "the third is opened while the second leaves");
    // In the bank of the row before, which is closed first.
    let mut disk = ram_disk(2);
    let mut read = |offset| disk.read(Time::ZERO, offset, 1024, &mut []).unwrap().end;
    assert_eq!([read(0), read(2048)], [ns(READ + ROW), ns(2 * (READ + ROW))]);
    let write = ram_disk(2).write(Time::ZERO, 0, 4096, &[]).unwrap().end;
    assert_eq!(write, ns(4 * ROW + WRITE));
    // With a single bank, all is one row.
    let mut one = ram_disk(1);
    assert_eq!(one.read(Time::ZERO, 0, 4096, &mut []).unwrap().end, ns(READ + 4 * ROW));
    assert_eq!(one.read(Time::ZERO, 0, 512, &mut []).unwrap().end, ns(2 * READ + 4 * ROW + LINK));
}
