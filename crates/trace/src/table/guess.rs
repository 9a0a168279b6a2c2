//! What a table's first lines say of it: the separator, and the columns by the names in its header.
//!
//! 1. A name is split into words (`ResponseTime`, `offset (bytes)`, `time_us`); a word may be a unit.
//! 2. Two columns of which either could be meant are an error, never a choice.
//! 3. Without units, offset and length are bytes; `lba`, `lbn`, `sector` and `sectors` are sectors of 512 B. If one of them is
//!    in another unit than bytes, the other needs one too. The unit of times follows from decimals (seconds), or from the digits
//!    of a time since 1970 or 1601; else it has to be said. The unit of a response time has to be in its name, otherwise the
//!    column is left aside.
//! 4. A unit that is not known, or has two meanings (KB, pages), is an error.

use super::cells::{Cells, Column, Role};
use super::{SECTOR_BYTES, SEPARATORS, UNITS, missing};

/// Words for the parts of a request. Those that come first count first where a name has several.
const NAMES: [(&str, Kind); 44] = [
    ("response", Kind::Response),
    ("latency", Kind::Response),
    ("lat", Kind::Response),
    ("elapsed", Kind::Response),
    ("duration", Kind::Response),
    ("op", Kind::Op),
    ("opcode", Kind::Op),
    ("operation", Kind::Op),
    ("type", Kind::Op),
    ("iotype", Kind::Op),
    ("optype", Kind::Op),
    ("rw", Kind::Op),
    ("rwbs", Kind::Op),
    ("action", Kind::Op),
    ("command", Kind::Op),
    ("cmd", Kind::Op),
    ("direction", Kind::Op),
    ("length", Kind::Length),
    ("len", Kind::Length),
    ("size", Kind::Length),
    ("count", Kind::Count),
    ("nbytes", Kind::Length),
    ("sectors", Kind::Sectors),
    ("nsectors", Kind::Sectors),
    ("offset", Kind::Offset),
    ("address", Kind::Offset),
    ("addr", Kind::Offset),
    ("position", Kind::Offset),
    ("lba", Kind::Sector),
    ("lbn", Kind::Sector),
    ("slba", Kind::Sector),
    ("sector", Kind::Sector),
    ("blkno", Kind::Sector),
    ("time", Kind::Time),
    ("timestamp", Kind::Time),
    ("ts", Kind::Time),
    ("at", Kind::Time),
    ("arrival", Kind::Time),
    ("volume", Kind::Volume),
    ("device", Kind::Volume),
    ("disk", Kind::Volume),
    ("lun", Kind::Volume),
    ("asu", Kind::Volume),
    ("fua", Kind::Fua),
];

/// What a name in a header may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Time,
    Op,
    Offset,
    /// An offset in sectors.
    Sector,
    Length,
    /// A length in a unit that the name says.
    Count,
    /// A length in sectors.
    Sectors,
    Volume,
    Fua,
    Response,
}

/// The first lines without comments, but with a header that looks like one: the comment just before them, if it names what a
/// trace needs.
pub(crate) fn content(head: &[Vec<u8>]) -> Vec<&[u8]> {
    let lines: Vec<&[u8]> = head.iter().map(Vec::as_slice).collect();
    let comments = lines.iter().take_while(|line| is_comment(line)).count();
    let (comments, lines) = lines.split_at(comments);
    let header = comments.last().filter(|line| names_columns(line, separator(line, 0)));
    header.into_iter().chain(lines.iter().filter(|line| !is_comment(line))).copied().collect()
}

pub(crate) fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"#")
}

fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"#").unwrap_or(line)
}

/// What divides the cells of a line: the first of the usual separators that makes enough of them, else the one that makes most.
pub(crate) fn separator(line: &[u8], columns: usize) -> u8 {
    let line = without_mark(line);
    let count = |separator: &u8| Cells::new(line, *separator).count();
    let all = || SEPARATORS.iter().map(|(_, byte)| *byte);
    // Of equally good ones the first.
    let most = || all().rev().max_by_key(count).filter(|byte| count(byte) > 1);
    all().find(|byte| count(byte) >= columns.max(2)).or_else(most).unwrap_or(b' ')
}

/// True if the first line names what a trace needs, and the second one has numbers.
pub(crate) fn has_header(head: &[Vec<u8>]) -> bool {
    let [first, second, ..] = content(head)[..] else { return false };
    let separator = separator(first, 0);
    names_columns(first, separator) && numbers(second, separator) >= 3
}

/// True if a line names columns of a trace, and has no numbers.
fn names_columns(line: &[u8], separator: u8) -> bool {
    let known = names(line, separator).iter().filter(|name| kind_of(name).is_some()).count();
    known >= 3 && numbers(line, separator) == 0
}

fn numbers(line: &[u8], separator: u8) -> usize {
    Cells::new(line, separator).filter(|cell| is_number(cell)).count()
}

/// The columns that the header, the first line, names; and how that is known.
pub(crate) fn columns(lines: &[&[u8]], separator: u8) -> Result<(Vec<Column>, &'static str), String> {
    let header = names(lines[0], separator);
    let rows: Vec<Vec<&[u8]>> = lines[1..].iter().map(|line| Cells::new(line, separator).collect()).collect();
    let mut columns: Vec<Column> = Vec::new();
    let mut is_exact = true;
    // Names of an offset or a length whose unit is not said.
    let mut without_unit: Vec<(Role, &str)> = Vec::new();
    for (index, name) in header.iter().enumerate() {
        let exact = super::role_of(name).filter(|role| *role != Role::Aside);
        let guessed = || -> Result<Column, String> {
            let cells: Vec<&[u8]> = rows.iter().filter_map(|row| row.get(index).copied()).collect();
            role(name, &cells).map(|role| Column { name: name_of(role), role })
        };
        let column = match exact {
            Some(role) => Column { name: name.clone(), role },
            None => guessed()?,
        };
        if exact.is_none() && !has_unit(name) {
            without_unit.push((column.role, name));
        }
        is_exact &= exact.is_some();
        if column.role != Role::Aside
            && let Some(other) = columns.iter().position(|other| other.role.same(column.role))
        {
            let reason =
                format!("`{}` and `{name}` in its header may both be {}", header[other], column.name);
            return Err(format!("{reason}; give its columns: columns=..."));
        }
        columns.push(column);
    }
    while columns.last().is_some_and(|column| column.role == Role::Aside) {
        columns.pop();
    }
    let is_scaled =
        |column: &Column| matches!(column.role, Role::Offset(unit) | Role::Length(unit) if unit != 1);
    if let (true, Some((_, name))) = (
        columns.iter().any(is_scaled),
        without_unit.iter().find(|(role, _)| matches!(role, Role::Offset(_) | Role::Length(_))),
    ) {
        return Err(unknown_unit(name));
    }
    match missing(&columns) {
        None => Ok((columns, if is_exact { "from the header" } else { "guessed from the header" })),
        Some(what) => Err(format!(
            "its header has {}, but nothing that is {what}; give its columns, e.g. \
             columns=time_s,op,offset_bytes,length_bytes",
            header.join(", ")
        )),
    }
}

fn names(line: &[u8], separator: u8) -> Vec<String> {
    Cells::new(without_mark(line), separator).map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
}

fn is_number(cell: &[u8]) -> bool {
    !cell.is_empty() && cell.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// The words of a name, in lower case: `ResponseTime(us)` has `response`, `time`, `us`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let word = words.last().expect("there is one");
        // KiB is one word.
        let is_unit = letter == 'B' && ["ki", "mi", "gi"].iter().any(|unit| word.ends_with(unit));
        if !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_lower && !is_unit) {
            words.push(String::new());
        }
        was_lower = letter.is_ascii_lowercase();
        if letter.is_ascii_alphanumeric() {
            words.last_mut().expect("there is one").push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The words of a name that are not in parts: `ResponseTime(us)` has `responsetime`, `us`.
fn whole_words(name: &str) -> impl Iterator<Item = String> {
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).map(str::to_ascii_lowercase)
}

fn kind_of(name: &str) -> Option<Kind> {
    let words: Vec<String> = words(name).into_iter().chain(whole_words(name)).collect();
    let found = NAMES.iter().find(|(known, _)| words.iter().any(|word| word == known));
    found.map(|(_, kind)| *kind)
}

/// The unit that a name says, the last one if there are several; `None`: none. The error: it is not known, or what is behind is
/// no known word, which may be one.
fn unit_of(name: &str, unit: impl Fn(&str) -> Option<u64>) -> Result<Option<u64>, String> {
    let words = words(name);
    let is_known = |word: &str| NAMES.iter().any(|(known, _)| *known == word) || word == "stamp";
    let mut found = None;
    let mut is_behind = false;
    for (index, word) in words.iter().enumerate() {
        // The size of a sector is no number of sectors.
        let is_of_it = index > 0 && matches!(word.as_str(), "size" | "length" | "len");
        if is_of_it && matches!(words[index - 1].as_str(), "sector" | "lba" | "lbn") {
            return Err(unknown_unit(name));
        }
        match unit(word) {
            Some(unit) => found = Some(unit),
            None if UNKNOWN_UNITS.contains(&word.as_str()) => return Err(unknown_unit(name)),
            None if is_known(word) => {}
            None if is_behind => return Err(unknown_unit(name)),
            None => continue,
        }
        is_behind = true;
    }
    Ok(found)
}

/// Words that may be before what they are the unit of, as in `block_count`.
const UNKNOWN_UNITS: [&str; 16] = [
    "block", "blocks", "blk", "blks", "page", "pages", "cluster", "clusters", "chunk", "chunks", "k", "kb",
    "mb", "gb", "tb", "m",
];

/// True if a name needs no other to tell the unit.
fn has_unit(name: &str) -> bool {
    !matches!(unit_of(name, size_unit), Ok(None))
        || matches!(kind_of(name), Some(Kind::Sector | Kind::Sectors))
}

fn unknown_unit(name: &str) -> String {
    format!(
        "the unit of `{name}` in its header is unknown; give its columns, e.g. \
         columns=time_us,op,offset_bytes,length_bytes"
    )
}

/// The picoseconds of a unit of time, as headers write it.
fn time_unit(word: &str) -> Option<u64> {
    let name = match word {
        "sec" | "secs" | "second" | "seconds" => "s",
        "msec" | "millis" | "milliseconds" => "ms",
        "usec" | "micros" | "microseconds" => "us",
        "nsec" | "nanos" | "nanoseconds" => "ns",
        other => other,
    };
    UNITS.iter().find(|(unit, _)| *unit == name).map(|(_, ps)| *ps)
}

fn size_unit(word: &str) -> Option<u64> {
    match word {
        "b" | "byte" | "bytes" | "nbytes" => Some(1),
        "sector" | "sectors" | "nsectors" | "512b" | "lba" | "lbas" | "lbn" | "slba" => Some(SECTOR_BYTES),
        "4k" => Some(4096),
        _ => [("kib", 10), ("mib", 20), ("gib", 30)].into_iter().find_map(|(unit, bits)| {
            let count = word.strip_suffix(unit)?;
            let count = if count.is_empty() { 1 } else { count.parse().ok()? };
            Some(count << bits).filter(|bytes: &u64| count <= 1 << 30 && (1..=1 << 30).contains(bytes))
        }),
    }
}

/// What a column is, by its name and the first cells.
fn role(name: &str, cells: &[&[u8]]) -> Result<Role, String> {
    let Some(kind) = kind_of(name) else { return Ok(Role::Aside) };
    let size = || unit_of(name, size_unit);
    Ok(match kind {
        Kind::Op => Role::Op,
        Kind::Volume => Role::Volume,
        Kind::Fua => Role::Fua,
        Kind::Offset => Role::Offset(size()?.unwrap_or(1)),
        Kind::Length => Role::Length(size()?.unwrap_or(1)),
        Kind::Count => Role::Length(size()?.ok_or_else(|| unknown_unit(name))?),
        Kind::Sector => Role::Offset(size()?.unwrap_or(SECTOR_BYTES)),
        Kind::Sectors => Role::Length(size()?.unwrap_or(SECTOR_BYTES)),
        Kind::Response => unit_of(name, time_unit).ok().flatten().map_or(Role::Aside, Role::Response),
        Kind::Time => {
            let unit = unit_of(name, time_unit)?.or_else(|| unit_of_times(cells));
            Role::Time(unit.ok_or_else(|| unknown_unit(name))?)
        }
    })
}

/// The unit of times, by their digits: since 1970, those of this century have 10 in seconds; since 1601, 18 in 100 ns.
fn unit_of_times(cells: &[&[u8]]) -> Option<u64> {
    let first = cells.first()?;
    if !cells.iter().all(|cell| is_number(cell)) {
        return None;
    }
    if cells.iter().any(|cell| cell.contains(&b'.')) {
        return time_unit("s");
    }
    let digits = cells.iter().all(|cell| cell.len() == first.len()).then_some(first.len())?;
    let unit = match (digits, first[0]) {
        (10, b'1'..=b'4') => "s",
        (13, b'1'..=b'4') => "ms",
        (16, b'1'..=b'4') => "us",
        (18, b'1') => "100ns",
        (19, b'1'..=b'4') => "ns",
        _ => return None,
    };
    time_unit(unit)
}

/// The name of a column, as in `columns=`.
fn name_of(role: Role) -> String {
    let time = |ps: u64| UNITS.iter().find(|(_, unit)| *unit == ps).map_or("?", |(name, _)| name);
    let size = |bytes: u64| match bytes {
        1 => "bytes".to_owned(),
        SECTOR_BYTES => "sectors".to_owned(),
        bytes => format!("{bytes}B"),
    };
    match role {
        Role::Aside => "-".to_owned(),
        Role::Op => "op".to_owned(),
        Role::Volume => "volume".to_owned(),
        Role::Fua => "fua".to_owned(),
        Role::Time(ps) => format!("time_{}", time(ps)),
        Role::Response(ps) => format!("response_{}", time(ps)),
        Role::Offset(bytes) => format!("offset_{}", size(bytes)),
        Role::Length(bytes) => format!("length_{}", size(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers() {
        let role = |name: &str, cell: &'static str| role(name, &[cell.as_bytes()]);
        for (name, cell, expected) in [
            ("ResponseTime(us)", "7", Role::Response(1_000_000)),
            ("ResponseTime", "7", Role::Aside),
            ("Timestamp", "1456135200.013", Role::Time(1_000_000_000_000)),
            ("Timestamp", "128166372003061629", Role::Time(100_000)),
            ("time (ms)", "7", Role::Time(1_000_000_000)),
            ("arrival_time_ns", "7", Role::Time(1000)),
            ("IOType", "R", Role::Op),
            ("lba", "7", Role::Offset(512)),
            ("Offset [KiB]", "7", Role::Offset(1024)),
            ("io_size", "7", Role::Length(1)),
            ("num_sectors", "7", Role::Length(512)),
            ("process", "7", Role::Aside),
        ] {
            assert_eq!(role(name, cell), Ok(expected), "{name}");
        }
        assert!(role("time", "7").unwrap_err().contains("the unit of `time`"));
    }
}
