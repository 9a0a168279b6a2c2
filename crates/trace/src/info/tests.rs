//! Tests of the statistics of a trace.

use super::*;
use crate::columns::Origin;
use nvlab_units::Time;

#[test]
fn figures_of_a_trace_by_hand() {
    let mut columns = Columns::new(Origin { format: "msr".to_owned(), hash: 0 });
    let second = columns.add_volume("other");
    let rows = [
        (0, 0, 4096, Op::Write, 0),
        (1, 4096, 4096, Op::Write, 0),
        (2, 4096, 512, Op::Write, 0),
        (3, 100, 1000, Op::Read, 0),
        (59, 0, 0, Op::Flush, 0),
        (61, 0, 8192, Op::Trim, second),
    ];
    for (seconds, offset, bytes, op, volume) in rows {
        let at = Time::from_ps(seconds * 1_000_000_000_000);
        columns.push(Request { at, offset, bytes, op, volume, ..Request::default() });
    }
    let info = TraceInfo::of(&columns);
    assert_eq!(info.writes, OpInfo { requests: 3, bytes: 8704 });
    assert_eq!((info.reads.requests, info.trims.bytes, info.flushes, info.volumes), (1, 8192, 1, 2));
    assert_eq!((info.footprint_bytes, info.written_bytes, info.end_bytes), (16_384, 8192, 8192));
    assert_eq!((info.size_p50_bytes, info.size_max_bytes), (4096, 8192));
    assert_eq!(info.size_mean_bytes, (4096.0 + 4096.0 + 512.0 + 1000.0 + 8192.0) / 5.0);
    // One of three writes begins where the one before ended.
    assert_eq!(info.sequential_share, 0.25);
    // Blocks are written once and twice; the hottest fifth of two blocks is one.
    assert_eq!(info.hot_share, 2.0 / 3.0);
    assert_eq!((info.gap_p99, info.rate_peak_minute), (Span::from_ms(56_000), 5.0 / 60.0));
    assert_eq!(
        info.to_string(),
        "format        msr\n\
         requests      6 in 61.0 s\n\
         reads         1 (16.7 %), 1000 B\n\
         writes        3 (50.0 %), 8.5 KiB\n\
         trims         1 (16.7 %), 8 KiB\n\
         flushes       1\n\
         volumes       2\n\
         footprint     16 KiB touched, 8 KiB written, up to 8 KiB\n\
         size          mean 3.5 KiB, p50 4 KiB, max 8 KiB\n\
         sequential    25.0 %\n\
         skew          66.7 % of writes go to 20 % of the written blocks\n\
         gap           mean 12.2 s, p99 56.0 s\n\
         rate          mean 0.1/s, busiest minute 0.1/s\n"
    );
    let table = head(&columns, 2);
    assert_eq!(table.len(), 2);
    assert_eq!(table[1], ["1.000000000", "write", "4096", "4096", "0", ""]);
}
