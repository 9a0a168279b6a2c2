//! Texts.

use super::survey::View;
use crate::error::{Error, Result};
use crate::pointer::{offset, tag};
use std::num::NonZeroU64;

/// The first `bytes_max` bytes of the text whose value lies at `home`, up to a whole character, and all bytes it has.
pub(crate) fn read(view: View<'_>, home: u64, bytes_max: u64) -> Result<(String, u64)> {
    let words = view.memory.load_words(home, 4)?;
    let (len, bytes) = (words[1], words[3]);
    if len != bytes.div_ceil(8) {
        return Err(Error::damaged(home, "a text whose length is not that of its words"));
    }
    let Some(word) = NonZeroU64::new(words[0]) else {
        return match bytes {
            0 => Ok((String::new(), 0)),
            _ => Err(Error::damaged(home, "a text without a block")),
        };
    };
    let entry = view.schema.get(tag(word)).filter(|entry| entry.is_array && entry.bytes == 8);
    let shape = entry.map(|entry| view.array(offset(word), entry)).transpose()?.flatten();
    let Some(shape) = shape.filter(|shape| len <= shape.capacity) else {
        return Err(Error::damaged(home, "a text longer than its block"));
    };
    let (shown, at) = (bytes.min(bytes_max), shape.element(offset(word), 0).1);
    [(offset(word), 40), (at, shown)]
        .into_iter()
        .try_for_each(|(at, bytes)| view.memory.examine(at, bytes))?;
    let words = view.memory.load_words(at, shown.div_ceil(8) as usize)?;
    let mut text: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    text.truncate(shown as usize);
    match String::from_utf8(text) {
        Ok(text) => Ok((text, bytes)),
        Err(error) if shown < bytes && error.utf8_error().error_len().is_none() => {
            let valid = error.utf8_error().valid_up_to();
            let mut text = error.into_bytes();
            text.truncate(valid);
            Ok((String::from_utf8_lossy(&text).into_owned(), bytes))
        }
        Err(_) => Err(Error::damaged(home, "a text that is not UTF-8")),
    }
}
