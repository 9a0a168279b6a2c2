//! Times by hand: c = 100 ns, r = 60 ns, 3 ns a word on the data bus; 2 us of firmware, 25 us for cells, 25 ns/B.

use crate::cached::device::{AMPLE, LINE, LINE_WORDS, Setup};
use nvlab_controller::Controller;
use nvlab_units::{Extent, Lpa, Span, Time};

fn setup() -> Setup {
    Setup {
        sets: 4,
        ways: 2,
        line_units: 1,
        dirty_lines_max: 8,
        prefetch_lines: 0,
        write_backs: 2,
        backup: AMPLE,
        buffer: Some(true),
    }
}

const fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}
/// A line over the data bus.
const LINE_NS: u64 = LINE_WORDS as u64 * 3;

#[test]
fn hits_take_the_link_and_the_memory() {
    let mut device = setup().device();
    let mut word = [0; 8];
    device.write(Time::ZERO, Extent::one(Lpa(0)), &[7; LINE as usize]).unwrap();
    let load = device.load(ns(1000), 0, 8, &mut word).unwrap();
    assert_eq!((load.end, word), (ns(1000 + 100 + 60 + 3), [7; 8]));
    assert_eq!(device.store(ns(2000), 8, 8, &[1; 8]).unwrap().end, ns(2000 + 100), "a store is posted");
    // The next access finds the data bus free again: three words, one after the other.
    let mut three = [0; 24];
    let load = device.load(ns(3000), 0, 24, &mut three).unwrap();
    assert_eq!(load.end, ns(3000 + 3 * 163));
    assert_eq!(three[8..16], [1; 8]);
    // Parts of two words are two accesses.
    assert_eq!(device.load(ns(5000), 4, 8, &mut word).unwrap().end, ns(5000 + 2 * 163));
    // Whole lines: one first access, then the data bus.
    let mut line = [0; LINE as usize];
    assert_eq!(device.read(ns(6000), Extent::one(Lpa(0)), &mut line).unwrap().end, ns(6000 + 60 + LINE_NS));
    assert_eq!(device.write(ns(7000), Extent::one(Lpa(0)), &line).unwrap().end, ns(7000));
}

#[test]
fn a_miss_is_a_read_behind_and_a_line_on_the_data_bus() {
    let setup = setup();
    let mut device = setup.device();
    device.write(Time::ZERO, Extent { start: Lpa(0), count: 1 }, &[7; LINE as usize]).unwrap();
    let now = device.flush(Time::ZERO).unwrap().end;
    // Two other lines of the set replace it.
    let mut now = now + Span::from_ms(100);
    for line in [4, 8] {
        device.write(now, Extent::one(Lpa(line)), &[1; LINE as usize]).unwrap();
    }
    now = device.flush(now).unwrap().end + Span::from_ms(100);
    let mut alone = device.behind().clone();
    let read = alone.read(now + Span::from_ns(100), Extent::one(Lpa(0)), &mut [0; LINE as usize]).unwrap();
    let behind = read.end.since(now).ns();
    // Firmware, cells, the unit over the channel.
    assert_eq!(behind, 100 + 2_000 + 25_000 + LINE as u64 * 25);
    let miss = device.load(now, 0, 8, &mut [0; 8]).unwrap();
    assert_eq!(miss.end.since(now).ns(), behind + LINE_NS + 63);
    assert_eq!(device.stats().fetched, 1);
    // A store that misses waits for its line, then is posted.
    now += Span::from_ms(100);
    let read =
        device.behind().clone().read(now + Span::from_ns(100), Extent::one(Lpa(12)), &mut [0; LINE as usize]);
    let ready = read.unwrap().end + Span::from_ns(LINE_NS);
    assert_eq!(device.store(now, 12 * LINE as u64, 8, &[2; 8]).unwrap().end, ready);
    // Who comes while it is on its way waits for it, and no longer.
    let load = device.load(now + Span::from_us(1), 12 * LINE as u64, 8, &mut [0; 8]).unwrap();
    assert_eq!(load.end, ready + Span::from_ns(63));
}

/// Neighbours that are missing are read together: from one page of the cells.
#[test]
fn neighbours_are_read_together() {
    let mut device = setup().device();
    let data = [3; 4 * LINE as usize];
    device.write(Time::ZERO, Extent { start: Lpa(0), count: 4 }, &data).unwrap();
    let mut now = device.flush(Time::ZERO).unwrap().end;
    let others = [9; 8 * LINE as usize];
    device.write(now, Extent { start: Lpa(16), count: 8 }, &others).unwrap();
    now = device.flush(now).unwrap().end + Span::from_ms(10);
    let before = device.behind().nand().stats().reads;
    let mut read = [0; 4 * LINE as usize];
    device.read(now, Extent { start: Lpa(0), count: 4 }, &mut read).unwrap();
    assert_eq!(read, data);
    assert_eq!(device.behind().nand().stats().reads - before, 2, "two pages of two units");
}

/// With places for two lines on their way back, the store that makes too many lines dirty waits for one of them.
#[test]
fn stores_wait_when_too_many_lines_are_dirty() {
    let setup = Setup { dirty_lines_max: 2, ..setup() };
    let mut device = setup.device();
    let now = ns(0);
    for line in 0..4 {
        let end = device.write(now, Extent::one(Lpa(line)), &[1; LINE as usize]).unwrap().end;
        // Posted, each when the data bus takes it; the third and the fourth have a place for what they displace.
        assert!(end.since(now) <= Span::from_ns(4 * (60 + LINE_NS)), "line {line}: {}", end.since(now));
    }
    assert_eq!(device.stats().written_back, 2);
    let fifth = device.write(now, Extent::one(Lpa(4)), &[1; LINE as usize]).unwrap().end;
    // 2 us of firmware and 1 us in its buffer: when the first of the two was accepted.
    assert!((3_000..3_500).contains(&fifth.since(now).ns()), "{}", fifth.since(now));
    assert_eq!(device.dirty_lines(), 2);
}

/// Along a stride nothing but the beginning is missing, and a line is there when it is wanted if the program is slow
/// enough.
#[test]
fn a_stride_is_fetched_ahead() {
    for stride in [1, 3] {
        let setup = Setup { sets: 16, prefetch_lines: 8, ..setup() };
        let mut device = setup.device();
        let (mut now, mut late) = (ns(0), 0);
        for nth in 0..60u64 {
            let end = device.load(now, nth * stride * LINE as u64, 8, &mut [0; 8]).unwrap().end;
            late += (end.since(now).ns() > 163) as u32;
            now = end + Span::from_us(100);
        }
        assert_eq!((device.stats().fetched, late), (3, 3), "stride {stride}");
        let stats = device.stats();
        assert!(stats.ahead_used == 57 && stats.fetched_ahead <= 57 + 8, "{stats:?}");
    }
}
