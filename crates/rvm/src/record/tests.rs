//! Records are read as they were written, whatever their headers, and only where they were written.

use super::*;
use proptest::prelude::*;

type Ranges = Vec<(u32, u64, Vec<u8>)>;

fn place(position: u64) -> Place {
    Place::new(&Status { identity: 1, generation: 2, head: 0 }, position)
}

fn encoded(ranges: &Ranges, headers: Headers, compress: bool, barrier: bool) -> Vec<u8> {
    let bytes: usize = ranges.iter().map(|(_, _, data)| 64 + data.len()).sum();
    let mut out = vec![0; 80 + bytes];
    let mut encoder = Encoder::new(&mut out, headers);
    ranges.iter().for_each(|(segment, offset, data)| encoder.range(*segment, *offset, data));
    let bytes = encoder.finish(place(40), barrier, compress, 9);
    assert!(out[bytes..].iter().all(|byte| *byte == 0));
    out.truncate(bytes);
    out
}

fn decoded(record: &[u8]) -> Option<(bool, Ranges)> {
    let record = Record::check(record, place(40))?.unwrap();
    let Contents::Commit(modifications) = record.contents else { panic!("{record:?}") };
    let mut ranges = Vec::new();
    modifications.each(|range| ranges.push((range.segment, range.offset, range.data.to_vec()))).unwrap();
    Some((record.barrier, ranges))
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        ranges in prop::collection::vec(
            (0u32..4, 0..SEGMENT_BYTES_MAX - 100, prop::collection::vec(any::<u8>(), 1..90)), 0..12),
        original: bool, compress: bool, barrier: bool,
    ) {
        let headers = if original { Headers::Original } else { Headers::Compact };
        let record = encoded(&ranges, headers, compress, barrier);
        prop_assert_eq!(decoded(&record), Some((barrier, ranges)));
    }

    #[test]
    fn a_flipped_bit_of_a_record_is_noticed(bytes in 1usize..300, bit in 0usize..2000) {
        let mut record = encoded(&vec![(0, 5, vec![1; bytes])], Headers::Compact, false, false);
        let bit = bit % (record.len() * 8);
        record[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(decoded(&record), None);
    }
}

#[test]
fn a_record_checks_only_at_its_place() {
    let record = encoded(&vec![(0, 5, vec![1; 30])], Headers::Compact, false, false);
    let log = Status { identity: 1, generation: 2, head: 0 };
    assert!(Record::check(&record, Place::new(&log, 40)).is_some());
    for other in [
        Place::new(&log, 44),
        Place::new(&Status { identity: 3, ..log }, 40),
        Place::new(&Status { generation: 3, ..log }, 40),
    ] {
        assert!(Record::check(&record, other).is_none());
    }
}

/// A range longer than a compact header can say takes several.
#[test]
fn long_ranges_are_split() {
    let data: Vec<u8> = (0..RANGE_BYTES_MAX + 10).map(|at| at as u8).collect();
    let record = encoded(&vec![(0, 64, data.clone())], Headers::Compact, false, false);
    let (_, ranges) = decoded(&record).unwrap();
    assert_eq!(ranges.len(), 2);
    assert_eq!((ranges[1].1, ranges[1].2.len()), (64 + RANGE_BYTES_MAX as u64, 10));
    assert!(ranges.iter().flat_map(|(_, _, data)| data).eq(&data));
}

/// The sizes of system 001 (slides 28, 29, 40).
#[test]
fn headers_have_the_sizes_of_the_paper() {
    let cpp: Ranges = (0..4).map(|range| (0, range * 1000, vec![1; 112])).collect();
    let sidney: Ranges =
        (0..7).map(|range| (0, range * 1000, vec![1; 11 + usize::from(range < 3)])).collect();
    let sizes = |headers| [&cpp, &sidney].map(|ranges| encoded(ranges, headers, false, false).len());
    assert_eq!((sizes(Headers::Original), sizes(Headers::Compact)), ([748, 548], [488, 144]));
}
