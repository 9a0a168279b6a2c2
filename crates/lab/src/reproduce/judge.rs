//! Compares claims with results.

use super::experiment::Experiment;
use super::row::{Check, Class, Measure, Row};
use crate::sweep::space::{At, number_of};
use nvlab_run::metric;
use nvlab_run::result::RunResult;

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within its band.
    Pass,
    /// Outside its band.
    Differs,
    /// There is no band.
    Reported,
    /// Within its band, but of a class that is not a finding: not a pass.
    NoFinding,
    /// A run it needs has no result, or the result has no such number.
    Missing,
}

/// A claim and what was measured of it.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The claim.
    pub row: &'a Row,
    /// What was measured.
    pub measured: Option<f64>,
    /// The verdict on it.
    pub verdict: Verdict,
    /// A run it needs should have been in steady state but was not: the verdict may change with the length of the
    /// run. Never counted as a pass.
    pub unsteady: bool,
}

impl Judged<'_> {
    /// The name of the verdict; for a class that is not a finding, the name of the class.
    pub fn name(&self) -> &'static str {
        match self.verdict {
            Verdict::Pass => "pass",
            Verdict::Differs => "differs",
            Verdict::Reported => "reported",
            Verdict::NoFinding => self.row.class.name(),
            Verdict::Missing => "missing",
        }
    }

    /// The verdict as tables show it: `pass`, `differs, not steady`.
    pub fn shown(&self) -> String {
        if self.unsteady { format!("{}, not steady", self.name()) } else { self.name().to_string() }
    }

    /// True if its note says that another number was measured.
    pub fn is_note_stale(&self) -> bool {
        let is_other = |measured: f64, [low, high]: [f64; 2]| !(low..=high).contains(&measured);
        self.measured.zip(self.row.noted).is_some_and(|(measured, noted)| is_other(measured, noted))
    }

    /// True if it counts as a pass.
    pub fn passes(&self) -> bool {
        self.verdict == Verdict::Pass && !self.unsteady
    }
}

/// An experiment with the results of its points.
#[derive(Debug)]
pub struct Measured<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The result of every point, in the order of [`crate::sweep::Space::points`]; `None` if it has none.
    pub results: Vec<Option<&'a RunResult>>,
}

/// Every claim of an experiment, judged.
pub fn judge<'a>(measured: &Measured<'a>) -> Vec<Judged<'a>> {
    let judged = |row: &'a Row| {
        let value = measured.check(row);
        let verdict = match (value, row.band) {
            (None, _) => Verdict::Missing,
            (Some(_), None) => Verdict::Reported,
            (Some(value), Some([low, high])) if !(low..=high).contains(&value) => Verdict::Differs,
            (Some(_), Some(_)) if !row.class.counts() => Verdict::NoFinding,
            (Some(_), Some(_)) => Verdict::Pass,
        };
        // An input does not depend on the state.
        let unsteady =
            row.class != Class::Input && measured.runs_of(row).any(|run| !run.precondition.converged);
        Judged { row, measured: value, verdict, unsteady }
    };
    measured.experiment.rows.iter().map(judged).collect()
}

/// Counts the verdicts of each kind, by class: `15 pass (4 claim, 11 derived); 1 differ (1 claim); ...`.
pub fn summary<'a>(judged: impl Iterator<Item = &'a Judged<'a>> + Clone) -> String {
    let of = |is: &dyn Fn(&Judged<'_>) -> bool| -> (usize, String) {
        let count = |class: Class| judged.clone().filter(|one| one.row.class == class && is(one)).count();
        let counts = Class::ALL.map(|class| (count(class), class.name()));
        let parts =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
        (counts.iter().map(|(count, _)| count).sum(), parts.collect::<Vec<_>>().join(", "))
    };
    let with_parts = |(count, parts): (usize, String), what: &str| match count {
        0 => format!("0 {what}"),
        _ => format!("{count} {what} ({parts})"),
    };
    let count = |verdict| judged.clone().filter(|one| one.verdict == verdict).count();
    let no_finding = match of(&|one| one.verdict == Verdict::NoFinding) {
        (0, _) => String::new(),
        (_, parts) => format!("no findings: {parts}; "),
    };
    let unsteady = match judged.clone().filter(|one| one.unsteady).count() {
        0 => String::new(),
        some => format!("; {some} not steady, none of which passes"),
    };
    format!(
        "{}; {}; {no_finding}{} reported, {} missing{unsteady}",
        with_parts(of(&|one| one.passes()), "pass"),
        with_parts(of(&|one| one.verdict == Verdict::Differs), "differ"),
        count(Verdict::Reported),
        count(Verdict::Missing),
    )
}

/// The claims of the sources that passed.
pub(super) fn passed_claims<'a>(judged: impl Iterator<Item = &'a Judged<'a>>) -> Vec<&'a str> {
    let of_source = |one: &&Judged<'_>| one.passes() && matches!(one.row.class, Class::Claim | Class::Held);
    judged.filter(of_source).map(|one| one.row.claim.as_str()).collect()
}

impl Measured<'_> {
    /// The measure at a point of [`crate::sweep::Space::points`].
    pub fn value(&self, index: usize, measure: &Measure) -> Option<f64> {
        let run = self.results.get(index).copied().flatten()?;
        let value = metric::metric(&measure.metric, run)?;
        let over = match &measure.over {
            None => 1.0,
            Some(over) => metric::metric(over, run).filter(|&over| over != 0.0)?,
        };
        Some(value / over * measure.times)
    }

    /// The runs that a claim is measured on.
    fn runs_of(&self, row: &Row) -> impl Iterator<Item = &RunResult> {
        // Without `to` there is only one point or line.
        let to = Some(&row.to).filter(|to| !to.is_empty());
        let indices =
            std::iter::once(&row.at).chain(to).flat_map(|at| match self.experiment.space.index(at) {
                Some(index) => vec![index],
                None => self.experiment.space.line(at).into_iter().map(|(_, index)| index).collect(),
            });
        indices.filter_map(|index| self.results.get(index).copied().flatten())
    }

    /// A line: place on the free axis and measured value. `None` if a point is missing or its place is not a number.
    fn line(&self, at: &At, measure: &Measure) -> Option<Vec<(f64, f64)>> {
        let line = self.experiment.space.line(at);
        let points = line.iter().map(|(x, index)| Some((number_of(x)?, self.value(*index, measure)?)));
        points.collect::<Option<Vec<_>>>().filter(|points| !points.is_empty())
    }

    /// The values along a line, whose places need not be numbers. `None` if one is missing, or all are.
    fn values(&self, at: &At, measure: &Measure) -> Option<Vec<f64>> {
        let line = self.experiment.space.line(at);
        let values = line.iter().map(|(_, index)| self.value(*index, measure));
        values.collect::<Option<Vec<_>>>().filter(|values| !values.is_empty())
    }

    fn check(&self, row: &Row) -> Option<f64> {
        let line = |at: &At| self.line(at, &row.measure);
        let values = |at: &At| self.values(at, &row.measure);
        let point = |at: &At| self.value(self.experiment.space.index(at)?, &row.measure);
        match &row.check {
            Check::Value => point(&row.at),
            Check::Ratio => Some(point(&row.at)? / point(&row.to)?),
            Check::SumRatio => {
                Some(values(&row.at)?.iter().sum::<f64>() / values(&row.to)?.iter().sum::<f64>())
            }
            Check::HarmonicMean => {
                let (at, to) = (values(&row.at)?, values(&row.to)?);
                Some(at.len() as f64 / at.iter().zip(&to).map(|(at, to)| to / at).sum::<f64>())
            }
            Check::Excess => Some((point(&row.at)? / point(&row.to)? - 1.0) * 100.0),
            Check::Saving => Some(saving(point(&row.at)?, point(&row.to)?)),
            Check::SavingRises => {
                let (at, to) = (line(&row.at)?, line(&row.to)?);
                let savings: Vec<f64> = at.iter().zip(&to).map(|((_, a), (_, b))| saving(*a, *b)).collect();
                savings.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min)
            }
            Check::Crossing => crossing(&line(&row.at)?, &line(&row.to)?),
            Check::Below => {
                let (at, to) = (values(&row.at)?, values(&row.to)?);
                at.iter().zip(&to).map(|(a, b)| a / b).reduce(f64::max)
            }
            Check::Mean => {
                let values = values(&row.at)?;
                Some(values.iter().sum::<f64>() / values.len() as f64)
            }
            Check::Largest => values(&row.at)?.into_iter().reduce(f64::max),
            Check::LeastAt => {
                let least = |a: (f64, f64), b: (f64, f64)| if b.1 < a.1 { b } else { a };
                line(&row.at)?.into_iter().reduce(least).map(|(x, _)| x)
            }
            Check::Steepening { around } => steepening(&line(&row.at)?, number_of(around)?),
        }
    }
}

/// How much less `at` is than `to`, in %.
fn saving(at: f64, to: f64) -> f64 {
    (1.0 - at / to) * 100.0
}

/// The place where two lines cross, between the first two places where their order changes. Between two points a line
/// is taken to be straight on logarithmic scales, which suits a quantity that is divided among more and more; on
/// linear scales a hyperbola would seem to cross too late. `None` also if a place or a value there has no logarithm.
fn crossing(a: &[(f64, f64)], b: &[(f64, f64)]) -> Option<f64> {
    let apart: Vec<(f64, f64)> =
        a.iter().zip(b).map(|(&(x, a), &(_, b))| (x.ln(), a.ln() - b.ln())).collect();
    let crossing = apart.windows(2).find_map(|pair| {
        let [(x0, d0), (x1, d1)] = [pair[0], pair[1]];
        (d0 == 0.0 || d0.signum() != d1.signum()).then(|| (x0 + (x1 - x0) * d0 / (d0 - d1)).exp())
    });
    crossing.filter(|crossing| crossing.is_finite())
}

/// The slope of the line after `around` divided by the slope before it; `None` for a line that rises.
fn steepening(line: &[(f64, f64)], around: f64) -> Option<f64> {
    let at = line.iter().position(|(x, _)| *x == around)?;
    let slope = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
    let (first, last) = (*line.first()?, *line.last()?);
    let (before, behind) = (slope(first, line[at]), slope(line[at], last));
    Some(behind / before).filter(|ratio| ratio.is_finite() && before <= 0.0 && behind <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cross_between_points() {
        let falling = [(50.0, 4.0), (20.0, 2.5), (10.0, 1.5)];
        let rising = [(50.0, 1.7), (20.0, 2.0), (10.0, 2.5)];
        let found = crossing(&falling, &rising).unwrap();
        // They are 2.5 / 2 at 20 and 1.5 / 2.5 at 10: equal after 0.304 of the way from 20 to 20 / 2.
        let way = 1.25_f64.ln() / (1.25_f64.ln() - 0.6_f64.ln());
        assert!((found - 20.0 * 0.5_f64.powf(way)).abs() < 1e-12, "{found}");
        assert_eq!(crossing(&falling, &falling.map(|(x, y)| (x, y - 1.0))), None);
        assert_eq!(crossing(&[(0.0, 1.0), (1.0, 3.0)], &[(0.0, 2.0), (1.0, 2.0)]), None);
    }

    /// 15 KiB over 64.4 KiB/s for each chip, and a disk that takes 10.89 ms: as straight lines they crossed at 24.1 chips.
    #[test]
    fn a_hyperbola_crosses_where_it_does() {
        let chips = [4.0, 8.0, 16.0, 32.0, 64.0];
        let flash = chips.map(|chips| (chips, 15.0 / (64.4 * chips)));
        let disk = chips.map(|chips| (chips, 0.01089));
        let found = crossing(&flash, &disk).unwrap();
        assert!((found - 15.0 / 64.4 / 0.01089).abs() < 1e-9, "{found}");
    }

    #[test]
    fn a_line_steepens() {
        let line = [(60.0, 40.0), (70.0, 38.0), (80.0, 36.0), (90.0, 28.0)];
        assert_eq!(steepening(&line, 80.0), Some(4.0));
        assert_eq!(steepening(&line, 75.0), None);
        assert_eq!(steepening(&line, 90.0), None);
    }
}
