//! What the first lines of a text table say of it: comments, headers, and units in the names of columns.

mod said;

use nvlab_trace::Columns;
use nvlab_trace::Op::{self, Flush, Read, Write};
use nvlab_trace::{Format, ReadReport, read_from, write};
use said::said;
use std::path::Path;

/// A text table, read as words say.
fn table(text: &str, words: &str) -> Result<(Columns, ReadReport), String> {
    let read = read_from(text.as_bytes(), Path::new("t.csv"), &said(words)?);
    read.map_err(|error| error.to_string()).inspect(|(columns, _)| columns.check())
}

/// Offset, bytes, op.
fn rows(columns: &Columns) -> Vec<(u64, u32, Op)> {
    columns.iter().map(|r| (r.offset, r.bytes, r.op)).collect()
}

const COLUMNS: &str = "columns=time_us,op,offset_bytes,length_bytes";

#[test]
fn units_of_sizes_in_names_count_or_are_refused() {
    for (names, offset, bytes) in [
        ("offset_bytes,size_bytes", 1024, 4),
        ("offset,size", 1024, 4),
        ("offset (KiB),size (KiB)", 1 << 20, 4096),
        ("OffsetKiB,SizeKiB", 1 << 20, 4096),
        ("offset_MiB,size_KiB", 1 << 30, 4096),
        ("offset_GiB,size_16KiB", 1 << 40, 65536),
        ("slba,lba_count", 1024 * 512, 2048),
        ("lba,nsectors", 1024 * 512, 2048),
        ("lba,size_bytes", 1024 * 512, 4),
        ("sector_offset,sector_count", 1024 * 512, 2048),
    ] {
        let read = table(&format!("time_us,op,{names}\n10,R,1024,4\n"), "");
        let (columns, _) = read.unwrap_or_else(|error| panic!("{names}: {error}"));
        assert_eq!(rows(&columns), [(offset, bytes, Read)], "{names}");
    }
    for (names, unknown) in [
        ("offset_kb,size_kb", "offset_kb"),
        ("offset_bytes,size (KB)", "size (KB)"),
        ("offset_bytes,size_k", "size_k"),
        ("offset_MB,size_bytes", "offset_MB"),
        ("page_offset,size_bytes", "page_offset"),
        ("offset_bytes,length_pages", "length_pages"),
        ("slba,block_count", "block_count"),
        ("offset_bytes,count", "count"),
        ("offset_furlongs,size_bytes", "offset_furlongs"),
        ("lba,sector_size", "sector_size"),
        // Of which it may be sectors or bytes.
        ("LBA,Size", "Size"),
        ("offset_KiB,size", "size"),
        ("offset,nsectors", "offset"),
    ] {
        let error = table(&format!("time_us,op,{names}\n10,R,1024,4\n"), "").unwrap_err();
        let expected = format!("t.csv: the unit of `{unknown}` in its header is unknown; give ");
        assert!(error.starts_with(&expected), "{names}: {error}");
    }
    // Decimals are not of seconds if the name says another unit.
    let error = table("time_min,op,offset,size\n0.5,R,0,512\n", "").unwrap_err();
    assert!(error.starts_with("t.csv: the unit of `time_min` in its header is unknown; give "), "{error}");
}

#[test]
fn a_header_may_have_digits() {
    let text = "time_100ns,op,offset_4KiB,length_4KiB\n7,R,1,2\n";
    for words in ["", "columns=time_100ns,op,offset_4KiB,length_4KiB"] {
        let (columns, report) = table(text, words).unwrap();
        assert_eq!((rows(&columns), report.other_lines), (vec![(4096, 8192, Read)], 1), "{words}");
    }
    let error = table(text, "header=no").unwrap_err();
    assert_eq!(error, "t.csv: with header=no its columns have no names; give them: columns=...");
}

#[test]
fn a_response_time_may_have_a_smaller_unit_than_the_time() {
    for (unit, response) in [("ps", 1), ("ns", 1000), ("us", 1_000_000)] {
        let text =
            format!("time_us,op,offset_bytes,length_bytes,response_{unit}\n1,R,0,512,90\n2,R,0,512,7\n");
        let (columns, _) = table(&text, "").unwrap();
        assert_eq!(columns.response_ps(), Some(&[90 * response, 7 * response][..]), "{unit}");
        assert_eq!(columns.at_ps(), [0, 1_000_000]);
    }
    let text = "time_s,op,offset_bytes,length_bytes,response_ps\n1456135200.1,R,0,512,90\n";
    let error = table(text, "").unwrap_err();
    let expected = "t.csv:2: column 1 (time_s) '1456135200.1' is wrong: a number, from 0 to 2^64 picoseconds";
    assert_eq!(error, expected);
}

#[test]
fn a_flush_of_any_length() {
    let (columns, _) = table(&format!("0,F,0,{}\n", u64::MAX), COLUMNS).unwrap();
    assert_eq!(rows(&columns), [(0, 0, Flush)]);
}

#[test]
fn comments_before_a_table_say_nothing_of_it() {
    let comments = "# one\n# two\n# three\n# four, and five\n";
    let (columns, report) = table(&format!("{comments}0,R,0,512\n"), COLUMNS).unwrap();
    assert_eq!((columns.len(), report.lines, report.other_lines), (1, 5, 4));
    let (columns, _) = table("# made by hand, by me\n0;R;0;512\n", COLUMNS).unwrap();
    assert_eq!(rows(&columns), [(0, 512, Read)]);
    // The last one has a point, as Baleen's times have.
    for comments in ["# one\n", comments, "# a\n# b\n# c\n# at 12.5 us\n"] {
        let text = format!("{comments}time_us,op,offset_bytes,length_bytes\n7,W,0,512\n");
        let (columns, report) = table(&text, "").unwrap_or_else(|error| panic!("{comments}: {error}"));
        assert_eq!((report.format, rows(&columns)), (Some(Format::Table), vec![(0, 512, Write)]));
    }
    // A header may look like a comment.
    let (columns, _) = table("# by me\n# time_us,op,offset_KiB,length_KiB\n7,W,1,1\n", "").unwrap();
    assert_eq!(rows(&columns), [(1024, 1024, Write)]);
    let error = table("# a\n# b\n# c\n# d\n# e.f\n", COLUMNS).unwrap_err();
    assert_eq!(error, "t.csv: no request in 5 lines");
    // Baleen's own comment.
    let text =
        "# block_id io_offset io_size op_time op_name pipeline\n310 0 4096 1572074461.57806 1 24 3 5\n";
    assert_eq!(table(text, "").unwrap().1.format, Some(Format::Baleen));
}

#[test]
fn the_last_cell_of_a_line_with_tabs_may_be_empty() {
    let words = "columns=time_us,op,offset_bytes,length_bytes,volume,response_us separator=tab";
    let text = "1\tR\t0\t512\ta\t5\n2\tR\t0\t512\tb\t\n3\tR\t0\t512\t\t\n";
    let (columns, _) = table(text, words).unwrap();
    assert_eq!(columns.volumes(), ["a", "b", ""]);
    let error = table("1\tR\t0\t512\ta\n", words).unwrap_err();
    assert_eq!(error, "t.csv:1: column 6 (response_us) '' is wrong: the line ends before this column");
}

#[test]
fn volume_names_may_be_quoted() {
    let words = format!("{COLUMNS},volume");
    let text = "1,R,0,512,\"a \"\"b\"\", c\"\n2,R,0,512, \"a,b\"\n3,R,0,512,\"\"\n4,R,0,512,\"\"\"\"\n";
    let (columns, _) = table(text, &words).unwrap();
    assert_eq!(columns.volumes(), ["a \"b\", c", "a,b", "", "\""]);
    let mut written = Vec::new();
    write(&columns, Format::Table, &mut written, Path::new("t")).unwrap();
    let (again, _) = table(std::str::from_utf8(&written).unwrap(), "").unwrap();
    assert_eq!((again.volumes(), rows(&again)), (columns.volumes(), rows(&columns)));
    // A blank before the quotes, and columns behind them.
    let words = "columns=volume,time_us,op,offset_bytes,length_bytes";
    let (columns, _) = table(" \"a,b\" ,1,R,0,512\n", words).unwrap();
    assert_eq!(columns.volumes(), ["a,b"]);
}
