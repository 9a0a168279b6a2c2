//! Traces of many blocks, which are parsed several at a time, are read as if line by line.

use nvlab_trace::Columns;
use nvlab_trace::{Format, ReadOptions, ReadReport, read_from};
use std::fmt::Write;
use std::path::Path;

const LINES: u64 = 300_000;

fn read(text: &str, options: &ReadOptions) -> Result<(Columns, ReadReport), String> {
    read_from(text.as_bytes(), Path::new("t"), options).map_err(|error| error.to_string())
}

/// A line of every volume in turn; a volume more every 1000 lines; every 10th line comes 25 lines late.
fn row(line: u64) -> (u64, u64, u64) {
    let late = if line % 10 == 9 { 25 } else { 0 };
    (line % (line / 1000 + 1) + 7, line * 4096 % (1 << 40), (line + 100 - late) * 3)
}

fn alibaba(lines: u64) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let (device, offset, us) = row(line);
        let letter = if line % 3 == 0 { 'R' } else { 'W' };
        writeln!(text, "{device},{letter},{offset},{},{us}", line % 64 * 512 + 512).unwrap();
    }
    text
}

#[test]
fn rows_and_volumes_are_in_the_order_of_the_file() {
    let options = ReadOptions { format: Some(Format::Alibaba), ..ReadOptions::default() };
    let (columns, report) = read(&alibaba(LINES), &options).unwrap();
    assert_eq!((report.lines, report.requests), (LINES, LINES));
    let mut order: Vec<u64> = (0..LINES).collect();
    order.sort_by_key(|&line| row(line).2);
    let (mut names, mut latest, mut reordered) = (Vec::new(), 0, 0);
    for line in 0..LINES {
        let (device, _, us) = row(line);
        if !names.contains(&device.to_string()) {
            names.push(device.to_string());
        }
        reordered += u64::from(us < latest);
        latest = latest.max(us);
    }
    assert_eq!(report.reordered, reordered);
    assert_eq!(columns.volumes(), names);
    let offsets: Vec<u64> = order.iter().map(|&line| row(line).1).collect();
    assert!(columns.offsets() == offsets);
    for (at, &line) in order.iter().enumerate().step_by(997) {
        let request = columns.request(at);
        let (device, offset, us) = row(line);
        assert_eq!((request.offset, request.at.ns()), (offset, (us - row(order[0]).2) * 1000));
        assert_eq!(names[request.volume as usize], device.to_string());
    }
}

#[test]
fn volumes_that_are_not_wanted_are_counted() {
    let volumes = vec!["9".to_owned(), "200".to_owned()];
    let options = ReadOptions { format: Some(Format::Alibaba), volumes, ..ReadOptions::default() };
    let (columns, report) = read(&alibaba(LINES), &options).unwrap();
    let wanted = (0..LINES).filter(|&line| [9, 200].contains(&row(line).0)).count() as u64;
    assert_eq!((report.requests, report.other_volumes), (wanted, LINES - wanted));
    assert_eq!(columns.volumes(), ["9", "200"]);
    let missing = ReadOptions { volumes: vec!["5".to_owned()], ..options };
    let error = read(&alibaba(LINES), &missing).unwrap_err();
    assert!(error.contains("10, 100, 101") && error.contains("and 288 more"), "{error}");
}

#[test]
fn bad_lines_are_found_where_they_are() {
    let options = ReadOptions { format: Some(Format::Alibaba), ..ReadOptions::default() };
    let whole = alibaba(LINES);
    let at: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    let with = |places: &[usize], wrong: &str| {
        let mut text = whole.clone();
        for &line in places.iter().rev() {
            text.insert_str(at[line - 2], wrong);
        }
        text
    };
    for line in [2, 20_000, 299_000] {
        let error = read(&with(&[line], "what\n"), &options).unwrap_err();
        assert!(error.starts_with(&format!("t:{line}: ")), "{error}");
        let long = "x".repeat(300 << 10) + "\n";
        let error = read(&with(&[line], &long), &options).unwrap_err();
        assert!(error.starts_with(&format!("t:{line}: ")) && error.contains("64 KiB"), "{error}");
    }
    let bad = with(&[10, 150_000, 299_000], "what\n");
    let two = ReadOptions { skip_bad: 2, ..options.clone() };
    assert!(read(&bad, &two).unwrap_err().starts_with("t:299002: "));
    let three = ReadOptions { skip_bad: 3, ..options.clone() };
    let (columns, report) = read(&bad, &three).unwrap();
    assert_eq!((report.bad_lines, report.requests, report.lines), (3, LINES, LINES + 3));
    assert!(columns.offsets() == read(&whole, &options).unwrap().0.offsets());
    let cut = &whole[..whole.len() - 12];
    let (_, report) = read(cut, &options).unwrap();
    assert_eq!((report.ends_cut, report.requests), (true, LINES - 1));
}

#[test]
fn what_a_line_means_may_depend_on_a_block_before() {
    let mut text = String::new();
    for line in 0..100_000u64 {
        let (second, ns) = (line / 1000, line % 1000 * 1000);
        writeln!(text, "  8,0    3 {line:8} {second:5}.{ns:09}   697  D   WS {} + 8 [x]", line * 8).unwrap();
    }
    let options = ReadOptions { format: Some(Format::Blkparse), ..ReadOptions::default() };
    let summary = "CPU0 (8,0):\n Reads Queued:           0,        0KiB\n".repeat(20_000);
    let (_, report) = read(&(text.clone() + &summary), &options).unwrap();
    assert_eq!((report.requests, report.other_lines), (100_000, 40_000));
    let error = read(&(text.clone() + &summary + &text), &options).unwrap_err();
    assert!(error.starts_with("t:140001: ") && error.contains("summary"), "{error}");

    let mut log = "fio version 2 iolog\nf add\nf open\n".to_owned();
    for line in 0..100_000 {
        writeln!(log, "f write {} 4096\nf wait 10 0", line * 4096).unwrap();
    }
    let options = ReadOptions { format: Some(Format::FioIolog), ..ReadOptions::default() };
    let (columns, _) = read(&log, &options).unwrap();
    assert_eq!((columns.len(), columns.request(99_999).at.ns()), (100_000, 999_990_000));
}
