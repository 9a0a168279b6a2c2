//! The column file: what was written comes back, and nothing else does.

use nvlab_trace::columns::{Columns, Origin};
use nvlab_trace::{Op, Request, nvt};
use nvlab_units::Time;
use nvlab_units::checksum::crc32c;
use proptest::prelude::*;

fn request((gap, offset, bytes, op, volume): (u64, u64, u32, u8, u16), at: &mut u64) -> Request {
    let op = Op::from_code(op).unwrap();
    *at += gap;
    let bytes = if op == Op::Flush { 0 } else { bytes.max(1) };
    let offset = if op == Op::Flush { 0 } else { offset };
    Request {
        at: Time::from_ps(*at),
        offset,
        bytes,
        op,
        fua: op == Op::Write && gap % 2 == 1,
        volume,
        ..Request::default()
    }
}

fn columns(rows: Vec<(u64, u64, u32, u8, u16)>) -> Columns {
    let mut columns = Columns::new(Origin { format: "msr".to_owned(), hash: 0x1234 });
    columns.add_volume("ä volume");
    let mut at = 0;
    rows.into_iter().for_each(|row| columns.push(request(row, &mut at)));
    columns
}

fn encoded(columns: &Columns) -> Vec<u8> {
    let mut bytes = Vec::new();
    nvt::encode(columns, &mut bytes).unwrap();
    bytes
}

fn reason(bytes: &[u8]) -> String {
    nvt::decode(bytes, "t.nvt").unwrap_err().to_string()
}

/// Several chunks, the last one short.
fn long() -> Columns {
    columns(
        (0..150_000u64)
            .map(|i| (i % 977 * 1000, i * 7919 % 100_000 * 4096, 4096, (i % 3) as u8, 1))
            .collect(),
    )
}

#[test]
fn response_times_come_back() {
    let plain = long();
    let mut columns = Columns::new(plain.origin.clone());
    columns.add_volume("ä volume");
    for (row, request) in plain.iter().enumerate() {
        columns.push_answered(request, nvlab_units::Span::from_ns(row as u64 % 100_003));
    }
    let bytes = encoded(&columns);
    assert_eq!(nvt::decode(&bytes, "t").unwrap(), columns);
    // Files without are as they always were.
    assert_eq!((bytes[8], encoded(&plain)[8]), (2, 1));
}

#[test]
fn many_rows_come_back() {
    let columns = long();
    let bytes = encoded(&columns);
    assert_eq!(nvt::decode(&bytes, "t").unwrap(), columns);
    assert!(bytes.len() < 150_000 * 8, "{} bytes for 150000 requests", bytes.len());
    let none = Columns::new(Origin::default());
    assert_eq!(nvt::decode(&encoded(&none), "t").unwrap(), none);
}

#[test]
fn every_changed_byte_is_noticed() {
    let bytes = encoded(&columns((0..50).map(|i| (i * 1000, i * 512, 512, 1, 0)).collect()));
    for at in 0..bytes.len() {
        for bit in [0, 7] {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(nvt::decode(&changed, "t").is_err(), "byte {at} bit {bit}");
        }
    }
}

#[test]
fn every_cut_is_noticed() {
    let bytes = encoded(&columns((0..50).map(|i| (i * 1000, i * 512, 512, 1, 0)).collect()));
    for length in 0..bytes.len() {
        assert!(nvt::decode(&bytes[..length], "t").is_err(), "cut to {length}");
    }
    assert_eq!(
        reason(&bytes[..bytes.len() - 1]),
        "t.nvt: damaged trace file: the file ends inside its volume column"
    );
    assert_eq!(reason(&bytes[..30]), "t.nvt: damaged trace file: the file is truncated");
    assert_eq!(reason(b"hello, world"), "t.nvt: damaged trace file: it does not start like an nvt file");
    let mut newer = bytes.clone();
    newer[8] = 3;
    assert_eq!(
        reason(&newer),
        "t.nvt: damaged trace file: its version is 3; this nvlab reads versions 1 and 2"
    );
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(reason(&changed), "t.nvt: damaged trace file: the checksum of its volume column is wrong");
    changed = bytes;
    changed[16] ^= 1;
    assert_eq!(reason(&changed), "t.nvt: damaged trace file: the checksum of its header is wrong");
}

/// A header that claims `rows` with valid checksums.
fn claiming(bytes: &[u8], rows: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[16..24].copy_from_slice(&rows.to_le_bytes());
    let end = 16 + u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let crc = crc32c(&[&bytes[..end]]).to_le_bytes();
    bytes[end..end + 4].copy_from_slice(&crc);
    bytes
}

#[test]
fn hostile_lengths_are_refused_before_memory_is_taken() {
    let bytes = encoded(&columns((0..50).map(|i| (i * 1000, i * 512, 512, 1, 0)).collect()));
    assert_eq!(
        reason(&claiming(&bytes, u64::MAX)),
        "t.nvt: damaged trace file: its header states 18446744073709551615 requests; at most 1073741824 can be read"
    );
    assert_eq!(
        reason(&claiming(&bytes, 1 << 30)),
        "t.nvt: damaged trace file: its time column is too short for its rows"
    );
    assert!(reason(&claiming(&bytes, 51)).contains("chunk of the wrong length"));
    assert!(reason(&claiming(&bytes, 49)).contains("chunk of the wrong length"));
    // Nothing follows the columns, and a header must not reach beyond the file.
    let mut endless = bytes.clone();
    endless[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(reason(&endless), "t.nvt: damaged trace file: the file is truncated");
}

proptest! {
    #[test]
    fn any_rows_come_back(rows in prop::collection::vec(
        (0u64..1 << 50, 0u64..u64::MAX - (1 << 32), any::<u32>(), 0u8..4, 0u16..2), 0..300,
    )) {
        let columns = columns(rows);
        prop_assert_eq!(nvt::decode(&encoded(&columns), "t").unwrap(), columns);
    }

    #[test]
    fn noise_is_no_column_file(noise in prop::collection::vec(any::<u8>(), 0..200), keep in 0usize..40) {
        let mut bytes = encoded(&columns(vec![(0, 0, 512, 1, 0)]));
        bytes.truncate(keep);
        bytes.extend(noise);
        prop_assert!(nvt::decode(&bytes, "t").is_err());
    }
}
