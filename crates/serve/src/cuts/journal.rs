//! The operations of a program on a device, with their bytes.
//!
//! File:
//! ```text
//! one line of JSON     whatever its writer adds
//! zstd of              per operation: kind u8, time u64 (ps), offset u64, bytes u32, the bytes of a write; little-endian
//! ```

use nvlab_units::Time;
use serde::{Deserialize, Serialize};
use std::fs::{File, Permissions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// An operation that changes a device or makes it durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its bytes are in the journal.
    Write,
    /// The whole units inside a range are discarded.
    Trim,
    /// Everything answered before becomes durable.
    Flush,
}

/// One recorded operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether it writes, trims or flushes.
    pub kind: Kind,
    /// When it began, in the device's time.
    pub at: Time,
    /// First byte on the device.
    pub offset: u64,
    /// Length of the range; 0 for a flush.
    pub bytes: u32,
    /// Where the bytes of a write begin.
    data: usize,
}

/// A line that the program printed, and when: what it then believed to be durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Operations recorded before it was printed.
    pub operations: u64,
    /// Its text, without the line feed.
    pub line: String,
}

/// What a program did to a device, in order, so that it can be replayed up to any operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    entries: Vec<Entry>,
    data: Vec<u8>,
    marks: Vec<Mark>,
}

/// The longest operation that a file may have: a write over NBD has at most 32 MiB, a trim is split.
const BYTES_MAX: u32 = 64 << 20;

impl Journal {
    /// Appends an operation; `data` are the bytes of a write.
    pub fn push(&mut self, kind: Kind, at: Time, offset: u64, bytes: u32, data: &[u8]) {
        debug_assert_eq!(data.len(), if kind == Kind::Write { bytes as usize } else { 0 });
        self.entries.push(Entry { kind, at, offset, bytes, data: self.data.len() });
        self.data.extend_from_slice(data);
    }

    /// Records that the program printed `line` now.
    pub fn mark(&mut self, line: String) {
        let operations = self.entries.len() as u64;
        self.marks.push(Mark { operations, line });
    }

    /// Operations recorded, lines not counted.
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// True if nothing changed the device.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Operation `number`, counted from 1.
    pub fn entry(&self, number: u64) -> &Entry {
        &self.entries[number as usize - 1]
    }

    /// The bytes of a write; empty for other operations.
    pub fn data(&self, entry: &Entry) -> &[u8] {
        let bytes = if entry.kind == Kind::Write { entry.bytes as usize } else { 0 };
        &self.data[entry.data..entry.data + bytes]
    }

    /// The printed lines, oldest first.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The same with these operations only, and with the marks up to the last of them.
    pub fn with_only(&self, numbers: &[u64]) -> Journal {
        let mut part = Journal::default();
        for &number in numbers {
            let entry = self.entry(number);
            part.push(entry.kind, entry.at, entry.offset, entry.bytes, self.data(entry));
        }
        let last = numbers.last().copied().unwrap_or(0);
        let done = |mark: &&Mark| mark.operations <= last;
        let place = |mark: &Mark| numbers.partition_point(|&number| number <= mark.operations) as u64;
        let marks = self.marks.iter().filter(done);
        part.marks = marks.map(|mark| Mark { operations: place(mark), line: mark.line.clone() }).collect();
        part
    }

    /// Writes it after `about`; an existing file is replaced once the new one is complete. Anything else at the path stays: a
    /// link, or a device.
    pub fn save(&self, path: &Path, about: &impl Serialize) -> io::Result<()> {
        if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "it exists and is not a file"));
        }
        let mut named = tempfile::Builder::new();
        // The mode that the umask leaves, as for any new file.
        let named = named.permissions(Permissions::from_mode(0o666));
        let beside = named.tempfile_in(nvlab_os::file::folder_of(path))?;
        let mut out = BufWriter::new(beside);
        serde_json::to_writer(&mut out, &(about, &self.marks))?;
        out.write_all(b"\n")?;
        let mut packed = zstd::Encoder::new(out, 3)?;
        for entry in &self.entries {
            packed.write_all(&[entry.kind as u8])?;
            packed.write_all(&entry.at.ps().to_le_bytes())?;
            packed.write_all(&entry.offset.to_le_bytes())?;
            packed.write_all(&entry.bytes.to_le_bytes())?;
            packed.write_all(self.data(entry))?;
        }
        let beside = packed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        beside.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Reads a journal and what `save` put before it; an error names what is damaged.
    pub fn load<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<(Journal, T)> {
        let damaged = |why: &str| io::Error::new(ErrorKind::InvalidData, format!("damaged: {why}"));
        let mut file = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        file.by_ref().take(64 << 20).read_until(b'\n', &mut line)?;
        let (about, marks): (T, Vec<Mark>) = serde_json::from_slice(&line)?;
        let mut journal = Journal { marks, ..Journal::default() };
        let mut packed = BufReader::new(zstd::Decoder::with_buffer(file)?);
        while !packed.fill_buf()?.is_empty() {
            let mut head = [0; 21];
            packed.read_exact(&mut head)?;
            let kind = match head[0] {
                0 => Kind::Write,
                1 => Kind::Trim,
                2 => Kind::Flush,
                _ => return Err(damaged("an operation of unknown kind")),
            };
            let number =
                |range: std::ops::Range<usize>| u64::from_le_bytes(head[range].try_into().expect("8 bytes"));
            let bytes = u32::from_le_bytes(head[17..].try_into().expect("4 bytes"));
            let (at, offset) = (Time::from_ps(number(1..9)), number(9..17));
            if bytes > BYTES_MAX || offset.checked_add(bytes.into()).is_none() {
                return Err(damaged("an operation beyond the end of any device"));
            }
            if journal.entries.last().is_some_and(|last| last.at > at) {
                return Err(damaged("an operation earlier than the previous one"));
            }
            let mut data = vec![0; if kind == Kind::Write { bytes as usize } else { 0 }];
            packed.read_exact(&mut data)?;
            journal.push(kind, at, offset, bytes, &data);
        }
        Ok((journal, about))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let mut journal = Journal::default();
        for number in 1..=6u64 {
            let data = [number as u8; 512];
            match number % 3 {
                0 => journal.push(Kind::Flush, Time::from_ns(number), 0, 0, &[]),
                1 => journal.push(Kind::Write, Time::from_ns(number), number * 512, 512, &data),
                _ => journal.push(Kind::Trim, Time::from_ns(number), number * 512, 4096, &[]),
            }
            journal.mark(format!("line {number}"));
        }
        journal
    }

    #[test]
    fn a_saved_journal_loads_unchanged() {
        let path = std::env::temp_dir().join(format!("nvlab-journal-{}", std::process::id()));
        let journal = journal();
        journal.save(&path, &("about", 7)).unwrap();
        let (again, about) = Journal::load::<(String, u32)>(&path).unwrap();
        assert_eq!((again, about), (journal, ("about".into(), 7)));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        assert!(Journal::load::<(String, u32)>(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_part_keeps_its_bytes_and_the_marks_before_its_end() {
        let part = journal().with_only(&[2, 4, 6]);
        assert_eq!(part.len(), 3);
        assert_eq!(part.data(part.entry(2)), [4; 512]);
        let marks: Vec<(u64, &str)> =
            part.marks().iter().map(|mark| (mark.operations, mark.line.as_str())).collect();
        let lines =
            [(0, "line 1"), (1, "line 2"), (1, "line 3"), (2, "line 4"), (2, "line 5"), (3, "line 6")];
        assert_eq!(marks, lines);
    }
}
