//! Which format a text has, by its first lines and its name.

use crate::TraceError;
use crate::format::Format;
use crate::formats::{Visitor, with_reader};
use crate::options::ReadOptions;
use crate::report::ReadReport;
use crate::rows::Rows;
use crate::table;
use crate::text::lines::OwnLine;
use crate::text::parse::LineFormat;
use std::path::Path;

/// An error in the first lines of a text that fit another format says so.
pub(crate) fn suggested(error: TraceError, format: Format, head: &[Vec<u8>]) -> TraceError {
    let others: Vec<Format> = candidates(head).into_iter().filter(|&other| other != format).collect();
    match error {
        TraceError::Line { file, line, column, found, allowed }
            if line <= head.len() as u64 + 1 && !others.is_empty() =>
        {
            let allowed =
                format!("{allowed}; the file was read as {format}, but looks like {}", list(&others));
            TraceError::Line { file, line, column, found, allowed }
        }
        error => error,
    }
}

fn list(formats: &[Format]) -> String {
    formats.iter().map(|format| format!(":{format}")).collect::<Vec<_>>().join(", ")
}

/// The format of a text whose first lines are `head`.
pub(crate) fn find_format(head: &[Vec<u8>], path: &Path) -> Result<Format, TraceError> {
    if head.first().is_some_and(|line| line.starts_with(b"fio version ")) {
        return Ok(Format::FioIolog);
    }
    if let Some(format) = Format::from_file_name(path).filter(|format| format.is_text()) {
        return Ok(format);
    }
    let candidates = candidates(head);
    let file = path.display().to_string();
    match candidates[..] {
        [format] => Ok(format),
        [] if head.is_empty() => Err(TraceError::Empty { file, lines: 0, because: String::new() }),
        [] if table::has_header(head) => Ok(Format::Table),
        [] => {
            let texts: Vec<Format> = Format::ALL
                .into_iter()
                .filter(|format| format.is_text() && *format != Format::Table)
                .collect();
            let reason = "its first lines match no trace format; for a table, give its columns, e.g. \
                          columns=time_s,op,offset_bytes,length_bytes";
            Err(TraceError::Format { reason: reason.to_owned(), formats: list(&texts), file })
        }
        _ => Err(TraceError::Format {
            reason: "its first lines match several formats".to_owned(),
            formats: list(&candidates),
            file,
        }),
    }
}

/// The formats that the first lines of a text fit.
fn candidates(head: &[Vec<u8>]) -> Vec<Format> {
    let options = ReadOptions::default();
    let fits = |format: &Format| with_reader(*format, &options, Fits(head)) == Some(true);
    Format::ALL.into_iter().filter(fits).collect()
}

/// Whether the first lines of a text fit a format.
struct Fits<'a>(&'a [Vec<u8>]);

impl Visitor for Fits<'_> {
    type Output = bool;

    fn visit<F: LineFormat>(self, mut reader: F) -> bool {
        let Fits(head) = self;
        let mut rows = Rows::new(&[], ReadReport::default());
        let skip = usize::from(head.first().is_some_and(|line| reader.is_heading(line)));
        !head.is_empty()
            && F::may_begin(head)
            && head[skip..].iter().all(|line| reader.line(OwnLine::new(line).line(), &mut rows).is_ok())
    }
}
