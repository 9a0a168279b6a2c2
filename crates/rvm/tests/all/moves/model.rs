//! A plain model of segments and of the regions mapped of them, and random moves on both: map, unmap, grow, commit, abort,
//! flush and truncate, while truncation runs in the background.

use super::Slow;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::disk::Disk;
use nvlab_rvm::{Error, Options, Part, Region, Result, Rvm, Segments};
use std::ops::Range;

pub const PAGE: usize = 4096;
/// Pages of a segment at first, and at most.
const PAGES: usize = 6;
const PAGES_MAX: usize = 8;
const SEGMENTS: [&str; 2] = ["one", "two"];
const REGIONS_MAX: usize = 4;

pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Both segments at their full length; what they do not have is zero.
pub type Bytes = [Vec<u8>; 2];

/// What may be found after recovery.
#[derive(Clone)]
pub struct Model {
    /// The states after each commit.
    pub states: Vec<Bytes>,
    /// The last one that was acknowledged as durable.
    pub acknowledged: usize,
    /// Lengths that were acknowledged: of what was mapped.
    pub lengths: [usize; 2],
}

impl Model {
    pub fn new() -> Model {
        let zeros = || vec![0; PAGES_MAX * PAGE];
        Model { states: vec![[zeros(), zeros()]], acknowledged: 0, lengths: [PAGES * PAGE; 2] }
    }

    fn acknowledge(&mut self) {
        self.acknowledged = self.states.len() - 1;
    }

    /// The state that was found; fails if it is none that may be.
    fn find(&self, found: &Bytes, what: &str) -> usize {
        match self.states.iter().rposition(|state| state == found) {
            Some(index) if index >= self.acknowledged => index,
            Some(index) => panic!("{what}: commit {index} was found, {} acknowledged", self.acknowledged),
            None => panic!("{what}: what was found is the state after no commit"),
        }
    }

    fn now(&self) -> &Bytes {
        self.states.last().expect("the first state")
    }
}

/// A mapped region: which segment, where, and its memory.
struct Mapped {
    segment: usize,
    range: Range<usize>,
    region: Region,
}

impl Mapped {
    /// Says what differs from the model.
    fn check(&self, model: &Model, what: &str) {
        let expected = &model.now()[self.segment][self.range.clone()];
        let stale = self.region.iter().zip(expected).position(|(found, expected)| found != expected);
        if let Some(at) = stale {
            let (segment, at) = (SEGMENTS[self.segment], self.range.start + at);
            panic!("{what}: byte {at} of {segment} does not hold what was committed");
        }
    }
}

pub fn fresh(log_bytes: usize) -> Disk {
    let disk = Disk::default();
    disk.create("log", log_bytes);
    SEGMENTS.iter().for_each(|name| disk.create(name, PAGES * PAGE));
    FileLog::create_on(disk.store("log"), "log".into()).unwrap();
    disk
}

/// The regions in use, and the moves on them.
struct Program<'a> {
    rvm: Rvm,
    regions: Vec<Mapped>,
    model: &'a mut Model,
    /// Of the segments now.
    lengths: [usize; 2],
    rng: Rng,
}

impl Program<'_> {
    /// Whether nobody but region `but` has any of these pages.
    fn is_free(&self, segment: usize, range: &Range<usize>, but: Option<usize>) -> bool {
        let mut others = self.regions.iter().enumerate().filter(|(index, _)| Some(*index) != but);
        others.all(|(_, other)| {
            other.segment != segment || other.range.end <= range.start || range.end <= other.range.start
        })
    }

    /// What is mapped can be committed, so the segment keeps that length.
    fn has(&mut self, segment: usize, bytes: usize) {
        self.lengths[segment] = self.lengths[segment].max(bytes);
        self.model.lengths[segment] = self.model.lengths[segment].max(bytes);
    }

    fn map(&mut self) -> Result<()> {
        let segment = self.rng.next(2);
        let pages = self.lengths[segment] / PAGE;
        let first = self.rng.next(pages);
        let count = 1 + self.rng.next((pages - first).min(3));
        let range = first * PAGE..(first + count) * PAGE;
        if self.regions.len() < REGIONS_MAX && self.is_free(segment, &range, None) {
            let region = self.rvm.map(SEGMENTS[segment], range.start as u64..range.end as u64)?;
            self.has(segment, range.end);
            let mapped = Mapped { segment, range, region };
            mapped.check(self.model, "after map");
            self.regions.push(mapped);
        }
        Ok(())
    }

    fn grow(&mut self, index: usize) -> Result<()> {
        let Mapped { segment, range, .. } = &self.regions[index];
        let (segment, range) = (*segment, range.start..range.end + (1 + self.rng.next(2)) * PAGE);
        if range.end <= PAGES_MAX * PAGE && self.is_free(segment, &range, Some(index)) {
            self.regions[index].region.grow((range.end - range.start) as u64)?;
            self.has(segment, range.end);
            self.regions[index].range = range;
            self.regions[index].check(self.model, "after grow");
        }
        Ok(())
    }

    /// Changes one region or two and commits, waiting or not, or does not.
    fn change(&mut self, index: usize, value: u8) -> Result<()> {
        let mut next = self.model.now().clone();
        let (rng, regions) = (&mut self.rng, &mut self.regions);
        let other = (rng.next(2) == 0).then(|| (index + 1) % regions.len()).filter(|other| *other != index);
        let places = [Some(index), other]
            .map(|place| place.map(|at| (regions[at].segment, regions[at].range.clone())));
        let mut parts: Vec<Option<&mut Region>> =
            regions.iter_mut().map(|mapped| Some(&mut mapped.region)).collect();
        let first = parts[index].take().expect("it is taken once");
        let mut transaction = first.begin();
        let mut included = vec![Part::FIRST];
        if let Some(other) = other {
            included.push(transaction.include(parts[other].take().expect("another one"))?);
        }
        for (part, (segment, range)) in included.into_iter().zip(places.into_iter().flatten()) {
            for _ in 0..1 + rng.next(3) {
                let bytes = 1 + rng.next(200);
                let at = rng.next(range.len() - bytes);
                transaction.set_range_in(part, at..at + bytes)?.fill(value);
                next[segment][range.start + at..range.start + at + bytes].fill(value);
            }
        }
        match rng.next(6) {
            0 => transaction.abort()?,
            1..3 => {
                self.model.states.push(next);
                transaction.commit_no_flush()?;
            }
            _ => {
                self.model.states.push(next);
                transaction.commit()?;
                self.model.acknowledge();
            }
        }
        Ok(())
    }

    fn step(&mut self, step: usize) -> Result<()> {
        let index = self.regions.len().checked_sub(1).map(|last| self.rng.next(last + 1));
        match (self.rng.next(20), index) {
            (0..4, _) | (_, None) => self.map()?,
            (4..7, Some(index)) => drop(self.regions.swap_remove(index)),
            (7..9, Some(index)) => self.grow(index)?,
            (9, _) => {
                self.rvm.truncate()?;
                self.model.acknowledge();
            }
            (10, _) => {
                self.rvm.flush()?;
                self.model.acknowledge();
            }
            (_, Some(index)) => self.change(index, 1 + (step % 250) as u8)?,
        }
        self.regions.iter().for_each(|mapped| mapped.check(self.model, "after a step"));
        Ok(())
    }
}

/// The segments and their lengths.
fn segments(disk: &Disk) -> Result<(Bytes, [usize; 2])> {
    let (mut all, mut lengths) = ([Vec::new(), Vec::new()], [0; 2]);
    for (number, name) in SEGMENTS.iter().enumerate() {
        let store = disk.open(name)?;
        lengths[number] = store.len().map_err(Error::io("measure", name))? as usize;
        all[number].resize(PAGES_MAX * PAGE, 0);
        let read = store.read(&mut all[number][..lengths[number]], 0);
        read.map_err(Error::io("read", name))?;
    }
    Ok((all, lengths))
}

/// A program of so many moves, which ends at the first error. Whatever it finds when it begins is durable.
pub fn run(disk: &Disk, model: &mut Model, seed: u64, steps: usize, options: Options) -> Result<()> {
    let log = FileLog::open_on(disk.store("log"), "log".into())?;
    let rvm = Rvm::open(log, Slow(disk.clone()), options)?;
    let (found, lengths) = segments(disk)?;
    let state = model.find(&found, "at the beginning of a program");
    model.states.truncate(state + 1);
    model.acknowledge();
    let mut program = Program { rvm, regions: Vec::new(), model, lengths, rng: Rng(seed) };
    for step in 0..steps {
        program.step(step)?;
    }
    program.rvm.flush()?;
    program.model.acknowledge();
    Ok(())
}

/// Recovers a disk, and compares it with the model.
pub fn check(disk: &Disk, model: &Model, options: Options, what: &str) {
    let log = FileLog::open_on(disk.store("log"), "log".into()).unwrap();
    drop(Rvm::open(log, disk.clone(), options).unwrap_or_else(|error| panic!("{what}: {error}")));
    let (found, lengths) = segments(disk).unwrap();
    model.find(&found, what);
    let is_long = lengths.iter().zip(model.lengths).all(|(has, acknowledged)| *has >= acknowledged);
    assert!(is_long, "{what}: the segments have {lengths:?} B, {:?} acknowledged", model.lengths);
}
