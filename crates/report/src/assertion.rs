//! Assertions about a run: `waf < 2.5`, `read.p99 <= 2 ms`, `busy.flash < 80 %`; and about a run beside another one:
//! `waf > +5 %`.
//!
//! Format: `METRIC OPERATOR VALUE`; operators `< <= > >= == !=`; the value has the units of the metric
//! (`nvlab_units::quantity`), years and dollars too (`5 years`, `62 USD`). A percentage with a sign is a change against
//! the other run.

use super::human;
use nvlab_run::metric::{self, Metric, Unit};
use nvlab_run::result::RunResult;
use nvlab_run::stats::Estimate;
use nvlab_units::quantity;

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Equal,
    NotEqual,
}

/// Longer ones first: `<=` starts with `<`.
const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::MoreOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::More),
];

impl Operator {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Operator::Less => left < right,
            Operator::LessOrEqual => left <= right,
            Operator::More => left > right,
            Operator::MoreOrEqual => left >= right,
            Operator::Equal => left == right,
            Operator::NotEqual => left != right,
        }
    }
}

/// A parsed assertion: parse it before a run, check it after the run.
#[derive(Clone, Debug)]
pub struct Assertion {
    text: String,
    metric: Metric,
    operator: Operator,
    bound: Bound,
}

/// What a metric is compared with.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// A value in the metric's unit.
    Value(f64),
    /// The other run's value times this.
    Times(f64),
}

/// Appended to an answer that may be due to chance.
const CHANCE: &str = "this may be chance: a longer run, or several, would tell";

/// The outcome of an assertion.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether it holds.
    pub holds: bool,
    /// One line for people: `waf < 2.5 does not hold: waf is 2.97`.
    pub text: String,
    /// The opposite answer is possible too: the bound lies within the 95 % intervals of the measured values.
    pub is_chance: bool,
}

impl Assertion {
    /// Parses `waf < 2.5`.
    pub fn parse(text: &str) -> Result<Assertion, String> {
        let text = text.trim();
        let fault = |problem: String| format!("assertion `{text}`: {problem}");
        let Some(at) = text.find(['<', '>', '=', '!']) else {
            return Err(fault(
                "the operator is missing; write NAME < VALUE, with < <= > >= == or !=".to_string(),
            ));
        };
        let (name, rest) = text.split_at(at);
        let Some((sign, operator)) = OPERATORS.into_iter().find(|(sign, _)| rest.starts_with(sign)) else {
            let (wrong, right) = if rest.starts_with('=') { ("=", "==") } else { ("!", "!=") };
            return Err(fault(format!("`{wrong}` is not an operator; write `{right}`")));
        };
        let metric = metric::find(name).map_err(fault)?;
        let value = rest[sign.len()..].trim();
        if value.is_empty() {
            return Err(fault(format!("there is no value after `{sign}`")));
        }
        let bound = match change(value) {
            Some(change) => Bound::Times(1.0 + change.map_err(fault)?),
            None => Bound::Value(value_of(value, metric.unit).map_err(fault)?),
        };
        Ok(Assertion { text: text.to_string(), metric, operator, bound })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it is about.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The value of its bound, and whether the metric is to be at most that, rather than at least; `None`: it is no such bound.
    pub fn limit(&self) -> Option<(f64, bool)> {
        let Bound::Value(value) = self.bound else { return None };
        match self.operator {
            Operator::Less | Operator::LessOrEqual => Some((value, true)),
            Operator::More | Operator::MoreOrEqual => Some((value, false)),
            Operator::Equal | Operator::NotEqual => None,
        }
    }

    /// True if it compares a run with another one.
    pub fn is_relative(&self) -> bool {
        matches!(self.bound, Bound::Times(_))
    }

    /// Checks the means of several runs of a design (one for each seed) beside those of the first design of a comparison.
    /// Fails if a run has no such metric.
    pub fn check_beside(&self, runs: &[RunResult], first: &[RunResult]) -> Result<Verdict, String> {
        let estimate = |runs: &[RunResult]| {
            let all = runs.iter().all(|run| self.metric.of(run).is_some());
            Estimate::of_runs(&self.metric, runs).filter(|_| all).ok_or_else(|| {
                format!("`{}`: the run of `{}` has no {}", self.text, runs[0].design.name, self.metric.name)
            })
        };
        let value = estimate(runs)?;
        let (limit, beside) = match self.bound {
            Bound::Value(mean) => (Estimate { mean, interval: 0.0, ..value }, String::new()),
            Bound::Times(times) => {
                let of_first = estimate(first)?;
                let beside = format!(", {} has {}", first[0].design.name, of_first.shown(self.metric.unit));
                let (mean, interval) = (of_first.mean * times, of_first.interval * times.abs());
                (Estimate { mean, interval, ..of_first }, beside)
            }
        };
        let (holds, is_chance) =
            (self.operator.holds(value.mean, limit.mean), self.is_chance(&value, &limit));
        let (name, of, shown) = (&runs[0].design.name, &self.metric.name, value.shown(self.metric.unit));
        let doubt = if is_chance { format!(" ({CHANCE})") } else { String::new() };
        let text = format!("{name}: {}: {of} is {shown}{beside}{doubt}", self.text);
        Ok(Verdict { holds, text, is_chance })
    }

    /// True if another run could give the opposite answer. Equality, which chance would always break, is exempt.
    fn is_chance(&self, value: &Estimate, limit: &Estimate) -> bool {
        let is_exact = matches!(self.operator, Operator::Equal | Operator::NotEqual);
        !is_exact && (value.interval > 0.0 || limit.interval > 0.0) && value.overlaps(limit)
    }

    /// Checks a run. The lifetime of a device that nothing wears is unlimited; if its wear is not known, no assertion
    /// about its lifetime holds. Any other missing value is an error, because neither answer would be true.
    pub fn check(&self, run: &RunResult) -> Result<Verdict, String> {
        let name = &self.metric.name;
        let (value, shown) = match self.metric.of(run) {
            Some(value) => (value, self.metric.unit.shown(value).to_string()),
            None if self.metric.is_life_of(run) && run.without_end() => {
                (f64::INFINITY, human::unworn(run).into())
            }
            None if self.metric.is_life_of(run) => {
                let (text, why) = (&self.text, human::unworn(run));
                let text = format!("{text} does not hold: {name} is {why}");
                return Ok(Verdict { holds: false, text, is_chance: false });
            }
            None => {
                let design = &run.design.name;
                return Err(format!("assertion `{}`: the run of `{design}` has no {name}", self.text));
            }
        };
        let Bound::Value(limit) = self.bound else {
            return Err(format!(
                "assertion `{}`: a relative change needs a second design: nvlab compare --fail-if",
                self.text
            ));
        };
        let holds = self.operator.holds(value, limit);
        let verdict = if holds { "holds" } else { "does not hold" };
        let known = Estimate::of_runs(&self.metric, std::slice::from_ref(run));
        let limit = Estimate { mean: limit, interval: 0.0, count: 1 };
        let is_chance = known.is_some_and(|known| self.is_chance(&known, &limit));
        let mut doubts = self.metric.doubts(run);
        doubts.extend(is_chance.then(|| CHANCE.to_string()));
        let doubts: String = doubts.iter().map(|doubt| format!(" ({doubt})")).collect();
        Ok(Verdict { holds, text: format!("{} {verdict}: {name} is {shown}{doubts}", self.text), is_chance })
    }
}

/// `+5 %` as 0.05; `None` if it is no percentage with a sign.
fn change(text: &str) -> Option<Result<f64, String>> {
    let signed = text.starts_with(['+', '-']).then(|| text.strip_suffix('%')).flatten()?;
    Some(plain(signed.trim_end(), "a percentage").map(|percent| percent / 100.0))
}

/// A value in the base unit of its metric.
fn value_of(text: &str, unit: Unit) -> Result<f64, String> {
    let said = |error: quantity::QuantityError| error.to_string();
    match unit {
        Unit::Ratio => plain(text, "a number"),
        Unit::Count => quantity::count(text).map(|count| count as f64).map_err(said),
        Unit::Nanoseconds => quantity::span(text).map(|span| span.ps() as f64 / 1e3).map_err(said),
        Unit::Seconds => quantity::span(text).map(|span| span.ps() as f64 / 1e12).map_err(said),
        Unit::Bytes | Unit::BytesDecimal => quantity::bytes(text).map(|bytes| bytes as f64).map_err(said),
        Unit::BytesPerSecond => quantity::bandwidth(text).map(|rate| rate as f64).map_err(said),
        Unit::PerSecond if text.contains('/') => quantity::rate_per_second(text).map_err(said),
        Unit::PerSecond => quantity::count(text).map(|count| count as f64).map_err(said),
        Unit::Share => quantity::fraction(text).map_err(said),
        Unit::Years => years(text),
        Unit::Usd => plain(without_unit(text, &["USD", "$"]), "a price"),
        Unit::UsdPerGib => plain(without_unit(text, &["USD/GiB", "USD"]), "a price"),
    }
}

fn without_unit<'a>(text: &'a str, units: &[&str]) -> &'a str {
    units.iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text).trim_end()
}

fn plain(text: &str, wanted: &str) -> Result<f64, String> {
    let digits = text.replace('_', "");
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("`{text}` is not {wanted}")),
    }
}

fn years(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 6] = [
        ("years", 1.0),
        ("year", 1.0),
        ("y", 1.0),
        ("days", 1.0 / 365.25),
        ("day", 1.0 / 365.25),
        ("d", 1.0 / 365.25),
    ];
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => plain(number.trim_end(), "a lifetime").map(|value| value * factor),
        None => Err(format!("`{text}` is not a lifetime; write `5 years` or `200 days`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_run::result::Precision;
    use nvlab_run::sample;

    fn holds_for(text: &str, run: &RunResult) -> Result<bool, String> {
        Ok(Assertion::parse(text)?.check(run)?.holds)
    }

    #[test]
    fn every_unit_and_operator() {
        let run = sample::run("ssd-tlc", 1);
        let cases = [
            ("waf < 2.5", false),
            ("waf<3", true),
            ("waf == 2.97", true),
            ("waf != 2.97", false),
            ("write.p99 <= 2 ms", true),
            ("p99.read > 1 us", true),
            ("write.bandwidth >= 1 MB/s", true),
            ("iops >= 20k", true),
            ("iops < 20k/s", false),
            ("busy.flash < 80 %", true),
            ("lifetime > 5 years", true),
            ("lifetime < 100 d", false),
            ("price < 100 USD", true),
            ("price.gib < 0.9 USD/GiB", true),
            ("memory < 1 GiB", true),
            ("requests.missing == 0", true),
            ("simulated > 1 s", true),
            ("erases > 1", true),
        ];
        for (text, holds) in cases {
            assert_eq!(holds_for(text, &run), Ok(holds), "{text}");
        }
    }

    #[test]
    fn a_change_is_beside_another_run() {
        let [first, mut other] = ["ssd-tlc", "mine"].map(|name| [sample::run(name, 1)]);
        other[0].write_amplification.total = first[0].write_amplification.total * 1.06;
        let holds = |text: &str| Assertion::parse(text).unwrap().check_beside(&other, &first).unwrap().holds;
        assert!(holds("waf > +5 %") && !holds("waf > +7%") && holds("waf > -1 %") && holds("waf > 3"));
        assert_eq!(
            Assertion::parse("waf > +5 %").unwrap().check_beside(&other, &first).unwrap().text,
            "mine: waf > +5 %: waf is 3.15, ssd-tlc has 2.97"
        );
        let alone = Assertion::parse("waf > +5 %").unwrap().check(&first[0]).unwrap_err();
        assert!(alone.contains("nvlab compare --fail-if"), "{alone}");
        assert!(Assertion::parse("waf > +five %").is_err());
    }

    #[test]
    fn faults_say_what_to_write() {
        let run = sample::run("ssd-tlc", 1);
        let error = |text: &str| holds_for(text, &run).unwrap_err();
        assert_eq!(error("waff < 2"), "assertion `waff < 2`: there is no metric `waff`; did you mean `waf`?");
        assert_eq!(
            error("waf 2"),
            "assertion `waf 2`: the operator is missing; write NAME < VALUE, with < <= > >= == or !="
        );
        assert_eq!(error("waf = 2"), "assertion `waf = 2`: `=` is not an operator; write `==`");
        assert_eq!(error("waf <"), "assertion `waf <`: there is no value after `<`");
        assert_eq!(error("waf < fast"), "assertion `waf < fast`: `fast` is not a number");
        assert_eq!(
            error("lifetime > 5"),
            "assertion `lifetime > 5`: `5` is not a lifetime; write `5 years` or `200 days`"
        );
        assert!(
            error("read.p99 < 2").contains("it has no unit; units: ps, ns, us"),
            "{}",
            error("read.p99 < 2")
        );
        assert_eq!(
            error("trim.p99 < 1 ms"),
            "assertion `trim.p99 < 1 ms`: the run of `ssd-tlc` has no trim.p99"
        );
    }

    #[test]
    fn verdicts_and_a_device_that_does_not_wear() {
        let mut run = sample::run("ssd-tlc", 1);
        let check = |text: &str, run: &RunResult| Assertion::parse(text).unwrap().check(run).unwrap().text;
        assert_eq!(check("waf < 2.5", &run), "waf < 2.5 does not hold: waf is 2.97");
        // Where the bound lies within what the run knows of itself, it says so.
        run.precision = vec![Precision { metric: "waf".to_string(), within: Some(0.01) }];
        assert_eq!(check("waf < 2.5", &run), "waf < 2.5 does not hold: waf is 2.97");
        let near = format!("waf < 2.98 holds: waf is 2.97 ({CHANCE})");
        assert_eq!(check("waf < 2.98", &run), near);
        assert_eq!(check("waf != 2.98", &run), "waf != 2.98 holds: waf is 2.97");
        run.lifetime.years = None;
        assert_eq!(
            check("lifetime > 5 years", &run),
            "lifetime > 5 years does not hold: lifetime is undetermined: no host data has been \
             programmed yet"
        );
        let flash = run.flash.as_mut().unwrap();
        (flash.programs, flash.erases, run.write.bytes) = (0, 0, 0);
        assert_eq!(
            check("lifetime > 5 years", &run),
            "lifetime > 5 years holds: lifetime is unlimited: nothing was programmed"
        );
    }

    #[test]
    fn a_change_within_the_intervals_may_be_chance() {
        let known = |times: f64, within: f64| {
            let mut run = sample::run("ssd-tlc", 1);
            run.write_amplification.total *= times;
            run.precision = vec![Precision { metric: "waf".to_string(), within: Some(within) }];
            run
        };
        let first = [known(1.0, 0.01)];
        let check = |text: &str, run: RunResult| {
            let verdict = Assertion::parse(text).unwrap().check_beside(&[run], &first).unwrap();
            (verdict.holds, verdict.is_chance)
        };
        // A tenth more: beyond both intervals. Then with one as wide as the difference.
        assert_eq!(check("waf > +5 %", known(1.1, 0.01)), (true, false));
        assert_eq!(check("waf > +5 %", known(1.1, 0.06)), (true, true));
        assert_eq!(check("waf > +5 %", known(1.0, 0.01)), (false, false));
        assert_eq!(check("waf > +5 %", known(1.0, 0.06)), (false, true));
        assert_eq!(check("waf > 2.96", known(1.0, 0.01)), (true, true));
        assert_eq!(check("waf > 2.5", known(1.0, 0.01)), (true, false));
    }
}
