//! Completions in the text of blkparse: response times, and volumes.

use nvlab_trace::Columns;
use nvlab_trace::{Format, ReadOptions, ReadReport, read_from};
use std::path::Path;

fn parse(text: &str, format: Format) -> Result<(Columns, ReadReport), String> {
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    read_from(text.as_bytes(), Path::new("t"), &options).map_err(|error| error.to_string())
}

#[test]
fn completions_of_blkparse_give_response_times() {
    let text = "  8,0 0 1 0.000100000 9 D WS 800 + 8 [a]\n  8,0 0 2 0.000150000 9 D R 800 + 16 [a]\n\
                \x20 8,0 0 3 0.000200000 9 D FN [b]\n  8,0 0 4 0.000300000 0 C WS 800 + 8 [0]\n\
                \x20 8,0 0 5 0.000350000 0 C R 800 + 8 [0]\n  8,0 0 6 0.000400000 0 C FN 0 [0]\n\
                \x20 8,0 0 7 0.000450000 0 C R 808 + 8 [0]\n";
    let (columns, report) = parse(text, Format::Blkparse).unwrap();
    assert_eq!(columns.response_ps(), Some(&[200_000_000, 300_000_000, 200_000_000][..]));
    let expected = "blkparse: 3 requests from 7 lines (left out: 4 without a request); response \
                    times from completions";
    assert_eq!(report.to_string(), expected);
    // In flight when the recording stopped: as long as that, but no longer than the longest.
    let cut = text.rsplit_once("  8,0 0 7").unwrap().0;
    let (columns, report) = parse(cut, Format::Blkparse).unwrap();
    assert_eq!(columns.response_ps(), Some(&[200_000_000, 200_000_000, 200_000_000][..]));
    assert!(report.to_string().ends_with("; 2 completions, 1 missing"), "{report}");
    // Most of the completions are missing: none are known.
    let few = text.lines().filter(|line| !line.contains(" C R") && !line.contains(" C F"));
    let few = few.collect::<Vec<_>>().join("\n");
    assert_eq!(parse(&few, Format::Blkparse).unwrap().0.response_ps(), None);
}

/// Mapped devices have completions, but their requests are given to the drivers of others; a recording may begin in mid-flight.
#[test]
fn completions_make_no_volumes() {
    let text = "253,0 0 1 0.000050000 0 C WS 800 + 8 [0]\n  8,0 0 2 0.000060000 0 C FN 0 [0]\n\
                \x20 9,0 0 3 0.000070000 0 C N 0 [0]\n  8,0 0 4 0.000100000 9 D WS 800 + 8 [a]\n\
                \x20 8,0 0 5 0.000300000 0 C WS 800 + 8 [0]\n253,0 0 6 0.000400000 0 C WS 800 + 8 [0]\n";
    let (columns, _) = parse(text, Format::Blkparse).unwrap();
    assert_eq!(columns.volumes(), ["8,0"]);
    assert_eq!(columns.response_ps(), Some(&[200_000_000][..]));
    // In many blocks, which are parsed apart.
    let mut text = text.to_owned();
    for at in 1..40_000 {
        text += &format!("253,0 0 1 {at}.000050000 0 C WS 800 + 8 [0]\n");
        text += &format!("  8,{} 0 4 {at}.000100000 9 D WS 800 + 8 [a]\n", at % 2 * 16);
        text += &format!("  8,{} 0 4 {at}.000107000 9 C WS 800 + 8 [0]\n", at % 2 * 16);
    }
    let (columns, _) = parse(&text, Format::Blkparse).unwrap();
    columns.check();
    assert_eq!(columns.volumes(), ["8,0", "8,16"]);
    let responses = columns.response_ps().unwrap();
    assert_eq!(responses.len(), 40_000);
    assert!(responses[1..].iter().all(|&ps| ps == 7_000_000));
}
