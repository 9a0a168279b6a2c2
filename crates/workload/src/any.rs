//! Any workload behind one type: the kind is chosen once per batch of 32, not per request.

use crate::generator::{Generator, SelfSimilar, Sequential, Shuffled, Uniform, ZipfAddresses, Zones};
use crate::iozone::Iozone;
use crate::replay::Replay;
use crate::tpcc::Tpcc;
use crate::{Batch, Pacing, Program, Request, Span, Workload};
use std::ops::Range;

/// A workload whose kind is known only at run time.
#[derive(Clone, Debug)]
pub enum AnyWorkload {
    /// Uniform addresses.
    Uniform(Generator<Uniform>),
    /// Every slot once per pass.
    Shuffled(Generator<Shuffled>),
    /// One after another.
    Sequential(Generator<Sequential>),
    /// Zipf.
    Zipf(Generator<ZipfAddresses>),
    /// Hot and cold zones.
    Zones(Generator<Zones>),
    /// Self-similar.
    SelfSimilar(Generator<SelfSimilar>),
    /// TPC-C.
    Tpcc(Box<Tpcc>),
    /// IOzone.
    Iozone(Iozone),
    /// A trace.
    Replay(Replay),
}

macro_rules! each {
    ($any:expr, $workload:ident => $result:expr) => {
        match $any {
            AnyWorkload::Uniform($workload) => $result,
            AnyWorkload::Shuffled($workload) => $result,
            AnyWorkload::Sequential($workload) => $result,
            AnyWorkload::Zipf($workload) => $result,
            AnyWorkload::Zones($workload) => $result,
            AnyWorkload::SelfSimilar($workload) => $result,
            AnyWorkload::Tpcc($workload) => $result,
            AnyWorkload::Iozone($workload) => $result,
            AnyWorkload::Replay($workload) => $result,
        }
    };
}

impl Workload for AnyWorkload {
    #[inline]
    fn fill(&mut self, batch: &mut Batch) -> usize {
        each!(self, workload => workload.fill(batch))
    }
    fn prepare(&mut self, batch: &mut Batch) -> usize {
        each!(self, workload => workload.prepare(batch))
    }
    fn carries_payload(&self) -> bool {
        each!(self, workload => workload.carries_payload())
    }
    fn client_bytes(&self) -> Option<u64> {
        each!(self, workload => workload.client_bytes())
    }
    fn payload(&self, request: &Request) -> &[u8] {
        each!(self, workload => workload.payload(request))
    }
    fn pacing(&self) -> Pacing {
        each!(self, workload => workload.pacing())
    }
    fn program(&self) -> Option<std::sync::Arc<Program>> {
        each!(self, workload => workload.program())
    }
    fn len_hint(&self) -> Option<u64> {
        each!(self, workload => workload.len_hint())
    }
    fn has_end(&self) -> bool {
        each!(self, workload => workload.has_end())
    }
    fn footprint(&self) -> Range<u64> {
        each!(self, workload => workload.footprint())
    }
    fn time_limit(&self) -> Option<Span> {
        each!(self, workload => workload.time_limit())
    }
}
