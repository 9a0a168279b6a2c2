//! Recorded traces: seven text formats, plain or compressed, Parquet, and our own column file.
//!
//! A reader converts text to [`Columns`]; a writer converts them back. Both report what they skipped.
//!
//! 1. The content determines the kind of a file: gzip and zstd are recognised by their first bytes, whatever the name.
//! 2. The format is the one specified; else determined by the first bytes; else by the name; else the one format in
//!    which the first lines are valid. Two such formats are an error, not a guess.
//! 3. An invalid line is an error with its number and column. What is skipped on purpose is counted in
//!    [`ReadReport`]. A trace without requests is an error.
//! 4. A read or write of 0 bytes moves no data: it is skipped and counted.
//! 5. Times become relative to the earliest request; rows out of order are sorted stably and counted.

mod alibaba;
mod blkparse;
mod built_in;
mod fields;
mod fio_iolog;
mod lines;
mod mqsim;
mod msr;
mod objects;
mod parquet;
mod parse;
mod rows;
mod source;
mod spc;
mod split;
mod store;
pub mod tables;
mod tencent;
mod windows;
mod write;
mod writer;

/// What names begin with that are no files.
pub(crate) const PREFIXES: [&str; 3] = [built_in::PREFIX, objects::PREFIX, tables::PREFIX];
pub use parquet::record_batch;
pub use split::split;
pub use write::{WriteReport, write, write_file};

use crate::columns::{Columns, Origin};
use crate::{WorkloadError, nvt};
use lines::{Blocks, OwnLine};
use parse::{LineFormat, Taker, parse};
use rows::Rows;
use source::Source;
use std::fmt;
use std::io::{Read, Seek};
use std::path::Path;

/// The trace formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// MSR Cambridge csv.
    Msr,
    /// SPC (Storage Performance Council), as in the UMass collection.
    Spc,
    /// Text of `blkparse`, default output.
    Blkparse,
    /// fio iolog, version 2 or 3; version 3 is written.
    FioIolog,
    /// MQSim ASCII trace.
    Mqsim,
    /// Alibaba block traces (2020).
    Alibaba,
    /// Tencent cloud block storage.
    Tencent,
    /// Our own column file, [`crate::nvt`].
    Nvt,
    /// A Parquet table.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 9] = [
        Format::Msr,
        Format::Spc,
        Format::Blkparse,
        Format::FioIolog,
        Format::Mqsim,
        Format::Alibaba,
        Format::Tencent,
        Format::Nvt,
        Format::Parquet,
    ];

    /// The name, as written after the colon.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Msr => "msr",
            Format::Spc => "spc",
            Format::Blkparse => "blkparse",
            Format::FioIolog => "iolog",
            Format::Mqsim => "mqsim",
            Format::Alibaba => "alibaba",
            Format::Tencent => "tencent",
            Format::Nvt => "nvt",
            Format::Parquet => "parquet",
        }
    }

    /// The format with this name.
    pub(crate) fn from_name(name: &str) -> Option<Format> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "fio_iolog" | "fio-iolog" | "fio" => Some(Format::FioIolog),
            _ => Format::ALL.into_iter().find(|format| format.name() == name),
        }
    }

    /// The format implied by a file name, ignoring compression suffixes. `.csv` implies none: three formats use it.
    pub fn from_file_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
        Format::from_name(name.rsplit_once('.')?.1)
    }

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
            Format::Nvt | Format::Parquet => 1,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions { format: None, volumes: Vec::new(), action: b'D', skip_bad: 0, lines_max: None }
    }
}

/// What was read, and what was skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// The format.
    pub format: Option<Format>,
    /// `gzip` or `zstd`, if it was compressed.
    pub compression: Option<&'static str>,
    /// Lines or rows read; 0 for a column file.
    pub lines: u64,
    /// Requests kept.
    pub requests: u64,
    /// Requests of volumes that were not selected.
    pub other_volumes: u64,
    /// Reads, writes and trims of 0 bytes.
    pub without_bytes: u64,
    /// Lines that are not requests: other blkparse actions, opening a file, summaries.
    pub other_lines: u64,
    /// blkparse requests without data (RWBS `N`): write zeroes and passed-through commands. Whether they discard
    /// contents depends on the command, which the text does not include.
    pub without_data: u64,
    /// Requests listed after a later one; they were sorted.
    pub reordered: u64,
    /// Trims of more than 2 GiB, split into pieces.
    pub trims_cut: u64,
    /// Lines that fit no request, left out as `skip_bad` allows.
    pub bad_lines: u64,
    /// The last line was cut off, and was left out.
    pub ends_cut: bool,
}

impl ReadReport {
    /// Adds the counts of a part.
    fn add(&mut self, part: &ReadReport) {
        for (count, added) in [
            (&mut self.other_volumes, part.other_volumes),
            (&mut self.without_bytes, part.without_bytes),
            (&mut self.other_lines, part.other_lines),
            (&mut self.without_data, part.without_data),
            (&mut self.reordered, part.reordered),
            (&mut self.trims_cut, part.trims_cut),
        ] {
            *count += added;
        }
    }

    /// ` (12 left out: other volumes; ...)`, or nothing.
    fn left_out(&self) -> String {
        let parts: Vec<String> = [
            (self.other_volumes, "of other volumes"),
            (self.without_bytes, "of 0 bytes"),
            (self.without_data, "without data (RWBS N: write zeroes or commands)"),
            (self.bad_lines, "bad (skip-bad)"),
            (u64::from(self.ends_cut), "cut off at the end"),
            (self.other_lines, "that are not requests of the chosen kind"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if parts.is_empty() { String::new() } else { format!(" (left out: {})", parts.join(", ")) }
    }
}

impl fmt::Display for ReadReport {
    /// One line: `msr, gzip: 1000 requests from 1002 lines (left out: 2 of 0 bytes); 5 out of order, sorted`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.format.map_or("trace", Format::name))?;
        if let Some(compression) = self.compression {
            write!(f, ", {compression}")?;
        }
        write!(f, ": {} requests", self.requests)?;
        if self.lines > 0 {
            let of = if self.format == Some(Format::Parquet) { "rows" } else { "lines" };
            write!(f, " from {} {of}", self.lines)?;
        }
        f.write_str(&self.left_out())?;
        if self.reordered > 0 {
            write!(f, "; {} out of order, sorted", self.reordered)?;
        }
        if self.trims_cut > 0 {
            write!(f, "; {} trims over 2 GiB cut into pieces", self.trims_cut)?;
        }
        Ok(())
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
        let what = if format == Format::Nvt { "a column file" } else { "a Parquet file" };
        let reason = format!("it does not begin like {what}");
        return Err(WorkloadError::Damaged { file: path.display().to_string(), reason });
    }
    let mut report = ReadReport { compression: source.compression(), ..ReadReport::default() };
    let hash = source.hash();
    let text_bytes = if source.compression().is_none() { expected_bytes as u64 } else { 0 };
    let mut blocks = Blocks::new(source.decompressed().map_err(file_error)?);
    let head = blocks.head(4).map_err(file_error)?;
    let format = match options.format {
        Some(format) => format,
        None => find_format(&head, path)?,
    };
    report.format = Some(format);
    let blocks = (blocks, text_bytes);
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
        Format::Nvt | Format::Parquet => unreachable!("tables were dealt with above"),
    };
    let mut parsed = parsed.map_err(|error| suggested(error, format, &head))?;
    parsed.0.origin = Origin { format: format.name().to_owned(), hash: hash.get() };
    Ok(parsed)
}

/// An error in the first lines of a text that fit another format says so.
fn suggested(error: WorkloadError, format: Format, head: &[Vec<u8>]) -> WorkloadError {
    let others: Vec<Format> = candidates(head).into_iter().filter(|&other| other != format).collect();
    match error {
        WorkloadError::Line { file, line, column, found, allowed }
            if line <= head.len() as u64 + 1 && !others.is_empty() =>
        {
            let allowed =
                format!("{allowed}; the file was read as {format}, and looks like {}", list(&others));
            WorkloadError::Line { file, line, column, found, allowed }
        }
        error => error,
    }
}

fn list(formats: &[Format]) -> String {
    formats.iter().map(|format| format!(":{format}")).collect::<Vec<_>>().join(", ")
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

/// The format of a text whose first lines are `head`.
fn find_format(head: &[Vec<u8>], path: &Path) -> Result<Format, WorkloadError> {
    if head.first().is_some_and(|line| line.starts_with(b"fio version ")) {
        return Ok(Format::FioIolog);
    }
    if let Some(format) =
        Format::from_file_name(path).filter(|format| !matches!(format, Format::Nvt | Format::Parquet))
    {
        return Ok(format);
    }
    let candidates = candidates(head);
    let file = path.display().to_string();
    match candidates[..] {
        [format] => Ok(format),
        [] if head.is_empty() => Err(WorkloadError::Empty { file, lines: 0, because: String::new() }),
        [] => Err(WorkloadError::Format {
            reason: "its first lines fit no trace format".to_owned(),
            formats: list(&Format::ALL[..7]),
            file,
        }),
        _ => Err(WorkloadError::Format {
            reason: "its first lines fit several formats".to_owned(),
            formats: list(&candidates),
            file,
        }),
    }
}

/// The formats that the first lines of a text fit.
fn candidates(head: &[Vec<u8>]) -> Vec<Format> {
    fn fits<F: LineFormat>(head: &[Vec<u8>]) -> bool {
        let mut format = F::default();
        let mut rows = Rows::new(&[], ReadReport::default());
        let skip =
            usize::from(head.first().is_some_and(|line| line.eq_ignore_ascii_case(F::COLUMNS.as_bytes())));
        !head.is_empty()
            && head[skip..].iter().all(|line| format.line(OwnLine::new(line).line(), &mut rows).is_ok())
    }
    [
        (Format::Msr, fits::<msr::Msr>(head)),
        (Format::Spc, fits::<spc::Spc>(head)),
        (Format::Blkparse, fits::<blkparse::Blkparse>(head)),
        (Format::Mqsim, fits::<mqsim::Mqsim>(head)),
        (Format::Alibaba, fits::<alibaba::Alibaba>(head)),
        (Format::Tencent, fits::<tencent::Tencent>(head)),
    ]
    .into_iter()
    .filter_map(|(format, fits)| fits.then_some(format))
    .collect()
}
