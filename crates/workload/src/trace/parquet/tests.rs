//! Tables as others write them, and what is said of wrong ones.

use super::*;
use arrow_array::RecordBatch;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, LargeStringArray, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// A file of these columns with two rows in a row group.
fn file(columns: Vec<(&str, ArrayRef)>) -> bytes::Bytes {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn ops(texts: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(texts.to_vec()))
}

fn whole(numbers: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(numbers.to_vec()))
}

fn read_all(
    columns: Vec<(&str, ArrayRef)>,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), WorkloadError> {
    read(file(columns), 7, Path::new("t.parquet"), options)
}

#[test]
fn tables_of_other_programs() {
    let options = ReadOptions::default();
    // As pandas writes them: floating-point seconds, whole numbers, an index that is of no use here.
    let (columns, report) = read_all(
        vec![
            ("__index_level_0__", whole(&[0, 1, 2])),
            ("length_sectors", Arc::new(Int32Array::from(vec![8, 16, 0]))),
            ("time_s", Arc::new(Float64Array::from(vec![1.7e9, 1.7e9 + 0.5, 1.7e9 + 2.0]))),
            ("offset_sectors", whole(&[10, 0, 0])),
            ("op", Arc::new(LargeStringArray::from(vec!["W", "Read", "FLUSH"]))),
            ("volume", whole(&[3, 4, 3])),
            ("fua", Arc::new(BooleanArray::from(vec![true, false, false]))),
            ("response_us", whole(&[10, 20, 30])),
        ],
        &options,
    )
    .unwrap();
    columns.check();
    assert_eq!(report.to_string(), "parquet: 3 requests from 3 rows");
    let all: Vec<_> = columns.iter().map(|r| (r.at.ps(), r.offset, r.bytes, r.op, r.fua, r.volume)).collect();
    let second = 1_000_000_000_000;
    assert_eq!(
        all,
        [
            (0, 5120, 4096, Op::Write, true, 0),
            (second / 2, 0, 8192, Op::Read, false, 1),
            (2 * second, 0, 0, Op::Flush, false, 0)
        ]
    );
    assert_eq!(columns.volumes(), ["3", "4"]);
    assert_eq!(columns.response_ps(), Some(&[10_000_000, 20_000_000, 30_000_000][..]));
    // A timestamp, as Spark and DuckDB have them; only one volume.
    let one = ReadOptions { volumes: vec!["b".to_owned()], ..ReadOptions::default() };
    let (columns, report) = read_all(
        vec![
            (
                "time",
                Arc::new(TimestampMicrosecondArray::from(vec![1_700_000_000_000_007, 1_700_000_000_000_009])),
            ),
            ("op", ops(&["trim", "write"])),
            ("offset_bytes", Arc::new(UInt64Array::from(vec![0, 4096]))),
            ("length_bytes", whole(&[1 << 20, 512])),
            ("volume", ops(&["b", "a"])),
        ],
        &one,
    )
    .unwrap();
    assert_eq!((columns.len(), report.other_volumes, columns.request(0).op), (1, 1, Op::Trim));
}

#[test]
fn a_look_at_the_beginning_reads_no_more() {
    let many = 3 * BATCH_ROWS as i64;
    let all: Vec<i64> = (0..many).collect();
    let columns = || {
        vec![
            ("time_us", whole(&all)),
            ("op", ops(&vec!["r"; all.len()])),
            ("offset_bytes", whole(&all)),
            ("length_bytes", whole(&vec![1; all.len()])),
        ]
    };
    let few = ReadOptions { lines_max: Some(10), ..ReadOptions::default() };
    assert_eq!(read_all(columns(), &few).unwrap().0.len(), BATCH_ROWS);
    assert_eq!(read_all(columns(), &ReadOptions::default()).unwrap().0.len(), all.len());
}

#[test]
fn wrong_tables_are_told_row_and_column() {
    let table = |time: &[i64], op: &[&str], length: &[i64]| {
        vec![
            ("time_ms", whole(time)),
            ("op", ops(op)),
            ("offset_bytes", whole(&vec![0; time.len()])),
            ("length_bytes", whole(length)),
        ]
    };
    let said = |columns| read_all(columns, &ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(
        said(table(&[1, 2, 3], &["r", "w", "erase"], &[1, 1, 1])),
        "t.parquet: row 3: op 'erase' is wrong: read, write, trim or flush"
    );
    assert_eq!(
        said(table(&[1, -2], &["r", "w"], &[1, 1])),
        "t.parquet: row 2: time_ms '-2' is wrong: a number from 0 to 18446744073709551615 in its base unit"
    );
    let skipping = ReadOptions { skip_bad: 1, ..ReadOptions::default() };
    assert_eq!(read_all(table(&[1, 2], &["x", "w"], &[1, 1]), &skipping).unwrap().1.bad_lines, 1);
    let mut null = table(&[1, 2], &["r", "w"], &[1, 1]);
    null[3].1 = Arc::new(Int64Array::from(vec![Some(512), None]));
    assert_eq!(said(null), "t.parquet: row 2: length_bytes 'null' is wrong: a value in every row");
    let mut missing = table(&[1], &["r"], &[1]);
    missing.remove(2);
    assert!(said(missing).starts_with(
        "t.parquet: it has no column for the offset; it has time_ms, op, length_bytes; needed: time_UNIT"
    ));
    let mut twice = table(&[1], &["r"], &[1]);
    twice.push(("time_s", whole(&[1])));
    assert_eq!(said(twice), "t.parquet: it has both `time_ms` and `time_s`");
    let mut text = table(&[1], &["r"], &[1]);
    text[2].1 = ops(&["4k"]);
    assert_eq!(said(text), "t.parquet: row 1: offset_bytes 'Utf8' is wrong: a numeric column");
    let cut = file(table(&[1, 2], &["r", "w"], &[1, 1]));
    let cut = read(cut.slice(..cut.len() / 2), 0, Path::new("t.parquet"), &ReadOptions::default());
    assert!(cut.unwrap_err().to_string().starts_with("t.parquet: "));
}

/// A folder of its own, removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nvlab-parquet-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
    fn put(&self, name: &str, columns: Vec<(&str, ArrayRef)>) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file(columns)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn table(time: (&'static str, &[i64]), op: &str) -> Vec<(&'static str, ArrayRef)> {
    let rows = time.1.len();
    vec![
        (time.0, whole(time.1)),
        ("op", ops(&vec![op; rows])),
        ("offset_bytes", whole(time.1)),
        ("length_bytes", whole(&vec![512; rows])),
    ]
}

/// Several files of one volume, times in different units, names that had to be escaped.
#[test]
fn files_below_a_folder_are_one_trace() {
    let folder = Folder::new("merge");
    folder.put("volume=a%2Fb/part-0.parquet", table(("time_ms", &[10, 12, 20]), "w"));
    folder.put("volume=a%2Fb/part-1.parquet", table(("time_ms", &[21, 30]), "w"));
    folder.put("volume=7/x/part-0.parquet", table(("time_us", &[11_000, 12_000, 25_500]), "r"));
    folder.put("plain.parquet", table(("time_ns", &[9_999_999, 40_000_000]), "t"));
    folder.put("_metadata/volume=8/part-0.parquet", table(("time_ns", &[0]), "t"));
    std::fs::write(folder.0.join("_SUCCESS"), "").unwrap();
    let (columns, report) = crate::trace::read(&folder.0, &ReadOptions::default()).unwrap();
    columns.check();
    assert_eq!(report.to_string(), "parquet: 10 requests from 10 rows");
    let name = |number: u16| columns.volumes()[number as usize].as_str();
    let all: Vec<(u64, &str, Op)> =
        columns.iter().map(|r| (r.at.ps() / 1000, name(r.volume), r.op)).collect();
    let (w, r, t) = (Op::Write, Op::Read, Op::Trim);
    assert_eq!(
        all,
        [
            (0, "plain", t),
            (1, "a/b", w),
            (1_000_001, "7", r),
            (2_000_001, "7", r),
            (2_000_001, "a/b", w),
            (10_000_001, "a/b", w),
            (11_000_001, "a/b", w),
            (15_500_001, "7", r),
            (20_000_001, "a/b", w),
            (30_000_001, "plain", t)
        ]
    );
    let one = ReadOptions { volumes: vec!["a/b".to_owned()], ..ReadOptions::default() };
    let (columns, report) = crate::trace::read(&folder.0, &one).unwrap();
    assert_eq!((columns.len(), report.other_volumes, report.lines), (5, 5, 10));
    let few = ReadOptions { lines_max: Some(3), ..ReadOptions::default() };
    assert_eq!(crate::trace::read(&folder.0, &few).unwrap().0.len(), 3);
    // What a file says of itself counts where its place says nothing.
    let mut named = table(("time_ns", &[1, 2]), "t");
    named.push(("volume", ops(&["p", "q"])));
    folder.put("plain.parquet", named);
    let (columns, _) = crate::trace::read(&folder.0, &ReadOptions::default()).unwrap();
    assert!(columns.volumes().contains(&"q".to_owned()) && !columns.volumes().contains(&"plain".to_owned()));
}

#[test]
fn a_split_trace_is_read_as_before() {
    let mut columns = Columns::new(Origin::default());
    let others = ["b c", "%41"].map(|name| columns.add_volume(name));
    let mut rng = nvlab_units::Rng::new(3);
    for i in 0..5000 {
        let volume = [0, others[0], others[1]][rng.below(3) as usize];
        let (op, bytes) = [(Op::Write, 4096), (Op::Read, 512), (Op::Flush, 0)][rng.below(3) as usize];
        let at = crate::Time::from_ps(i * 7);
        let request =
            crate::Request { at, op, bytes, offset: rng.below(1 << 40), volume, ..Default::default() };
        columns.push_answered(request, crate::Span::from_ps(i));
    }
    let folder = Folder::new("split");
    let format = (crate::trace::Format::Parquet, "parquet");
    let source = folder.0.with_extension("nvt");
    let _ = std::fs::remove_file(&source);
    crate::trace::write_file(&columns, crate::trace::Format::Nvt, &source).unwrap();
    let split = || crate::trace::split(&source, &ReadOptions::default(), format, &folder.0);
    let (written, _) = split().unwrap();
    assert_eq!(written.len(), 3);
    assert!(folder.0.join("volume=b%20c/part-0.parquet").is_file());
    assert!(split().is_err(), "they exist");
    std::fs::remove_file(&source).unwrap();
    // The folder of one volume is that volume, in however many files.
    let one = folder.0.join("volume=b%20c");
    std::fs::copy(one.join("part-0.parquet"), one.join("part-1.parquet")).unwrap();
    let (twice, _) = crate::trace::read(&one, &ReadOptions::default()).unwrap();
    assert_eq!(twice.volumes(), ["b c"]);
    std::fs::remove_file(one.join("part-1.parquet")).unwrap();
    let (found, report) = crate::trace::read(&folder.0, &ReadOptions::default()).unwrap();
    assert_eq!(report.reordered, 0);
    let rows = |columns: &Columns| -> Vec<_> {
        let name = |number: u16| columns.volumes()[number as usize].clone();
        let responses = columns.response_ps().unwrap().to_vec();
        let requests = columns.iter().map(|r| (r.at, r.offset, r.bytes, r.op, name(r.volume)));
        requests.zip(responses).collect()
    };
    assert!(rows(&found) == rows(&columns));
    // A single file that is cut off is named.
    let part = folder.0.join("volume=0/part-0.parquet");
    std::fs::write(&part, b"PAR1").unwrap();
    let error = crate::trace::read(&folder.0, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("volume=0/part-0.parquet: "), "{error}");
    let empty = Folder::new("empty");
    std::fs::create_dir_all(&empty.0).unwrap();
    let error = crate::trace::read(&empty.0, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("no file below it ends in .parquet"), "{error}");
}
