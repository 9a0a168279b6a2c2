//! The rows of an experiment: claims, the class of each expectation, and how it is measured.

use crate::sweep::space::{At, Space};
use nvlab_design::source::Basis;
use nvlab_design::toml_reader::{FileError, Table};
use nvlab_run::metric;
use nvlab_units::quantity;

type Read<T> = Result<T, FileError>;

/// How a claim is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The measure at a point.
    Value,
    /// The measure at `at` over the measure at `to`.
    Ratio,
    /// The sum of the measure along the line `at` over that along the line `to`.
    SumRatio,
    /// The harmonic mean of the ratios of the measure along the line `at` over that along the line `to`: of speed-ups, if it
    /// is a time.
    HarmonicMean,
    /// How much more the measure is at `at` than at `to`, in %: a price.
    Excess,
    /// How much less, in %: an improvement of a time.
    Saving,
    /// The smallest growth of the saving from one value of the free axis to the next: above 0 if it rises everywhere.
    SavingRises,
    /// Where, along the free axis, the lines `at` and `to` cross: interpolated between the points around it.
    Crossing,
    /// The largest ratio of line `at` over line `to`: below 1 if the first is lower everywhere.
    Below,
    /// The mean of the values along the free axis: over seeds, what chance leaves.
    Mean,
    /// The largest value along the free axis.
    Largest,
    /// The place of the smallest value along the free axis.
    LeastAt,
    /// Slope of the line after the value over its slope before it.
    Steepening {
        /// The value on the free axis.
        around: String,
    },
}

/// The class of an expectation. Only the first three can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Stated by the source of the system; no number of a part or design was set from it.
    Claim,
    /// Stated by another source, and held to it.
    Held,
    /// Derived from stated numbers by a closed form.
    Derived,
    /// A number of a part or design was set from this figure.
    Calibrated,
    /// A parameter of the design or the workload, read back.
    Input,
    /// Computed by this program earlier.
    Regression,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 6] =
        [Class::Claim, Class::Held, Class::Derived, Class::Calibrated, Class::Input, Class::Regression];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Claim => "claim",
            Class::Held => "held",
            Class::Derived => "derived",
            Class::Calibrated => "calibrated",
            Class::Input => "input",
            Class::Regression => "regression",
        }
    }

    /// True if a measurement within the band is a finding.
    pub fn counts(self) -> bool {
        matches!(self, Class::Claim | Class::Held | Class::Derived)
    }
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Row {
    /// The claim.
    pub claim: String,
    /// Where in the source it is made.
    pub place: String,
    /// The point or line.
    pub at: At,
    /// The one it is compared with.
    pub to: At,
    /// How it is measured.
    pub check: Check,
    /// What is measured.
    pub measure: Measure,
    /// The stated number, or the number derived from stated ones.
    pub expected: Option<f64>,
    /// The accepted range; `None`: reported only.
    pub band: Option<[f64; 2]>,
    /// The class of the expectation.
    pub class: Class,
    /// The numbers of parts and designs that were set from this figure; empty if it is not calibrated.
    pub sets: String,
    /// How a derived expectation follows from stated numbers; may be empty.
    pub form: String,
    /// The basis of the expectation.
    pub basis: Basis,
    /// The reason of the band, or of a deviation.
    pub note: String,
    /// What the note says was measured, `measured 1.97`, as a range: half a unit of its last digit either way.
    pub noted: Option<[f64; 2]>,
}

/// What is measured of a run: a metric, or one over another, times a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// The metric.
    pub metric: String,
    /// What it is divided by.
    pub over: Option<String>,
    /// Factor, for another unit.
    pub times: f64,
    /// The unit shown; empty for a plain number.
    pub unit: String,
}

/// A point or line; `None` if one of its values is not among those of a small run.
pub(super) fn at(table: &Table, key: &'static str, space: &Space, smoke: bool) -> Read<Option<At>> {
    let pairs = table.pairs(key)?.unwrap_or_default();
    for (name, value) in &pairs {
        let Some(axis) = space.axis(name) else {
            return Err(table.wrong(key, format!("names `{name}`, which is not an axis")));
        };
        if !axis.values.contains(value) {
            if smoke {
                return Ok(None);
            }
            let values = axis.values.join(", ");
            return Err(table.wrong(key, format!("`{value}` is not a value of `{name}` (values: {values})")));
        }
    }
    Ok(Some(pairs))
}

/// One row; `None` if a small run has none.
pub(super) fn row(table: &Table, space: &Space, smoke: bool) -> Read<Option<Row>> {
    let (claim, place) = (table.needed("claim")?, table.needed("where")?);
    let from = at(table, "at", space, smoke)?;
    let to = at(table, "to", space, smoke)?;
    let around = table.text("around")?;
    let check = match (table.text("check")?.as_deref(), around) {
        (None | Some("value"), None) => Check::Value,
        (Some("ratio"), None) => Check::Ratio,
        (Some("sum-ratio"), None) => Check::SumRatio,
        (Some("harmonic-mean"), None) => Check::HarmonicMean,
        (Some("excess"), None) => Check::Excess,
        (Some("saving"), None) => Check::Saving,
        (Some("saving-rises"), None) => Check::SavingRises,
        (Some("crossing"), None) => Check::Crossing,
        (Some("below"), None) => Check::Below,
        (Some("mean"), None) => Check::Mean,
        (Some("largest"), None) => Check::Largest,
        (Some("least-at"), None) => Check::LeastAt,
        (Some("steepening"), Some(around)) => Check::Steepening { around },
        _ => {
            let all = "value, ratio, sum-ratio, harmonic-mean, excess, saving, saving-rises, crossing, below, mean, largest, least-at, or steepening with `around`";
            return Err(table.wrong("check", format!("must be one of {all}")));
        }
    };
    let measure = measure(table)?;
    let expected = table.number("expected")?;
    let band = band(table, expected, smoke)?;
    let note = table.text("note")?.unwrap_or_default();
    let (basis, class, sets, form) = class(table, band.is_some())?;
    if table.range("within")?.is_some() && note.is_empty() {
        return Err(table.wrong("within", "needs a `note`: the reason of the band"));
    }
    if expected.is_some() && band.is_none() {
        return Err(table.wrong("expected", "needs a band to judge it by"));
    }
    let in_smoke = table.flag("smoke")?.unwrap_or(true);
    table.end()?;
    let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
    if smoke && !in_smoke {
        return Ok(None);
    }
    // A small run measures something else.
    let noted = if smoke { None } else { noted(&note) };
    let row = Row {
        claim,
        place,
        at: from,
        to,
        check,
        measure,
        expected,
        band,
        class,
        sets,
        form,
        basis,
        note,
        noted,
    };
    free_axes(table, space, &row)?;
    Ok(Some(row))
}

/// See [`Row::noted`]. Digits may be grouped by commas.
fn noted(note: &str) -> Option<[f64; 2]> {
    let after = note.split("measured ").skip(1);
    let mut numbers = after.filter_map(|text| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
        let digits = text[..end].trim_end_matches(['.', ',']).replace(',', "");
        let value: f64 = digits.parse().ok()?;
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        let half = 0.5 * 0.1_f64.powi(decimals) * (1.0 + 1e-9);
        Some([value - half, value + half])
    });
    numbers.next()
}

/// The basis of a row, its class, the numbers set from it, and the form that it is derived by.
fn class(table: &Table, is_judged: bool) -> Read<(Basis, Class, String, String)> {
    let name = table.needed("basis")?;
    let basis = Basis::ALL.iter().find(|(known, _)| *known == name).map(|(_, basis)| *basis);
    let (basis, of_basis) = match basis {
        Some(Basis::Stated) => (Basis::Stated, Class::Claim),
        Some(Basis::Cited) => (Basis::Cited, Class::Held),
        Some(Basis::Derived) => (Basis::Derived, Class::Derived),
        Some(Basis::Assumed) | None => return Err(table.wrong("basis", "must be stated, cited or derived")),
    };
    let (sets, form) = (table.text("sets")?.unwrap_or_default(), table.text("form")?.unwrap_or_default());
    let flag = |key: &'static str| Ok(table.flag(key)?.unwrap_or(false));
    let others = [
        ("input", flag("input")?, Class::Input, "an input is known"),
        ("sets", !sets.is_empty(), Class::Calibrated, "it states how well it could be set"),
        ("regression", flag("regression")?, Class::Regression, "an earlier result is known"),
    ];
    let mut said = others.iter().filter(|(_, is_said, ..)| *is_said);
    let class = match (said.next(), said.next()) {
        (None, _) => of_basis,
        (Some((_, _, class, _)), None) if is_judged => *class,
        (Some((key, _, _, why)), None) => return Err(table.wrong(key, format!("needs a band: {why}"))),
        (Some((one, ..)), Some((other, ..))) => {
            return Err(table.wrong(one, format!("and `{other}`: a row has one class")));
        }
    };
    match (class, form.is_empty()) {
        (Class::Derived, true) if is_judged => Err(table.wrong(
            "basis",
            "is derived: it needs the `form`, the formula by which it follows from stated numbers",
        )),
        (Class::Derived, _) | (_, true) => Ok((basis, class, sets, form)),
        _ => Err(table.wrong("form", "belongs to a derived row")),
    }
}

/// A check needs a point (every axis fixed) or a line (one axis free).
fn free_axes(table: &Table, space: &Space, row: &Row) -> Read<()> {
    let (line, two) = match row.check {
        Check::Value => (0, false),
        Check::Ratio | Check::Excess | Check::Saving => (0, true),
        Check::SumRatio | Check::HarmonicMean | Check::Crossing | Check::Below | Check::SavingRises => {
            (1, true)
        }
        Check::Mean | Check::Largest | Check::LeastAt | Check::Steepening { .. } => (1, false),
    };
    let wanted = space.axes.len().saturating_sub(line);
    let fixed = |key: &'static str, at: &At| {
        if at.len() == wanted {
            return Ok(());
        }
        let names: Vec<&str> = space.axes.iter().map(|axis| axis.name.as_str()).collect();
        Err(table.wrong(
            key,
            format!("fixes {} axes; this check needs {wanted} of: {}", at.len(), names.join(", ")),
        ))
    };
    fixed("at", &row.at)?;
    if two { fixed("to", &row.to) } else { Ok(()) }
}

/// `measure = "a"` or `"a / b"`, `times`, `unit`.
fn measure(table: &Table) -> Read<Measure> {
    let text = table.needed("measure")?;
    let measure =
        parse_measure(&text).map_err(|problem| table.wrong("measure", format!("is invalid: {problem}")))?;
    Ok(Measure {
        times: table.number("times")?.unwrap_or(1.0),
        unit: table.text("unit")?.unwrap_or_default(),
        ..measure
    })
}

pub(super) fn parse_measure(text: &str) -> Result<Measure, String> {
    let (name, over) = match text.split_once('/') {
        Some((name, over)) => (name.trim(), Some(over.trim())),
        None => (text.trim(), None),
    };
    let known = |name: &str| metric::find(name).map(|metric| metric.name);
    Ok(Measure { metric: known(name)?, over: over.map(known).transpose()?, times: 1.0, unit: String::new() })
}

/// `band = "3 %"` around the expectation, or `within = [low, high]`; a small run may have its own.
fn band(table: &Table, expected: Option<f64>, smoke: bool) -> Read<Option<[f64; 2]>> {
    let around = |key: &'static str| match (table.text(key)?, expected) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(table.wrong(key, "needs `expected`; use `within`")),
        (Some(text), Some(expected)) => {
            let share = quantity::fraction(&text).map_err(|error| table.wrong(key, error))?;
            let reach = expected.abs() * share;
            Ok(Some([expected - reach, expected + reach]))
        }
    };
    let plain = (around("band")?, table.range("within")?);
    let small = (around("smoke-band")?, table.range("smoke-within")?);
    let one = |(band, within): (Option<[f64; 2]>, Option<[f64; 2]>), keys: &str| match (band, within) {
        (Some(_), Some(_)) => Err(table.error(format!("{keys}: give one of them"))),
        (band, within) => Ok(band.or(within)),
    };
    let (plain, small) = (one(plain, "`band` and `within`")?, one(small, "`smoke-band` and `smoke-within`")?);
    Ok(if smoke { small.or(plain) } else { plain })
}
