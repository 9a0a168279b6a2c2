//! What is wrong with a trace is named with its place, its column and what is allowed.

use Format::*;
use nvlab_trace::Columns;
use nvlab_trace::{Format, ReadOptions, read_from};
use std::path::Path;

fn parse(text: &str, format: Format) -> Result<Columns, String> {
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let read = read_from(text.as_bytes(), Path::new("t"), &options);
    read.map(|(columns, _)| columns).map_err(|error| error.to_string())
}

const WRONG: &[(Format, &str, &str)] = &[
    (Alibaba, "1,R,0,512,1\n1,X,0,512,2\n", "t:2: opcode 'X' is wrong: R or W"),
    (Alibaba, "1,R,-5,512,1\n", "t:1: offset '-5' is wrong: a whole number from 0 to 18446744073709551615"),
    (Alibaba, "1,R,0,512\n", "t:1: timestamp '' is wrong: the line ends before this column"),
    (
        Alibaba,
        "1,R,0,512,1,9\n",
        "t:1: further column '9' is wrong: the columns are device_id,opcode,offset,length,timestamp",
    ),
    (Alibaba, "1,R,0,4294967296,1\n", "t:1: size '4294967296' is wrong: a read has at most 4294967295 bytes"),
    (
        Alibaba,
        "1,R,18446744073709551615,512,1\n",
        "t:1: offset '18446744073709551615' is wrong: offset + 512 bytes exceeds 2^64",
    ),
    (Tencent, "1,8,8,2,1\n", "t:1: io_type '2' is wrong: 0 (read) or 1 (write)"),
    (
        Tencent,
        "1,99999999999999999,8,1,1\n",
        "t:1: offset '99999999999999999' is wrong: at most 36028797018963967 sectors of 512 B",
    ),
    (Msr, "1,h,0,read,0,512,0\n", "t:1: Type 'read' is wrong: Read or Write"),
    (Msr, "1,h,x,Read,0,512,0\n", "t:1: DiskNumber 'x' is wrong: a whole number"),
    (
        Msr,
        "1,h,0,Read,0,512,fast\n",
        "t:1: ResponseTime 'fast' is wrong: a whole number from 0 to 18446744073709551615",
    ),
    (Spc, "0,8,512,q,0.5\n", "t:1: opcode 'q' is wrong: r or w"),
    (
        Spc,
        "0,8,512,r,-0.5\n",
        "t:1: timestamp '-0.5' is wrong: seconds, e.g. 12.345678, from 0 to 18446744073",
    ),
    (Mqsim, "5 0 8 8 3\n", "t:1: kind '3' is wrong: 0 (write) or 1 (read)"),
    (
        FioIolog,
        "fio version 1 iolog\n",
        "t:1: version 'fio version 1 iolog' is wrong: 'fio version 2 iolog' or 'fio version 3 iolog'",
    ),
    (
        FioIolog,
        "fio version 3 iolog\n5 f wait 100 0\n",
        "t:2: action 'wait' is wrong: version 3 has times instead of wait",
    ),
    (
        FioIolog,
        "fio version 2 iolog\nf reed 0 512\n",
        "t:2: action 'reed' is wrong: read, write, trim, sync, datasync, wait, add, open, close or unlink",
    ),
    (FioIolog, "fio version 2 iolog\nf read\n", "t:2: offset '' is wrong: the line ends before this column"),
    (Blkparse, "hello world\n", "t:1: device 'hello' is wrong: major,minor, e.g. 8,0"),
    (
        Blkparse,
        "8,0 1 1 0.1 5 D X 8 + 8 [x]\n",
        "t:1: RWBS 'X' is wrong: [F] then R, W, D or N, then any of F A S M E B U V",
    ),
    (
        Blkparse,
        "8,0 1 1 0.1 5 D W 8 - 8 [x]\n",
        "t:1: + '-' is wrong: '+' between the first sector and their number",
    ),
    (
        Blkparse,
        "CPU0 (sda):\n8,0 1 1 0.1 5 D W 8 + 8 [x]\n",
        "t:2: line '8,0 1 1 0.1 5 D W 8 + 8 [x]' is wrong: only counts may follow the first line of the summary",
    ),
    (Alibaba, "", "t: no request in 0 lines"),
    (Alibaba, "1,R,0,0,5\n", "t: no request in 1 lines (left out: 1 of 0 bytes)"),
    (Blkparse, "8,0 1 1 0.1 5 Q W 8 + 8 [x]\n", "t: no request in 1 lines (left out: 1 without a request)"),
    (Nvt, "1,R,0,0,5\n", "t: damaged trace file: it does not begin like a column file"),
    (
        Tencent,
        "0,8,8,1,1\n99999999,8,8,1,1\n",
        "t: damaged trace file: its times span 1157 days; at most 213 can be replayed",
    ),
];

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for &(format, text, expected) in WRONG {
        assert_eq!(parse(text, format).map(|_| ()), Err(expected.to_owned()), "{format}: {text}");
    }
}

/// Three good MSR lines, a bad one among them, the last cut off, behind a byte order mark.
#[test]
fn bad_lines_may_be_skipped_and_a_cut_end_is_forgiven() {
    let good = "128166372003061629,web,0,Read,7014609920,24576,41286\n";
    let read = |text: &str, options: &ReadOptions| {
        let read = read_from(text.as_bytes(), Path::new("x.csv"), options);
        read.map(|(columns, report)| (columns.len(), report.to_string())).map_err(|error| error.to_string())
    };
    let plain = ReadOptions::default();
    let cut = format!("\u{feff}{good}{good}128166372003061629,web,0,Re");
    let report = "msr: 2 requests from 3 lines (left out: 1 cut off at the end)";
    assert_eq!(read(&cut, &plain), Ok((2, report.to_owned())));
    let text = format!("{good}{good}{good}{good}nonsense\n{good}");
    assert!(read(&text, &plain).unwrap_err().starts_with("x.csv:5: Timestamp 'nonsense' is wrong"));
    let one = ReadOptions { skip_bad: 1, ..ReadOptions::default() };
    let report = "msr: 5 requests from 6 lines (left out: 1 bad (skip-bad))";
    assert_eq!(read(&text, &one), Ok((5, report.to_owned())));
    assert!(read(&format!("{text}worse\n{good}"), &one).unwrap_err().starts_with("x.csv:7: "));
    let wrong = ReadOptions { format: Some(Format::Alibaba), ..ReadOptions::default() };
    let error = read(good, &wrong).unwrap_err();
    assert!(error.ends_with("; the file was read as alibaba, but looks like :msr"), "{error}");
}

/// The beginning of a long text is read without the rest of it.
#[test]
fn the_beginning_can_be_read_alone() {
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let line = b"128166372003061629,web,0,Read,7014609920,24576,41286\n";
            self.0 += 1;
            assert!(self.0 < 100_000, "it read on and on");
            let count = into.len().min(line.len()) / line.len() * line.len();
            into[..count].copy_from_slice(&line[..count]);
            Ok(if count == 0 {
                into[..1].copy_from_slice(b"\n");
                1
            } else {
                count
            })
        }
    }
    let options = ReadOptions { lines_max: Some(1000), ..ReadOptions::default() };
    let (columns, _) = read_from(Endless(0), Path::new("x.csv"), &options).unwrap();
    assert!((1000..20_000).contains(&columns.len()), "{}", columns.len());
}
