//! The options of a section: their values and errors.

use super::numbers::{self, SECOND_PS};
use crate::block::generator::{Amount, Mix, pattern};
use crate::{Span, WorkloadError};

/// An option as it was written: its value and its place.
#[derive(Clone)]
struct Set {
    key: String,
    value: Option<String>,
    file: String,
    line: u64,
}

/// Options and their places.
#[derive(Clone, Default)]
pub(super) struct Options {
    set: Vec<Set>,
}

/// How requests follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pattern {
    pub is_random: bool,
    /// Bytes left out after each sequential request.
    pub skip_bytes: i64,
    /// One request in this many goes to a new random place.
    pub jump_every: Option<u32>,
}

/// One value for each kind of request: of reads, writes and trims.
pub(super) type Each<T> = [Option<T>; 3];

impl Options {
    /// Sets an option; a later value replaces an earlier one.
    pub fn set(&mut self, key: &str, value: Option<&str>, file: &str, line: u64) {
        self.set.retain(|seen| seen.key != key);
        let (key, value, file) = (key.to_owned(), value.map(str::to_owned), file.to_owned());
        self.set.push(Set { key, value, file, line });
    }

    fn find(&self, key: &str) -> Option<&Set> {
        self.set.iter().find(|set| set.key == key)
    }

    pub fn value(&self, key: &str) -> Option<&str> {
        self.find(key).map(|set| set.value.as_deref().unwrap_or(""))
    }

    /// The error for the value of `key`, which is set.
    pub fn wrong(&self, key: &'static str, allowed: &str) -> WorkloadError {
        let found = self.value(key).unwrap_or("");
        self.error(key, format!("{key} '{found}' is wrong: {allowed}"))
    }

    /// The error for `key`, which is set and not done here.
    pub fn refused(&self, key: &'static str, reason: &str) -> WorkloadError {
        self.error(key, format!("{key} is not supported: {reason}"))
    }

    fn error(&self, key: &str, reason: String) -> WorkloadError {
        let set = self.find(key);
        let file = set.map(|set| set.file.clone()).unwrap_or_default();
        WorkloadError::Job { file, line: set.map_or(0, |set| set.line), reason }
    }

    /// True if the option is given without a value or is 1.
    pub fn flag(&self, key: &'static str) -> Result<bool, WorkloadError> {
        match self.value(key) {
            None | Some("0") => Ok(false),
            Some("" | "1") => Ok(true),
            Some(_) => Err(self.wrong(key, "0 or 1")),
        }
    }

    pub fn kb_base(&self) -> Result<u64, WorkloadError> {
        match self.value("kb_base") {
            None | Some("1024") => Ok(1024),
            Some("1000") => Ok(1000),
            Some(_) => Err(self.wrong("kb_base", "1024 or 1000")),
        }
    }

    /// A whole number, with fio's suffixes.
    pub fn number(
        &self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match numbers::size(value, self.kb_base()?) {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ if *range.end() == u64::MAX => {
                Err(self.wrong(key, &format!("a whole number from {}", range.start())))
            }
            _ => Err(self.wrong(key, &format!("a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// Up to three values divided by commas: of reads, writes and trims. One that is missing is that before it; an empty one
    /// is not set.
    pub fn each<T: Clone>(
        &self,
        key: &'static str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Each<T>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok([None, None, None]) };
        let mut each = Vec::new();
        for part in value.split(',').map(str::trim) {
            let parsed = (!part.is_empty()).then(|| parse(part).ok_or_else(|| self.wrong(key, allowed)));
            each.push(parsed.transpose()?);
        }
        let of = |index: usize| each.get(index).or(each.last()).cloned().flatten();
        match value.is_empty() || each.len() > 3 {
            true => Err(self.wrong(key, allowed)),
            false => Ok([of(0), of(1), of(2)]),
        }
    }

    /// A size in bytes, with fio's suffixes.
    pub fn bytes(&self, key: &'static str) -> Result<Option<u64>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let bytes = numbers::size(value, self.kb_base()?);
        bytes.map(Some).ok_or_else(|| self.wrong(key, "one size in fio's notation, e.g. 4k, 1m or 2g"))
    }

    /// A number of zones: `9z`.
    pub fn zones(&self, key: &'static str) -> Option<u64> {
        self.value(key)?.strip_suffix(['z', 'Z'])?.parse().ok()
    }

    /// Bytes or a percentage; the larger of a range. `None` for a number of zones, too.
    pub fn amount(&self, key: &'static str) -> Result<Option<Amount>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        // See `zones`.
        if self.zones(key).is_some() {
            return Ok(None);
        }
        if let Some(percent) = value.strip_suffix('%') {
            let percent =
                percent.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
            return match percent {
                Some(percent) => Ok(Some(Amount::Share(percent / 100.0))),
                None => Err(self.wrong(key, "0% to 100%")),
            };
        }
        let value = if key == "filesize" { value.rsplit(['-', ':']).next().unwrap_or(value) } else { value };
        let bytes = numbers::size(value, self.kb_base()?);
        let allowed = "a size in fio's notation, e.g. 4k, 1m or 2g, or a share, e.g. 50%";
        bytes.map(|bytes| Some(Amount::Bytes(bytes))).ok_or_else(|| self.wrong(key, allowed))
    }

    /// A time; of a range, the shorter.
    pub fn time(&self, key: &'static str) -> Result<Option<Span>, WorkloadError> {
        self.time_in(key, SECOND_PS, "seconds, or a number with us, ms, s, m, h or d")
    }

    /// A time; without a unit, a multiple of `unit_ps`.
    pub fn time_in(
        &self,
        key: &'static str,
        unit_ps: u64,
        allowed: &str,
    ) -> Result<Option<Span>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let value = value.split('-').next().unwrap_or(value);
        numbers::time(value, unit_ps).map(Some).ok_or_else(|| self.wrong(key, allowed))
    }

    /// The pattern of `rw` and its mix of reads, writes and trims.
    pub fn pattern(&self) -> Result<(Pattern, Mix), WorkloadError> {
        const ALLOWED: &str = "read, write, trim, rw, trimwrite, or these with a prefix rand; after a colon, how many \
                           requests share a random address (randread:8) or the skip after a sequential one (write:4k, read:-8k)";
        let wrong = || self.wrong("rw", ALLOWED);
        let value = self.value("rw").unwrap_or("read");
        let (name, more) = value.split_once(':').map_or((value, None), |(name, more)| (name, Some(more)));
        let (is_random, mut mix) = pattern(name).ok_or_else(wrong)?;
        let mut pattern = Pattern { is_random, ..Pattern::default() };
        match more {
            None => {}
            Some(every) if is_random => {
                pattern.jump_every = Some(every.parse().ok().filter(|&every| every > 0).ok_or_else(wrong)?);
            }
            Some(skip) => {
                let (sign, size) = skip.strip_prefix('-').map_or((1, skip), |size| (-1, size));
                let bytes = numbers::size(size, self.kb_base()?).and_then(|bytes| i64::try_from(bytes).ok());
                pattern.skip_bytes = sign * bytes.ok_or_else(wrong)?;
            }
        }
        let (reads, writes) = (self.number("rwmixread", 0..=100)?, self.number("rwmixwrite", 0..=100)?);
        if let (Some(reads), Some(writes)) = (reads, writes)
            && reads + writes != 100
        {
            return Err(self.wrong("rwmixwrite", "rwmixread and rwmixwrite must add up to 100"));
        }
        let is_mixed = matches!(name, "rw" | "readwrite" | "randrw");
        if let Some(reads) = reads.or(writes.map(|writes| 100 - writes))
            && is_mixed
        {
            mix = Mix::Share { read: reads as f64 / 100.0, trim: 0.0 };
        }
        Ok((pattern, mix))
    }
}
