//! Tables come back from their files as they were; what is no table is refused.

use super::*;

fn sample(rows: u64) -> Table {
    let missing = |row: &u64| row % 7 == 3;
    let rows = || 0..rows;
    let texts = rows().map(|row| Some(format!("row {row}")).filter(|_| !missing(&row)));
    let columns = vec![
        Column::new("text", Values::Texts(texts.collect())),
        Column::new("number", Values::Numbers(rows().map(|row| Some(row as f64 / 3.0)).collect())),
        Column {
            may_miss: false,
            ..Column::new("count", Values::Counts(rows().map(|row| Some(u64::MAX - row)).collect()))
        },
        Column::new(
            "flag",
            Values::Flags(rows().map(|row| Some(row % 2 == 0).filter(|_| !missing(&row))).collect()),
        ),
        Column::new("nothing", Values::Numbers(rows().map(|_| None).collect())),
    ];
    Table { columns, metadata: vec![("b".into(), "2".into()), ("a".into(), "1".into())] }
}

#[test]
fn a_table_comes_back_as_it_was() {
    // None, one, more than are handed over at once, more than a row group.
    for rows in [0, 1, 100, (1 << 16) + 1, (1 << 20) + 5] {
        let table = sample(rows);
        let file = table.parquet().unwrap();
        assert_eq!(file, table.parquet().unwrap());
        let back = Table::of_bytes(file).unwrap();
        assert!(back == table, "{rows} rows");
        assert_eq!((back.rows() as u64, back.says("a"), back.says("c")), (rows, Some("1"), None));
    }
    let table = sample(9);
    let text = table.column("text").unwrap();
    assert_eq!((text.text(2), text.text(3), text.number(2)), (Some("row 2"), None, None));
    assert_eq!(table.column("number").unwrap().number(3), Some(1.0));
}

#[test]
fn what_is_no_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let mut file = sample(50).parquet().unwrap();
    for length in [0, 3, file.len() / 2, file.len() - 1] {
        std::fs::write(&path, &file[..length]).unwrap();
        assert!(Table::load(&path).is_err(), "{length} of {} B", file.len());
    }
    // The length of the footer.
    let at = file.len() - 8;
    file[at] ^= 0xff;
    assert!(Table::of_bytes(file).is_err());
    assert!(Table::load(&folder.path().join("none")).is_err());
    let field = Field { name: "small", kind: Kind::Small, may_miss: false };
    let mut bytes = Vec::new();
    write(&mut bytes, &[field], 3, |_, rows| Cells::Smalls(Box::new(rows.map(|row| Some(row as u32)))), &[])
        .unwrap();
    let error = Table::of_bytes(bytes).unwrap_err().to_string();
    assert_eq!(error, "its column `small` is of INT32");
}
