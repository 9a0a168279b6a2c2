//! A workload again and again: a recording or a job with an end, as it brings a device to the state that it finds if it was always
//! the same that was asked of the device.

use super::together::Tenant;
use super::{AnyBlockWorkload, BlockWorkload};
use crate::{Batch, Op, Pacing, Request, Span, Workload};
use std::ops::Range;

/// A workload, pass by pass. Each pass is all of it from the beginning, what it prepares ([`BlockWorkload::prepare`]) included. A pass
/// ends where the workload does; [`BlockWorkload::begin_again`] begins the next.
#[derive(Clone, Debug)]
pub struct Repeated {
    beginnings: Vec<AnyBlockWorkload>,
    number: usize,
    pass: Box<AnyBlockWorkload>,
    is_prepared: bool,
}

/// What one pass of a workload writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassWrites {
    /// Bytes of all writes, overwrites included.
    pub bytes: u64,
    /// Bytes of the units written at least once.
    pub distinct_bytes: u64,
    /// Bytes of the whole units that were trimmed last, not written.
    pub trimmed_bytes: u64,
}

impl Repeated {
    /// The passes of workloads with an end ([`Workload::has_end`]), each at its beginning, in turn: one, or the same with other
    /// seeds, whose random order differs from pass to pass. Panics without any.
    pub fn new(beginnings: Vec<AnyBlockWorkload>) -> Repeated {
        let pass = Box::new(beginnings[0].clone());
        Repeated { beginnings, number: 0, pass, is_prepared: false }
    }
}

/// One bit for each unit.
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Bits {
        Bits(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, index: u64, value: bool) {
        let (word, bit) = (&mut self.0[index as usize / 64], 1 << (index % 64));
        *word = if value { *word | bit } else { *word & !bit };
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| word.count_ones() as u64).sum()
    }
}

impl Workload for Repeated {
    fn pacing(&self) -> Pacing {
        self.beginnings[0].pacing()
    }

    fn threads(&self) -> u32 {
        self.beginnings[0].threads()
    }

    fn footprint(&self) -> Range<u64> {
        self.beginnings[0].footprint()
    }

    /// Requests left in this pass.
    fn len_hint(&self) -> Option<u64> {
        self.pass.len_hint()
    }

    fn time_limit(&self) -> Option<Span> {
        self.beginnings[0].time_limit()
    }

    fn has_end(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.beginnings[0].describe()
    }
}

impl BlockWorkload for Repeated {
    fn appends(&self) -> bool {
        self.pass.appends()
    }

    fn fill(&mut self, batch: &mut Batch) -> usize {
        if !self.is_prepared {
            let count = self.pass.prepare(batch);
            if count > 0 {
                return count;
            }
            self.is_prepared = true;
        }
        self.pass.fill(batch)
    }

    fn begin_again(&mut self) -> bool {
        *self.pass = self.beginnings[self.number % self.beginnings.len()].clone();
        self.number += 1;
        self.is_prepared = false;
        true
    }

    /// `None` if it is no recording: of a generator or a program it is known what comes next.
    fn pass_writes(&self, unit_bytes: u32) -> Option<PassWrites> {
        let [AnyBlockWorkload::Replay(recording)] = &self.beginnings[..] else { return None };
        let unit = unit_bytes as u64;
        let units = self.footprint().end.div_ceil(unit) as usize;
        let (mut seen, mut dead) = (Bits::new(units), Bits::new(units));
        let mut bytes = 0;
        let mut pass = recording.clone();
        let mut batch = Batch::new();
        while pass.fill(&mut batch) > 0 {
            for request in batch.requests() {
                if request.op == Op::Write {
                    bytes += request.bytes as u64;
                    for unit in request.offset / unit..request.end().div_ceil(unit) {
                        seen.set(unit, true);
                        dead.set(unit, false);
                    }
                } else if request.op == Op::Trim {
                    // A unit that is trimmed in part still holds data.
                    let whole = request.offset.div_ceil(unit)..(request.end() / unit).min(units as u64);
                    whole.for_each(|unit| dead.set(unit, true));
                }
            }
            batch.clear();
        }
        Some(PassWrites { bytes, distinct_bytes: seen.count() * unit, trimmed_bytes: dead.count() * unit })
    }

    fn carries_payload(&self) -> bool {
        self.beginnings[0].carries_payload()
    }

    fn payload(&self, request: &Request) -> &[u8] {
        self.pass.payload(request)
    }

    fn client_bytes(&self) -> Option<u64> {
        self.beginnings[0].client_bytes()
    }

    fn tenants(&mut self) -> Option<&mut [Tenant]> {
        self.pass.tenants()
    }

    fn ramp_time(&self) -> Span {
        self.beginnings[0].ramp_time()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::replay::{Replay, ReplaySpec};
    use nvlab_trace::columns::{Columns, Origin};

    /// A recording of (operation, first unit, units) of 4 KiB.
    fn recording(requests: &[(Op, u64, u32)]) -> AnyBlockWorkload {
        let list = |op: &dyn Fn(&(Op, u64, u32)) -> u64| requests.iter().map(op).collect::<Vec<u64>>();
        let ops: Vec<Op> = requests.iter().map(|request| request.0).collect();
        let offsets = list(&|request| request.1 * 4096);
        let bytes: Vec<u32> = requests.iter().map(|request| request.2 * 4096).collect();
        let columns = Columns::of_lists(None, &ops, &offsets, &bytes, Origin::default()).unwrap();
        let spec = ReplaySpec::parse("x.nvt").unwrap();
        AnyBlockWorkload::Replay(Replay::new(columns, &spec, 1 << 20, 1).unwrap().without_reads().unwrap())
    }

    fn offsets(workload: &mut dyn BlockWorkload) -> Vec<u64> {
        let (mut batch, mut offsets) = (Batch::new(), Vec::new());
        while workload.fill(&mut batch) > 0 {
            offsets.extend(batch.requests().iter().map(|request| request.offset / 4096));
            batch.clear();
        }
        offsets
    }

    #[test]
    fn a_recording_begins_again_without_its_reads() {
        let requests = [(Op::Write, 3, 1), (Op::Read, 9, 1), (Op::Write, 5, 2), (Op::Trim, 5, 1)];
        let mut repeated = Repeated::new(vec![recording(&requests)]);
        assert!(repeated.has_end());
        assert_eq!(offsets(&mut repeated), [3, 5, 5]);
        assert!(offsets(&mut repeated).is_empty());
        assert!(repeated.begin_again());
        assert_eq!(offsets(&mut repeated), [3, 5, 5]);
    }

    #[test]
    fn a_pass_counts_each_unit_once_and_what_stays_trimmed() {
        let requests =
            [(Op::Trim, 0, 4), (Op::Write, 2, 2), (Op::Write, 3, 4), (Op::Trim, 6, 1), (Op::Read, 0, 9)];
        let pass = Repeated::new(vec![recording(&requests)]).pass_writes(4096).unwrap();
        // Written: 2, 3, 3, 4, 5, 6; trimmed last: 0, 1 and 6.
        let wanted = PassWrites { bytes: 6 * 4096, distinct_bytes: 5 * 4096, trimmed_bytes: 3 * 4096 };
        assert_eq!(pass, wanted);
    }
}
