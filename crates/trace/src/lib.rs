//! Recorded traces of block requests: published text formats and any text table, plain or compressed, vscsi records, Parquet, and
//! our own column file.
//!
//! A reader converts a file to [`Columns`]; a writer converts them back. Both report what they skipped. What is done with a trace
//! on a device (cut, scaled, squeezed, replayed) is not here but in `nvlab-workload`.
//!
//! 1. The content determines the kind of a file: gzip and zstd are recognised by their first bytes, whatever the name.
//! 2. The format is the one specified; else determined by the first bytes; else by the name; else the one format in
//!    which the first lines are valid; else a table, if its header names the columns. Two such formats are an error, not a
//!    guess.
//! 3. An invalid line is an error with its number and column. What is skipped on purpose is counted in
//!    [`ReadReport`]. A trace without requests is an error.
//! 4. A read or write of 0 bytes moves no data: it is skipped and counted.
//! 5. Times become relative to the earliest request; rows out of order are sorted stably and counted.
//!
//! ```
//! use nvlab_trace::{Format, ReadOptions, info::TraceInfo, read_from, write};
//! let msr = "128166372003061629,src1,0,Read,4096,8192,1200\n128166372003061729,src1,0,Write,0,4096,900\n";
//! let (columns, report) = read_from(msr.as_bytes(), "src1.csv".as_ref(), &ReadOptions::default())?;
//! assert_eq!((report.format, columns.len()), (Some(Format::Msr), 2));
//! assert_eq!(TraceInfo::of(&columns).writes.bytes, 4096);
//! let mut spc = Vec::new();
//! write(&columns, Format::Spc, &mut spc, "src1.spc".as_ref())?;
//! # Ok::<(), nvlab_trace::TraceError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | `request` | [`Request`] and its [`Op`] |
//! | [`columns`] | a trace in memory, one array per column; [`nvt`] is its file format |
//! | `read`, `write`, `split` | [`read()`], [`write()`] and [`split()`], which find the format and who reads or writes it |
//! | `format`, `formats` | the names of the formats; the published ones, a file each |
//! | `text` | lines, fields, detection, and parsing on every core |
//! | `table` | any text table, by the names of its columns |
//! | `parquet`, [`tables`] | Parquet files and folders; tables of this process |
//! | `rows` | requests in the order of a file become columns in the order of time; completions become response times |
//! | `source` | plain, gzip or zstd, and the hash of what was read |
//! | `built_in` | the recordings that come with the program |
//! | [`info`] | the output of `nvlab trace info` and `nvlab trace head` |

mod built_in;
pub mod columns;
mod error;
mod format;
mod formats;
pub mod info;
pub mod nvt;
mod options;
mod parquet;
mod read;
mod report;
mod request;
mod rows;
mod source;
mod split;
mod table;
pub mod tables;
mod text;
mod write;

pub use columns::Columns;
pub use error::TraceError;
pub use format::Format;
pub use options::ReadOptions;
pub use parquet::{Batch, Cells, FieldKind, TableField, Text};
pub use read::{read, read_from};
pub use report::ReadReport;
pub use request::{Op, Request};
pub use split::{file_name, split, split_columns};
pub use table::TableSpec;
pub use write::{WriteReport, write, write_file};

/// Prefixes of names that are no files.
pub const PREFIXES: [&str; 2] = [built_in::PREFIX, tables::PREFIX];
