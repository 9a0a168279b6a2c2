//! What a table's first lines say of it: the separator, and the columns by the names in its header.
//!
//! 1. A name is split into words (`ResponseTime`, `offset (bytes)`, `time_us`); a word may be a unit.
//! 2. Two columns of which either could be meant are an error, never a choice.
//! 3. Without a unit, offsets and lengths are bytes, but `lba`, `lbn`, `sector` and `sectors` are sectors of 512 B. The unit of
//!    times follows from decimals (seconds), or from the digits of a time since 1970 or 1601; else it has to be said. The unit of
//!    a response time has to be in its name, otherwise the column is left aside.

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
    ("count", Kind::Length),
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
    /// A length in sectors.
    Sectors,
    Volume,
    Fua,
    Response,
}

/// True for a line that is no comment.
pub(super) fn is_content(line: &&[u8]) -> bool {
    !line.starts_with(b"#") || line.iter().any(|byte| b",;\t".contains(byte))
}

/// What divides the cells of a line: the first of the usual separators that makes enough of them, else the one that makes most.
pub(super) fn separator(line: &[u8], columns: usize) -> u8 {
    let count = |separator: &u8| Cells::new(line, *separator).count();
    let all = || SEPARATORS.iter().map(|(_, byte)| *byte);
    // Of equally good ones the first.
    let most = || all().rev().max_by_key(count).filter(|byte| count(byte) > 1);
    all().find(|byte| count(byte) >= columns.max(2)).or_else(most).unwrap_or(b' ')
}

/// True if the first line names what a trace needs, and the second one has numbers.
pub(in crate::trace) fn has_header(head: &[Vec<u8>]) -> bool {
    let [first, second, ..] = head else { return false };
    let separator = separator(first, 0);
    let has_digits = |line: &[u8]| Cells::new(line, separator).filter(|cell| is_number(cell)).count();
    let kinds: Vec<Kind> = names(first, separator).iter().filter_map(|name| kind_of(name)).collect();
    kinds.len() >= 3 && has_digits(first) == 0 && has_digits(second) >= 3
}

/// The columns that the header, the first line, names; and how that is known.
pub(super) fn columns(lines: &[&[u8]], separator: u8) -> Result<(Vec<Column>, &'static str), String> {
    let header = names(lines[0], separator);
    let rows: Vec<Vec<&[u8]>> = lines[1..].iter().map(|line| Cells::new(line, separator).collect()).collect();
    let mut columns: Vec<Column> = Vec::new();
    let mut is_exact = true;
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
        is_exact &= exact.is_some();
        if column.role != Role::Aside
            && let Some(other) = columns.iter().position(|other| other.role.same(column.role))
        {
            let reason =
                format!("`{}` and `{name}` of its header may both be {}", header[other], column.name);
            return Err(format!("{reason}; say what its columns are: columns=..."));
        }
        columns.push(column);
    }
    while columns.last().is_some_and(|column| column.role == Role::Aside) {
        columns.pop();
    }
    match missing(&columns) {
        None => Ok((columns, if is_exact { "of the header" } else { "guessed from the header" })),
        Some(what) => Err(format!(
            "its header has {}, and nothing that is {what}; say what its columns are, as in \
             columns=time_s,op,offset_bytes,length_bytes",
            header.join(", ")
        )),
    }
}

fn names(line: &[u8], separator: u8) -> Vec<String> {
    let line = line.strip_prefix(b"#").unwrap_or(line);
    Cells::new(line, separator).map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
}

fn is_number(cell: &[u8]) -> bool {
    !cell.is_empty() && cell.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// The words of a name, in lower case, whole and in their parts: `ResponseTime(us)` has `response`, `time`, `us`, `responsetime`.
fn words(name: &str) -> Vec<String> {
    let whole = name.split(|letter: char| !letter.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_ascii_lowercase();
        if letter.is_ascii_alphanumeric() {
            words.last_mut().expect("there is one").push(letter.to_ascii_lowercase());
        }
    }
    words.extend(whole);
    words.retain(|word| !word.is_empty());
    words
}

fn kind_of(name: &str) -> Option<Kind> {
    let words = words(name);
    let found = NAMES.iter().find(|(known, _)| words.iter().any(|word| word == known));
    found.map(|(_, kind)| *kind)
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
        "b" | "byte" | "bytes" => Some(1),
        "sector" | "sectors" | "512b" => Some(SECTOR_BYTES),
        "kib" => Some(1024),
        "4kib" | "4k" | "pages4k" => Some(4096),
        _ => None,
    }
}

/// What a column is, by its name and the first cells.
fn role(name: &str, cells: &[&[u8]]) -> Result<Role, String> {
    let Some(kind) = kind_of(name) else { return Ok(Role::Aside) };
    let words = words(name);
    // The unit is behind what it is the unit of.
    let time = words.iter().rev().find_map(|word| time_unit(word));
    let size = words.iter().rev().find_map(|word| size_unit(word));
    Ok(match kind {
        Kind::Op => Role::Op,
        Kind::Volume => Role::Volume,
        Kind::Fua => Role::Fua,
        Kind::Offset => Role::Offset(size.unwrap_or(1)),
        Kind::Length => Role::Length(size.unwrap_or(1)),
        Kind::Sector => Role::Offset(size.unwrap_or(SECTOR_BYTES)),
        Kind::Sectors => Role::Length(SECTOR_BYTES),
        Kind::Response => time.map_or(Role::Aside, Role::Response),
        Kind::Time => Role::Time(time.or_else(|| unit_of_times(cells)).ok_or_else(|| {
            format!(
                "the unit of `{name}` in its header is not known; say what its columns are, as in \
                 columns=time_us,op,offset_bytes,length_bytes"
            )
        })?),
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
