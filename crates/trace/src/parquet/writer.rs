//! Writes a trace as a Parquet table.

use crate::columns::{Columns, FUA_BIT, op_of};
use nvlab_table::{Cells, Field, Kind};
use std::io::{Result, Write};
use std::ops::Range;

/// Writes a trace; equal traces give equal bytes.
pub(crate) fn write(columns: &Columns, out: impl Write + Send) -> Result<()> {
    write_table(columns, true, out)
}

/// Writes a trace of one volume that the name of its folder says: the column would be there twice.
pub(super) fn write_part(columns: &Columns, out: impl Write + Send) -> Result<()> {
    write_table(columns, false, out)
}

fn write_table(columns: &Columns, names_volumes: bool, out: impl Write + Send) -> Result<()> {
    let field = |name, kind| Field { name, kind, may_miss: false };
    let mut fields = vec![
        field("time_ps", Kind::Count),
        field("op", Kind::Text),
        field("offset_bytes", Kind::Count),
        field("length_bytes", Kind::Small),
    ];
    fields.extend(names_volumes.then(|| field("volume", Kind::Text)));
    fields.push(field("fua", Kind::Flag));
    fields.extend(columns.response_ps().map(|_| field("response_ps", Kind::Count)));
    let cells = |at: usize, rows: Range<usize>| cells(columns, fields[at].name, rows);
    nvlab_table::write(out, &fields, columns.len(), cells, &[])
}

fn cells<'a>(columns: &'a Columns, name: &str, rows: Range<usize>) -> Cells<'a> {
    let counts = |values: &'a [u64]| Cells::Counts(Box::new(values[rows.clone()].iter().copied().map(Some)));
    let codes = || columns.op[rows.clone()].iter();
    match name {
        "time_ps" => counts(&columns.at_ps),
        "op" => Cells::Texts(Box::new(codes().map(|&code| Some(op_of(code).name())))),
        "offset_bytes" => counts(&columns.offset),
        "length_bytes" => Cells::Smalls(Box::new(columns.bytes[rows.clone()].iter().copied().map(Some))),
        "volume" => {
            let numbers = columns.volume[rows.clone()].iter();
            Cells::Texts(Box::new(numbers.map(|&number| Some(columns.volumes[number as usize].as_str()))))
        }
        "fua" => Cells::Flags(Box::new(codes().map(|&code| Some(code & FUA_BIT != 0)))),
        "response_ps" => counts(columns.response_ps().expect("its responses are known")),
        other => unreachable!("a column {other}"),
    }
}
