//! Every trace format: hand-made samples, round trips, detection, compression, and errors of invalid lines.

use nvlab_trace::columns::{Columns, Origin};
use nvlab_trace::info::TraceInfo;
use nvlab_trace::{Format, ReadOptions, ReadReport, read, read_from, write};
use nvlab_trace::{Op, Request};
use nvlab_units::Time;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn sample(name: &str) -> (Columns, ReadReport) {
    let (columns, report) = read(&data(name), &ReadOptions::default()).unwrap();
    columns.check();
    (columns, report)
}

fn parse(text: &str, format: Format) -> Result<(Columns, ReadReport), String> {
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    read_from(text.as_bytes(), Path::new("t"), &options).map_err(|error| error.to_string())
}

/// Time in ns, offset, bytes, op, volume name.
fn rows(columns: &Columns) -> Vec<(u64, u64, u32, Op, &str)> {
    let row =
        |r: Request| (r.at.ns(), r.offset, r.bytes, r.op, columns.volumes()[r.volume as usize].as_str());
    columns.iter().map(row).collect()
}

#[test]
fn msr_is_read() {
    let (columns, report) = sample("small_msr.csv");
    assert_eq!(
        rows(&columns),
        [
            (0, 7_014_609_920, 24_576, Op::Read, "src1_0"),
            (1_332_052_600, 1_317_441_536, 8192, Op::Write, "src1_0"),
            (1_332_057_100, 1_317_449_728, 4096, Op::Write, "src1_0"),
            (2_332_061_600, 2_436_440_064, 4096, Op::Write, "src1_1"),
        ]
    );
    assert_eq!(report.to_string(), "msr: 4 requests from 4 lines; 1 out of order, sorted");
    assert_ne!(columns.origin.hash, 0);
}

#[test]
fn response_times_are_kept_where_they_can_be_said() {
    let lines = |last| {
        format!("20,h,0,Read,0,512,7\n10,h,0,Write,0,512,5\n20,h,0,Write,0,0,9\n30,h,0,Read,0,512{last}\n")
    };
    let (columns, _) = parse(&lines(",3"), Format::Msr).unwrap();
    assert_eq!(columns.response_ps(), Some(&[500_000, 700_000, 300_000][..]));
    let mut text = Vec::new();
    write(&columns, Format::Msr, &mut text, Path::new("t")).unwrap();
    let (again, _) = parse(std::str::from_utf8(&text).unwrap(), Format::Msr).unwrap();
    assert_eq!(again.response_ps(), columns.response_ps());
    let report = write(&columns, Format::FioIolog, &mut Vec::new(), Path::new("t")).unwrap();
    assert_eq!(report.responses_lost, 3);
    // A line without a response time: none are kept.
    assert_eq!(parse(&lines(""), Format::Msr).unwrap().0.response_ps(), None);
}

#[test]
fn spc_is_read() {
    let (columns, _) = sample("small.spc");
    assert_eq!(
        rows(&columns),
        [
            (0, 20_941_264 * 512, 8192, Op::Write, "0"),
            (2_335_000, 20_939_840 * 512, 8192, Op::Write, "0"),
            (460_026_000, 3_436_288 * 512, 15_872, Op::Read, "1"),
        ]
    );
}

#[test]
fn blkparse_is_read() {
    let (columns, report) = sample("small.blkparse");
    assert_eq!(
        rows(&columns),
        [
            (0, 223_490 * 512, 4096, Op::Write, "8,0"),
            (10_000, 1024 * 512, 8192, Op::Read, "8,0"),
            (20_000, 0, 0, Op::Flush, "8,0"),
            (20_000, 2048 * 512, 4096, Op::Write, "8,0"),
            (30_000, 0, 0, Op::Flush, "8,0"),
            (40_000, 4096 * 512, 1 << 20, Op::Trim, "8,0"),
        ]
    );
    let fua: Vec<bool> = columns.iter().map(|r| r.fua).collect();
    assert_eq!(fua, [false, false, false, true, false, false]);
    // 7 events of other actions, one `D` without data, 12 lines of summary; 2 lines are blank.
    assert_eq!((report.lines, report.other_lines, report.without_data), (27, 19, 1));
    let queued = ReadOptions { action: b'Q', ..ReadOptions::default() };
    assert_eq!(read(&data("small.blkparse"), &queued).unwrap().0.len(), 1);
}

/// A recording by others, with the figures of its README (counted there by another program).
#[test]
fn a_real_blkparse_recording_has_the_figures_of_its_readme() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/pgbench-ext4.blkparse.zst");
    let (columns, report) = read(&path, &ReadOptions::default()).unwrap();
    columns.check();
    let expected = "blkparse, zstd: 633664 requests from 633684 lines (left out: 20 without data (RWBS N: write \
                    zeroes or commands))";
    assert_eq!(report.to_string(), expected);
    let info = TraceInfo::of(&columns);
    let counts = [info.reads.requests, info.writes.requests, info.flushes, info.trims.requests];
    assert_eq!(counts, [184_208, 319_940, 129_301, 215]);
    let mib = |bytes: u64| (bytes as f64 / (1 << 20) as f64 * 10.0).round() / 10.0;
    assert_eq!(
        [mib(info.reads.bytes), mib(info.writes.bytes), mib(info.trims.bytes)],
        [2334.2, 8906.9, 5957.1]
    );
    assert_eq!((mib(info.written_bytes), info.end_bytes), (1832.6, 2 << 30));
    assert_eq!((info.duration.seconds() * 1000.0).round(), 109_163.0);
    let crooked = columns.iter().filter(|r| r.offset % 4096 != 0 || r.bytes % 4096 != 0).count();
    assert_eq!(crooked, 1);
}

#[test]
fn fio_iolog_is_read() {
    let (columns, _) = sample("small_v2.iolog");
    assert_eq!(
        rows(&columns),
        [
            (0, 0, 4096, Op::Write, "/data/a"),
            (1_500_000, 2_097_152, 8192, Op::Read, "/data/b"),
            (1_500_000, 0, 0, Op::Flush, "/data/a"),
            (2_000_000, 4096, 4096, Op::Trim, "/data/b"),
        ]
    );
    let (columns, _) = sample("small_v3.iolog");
    assert_eq!(
        rows(&columns),
        [
            (0, 0, 4096, Op::Write, "t.0.0"),
            (125_000, 0, 0, Op::Flush, "t.0.0"),
            (155_000, 0, 4096, Op::Read, "t.0.0"),
        ]
    );
}

#[test]
fn mqsim_is_read() {
    let (columns, _) = sample("small_mqsim.trace");
    assert_eq!(
        rows(&columns),
        [
            (0, 2048 * 512, 4096, Op::Write, "0"),
            (2500, 4096 * 512, 8192, Op::Read, "0"),
            (8000, 8 * 512, 512, Op::Write, "1"),
        ]
    );
}

#[test]
fn alibaba_and_tencent_are_read() {
    let (columns, _) = sample("small_alibaba.csv");
    assert_eq!(
        rows(&columns),
        [
            (0, 8_792_731_648, 16_384, Op::Write, "419"),
            (9000, 59_110_326_272, 360_448, Op::Read, "725"),
            (83_000, 8_792_748_032, 4096, Op::Write, "419"),
        ]
    );
    let (columns, _) = sample("small_tencent.csv");
    assert_eq!(
        rows(&columns),
        [
            (0, 12_910_952 * 512, 65_536, Op::Read, "1063"),
            (0, 6_265_688 * 512, 4096, Op::Write, "1071"),
            (1_000_000_000, 12_910_000 * 512, 131_072, Op::Write, "1063"),
        ]
    );
}

#[test]
fn formats_are_found_by_content() {
    for (name, format) in [
        ("small_msr.csv", Format::Msr),
        ("small.spc", Format::Spc),
        ("small.blkparse", Format::Blkparse),
        ("small_v2.iolog", Format::FioIolog),
        ("small_mqsim.trace", Format::Mqsim),
        ("small_alibaba.csv", Format::Alibaba),
        ("small_tencent.csv", Format::Tencent),
    ] {
        let text = std::fs::read(data(name)).unwrap();
        let report = read_from(&text[..], Path::new("trace"), &ReadOptions::default()).unwrap().1;
        assert_eq!(report.format, Some(format), "{name}");
        let gz = compressed(&text, "gz");
        let report = read_from(&gz[..], Path::new("trace.csv"), &ReadOptions::default()).unwrap().1;
        assert_eq!((report.format, report.compression), (Some(format), Some("gzip")), "{name}");
        let zst = compressed(&text, "zst");
        let report = read_from(&zst[..], Path::new("trace"), &ReadOptions::default()).unwrap().1;
        assert_eq!((report.format, report.compression), (Some(format), Some("zstd")), "{name}");
    }
}

fn compressed(text: &[u8], how: &str) -> Vec<u8> {
    use std::io::Write;
    if how == "gz" {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text).unwrap();
        return out.finish().unwrap();
    }
    zstd::encode_all(text, 1).unwrap()
}

#[test]
fn damaged_compression_is_named() {
    let text = "1,R,0,4096,0\n".repeat(10_000);
    let options = ReadOptions { format: Some(Format::Alibaba), ..ReadOptions::default() };
    let message = |bytes: &[u8]| read_from(bytes, Path::new("t"), &options).unwrap_err().to_string();
    let gz = compressed(text.as_bytes(), "gz");
    assert_eq!(message(&gz[..gz.len() - 20]), "t: the gzip data ends early");
    let zst = compressed(text.as_bytes(), "zst");
    let cut = message(&zst[..zst.len() - 2]);
    assert!(cut.starts_with("t: the zstd data "), "{cut}");
}

#[test]
fn headers_of_columns_are_passed_over() {
    let text = "device_id,opcode,offset,length,timestamp\n1,R,0,4096,5\n";
    let (columns, report) = read_from(text.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
    assert_eq!((columns.len(), report.other_lines), (1, 1));
}

#[test]
fn an_unknown_format_lists_the_known_ones() {
    let message = |text: &str| {
        read_from(text.as_bytes(), Path::new("x.csv"), &ReadOptions::default()).unwrap_err().to_string()
    };
    assert_eq!(
        message("some,thing,else\n"),
        "x.csv: its first lines match no trace format; for a table, give its columns, e.g. \
         columns=time_s,op,offset_bytes,length_bytes; add one of :msr, :spc, :blkparse, :iolog, :mqsim, :alibaba, \
         :tencent, :systor, :fiu, :cachelib, :baleen after the name, as in 'x.csv:msr'"
    );
    // A summary of blkparse's alone also passes as nothing else.
    assert_eq!(message(""), "x.csv: no request in 0 lines");
    let missing = read(Path::new("/nowhere/x.csv"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/x.csv: No such file"), "{missing}");
}

#[test]
fn volumes_are_chosen_by_name() {
    let options = |names: &[&str]| ReadOptions {
        volumes: names.iter().map(|&name| name.to_owned()).collect(),
        ..ReadOptions::default()
    };
    let (columns, report) = read(&data("small_alibaba.csv"), &options(&["725"])).unwrap();
    assert_eq!((columns.len(), columns.volumes(), report.other_volumes), (1, &["725".to_owned()][..], 2));
    let error = read(&data("small_msr.csv"), &options(&["src1_0", "src2_0"])).unwrap_err().to_string();
    assert!(error.ends_with("has no volume 'src2_0'; its volumes are src1_0, src1_1"), "{error}");
}

#[test]
fn large_trims_are_cut_up() {
    let (columns, report) = parse("fio version 3 iolog\n0 f trim 0 5368709120\n", Format::FioIolog).unwrap();
    let pieces: Vec<_> = columns.iter().map(|r| (r.offset, r.bytes)).collect();
    assert_eq!(pieces, [(0, 1 << 31), (1 << 31, 1 << 31), (1 << 32, 1 << 30)]);
    assert_eq!(report.trims_cut, 1);
}

#[test]
fn what_a_format_cannot_say_is_counted_or_refused() {
    let mut columns = Columns::new(Origin::default());
    for (op, bytes, fua) in [(Op::Write, 512, true), (Op::Trim, 512, false), (Op::Flush, 0, false)] {
        columns.push(Request { op, bytes, fua, ..Request::default() });
    }
    let written = |columns: &Columns, format| write(columns, format, &mut Vec::new(), Path::new("t"));
    let report = written(&columns, Format::Msr).unwrap();
    let expected =
        "1 requests written; 1 trims left out; 1 flushes left out; 1 writes lost their force unit access";
    assert_eq!(report.to_string(), expected);
    assert_eq!(written(&columns, Format::Blkparse).unwrap().to_string(), "3 requests written");
    columns.push(Request { op: Op::Read, offset: 100, bytes: 512, ..Request::default() });
    assert_eq!(
        written(&columns, Format::Mqsim).unwrap_err().to_string(),
        "request 3 cannot be written as mqsim: offset 100 and 512 bytes are not whole sectors of 512 B; add \
         align=512B"
    );
}

/// Any trace of one to three volumes in whole sectors.
fn any_trace() -> impl Strategy<Value = Columns> {
    let row = (0u64..5_000_000_000_000, 0u64..1 << 40, 1u32..4096, 0u8..4, 0u16..3, any::<bool>());
    prop::collection::vec(row, 1..60).prop_map(|rows| {
        let mut columns = Columns::new(Origin { format: "made".to_owned(), hash: 7 });
        columns.add_volume("1");
        columns.add_volume("2");
        let mut at = 0;
        for (gap, sector, sectors, op, volume, fua) in rows {
            let op = Op::from_code(op).unwrap();
            let (offset, bytes) = if op == Op::Flush { (0, 0) } else { (sector * 512, sectors * 512) };
            let request = Request {
                at: Time::from_ps(at),
                offset,
                bytes,
                op,
                volume,
                fua: fua && op == Op::Write,
                ..Request::default()
            };
            columns.push(request);
            at += gap;
        }
        columns
    })
}

/// What a format keeps of times, in picoseconds.
fn resolution_ps(format: Format) -> u64 {
    match format {
        Format::Tencent => 1_000_000_000_000,
        Format::FioIolog | Format::Alibaba | Format::Vscsi => 1_000_000,
        Format::Msr => 100_000,
        Format::Table | Format::Nvt | Format::Parquet => 1,
        Format::Spc | Format::Blkparse | Format::Mqsim | Format::Systor | Format::Fiu => 1000,
        Format::CacheLib | Format::Baleen => 1000,
    }
}

proptest! {
    #[test]
    fn every_format_gives_back_what_was_written(columns in any_trace()) {
        for format in Format::ALL.into_iter().filter(|format| format.is_written()) {
            let keeps_all = matches!(
                format,
                Format::Blkparse | Format::FioIolog | Format::Table | Format::Nvt | Format::Parquet
            );
            let mut expected = columns.clone();
            expected.retain(|r| keeps_all || matches!(r.op, Op::Read | Op::Write));
            let mut text = Vec::new();
            let report = write(&columns, format, &mut text, Path::new("t")).unwrap();
            prop_assert_eq!(report.requests, expected.len() as u64);
            if expected.is_empty() {
                continue;
            }
            let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
            let (again, _) = read_from(&text[..], Path::new("t"), &options).unwrap();
            again.check();
            let tick = resolution_ps(format);
            let first = expected.at_ps()[0] / tick;
            let keeps_fua =
                matches!(format, Format::Blkparse | Format::Table | Format::Nvt | Format::Parquet);
            prop_assert_eq!(again.len(), expected.len());
            for (before, after) in expected.iter().zip(again.iter()) {
                prop_assert_eq!((before.at.ps() / tick - first) * tick, after.at.ps(), "{}", format);
                prop_assert_eq!((before.offset, before.bytes, before.op), (after.offset, after.bytes, after.op));
                prop_assert_eq!(before.fua && keeps_fua, after.fua);
                let name = &again.volumes()[after.volume as usize];
                let same = name.ends_with(&columns.volumes()[before.volume as usize]);
                prop_assert!(same, "{}: volume {} became {}", format, before.volume, name);
            }
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "[0-9RWDFNrw,. +\\[\\]\n-]{0,200}", prefix in 0..3usize) {
        let text = ["", "fio version 2 iolog\n", "fio version 3 iolog\n"][prefix].to_owned() + &text;
        for format in Format::ALL {
            let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
            if let Ok((columns, _)) = read_from(text.as_bytes(), Path::new("t"), &options) {
                columns.check();
            }
        }
        let _ = read_from(text.as_bytes(), Path::new("t"), &ReadOptions::default()).map(|(columns, _)| columns.check());
    }
}
