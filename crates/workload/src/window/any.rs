//! Any program on a memory behind one type: the kind is chosen once per transaction.

use super::random_words::{self, RandomWords, WordsConfig};
use super::{Access, WindowWorkload};
use crate::generator::Limits;
use crate::tpca::{self, Tpca, TpcaConfig};
use crate::{Pacing, Span, Time, WorkloadError};

/// The kinds of programs, as they are written.
pub const KINDS: [&str; 2] = [tpca::KIND, random_words::KIND];

/// A program before it knows its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowSpec {
    /// TPC-A.
    Tpca(TpcaConfig),
    /// Single words.
    Words(WordsConfig),
}

/// A program of a kind that is only known at run time.
#[derive(Clone, Debug)]
pub enum AnyWindow {
    /// TPC-A.
    Tpca(Box<Tpca>),
    /// Single words.
    Words(Box<RandomWords>),
}

impl WindowSpec {
    /// Reads a text whose first word is one of [`KINDS`]; `None` if it is another.
    pub(crate) fn parse(kind: &str, text: &str) -> Option<Result<WindowSpec, WorkloadError>> {
        match kind {
            tpca::KIND => Some(TpcaConfig::parse(text).map(WindowSpec::Tpca)),
            random_words::KIND => Some(WordsConfig::parse(text).map(WindowSpec::Words)),
            _ => None,
        }
    }

    /// The same without an end.
    pub fn endless(self) -> WindowSpec {
        let limits = Limits::default();
        match self {
            WindowSpec::Tpca(config) => WindowSpec::Tpca(TpcaConfig { limits, ..config }),
            WindowSpec::Words(config) => WindowSpec::Words(WordsConfig { limits, ..config }),
        }
    }

    /// The program on a memory of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<AnyWindow, WorkloadError> {
        Ok(match self {
            WindowSpec::Tpca(config) => AnyWindow::Tpca(Box::new(config.open(what, capacity, seed)?)),
            WindowSpec::Words(config) => AnyWindow::Words(Box::new(config.open(what, capacity, seed)?)),
        })
    }
}

macro_rules! each {
    ($any:expr, $workload:ident => $result:expr) => {
        match $any {
            AnyWindow::Tpca($workload) => $result,
            AnyWindow::Words($workload) => $result,
        }
    };
}

impl WindowWorkload for AnyWindow {
    #[inline]
    fn next(&mut self, accesses: &mut Vec<Access>) -> Option<Time> {
        each!(self, workload => workload.next(accesses))
    }
    fn pacing(&self) -> Pacing {
        each!(self, workload => workload.pacing())
    }
    fn footprint_bytes(&self) -> u64 {
        each!(self, workload => workload.footprint_bytes())
    }
    fn len_hint(&self) -> Option<u64> {
        each!(self, workload => workload.len_hint())
    }
    fn time_limit(&self) -> Option<Span> {
        each!(self, workload => workload.time_limit())
    }
    fn describe(&self) -> String {
        each!(self, workload => workload.describe())
    }
}
