//! Which format a text has, by its first lines and its name.

use super::format::Format;
use super::lines::OwnLine;
use super::parse::LineFormat;
use super::report::ReadReport;
use super::rows::Rows;
use super::{alibaba, blkparse, fiu, mqsim, msr, spc, systor, table, tectonic, tencent};
use crate::WorkloadError;
use std::path::Path;

/// An error in the first lines of a text that fit another format says so.
pub(super) fn suggested(error: WorkloadError, format: Format, head: &[Vec<u8>]) -> WorkloadError {
    let others: Vec<Format> = candidates(head).into_iter().filter(|&other| other != format).collect();
    match error {
        WorkloadError::Line { file, line, column, found, allowed }
            if line <= head.len() as u64 + 1 && !others.is_empty() =>
        {
            let allowed =
                format!("{allowed}; the file was read as {format}, but looks like {}", list(&others));
            WorkloadError::Line { file, line, column, found, allowed }
        }
        error => error,
    }
}

fn list(formats: &[Format]) -> String {
    formats.iter().map(|format| format!(":{format}")).collect::<Vec<_>>().join(", ")
}

/// The format of a text whose first lines are `head`.
pub(super) fn find_format(head: &[Vec<u8>], path: &Path) -> Result<Format, WorkloadError> {
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
        [] if head.is_empty() => Err(WorkloadError::Empty { file, lines: 0, because: String::new() }),
        [] if table::has_header(head) => Ok(Format::Table),
        [] => {
            let texts: Vec<Format> = Format::ALL
                .into_iter()
                .filter(|format| format.is_text() && *format != Format::Table)
                .collect();
            let reason = "its first lines match no trace format; for a table, give its columns, e.g. \
                      columns=time_s,op,offset_bytes,length_bytes";
            Err(WorkloadError::Format { reason: reason.to_owned(), formats: list(&texts), file })
        }
        _ => Err(WorkloadError::Format {
            reason: "its first lines match several formats".to_owned(),
            formats: list(&candidates),
            file,
        }),
    }
}

/// The formats that the first lines of a text fit.
fn candidates(head: &[Vec<u8>]) -> Vec<Format> {
    fn fits<F: LineFormat + Default>(head: &[Vec<u8>]) -> bool {
        let mut format = F::default();
        let mut rows = Rows::new(&[], ReadReport::default());
        let skip = usize::from(head.first().is_some_and(|line| format.is_heading(line)));
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
        (Format::Systor, fits::<systor::Systor>(head)),
        (Format::Fiu, fits::<fiu::Fiu>(head)),
        (Format::CacheLib, fits::<tectonic::CacheLib>(head)),
        (Format::Baleen, fits::<tectonic::Baleen>(head) && tectonic::Baleen::has_decimals(head)),
    ]
    .into_iter()
    .filter_map(|(format, fits)| fits.then_some(format))
    .collect()
}
