//! Sectors on the device behind: its units are larger, so a partial write reads, merges and writes whole units.

use super::{Fsms, SECTOR};
use crate::{BesidePram, ControllerError};
use nvlab_units::{Extent, Lpa, Time};

impl<C: BesidePram> Fsms<C> {
    /// The unit that holds a sector.
    pub(super) fn unit_of(&self, sector: Lpa) -> Lpa {
        Lpa(sector.0 / self.per_unit)
    }

    /// The sectors of units.
    pub(super) fn sectors_of(&self, units: Extent) -> Extent {
        Extent { start: Lpa(units.start.0 * self.per_unit), count: units.count * self.per_unit }
    }

    /// The units that a range of sectors overlaps.
    fn touched(&self, extent: Extent) -> Extent {
        let start = self.unit_of(extent.start);
        let end = extent.end().div_ceil(self.per_unit as u64) as u32;
        Extent { start, count: end - start.0 }
    }

    fn is_whole(&self, extent: Extent) -> bool {
        extent.start.0.is_multiple_of(self.per_unit) && extent.count.is_multiple_of(self.per_unit)
    }

    pub(super) fn read_behind(
        &mut self,
        at: Time,
        extent: Extent,
        into: &mut [u8],
    ) -> Result<Time, ControllerError> {
        let units = self.touched(extent);
        if !Self::KEEPS || self.is_whole(extent) {
            return self.behind.read(at, units, into).map(|served| served.end);
        }
        let mut whole = std::mem::take(&mut self.whole);
        whole.resize((units.count * self.per_unit) as usize * SECTOR, 0);
        let served = self.behind.read(at, units, &mut whole);
        let lead = (extent.start - self.sectors_of(units).start) as usize * SECTOR;
        into.copy_from_slice(&whole[lead..lead + into.len()]);
        self.whole = whole;
        served.map(|served| served.end)
    }

    pub(super) fn write_behind(
        &mut self,
        at: Time,
        extent: Extent,
        data: &[u8],
    ) -> Result<Time, ControllerError> {
        let units = self.touched(extent);
        if self.is_whole(extent) {
            return self.behind.write(at, units, data).map(|served| served.end);
        }
        let unit = self.per_unit as usize * SECTOR * Self::KEEPS as usize;
        let mut whole = std::mem::take(&mut self.whole);
        whole.resize(units.count as usize * unit, 0);
        let lead = extent.start - self.sectors_of(units).start;
        let tail = (lead + extent.count) % self.per_unit;
        let mut ready = at;
        let last = units.count - 1;
        for (partial, i) in [(lead > 0 || last == 0, 0), (tail > 0 && last > 0, last)] {
            if partial {
                let into = &mut whole[i as usize * unit..(i as usize + 1) * unit];
                let read = self.behind.read(at, Extent::one(units.start + i), into);
                ready = ready.max(read?.end);
            }
        }
        self.stats.merged_sectors += (units.count * self.per_unit - extent.count) as u64;
        let lead = lead as usize * SECTOR * Self::KEEPS as usize;
        whole[lead..lead + data.len()].copy_from_slice(data);
        let served = self.behind.write(ready, units, &whole);
        self.whole = whole;
        served.map(|served| served.end)
    }

    /// Trims the whole units inside an extent, on the device behind and in PRAM.
    pub(super) fn trim_sectors(&mut self, at: Time, extent: Extent) -> Result<Time, ControllerError> {
        let start = extent.start.0.div_ceil(self.per_unit);
        let end = (extent.end() / self.per_unit as u64) as u32;
        if start >= end {
            return Ok(at);
        }
        let units = Extent { start: Lpa(start), count: end - start };
        let mut now = self.behind.trim(at, units)?.end;
        if self.slots.count() > 0 {
            for sector in self.sectors_of(units).units() {
                if let Some(slot) = self.slots.of(sector) {
                    now = self.slots.release(self.behind.pram_mut(), now, slot)?;
                    self.stats.released += 1;
                }
            }
        }
        Ok(now)
    }
}
