//! Reading a trace: what kind of file it is, and who reads that.

use crate::columns::{Columns, Origin};
use crate::error::TraceError;
use crate::format::Format;
use crate::formats::{Visitor, vscsi, with_reader};
use crate::options::ReadOptions;
use crate::report::ReadReport;
use crate::source::{Source, hash_of};
use crate::table::TableSpec;
use crate::text::detect::{find_format, suggested};
use crate::text::lines::Blocks;
use crate::text::parse::{LineFormat, Taker, parse};
use crate::{built_in, nvt, parquet, tables};
use std::io::{Cursor, Read, Seek};
use std::path::Path;

/// Reads a trace: a file, a folder with Parquet files, a built-in one (`builtin:raw`), or a table of this process ([`tables`]).
pub fn read(path: &Path, options: &ReadOptions) -> Result<(Columns, ReadReport), TraceError> {
    read_or_take(path, options, None)
}

/// The same; of a text, `taker` gets all but the last part, in order.
pub(crate) fn read_or_take(
    path: &Path,
    options: &ReadOptions,
    taker: Option<Taker<'_>>,
) -> Result<(Columns, ReadReport), TraceError> {
    if let Some(name) = built_in::name(path) {
        let bytes = built_in::bytes(name)?;
        return read_stream(&mut &bytes[..], bytes.len(), path, options, None);
    }
    if let Some(name) = tables::name(path) {
        let bytes = tables::file(name)?;
        return read_stream(&mut &bytes[..], bytes.len(), path, options, None);
    }
    if path.is_dir() {
        return parquet::read_folder(path, options);
    }
    let file_error = |source| TraceError::File { path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(file_error)?;
    let length = file.metadata().map_err(file_error)?.len();
    let mut magic = [0; parquet::MAGIC.len()];
    let begins = file.read(&mut magic).and_then(|count| file.rewind().map(|()| &magic[..count]));
    if begins.map_err(file_error)? == parquet::MAGIC {
        // A look at the beginning does not read the whole file.
        let hash = match options.lines_max {
            None => hash_of(&mut file).map_err(file_error)?,
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
) -> Result<(Columns, ReadReport), TraceError> {
    read_stream(&mut reader, 0, path, options, None)
}

/// Blocks of text are read through `dyn`, so that the formats are compiled once.
fn read_stream(
    reader: &mut (dyn Read + Send),
    expected_bytes: usize,
    path: &Path,
    options: &ReadOptions,
    taker: Option<Taker<'_>>,
) -> Result<(Columns, ReadReport), TraceError> {
    let file_error = |source| TraceError::File { path: path.to_owned(), source };
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
        return Err(TraceError::Damaged { file: path.display().to_string(), reason });
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
            let reason = "it does not begin like vscsi records of version 1 or 2".to_owned();
            return Err(TraceError::Damaged { file: path.display().to_string(), reason });
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
) -> Result<(Columns, ReadReport), TraceError> {
    let head = blocks.head(4).map_err(|source| TraceError::File { path: path.to_owned(), source })?;
    let format = match options.format {
        Some(format) => format,
        None if options.table != TableSpec::default() => Format::Table,
        None => find_format(&head, path)?,
    };
    report.format = Some(format);
    let blocks = (blocks, expected_bytes);
    if format == Format::Table {
        let table = options.table.of(&head, path)?;
        report.columns = Some(table.about());
        return parse(table, blocks, report, path, options, taker);
    }
    let parsed = with_reader(format, options, Parse { blocks, report, path, options, taker });
    parsed.expect("what is no text was dealt with above").map_err(|error| suggested(error, format, &head))
}

/// Parsing a text, of whatever format.
struct Parse<'a, 't, R> {
    blocks: (Blocks<R>, u64),
    report: ReadReport,
    path: &'a Path,
    options: &'a ReadOptions,
    taker: Option<Taker<'t>>,
}

impl<R: Read + Send> Visitor for Parse<'_, '_, R> {
    type Output = Result<(Columns, ReadReport), TraceError>;

    fn visit<F: LineFormat>(self, reader: F) -> Self::Output {
        parse(reader, self.blocks, self.report, self.path, self.options, self.taker)
    }
}

fn read_nvt<R: Read>(
    source: Source<R>,
    expected_bytes: usize,
    path: &Path,
    options: &ReadOptions,
) -> Result<(Columns, ReadReport), TraceError> {
    let file = path.display().to_string();
    let bytes =
        source.all(expected_bytes).map_err(|source| TraceError::File { path: path.to_owned(), source })?;
    let mut columns = nvt::decode(&bytes, &file)?;
    let mut report = ReadReport { format: Some(Format::Nvt), ..ReadReport::default() };
    if !options.volumes.is_empty() {
        let before = columns.len();
        columns.keep_volumes(&options.volumes, &file)?;
        report.other_volumes = (before - columns.len()) as u64;
    }
    report.requests = columns.len() as u64;
    if columns.is_empty() {
        return Err(TraceError::Empty { file, lines: 0, because: report.left_out() });
    }
    Ok((columns, report))
}
