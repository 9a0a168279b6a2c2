//! What requests take, by hand: cells, channel, ring, tags, bursts, posted writes.

use crate::array::UNIT;
use crate::scm::device::{Setup, setups};
use nvlab_controller::scm::{Bursts, Posting, ScmConfig};
use nvlab_controller::{Controller, Scm};
use nvlab_medium::banks::Access;
use nvlab_medium::pcm::{Pcm, PcmConfig};
use nvlab_units::{Extent, Lpa, Span, Time};

const OVERHEAD: u64 = 40;
/// A unit of 32 B over channel or ring at 4 GB/s.
const MOVE: u64 = 8;
const READ: u64 = 67;
const PROGRAM: u64 = 215;

fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// Two memories of one bank, a unit in turn on each.
fn setup() -> Setup {
    Setup { controllers: 2, banks: 1, split_units: 1, posted: None, ..setups()[0].clone() }
}

fn device(change: impl Fn(&mut ScmConfig)) -> Scm<Pcm<()>> {
    let mut config = setup().config(4096);
    change(&mut config);
    Scm::new(config, vec![setup().pcm(|_| ()), setup().pcm(|_| ())]).unwrap()
}

fn unit(start: u32) -> Extent {
    Extent::one(Lpa(start))
}

#[test]
fn a_request_alone_is_the_sum_of_its_steps() {
    let mut device = device(|_| ());
    let read = device.read(Time::ZERO, unit(0), &mut []).unwrap();
    assert_eq!((read.start, read.end), (ns(OVERHEAD), ns(OVERHEAD + READ + 2 * MOVE)));
    let write = device.write(ns(1000), unit(1), &[]).unwrap();
    assert_eq!(write.end, ns(1000 + OVERHEAD + 2 * MOVE + PROGRAM));
    assert_eq!(device.flush(ns(1010)).unwrap().end, write.end);
    assert_eq!(device.flush(ns(5000)).unwrap().end, ns(5000 + OVERHEAD));
}

#[test]
fn memories_work_in_parallel_and_share_the_ring() {
    let mut device = device(|_| ());
    let read = device.read(Time::ZERO, Extent { start: Lpa(0), count: 2 }, &mut []).unwrap();
    assert_eq!(read.end, ns(OVERHEAD + READ + MOVE + 2 * MOVE), "two cells and channels, one ring");
    // The same memory twice: one bank after the other, and the second transfer hides behind its cells.
    let mut one = self::device(|_| ());
    one.read(Time::ZERO, unit(0), &mut []).unwrap();
    let second = one.read(Time::ZERO, unit(2), &mut []).unwrap();
    assert_eq!(second.end, ns(OVERHEAD + 2 * READ + 2 * MOVE));
}

#[test]
fn a_part_waits_for_the_tag_of_the_one_so_many_before() {
    let ends = |tags: u32| {
        let mut device = device(|config| config.tags = tags);
        [0, 1].map(|start| device.read(Time::ZERO, unit(start), &mut []).unwrap().end)
    };
    let alone = OVERHEAD + READ + 2 * MOVE;
    assert_eq!(ends(2), [ns(alone), ns(alone + MOVE)], "the ring is all that is shared");
    assert_eq!(ends(1), [ns(alone), ns(2 * alone - OVERHEAD)], "one after the other");
}

#[test]
fn bursts_go_in_rounds() {
    let bursts = Bursts { bytes: 8, outstanding: 2, latency: Span::from_ns(100), row_bytes: None };
    let mut device = device(|config| config.bursts = Some(bursts));
    // 4 bursts, 2 at a time.
    let read = device.read(Time::ZERO, unit(0), &mut []).unwrap();
    assert_eq!(read.end, ns(OVERHEAD + 200));
    let quick = Bursts { outstanding: 4, latency: Span::from_ns(10), ..bursts };
    let mut device = self::device(|config| config.bursts = Some(quick));
    let read = device.read(Time::ZERO, unit(0), &mut []).unwrap();
    assert_eq!(read.end, ns(OVERHEAD + READ + 2 * MOVE), "the memory is the slower");
}

/// A memory of rows of 128 B, read by a processor that has two bursts of 32 B in flight.
fn rows(banks: u32) -> Scm<Pcm<()>> {
    let memory = PcmConfig {
        read: Access { first: Span::from_ns(READ), next: Span::ZERO },
        words_per_step: 4,
        wear: None,
        ..setup().pcm::<()>(|_| ()).config().clone()
    };
    let turn = Span::from_ns(MOVE);
    let bursts = Bursts { bytes: 32, outstanding: 2, latency: turn, row_bytes: Some(128) };
    let config = ScmConfig { split_bytes: 128, ring: None, bursts: Some(bursts), ..setup().config(4096) };
    let config = ScmConfig { logical_units: 128, ..config };
    Scm::new(config, vec![Pcm::new(PcmConfig { banks, ..memory }, ())]).unwrap()
}

#[test]
fn cells_are_waited_for_once_in_a_row() {
    const ROW: u64 = READ + 4 * MOVE;
    let read =
        |banks, count| rows(banks).read(Time::ZERO, Extent { start: Lpa(0), count }, &mut []).unwrap().end;
    assert_eq!(read(2, 1), ns(OVERHEAD + READ + MOVE));
    assert_eq!(read(2, 4), ns(OVERHEAD + ROW), "one row");
    // The second is opened when the burst two before it has left; the third, in the bank of the first, likewise.
    assert_eq!(read(2, 8), ns(OVERHEAD + 2 * ROW - 2 * MOVE));
    assert_eq!(read(2, 12), ns(OVERHEAD + 3 * ROW - 4 * MOVE));
    // In one bank not before the first is closed.
    assert_eq!(read(1, 8), ns(OVERHEAD + 2 * ROW));
    // A write waits for no cells but those that it programs.
    let write = rows(2).write(Time::ZERO, Extent { start: Lpa(0), count: 8 }, &[]).unwrap();
    assert_eq!(write.end, ns(OVERHEAD + 8 * MOVE + PROGRAM));
}

#[test]
fn a_row_stays_open_until_its_bursts_have_left() {
    let mut device = rows(2);
    let mut read = |start| device.read(Time::ZERO, Extent { start, count: 4 }, &mut []).unwrap().end;
    let first = OVERHEAD + READ + 4 * MOVE;
    assert_eq!(read(Lpa(0)), ns(first));
    assert_eq!(read(Lpa(4)), ns(first + 4 * MOVE), "another bank: its bursts follow on the channel");
    assert_eq!(read(Lpa(8)), ns(first + READ + 4 * MOVE), "the bank of the first");
}

/// Banks bound what many requests get: requests x (cells + bursts) / banks, where the channel takes less.
#[test]
fn many_requests_wait_for_banks() {
    const COUNT: u64 = 4000;
    let (mut device, mut rng, mut ends) = (rows(2), nvlab_units::Rng::new(3), vec![Time::ZERO; 32]);
    for _ in 0..COUNT {
        let row = Extent { start: Lpa(rng.below(32) as u32 * 4), count: 4 };
        let next = ends.iter_mut().min().unwrap();
        *next = device.read(*next, row, &mut []).unwrap().end;
    }
    let took = ends.into_iter().max().unwrap().since(Time::ZERO).ps() as f64;
    let bound = (COUNT * (READ + 4 * MOVE) * 1000) as f64 / 2.0;
    // Above it only because the two banks wait for each other's bursts on the channel.
    assert!((1.0..1.2).contains(&(took / bound)), "{}", took / bound);
}

#[test]
fn posted_writes_are_acknowledged_when_they_have_room() {
    let posted = Posting { bytes: 2 * UNIT as u32, protected: true };
    let mut device = device(|config| config.posted = Some(posted));
    let mut write = || device.write(Time::ZERO, unit(0), &[]).unwrap().end;
    let arrived = OVERHEAD + 2 * MOVE;
    assert_eq!(write(), ns(arrived));
    assert_eq!(write(), ns(arrived + MOVE), "behind the first on the ring");
    // No room until the first is programmed.
    assert_eq!(write(), ns(arrived + PROGRAM));
    assert_eq!(write(), ns(arrived + 2 * PROGRAM));
    assert_eq!(device.flush(Time::ZERO).unwrap().end, ns(arrived + 4 * PROGRAM));
}

#[test]
fn a_trim_writes_zeros_from_within() {
    let mut device = device(|_| ());
    let trim = device.trim(Time::ZERO, unit(0)).unwrap();
    assert_eq!(trim.end, ns(OVERHEAD + PROGRAM));
    assert_eq!(device.stats().trimmed_units, 1);
    assert_eq!(device.memories().map(|memory| memory.stats().write.count).sum::<u64>(), 1);
}
