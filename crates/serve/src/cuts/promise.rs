//! The allowed contents of every unit after a power cut: the newest version that was flushed, or a newer one; never a
//! torn one.
//!
//! A device with atoms smaller than units (words of a memory) may mix the two newest versions of a unit, atom by atom, where
//! the interrupted operation wrote it. If it acknowledges writes before they are in the cells, and loses those, it may mix all
//! versions since the flush.
//!
//! If trims are hints, a trimmed unit may have any version that it ever had, until it is written and flushed again: a controller
//! that does not record trims may erase the newest copy and find an older one in a block that it has not erased yet.

use super::journal::{Entry, Journal, Kind};
use super::moment::Moment;
use super::recovered::Recovered;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};

/// The unit in which a device writes atomically, if smaller than a mapping unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Atoms {
    /// Size of one, and its alignment.
    pub bytes: usize,
    /// Whether a cut may tear every write since the flush, and not only the one in progress.
    pub posted: bool,
}

/// The versions that each touched unit may have.
#[derive(Clone, Debug)]
pub struct Promise {
    unit_bytes: u64,
    trims_last: bool,
    atoms: Option<Atoms>,
    units: HashMap<u64, Unit>,
    /// Units changed since the last flush.
    changed: Vec<u64>,
    /// Operations begun, and how many of them were answered.
    begun: u64,
    answered: u64,
}

#[derive(Clone, Debug)]
struct Unit {
    now: Vec<u8>,
    /// Earlier contents that atoms may still have.
    before: Vec<Vec<u8>>,
    /// Every version, as its operation and a hash of its contents.
    versions: Vec<(u64, u64)>,
    /// The oldest version that may be found.
    durable: usize,
    /// The newest version is a trim.
    trimmed: bool,
}

/// Units that hold neither the version that was durable nor a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// First byte of one of them.
    pub offset: u64,
    /// The operation whose version of the unit was durable.
    pub durable: u64,
    /// The operation whose version was found; `None`: no version of the unit.
    pub found: Option<u64>,
    /// How many units of the device are broken.
    pub units: u64,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = |number| match number {
            0 => "its initial contents".to_string(),
            number => format!("the version of operation {number}"),
        };
        write!(f, "byte {}: {} was durable, ", self.offset, version(self.durable))?;
        match self.found {
            Some(found) => write!(f, "{} was read back", version(found))?,
            None => f.write_str("data that was never written was read back")?,
        }
        match self.units {
            1 => Ok(()),
            units => write!(f, " ({units} such units)"),
        }
    }
}

impl Promise {
    /// The promise of a new device. `atoms`: what it writes atomically, if less than a unit.
    pub fn new(unit_bytes: u32, trims_last: bool, atoms: Option<Atoms>) -> Promise {
        let (units, changed) = (HashMap::new(), Vec::new());
        Promise { unit_bytes: unit_bytes as u64, trims_last, atoms, units, changed, begun: 0, answered: 0 }
    }

    /// Advances to a moment, which must not be before the last one.
    pub fn advance(&mut self, journal: &Journal, moment: &Moment) {
        let answered = moment.answered();
        assert!(answered >= self.answered, "the promise has gone past operation {answered}");
        while self.begun < moment.operation {
            self.answer(journal, self.begun);
            self.begun += 1;
            let entry = journal.entry(self.begun);
            self.begin(self.begun, entry, journal.data(entry));
        }
        self.answer(journal, answered);
    }

    /// Everything up to `number` was answered.
    fn answer(&mut self, journal: &Journal, number: u64) {
        while self.answered < number {
            self.answered += 1;
            if journal.entry(self.answered).kind == Kind::Flush {
                self.flushed();
            }
        }
    }

    fn flushed(&mut self) {
        for unit in std::mem::take(&mut self.changed) {
            let unit = self.units.get_mut(&unit).expect("it was changed");
            if self.trims_last || !unit.trimmed {
                unit.durable = unit.versions.len() - 1;
                unit.before.clear();
            }
        }
    }

    fn begin(&mut self, number: u64, entry: &Entry, data: &[u8]) {
        let (unit_bytes, end) = (self.unit_bytes, entry.offset + entry.bytes as u64);
        let units = match entry.kind {
            Kind::Flush => return,
            Kind::Write => entry.offset / unit_bytes..end.div_ceil(unit_bytes),
            Kind::Trim => entry.offset.div_ceil(unit_bytes)..end / unit_bytes,
        };
        for index in units {
            let unit = self.units.entry(index).or_insert_with(|| Unit::new(unit_bytes));
            unit.trimmed = entry.kind == Kind::Trim;
            if unit.trimmed && !self.trims_last {
                unit.durable = 0;
            }
            if let Some(atoms) = self.atoms {
                if !atoms.posted {
                    unit.before.clear();
                }
                unit.before.push(unit.now.clone());
            }
            if unit.trimmed {
                unit.now.fill(0);
            } else {
                let (start, from) = (index * unit_bytes, entry.offset.max(index * unit_bytes));
                let to = end.min(start + unit_bytes);
                let part = &data[(from - entry.offset) as usize..(to - entry.offset) as usize];
                unit.now[(from - start) as usize..(to - start) as usize].copy_from_slice(part);
            }
            unit.versions.push((number, hash(&unit.now)));
            self.changed.push(index);
        }
    }

    /// Reads every touched unit. `None`: the promise was kept; otherwise the first unit where it was not.
    pub fn check(&self, recovered: &mut Recovered) -> Result<Option<Broken>, String> {
        let mut touched: Vec<_> = self.units.iter().collect();
        touched.sort_unstable_by_key(|(index, _)| **index);
        let mut bytes = vec![0; self.unit_bytes as usize];
        let mut broken: Option<Broken> = None;
        for (&index, unit) in touched {
            let offset = index * self.unit_bytes;
            recovered.read(offset, &mut bytes)?;
            let found = hash(&bytes);
            if unit.versions[unit.durable..].iter().any(|&(_, version)| version == found)
                || self.may_be_mixed(unit, &bytes)
            {
                continue;
            }
            let older = unit.versions.iter().rev().find(|&&(_, version)| version == found);
            let first = Broken {
                offset,
                durable: unit.versions[unit.durable].0,
                found: older.map(|&(number, _)| number),
                units: 0,
            };
            broken.get_or_insert(first).units += 1;
        }
        Ok(broken)
    }
}

impl Promise {
    /// True if an operation that a cut may tear wrote this unit, and each of its atoms is old or new.
    fn may_be_mixed(&self, unit: &Unit, found: &[u8]) -> bool {
        let newest = unit.versions.last().expect("it begins with one").0;
        let Some(Atoms { bytes, posted }) = self.atoms else { return false };
        if !posted && newest <= self.answered {
            return false;
        }
        (0..found.len()).step_by(bytes).all(|from| {
            let atom = from..(from + bytes).min(found.len());
            let mut contents = std::iter::once(&unit.now).chain(&unit.before);
            contents.any(|content| content[atom.clone()] == found[atom.clone()])
        })
    }
}

impl Unit {
    fn new(bytes: u64) -> Unit {
        let now = vec![0; bytes as usize];
        Unit { versions: vec![(0, hash(&now))], now, before: Vec::new(), durable: 0, trimmed: false }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
