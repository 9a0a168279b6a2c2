//! Logs against a plain list of records, with power cuts at any operation.
//!
//! After a cut the status is the old or the new one, every record that was forced and not truncated is read bit for bit, and
//! what follows the forced ones is a prefix of what was appended after them.

use crc_fast::{CrcAlgorithm, Digest};
use nvlab_rvm::log::rewrite_to;
use nvlab_rvm::{Log, Result, Status};

/// Devices that fail together, and the log on them.
pub trait Subject {
    fn create(&self) -> Result<Box<dyn Log>>;
    fn open(&self) -> Result<Box<dyn Log>>;
    /// Operations so far of the device that is cut.
    fn operations(&self) -> u64;
    /// Cuts the power of all devices during this operation of one of them.
    fn cut_at(&self, operation: u64);
    fn is_off(&self) -> bool;
    /// Ends the cut.
    fn power_on(&self);
}

/// Numbers by splitmix64.
pub struct Draws(pub u64);

impl Draws {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }
}

/// Bytes of the frame of a record: its length, and the checksum.
pub const FRAME: usize = 8;

fn checksum(status: Status, position: u64, payload: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for field in [status.identity, status.generation, position, payload.len() as u64] {
        digest.update(&field.to_le_bytes());
    }
    digest.update(payload);
    digest.finalize() as u32
}

fn framed(status: Status, position: u64, payload: &[u8]) -> Vec<u8> {
    let mut record = (payload.len() as u32).to_le_bytes().to_vec();
    record.extend_from_slice(&checksum(status, position, payload).to_le_bytes());
    record.extend_from_slice(payload);
    record
}

/// Position and payload.
type Record = (u64, Vec<u8>);

/// Every record from the head on, and the tail.
pub fn scan(log: &mut dyn Log) -> Result<(Vec<Record>, u64)> {
    let (status, mut records) = (log.status(), Vec::new());
    let mut at = status.head;
    let end = at + log.capacity();
    while at + FRAME as u64 <= end {
        let mut frame = [0; FRAME];
        log.read(at, &mut frame)?;
        let length = u32::from_le_bytes(frame[..4].try_into().unwrap());
        if at + FRAME as u64 + u64::from(length) > end {
            break;
        }
        let mut payload = vec![0; length as usize];
        log.read(at + FRAME as u64, &mut payload)?;
        if frame[4..] != checksum(status, at, &payload).to_le_bytes() {
            break;
        }
        let next = at + (FRAME + payload.len()) as u64;
        records.push((at, payload));
        at = next;
    }
    Ok((records, at))
}

/// A change of status that may or may not have happened.
#[derive(Clone, Copy)]
enum Pending {
    Nothing,
    Truncate(u64),
    Reset(u64),
}

/// What a log must hold.
#[derive(Clone)]
pub struct Model {
    status: Status,
    pending: Pending,
    records: Vec<Record>,
    /// Where the next record begins.
    tail: u64,
    /// What is before it has been forced.
    forced: u64,
    /// Bytes of the longest payload of a history.
    payload_max: u64,
    /// Times that the log was filled.
    pub appended: u64,
}

impl Model {
    pub fn new(status: Status, payload_max: u64) -> Model {
        let (tail, records) = (status.head, Vec::new());
        Model { status, pending: Pending::Nothing, records, tail, forced: tail, payload_max, appended: 0 }
    }

    /// Does one step of a history; an error leaves the model before the acknowledgement.
    fn step(&mut self, log: &mut dyn Log, draws: &mut Draws) -> Result<()> {
        let bytes = draws.below(self.payload_max);
        let needed = self.tail + FRAME as u64 + bytes - self.status.head;
        let mut choice = draws.below(16);
        if needed > log.capacity() {
            choice = 12 + choice % 4;
        }
        match choice {
            0..=8 => {
                let payload: Vec<u8> = (0..bytes).map(|_| draws.below(256) as u8).collect();
                let (position, record) = (self.tail, framed(self.status, self.tail, &payload));
                self.records.push((position, payload));
                self.tail += record.len() as u64;
                self.appended += record.len() as u64;
                log.append(position, &record)
            }
            9..=11 => {
                log.force()?;
                self.forced = self.tail;
                Ok(())
            }
            12..=14 => {
                // As the core does: what is truncated has been forced.
                log.force()?;
                self.forced = self.tail;
                let kept = draws.below(self.records.len() as u64 / 2 + 1) as usize;
                let first = self.records.len() - kept;
                let head = self.records.get(first).map_or(self.tail, |record| record.0);
                self.pending = Pending::Truncate(head);
                log.truncate(head)?;
                self.records.drain(..first);
                self.status.head = head;
                self.settle(log);
                Ok(())
            }
            _ => self.reset(log),
        }
    }

    fn reset(&mut self, log: &mut dyn Log) -> Result<()> {
        self.pending = Pending::Reset(self.tail);
        let head = log.reset(self.tail)?;
        assert!(head >= self.tail);
        let Status { identity, generation, .. } = self.status;
        self.status = Status { identity, generation: generation + 1, head };
        self.records.clear();
        (self.tail, self.forced) = (head, head);
        self.settle(log);
        Ok(())
    }

    fn settle(&mut self, log: &dyn Log) {
        assert_eq!(log.status(), self.status);
        self.pending = Pending::Nothing;
    }

    /// Records that a log must hold.
    pub fn records(&self) -> usize {
        self.records.len()
    }

    /// A reset of the log has failed: it may have happened.
    pub fn expect_reset(&mut self) {
        self.pending = Pending::Reset(self.tail);
    }

    /// Checks that a damaged log holds the first of the records; true if it holds all.
    pub fn holds_prefix(&self, log: &mut dyn Log, what: &str) -> bool {
        assert_eq!(log.status(), self.status, "{what}");
        let (found, _) = scan(log).unwrap();
        assert!(self.records.starts_with(&found), "{what}: a record that was not appended");
        found.len() == self.records.len()
    }

    /// Does steps until an error or the last of them; true if there was no error.
    pub fn drive(&mut self, log: &mut dyn Log, draws: &mut Draws, steps: u32) -> bool {
        (0..steps).all(|_| self.step(log, draws).is_ok())
    }

    /// Whether a status may be found after a cut.
    fn allows(&self, found: Status) -> bool {
        let Status { identity, generation, .. } = self.status;
        found == self.status
            || match self.pending {
                Pending::Nothing => false,
                Pending::Truncate(head) => found == Status { head, ..self.status },
                Pending::Reset(tail) => {
                    found == Status { identity, generation: generation + 1, head: found.head }
                        && found.head >= tail
                }
            }
    }

    /// Takes what a log holds after a cut for what it must hold once that is written again; an error is one of reading it.
    fn try_adopt(&mut self, log: &mut dyn Log, what: &str) -> Result<()> {
        let status = log.status();
        assert!(self.allows(status), "{what}: {status:?}, not {:?}", self.status);
        let (found, tail) = scan(log)?;
        let is_reset = status.generation != self.status.generation;
        self.records.retain(|record| !is_reset && record.0 >= status.head);
        assert!(self.records.starts_with(&found), "{what}: {} records that were not appended", found.len());
        assert!(
            is_reset || tail >= self.forced,
            "{what}: the tail is {tail}, and {} B were forced",
            self.forced
        );
        self.records = found;
        (self.status, self.pending, self.tail, self.forced) = (status, Pending::Nothing, tail, tail);
        Ok(())
    }

    /// Takes what a log holds after a cut for what it must hold from now on.
    pub fn adopt(&mut self, log: &mut dyn Log, what: &str) {
        self.try_adopt(log, what).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

/// Runs a history and cuts it at an operation after the log was created, or at the end of the history; then recovers, with
/// a cut at the `second` operation of the recovery if there is one. Returns whether each cut happened.
pub fn run(
    subject: &dyn Subject,
    seed: u64,
    payload_max: u64,
    steps: u32,
    (cut, second): (u64, u64),
) -> (bool, bool) {
    let what = format!("seed {seed}, cut {cut}, then {second}");
    let mut draws = Draws(seed);
    let mut log = subject.create().unwrap();
    let mut model = Model::new(log.status(), payload_max);
    subject.cut_at(subject.operations() + cut);
    let is_whole = model.drive(log.as_mut(), &mut draws, steps);
    assert_eq!(is_whole, !subject.is_off(), "{what}");
    if !is_whole {
        log.append(0, &[0]).expect_err("a log whose device failed takes no more work");
    }
    drop(log);
    subject.power_on();
    subject.cut_at(subject.operations() + second);
    let recovered = subject.open().and_then(|mut log| {
        let mut again = model.clone();
        again.try_adopt(log.as_mut(), &what)?;
        rewrite_to(log.as_mut(), again.tail)?;
        model = again;
        model.reset(log.as_mut())
    });
    let is_second = subject.is_off();
    assert_eq!(recovered.is_err(), is_second, "{what}: {recovered:?}");
    subject.power_on();
    for round in 0..2 {
        let mut log = subject.open().unwrap_or_else(|error| panic!("{what}: {error}"));
        model.adopt(log.as_mut(), &format!("{what}, round {round}"));
        rewrite_to(log.as_mut(), model.tail).unwrap();
        model.reset(log.as_mut()).unwrap();
        assert!(model.drive(log.as_mut(), &mut draws, 12), "{what}, round {round}");
        log.force().unwrap();
        model.forced = model.tail;
    }
    (!is_whole, is_second)
}

/// Cuts a history at every operation, and the recovery after each at every operation of it.
pub fn run_every_cut(
    create: impl Fn(u64) -> Box<dyn Subject>,
    seeds: u64,
    payload_max: u64,
    steps: u32,
) -> u64 {
    let mut runs = 0;
    for seed in 0..seeds {
        for cut in 1.. {
            let mut is_cut = false;
            for second in 1.. {
                let subject = create(seed.wrapping_mul(31) + cut);
                let (first, again) = run(subject.as_ref(), seed, payload_max, steps, (cut, second));
                runs += 1;
                is_cut = first;
                if !again {
                    break;
                }
            }
            if !is_cut {
                break;
            }
        }
    }
    runs
}
