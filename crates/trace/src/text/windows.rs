//! Text looked at in windows: as many bytes at once as a word has bits.

use wide::u8x16;

/// Bytes that are compared at once, a bit of a word for each.
pub(crate) const WINDOW: usize = 64;
/// Bytes before any place in a line that can be looked at, whatever they are: a number is loaded from its end.
pub(crate) const BEFORE: usize = 16;
/// Bytes that can be looked at around any place in a line, from [`BEFORE`] it on, whether or not the line has so many.
pub(crate) const VIEW: usize = BEFORE + 2 * WINDOW;

/// A bit for each byte that equals one of two.
#[inline(always)]
pub(crate) fn equal_to(bytes: &[u8; WINDOW], first: u8, second: u8) -> u64 {
    let (first, second) = (u8x16::splat(first), u8x16::splat(second));
    bytes.as_chunks().0.iter().rev().fold(0, |bits, sixteen| {
        let sixteen = u8x16::new(*sixteen);
        bits << 16 | u64::from((sixteen.simd_eq(first) | sixteen.simd_eq(second)).to_bitmask())
    })
}
