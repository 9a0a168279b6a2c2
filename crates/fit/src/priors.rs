//! What is usual before anything is known of a drive: an interval, or a choice, for every number that a design of it leaves
//! open. The intervals stand in `parts/priors`, by generation of the flash, by class and by link, each with its source.
//!
//! A number is drawn by a standard normal variable: an interval is what nine of ten lie in, of a log-normal distribution; a
//! choice takes the values in their order, each as often as its weight says.

use crate::figures::amount::{Amount, Unit, amount};
use crate::figures::{Cells, Class, Drive, Known, Link};
use crate::search::normal;
use nvlab_design::toml_reader::{FileError, Source, Table};
use std::sync::Arc;

/// The numbers that a design of a drive leaves open, in the order of the variables of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// Sensing a page.
    Read,
    /// One program operation: all planes, all bits.
    Program,
    /// An erase.
    Erase,
    /// Rated cycles.
    Cycles,
    /// Rate of a channel.
    Transfer,
    /// A program in SLC mode.
    SlcProgram,
    /// Bytes of a die.
    Die,
    /// Planes of a die.
    Planes,
    /// Whether planes read independently (1) or together (0).
    Independent,
    /// Channels, about.
    Channels,
    /// Flash over the power of two at or above the capacity.
    Extra,
    /// Share of the blocks that hold no data.
    Reserve,
    /// Dies that program at once.
    Programs,
    /// Bytes of the write buffer.
    Buffer,
    /// Share of the flash that may be in SLC mode.
    Cache,
    /// Share of the link's rate that is data.
    Link,
    /// The rate at which data to be written cross the link, over that of data read.
    LinkWrite,
    /// Time for which a request occupies the front end.
    Command,
    /// The same of a write, over that of a read.
    CommandWrite,
    /// The host's software.
    Host,
    /// The controller's own time for a request.
    Firmware,
}

/// Every number with its name in files and its key in a design.
pub(crate) const KNOBS: [(Knob, &str, &str); 21] = [
    (Knob::Read, "read", "media.flash.read"),
    (Knob::Program, "program", "media.flash.program"),
    (Knob::Erase, "erase", "media.flash.erase"),
    (Knob::Cycles, "cycles", "media.flash.endurance"),
    (Knob::Transfer, "transfer", "media.flash.transfer"),
    (Knob::SlcProgram, "slc program", "media.slc.program"),
    (Knob::Die, "die", "media.flash.blocks"),
    (Knob::Planes, "planes", "media.flash.planes"),
    (Knob::Independent, "independent", "media.flash.plane_reads"),
    (Knob::Channels, "channels", "array.channels"),
    (Knob::Extra, "extra", "array.ways"),
    (Knob::Reserve, "reserve", "ftl.spare"),
    (Knob::Programs, "programs", "array.programs"),
    (Knob::Buffer, "buffer", "ftl.buffer.size"),
    (Knob::Cache, "cache", "ftl.cache.size_max"),
    (Knob::Link, "link", "path.rate"),
    (Knob::LinkWrite, "link of writes", "path.rate_write"),
    (Knob::Command, "command", "path.command"),
    (Knob::CommandWrite, "command of writes", "path.command_write"),
    (Knob::Host, "host", "path.overhead.host"),
    (Knob::Firmware, "firmware", "ftl.overhead"),
];

/// How a number is distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Log-normal: nine of ten lie between.
    Between {
        /// 5 % lie below.
        low: f64,
        /// 5 % lie above.
        high: f64,
    },
    /// One of these, with its weight; the weights add up to 1.
    One(Vec<(f64, f64)>),
}

/// What is usual of a number.
#[derive(Clone, Debug)]
pub struct Prior {
    /// How it is distributed.
    pub shape: Shape,
    /// Its unit.
    pub unit: Unit,
    /// How far siblings may differ in it, as a standard deviation of its logarithm; 0: not at all.
    pub apart: f64,
    /// Where it comes from.
    pub source: String,
    /// It was said of this drive.
    pub is_known: bool,
}

/// The deviate that leaves 5 % above.
const NINE_OF_TEN: f64 = 1.644_853_627;

impl Prior {
    /// The value for a standard normal variable.
    pub(crate) fn value(&self, z: f64) -> f64 {
        match &self.shape {
            Shape::Between { low, high } if low == high => *low,
            Shape::Between { low, high } => {
                let (low, high) = (low.ln(), high.ln());
                (0.5 * (low + high) + z / NINE_OF_TEN * 0.5 * (high - low)).exp()
            }
            Shape::One(values) => {
                let mut left = normal::below(z);
                let reached = |(_, weight): &&(f64, f64)| {
                    left -= weight;
                    left <= 0.0
                };
                values.iter().find(reached).or(values.last()).map_or(0.0, |(value, _)| *value)
            }
        }
    }

    /// True if nothing is left open.
    pub(crate) fn is_fixed(&self) -> bool {
        match &self.shape {
            Shape::Between { low, high } => low == high,
            Shape::One(values) => values.len() == 1,
        }
    }

    /// The interval, or the least and the greatest of the choices.
    pub(crate) fn reach(&self) -> (f64, f64) {
        match &self.shape {
            Shape::Between { low, high } => (*low, *high),
            Shape::One(values) => values
                .iter()
                .fold((f64::INFINITY, 0.0), |(low, high), (value, _)| (low.min(*value), high.max(*value))),
        }
    }
}

/// The priors of a drive.
#[derive(Clone, Debug)]
pub struct Priors {
    /// The part that the flash is made of, but for the numbers that are left open.
    pub part: String,
    /// The same in SLC mode.
    pub slc: String,
    /// By the place of the [`Knob`] in `KNOBS`; `None`: the drive has no such number.
    all: Vec<Option<Prior>>,
}

impl Priors {
    /// What is usual of a number; `None`: drives of this class have none.
    pub fn of(&self, knob: Knob) -> Option<&Prior> {
        self.all[knob as usize].as_ref()
    }
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../parts/priors/", $name, ".toml")))),*];
    };
}
built_in!(
    "tlc-64l",
    "tlc-96l",
    "tlc-176l",
    "qlc-64l",
    "qlc-96l",
    "qlc-144l",
    "client",
    "data-centre",
    "pcie",
    "sata",
    "any-die"
);

/// The layers of flash whose generation is not known.
const LAYERS: f64 = 96.0;

/// The priors of a drive, narrowed to what is known of it.
pub fn priors(drive: &Drive, known: &[Known]) -> Result<Priors, FileError> {
    let flash = flash(drive.cells, drive.layers.map_or(LAYERS, f64::from))?;
    let class = match drive.class {
        Class::Client => "client",
        Class::DataCentre => "data-centre",
    };
    let link = match drive.link {
        Link::Sata => "sata",
        Link::Pcie { .. } => "pcie",
    };
    let mut priors =
        Priors { part: flash.needed("part")?, slc: flash.needed("slc")?, all: vec![None; KNOBS.len()] };
    let dies = if drive.is_sold() { None } else { Some(root("any-die")?) };
    for table in [flash, root(class)?, root(link)?].into_iter().chain(dies) {
        for number in table.tables("number")? {
            let (knob, prior) = number_of(&number)?;
            priors.all[knob as usize] = Some(prior);
        }
    }
    for known in known {
        narrow(&mut priors, known)?;
    }
    Ok(priors)
}

fn root(name: &str) -> Result<Table, FileError> {
    let (name, text) = FILES.iter().find(|(known, _)| *known == name).expect("the file is built in");
    Table::root(&Arc::new(Source::file(format!("parts/priors/{name}.toml"), *text)), "a file of priors")
}

fn flash(cells: Cells, layers: f64) -> Result<Table, FileError> {
    for (name, _) in FILES.iter().filter(|(name, _)| name.starts_with(&cells.name().to_lowercase())) {
        let table = root(name)?;
        let reach = table.range("layers")?.ok_or_else(|| table.error("flash needs `layers`"))?;
        if reach[0] <= layers && layers <= reach[1] {
            return Ok(table);
        }
    }
    Err(FileError::new(format!("there are no priors of {} with {layers} layers", cells.name()))
        .help("leave `layers` out, or take the nearest that there is: 48 to 400"))
}

fn number_of(table: &Table) -> Result<(Knob, Prior), FileError> {
    let name = table.needed("name")?;
    let knob = KNOBS.iter().find(|(_, known, _)| *known == name).map(|(knob, ..)| *knob);
    let knob = knob.ok_or_else(|| table.wrong("name", "is no number of a design that is fitted"))?;
    let read = |key: &'static str, text: &str| {
        amount(text).ok_or_else(|| table.wrong(key, "is a value with its unit, as a text"))
    };
    let (shape, unit) = match table.texts("values")? {
        Some(texts) => {
            let values: Vec<Amount> =
                texts.iter().map(|text| read("values", text)).collect::<Result<_, _>>()?;
            let weights = weights(table, values.len())?;
            let pairs = values.iter().map(|amount| amount.value).zip(weights).collect();
            (Shape::One(pairs), values[0].unit)
        }
        None => {
            let (low, high) = (read("low", &table.needed("low")?)?, read("high", &table.needed("high")?)?);
            (Shape::Between { low: low.value, high: high.value }, low.unit)
        }
    };
    let apart =
        table.text("apart")?.map_or(Ok(0.0), |text| read("apart", &text).map(|amount| amount.value))?;
    table.needed("basis")?;
    let source = table.needed("source")?;
    table.end()?;
    Ok((knob, Prior { shape, unit, apart, source, is_known: false }))
}

fn weights(table: &Table, count: usize) -> Result<Vec<f64>, FileError> {
    let wrong = || table.wrong("weights", "is a list of numbers, one for each value, that add up to 1");
    let items = table.get("weights").and_then(|node| node.value.items()).ok_or_else(wrong)?;
    let read = items.iter().map(|item| item.value.scalar()?.parse::<f64>().ok());
    let weights: Vec<f64> = read.collect::<Option<_>>().ok_or_else(wrong)?;
    let sum: f64 = weights.iter().sum();
    if weights.len() == count && (sum - 1.0).abs() < 1e-6 { Ok(weights) } else { Err(wrong()) }
}

fn narrow(priors: &mut Priors, known: &Known) -> Result<(), FileError> {
    let refused = |problem: String| {
        let names: Vec<&str> = KNOBS.iter().map(|(_, name, _)| *name).collect();
        FileError::new(format!("[known] `{}`: {problem}", known.name))
            .help(format!("known: {}", names.join(", ")))
    };
    let knob = KNOBS.iter().find(|(_, name, _)| *name == known.name).map(|(knob, ..)| *knob);
    let knob = knob.ok_or_else(|| refused("there is no such number".to_string()))?;
    let prior = priors.all[knob as usize].as_mut();
    let prior = prior.ok_or_else(|| refused("such a drive has none".to_string()))?;
    if prior.unit != known.low.unit {
        return Err(refused("it has another unit".to_string()));
    }
    let (low, high) = (known.low.value, known.high.value);
    let inside = |value: f64| low * (1.0 - 1e-9) <= value && value <= high * (1.0 + 1e-9);
    prior.shape = match &prior.shape {
        Shape::Between { .. } => Shape::Between { low, high },
        Shape::One(_) if low == high => Shape::One(vec![(low, 1.0)]),
        Shape::One(values) => {
            let kept: Vec<(f64, f64)> = values.iter().copied().filter(|(value, _)| inside(*value)).collect();
            let sum: f64 = kept.iter().map(|(_, weight)| weight).sum();
            if kept.is_empty() {
                return Err(refused("none of the usual values lies between".to_string()));
            }
            Shape::One(kept.into_iter().map(|(value, weight)| (value, weight / sum)).collect())
        }
    };
    (prior.is_known, prior.source) = (true, "said of this drive".to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, template};

    #[test]
    fn every_drive_has_every_number() {
        for (cells, layers) in
            [("TLC", 64), ("TLC", 96), ("TLC", 232), ("QLC", 64), ("QLC", 96), ("QLC", 192)]
        {
            for (class, link) in [("client", "SATA"), ("data-centre", "PCIe 4.0 x4")] {
                let text = template("d")
                    .replace("PCIe 3.0 x4", link)
                    .replace("class     = \"client\"", &format!("class = \"{class}\""))
                    .replace("cells     = \"TLC\"", &format!("cells = \"{cells}\"\nlayers = {layers}"));
                let figures = Figures::read("d", &text).unwrap();
                let priors = priors(&figures.drive, &[]).unwrap();
                for (knob, name, _) in KNOBS {
                    let is_none = knob == Knob::Cache && class == "data-centre";
                    assert_eq!(priors.of(knob).is_none(), is_none, "{name} {cells} {layers} {class} {link}");
                }
                assert!(nvlab_design::sheets::BUILT_IN.iter().any(|(name, _)| *name == priors.part));
                assert!(nvlab_design::sheets::BUILT_IN.iter().any(|(name, _)| *name == priors.slc));
            }
        }
    }

    #[test]
    fn a_normal_variable_becomes_a_number() {
        let between = |low, high| Prior {
            shape: Shape::Between { low, high },
            unit: Unit::Seconds,
            apart: 0.0,
            source: String::new(),
            is_known: false,
        };
        let prior = between(10.0, 40.0);
        assert!((prior.value(0.0) - 20.0).abs() < 1e-9);
        assert!((prior.value(NINE_OF_TEN) - 40.0).abs() < 1e-6);
        let choice = Prior { shape: Shape::One(vec![(1.0, 0.25), (2.0, 0.75)]), ..prior };
        assert_eq!([-1.0, -0.5, 0.0, 3.0].map(|z| choice.value(z)), [1.0, 2.0, 2.0, 2.0]);
    }
}
