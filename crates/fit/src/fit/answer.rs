//! What is said of a fit: numbers with intervals, residuals, contradictions, other designs, the design file.

use super::compared::{Compared, compared};
use super::interval::nine_of_ten;
use super::next::{Next, next};
use super::posterior::{Mode, Posterior};
use super::{FitError, Fitted, Runs, drives, fit, simulate};
use crate::figures::amount::Unit;
use crate::figures::doubts::doubts;
use crate::figures::{Figure, Figures};
use crate::model::{Model, Values, shown, text};
use crate::priors::{KNOBS, Knob, Prior};
use nvlab_design::Design;

/// A number that moves no figure by this much, when it moves by one standard deviation of its prior, is not known from them.
const MOVES: f64 = 0.004;
/// Another mode is as probable as the best if it is at most so much more improbable: a factor of e squared.
const EQUAL: f64 = 2.0;
/// A figure contradicts the others if what they say of it is off by more than this many deviations.
const CONTRADICTS: f64 = 3.5;

/// A number of a design.
#[derive(Clone, Debug)]
pub struct Number {
    /// The number.
    pub knob: Knob,
    /// Its name among the priors.
    pub name: &'static str,
    /// Its key in a design.
    pub key: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The most probable value.
    pub value: f64,
    /// Nine of ten drives that fit have it between these.
    pub interval: (f64, f64),
    /// What is usual.
    pub usual: (f64, f64),
    /// No figure depends on it: it is as usual.
    pub is_prior_only: bool,
    /// All of it for people: value, interval, what is usual.
    pub shown: [String; 3],
    /// Where what is usual comes from.
    pub source: String,
}

/// A figure beside what the design does.
#[derive(Clone, Debug)]
pub struct Residual {
    /// The figure.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// What is stated.
    pub stated: f64,
    /// What the design does, simulated.
    pub simulated: f64,
    /// Mean and 99th percentile of the latency in seconds, measured and simulated, if they were measured.
    pub latencies: Option<([f64; 2], [f64; 2])>,
    /// Nine of ten drives that fit do between these.
    pub interval: (f64, f64),
    /// What it may be off.
    pub tolerance: f64,
    /// Where it is stated.
    pub source: String,
    /// The line of the file.
    pub line: usize,
}

impl Residual {
    /// Simulated over stated, less 1.
    pub fn difference(&self) -> f64 {
        self.simulated / self.stated - 1.0
    }

    /// True if it is off by no more than it may be.
    pub fn is_within(&self) -> bool {
        self.difference().abs() <= self.tolerance
    }
}

/// Another design that explains the figures as well.
#[derive(Clone, Debug)]
pub struct Other {
    /// What differs of it, for people.
    pub differs: String,
    /// What it does, simulated: one value for each figure.
    pub simulated: Vec<f64>,
    /// The design file.
    pub text: String,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Name of the drive.
    pub name: String,
    /// The numbers of the design.
    pub numbers: Vec<Number>,
    /// Every figure.
    pub residuals: Vec<Residual>,
    /// Jobs of fio that are no figures, measured and simulated.
    pub compared: Vec<Compared>,
    /// Why some of them could not be simulated.
    pub notes: Vec<String>,
    /// What contradicts physics, or another figure, or all others.
    pub doubts: Vec<String>,
    /// What to measure next, what tells most first.
    pub next: Vec<Next>,
    /// Designs that are as probable.
    pub others: Vec<Other>,
    /// The design file.
    pub text: String,
    /// Runs that were made or found.
    pub runs: usize,
}

/// Fits a drive to its figures and says what was found of the sibling `size`.
pub fn answer(figures: &Figures, size: usize, seed: u64, runs: &dyn Runs) -> Result<Answer, FitError> {
    let model = Model::new(figures)?;
    let fitted = fit(&model, figures, seed, runs)?;
    let posterior = &fitted.posterior;
    let best = drives(posterior, &fitted.modes[0].at)?;
    let draws: Vec<Vec<Values>> =
        posterior.draws(&fitted.modes).iter().filter_map(|at| posterior.drives(at)).collect();
    let numbers = numbers(posterior, &fitted.modes[0].at, &best[size], (&draws, size));
    let residuals = residuals(&fitted, &draws);
    let mut said: Vec<String> = doubts(figures).into_iter().map(|doubt| doubt.text).collect();
    said.extend(odd_ones(&fitted, &residuals)?);
    let others = others(&fitted, size, runs)?;
    let known: Vec<_> =
        figures.figures.iter().filter(|figure| figure.size == size).map(|figure| figure.what).collect();
    let next = next(&model, &known, &draws, size);
    let (compared, notes) = compared(figures, &model, &best, runs)?;
    let text = file(&model, figures, &best[size], size, &numbers);
    Design::parse(&format!("{}.toml", figures.drive.name), &text, &[])?;
    let count =
        fitted.runs + compared.len() + others.iter().map(|other| other.simulated.len()).sum::<usize>();
    let name = figures.drive.name.clone();
    Ok(Answer { name, numbers, residuals, compared, notes, doubts: said, next, others, text, runs: count })
}

fn numbers(
    posterior: &Posterior<'_>,
    at: &[f64],
    best: &Values,
    (draws, size): (&[Vec<Values>], usize),
) -> Vec<Number> {
    let model = posterior.model;
    let with = KNOBS.iter().filter(|(knob, ..)| model.priors.of(*knob).is_some());
    let number = |&(knob, name, key): &(Knob, &'static str, &'static str)| {
        let prior: &Prior = model.number(knob).0;
        let interval = nine_of_ten(draws.iter().map(|drives| drives[size].of(knob)).collect());
        let usual = prior.reach();
        let of = |value: f64| shown(prior, knob, value);
        let between = |(low, high): (f64, f64)| match of(low) == of(high) {
            true => of(low),
            false => format!("{} to {}", of(low), of(high)),
        };
        Number {
            knob,
            name,
            key,
            unit: prior.unit,
            value: best.of(knob),
            interval,
            usual,
            is_prior_only: !prior.is_fixed() && !moves(posterior, at, knob),
            shown: [of(best.of(knob)), between(interval), between(usual)],
            source: prior.source.clone(),
        }
    };
    with.map(number).collect()
}

/// True if a figure depends on a number.
fn moves(posterior: &Posterior<'_>, at: &[f64], knob: Knob) -> bool {
    let Some(base) = posterior.drives(at) else { return true };
    let figures = 0..posterior.figures.figures.len();
    let places = posterior.model.variables.iter().enumerate().filter(|(_, variable)| variable.knob == knob);
    places.into_iter().any(|(place, _)| {
        [-1.0, 1.0].into_iter().any(|step| {
            let mut moved = at.to_vec();
            moved[place] += step;
            // A step after which the drive cannot be is one that matters.
            let Some(drives) = posterior.drives(&moved) else { return true };
            figures.clone().any(|number| {
                let change = posterior.predicted(&drives, number) / posterior.predicted(&base, number);
                change.ln().abs() > MOVES
            })
        })
    })
}

fn residuals(fitted: &Fitted<'_>, draws: &[Vec<Values>]) -> Vec<Residual> {
    let posterior = &fitted.posterior;
    let residual = |(number, figure): (usize, &Figure)| Residual {
        name: posterior.figures.name(figure),
        unit: figure.what.unit(),
        stated: figure.value,
        simulated: fitted.simulated[number].value,
        latencies: figure.latencies.zip(fitted.simulated[number].latencies),
        interval: nine_of_ten(draws.iter().map(|drives| posterior.predicted(drives, number)).collect()),
        tolerance: figure.tolerance,
        source: figure.source.clone(),
        line: figure.at.line(),
    };
    posterior.figures.figures.iter().enumerate().map(residual).collect()
}

/// Figures that the others contradict: what is said of them without them is another value, whichever drive fits.
fn odd_ones(fitted: &Fitted<'_>, residuals: &[Residual]) -> Result<Vec<String>, FitError> {
    let mut said = Vec::new();
    for (number, residual) in residuals.iter().enumerate().filter(|(_, residual)| !residual.is_within()) {
        let figure = &fitted.posterior.figures.figures[number];
        let off = (residual.simulated / residual.stated).ln().abs() / super::posterior::deviation(figure);
        if off < CONTRADICTS {
            continue;
        }
        let without = Posterior { without: Some(number), ..fitted.posterior.clone() };
        let modes = without.modes(Some(&fitted.modes[0].at));
        let value = without.predicted(&drives(&without, &modes[0].at)?, number);
        said.push(format!(
            "line {}: {}: {} is stated; no usual drive does it together with the other figures, which make it {}",
            residual.line,
            residual.name,
            residual.unit.shown(residual.stated),
            residual.unit.shown(value)
        ));
    }
    Ok(said)
}

/// Other modes that explain the figures as well, simulated.
fn others(fitted: &Fitted<'_>, size: usize, runs: &dyn Runs) -> Result<Vec<Other>, FitError> {
    let posterior = &fitted.posterior;
    let best = drives(posterior, &fitted.modes[0].at)?;
    let is_equal = |mode: &&Mode| mode.cost - fitted.modes[0].cost < EQUAL;
    let mut found = Vec::new();
    for mode in fitted.modes.iter().skip(1).filter(is_equal).take(1) {
        let drives = drives(posterior, &mode.at)?;
        let all: Vec<usize> = (0..posterior.figures.figures.len()).collect();
        let simulated = simulate(posterior, &drives, &all, "the other design", runs)?;
        let simulated = simulated.iter().map(|figure| figure.value).collect();
        let differs = differences(posterior.model, &best[size], &drives[size]);
        let text = text::whole(posterior.model, &drives[size], size, &|_| String::new());
        found.push(Other { differs, simulated, text });
    }
    Ok(found)
}

fn differences(model: &Model, a: &Values, b: &Values) -> String {
    let with = KNOBS.iter().filter(|(knob, ..)| model.priors.of(*knob).is_some());
    let differs = |&&(knob, ..): &&(Knob, &str, &str)| (a.of(knob) / b.of(knob) - 1.0).abs() > 0.1;
    let said = with.filter(differs).map(|&(knob, name, _)| {
        let prior = model.number(knob).0;
        format!("{name} {} for {}", shown(prior, knob, b.of(knob)), shown(prior, knob, a.of(knob)))
    });
    let dies = (a.dies != b.dies).then(|| format!("{} dies for {}", b.dies, a.dies));
    dies.into_iter().chain(said).collect::<Vec<_>>().join(", ")
}

/// The design file, with what is known of each number.
fn file(model: &Model, figures: &Figures, best: &Values, size: usize, numbers: &[Number]) -> String {
    let comment = |knob: Knob| {
        let Some(number) = numbers.iter().find(|number| number.knob == knob) else { return String::new() };
        let [_, interval, usual] = &number.shown;
        let what = match knob {
            Knob::Die => "a die of ",
            Knob::Reserve => "share of blocks without data: ",
            Knob::Extra => "flash over the power of two, or the capacity: ",
            Knob::Link => "of the line's rate: ",
            Knob::LinkWrite => "of the rate of reads: ",
            Knob::CommandWrite => "of that of a read: ",
            _ => "",
        };
        match number.is_prior_only {
            true => format!("prior only: no figure depends on it; usual: {what}{usual}"),
            false => format!("{what}{interval}"),
        }
    };
    let body = text::whole(model, best, size, &comment);
    let head = format!(
        "# {}, fitted to {} figures ({}). Behind each number: where nine of ten drives that fit have it.\n",
        figures.drive.name,
        figures.figures.len(),
        if figures.drive.source.is_empty() { "no source given" } else { &figures.drive.source },
    );
    head + &body
}
