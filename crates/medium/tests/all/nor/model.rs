//! The model: bytes with AND semantics, and every step with the time it begins and is done.

use crate::nor::{BLOCK, PS};
use nvlab_medium::flash::{Nor, NorConfig};
use nvlab_medium::{MediumError, MemStore};
use nvlab_units::{BlockId, Die, Rng, Span, Ticket, Time};
use std::collections::BTreeSet;

/// What one step changes, and when.
#[derive(Clone)]
pub struct Step {
    pub begin: Time,
    pub done: Time,
    pub change: Change,
}

#[derive(Clone)]
pub enum Change {
    /// Bytes of one page.
    Program { offset: usize, data: Vec<u8> },
    /// A block.
    Erase(usize),
}

pub struct Model {
    config: NorConfig,
    free: [Time; 2],
    pub image: Vec<u8>,
    pub steps: Vec<Step>,
    pub half_erased: BTreeSet<usize>,
}

impl Model {
    pub fn new(config: &NorConfig, image: Vec<u8>, half_erased: BTreeSet<usize>) -> Model {
        Model { config: config.clone(), free: [Time::ZERO; 2], image, steps: Vec::new(), half_erased }
    }

    fn step(&mut self, asked: Time, die: usize, span: Span, change: Change) -> Time {
        let begin = asked.max(self.free[die]);
        self.free[die] = begin + span;
        apply(&mut self.image, &change);
        self.steps.push(Step { begin, done: begin + span, change });
        begin + span
    }

    fn program(&mut self, at: Time, offset: usize, data: &[u8]) -> Time {
        let pages: BTreeSet<usize> = (offset..offset + data.len()).map(|byte| byte / 4).collect();
        let each = self.config.flash.timing.program;
        let mut end = at;
        for page in pages {
            let (start, limit) = (offset.max(page * 4), (offset + data.len()).min(page * 4 + 4));
            let data = data[start - offset..limit - offset].to_vec();
            end = self.step(at, offset / BLOCK / 2, each, Change::Program { offset: start, data });
        }
        end
    }

    fn erase(&mut self, at: Time, block: usize) -> Time {
        self.half_erased.remove(&block);
        self.step(at, block / 2, self.config.flash.timing.erase, Change::Erase(block))
    }

    /// Checks what a cut left. Returns the blocks that were being erased and how many bits of programs under
    /// way were cleared and how many not.
    pub fn check_cut(&self, before: &[u8], at: Time, found: &[u8]) -> (BTreeSet<usize>, [u32; 2]) {
        let mut low = before.to_vec();
        for step in self.steps.iter().filter(|step| step.done <= at) {
            apply(&mut low, &step.change);
        }
        let (mut high, mut erasing, mut bits) = (low.clone(), BTreeSet::new(), [0, 0]);
        for step in self.steps.iter().filter(|step| step.begin < at && at < step.done) {
            match &step.change {
                Change::Program { offset, data } => {
                    let range = *offset..offset + data.len();
                    apply(&mut low, &step.change);
                    for i in range {
                        bits[0] += (high[i] & !found[i]).count_ones();
                        bits[1] += (found[i] & !low[i]).count_ones();
                    }
                }
                Change::Erase(block) => {
                    low[block * BLOCK..(block + 1) * BLOCK].fill(0);
                    high[block * BLOCK..(block + 1) * BLOCK].fill(0xFF);
                    erasing.insert(*block);
                }
            }
        }
        for (i, &byte) in found.iter().enumerate() {
            assert!(
                byte & low[i] == low[i] && byte & !high[i] == 0,
                "cut at {at:?}: byte {i} is {byte:#04x}, allowed {:#04x} to {:#04x}",
                low[i],
                high[i]
            );
        }
        (erasing, bits)
    }
}

pub fn apply(image: &mut [u8], change: &Change) {
    match change {
        Change::Program { offset, data } => {
            image[*offset..].iter_mut().zip(data).for_each(|(held, new)| *held &= new);
        }
        Change::Erase(block) => image[block * BLOCK..(block + 1) * BLOCK].fill(0xFF),
    }
}

#[derive(Clone)]
pub enum Op {
    Program { offset: usize, data: Vec<u8> },
    Erase(usize),
}

/// Some operation that the block allows, more programs than erases.
pub fn draw(rng: &mut Rng, image: &[u8]) -> Op {
    let block = rng.below(4) as usize;
    if rng.chance(0.15) {
        return Op::Erase(block);
    }
    let start = rng.below(BLOCK as u64) as usize;
    let offset = block * BLOCK + start;
    let bytes = 1 + rng.below((BLOCK - start).min(12) as u64) as usize;
    let byte = |held: &u8| if rng.chance(0.2) { 0xFF } else { held & rng.bits() as u8 };
    Op::Program { offset, data: image[offset..offset + bytes].iter().map(byte).collect() }
}

/// Does one operation on both and compares the ticket with the model's time, from both sides.
pub fn perform(nor: &mut Nor<MemStore>, model: &mut Model, at: Time, op: &Op) {
    let (ticket, die, end) = match op {
        Op::Program { offset, data } if model.half_erased.contains(&(offset / BLOCK)) => {
            let refused = nor.program(at, *offset as u64, data.len() as u64, data);
            assert_eq!(refused, Err(MediumError::ProgramFailed(BlockId((offset / BLOCK) as u32))));
            return;
        }
        Op::Program { offset, data } => {
            let ticket = nor.program(at, *offset as u64, data.len() as u64, data).unwrap();
            (ticket, offset / BLOCK / 2, model.program(at, *offset, data))
        }
        Op::Erase(block) => {
            (nor.erase(at, BlockId(*block as u32)).unwrap(), block / 2, model.erase(at, *block))
        }
    };
    check_ticket(nor, die as u32, ticket, end);
}

pub fn check_ticket(nor: &Nor<MemStore>, die: u32, ticket: Ticket, end: Time) {
    assert!(!nor.clone().is_done(Die(die), ticket, end.before(PS)), "done too early");
    assert!(nor.clone().is_done(Die(die), ticket, end), "not done at {end:?}");
    assert_eq!(nor.clone().finish(Die(die), ticket, Time::ZERO), end);
}
