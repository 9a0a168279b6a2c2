//! The layout of the file of a heap.
//!
//! ```text
//! 0        header, and 4 KiB further its copy: written one after the other, so that one of them is always whole
//! 8 KiB    the types in words, by which a heap is inspected without its program
//! 64 KiB   logs: for each, 4 KiB with its list of objects to be destroyed, and two halves for records
//! ...      page table: 8 B for each page that the heap may grow to; then 2 B for each, a hint of its free blocks
//! ...      checksums, if the heap has them: 4 KiB with 4 B for each log, then 4 KiB for each page that the heap may grow to
//! ...      pages of 64 KiB: blocks of one size, or part of a large block
//! ```
//!
//! Integers are little-endian. A header is 16 words: the last is the hash of the others.

use crate::error::{Error, Result};
use crate::hash::hash_words;
use std::path::Path;

pub(crate) const PAGE: u64 = 64 << 10;
pub(crate) const LINE: u64 = 64;
/// The copies of the header.
pub(crate) const HEADERS: [u64; 2] = [0, 4096];
/// Where the types lie in words, and the most bytes of them.
pub(crate) const TYPES: std::ops::Range<u64> = 8192..PAGE;
/// Bytes of a checksum, of those in front of the pages', and of those of a page.
pub(crate) const SUM: u64 = 4;
const SUMS_HEAD: u64 = 4096;
pub(crate) const PAGE_SUMS: u64 = PAGE / LINE * SUM;
/// Bytes in front of the halves of a log.
const LOG_HEAD: u64 = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"nvheap\0\x01");
/// Of a heap without checksums, and of one with them: a program that does not keep them up to date opens none that has them.
const VERSION: u64 = 2;
const VERSION_CHECKSUMS: u64 = 3;
const HEADER_WORDS: usize = 16;

/// Sizes that are fixed when a heap is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub logs: u64,
    /// Bytes of a half of a log: a multiple of a line.
    pub half_bytes: u64,
    /// Pages the heap may grow to.
    pub pages_max: u64,
    /// Whether it has checksums of what lies at home.
    pub checksums: bool,
}

impl Layout {
    pub fn log_head(&self, log: usize) -> u64 {
        PAGE + log as u64 * (LOG_HEAD + 2 * self.half_bytes)
    }

    /// Where the records of an epoch begin.
    pub fn half(&self, log: usize, epoch: u64) -> u64 {
        self.log_head(log) + LOG_HEAD + (epoch & 1) * self.half_bytes
    }

    pub fn page_table(&self) -> u64 {
        self.log_head(self.logs as usize).next_multiple_of(4096)
    }

    pub fn hints(&self) -> u64 {
        self.page_table() + self.pages_max * 8
    }

    fn hints_end(&self) -> u64 {
        self.hints() + self.pages_max * 2
    }

    /// The checksums, and how many bytes those of so many pages take with what is in front of them.
    pub fn sums(&self) -> u64 {
        self.hints_end().next_multiple_of(4096)
    }

    pub fn sums_bytes(&self, pages: u64) -> u64 {
        if self.checksums { SUMS_HEAD + pages * PAGE_SUMS } else { 0 }
    }

    /// Where that of the first line of the first page lies.
    pub fn page_sums(&self) -> u64 {
        self.sums() + SUMS_HEAD
    }

    /// Where that of the first line of a log lies; `None` for other lines.
    pub fn sum_of_head(&self, line: u64) -> Option<u64> {
        let log = line.checked_sub(self.log_head(0))? / (LOG_HEAD + 2 * self.half_bytes);
        (log < self.logs && line == self.log_head(log as usize)).then(|| self.sums() + log * SUM)
    }

    /// The first page.
    pub fn data(&self) -> u64 {
        let end = match self.checksums {
            true => self.sums() + self.sums_bytes(self.pages_max),
            false => self.hints_end(),
        };
        end.next_multiple_of(PAGE)
    }

    /// Bytes of the file with this many pages.
    pub fn bytes(&self, pages: u64) -> u64 {
        self.data() + pages * PAGE
    }

    /// What a file with this many pages is stored to, whatever is in it: from where on, and how many bytes.
    pub fn stored(&self, pages: u64) -> impl Iterator<Item = (u64, u64)> {
        let (table, hints) = (self.page_table(), self.hints());
        let sums = (self.sums(), self.sums_bytes(pages));
        let all = [(0, table), (table, pages * 8), (hints, pages * 2), sums, (self.data(), pages * PAGE)];
        all.into_iter().filter(|&(_, bytes)| bytes > 0)
    }

    /// The most pages that fit into so many bytes, at most `pages_max`.
    pub fn fit(self, bytes: u64) -> Layout {
        // A page, its table entry, its hint and its checksums; what is rounded up takes less than one page more, or than two.
        let (rounded, sums) = if self.checksums { (2 * PAGE, PAGE_SUMS) } else { (PAGE, 0) };
        let room = bytes.saturating_sub(self.page_table() + rounded);
        let pages = (room / (PAGE + 10 + sums)).min(self.pages_max);
        Layout { pages_max: pages / 4 * 4, ..self }
    }

    pub fn is_sane(&self) -> bool {
        (1..=127).contains(&self.logs)
            && (4096..=1 << 32).contains(&self.half_bytes)
            && self.half_bytes.is_multiple_of(4096)
            && (1..=1 << 30).contains(&self.pages_max)
    }
}

/// What the header of a heap says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub layout: Layout,
    /// Drawn when the heap was created.
    pub identity: u64,
    /// The hash of the types.
    pub fingerprint: u64,
    /// Where the root lies, with its type.
    pub root: u64,
    /// Records up to this epoch are at home.
    pub epoch_done: u64,
    /// Clocks above it have not been used.
    pub clock_limit: u64,
    /// How often it was opened.
    pub opens: u64,
}

impl Header {
    /// The version of the format.
    pub fn version(&self) -> u64 {
        if self.layout.checksums { VERSION_CHECKSUMS } else { VERSION }
    }

    pub fn encode(&self) -> [u64; HEADER_WORDS] {
        let mut words = [0; HEADER_WORDS];
        let Layout { logs, half_bytes, pages_max, .. } = self.layout;
        let fields = [
            MAGIC,
            self.version(),
            self.identity,
            logs,
            half_bytes,
            pages_max,
            self.fingerprint,
            self.root,
            self.epoch_done,
            self.clock_limit,
            self.opens,
        ];
        words[..fields.len()].copy_from_slice(&fields);
        words[HEADER_WORDS - 1] = hash_words(MAGIC, &words[..HEADER_WORDS - 1]);
        words
    }

    /// `None` if it is not whole.
    fn decode(bytes: &[u8]) -> Option<Header> {
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let whole = words.len() >= HEADER_WORDS
            && words[0] == MAGIC
            && words[HEADER_WORDS - 1] == hash_words(MAGIC, &words[..HEADER_WORDS - 1])
            && [VERSION, VERSION_CHECKSUMS].contains(&words[1]);
        let layout = Layout {
            logs: *words.get(3)?,
            half_bytes: *words.get(4)?,
            pages_max: *words.get(5)?,
            checksums: words[1] == VERSION_CHECKSUMS,
        };
        (whole && layout.is_sane()).then(|| Header {
            layout,
            identity: words[2],
            fingerprint: words[6],
            root: words[7],
            epoch_done: words[8],
            clock_limit: words[9],
            opens: words[10],
        })
    }

    /// The pages of a file of so many bytes.
    pub fn pages(&self, path: &Path, bytes: u64) -> Result<u64> {
        let layout = &self.layout;
        if bytes < layout.bytes(1) || self.root == 0 {
            return Err(Error::Format { path: path.into(), why: format!("it ends after {bytes} B") });
        }
        Ok(((bytes - layout.data()) / PAGE).min(layout.pages_max))
    }

    /// Finds the newest whole header at the beginning of a file.
    pub fn find(path: &Path, start: &[u8]) -> Result<Header> {
        let copy = |at: u64| start.get(at as usize..at as usize + HEADER_WORDS * 8).and_then(Header::decode);
        let found = HEADERS.into_iter().filter_map(copy).max_by_key(|header| {
            // One that was written later has none of these smaller.
            (header.epoch_done, header.clock_limit, header.opens)
        });
        found.ok_or_else(|| {
            let magic = start.get(..8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
            let why = match (magic, start.get(8)) {
                (Some(MAGIC), Some(&version))
                    if ![VERSION, VERSION_CHECKSUMS].contains(&u64::from(version)) =>
                {
                    format!(
                        "its format has version {version} and this program reads versions {VERSION} and \
                         {VERSION_CHECKSUMS}"
                    )
                }
                (Some(MAGIC), _) => "both copies of its header are damaged".into(),
                _ => "it does not begin with the signature of a heap".into(),
            };
            Error::Format { path: path.into(), why }
        })
    }
}
