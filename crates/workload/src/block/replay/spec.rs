//! The text of a replay: `'web.csv.gz:msr compact first=1h copies=4'`.

use super::heap;
use crate::words::{self, Words};
use crate::{Span, WorkloadError};
use nvlab_trace::{self as trace, Columns, Format, ReadOptions, ReadReport, TableSpec, WriteReport};
use nvlab_units::{quantity, suggest};
use std::path::{Path, PathBuf};

const KEYS: [&str; 18] = [
    "scale-time",
    "first",
    "loop",
    "copies",
    "compact",
    "align",
    "qd",
    "volume",
    "action",
    "think",
    "skip-bad",
    "columns",
    "separator",
    "header",
    "read",
    "write",
    "trim",
    "flush",
];
/// With think=keep the requests are those of one program, once, at its own pace.
const NOT_WITH_THINK: [&str; 4] = ["scale-time", "loop", "copies", "qd"];
const FLAGS: [&str; 3] = ["compact", "clip-trims", "wrap"];
const DEFAULT_EXTENT_BYTES: u64 = 1 << 20;
const COPIES_MAX: u64 = 65_536;

/// A trace and its modifiers, before it is opened on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplaySpec {
    /// The file, `builtin:NAME` or `heap:NAME`.
    pub path: PathBuf,
    /// Format, columns and filters of the file.
    pub reading: ReadOptions,
    /// Only what begins before this, in recorded time.
    pub first: Option<Span>,
    /// Times are multiplied by this: 0.5 is twice as fast.
    pub scale_time: f64,
    /// Passes over the trace, at least 1.
    pub loops: u64,
    /// Tenants that replay it at the same time, each in its own part of the device; at least 1.
    pub copies: u32,
    /// Extents of this many bytes that are never accessed are removed.
    pub compact: Option<u64>,
    /// Trims are clipped to extents that are read or written; with `compact`.
    pub clips_trims: bool,
    /// Requests are aligned to units of this size.
    pub align: Option<u64>,
    /// Addresses are taken modulo the available space.
    pub wrap: bool,
    /// A closed loop of this depth instead of the recorded times.
    pub depth: Option<u32>,
    /// The recorded program's computing time is kept instead of the recorded times ([`super::Program`]).
    pub keeps_think: bool,
    /// Number of the workload when several run at once.
    pub stream: u8,
}

/// The extent that `compact` keeps together, and the unit of `align`.
fn extent_and_unit(words: &Words, bare_compact: bool) -> Result<(Option<u64>, Option<u64>), WorkloadError> {
    let mut compact = words.quantity("compact", words::size)?;
    if bare_compact {
        compact = Some(DEFAULT_EXTENT_BYTES);
    }
    let align = words.quantity("align", words::size)?;
    let is_unit = |unit: u64| unit > 0 && unit <= 1 << 30;
    if compact.is_some_and(|unit| !is_unit(unit)) {
        return Err(words.wrong("compact", "an extent from 1 B to 1 GiB"));
    }
    if align.is_some_and(|unit| !is_unit(unit)) {
        return Err(words.wrong("align", "a unit from 1 B to 1 GiB"));
    }
    if let (Some(extent), Some(unit)) = (compact, align)
        && !extent.is_multiple_of(unit)
    {
        return Err(words.error("the extent of compact must be a multiple of align"));
    }
    Ok((compact, align))
}

impl ReplaySpec {
    /// The whole trace as it was recorded.
    pub fn new(path: impl Into<PathBuf>) -> ReplaySpec {
        ReplaySpec {
            path: path.into(),
            reading: ReadOptions::default(),
            first: None,
            scale_time: 1.0,
            loops: 1,
            copies: 1,
            compact: None,
            clips_trims: false,
            align: None,
            wrap: false,
            depth: None,
            keeps_think: false,
            stream: 0,
        }
    }

    /// Reads a text such as `'src1_0.csv.gz:msr scale-time=0.5 first=1h'`. A name with blanks is put in double
    /// quotes. `volume=` takes several names separated by commas; `compact=` an extent other than 1 MiB. What a text table has in
    /// its columns is said by `columns=` and the keys beside it ([`TableSpec`]).
    pub fn parse(text: &str) -> Result<ReplaySpec, WorkloadError> {
        // `compact` is both a flag and a key: the bare word means the default extent.
        let bare_compact = text.split_whitespace().skip(1).any(|word| word == "compact");
        let keys: Vec<&str> = KEYS.into_iter().filter(|&key| !(bare_compact && key == "compact")).collect();
        let flags: Vec<&str> = FLAGS.into_iter().filter(|&flag| bare_compact || flag != "compact").collect();
        let words = Words::new(text, &keys, &flags)?;
        let (path, format) = path_and_format(&words)?;
        let scale = words.decimal("scale-time", "a number above 0, at most 1e6", |f| f > 0.0 && f <= 1e6)?;
        let scale_time = scale.unwrap_or(1.0);
        let action = match words.value("action").map(str::as_bytes) {
            None => b'D',
            Some(&[letter]) if letter.is_ascii_uppercase() => letter,
            Some(_) => return Err(words.wrong("action", "one blkparse action, e.g. D, Q or C")),
        };
        let (compact, align) = extent_and_unit(&words, bare_compact)?;
        let keeps_think = match words.value("think") {
            None => false,
            Some("keep") => true,
            Some(_) => return Err(words.wrong("think", "keep")),
        };
        if let Some(key) = NOT_WITH_THINK.iter().find(|key| keeps_think && words.value(key).is_some()) {
            return Err(words.error(format!(
                "{key} cannot be combined with think=keep: the program runs once, at its own pace"
            )));
        }
        let clips_trims = words.flag("clip-trims");
        if clips_trims && compact.is_none() {
            return Err(words.error("clip-trims needs compact: it extends what compact removes"));
        }
        let table = table(&words, format)?;
        let volumes = words.value("volume").map(|names| names.split(',').map(str::to_owned).collect());
        let reading = ReadOptions {
            format,
            volumes: volumes.unwrap_or_default(),
            action,
            skip_bad: words.number("skip-bad", 0..=u64::MAX)?.unwrap_or(0),
            lines_max: None,
            table,
        };
        Ok(ReplaySpec {
            path,
            reading,
            first: words.quantity("first", quantity::span)?,
            scale_time,
            loops: words.number("loop", 1..=u32::MAX as u64)?.unwrap_or(1),
            copies: words.number("copies", 1..=COPIES_MAX)?.unwrap_or(1) as u32,
            compact,
            clips_trims,
            align,
            wrap: words.flag("wrap"),
            depth: words.number("qd", 1..=65_536)?.map(|depth| depth as u32),
            keeps_think,
            stream: 0,
        })
    }

    /// Reads the file, or runs the program.
    pub fn read(&self) -> Result<(Columns, ReadReport), WorkloadError> {
        match heap::name(&self.path) {
            Some(name) => heap::read(name, &self.reading),
            None => Ok(trace::read(&self.path, &self.reading)?),
        }
    }

    /// Writes every volume below `folder`, as [`nvlab_trace::split()`] does.
    pub fn split(
        &self,
        as_format: (Format, &str),
        folder: &Path,
    ) -> Result<(Vec<(PathBuf, WriteReport)>, ReadReport), WorkloadError> {
        if heap::name(&self.path).is_some() {
            let (columns, report) = self.read()?;
            return Ok((trace::split_columns(&columns, as_format, folder)?, report));
        }
        Ok(trace::split(&self.path, &self.reading, as_format, folder)?)
    }
}

/// The description of a text table's columns.
fn table(words: &Words, format: Option<Format>) -> Result<TableSpec, WorkloadError> {
    let table =
        TableSpec::parse(|key| words.value(key)).map_err(|(key, allowed)| words.wrong(key, &allowed))?;
    match format.filter(|&format| format != Format::Table && table != TableSpec::default()) {
        Some(format) => {
            let reason = "columns, separator, header and words are those of a table, not of";
            Err(words.error(format!("{reason} {format}")))
        }
        None => Ok(table),
    }
}

/// `FILE`, `FILE:FORMAT` or `builtin:NAME`. A colon is taken as part of the name if a file with that name exists.
fn path_and_format(words: &Words) -> Result<(PathBuf, Option<Format>), WorkloadError> {
    let head = words.head.as_str();
    if trace::PREFIXES.iter().chain([&heap::PREFIX]).any(|prefix| head.starts_with(prefix)) {
        return Ok((head.into(), None));
    }
    let Some((file, format)) =
        head.rsplit_once(':').filter(|(file, rest)| !file.is_empty() && !rest.contains('/'))
    else {
        return Ok((head.into(), None));
    };
    match Format::from_name(format) {
        Some(format) => Ok((file.into(), Some(format))),
        None if std::path::Path::new(head).exists() => Ok((head.into(), None)),
        None => {
            let hint = suggest::hint(format, Format::ALL.map(Format::name));
            let known = Format::ALL.map(Format::name).join(", ");
            Err(words.error(format!("unknown trace format '{format}'{hint} (known: {known})")))
        }
    }
}
