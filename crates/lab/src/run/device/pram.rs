//! PRAM beside NAND: hFTL's map is in it, and what FSMS keeps. With wear levelling in front of the cells, or without.

use super::backing::{Backing, BuildError};
use crate::design::Design;
use crate::result::{PramResult, SECONDS_PER_YEAR};
use nvlab_medium::pcm::Pcm;
use nvlab_medium::{InPlace, MediumError, PowerCut, StartGap, Store};
use nvlab_units::{Served, Span, Time};

/// A PRAM as a design has it: with wear levelling in front, or without.
#[derive(Clone, Debug)]
pub enum Pram<S: Store> {
    /// Lines stay where they are.
    Plain(Box<Pcm<S>>),
    /// Lines move round.
    Levelled(Box<StartGap<Pcm<S>>>),
}

macro_rules! each {
    ($pram:expr, $memory:ident => $result:expr) => {
        match $pram {
            Pram::Plain($memory) => $result,
            Pram::Levelled($memory) => $result,
        }
    };
}

impl<S: Store> Pram<S> {
    /// The memory of that name, new from the factory or recovered; and when it is ready.
    pub(super) fn build<B: Backing<Store = S>>(
        design: &Design,
        name: &str,
        seed: u64,
        backing: &B,
    ) -> Result<(Pram<S>, Time), B::Error> {
        let (config, levelling) = design.pcm_config(name, seed);
        config.check().map_err(BuildError::Design)?;
        let store = backing.store("pram", Pcm::<S>::store_bytes(&config))?;
        let pcm = if backing.is_used() { Pcm::reopen(config, store) } else { Pcm::new(config, store) };
        let Some(levelling) = levelling else { return Ok((Pram::Plain(Box::new(pcm)), Time::ZERO)) };
        let (levelled, ready) = match backing.is_used() {
            true => StartGap::recover(levelling, pcm, Time::ZERO).map_err(BuildError::Recovery)?,
            false => (StartGap::new(levelling, pcm).map_err(BuildError::Design)?, Time::ZERO),
        };
        Ok((Pram::Levelled(Box::new(levelled)), ready))
    }

    /// The cells.
    pub fn pcm(&self) -> &Pcm<S> {
        match self {
            Pram::Plain(pcm) => pcm,
            Pram::Levelled(levelled) => levelled.medium(),
        }
    }
    /// The cells, to reset their counts.
    pub(super) fn pcm_mut(&mut self) -> &mut Pcm<S> {
        match self {
            Pram::Plain(pcm) => pcm,
            Pram::Levelled(levelled) => levelled.medium_mut(),
        }
    }

    fn levelled(&self) -> Option<&StartGap<Pcm<S>>> {
        match self {
            Pram::Plain(_) => None,
            Pram::Levelled(levelled) => Some(levelled),
        }
    }

    /// What it did in a run of this length.
    pub fn result(&self, map_bytes: u64, span: Span) -> PramResult {
        let (pcm, stats) = (self.pcm(), self.pcm().stats());
        let wear = pcm.wear();
        let mean = wear.iter().map(|&writes| writes as f64).sum::<f64>() / wear.len().max(1) as f64;
        let most = wear.iter().copied().max().unwrap_or(0);
        // A move writes the line, and the count of moves.
        let levelling = 2.0 * self.levelled().map_or(0, StartGap::moved) as f64 / wear.len().max(1) as f64;
        let rated = pcm.config().wear.map_or(0, |wear| wear.endurance);
        // At the rate of this run, spread over the lines as all writes so far are.
        let per_line_and_s = stats.lines_worn as f64 / wear.len().max(1) as f64 / span.seconds().max(1e-12);
        let worst = per_line_and_s * most as f64 / mean.max(1e-12);
        PramResult {
            size_bytes: pcm.config().capacity_bytes,
            map_bytes,
            route_bytes: 0,
            writes: stats.write.count,
            words_programmed: stats.steps,
            words_spared: stats.steps_spared,
            line_writes_mean: mean,
            line_writes_max: most,
            life_share: (most > 0).then(|| (mean - levelling) / most as f64),
            level_bytes: self.levelled().map_or(0, StartGap::register_bytes),
            rated_writes: rated,
            years: (worst > 0.0).then(|| rated as f64 / worst / SECONDS_PER_YEAR),
            route: None,
        }
    }
}

impl<S: Store> InPlace for Pram<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity(&self) -> u64 {
        each!(self, memory => memory.capacity())
    }
    fn atomic_bytes(&self) -> u32 {
        each!(self, memory => memory.atomic_bytes())
    }
    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError> {
        each!(self, memory => memory.read(at, offset, bytes, into))
    }
    #[inline]
    fn write(&mut self, at: Time, offset: u64, bytes: u64, data: &[u8]) -> Result<Served, MediumError> {
        each!(self, memory => memory.write(at, offset, bytes, data))
    }
    #[inline]
    fn update(&mut self, at: Time, offset: u64, old: &[u8], new: &[u8]) -> Result<Served, MediumError> {
        each!(self, memory => memory.update(at, offset, old, new))
    }
}

impl<S: Store> PowerCut for Pram<S> {
    fn settle(&mut self, upto: Time) {
        each!(self, memory => memory.settle(upto));
    }
    fn cut(&mut self, at: Time) {
        each!(self, memory => memory.cut(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_medium::banks::Access;
    use nvlab_medium::pcm::{LineWear, PcmConfig, Selection, Tear};

    /// A write of 512 B wears each of its 8 lines, so each lasts as many such writes as it is rated for.
    #[test]
    fn a_line_lives_as_long_as_it_takes_to_write_it_out() {
        let config = PcmConfig {
            capacity_bytes: 2048,
            word_bytes: 2,
            read: Access { first: Span::from_ns(80), next: Span::from_ns(10) },
            program: Span::from_us(10),
            words_per_step: 1,
            selection: Selection::Differing { share: 1.0 },
            wear: Some(LineWear { line_bytes: 64, endurance: 1_000_000, refuse: false }),
            atomic_bytes: 8,
            tear: Tear::Atomic,
            banks: 1,
            stripe_bytes: 64,
            seed: 1,
        };
        let mut pram = Pram::Plain(Box::new(Pcm::new(config, ())));
        for _ in 0..500 {
            pram.write(Time::ZERO, 0, 512, &[]).unwrap();
        }
        pram.pcm_mut().reset_stats();
        for _ in 0..1000 {
            pram.write(Time::ZERO, 0, 512, &[]).unwrap();
        }
        let result = pram.result(0, Span::from_ms(1_000));
        let seconds = result.years.unwrap() * SECONDS_PER_YEAR;
        assert!((seconds - 1000.0).abs() < 1e-6, "{seconds} s at 1000 writes a second");
    }
}
