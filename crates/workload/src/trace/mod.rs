//! Recorded traces: published text formats and any text table, plain or compressed, vscsi records, Parquet, and our own
//! column file.
//!
//! A reader converts text to [`Columns`]; a writer converts them back. Both report what they skipped.
//!
//! 1. The content determines the kind of a file: gzip and zstd are recognised by their first bytes, whatever the name.
//! 2. The format is the one specified; else determined by the first bytes; else by the name; else the one format in
//!    which the first lines are valid; else a table, if its header names the columns. Two such formats are an error, not a
//!    guess.
//! 3. An invalid line is an error with its number and column. What is skipped on purpose is counted in
//!    [`ReadReport`]. A trace without requests is an error.
//! 4. A read or write of 0 bytes moves no data: it is skipped and counted.
//! 5. Times become relative to the earliest request; rows out of order are sorted stably and counted.

mod alibaba;
mod blkparse;
mod built_in;
mod completions;
mod detect;
mod fields;
mod fio_iolog;
mod fiu;
mod format;
mod lines;
mod mqsim;
mod msr;
mod objects;
mod parquet;
mod parse;
mod report;
mod rows;
mod source;
mod spc;
mod split;
mod store;
mod systor;
mod table;
pub mod tables;
mod tectonic;
mod tencent;
mod vscsi;
mod windows;
mod write;
mod writer;

/// What names begin with that are no files.
pub(crate) const PREFIXES: [&str; 3] = [built_in::PREFIX, objects::PREFIX, tables::PREFIX];
pub use format::Format;
pub use parquet::record_batch;
pub use report::ReadReport;
pub use split::split;
pub use table::TableSpec;
pub use write::{WriteReport, write, write_file};

use crate::columns::{Columns, Origin};
use crate::{WorkloadError, nvt};
use detect::{find_format, suggested};
use lines::Blocks;
use parse::{Taker, parse};
use source::Source;
use std::io::{Cursor, Read, Seek};
use std::path::Path;

/// Options of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; `None`: detected.
    pub format: Option<Format>,
    /// The volumes to keep, by name; empty for all.
    pub volumes: Vec<String>,
    /// blkparse only: the action to keep. `D`, issued to the driver, is what a device sees.
    pub action: u8,
    /// Lines that fit no request are left out, up to this many; the next is an error.
    pub skip_bad: u64,
    /// Only so many lines are read, at least: enough for a look at the beginning.
    pub lines_max: Option<u64>,
    /// What a text table has in its columns.
    pub table: TableSpec,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            format: None,
            volumes: Vec::new(),
            action: b'D',
            skip_bad: 0,
            lines_max: None,
            table: TableSpec::default(),
        }
    }
}

impl Format {
    /// Its time resolution in picoseconds.
    pub const fn resolution_ps(self) -> u64 {
        match self {
            Format::Msr => msr::Msr::TICK_PS,
            Format::Spc => spc::Spc::TICK_PS,
            Format::Blkparse => blkparse::Blkparse::TICK_PS,
            Format::FioIolog => fio_iolog::FioIolog::TICK_PS,
            Format::Mqsim => mqsim::Mqsim::TICK_PS,
            Format::Alibaba => alibaba::Alibaba::TICK_PS,
            Format::Tencent => tencent::Tencent::TICK_PS,
            Format::Systor => systor::Systor::TICK_PS,
            Format::Fiu => fiu::Fiu::TICK_PS,
            Format::Vscsi => vscsi::TICK_PS,
            Format::CacheLib => tectonic::CacheLib::TICK_PS,
            Format::Baleen => tectonic::Baleen::TICK_PS,
            Format::Table => table::WRITTEN_TICK_PS,
            Format::Nvt | Format::Parquet => 1,
        }
    }
}

/// Reads a trace: a file, a folder with Parquet files, a built-in one (`builtin:raw`), a program that keeps objects
/// (`heap:durable-sps`), or a table of this process ([`tables`]).
pub fn read(path: &Path, options: &ReadOptions) -> Result<(Columns, ReadReport), WorkloadError> {
    read_or_take(path, options, None)
}

/// The same; of a text, `taker` gets all but the last part, in order.
fn read_or_take(
    path: &Path,
    options: &ReadOptions,
    taker: Option<Taker<'_>>,
) -> Result<(Columns, ReadReport), WorkloadError> {
    if let Some(name) = built_in::name(path) {
        let bytes = built_in::bytes(name)?;
        return read_stream(&mut &bytes[..], bytes.len(), path, options, None);
    }
    if let Some(name) = objects::name(path) {
        return match objects::recorded(name) {
            Some(bytes) => read_stream(&mut &bytes[..], bytes.len(), path, options, None),
            None => objects::make(name, options),
        };
    }
    if let Some(name) = tables::name(path) {
        let bytes = tables::file(name)?;
        return read_stream(&mut &bytes[..], bytes.len(), path, options, None);
    }
    if path.is_dir() {
        return parquet::read_folder(path, options);
    }
    let file_error = |source| WorkloadError::File { path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(file_error)?;
    let length = file.metadata().map_err(file_error)?.len();
    let mut magic = [0; parquet::MAGIC.len()];
    let begins = file.read(&mut magic).and_then(|count| file.rewind().map(|()| &magic[..count]));
    if begins.map_err(file_error)? == parquet::MAGIC {
        // A look at the beginning does not read the whole file.
        let hash = match options.lines_max {
            None => source::hash_of(&mut file).map_err(file_error)?,
            Some(_) => 0,
        };
        return parquet::read(file, hash, path, options);
    }
    read_stream(&mut file, length as usize, path, options, taker)
}

/// Reads a trace from a stream; `path` is its name in messages, and its suffix may determine the format.
pub fn read_from(
    mut reader: impl Read + Send,
    path: &Path,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), WorkloadError> {
    read_stream(&mut reader, 0, path, options, None)
}

/// Blocks of text are read through `dyn`, so that the formats are compiled once.
fn read_stream(
    reader: &mut (dyn Read + Send),
    expected_bytes: usize,
    path: &Path,
    options: &ReadOptions,
    taker: Option<Taker<'_>>,
) -> Result<(Columns, ReadReport), WorkloadError> {
    let file_error = |source| WorkloadError::File { path: path.to_owned(), source };
    let source = Source::open(reader).map_err(file_error)?;
    if nvt::is_nvt(source.head()) {
        return read_nvt(source, expected_bytes, path, options);
    }
    if source.head().starts_with(parquet::MAGIC) {
        let hash = source.hash();
        let bytes = bytes::Bytes::from(source.all(expected_bytes).map_err(file_error)?);
        return parquet::read(bytes, hash.get(), path, options);
    }
    if let Some(format @ (Format::Nvt | Format::Parquet)) = options.format {
        let what = if format == Format::Nvt { "an nvt file" } else { "a Parquet file" };
        let reason = format!("it does not start like {what}");
        return Err(WorkloadError::Damaged { file: path.display().to_string(), reason });
    }
    let report = ReadReport { compression: source.compression(), ..ReadReport::default() };
    let hash = source.hash();
    let text_bytes = if source.compression().is_none() { expected_bytes as u64 } else { 0 };
    let mut text = source.decompressed().map_err(file_error)?;
    let mut head = Vec::new();
    text.by_ref().take(vscsi::HEAD_BYTES).read_to_end(&mut head).map_err(file_error)?;
    let version = vscsi::version(&head);
    let text = Cursor::new(head).chain(text);
    let mut read = match (version, options.format) {
        (Some(version), None | Some(Format::Vscsi)) => vscsi::read(text, version, report, path, options)?,
        (None, Some(Format::Vscsi)) => {
            let reason = "it does not start with vscsi records of version 1 or 2".to_owned();
            return Err(WorkloadError::Damaged { file: path.display().to_string(), reason });
        }
        _ => read_text(Blocks::new(text), text_bytes, report, path, options, taker)?,
    };
    let format = read.1.format.map_or("", Format::name).to_owned();
    read.0.origin = Origin { format, hash: hash.get() };
    Ok(read)
}

/// Reads lines of text, of about `expected_bytes` if that is not 0.
fn read_text(
    mut blocks: Blocks<impl Read + Send>,
    expected_bytes: u64,
    mut report: ReadReport,
    path: &Path,
    options: &ReadOptions,
    taker: Option<Taker<'_>>,
) -> Result<(Columns, ReadReport), WorkloadError> {
    let head = blocks.head(4).map_err(|source| WorkloadError::File { path: path.to_owned(), source })?;
    let format = match options.format {
        Some(format) => format,
        None if options.table != TableSpec::default() => Format::Table,
        None => find_format(&head, path)?,
    };
    report.format = Some(format);
    let blocks = (blocks, expected_bytes);
    let parsed = match format {
        Format::Msr => parse(msr::Msr::default(), blocks, report, path, options, taker),
        Format::Spc => parse(spc::Spc, blocks, report, path, options, taker),
        Format::Blkparse => {
            parse(blkparse::Blkparse::new(options.action), blocks, report, path, options, taker)
        }
        Format::FioIolog => parse(fio_iolog::FioIolog::default(), blocks, report, path, options, taker),
        Format::Mqsim => parse(mqsim::Mqsim, blocks, report, path, options, taker),
        Format::Alibaba => parse(alibaba::Alibaba, blocks, report, path, options, taker),
        Format::Tencent => parse(tencent::Tencent, blocks, report, path, options, taker),
        Format::Systor => parse(systor::Systor, blocks, report, path, options, taker),
        Format::Fiu => parse(fiu::Fiu::default(), blocks, report, path, options, taker),
        Format::CacheLib => parse(tectonic::CacheLib::default(), blocks, report, path, options, taker),
        Format::Baleen => parse(tectonic::Baleen::default(), blocks, report, path, options, taker),
        Format::Table => {
            let table = options.table.of(&head, path)?;
            report.columns = Some(table.about());
            return parse(table, blocks, report, path, options, taker);
        }
        Format::Nvt | Format::Parquet | Format::Vscsi => unreachable!("what is no text was dealt with above"),
    };
    parsed.map_err(|error| suggested(error, format, &head))
}

fn read_nvt<R: Read>(
    source: Source<R>,
    expected_bytes: usize,
    path: &Path,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), WorkloadError> {
    let file = path.display().to_string();
    let bytes =
        source.all(expected_bytes).map_err(|source| WorkloadError::File { path: path.to_owned(), source })?;
    let mut columns = nvt::decode(&bytes, &file)?;
    let mut report = ReadReport { format: Some(Format::Nvt), ..ReadReport::default() };
    if !options.volumes.is_empty() {
        let before = columns.len();
        columns.keep_volumes(&options.volumes, &file)?;
        report.other_volumes = (before - columns.len()) as u64;
    }
    report.requests = columns.len() as u64;
    if columns.is_empty() {
        return Err(WorkloadError::Empty { file, lines: 0, because: report.left_out() });
    }
    Ok((columns, report))
}
