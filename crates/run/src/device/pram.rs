//! PRAM beside NAND: it holds hFTL's map and the metadata of FSMS. With wear levelling in front of the cells, or
//! without.

use super::backing::{Backing, BuildError};
use crate::result::{PramResult, SECONDS_PER_YEAR};
use nvlab_design::Design;
use nvlab_medium::pcm::{Pcm, PcmConfig, PcmStats};
use nvlab_medium::{InPlace, MediumError, PowerCut, StartGap, StartGapConfig, Store};
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
    pub(super) fn build<B: Backing<Store = S> + ?Sized>(
        design: &Design,
        name: &str,
        seed: u64,
        backing: &B,
    ) -> Result<(Pram<S>, Time), BuildError> {
        Pram::of("pram", design.pcm_config(name, seed), backing)
    }

    /// The same from its configuration and that of the wear levelling; `store` is the name of its store.
    pub(super) fn of<B: Backing<Store = S> + ?Sized>(
        store: &str,
        (config, levelling): (PcmConfig, Option<StartGapConfig>),
        backing: &B,
    ) -> Result<(Pram<S>, Time), BuildError> {
        config.check().map_err(BuildError::Design)?;
        let store = backing.store_in_place(store, Pcm::<S>::store_bytes(&config))?;
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

    /// Lines moved by wear levelling since new.
    pub(super) fn moved(&self) -> u64 {
        self.levelled().map_or(0, StartGap::moved)
    }

    /// What it did in a run of this length.
    pub fn result(&self, map_bytes: u64, span: Span) -> PramResult {
        results([self].into_iter(), map_bytes, span)
    }
}

/// What memories that are alike, and worn alike, did in a run of this length.
pub(super) fn results<'a, S: Store + 'a>(
    prams: impl Iterator<Item = &'a Pram<S>> + Clone,
    map_bytes: u64,
    span: Span,
) -> PramResult {
    let wear = || prams.clone().flat_map(|pram| pram.pcm().wear());
    let lines = prams.clone().map(|pram| pram.pcm().wear().len()).sum::<usize>().max(1) as f64;
    let mean = wear().map(|&writes| writes as f64).sum::<f64>() / lines;
    let most = wear().copied().max().unwrap_or(0);
    let sum = |count: fn(&PcmStats) -> u64| prams.clone().map(|pram| count(pram.pcm().stats())).sum::<u64>();
    // A move writes the line, and the count of moves.
    let levelling = 2.0 * prams.clone().map(Pram::moved).sum::<u64>() as f64 / lines;
    let rated =
        prams.clone().next().and_then(|pram| pram.pcm().config().wear).map_or(0, |wear| wear.endurance);
    // At the rate of this run, spread over the lines as all writes so far are.
    let in_run = sum(|stats| stats.lines_worn) as f64 / lines;
    let per_line_and_s = in_run / span.seconds().max(1e-12);
    let worst = per_line_and_s * most as f64 / mean.max(1e-12);
    PramResult {
        size_bytes: prams.clone().map(|pram| pram.pcm().config().capacity_bytes).sum(),
        map_bytes,
        route_bytes: 0,
        writes: sum(|stats| stats.write.count),
        words_programmed: sum(|stats| stats.steps),
        words_spared: sum(|stats| stats.steps_spared),
        line_writes_mean: mean,
        line_writes_max: most,
        life_share: (most > 0).then(|| (mean - levelling) / most as f64),
        level_bytes: prams.clone().map(|pram| pram.levelled().map_or(0, StartGap::register_bytes)).sum(),
        rated_writes: rated,
        years: (worst > 0.0).then(|| rated as f64 / worst / SECONDS_PER_YEAR),
        line_writes_run: in_run,
        line_share: line_share(prams),
        route: None,
    }
}

/// The bytes that the mean write of a line programmed, as a share of the line.
fn line_share<'a, S: Store + 'a>(prams: impl Iterator<Item = &'a Pram<S>>) -> f64 {
    let (programmed, lines) = prams.fold((0.0, 0.0), |(programmed, lines), pram| {
        let (config, stats) = (pram.pcm().config(), pram.pcm().stats());
        let step_bytes = (config.word_bytes * config.words_per_step) as f64;
        let line_bytes = config.wear.map_or(0, |wear| wear.line_bytes) as f64;
        (programmed + stats.steps as f64 * step_bytes, lines + stats.lines_worn as f64 * line_bytes)
    });
    if lines > 0.0 { programmed / lines } else { 0.0 }
}

impl<S: Store> InPlace for Pram<S> {
    const KEEPS: bool = S::KEEPS;

    fn capacity(&self) -> u64 {
        each!(self, memory => memory.capacity())
    }
    fn atomic_bytes(&self) -> u32 {
        each!(self, memory => memory.atomic_bytes())
    }
    #[inline]
    fn read(&mut self, at: Time, offset: u64, bytes: u64, into: &mut [u8]) -> Result<Served, MediumError> {
        each!(self, memory => memory.read(at, offset, bytes, into))
    }
    fn hold(&mut self, offset: u64, bytes: u64, until: Time) {
        each!(self, memory => memory.hold(offset, bytes, until));
    }
    #[inline(always)]
    fn prefetch(&self, offset: u64) {
        each!(self, memory => memory.prefetch(offset));
    }
    // Always: see [`StartGap`].
    #[inline(always)]
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
