//! How a flash part reads its planes, and what its reads interrupt.

use super::Reader;
use crate::part::PlaneSenses;
use crate::toml_reader::datum::Datum;
use nvlab_medium::flash::Registers;
use nvlab_units::Span;

impl Reader<'_> {
    /// The time of a read: one for all pages of a word line, or one for each.
    pub(super) fn read_times(&mut self, one_shot: Option<u32>) -> Option<Vec<Span>> {
        let path = self.path("read");
        let Datum::Times(times) = self.context.get(&path, Some(self.kind))? else { return None };
        match (times.len() as u32, one_shot?) {
            (1, _) => Some(times),
            (count, shot) if count == shot => Some(times),
            (count, shot) => {
                let problem =
                    format!("`{path}` has {count} times, but one program operation writes {shot} page(s)");
                self.context.wrong(
                    &path,
                    problem,
                    "one time for all pages, or one per page (see `one_shot`)",
                );
                None
            }
        }
    }

    /// How often an operation may be suspended.
    pub(super) fn suspends(&mut self) -> Option<u32> {
        let (path, suspend) = (self.path("suspends"), self.path("suspend"));
        if !self.context.has(&path) {
            return Some(u32::MAX);
        }
        let limit = self.count("suspends");
        if !self.context.has(&suspend) {
            let problem = format!("`{path}` limits suspensions, but `suspend` is not set");
            self.context.wrong(&path, problem, "suspend = \"20 us\", the time it takes; or leave it out");
            return None;
        }
        limit
    }

    pub(super) fn plane_reads(&mut self, planes: Option<u32>) -> Option<PlaneSenses> {
        if self.kind != "nand" {
            return Some(PlaneSenses::One);
        }
        let meanings = [
            ("one", PlaneSenses::One),
            ("multi", PlaneSenses::Multi),
            ("independent", PlaneSenses::Independent),
        ];
        let reads = self.choice("plane_reads", &meanings)?;
        if reads != PlaneSenses::One && planes? == 1 {
            let path = self.path("plane_reads");
            self.context.wrong(
                &path,
                format!("`{path}`: the part has one plane"),
                "planes = 4, or plane_reads = \"one\"",
            );
            return None;
        }
        Some(reads)
    }

    pub(super) fn registers(&mut self) -> Option<Registers> {
        if self.kind != "nand" {
            return Some(Registers::Unlimited);
        }
        let meanings =
            [("one", Registers::One), ("two", Registers::Two), ("unlimited", Registers::Unlimited)];
        self.choice("registers", &meanings)
    }
}
