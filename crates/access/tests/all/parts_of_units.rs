//! Reads and writes of any bytes, on a device of whole units, against a plain array.

use crate::common::{self, DIRECT, page_map};
use nvlab_access::{Attached, BlockDevice, HostPath};
use nvlab_controller::PageMap;
use nvlab_medium::MemStore;
use nvlab_units::{Geometry, Rate, Span, Time};

fn device(path: HostPath) -> Attached<PageMap<MemStore>> {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 16,
        pages_per_block: 8,
        units_per_page: 1,
        unit_bytes: 512,
    };
    page_map(geometry, 64, path)
}

#[test]
fn parts_of_units_behave_like_an_array() {
    let mut device = device(DIRECT);
    common::any_bytes_against_an_array(&mut device, 4000);
    assert!(device.unaligned_bytes() > 0);
}

#[test]
fn a_part_of_a_unit_costs_a_read_and_the_link_its_time() {
    let mut device = device(HostPath {
        rate: Some(Rate::from_bytes_per_second(512_000_000)),
        rate_write: Some(Rate::from_bytes_per_second(512_000_000)),
        full_duplex: false,
        overhead: Span::from_us(3),
        ..DIRECT
    });
    let first = device.write(Time::ZERO, 0, 512, &[1; 512]).unwrap();
    assert_eq!(first.end, Time::from_ns(3_000 + 1_000 + 200_000), "overhead, transfer, program");
    let part = device.write(first.end, 10, 256, &[2; 256]).unwrap();
    assert_eq!(part.end, first.end + Span::from_ns(3_000 + 500 + 25_000 + 200_000), "and a read before it");
    assert_eq!(device.unaligned_bytes(), 256);
    let trim = device.trim(part.end, 1, 511).unwrap();
    assert_eq!(trim.end, part.end + Span::from_us(3), "no whole unit lies inside");
    let error = device.read(trim.end, 64 * 512 - 1, 2, &mut [0; 2]).unwrap_err();
    assert_eq!(error.to_string(), "units 63 to 65 are out of range: the device ends at 64");
}

/// The front end takes requests up one after the other, whatever the dies could do.
#[test]
fn a_request_occupies_the_front_end() {
    let path = HostPath { overhead: Span::from_us(3), command: Span::from_us(2), ..DIRECT };
    let mut device = device(path);
    let mut read = |at| device.read(Time::from_ns(at), 0, 512, &mut [0; 512]).unwrap().end;
    // Unmapped: nothing is read from the cells.
    assert_eq!([0, 0, 0].map(&mut read), [5_000, 7_000, 9_000].map(Time::from_ns));
    assert_eq!([20_000, 21_000].map(&mut read), [25_000, 27_000].map(Time::from_ns));
}

/// A write may occupy it for longer; the read after it waits.
#[test]
fn a_write_occupies_the_front_end_for_a_time_of_its_own() {
    let path = HostPath { command: Span::from_us(2), command_write: Span::from_us(5), ..DIRECT };
    let mut device = device(path);
    let write = device.write(Time::ZERO, 0, 512, &[1; 512]).unwrap();
    assert_eq!((write.start, write.end), (Time::from_ns(5_000), Time::from_ns(5_000 + 200_000)));
    let read = device.read(Time::from_ns(1_000), 1024, 512, &mut [0; 512]).unwrap();
    assert_eq!(read.end, Time::from_ns(7_000), "unmapped: nothing is read from the cells");
}
