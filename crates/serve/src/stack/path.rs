//! Paths from a program to a device as stages, each a difference of layers, and their file.

mod plans;

pub use plans::Group;

use super::bench::{Measured, StackOptions};
use super::layer::Layer;
use super::sampling::{Part, Rounds, Stat};
use Part::{Away, Client, Server, Wait, Waited, Wall};
use nvlab_units::quantity::display_bytes;
use nvlab_workload::Op;
use plans::{Completion, PLANS, Plan, StagePlan, Term};
use std::fmt::Write as _;
use std::str::FromStr;

/// A path that can be taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path(&'static Plan);

impl Path {
    /// Every path that can be taken apart.
    pub fn all() -> impl Iterator<Item = Path> {
        PLANS.iter().map(Path)
    }
    /// Its word on the command line.
    pub fn key(self) -> &'static str {
        self.0.key
    }
    /// A line that says which calls and layers it has.
    pub fn about(self) -> &'static str {
        self.0.about
    }

    /// True if its last layer makes data durable: then it has no reads.
    pub fn writes_only(self) -> bool {
        !self.0.whole.has(Op::Read)
    }

    /// Takes it apart; the layer that is missing if one was not measured.
    pub fn budget(self, measured: &Measured, op: Op) -> Result<Budget, Layer> {
        let stat = |(layer, part): Term, rounds: Rounds| -> Result<Stat, Layer> {
            Ok(measured.find(layer, op).ok_or(layer)?.stat(part, rounds))
        };
        let difference = |plus: &[Term], minus: &[Term]| -> Result<(f64, f64), Layer> {
            let (mut ns, mut squares) = (0.0, 0.0);
            for (terms, sign) in [(plus, 1.0), (minus, -1.0)] {
                for term in terms {
                    let stat = stat(*term, Rounds::Odd)?;
                    ns += sign * stat.median;
                    squares += stat.error.powi(2);
                }
            }
            Ok((ns, squares.sqrt()))
        };
        let stages = self.0.stages.iter().map(|plan| {
            let (ns, error) = difference(plan.plus, plan.minus)?;
            let basis = basis(plan);
            Ok(Stage { name: plan.name, group: plan.group, ns, error, basis })
        });
        let (device, device_error) = difference(self.0.device, &[])?;
        Ok(Budget {
            path: self,
            op,
            stages: stages.collect::<Result<_, Layer>>()?,
            device: Stat { median: device, error: device_error, spread: 0.0 },
            whole: stat((self.0.whole, Wall), Rounds::Even)?,
        })
    }
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Path, String> {
        let found = PLANS.iter().find(|plan| plan.key == text).map(Path);
        found.ok_or_else(|| {
            let keys: Vec<&str> = PLANS.iter().map(|plan| plan.key).collect();
            format!("write one of {}", keys.join(", "))
        })
    }
}

fn term(&(layer, part): &Term) -> String {
    let of = match part {
        Wall => "time",
        Client => "processor time of the program",
        Server => "processor time of others",
        Waited => "processor time of others that the program waited for",
        Wait => "time without a processor",
        Away => "time the program is without a processor",
    };
    format!("{of}, {layer}")
}

fn basis(plan: &StagePlan) -> String {
    let terms = |terms: &[Term]| terms.iter().map(term).collect::<Vec<_>>().join(" and ");
    match plan.minus {
        [] => terms(plan.plus),
        minus => format!("{} minus {}", terms(plan.plus), terms(minus)),
    }
}

/// One stage of a path, computed as a difference of layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// What it does, in a few words.
    pub name: &'static str,
    /// Its kind, which plots colour it by.
    pub group: Group,
    /// Nanoseconds a request; a difference may be negative.
    pub ns: f64,
    /// Standard error of `ns`.
    pub error: f64,
    /// The difference that `ns` is, in words.
    pub basis: String,
}

impl Stage {
    /// No different from zero within two standard errors.
    pub fn is_noise(&self) -> bool {
        self.ns.abs() <= 2.0 * self.error
    }

    /// Time passes without work of a processor.
    pub fn waits(&self) -> bool {
        self.group == Group::Waiting
    }
}

/// A path as stages, and its whole as measured in other rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// What was taken apart.
    pub path: Path,
    /// Whether requests read or write.
    pub op: Op,
    /// With `device` they add up to `whole`, but for noise.
    pub stages: Vec<Stage>,
    /// The copy in memory, in whose place a modelled device is.
    pub device: Stat,
    /// The whole path, on the wall clock.
    pub whole: Stat,
}

/// How far the stages may miss the whole.
const WITHIN: f64 = 0.1;
/// A stage that is negative by no more than this share of the whole says nothing: the clocks are no better.
const NEGATIVE: f64 = 0.01;

impl Budget {
    /// Nanoseconds of the stages and the device.
    pub fn sum(&self) -> f64 {
        self.stages.iter().map(|stage| stage.ns).sum::<f64>() + self.device.median
    }

    /// How far the sum is from the whole, as a share of it.
    pub fn miss(&self) -> f64 {
        (self.sum() - self.whole.median) / self.whole.median
    }

    /// Why the stages do not stand for the path, if they do not: their sum is too far from the whole, or one is negative by
    /// more than its error.
    pub fn fault(&self) -> Option<String> {
        let negative = |stage: &&Stage| stage.ns < -NEGATIVE * self.whole.median && !stage.is_noise();
        if let Some(stage) = self.stages.iter().find(negative) {
            return Some(format!(
                "the stage \"{}\" is negative ({:.0} ns, standard error {:.0} ns)",
                stage.name, stage.ns, stage.error
            ));
        }
        (self.miss().abs() > WITHIN).then(|| {
            format!(
                "the stages add up to {:.0} ns, the whole path takes {:.0} ns: {:+.1} %, more than {:.0} %",
                self.sum(),
                self.whole.median,
                100.0 * self.miss(),
                100.0 * WITHIN
            )
        })
    }

    /// The stages as a file that a design names in `path.stages`. What a modelled device takes the place of is not among them;
    /// a negative stage is written as zero, with what it was. `larger`: the same path with requests of more bytes, which shows
    /// how much processor time each 4 KiB takes. `cite`: on what machine and when.
    pub fn toml(&self, cite: &str, options: &StackOptions, larger: Option<(&Budget, u32)>) -> String {
        let completion = match self.path.0.completion {
            Completion::Interrupt => "interrupt",
            Completion::Spin => "spin",
        };
        let mut text = format!(
            "schema = 1\n\n[stack]\nname       = \"measured\"\nabout      = {}\ncite       = {}\ncompletion = \"{completion}\"\n",
            quoted(&format!("{} of {}: {}", self.op, display_bytes(options.bytes as u64), self.path.about())),
            quoted(cite)
        );
        for (at, stage) in self.stages.iter().enumerate() {
            let larger = larger.map(|(budget, bytes)| (&budget.stages[at], bytes));
            text += &stage.toml(options, larger);
        }
        text
    }
}

impl Stage {
    /// Nanoseconds of processor time that each 4 KiB takes more, from requests of two sizes; `None` if that is no more than its
    /// error.
    fn per_4k(&self, bytes: u32, larger: (&Stage, u32)) -> Option<f64> {
        let (stage, more) = larger;
        let pieces = |bytes: u32| bytes as f64 / 4096.0;
        let steps = pieces(more) - pieces(bytes);
        let slope = (stage.ns - self.ns) / steps;
        let error = (stage.error.powi(2) + self.error.powi(2)).sqrt() / steps;
        let fits = slope > 2.0 * error && slope * pieces(bytes) <= self.ns;
        (fits && !self.waits()).then_some(slope)
    }

    fn toml(&self, options: &StackOptions, larger: Option<(&Stage, u32)>) -> String {
        let when = if self.waits() { "complete" } else { "submit" };
        let mut basis = format!(
            "measured: {}; medians of {} slices, standard error {:.1} ns",
            self.basis,
            options.rounds.div_ceil(2),
            self.error
        );
        if self.ns < 0.0 {
            let _ = write!(basis, "; {:.1} ns, written as 0", self.ns);
        }
        let per_4k = larger.and_then(|larger| self.per_4k(options.bytes, larger));
        let fixed = self.ns - per_4k.map_or(0.0, |slope| slope * options.bytes as f64 / 4096.0);
        let ns = format!("{:.1} ns", fixed.max(0.0));
        let (cpu, wait) = if self.waits() { ("0 ns", ns.as_str()) } else { (ns.as_str(), "0 ns") };
        let mut text =
            format!("\n[[stage]]\nname   = {}\nwhen   = \"{when}\"\ncpu    = \"{cpu}\"\n", quoted(self.name));
        if let Some(slope) = per_4k {
            let _ = writeln!(text, "per_4k = \"{slope:.1} ns\"");
        }
        // Behind a program are the loop driver and its worker: what lies above them is in a recording of the requests.
        if matches!(self.group, Group::Entry | Group::Files) {
            text += "above_driver = true\n";
        }
        text + &format!("wait   = \"{wait}\"\nbasis  = {}\n", quoted(&basis))
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests;
