//! A controller that was prepared without payload, given a store for it, as if every write so far had been of zeros.
//!
//! Live units hold zeros, and their spare areas name them: a recovery from the media finds the same map. The number
//! of each write is not known; the unit gets that of the youngest data in its block, which keeps the order of the
//! blocks. Dead units are marked as padding, so that no older version of any unit exists. The map's own pages on
//! flash are written from the map in memory.

use super::PageMap;
use super::numbers::Numbers;
use super::spare::{Kind, Spare};
use crate::table::BlockState;
use crate::{Background, ControllerError};
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_medium::{PowerCut, Store};
use nvlab_units::{BlockId, Lpa, Ppa, Time};

impl PageMap {
    /// The same controller with a fresh store, and when it is idle. What was written reads as zeros. Its buffer is
    /// programmed first, and a checkpoint or a directory of the map is written, if it writes any.
    pub fn with_payload<S: Store>(
        mut self,
        store: S,
        at: Time,
    ) -> Result<(PageMap<S>, Time), ControllerError> {
        assert!(S::KEEPS, "a store for payload");
        let idle = self.at_rest(at)?;
        let mut map = PageMap {
            config: self.config,
            geometry: self.geometry,
            layout: self.layout,
            array: self.array.with_store(store),
            map: self.map,
            table: self.table,
            policy: self.policy,
            dies: self.dies,
            writers: self.writers,
            buffer: self.buffer,
            cache: self.cache,
            demand: self.demand,
            retired: self.retired,
            acknowledged: self.acknowledged,
            numbers: Numbers { stamp: self.numbers.stamp.max(self.numbers.sequence) + 1, ..self.numbers },
            checkpoint: self.checkpoint,
            journal: self.journal,
            cleaner: self.cleaner,
            zeros: vec![0; self.geometry.unit_bytes as usize],
            stats: self.stats,
        };
        map.inscribe_units();
        map.inscribe_log();
        let idle = map.at_rest(idle)?;
        Ok((map, idle))
    }
}

impl<S: Store> PageMap<S> {
    /// Programs what is staged, and a whole checkpoint; returns when all is done.
    fn at_rest(&mut self, at: Time) -> Result<Time, ControllerError> {
        let drained = self.drain(at)?;
        let mut now = self.idle_at(drained)?;
        if self.checkpoint.is_on() {
            self.finish_turn(now)?;
            let drained = self.drain(now)?;
            now = self.idle_at(drained)?;
        }
        self.array.nand_mut().settle(now);
        Ok(now)
    }

    /// Enters the spare areas of the units in blocks of data.
    fn inscribe_units(&mut self) {
        let zeros = vec![0; self.geometry.unit_bytes as usize];
        let of_zeros = Spare::encoder(&zeros);
        let per_block = self.geometry.units_per_block();
        for block in (0..self.geometry.blocks()).map(BlockId) {
            if matches!(self.table.state(block), BlockState::Map | BlockState::Free) {
                continue;
            }
            let number = self.table.birth(block).clamp(1, self.numbers.sequence);
            for unit in (block.0 * per_block..(block.0 + 1) * per_block).map(Ppa) {
                let place = self.array.place(unit);
                if !self.array.nand().is_readable(place) {
                    continue;
                }
                let (kind, lpa) = match self.map.is_live(unit) {
                    true => (Kind::Data, self.map.owner(unit)),
                    false => (Kind::Padding, Lpa::NONE),
                };
                let spare = Spare { kind, damaged: false, lpa, sequence: number, stamp: number };
                self.array.nand_mut().inscribe(place, &[], &of_zeros(&spare));
            }
        }
    }

    /// Enters the translation pages of a map that is read on demand, as they are now.
    fn inscribe_log(&mut self) {
        self.demand.iter_mut().for_each(|demand| demand.turn.begin_block());
        let Some(demand) = &self.demand else { return };
        let mut data = vec![0; self.geometry.unit_bytes as usize];
        let pages = (0..).zip(&demand.log.places).filter(|(_, place)| **place != Ppa::NONE);
        for (page, &place) in pages {
            let entries = self.map.entries(demand.units(page));
            data.fill(0);
            data.chunks_exact_mut(4)
                .zip(entries)
                .for_each(|(bytes, unit)| bytes.copy_from_slice(&unit.to_le_bytes()));
            let number = self.numbers.sequence;
            let spare =
                Spare { kind: Kind::Map, damaged: false, lpa: Lpa(page), sequence: number, stamp: number };
            let place = self.array.place(place);
            let spare: [u8; SPARE_BYTES] = spare.encode(&data);
            self.array.nand_mut().inscribe(place, &data, &spare);
        }
    }
}
