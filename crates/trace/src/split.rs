//! A trace as one file for each volume, or as a folder of tables for each: `nvlab trace split`.

use crate::TraceError;
use crate::columns::Columns;
use crate::format::Format;
use crate::options::ReadOptions;
use crate::parquet::Partitions;
use crate::read::{read, read_or_take};
use crate::report::ReadReport;
use crate::write::{WriteReport, write_file};
use std::path::{Path, PathBuf};

/// A file that was written, and what it could not hold.
type Written = (PathBuf, WriteReport);

/// Writes every volume of a trace below `folder`: to a folder of its own if they are Parquet tables (`volume=NAME/part-0.parquet`, with
/// the times of the whole trace), else to a file `NAME.ENDING`, which must not exist and begins at time 0. Returns the files.
/// A text may be larger than memory if it becomes tables: of each volume there are then several.
pub fn split(
    path: &Path,
    options: &ReadOptions,
    (format, ending): (Format, &str),
    folder: &Path,
) -> Result<(Vec<Written>, ReadReport), TraceError> {
    if format == Format::Parquet {
        let mut partitions = Partitions::new(folder);
        let (last, report) = read_or_take(path, options, Some(&mut |part| partitions.add(&part)))?;
        partitions.add(&last)?;
        return Ok((partitions.finish()?, report));
    }
    let (columns, report) = read(path, options)?;
    Ok((split_columns(&columns, (format, ending), folder)?, report))
}

/// As [`split`], for a trace in memory.
pub fn split_columns(
    columns: &Columns,
    (format, ending): (Format, &str),
    folder: &Path,
) -> Result<Vec<Written>, TraceError> {
    if format == Format::Parquet {
        let mut partitions = Partitions::new(folder);
        partitions.add(columns)?;
        return partitions.finish();
    }
    let mut written = Vec::new();
    for mut part in columns.split() {
        part.rebase();
        let name = &part.volumes()[0];
        let path = folder.join(format!("{}.{ending}", file_name(name)));
        let report = write_file(&part, format, &path)?;
        written.push((path, report));
    }
    Ok(written)
}

/// A name as that of a file: what is not a letter, a digit, `-`, `_` or `.` becomes `-`.
pub fn file_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "-")
}
