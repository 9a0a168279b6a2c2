//! Checkpoints of the map: recovery then scans only what was written after the last one.
//!
//! Format, little-endian, in the data of units of kind `Checkpoint` with the checkpoint's number as sequence
//! and the position as lpa: magic u32, logical units u32, stamp u64, sequence u64, open blocks u32, then that
//! many block numbers u32, then the map, one u32 per logical unit (0xffffffff: nothing).
//!
//! Invariants
//! 1. Everything the map points at is programmed before the checkpoint is complete.
//! 2. The blocks of the previous checkpoint are erased only after this one is complete.

use super::config::PageMapConfig;
use super::frontier::NO_BLOCK;
use super::spare::{Kind, Spare};
use super::{NOTHING, PageMap};
use crate::ControllerError;
use crate::table::BlockState;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::{MediumError, Store};
use nvlab_units::{BlockId, Geometry, Time};

const MAGIC: u32 = 0x4350_564e; // "NVPC"
const HEADER_BYTES: u64 = 28;

/// What the controller keeps of its checkpoints.
#[derive(Clone, Debug)]
pub(super) struct State {
    every: Option<u64>,
    since: u64,
    pub number: u64,
    /// Units one checkpoint takes.
    units: u64,
    pub blocks: Vec<BlockId>,
}

impl State {
    pub fn new(config: &PageMapConfig, geometry: &Geometry) -> State {
        let units = units_needed(config, geometry);
        State { every: config.checkpoint_units, since: 0, number: 0, units, blocks: Vec::new() }
    }

    /// True if checkpoints are written at all.
    pub fn is_on(&self) -> bool {
        self.every.is_some()
    }

    /// True if enough was written since the last one; `written` more units were.
    #[inline]
    pub fn is_due(&mut self, written: u32) -> bool {
        let Some(every) = self.every else { return false };
        self.since += written as u64;
        self.since >= every
    }
}

fn units_needed(config: &PageMapConfig, geometry: &Geometry) -> u64 {
    let open = (geometry.dies() * config.streams.count()) as u64;
    (HEADER_BYTES + 4 * open + 4 * config.logical_units as u64).div_ceil(geometry.unit_bytes as u64)
}

/// Blocks one checkpoint takes.
pub(super) fn blocks_needed(config: &PageMapConfig, geometry: &Geometry) -> u64 {
    let pages = units_needed(config, geometry).div_ceil(geometry.units_per_page as u64);
    pages.div_ceil(geometry.pages_per_block as u64)
}

/// A checkpoint that was read back.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub stamp: u64,
    pub sequence: u64,
    pub open: Vec<BlockId>,
    pub map: Vec<u32>,
}

impl Checkpoint {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES as usize + 4 * (self.open.len() + self.map.len()));
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend((self.map.len() as u32).to_le_bytes());
        bytes.extend(self.stamp.to_le_bytes());
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend((self.open.len() as u32).to_le_bytes());
        bytes.extend(self.open.iter().flat_map(|block| block.0.to_le_bytes()));
        bytes.extend(self.map.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes
    }

    /// `None` if this is not a checkpoint of a map of `logical_units`.
    pub fn decode(bytes: &[u8], logical_units: u32) -> Option<Checkpoint> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES as usize)?;
        let u32_at = |i: usize| u32::from_le_bytes(header[i..i + 4].try_into().expect("4 bytes"));
        let u64_at = |i: usize| u64::from_le_bytes(header[i..i + 8].try_into().expect("8 bytes"));
        if u32_at(0) != MAGIC || u32_at(4) != logical_units {
            return None;
        }
        let mut words = rest.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().expect("4 bytes")));
        let open: Vec<BlockId> = words.by_ref().take(u32_at(24) as usize).map(BlockId).collect();
        let map: Vec<u32> = words.take(logical_units as usize).collect();
        let complete = map.len() == logical_units as usize;
        complete.then_some(Checkpoint { stamp: u64_at(8), sequence: u64_at(16), open, map })
    }
}

impl<S: Store> PageMap<S> {
    /// Units one checkpoint takes.
    pub(super) fn checkpoint_units(&self) -> u64 {
        self.checkpoint.units
    }

    /// Writes the map to blocks of its own and lets go of the previous checkpoint.
    pub(super) fn write_checkpoint(&mut self, at: Time) -> Result<(), ControllerError> {
        self.checkpoint.since = 0;
        loop {
            // A number of its own for every attempt, so that parts of two are never taken for one.
            self.checkpoint.number += 1;
            // Blocks first: taking them may clean, and so change the map.
            let blocks = self.take_map_blocks(at)?;
            self.pad_all(at)?;
            self.record_trims(at);
            let durable = self.finish_all(at);
            match self.program_checkpoint(durable, &blocks) {
                Ok(()) => {
                    let complete = self.finish_all(durable);
                    self.reset_journal(complete);
                    for old in std::mem::replace(&mut self.checkpoint.blocks, blocks) {
                        self.erase(complete, old);
                    }
                    return Ok(());
                }
                Err(failed) => {
                    for block in blocks {
                        if block == failed { self.mark_bad(block) } else { self.erase(durable, block) }
                    }
                }
            }
        }
    }

    fn take_map_blocks(&mut self, at: Time) -> Result<Vec<BlockId>, ControllerError> {
        let needed = blocks_needed(&self.config, &self.geometry);
        (0..needed).map(|i| self.take_map_block(at, self.checkpoint.number + i)).collect()
    }

    /// Takes an erased block for something that is not data; `turn` spreads them over the dies.
    pub(super) fn take_map_block(&mut self, at: Time, turn: u64) -> Result<BlockId, ControllerError> {
        let die = (turn % self.geometry.dies() as u64) as u32;
        let mut tries = 0;
        while self.dies[die as usize].free.len() as u32 <= self.config.free_blocks_min {
            tries += 1;
            if tries > 2 * self.geometry.blocks_per_die {
                return Err(self.end_of_life(die));
            }
            self.clean(at, die)?;
        }
        let block = self.take_free(die, true)?;
        self.table.set_state(block, BlockState::Map);
        Ok(block)
    }

    /// Programs a checkpoint into erased blocks, or says which block failed.
    fn program_checkpoint(&mut self, at: Time, blocks: &[BlockId]) -> Result<(), BlockId> {
        let Geometry { units_per_page, pages_per_block, unit_bytes, .. } = self.geometry;
        let mut bytes = Vec::new();
        if S::KEEPS {
            let open = self.frontiers.iter().filter(|frontier| frontier.block != NO_BLOCK);
            let open = open.map(|frontier| BlockId(frontier.block)).collect();
            let (stamp, sequence, map) = (self.stamp, self.sequence, self.l2p.clone());
            bytes = Checkpoint { stamp, sequence, open, map }.encode();
            bytes.resize((self.checkpoint.units * unit_bytes as u64) as usize, 0);
        }
        let pages = self.checkpoint.units.div_ceil(units_per_page as u64);
        for page in 0..pages {
            let block = blocks[(page / pages_per_block as u64) as usize];
            let (mut data, mut spare) = (Vec::new(), Vec::new());
            for slot in 0..units_per_page as u64 * S::KEEPS as u64 {
                let number = page * units_per_page as u64 + slot;
                let held = number < self.checkpoint.units;
                let start = (number * unit_bytes as u64) as usize;
                let padding = vec![0; unit_bytes as usize];
                let unit = if held { &bytes[start..start + unit_bytes as usize] } else { &padding };
                let kind = if held { Kind::Checkpoint } else { Kind::Padding };
                let lpa = if held { number as u32 } else { NOTHING };
                let beside = Spare { kind, lpa, sequence: self.checkpoint.number, stamp: self.stamp };
                self.stamp += 1;
                data.extend_from_slice(unit);
                spare.extend_from_slice(&beside.encode(unit));
            }
            self.stats.map_units += units_per_page as u64;
            let payload = Payload { data: &data, spare: &spare };
            let within = (page % pages_per_block as u64) as u32;
            match self.nand.program(at, block, within, 1, payload, true) {
                Ok(_) => {}
                Err(MediumError::ProgramFailed(block)) => return Err(block),
                Err(other) => panic!("a checkpoint broke a rule of the medium: {other}"),
            }
        }
        Ok(())
    }
}
