//! The model of a drive: from the variables of a search to the numbers of a design, its closed forms and its runs.
//!
//! Siblings share flash and controller. Each has its own dies, and may differ a little in what a prior says siblings differ in.
//!
//! | file | what |
//! |---|---|
//! | [`forms`] | closed forms: what a figure is, in a microsecond |
//! | [`text`](mod@text) | a design file |
//! | [`twin`] | a figure as a run of a smaller drive that measures the same |

pub mod forms;
pub mod text;
pub mod twin;

use crate::figures::amount::Unit;
use crate::figures::{Drive, Figures, nominal};
use crate::priors::{KNOBS, Knob, Prior, Priors, Shape, priors};
use nvlab_design::part::Part;
use nvlab_design::sheets::Sheet;
use nvlab_design::toml_reader::FileError;

/// The numbers of a drive of one capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    numbers: [f64; KNOBS.len()],
    /// Bytes for the host.
    pub capacity_bytes: u64,
    /// Dies.
    pub dies: u32,
    /// Channels; a divisor of the dies.
    pub channels: u32,
    /// Bits of a cell.
    pub bits: u32,
    /// Bytes a second of the link, before headers.
    pub line_rate: f64,
}

impl Values {
    /// A number; 0 if the drive has none.
    pub fn of(&self, knob: Knob) -> f64 {
        self.numbers[knob as usize]
    }

    /// Bytes of all blocks that hold data.
    pub(crate) fn raw_bytes(&self) -> f64 {
        f64::from(self.dies) * self.of(Knob::Die) * (1.0 - self.of(Knob::Reserve))
    }

    /// Dies that program at once.
    pub(crate) fn programming(&self) -> f64 {
        f64::from(self.dies).min(self.of(Knob::Programs).round().max(1.0))
    }

    /// Bytes a second that the link carries.
    pub(crate) fn link_rate(&self) -> f64 {
        self.line_rate * self.of(Knob::Link)
    }

    /// Bytes a second that the link carries to the drive.
    pub(crate) fn link_to_drive(&self) -> f64 {
        self.link_rate() * self.of(Knob::LinkWrite).min(1.0)
    }

    /// Time for which a write occupies the front end.
    pub(crate) fn write_command(&self) -> f64 {
        self.of(Knob::Command) * self.of(Knob::CommandWrite).max(1.0)
    }

    /// True if the capacity leaves some spare space.
    fn is_feasible(&self) -> bool {
        self.raw_bytes() > SPARE_LEAST * self.capacity_bytes as f64
    }
}

/// Blocks that hold data, over the capacity, at least: what a cleaner cannot do without.
const SPARE_LEAST: f64 = 1.02;
/// A number of channels is a divisor of the dies, at most so many times what was drawn: 18 dies have 9, not 6.
const CHANNELS_MORE: f64 = 1.3;

/// A variable of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The number it is of.
    pub knob: Knob,
    /// The sibling it is of; `None`: all.
    pub size: Option<usize>,
    /// It is how far the sibling is from the others.
    pub is_apart: bool,
}

/// The pages of a part, which are not searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pages {
    /// Bytes of a page of one plane.
    pub bytes: u64,
    /// Pages of a block.
    pub count: u32,
}

/// What is searched.
#[derive(Clone, Debug)]
pub struct Model {
    /// The drive.
    pub drive: Drive,
    /// What is usual.
    pub priors: Priors,
    /// The variables.
    pub variables: Vec<Variable>,
    /// Pages of the flash.
    pub pages: Pages,
    /// Its capacities are sold: see [`Drive::is_sold`].
    is_sold: bool,
    /// Every number as it usually is.
    usual: [f64; KNOBS.len()],
}

impl Model {
    /// The model of a drive.
    pub fn new(figures: &Figures) -> Result<Model, FileError> {
        let drive = figures.drive.clone();
        let priors = priors(&drive, &figures.known)?;
        let (sizes, is_sold) = (drive.capacities.len(), drive.is_sold());
        let mut variables = Vec::new();
        for (knob, ..) in KNOBS {
            let Some(prior) = priors.of(knob).filter(|prior| !prior.is_fixed()) else { continue };
            let variable = |size, is_apart| Variable { knob, size, is_apart };
            match knob {
                Knob::Extra if is_sold && drive.dies.iter().all(Option::is_some) => {}
                // Siblings may be made of other dies.
                Knob::Die | Knob::Extra => {
                    variables.extend((0..sizes).map(|size| variable(Some(size), false)))
                }
                _ => {
                    variables.push(variable(None, false));
                    if sizes > 1 && prior.apart > 0.0 {
                        variables.extend((0..sizes).map(|size| variable(Some(size), true)));
                    }
                }
            }
        }
        let sheet = Sheet::load(&priors.part).map_err(|errors| errors.0[0].clone())?;
        let Part::Nand(flash) = &sheet.part else {
            return Err(FileError::new(format!("{} is not NAND", priors.part)));
        };
        let pages = Pages { bytes: flash.page_bytes, count: flash.pages_per_block };
        let usual = KNOBS.map(|(knob, ..)| priors.of(knob).map_or(0.0, |prior| prior.value(0.0)));
        Ok(Model { drive, priors, variables, pages, is_sold, usual })
    }

    /// The numbers of a sibling; `None` if no such drive can be.
    pub fn values(&self, at: &[f64], size: usize) -> Option<Values> {
        let mut numbers = self.usual;
        for (variable, z) in self.variables.iter().zip(at) {
            if variable.size.is_some_and(|of| of != size) {
                continue;
            }
            let prior = self.priors.of(variable.knob).expect("a variable has a prior");
            let number = &mut numbers[variable.knob as usize];
            *number = match variable.is_apart {
                true => *number * (z * prior.apart).exp(),
                false => prior.value(*z),
            };
        }
        let capacity_bytes = self.drive.capacities[size];
        // Of a capacity that is sold the power of two is known; of any other, how much flash there is for it.
        let of = if self.is_sold { nominal(capacity_bytes) } else { capacity_bytes as f64 };
        let flash = of * numbers[Knob::Extra as usize];
        let dies = self.drive.dies[size];
        let dies = dies.unwrap_or(((flash / numbers[Knob::Die as usize]).round() as u32).max(1));
        if !self.is_sold {
            numbers[Knob::Die as usize] = flash / f64::from(dies);
        }
        let most = numbers[Knob::Channels as usize] * CHANNELS_MORE;
        let channels = (1..=dies).rev().find(|n| dies.is_multiple_of(*n) && f64::from(*n) <= most)?;
        let values = Values {
            numbers,
            capacity_bytes,
            dies,
            channels,
            bits: self.drive.cells.bits(),
            line_rate: self.drive.link.bytes_per_s(),
        };
        values.is_feasible().then_some(values)
    }

    /// The prior of a number, its name and key.
    pub(crate) fn number(&self, knob: Knob) -> (&Prior, &'static str, &'static str) {
        let (_, name, key) = KNOBS[knob as usize];
        (self.priors.of(knob).expect("the drive has it"), name, key)
    }

    /// Erase blocks of a plane that hold data.
    pub(crate) fn blocks(&self, values: &Values) -> u32 {
        let block = values.of(Knob::Planes) * f64::from(self.pages.count) * self.pages.bytes as f64;
        (values.of(Knob::Die) * (1.0 - values.of(Knob::Reserve)) / block).round() as u32
    }
}

/// A value of a number for people.
pub(crate) fn shown(prior: &Prior, knob: Knob, value: f64) -> String {
    match (knob, &prior.shape) {
        (Knob::Independent, _) => (if value > 0.5 { "independent" } else { "multi" }).to_string(),
        (Knob::Die, _) => nvlab_units::quantity::display_bytes(value as u64),
        (_, Shape::One(_)) if prior.unit == Unit::Count => nvlab_run::number::three(value),
        (Knob::Programs | Knob::Cycles, _) => format!("{}", value.round()),
        _ => prior.unit.shown(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dies_of_any_size_make_a_capacity_that_is_not_sold() {
        let drive = |capacity: &str| {
            let text = crate::figures::template("d").replace("\"1 TB\"", &format!("\"{capacity}\""));
            let figures = Figures::read("d.toml", &text).unwrap();
            let is_sold = figures.drive.is_sold();
            (Model::new(&figures).unwrap(), is_sold)
        };
        for sold in ["1 TB", "960 GB", "3.84 TB", "512 GB", "800 GB", "250 GB"] {
            assert!(drive(sold).1, "{sold}");
        }
        let (model, is_sold) = drive("94.1 GB");
        assert!(!is_sold);
        for z in [-0.3, 0.0, 1.1] {
            let at: Vec<f64> = model.variables.iter().map(|_| z).collect();
            let values = model.values(&at, 0).unwrap();
            let ratio = f64::from(values.dies) * values.of(Knob::Die) / 94.1e9;
            assert!((ratio / values.of(Knob::Extra) - 1.0).abs() < 1e-9, "{values:?}");
        }
    }

    #[test]
    fn flash_is_sold_in_powers_of_two() {
        for (gb, gib) in [(250, 256_u64), (480, 512), (960, 1024), (1000, 1024), (3840, 4096), (7680, 8192)] {
            assert_eq!(nominal(gb * 1_000_000_000), (gib << 30) as f64, "{gb} GB");
        }
    }
}
