//! `head key=value flag key=value`: the common form of workload texts.
//!
//! A word without `=` that is no flag belongs to the value before it, so that `bs=4 KiB` needs no quotes.

use crate::WorkloadError;
use nvlab_units::quantity::{self, QuantityError};
use nvlab_units::suggest;

/// The text of a workload, split into its kind, `key=value` pairs and flags.
#[derive(Clone, Debug)]
pub(crate) struct Words<'a> {
    text: &'a str,
    pub head: String,
    pairs: Vec<(String, Option<String>)>,
}

impl<'a> Words<'a> {
    /// The head and whether it was quoted: `"my trace.csv":msr compact`.
    pub fn head_of(text: &str) -> String {
        split_head(text).0
    }

    /// Parses `text`. `keys` are followed by `=`, `flags` are not; anything else is unknown.
    pub fn new(text: &'a str, keys: &[&str], flags: &[&str]) -> Result<Words<'a>, WorkloadError> {
        let (head, rest) = split_head(text);
        let mut words = Words { text, head, pairs: Vec::new() };
        for token in rest.split_whitespace() {
            let (name, value) = match token.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None if flags.contains(&token) => (token, None),
                None => match words.pairs.last_mut() {
                    Some((_, Some(value))) => {
                        value.push(' ');
                        value.push_str(token);
                        continue;
                    }
                    _ => (token, None),
                },
            };
            let (is_key, is_flag) = (keys.contains(&name), flags.contains(&name));
            if is_key && value.is_none() {
                return Err(words.error(format!("'{name}' needs a value: {name}=...")));
            }
            if is_flag && value.is_some() {
                return Err(words.error(format!("'{name}' has no value: write {name} alone")));
            }
            if !is_key && !is_flag {
                let known: Vec<&str> = keys.iter().chain(flags).copied().collect();
                let hint = suggest::hint(name, known.iter().copied());
                return Err(words.error(format!("unknown key '{name}'{hint} (known: {})", known.join(", "))));
            }
            if words.pairs.iter().any(|(seen, _)| seen == name) {
                return Err(words.error(format!("'{name}' is given twice")));
            }
            words.pairs.push((name.to_owned(), value));
        }
        Ok(words)
    }

    pub fn error(&self, reason: impl Into<String>) -> WorkloadError {
        WorkloadError::Text { text: self.text.to_owned(), reason: reason.into() }
    }

    /// An error about one value: what is allowed.
    pub fn wrong(&self, key: &str, allowed: &str) -> WorkloadError {
        let value = self.value(key).unwrap_or("");
        self.error(format!("{key}={value} is wrong: {allowed}"))
    }

    pub fn value(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).and_then(|(_, value)| value.as_deref())
    }

    /// True if the flag is given.
    pub fn flag(&self, name: &str) -> bool {
        self.pairs.iter().any(|(seen, _)| seen == name)
    }

    /// The quantity after `key=`.
    pub fn quantity<T>(
        &self,
        key: &str,
        parse: fn(&str) -> Result<T, QuantityError>,
    ) -> Result<Option<T>, WorkloadError> {
        self.value(key)
            .map(|value| parse(value).map_err(|error| self.error(format!("{key}: {error}"))))
            .transpose()
    }

    /// The whole number after `key=`, within `range`.
    pub fn number(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(key, &format!("a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// The decimal number after `key=`, if `is_allowed`; `allowed` describes the allowed values.
    pub fn decimal(
        &self,
        key: &str,
        allowed: &str,
        is_allowed: fn(f64) -> bool,
    ) -> Result<Option<f64>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.parse::<f64>() {
            Ok(number) if is_allowed(number) => Ok(Some(number)),
            _ => Err(self.wrong(key, allowed)),
        }
    }

    /// `yes` or `no` after `key=`.
    pub fn yes_no(&self, key: &str) -> Result<Option<bool>, WorkloadError> {
        self.choice(key, &[("yes", true), ("no", false)])
    }

    /// `on` or `off` after `key=`.
    pub fn on_off(&self, key: &str) -> Result<Option<bool>, WorkloadError> {
        self.choice(key, &[("on", true), ("off", false)])
    }

    /// What the name after `key=` stands for, which is one of these.
    pub fn choice<T: Copy>(&self, key: &str, names: &[(&str, T)]) -> Result<Option<T>, WorkloadError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        if let Some(&(_, meaning)) = names.iter().find(|(name, _)| *name == value) {
            return Ok(Some(meaning));
        }
        let allowed: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        Err(self.wrong(key, &allowed.join(if allowed.len() == 2 { " or " } else { ", " })))
    }

    /// The share after `key=`; `0` needs no unit.
    pub fn share(&self, key: &str) -> Result<Option<f64>, WorkloadError> {
        self.quantity(key, |text| if text == "0" { Ok(0.0) } else { quantity::fraction(text) })
    }
}

/// A size as workloads say it: with a unit (`4 KiB`), by fio's letters, of 1024 (`4k`, `2G`), or a bare number of bytes.
pub fn size(text: &str) -> Result<u64, QuantityError> {
    let text = text.trim();
    let letter = |byte: &u8| b"kmgt".iter().position(|known| known.eq_ignore_ascii_case(byte));
    let (number, power) = match text.as_bytes() {
        [number @ .., last] if letter(last).is_some() => (number, 1 + letter(last).unwrap_or(0) as u32),
        number => (number, 0),
    };
    let is_whole = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let number =
        std::str::from_utf8(number).ok().filter(|_| is_whole).and_then(|text| text.parse::<u64>().ok());
    match number.and_then(|number| number.checked_mul(1024u64.pow(power))) {
        Some(bytes) => Ok(bytes),
        None => quantity::bytes(text),
    }
}

/// The first word, or a double-quoted text with the characters directly attached to it; and the rest.
fn split_head(text: &str) -> (String, &str) {
    let text = text.trim_start();
    if let Some((quoted, rest)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        return (format!("{quoted}{}", &rest[..end]), &rest[end..]);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_fios() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("2G", 2 << 30),
            ("1t", 1 << 40),
            ("4 KiB", 4096),
            ("4 kB", 4000),
            ("0", 0),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "k", "4q", "-1", "4.5k", "99999999999999t", "4 k"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
