//! Tables of this process as traces: `table:HASH`, with the hash of the requests.
//!
//! 1. The same requests have the same name in every process; another process has them once it was given their [`file()`].
//! 2. A table is kept, as a column file (about 10 bytes a request), until the process ends: a name is a text, and nobody knows
//!    who still has it.

use crate::columns::Columns;
use crate::parquet::{self, Batch, TableField};
use crate::{TraceError, nvt};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// What their names begin with.
pub(crate) const PREFIX: &str = "table:";
/// What messages call a table that has no name yet.
const TABLE: &str = "table";

/// The file of a table.
type File = Arc<Vec<u8>>;

static KEPT: LazyLock<Mutex<HashMap<String, File>>> = LazyLock::new(Mutex::default);

fn kept() -> MutexGuard<'static, HashMap<String, File>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of a table without the prefix, if `path` is one.
pub(crate) fn name(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// The requests of a table with the columns of a trace in Parquet (`nvlab explain traces`), which is not kept.
/// It comes in batches of rows, in which every column has as many; an error ends it.
pub fn columns(
    fields: &[TableField],
    batches: impl Iterator<Item = Batch> + Send + 'static,
) -> Result<Columns, TraceError> {
    Ok(parquet::take(fields, batches, TABLE)?.0)
}

/// Keeps such a table; returns its name, `table:HASH`.
pub fn keep(
    fields: &[TableField],
    batches: impl Iterator<Item = Batch> + Send + 'static,
) -> Result<String, TraceError> {
    let mut columns = columns(fields, batches)?;
    columns.origin.hash = xxh3_64(&encoded(&columns));
    let name = format!("{:016x}", columns.origin.hash);
    let file = Arc::new(encoded(&columns));
    kept().insert(name.clone(), file);
    Ok(format!("{PREFIX}{name}"))
}

/// Keeps the file of a table of another process, under the name it has there.
pub fn keep_file(bytes: Vec<u8>) -> Result<(), TraceError> {
    let columns = nvt::decode(&bytes, TABLE)?;
    let name = format!("{:016x}", columns.origin.hash);
    kept().insert(name, Arc::new(bytes));
    Ok(())
}

/// The file of a table, by its name without the prefix.
pub fn file(name: &str) -> Result<File, TraceError> {
    let found = kept().get(name).cloned();
    found.ok_or_else(|| TraceError::Refused {
        what: format!("{PREFIX}{name}"),
        reason: "this process has no such table: the Python package makes them from data frames".to_owned(),
    })
}

fn encoded(columns: &Columns) -> Vec<u8> {
    let mut bytes = Vec::new();
    nvt::encode(columns, &mut bytes).expect("a vector takes all bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cells, FieldKind, ReadOptions, read};
    use crate::{Op, Request};
    use nvlab_units::Time;
    use std::ops::Range;

    #[test]
    fn a_table_reads_as_it_was_and_has_the_name_of_its_requests() {
        let mut columns = Columns::new(Default::default());
        for number in 0..1000 {
            let (at, offset) = (Time::from_ps(number * 1000), number * 4096);
            columns.push(Request { at, offset, bytes: 4096, op: Op::Write, ..Request::default() });
        }
        let keep_rows = |rows: Range<usize>| {
            let whole = |values: &[u64]| Cells::Unsigned(values[rows.clone()].to_vec());
            let named = [
                ("time_ps", whole(columns.at_ps())),
                ("op", Cells::Texts(vec!["write".into(); rows.len()])),
                ("offset_bytes", whole(columns.offsets())),
                ("length_bytes", Cells::Signed(vec![4096; rows.len()])),
            ];
            let field = |name: &str| TableField { name: name.into(), kind: FieldKind::Other };
            let (fields, cells): (Vec<_>, Vec<_>) =
                named.into_iter().map(|(name, cells)| (field(name), cells)).unzip();
            keep(&fields, [Ok(cells)].into_iter()).unwrap()
        };
        let kept = keep_rows(0..1000);
        assert_eq!(keep_rows(0..1000), kept);
        assert_ne!(keep_rows(0..999), kept);
        let (found, _) = read(kept.as_ref(), &ReadOptions::default()).unwrap();
        assert_eq!((found.at_ps(), found.offsets()), (columns.at_ps(), columns.offsets()));
        assert_eq!(kept, format!("{PREFIX}{:016x}", found.origin.hash));
        let bytes = file(&kept[PREFIX.len()..]).unwrap().to_vec();
        keep_file(bytes).unwrap();
        let error = read("table:0".as_ref(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("table:0: this process has no such table"), "{error}");
    }
}
