//! Stacks: files of stages, built in or in the folder of a design, as `path.stages` names them.
//!
//! ```toml
//! schema = 1
//! [stack]
//! name       = "moneta-baseline"
//! about      = "..."             cite = "..."       # or machine, kernel and date of a measurement
//! cores      = 8                 # optional: as many as threads
//! completion = "interrupt"       # or spin
//! spin_below = "4 KiB"           # optional, with spin: larger requests are completed by an interrupt
//! [[stage]]
//! name  = "system call"
//! when  = "submit"               # or complete
//! cpu   = "0.4 us"               # processor time
//! per_4k = "0.1 us"              # optional: more of it for each 4 KiB
//! wait  = "0 ns"                 # optional: time after it without a processor
//! lock  = "queue"                # optional: held for its processor time; stages that follow under it, too, hold it throughout
//! only  = "interrupt"            # optional: only for requests completed in this way
//! above_driver = true            # optional: recorded programs do not pass it, their computing contains it
//! spread = "30 ns"               # optional: standard deviation of the measurement; not simulated
//! basis = "measured: ..."        # or a source
//! ```

use super::library::Library;
use crate::toml_reader::datum::{Datum, Shape};
use crate::toml_reader::{FileError, Source, SourceKind, Table};
use nvlab_access::stack::{Completion, Stack, Stage, When};
use nvlab_units::Span;
use nvlab_units::quantity::{exact_bytes, exact_span};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// Every built-in stack: its name and its file.
        pub const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../stacks/", $name, ".toml")))),*];
    };
}
built_in!(
    "cxl-load-store",
    "io-uring",
    "io-uring-polled",
    "mmap",
    "moneta-atomic",
    "moneta-baseline",
    "moneta-direct",
    "moneta-file-system",
    "moneta-no-scheduler",
    "moneta-spin",
    "polled-nvme",
    "ram-disk",
    "user-space-queue",
);

const COMPLETIONS: &[(&str, &str); 2] = &[
    ("interrupt", "the thread releases its core, and an interrupt wakes it"),
    ("spin", "the thread keeps its core and polls"),
];
/// What they stand for.
const COMPLETION: [Completion; 2] = [Completion::Interrupt, Completion::Spin];
const SIDES: &[(&str, &str); 2] = &[("submit", "before the device"), ("complete", "after the device")];

/// The software above a device, with the sources of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// Its name.
    pub name: String,
    /// What it is; may be empty.
    pub about: String,
    /// Publication or measurement; may be empty.
    pub cite: String,
    /// What it does.
    pub stack: Stack,
    /// The basis of each stage.
    bases: Vec<String>,
}

const LIBRARY: Library =
    Library { what: "stack", prefix: "stacks/", suffix: ".toml", built_in: BUILT_IN, kind: SourceKind::File };

/// The source of a stack: a built-in name, or a file (with a `/` or `.toml`) relative to `beside`; otherwise what is wrong,
/// and help.
pub fn find(reference: &str, beside: Option<&Path>) -> Result<Arc<Source>, (String, String)> {
    match Library::is_file(reference) {
        true => LIBRARY.read(reference, beside).map_err(|problem| (problem, "nvlab explain stacks".into())),
        false => {
            LIBRARY.built_in(reference).map_err(|help| (format!("there is no stack `{reference}`"), help))
        }
    }
}

impl Software {
    /// Reads a stack; the first problem ends the reading.
    pub fn read(source: &Arc<Source>) -> Result<Software, FileError> {
        let root = Table::root(source, "a stack")?;
        if root.datum("schema", Shape::Count { min: 1, max: 1 })?.is_none() {
            return Err(root.error(format!("{}: a stack needs `schema = 1`", source.name)));
        }
        let head = root.needed_table("stack")?;
        let (name, about, cite) = (head.needed("name")?, head.text("about")?, head.text("cite")?);
        let cores = match head.datum("cores", Shape::Count { min: 1, max: 4096 })? {
            Some(Datum::Count(cores)) => Some(cores as u32),
            _ => None,
        };
        let completion = one_of(&head, "completion", COMPLETIONS, COMPLETION)?;
        let completion =
            completion.ok_or_else(|| head.error("[stack] needs `completion`: interrupt or spin"))?;
        let spin_below = match head.datum("spin_below", Shape::Size { min: 1, max: u64::MAX })? {
            Some(_) if completion != Completion::Spin => {
                return Err(head.wrong("spin_below", "does not apply without completion = \"spin\""));
            }
            Some(Datum::Size(bytes)) => Some(bytes),
            _ => None,
        };
        head.end()?;
        let mut stack = Stack { stages: Vec::new(), locks: Vec::new(), cores, completion, spin_below };
        let mut bases = Vec::new();
        for table in root.tables("stage")? {
            let (stage, basis) = stage(&table, &mut stack)?;
            stack.stages.push(stage);
            bases.push(basis);
        }
        root.end()?;
        if stack.stages.is_empty() {
            return Err(root.error(format!("{}: a stack needs a [[stage]]", source.name)));
        }
        let (about, cite) = (about.unwrap_or_default(), cite.unwrap_or_default());
        Ok(Software { name, about, cite, stack, bases })
    }

    /// Every value that can change a result, a line for each stage: part of the key of results. Names of stages are in it,
    /// since results name them.
    pub(super) fn canonical_text(&self) -> String {
        let Stack { stages, locks, cores, completion, spin_below } = &self.stack;
        let mut text = format!("path.stages: {} {cores:?} {completion:?} {spin_below:?}\n", self.name);
        for Stage { name, when, cpu, per_4k, wait, lock, only, above_driver } in stages {
            let lock = lock.map(|lock| &locks[lock]);
            let above = if *above_driver { " above the driver" } else { "" };
            let times = [cpu, per_4k, wait].map(|span| span.ps());
            let _ = writeln!(text, "{name}: {when:?} {times:?} {lock:?} {only:?}{above}");
        }
        text
    }

    /// For people, as comments of a design file: what it is and a line for each stage.
    pub(super) fn comments(&self) -> String {
        let stack = &self.stack;
        let mut text = format!("# stack {}: {}\n", self.name, self.about);
        if !self.cite.is_empty() {
            let _ = writeln!(text, "# source: {}", self.cite);
        }
        let spins = stack.spin_below.map_or(String::new(), |bytes| format!(" up to {}", exact_bytes(bytes)));
        let _ = writeln!(text, "# completion: {}{spins}", name_of(stack.completion));
        for (stage, basis) in stack.stages.iter().zip(&self.bases) {
            let side = if stage.when == When::Submit { "submit" } else { "complete" };
            let times = [("cpu", stage.cpu), ("per 4 KiB", stage.per_4k), ("wait", stage.wait)];
            let times = times.into_iter().filter(|(_, span)| *span > Span::ZERO);
            let mut parts: Vec<String> =
                times.map(|(what, span)| format!("{what} {}", exact_span(span))).collect();
            parts.extend(stage.lock.map(|lock| format!("lock {}", stack.locks[lock])));
            parts.extend(stage.only.map(|only| format!("only {}", name_of(only))));
            parts.extend(stage.above_driver.then(|| "above the driver".to_string()));
            let _ = writeln!(text, "# {side:8}  {:24}  {}  ({basis})", stage.name, parts.join(", "));
        }
        text
    }
}

fn stage(table: &Table, stack: &mut Stack) -> Result<(Stage, String), FileError> {
    let name = table.needed("name")?;
    let when = one_of(table, "when", SIDES, [When::Submit, When::Complete])?;
    let when = when.ok_or_else(|| table.error("[[stage]] needs `when`: submit or complete"))?;
    let time = |key| {
        Ok(match table.datum(key, Shape::Time)? {
            Some(Datum::Time(span)) => span,
            _ => Span::ZERO,
        })
    };
    let (cpu, per_4k, wait) = (time("cpu")?, time("per_4k")?, time("wait")?);
    time("spread")?;
    let lock = table.text("lock")?.map(|lock| match stack.locks.iter().position(|known| *known == lock) {
        Some(index) => index,
        None => {
            stack.locks.push(lock);
            stack.locks.len() - 1
        }
    });
    let only = one_of(table, "only", COMPLETIONS, COMPLETION)?;
    if only.is_some_and(|only| !stack.has(only)) {
        return Err(table.wrong("only", "is a completion this stack does not use: the stage would never run"));
    }
    let above_driver = table.flag("above_driver")?.unwrap_or(false);
    let basis = table.needed("basis")?;
    table.end()?;
    Ok((Stage { name, when, cpu, per_4k, wait, lock, only, above_driver }, basis))
}

/// What the name at a key stands for: the meanings are in the order of the names.
fn one_of<T>(
    table: &Table,
    key: &'static str,
    names: &'static [(&'static str, &'static str); 2],
    meanings: [T; 2],
) -> Result<Option<T>, FileError> {
    Ok(match table.datum(key, Shape::OneOf(names))? {
        Some(Datum::Text(text)) => {
            names.iter().zip(meanings).find(|((name, _), _)| *name == text).map(|(_, meaning)| meaning)
        }
        _ => None,
    })
}

fn name_of(completion: Completion) -> &'static str {
    match completion {
        Completion::Interrupt => "interrupt",
        Completion::Spin => "spin",
    }
}
