//! Writing a trace in any format. What a format cannot represent is counted; an address it cannot represent is an
//! error.

use crate::columns::Columns;
use crate::format::Format;
use crate::formats;
use crate::table::TableWriter;
use crate::text::writer::{Volume, Writer};
use crate::{Op, TraceError, nvt, parquet};
use nvlab_units::Span;
use std::fmt;
use std::io::{BufWriter, Write};
use std::path::Path;

/// What was written, and what the format could not represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Requests written, those that lost something included.
    pub requests: u64,
    /// Trims left out: the format has none.
    pub trims_left_out: u64,
    /// Flushes left out: the format has none.
    pub flushes_left_out: u64,
    /// Writes whose force unit access is lost.
    pub fua_lost: u64,
    /// Requests whose response time the format cannot hold.
    pub responses_lost: u64,
}

impl fmt::Display for WriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests written", self.requests)?;
        for (count, what) in [
            (self.trims_left_out, "trims left out"),
            (self.flushes_left_out, "flushes left out"),
            (self.fua_lost, "writes lost their force unit access"),
            (self.responses_lost, "requests lost their response time"),
        ] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// Writes `columns` to `path` in `format`, compressed if the name ends in `.gz` or `.zst`. The file must not
/// exist.
pub fn write_file(columns: &Columns, format: Format, path: &Path) -> Result<WriteReport, TraceError> {
    let file_error = |source| TraceError::File { path: path.to_owned(), source };
    if !format.is_written() {
        return Err(only_read(format, path));
    }
    let file = std::fs::File::create_new(path).map_err(file_error)?;
    let is_text = format.is_text();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    match ending {
        "gz" if is_text => {
            let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::new(6));
            let report = write(columns, format, &mut out, path)?;
            out.finish().and_then(|file| file.sync_all()).map_err(file_error)?;
            Ok(report)
        }
        "zst" if is_text => {
            let mut out = zstd::Encoder::new(file, 3).map_err(file_error)?;
            let report = write(columns, format, &mut out, path)?;
            out.finish().and_then(|file| file.sync_all()).map_err(file_error)?;
            Ok(report)
        }
        _ => {
            let report = write(columns, format, &mut &file, path)?;
            file.sync_all().map_err(file_error)?;
            Ok(report)
        }
    }
}

/// Writes `columns` to `out` in `format`; `path` is its name in messages. Blocks of text go through `dyn`, so that the formats
/// are compiled once.
pub fn write(
    columns: &Columns,
    format: Format,
    out: &mut (dyn Write + Send),
    path: &Path,
) -> Result<WriteReport, TraceError> {
    let written = match format {
        Format::Nvt => nvt::encode(columns, out),
        Format::Parquet => parquet::write(columns, out),
        Format::Table => {
            let mut writer = TableWriter::new(columns.response_ps().is_some());
            return write_lines(&mut writer, format, columns, out, path);
        }
        text => {
            let mut writer = formats::writer(text).ok_or_else(|| only_read(format, path))?;
            return write_lines(&mut *writer, format, columns, out, path);
        }
    };
    written.map_err(|source| TraceError::File { path: path.to_owned(), source })?;
    Ok(WriteReport { requests: columns.len() as u64, ..WriteReport::default() })
}

fn only_read(format: Format, path: &Path) -> TraceError {
    let written: Vec<&str> =
        Format::ALL.into_iter().filter(|format| format.is_written()).map(Format::name).collect();
    let reason = format!("{format} is input only; output formats: {}", written.join(", "));
    TraceError::Table { file: path.display().to_string(), reason }
}

fn write_lines(
    writer: &mut dyn Writer,
    format: Format,
    columns: &Columns,
    out: &mut dyn Write,
    path: &Path,
) -> Result<WriteReport, TraceError> {
    let file_error = |source| TraceError::File { path: path.to_owned(), source };
    let mut out = BufWriter::with_capacity(256 << 10, out);
    let mut report = WriteReport::default();
    writer.begin(columns.volumes(), &mut out).map_err(file_error)?;
    let numbers = volume_numbers(columns.volumes());
    for (row, request) in columns.iter().enumerate() {
        if !writer.takes(request.op) {
            report.trims_left_out += u64::from(request.op == Op::Trim);
            report.flushes_left_out += u64::from(request.op == Op::Flush);
            continue;
        }
        let sector = writer.sector_bytes();
        // SPC counts offsets in sectors and lengths in bytes.
        let length = if format == Format::Spc { 0 } else { request.bytes as u64 };
        if !request.offset.is_multiple_of(sector) || !length.is_multiple_of(sector) {
            let reason = format!(
                "offset {} and {} bytes are not whole sectors of {sector} B; add align={sector}B",
                request.offset, request.bytes
            );
            return Err(TraceError::NotWritable { row, format: format.name(), reason });
        }
        let place = request.volume as usize;
        let volume = Volume { name: &columns.volumes()[place], number: numbers[place] };
        let response = columns.response_ps().map(|responses| Span::from_ps(responses[row]));
        response.into_iter().for_each(|response| writer.answered(response));
        writer.line(request, volume, &mut out).map_err(file_error)?;
        report.responses_lost += u64::from(response.is_some() && !writer.keeps_response());
        report.requests += 1;
        report.fua_lost += u64::from(request.fua && !writer.keeps_fua());
    }
    writer.end(columns.volumes(), &mut out).map_err(file_error)?;
    out.flush().map_err(file_error)?;
    Ok(report)
}

/// The numbers of the volumes: their names if all are distinct numbers, else their indices.
fn volume_numbers(names: &[String]) -> Vec<u64> {
    let numbers: Vec<u64> = names.iter().map_while(|name| name.parse().ok()).collect();
    let mut distinct = numbers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() == names.len() { numbers } else { (0..names.len() as u64).collect() }
}
