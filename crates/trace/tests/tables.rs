//! Published traces that are tables of others, and any text table by the names of its columns.

mod said;

use nvlab_trace::Columns;
use nvlab_trace::Op::{self, Flush, Read, Trim, Write};
use nvlab_trace::{Format, ReadOptions, ReadReport, read_from, write};
use said::said;
use std::path::Path;

type Parsed = Result<(Columns, ReadReport), String>;

fn bytes(input: &[u8], options: &ReadOptions) -> Parsed {
    let read = read_from(input, Path::new("t.csv"), options).map_err(|error| error.to_string());
    read.inspect(|(columns, _)| columns.check())
}

/// A text whose format is to be found.
fn found(text: &str) -> (Columns, ReadReport) {
    bytes(text.as_bytes(), &ReadOptions::default()).unwrap()
}

/// A text table, read as words say.
fn table(text: &str, words: &str) -> Parsed {
    bytes(text.as_bytes(), &said(words)?)
}

/// Time in ns, offset, bytes, op.
fn rows(columns: &Columns) -> Vec<(u64, u64, u32, Op)> {
    columns.iter().map(|r| (r.at.ns(), r.offset, r.bytes, r.op)).collect()
}

#[test]
fn systor_17_with_response_times() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                1456135200.013118000,0.000644000,W,4,4096,8192\n\
                1456135200.013500000,,,4,0,512\n\
                1456135200.014118000,0.000100000,R,6,899056122368,131072\n";
    let (columns, report) = found(text);
    assert_eq!(rows(&columns), [(0, 4096, 8192, Write), (1_000_000, 899_056_122_368, 131_072, Read)]);
    assert_eq!(columns.response_ps(), Some(&[644_000_000, 100_000_000][..]));
    assert_eq!(columns.volumes(), ["4", "6"]);
    // Its header, and a request of which no answer was seen.
    let expected = "systor: 2 requests from 4 lines (left out: 2 without a request)";
    assert_eq!(report.to_string(), expected);
    let wrong = text.replace(",R,", ",X,");
    let error = bytes(wrong.as_bytes(), &ReadOptions { format: Some(Format::Systor), ..Default::default() });
    assert_eq!(error.unwrap_err(), "t.csv:4: IOType 'X' is wrong: R, W, or nothing: no response");
    let mut again = Vec::new();
    write(&columns, Format::Systor, &mut again, Path::new("t")).unwrap();
    assert_eq!(found(std::str::from_utf8(&again).unwrap()).0.response_ps(), columns.response_ps());
}

/// The response of a row that is left out is not that of the row before.
#[test]
fn a_row_left_out_has_no_response() {
    let text = "Timestamp,Response,IOType,LUN,Offset,Size\n1456135200.01,,W,4,4096,8192\n";
    for left_out in ["1456135200.02,0.5,R,4,4096,0\n", "1456135200.02,0.5,R,6,4096,512\n"] {
        let options = ReadOptions { volumes: vec!["4".to_owned()], ..Default::default() };
        let (columns, report) = bytes(format!("{text}{left_out}").as_bytes(), &options).unwrap();
        assert_eq!((columns.len(), report.without_bytes + report.other_volumes), (1, 1));
        assert_eq!(columns.response_ps(), None, "{left_out}");
    }
    let msr = "128166372003061629,h,4,Read,0,512\n128166372003061630,h,4,Read,0,0,7\n";
    assert_eq!(found(msr).0.response_ps(), None);
}

#[test]
fn fiu_is_read() {
    let text = "89966976192462 4892 syslogd 904265560 8 W 6 0 531e779b9c9f1cb3a4ae2d1c1f2e6f16\n\
                89966976202462 20782 gzip 283193184 16 R 8 1 56f11b711d91a065a2b6458eca924523\n";
    let (columns, report) = found(text);
    assert_eq!(report.format, Some(Format::Fiu));
    assert_eq!(
        rows(&columns),
        [(0, 904_265_560 * 512, 4096, Write), (10_000, 283_193_184 * 512, 8192, Read)]
    );
    assert_eq!(columns.volumes(), ["6:0", "8:1"]);
    let options = ReadOptions { format: Some(Format::Fiu), ..Default::default() };
    let error = bytes(text.replace(" R 8 1", " R 8 x").as_bytes(), &options).unwrap_err();
    assert_eq!(error, "t.csv:2: minor 'x' is wrong: a whole number");
}

/// A record of version 1 or 2: command, sector, bytes, microseconds.
fn record(version: u16, (cmd, sector, length, us): (u16, u64, u32, u64)) -> Vec<u8> {
    let [number, scatter] = [7u32, 1].map(u32::to_le_bytes);
    let head = [cmd, version << 8].map(u16::to_le_bytes).concat();
    let counts = [number, length.to_le_bytes(), scatter].concat();
    let times = [sector, us].map(u64::to_le_bytes).concat();
    match version {
        1 => [counts, head, times].concat(),
        _ => [head, counts, times, (us % 1000 + 50).to_le_bytes().to_vec()].concat(),
    }
}

#[test]
fn cloudphysics_vscsi_of_both_versions() {
    // A write, an inquiry, a read, a flush.
    let commands = [(0x2a, 42_932_745, 4096, 5_633_898_000), (0x12, 0, 36, 5_633_898_100)];
    let commands = [commands, [(0x88, 8, 512, 5_633_898_200), (0x35, 0, 0, 5_633_898_300)]].concat();
    for version in [1, 2] {
        let file = commands.iter().flat_map(|&command| record(version, command)).collect::<Vec<_>>();
        let (columns, report) = bytes(&file, &ReadOptions::default()).unwrap();
        let expected =
            [(0, 42_932_745 * 512, 4096, Write), (200_000, 4096, 512, Read), (300_000, 0, 0, Flush)];
        assert_eq!(rows(&columns), expected);
        let expected = "vscsi: 3 requests from 4 rows (left out: 1 without a request)";
        assert_eq!(report.to_string(), expected);
        let responses = [50_000_000, 250_000_000, 350_000_000];
        assert_eq!(columns.response_ps(), (version == 2).then_some(&responses[..]));
        let zipped = zstd::encode_all(&file[..], 1).unwrap();
        assert_eq!(bytes(&zipped, &ReadOptions::default()).unwrap().0.len(), 3);
        // Its last record is cut off; another one is of another version.
        let (cut, report) = bytes(&file[..file.len() - 3], &ReadOptions::default()).unwrap();
        assert_eq!((cut.len(), report.ends_cut), (2, true));
        let mut damaged = file.clone();
        let size = file.len() / 4;
        damaged[2 * size + if version == 1 { 15 } else { 3 }] = 9;
        let error = bytes(&damaged, &ReadOptions::default()).unwrap_err();
        assert_eq!(error, "t.csv: row 3: ver '0x0900' is wrong: the version of the earlier records");
    }
    let options = ReadOptions { format: Some(Format::Vscsi), ..Default::default() };
    let error = bytes(b"1,2,3\n", &options).unwrap_err();
    assert_eq!(error, "t.csv: damaged trace file: it does not begin like vscsi records of version 1 or 2");
}

#[test]
fn metas_traces_of_cachelib_and_baleen() {
    let text = "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n\
                1679700000,4063,40,1048576,2097152,12,1,getChunkData.Permanent,1,77,3\n\
                1679700000,4063,40,512,0,12,1,putChunk.NotInitialized,2,77,4\n\
                1679700001,4063,40,512,512,12,1,getChunkData.NotInitialized,1,77,3\n";
    let (columns, report) = found(text);
    assert_eq!(report.format, Some(Format::CacheLib));
    // Two shards of a block are two places.
    let second = 40 << 20;
    let expected = [(0, 2 << 20, 1 << 20, Read), (0, second, 512, Write), (1_000_000_000, 512, 512, Read)];
    assert_eq!(rows(&columns), expected);
    let text = "310 262144 4325376 1572074461.57806 1 24 3 5\n\
                7 0 8388608 1572074461.57906 4 24 3 5\n\
                310 0 4096 1572074462.00000 6 24 3 5\n\
                9 0 4096 1572074462.00000 100 24 3 5\n";
    let (columns, report) = found(text);
    let expected =
        [(0, 262_144, 4_325_376, Read), (1_000_000, 8 << 20, 8 << 20, Write), (421_940_000, 0, 4096, Write)];
    assert_eq!(rows(&columns), expected);
    let expected = "baleen: 3 requests from 4 lines (left out: 1 without a request)";
    assert_eq!(report.to_string(), expected);
    let error = bytes(b"1 8388608 1 1572074461.57806 1 24 3 5\n", &ReadOptions::default()).unwrap_err();
    assert!(error.starts_with("t.csv: its first lines match no trace format"), "{error}");
    let options = ReadOptions { format: Some(Format::Baleen), ..Default::default() };
    let error = bytes(b"1 8388608 1 1572074461.57806 1 24 3 5\n", &options).unwrap_err();
    let expected =
        "t.csv:1: io_offset '8388608' is wrong: io_offset + io_size is at most the 8388608 bytes of a block";
    assert_eq!(error, expected);
    let error = write(&columns, Format::Baleen, &mut Vec::new(), Path::new("t")).unwrap_err().to_string();
    assert!(error.starts_with("t: baleen is input only; output formats: msr, spc, "), "{error}");
}

/// The form that SimpleSSD's replayer takes, among others.
#[test]
fn a_table_without_a_header_by_the_names_of_its_columns() {
    let text = "1 0 48 W\n2 48 8 R\n5 8 8 W\n";
    let error = table(text, "").unwrap_err();
    assert!(error.contains("columns=time_s,op,offset_bytes,length_bytes"), "{error}");
    let (columns, report) = table(text, "columns=time_us,offset_sectors,length_sectors,op").unwrap();
    let expected = [(0, 0, 48 * 512, Write), (1000, 48 * 512, 4096, Read), (4000, 4096, 4096, Write)];
    assert_eq!(rows(&columns), expected);
    let expected =
        "table: 3 requests from 3 lines; columns=time_us,offset_sectors,length_sectors,op (as given)";
    assert_eq!(report.to_string(), expected);
}

#[test]
fn separators_units_words_and_response_times_of_a_table() {
    let text = "# made by hand\n\
                when;what;device;where;bytes;took;note\n\
                1.5;1;a b;2;1;0.25;x\n\
                1.75;0;c;0;0.5;1.5e-01;y\n\
                2;2;c;1;1;.1;z\n";
    let words = "columns=time_ms,op,volume,offset_4KiB,length_4KiB,response_ms read=0 write=1 trim=2,3";
    let (columns, report) = table(text, words).unwrap();
    assert_eq!(
        rows(&columns),
        [(0, 8192, 4096, Write), (250_000, 0, 2048, Read), (500_000, 4096, 4096, Trim)]
    );
    assert_eq!(columns.volumes(), ["a b", "c"]);
    assert_eq!(columns.response_ps(), Some(&[250_000_000, 150_000_000, 100_000_000][..]));
    assert_eq!((report.lines, report.other_lines), (5, 2));
    // What the first lines show can also be said.
    let said =
        table("1;0;0;1\n", "columns=time_ms,op,offset_bytes,length_bytes separator=; header=no read=0");
    assert_eq!(said.unwrap().0.len(), 1);
}

#[test]
fn a_header_names_the_columns_and_what_was_made_of_it_is_shown() {
    for (header, row, columns) in [
        (
            "time_s,op,offset_bytes,length_bytes",
            "0.5,read,0,512",
            "time_s,op,offset_bytes,length_bytes (from the header)",
        ),
        (
            "Timestamp,Hostname,LUN,IOType,LBA,Size(bytes),ResponseTime(us)",
            "1456135200.01,h,3,W,8,512,90",
            "time_s,-,volume,op,offset_sectors,length_bytes,response_us (guessed from the header)",
        ),
        (
            "ts_us\toperation\tsector\tnr_sectors\tcomm",
            "12\tWrite\t8\t8\tx",
            "time_us,op,offset_sectors,length_sectors (guessed from the header)",
        ),
        ("arrival (ns) rw offset len", "1456135200 D 0 4096", ""),
    ] {
        let text = format!("{header}\n{row}\n");
        let read = bytes(text.as_bytes(), &ReadOptions::default());
        match columns {
            // With a blank in a name, blanks divide wrongly.
            "" => assert!(read.is_err(), "{header}"),
            columns => {
                let report = read.unwrap_or_else(|error| panic!("{header}: {error}")).1.to_string();
                let expected = format!(
                    "table: 1 requests from 2 lines (left out: 1 without a request); columns={columns}"
                );
                assert_eq!(report, expected);
            }
        }
    }
    let of_header = |header: &str, row: &str| {
        bytes(format!("{header}\n{row}\n").as_bytes(), &ReadOptions::default()).unwrap_err()
    };
    let unit = of_header("time,op,offset,length", "7,R,0,512");
    assert!(unit.starts_with("t.csv: the unit of `time` in its header is unknown; give "), "{unit}");
    let twice = of_header("time_s,op,offset,lba,length", "7,R,0,1,512");
    assert!(twice.contains("`offset` and `lba` in its header may both be offset_sectors"), "{twice}");
    let missing = of_header("time_s,op,offset,color", "7,R,0,512");
    assert!(missing.contains("nothing that is length_UNIT"), "{missing}");
}

#[test]
fn what_is_wrong_with_a_table_names_line_and_column() {
    const COLUMNS: &str = "columns=time_s,op,offset_bytes,length_bytes";
    for (text, words, expected) in [
        (
            "0,R,0,512\n1,7,0,512\n",
            COLUMNS,
            "t.csv:2: column 2 (op) '7' is wrong: read, write, trim or flush, or their first letters; if it means one \
             of them, add read=7 or write=7",
        ),
        (
            "0,R,-1,512\n",
            COLUMNS,
            "t.csv:1: column 3 (offset_bytes) '-1' is wrong: a whole number of bytes, from 0 to 2^64",
        ),
        (
            "0,R,0\n",
            COLUMNS,
            "t.csv:1: column 4 (length_bytes) '' is wrong: the line ends before this column",
        ),
        (
            "x1,R,0,512\n",
            COLUMNS,
            "t.csv:1: column 1 (time_s) 'x1' is wrong: a number, from 0 to 2^64 nanoseconds",
        ),
        (
            "",
            "columns=time_s,op,offset_bytes",
            "columns: length_UNIT is missing; needed are time_UNIT, op, offset_UNIT and length_UNIT",
        ),
        (
            "",
            "columns=time_s,op,offset_4k,length_bytes",
            "columns: 'offset_4k' is not one of time_UNIT (s, ms, us, ns, ps, 100ns), op, offset_UNIT, length_UNIT (bytes, \
             sectors, or a size such as 4KiB), volume, fua, response_UNIT, or - for a column to ignore",
        ),
    ] {
        assert_eq!(table(text, words).map(|_| ()), Err(expected.to_owned()));
    }
}
