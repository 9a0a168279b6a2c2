//! Sizes of requests: one, or drawn by weight.

use nvlab_units::Rng;

/// How large requests are.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// One size for all, in bytes.
    Fixed(u32),
    /// Drawn from (bytes, weight) pairs.
    Split(Vec<(u32, f64)>),
}

impl Sizes {
    /// The smallest: the unit of addresses.
    pub(crate) fn smallest(&self) -> u32 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Split(parts) => parts.iter().map(|&(bytes, _)| bytes).min().expect("a split has parts"),
        }
    }
    pub(crate) fn largest(&self) -> u32 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Split(parts) => parts.iter().map(|&(bytes, _)| bytes).max().expect("a split has parts"),
        }
    }
    /// Mean size in bytes, by weight.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => *bytes as f64,
            Sizes::Split(parts) => {
                let weights: f64 = parts.iter().map(|&(_, weight)| weight).sum();
                parts.iter().map(|&(bytes, weight)| bytes as f64 * weight).sum::<f64>() / weights
            }
        }
    }
    pub(super) fn only(&self) -> Option<u32> {
        (self.smallest() == self.largest()).then(|| self.smallest())
    }
}

/// Draws sizes by their cumulated weights.
#[derive(Clone, Debug)]
pub struct SizeSource {
    rng: Rng,
    /// Bytes, and the limit below which 64 random bits select them.
    parts: Vec<(u32, u64)>,
}

impl SizeSource {
    pub(super) fn new(sizes: &Sizes, seed: u64) -> SizeSource {
        let parts = match sizes {
            Sizes::Fixed(bytes) => vec![(*bytes, u64::MAX)],
            Sizes::Split(parts) => {
                let whole: f64 = parts.iter().map(|&(_, weight)| weight).sum();
                let mut sum = 0.0;
                let limits = parts.iter().map(|&(bytes, weight)| {
                    sum += weight / whole;
                    (bytes, (sum * (1u128 << 64) as f64) as u64)
                });
                limits.collect()
            }
        };
        SizeSource { rng: Rng::stream(seed, "sizes"), parts }
    }

    /// The same sizes, drawn in another order.
    pub(super) fn apart(&self) -> SizeSource {
        SizeSource { rng: self.rng.apart(), parts: self.parts.clone() }
    }

    /// The size, if there is only one.
    pub(super) fn only(&self) -> Option<u32> {
        let (first, rest) = self.parts.split_first()?;
        rest.iter().all(|part| part.0 == first.0).then_some(first.0)
    }

    pub(crate) fn largest(&self) -> u32 {
        self.parts.iter().map(|&(bytes, _)| bytes).max().expect("there is a size")
    }

    /// The next size in bytes.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        if let [(bytes, _)] = self.parts[..] {
            return bytes;
        }
        let bits = self.rng.bits();
        let part = self.parts.iter().find(|&&(_, below)| bits < below);
        part.or(self.parts.last()).expect("there is a size").0
    }
}
