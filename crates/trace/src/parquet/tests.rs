//! Tables as others write them, and what is said of wrong ones.

use super::*;
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// A column as another program writes it.
#[derive(Clone)]
enum Column {
    Int64(&'static str, Vec<i64>),
    /// With missing values.
    Some64(Vec<Option<i64>>),
    Int32(&'static str, Vec<i32>),
    Int96(Vec<[u32; 3]>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Flags(Vec<bool>),
    Texts(Vec<String>),
    /// A group with one part.
    Nested(Vec<i64>),
}

impl Column {
    fn schema(&self, name: &str) -> String {
        match self {
            Column::Int64(kind, _) => format!("REQUIRED INT64 {name} {kind};"),
            Column::Some64(_) => format!("OPTIONAL INT64 {name};"),
            Column::Int32(kind, _) => format!("REQUIRED INT32 {name} {kind};"),
            Column::Int96(_) => format!("REQUIRED INT96 {name};"),
            Column::Float(_) => format!("REQUIRED FLOAT {name};"),
            Column::Double(_) => format!("REQUIRED DOUBLE {name};"),
            Column::Flags(_) => format!("REQUIRED BOOLEAN {name};"),
            Column::Texts(_) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
            Column::Nested(_) => format!("REQUIRED GROUP {name} {{ REQUIRED INT64 part; }}"),
        }
    }

    fn len(&self) -> usize {
        match self {
            Column::Int64(_, values) | Column::Nested(values) => values.len(),
            Column::Some64(values) => values.len(),
            Column::Int32(_, values) => values.len(),
            Column::Int96(values) => values.len(),
            Column::Float(values) => values.len(),
            Column::Double(values) => values.len(),
            Column::Flags(values) => values.len(),
            Column::Texts(values) => values.len(),
        }
    }

    fn put(&self, rows: std::ops::Range<usize>, into: &mut SerializedColumnWriter<'_>) {
        fn put<T: DataType>(into: &mut SerializedColumnWriter<'_>, values: &[T::T], levels: Option<&[i16]>) {
            into.typed::<T>().write_batch(values, levels, None).unwrap();
        }
        match self {
            Column::Int64(_, values) | Column::Nested(values) => put::<Int64Type>(into, &values[rows], None),
            Column::Some64(values) => {
                let levels: Vec<i16> =
                    values[rows.clone()].iter().map(|value| value.is_some().into()).collect();
                let values: Vec<i64> = values[rows].iter().flatten().copied().collect();
                put::<Int64Type>(into, &values, Some(&levels));
            }
            Column::Int32(_, values) => put::<Int32Type>(into, &values[rows], None),
            Column::Int96(values) => {
                let values: Vec<Int96> = values[rows].iter().map(|words| words.to_vec().into()).collect();
                put::<Int96Type>(into, &values, None);
            }
            Column::Float(values) => put::<FloatType>(into, &values[rows], None),
            Column::Double(values) => put::<DoubleType>(into, &values[rows], None),
            Column::Flags(values) => put::<BoolType>(into, &values[rows], None),
            Column::Texts(values) => {
                let values: Vec<Text> = values[rows].iter().map(|text| text.as_str().into()).collect();
                put::<ByteArrayType>(into, &values, None);
            }
        }
    }
}

/// A file of these columns with two rows in a row group.
fn file(columns: Vec<(&str, Column)>) -> bytes::Bytes {
    let schema: String = columns.iter().map(|(name, column)| column.schema(name)).collect();
    let schema = parse_message_type(&format!("message t {{ {schema} }}")).unwrap();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Default::default()).unwrap();
    let rows = columns[0].1.len();
    for first in (0..rows).step_by(2) {
        let mut group = writer.next_row_group().unwrap();
        for (_, column) in &columns {
            let mut into = group.next_column().unwrap().unwrap();
            column.put(first..rows.min(first + 2), &mut into);
            into.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes.into()
}

fn ops(texts: &[&str]) -> Column {
    Column::Texts(texts.iter().map(|text| text.to_string()).collect())
}

fn whole(numbers: &[i64]) -> Column {
    Column::Int64("", numbers.to_vec())
}

fn read_all(
    columns: Vec<(&str, Column)>,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), TraceError> {
    read(file(columns), 7, Path::new("t.parquet"), options)
}

#[test]
fn tables_of_other_programs() {
    let options = ReadOptions::default();
    // As pandas writes them: floating-point seconds, whole numbers, an index that is of no use here.
    let (columns, report) = read_all(
        vec![
            ("__index_level_0__", whole(&[0, 1, 2])),
            ("length_sectors", Column::Int32("", vec![8, 16, 0])),
            ("time_s", Column::Double(vec![1.7e9, 1.7e9 + 0.5, 1.7e9 + 2.0])),
            ("offset_sectors", whole(&[10, 0, 0])),
            ("op", ops(&["W", "Read", "FLUSH"])),
            ("volume", whole(&[3, 4, 3])),
            ("fua", Column::Flags(vec![true, false, false])),
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
                Column::Int64("(TIMESTAMP(MICROS,true))", vec![1_700_000_000_000_007, 1_700_000_000_000_009]),
            ),
            ("op", ops(&["trim", "write"])),
            ("offset_bytes", Column::Int64("(INTEGER(64,false))", vec![0, 4096])),
            ("length_bytes", whole(&[1 << 20, 512])),
            ("volume", ops(&["b", "a"])),
        ],
        &one,
    )
    .unwrap();
    assert_eq!((columns.len(), report.other_volumes, columns.request(0).op), (1, 1, Op::Trim));
}

/// Unsigned numbers beyond half of their range, single precision, the timestamps of old Spark and Impala, types without a meaning here.
#[test]
fn values_mean_what_their_type_says() {
    let table = |time: Column, offset: Column| {
        vec![
            ("time", time),
            ("op", ops(&["w", "w"])),
            ("offset_bytes", offset),
            ("length_bytes", Column::Int32("(INTEGER(32,false))", vec![512, -1])),
        ]
    };
    let millis = || Column::Int64("(TIMESTAMP_MILLIS)", vec![5, 7]);
    let found = |columns| {
        let (columns, _) = read_all(columns, &ReadOptions::default()).unwrap();
        columns.iter().map(|r| (r.at.ps() / 1_000, r.offset, r.bytes)).collect::<Vec<_>>()
    };
    let large = Column::Int64("(UINT_64)", vec![0, 1 << 40]);
    assert_eq!(found(table(millis(), large.clone())), [(0, 0, 512), (2_000_000, 1 << 40, u32::MAX)]);
    assert_eq!(
        found(table(millis(), Column::Float(vec![0.0, 4096.0]))),
        [(0, 0, 512), (2_000_000, 4096, u32::MAX)]
    );
    // A nanosecond before and after midnight.
    let last = 86_400_000_000_000_u64 - 1;
    let old = Column::Int96(vec![[last as u32, (last >> 32) as u32, 2_440_588], [1, 0, 2_440_589]]);
    assert_eq!(found(table(old, large)), [(0, 0, 512), (2, 1 << 40, u32::MAX)]);
    let said = |offset| read_all(table(millis(), offset), &ReadOptions::default()).unwrap_err().to_string();
    for (offset, kind) in [
        (Column::Int32("(DATE)", vec![1, 2]), "dates"),
        (Column::Int64("(DECIMAL(9,2))", vec![1, 2]), "decimal numbers"),
        (Column::Nested(vec![1, 2]), "nested values"),
        (Column::Flags(vec![true, false]), "true and false"),
    ] {
        assert_eq!(
            said(offset),
            format!("t.parquet: row 1: offset_bytes '{kind}' is wrong: a numeric column")
        );
    }
    let beyond = Column::Int64("(UINT_64)", vec![0, -1]);
    assert!(said(beyond).starts_with("t.parquet: row 2: offset "), "it ends beyond 2^64");
}

#[test]
fn a_look_at_the_beginning_reads_no_more() {
    let many = 1000;
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
    assert_eq!(read_all(columns(), &few).unwrap().0.len(), 10);
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
    null[3].1 = Column::Some64(vec![Some(512), None]);
    assert_eq!(said(null), "t.parquet: row 2: length_bytes 'null' is wrong: a value in every row");
    let mut missing = table(&[1], &["r"], &[1]);
    missing.remove(2);
    assert!(said(missing).starts_with(
        "t.parquet: it has no column for the offset; its columns are time_ms, op, length_bytes; needed: time_UNIT"
    ));
    let mut twice = table(&[1], &["r"], &[1]);
    twice.push(("time_s", whole(&[1])));
    assert_eq!(said(twice), "t.parquet: it has both `time_ms` and `time_s`");
    let mut text = table(&[1], &["r"], &[1]);
    text[2].1 = ops(&["4k"]);
    assert_eq!(said(text), "t.parquet: row 1: offset_bytes 'texts' is wrong: a numeric column");
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
    fn put(&self, name: &str, columns: Vec<(&str, Column)>) {
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

fn table(time: (&'static str, &[i64]), op: &str) -> Vec<(&'static str, Column)> {
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
    let (columns, report) = crate::read(&folder.0, &ReadOptions::default()).unwrap();
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
    let (columns, report) = crate::read(&folder.0, &one).unwrap();
    assert_eq!((columns.len(), report.other_volumes, report.lines), (5, 5, 10));
    let few = ReadOptions { lines_max: Some(3), ..ReadOptions::default() };
    assert_eq!(crate::read(&folder.0, &few).unwrap().0.len(), 3);
    // What a file says of itself counts where its place says nothing.
    let mut named = table(("time_ns", &[1, 2]), "t");
    named.push(("volume", ops(&["p", "q"])));
    folder.put("plain.parquet", named);
    let (columns, _) = crate::read(&folder.0, &ReadOptions::default()).unwrap();
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
        let at = nvlab_units::Time::from_ps(i * 7);
        let request =
            crate::Request { at, op, bytes, offset: rng.below(1 << 40), volume, ..Default::default() };
        columns.push_answered(request, nvlab_units::Span::from_ps(i));
    }
    let folder = Folder::new("split");
    let format = (crate::Format::Parquet, "parquet");
    let source = folder.0.with_extension("nvt");
    let _ = std::fs::remove_file(&source);
    crate::write_file(&columns, crate::Format::Nvt, &source).unwrap();
    let split = || crate::split(&source, &ReadOptions::default(), format, &folder.0);
    let (written, _) = split().unwrap();
    assert_eq!(written.len(), 3);
    assert!(folder.0.join("volume=b%20c/part-0.parquet").is_file());
    assert!(split().is_err(), "they exist");
    std::fs::remove_file(&source).unwrap();
    // The folder of one volume is that volume, in however many files.
    let one = folder.0.join("volume=b%20c");
    std::fs::copy(one.join("part-0.parquet"), one.join("part-1.parquet")).unwrap();
    let (twice, _) = crate::read(&one, &ReadOptions::default()).unwrap();
    assert_eq!(twice.volumes(), ["b c"]);
    std::fs::remove_file(one.join("part-1.parquet")).unwrap();
    let (found, report) = crate::read(&folder.0, &ReadOptions::default()).unwrap();
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
    let error = crate::read(&folder.0, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("volume=0/part-0.parquet: "), "{error}");
    let empty = Folder::new("empty");
    std::fs::create_dir_all(&empty.0).unwrap();
    let error = crate::read(&empty.0, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with("no file below it ends in .parquet"), "{error}");
}
