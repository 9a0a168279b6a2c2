//! Single words: every transaction loads or stores one word, its page drawn uniformly or from a hot and a cold zone.
//!
//! The workload under which eNVy's cleaning policies are compared (section 4.2: "10/90" means that 90 % of the accesses
//! go to 10 % of the data), and the simplest possible program. The hot zone is at the start of the memory.

use super::{Access, MemoryWorkload};
use crate::addresses::{Addresses, Zone, Zones, hot};
use crate::arrivals::{Arrivals, Limits, Pace};
use crate::words::{self, Words};
use crate::{Op, Pacing, Span, Time, Workload, WorkloadError};
use nvlab_units::Rng;
use nvlab_units::quantity::{self, display_bytes, display_fraction};
use std::ops::Range;

/// What a workload's text begins with.
pub const KIND: &str = "words";
const KEYS: [&str; 8] = ["hot", "load", "page", "word", "span", "rate", "arrivals", "until"];
const DEFAULT_PAGE_BYTES: u64 = 256;
const DEFAULT_WORD_BYTES: u64 = 8;

/// Single words, before they are opened on a memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WordsConfig {
    /// Share of the pages, and of the accesses they receive; `None`: uniform.
    pub hot: Option<(f64, f64)>,
    /// Loads among the accesses, 0 to 1; the rest are stores.
    pub load: f64,
    /// Bytes of a page, the unit that is drawn.
    pub page_bytes: u32,
    /// Bytes of an access: 1, 2, 4 or 8.
    pub word_bytes: u16,
    /// Bytes from the start of the memory; `None` for all of it.
    pub span: Option<u64>,
    /// A rate or a depth; each access arrives alone.
    pub pace: Pace,
    /// Accesses, bytes or time after which it ends.
    pub limits: Limits,
}

/// Independent loads and stores of one word each.
#[derive(Clone, Debug)]
pub struct RandomWords {
    config: WordsConfig,
    pages: Zones,
    footprint_bytes: u64,
    arrivals: Arrivals,
    kinds: Rng,
    remaining: u64,
}

impl WordsConfig {
    /// Reads a text such as `'words hot=10/90 load=50%'`.
    pub fn parse(text: &str) -> Result<WordsConfig, WorkloadError> {
        let words = Words::new(text, &KEYS, &[])?;
        let size = |key: &str, default: u64, allowed: &str, fits: fn(u64) -> bool| match words
            .quantity(key, words::size)?
        {
            None => Ok(default),
            Some(bytes) if fits(bytes) => Ok(bytes),
            Some(_) => Err(words.wrong(key, allowed)),
        };
        let page = size("page", DEFAULT_PAGE_BYTES, "a power of two from 8 B to 1 MiB", |bytes| {
            bytes.is_power_of_two() && (8..=1 << 20).contains(&bytes)
        })?;
        let word = size("word", DEFAULT_WORD_BYTES, "1 B, 2 B, 4 B or 8 B", |bytes| {
            bytes.is_power_of_two() && bytes <= 8
        })?;
        Ok(WordsConfig {
            hot: hot(&words)?,
            load: words.share("load")?.unwrap_or(0.0),
            page_bytes: page as u32,
            word_bytes: word as u16,
            span: words.quantity("span", words::size)?,
            pace: Pace::parse(&words, "10k/s")?,
            limits: Limits::parse(&words, "accesses")?,
        })
    }

    /// The generator on a memory of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<RandomWords, WorkloadError> {
        let refuse = |reason| WorkloadError::DoesNotFit { what: what.to_owned(), reason };
        let span = self.span.unwrap_or(capacity);
        if span > capacity {
            let exact = quantity::told_bytes;
            return Err(refuse(format!(
                "it extends to {}, but the memory ends at {}",
                exact(span),
                exact(capacity)
            )));
        }
        let pages = span / self.page_bytes as u64;
        if pages < 2 {
            return Err(refuse(format!("{} hold fewer than two pages", display_bytes(span))));
        }
        // Without a hot zone, half of the pages receive half of the accesses.
        let (space, accesses) = self.hot.unwrap_or((0.5, 0.5));
        Ok(RandomWords {
            config: *self,
            pages: Zones::new(pages, &Zone::hot_cold(space, accesses), false, seed),
            footprint_bytes: pages * self.page_bytes as u64,
            arrivals: Arrivals::new(self.pace, self.limits.time, seed),
            kinds: Rng::stream(seed, "operations"),
            remaining: self.limits.requests.unwrap_or(u64::MAX),
        })
    }
}

impl MemoryWorkload for RandomWords {
    #[inline]
    fn next(&mut self, accesses: &mut Vec<Access>) -> Option<Time> {
        accesses.clear();
        if self.remaining == 0 {
            return None;
        }
        let Some(at) = self.arrivals.next() else {
            self.remaining = 0;
            return None;
        };
        self.remaining -= 1;
        let is_load = self.config.load > 0.0 && self.kinds.chance(self.config.load);
        let op = if is_load { Op::Read } else { Op::Write };
        let offset = self.pages.slot(op, 1) * self.config.page_bytes as u64;
        let bytes = self.config.word_bytes;
        accesses.push(if is_load { Access::load(offset, bytes) } else { Access::store(offset, bytes) });
        Some(at)
    }
}

impl Workload for RandomWords {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }

    fn footprint(&self) -> Range<u64> {
        0..self.footprint_bytes
    }

    fn len_hint(&self) -> Option<u64> {
        self.config.limits.requests.map(|_| self.remaining)
    }

    fn time_limit(&self) -> Option<Span> {
        self.config.limits.time
    }

    fn describe(&self) -> String {
        let pages = self.footprint_bytes / self.config.page_bytes as u64;
        let spread = match self.config.hot {
            None => "evenly".to_owned(),
            Some((space, accesses)) => {
                format!(
                    "{} of the accesses to {} of them",
                    display_fraction(accesses),
                    display_fraction(space)
                )
            }
        };
        let load = display_fraction(self.config.load);
        format!("words of {} B in {pages} pages, {spread}, {load} loads\n", self.config.word_bytes)
    }
}
