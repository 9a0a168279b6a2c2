//! How a device is prepared before it is measured, in the syntax of the command line: `steady,fill=30%,idle=10s`.

use nvlab_units::Span;
use nvlab_units::quantity::{display_fraction, exact_span, fraction, span};
use std::fmt;
use std::str::FromStr;

/// How a device is brought to a known state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Factory-new.
    Fresh,
    /// Every logical unit written once.
    Full,
    /// Full, then written by the workload until all log blocks of a block map are in use.
    LogFull,
    /// Full, then written until write amplification has converged.
    #[default]
    Steady,
}

impl State {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            State::Fresh => "fresh",
            State::Full => "full",
            State::LogFull => "log-full",
            State::Steady => "steady",
        }
    }
    /// The state with this name.
    pub fn parse(name: &str) -> Option<State> {
        [State::Fresh, State::Full, State::LogFull, State::Steady]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// How a device is prepared. `--seed` has no part in it: runs that differ only in their seed begin with the same device. Those that
/// repeat one another do not ([`Preparation::repeated`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preparation {
    /// The state it is brought to.
    pub state: State,
    /// The share of its capacity that is written, from the beginning, above 0 and at most 1; the rest stays unmapped.
    pub fill: f64,
    /// Its units are filled in random order, not in that of their addresses.
    pub is_scattered: bool,
    /// The share of its capacity, from the beginning, that the writes to its steady state go to; `None`: what was filled.
    pub span: Option<f64>,
    /// Time that passes between the preparation and the first measured request.
    pub idle: Span,
    /// False: the writes to its steady state are all at full size, never to a coarse twin.
    pub twin: bool,
    /// Seed of the device's random choices and of the writes that prepare it. A fresh device takes that of the run.
    pub seed: u64,
}

/// The seed of a preparation for which none is given.
pub const SEED: u64 = 1;
/// Full, in random order.
pub(crate) const SCATTERED: &str = "scattered";
/// How another state says that it was filled in random order.
pub(crate) const RANDOM_ORDER: &str = "order=random";
/// Shares of a capacity are rounded down to this many bytes.
const GRAIN_BYTES: u64 = 1 << 20;

impl From<State> for Preparation {
    fn from(state: State) -> Preparation {
        Preparation {
            state,
            fill: 1.0,
            is_scattered: false,
            span: None,
            idle: Span::ZERO,
            twin: true,
            seed: SEED,
        }
    }
}

impl Default for Preparation {
    fn default() -> Preparation {
        State::default().into()
    }
}

/// A share of a capacity in bytes, at least one unit of 1 MiB unless the capacity is smaller.
fn share_of(capacity_bytes: u64, share: f64) -> u64 {
    if share >= 1.0 {
        return capacity_bytes;
    }
    let bytes = (capacity_bytes as f64 * share) as u64 / GRAIN_BYTES * GRAIN_BYTES;
    bytes.max(GRAIN_BYTES).min(capacity_bytes)
}

impl Preparation {
    /// Bytes that are written once, from the beginning.
    pub(crate) fn fill_bytes(&self, capacity_bytes: u64) -> u64 {
        share_of(capacity_bytes, self.fill)
    }

    /// Whether the workload's own writes bring the device to it.
    pub(crate) fn is_of_workload(&self) -> bool {
        matches!(self.state, State::LogFull | State::Steady)
    }

    /// True if a workload reaches beyond what is filled, by more than the two are rounded.
    pub(crate) fn is_left(&self, end: u64, capacity_bytes: u64) -> bool {
        let filled = self.fill_bytes(capacity_bytes);
        filled < capacity_bytes && end >= filled.saturating_add(GRAIN_BYTES)
    }

    /// Bytes, from the beginning, that the writes to the steady state go to.
    pub(crate) fn span_bytes(&self, capacity_bytes: u64) -> u64 {
        share_of(capacity_bytes, self.span.unwrap_or(self.fill))
    }

    /// The same, of which the first `bytes` are written, and at most a ten-thousandth of the capacity more.
    pub(crate) fn filling(self, bytes: u64, capacity_bytes: u64) -> Preparation {
        let needed = (bytes.next_multiple_of(GRAIN_BYTES) as f64 / capacity_bytes as f64).min(1.0);
        Preparation { fill: ((needed * 1e4 - 1e-9).ceil() / 1e4).min(1.0), ..self }
    }

    /// The seed of the device and its preparation in a run with this seed.
    pub fn device_seed(&self, run_seed: u64) -> u64 {
        if self.state == State::Fresh { run_seed } else { self.seed }
    }

    /// That of the repetition with this number, 0 for the first: each brings another device to the same kind of state, so that the
    /// spread of the repetitions contains how a device came to its state.
    pub fn repeated(self, number: u64) -> Preparation {
        match self.state {
            // It is drawn by the seed of its run.
            State::Fresh => self,
            _ => Preparation { seed: self.seed.wrapping_add(number), ..self },
        }
    }

    /// As it is written, without the idle time: what the state of the device depends on.
    pub(crate) fn without_idle(self) -> String {
        Preparation { idle: Span::ZERO, ..self }.to_string()
    }
}

impl fmt::Display for Preparation {
    /// As [`Preparation::from_str`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |share: f64| display_fraction(share).replace(' ', "");
        match (self.state, self.is_scattered) {
            (State::Full, true) => f.write_str(SCATTERED)?,
            (state, true) => write!(f, "{},{RANDOM_ORDER}", state.name())?,
            (state, false) => f.write_str(state.name())?,
        }
        if self.fill < 1.0 {
            write!(f, ",fill={}", share(self.fill))?;
        }
        if let Some(span) = self.span {
            write!(f, ",span={}", share(span))?;
        }
        if self.idle > Span::ZERO {
            write!(f, ",idle={}", exact_span(self.idle).replace(' ', ""))?;
        }
        if !self.twin {
            f.write_str(",twin=no")?;
        }
        if self.seed != SEED {
            write!(f, ",seed={}", self.seed)?;
        }
        Ok(())
    }
}

impl FromStr for Preparation {
    type Err = String;

    fn from_str(text: &str) -> Result<Preparation, String> {
        let mut found = Preparation::default();
        for (number, word) in text.split(',').map(str::trim).enumerate() {
            match word.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                None if number == 0 && word == SCATTERED => {
                    (found.state, found.is_scattered) = (State::Full, true);
                }
                None if number == 0 => {
                    found.state = State::parse(word).ok_or_else(|| {
                        format!(
            "`{word}` is not a state: write fresh, full, scattered, log-full or steady, then fill=, order=, span=, \
             idle=, twin= or seed= after commas"
                        )
                    })?;
                }
                Some(("fill", value)) => found.fill = share("fill", value)?,
                Some(("order", "random")) => found.is_scattered = true,
                Some(("order", "address")) => found.is_scattered = false,
                Some(("span", value)) => found.span = Some(share("span", value)?),
                Some(("idle", value)) => {
                    found.idle = span(value).map_err(|error| format!("idle: {error}"))?;
                }
                Some(("twin", "no")) => found.twin = false,
                Some(("twin", "yes")) => found.twin = true,
                Some(("seed", value)) => {
                    found.seed =
                        value.parse().map_err(|_| format!("seed: `{value}` is not a whole number"))?;
                }
                _ => {
                    return Err(format!(
                        "`{word}` is none of fill=30%, order=random, span=30%, idle=10s, twin=no and seed=N"
                    ));
                }
            }
        }
        found.checked()
    }
}

fn share(key: &str, value: &str) -> Result<f64, String> {
    match fraction(value) {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        Ok(_) => Err(format!("{key}={value}: write a share above 0 % and at most 100 %")),
        Err(error) => Err(format!("{key}: {error}")),
    }
}

impl Preparation {
    fn checked(self) -> Result<Preparation, String> {
        let is_written = self.fill < 1.0 || self.is_scattered || self.span.is_some() || self.seed != SEED;
        if self.state == State::Fresh && is_written {
            return Err(
                "a fresh device has no writes: fill, order, span and seed need full, scattered, log-full or steady"
                    .into(),
            );
        }
        if self.span.is_some() && self.state != State::Steady {
            return Err("span restricts the writes towards the steady state: it needs steady".into());
        }
        if !self.twin && self.state != State::Steady {
            return Err("twin=no concerns the writes towards the steady state: it needs steady".into());
        }
        if self.span.is_some_and(|span| span > self.fill) {
            return Err("span must not be larger than fill".into());
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "fresh",
            "full",
            "scattered",
            "log-full",
            "steady",
            "steady,fill=30%,span=12.5%,idle=10s,seed=7",
            "steady,order=random,fill=30%",
            "log-full,order=random",
            "steady,twin=no",
        ] {
            let read: Preparation = text.parse().unwrap();
            assert_eq!(read.to_string().parse::<Preparation>(), Ok(read), "{text}");
        }
        let aged: Preparation = "fill=30%, idle=1min".parse().unwrap();
        assert_eq!((aged.state, aged.fill, aged.span), (State::Steady, 0.3, None));
        assert_eq!(aged.without_idle(), "steady,fill=30%");
        assert_eq!(aged.fill_bytes(10 << 20), 3 << 20);
        assert_eq!(aged.fill_bytes(4096), 4096);
        let full: Preparation = "full,order=random".parse().unwrap();
        assert_eq!((full, full.to_string()), ("scattered".parse().unwrap(), "scattered".to_string()));
        assert_eq!((aged.device_seed(9), Preparation::from(State::Fresh).device_seed(9)), (1, 9));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "",
            "stedy",
            "steady,full",
            "fresh,fill=30%",
            "fresh,order=random",
            "steady,order=sorted",
            "full,span=10%",
            "full,twin=no",
            "steady,twin=maybe",
            "steady,fill=10%,span=20%",
            "fill=0%",
            "fill=120%",
        ] {
            assert!(text.parse::<Preparation>().is_err(), "{text}");
        }
        assert!("fresh,idle=1s".parse::<Preparation>().is_ok());
    }
}
