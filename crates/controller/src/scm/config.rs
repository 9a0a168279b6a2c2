//! The configuration of memories that are used in place: plain data, filled from a design.

use nvlab_units::{Rate, Span, Time};

/// Memories (or disks) behind one controller each, with units at fixed addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct ScmConfig {
    /// Bytes of a unit.
    pub unit_bytes: u32,
    /// Units the host may address.
    pub logical_units: u32,
    /// Consecutive bytes behind one memory controller; a request is split where they end. A multiple of the unit.
    pub split_bytes: u64,
    /// Rate of the channel between a memory controller and its memory; `None`: in the times of the memory.
    pub channel: Option<Rate>,
    /// Rate of the ring that all memory controllers share; `None`: there is none.
    pub ring: Option<Rate>,
    /// Maximum number of parts of requests in progress in the device. Tags are taken in turn: a part waits for the
    /// one this many before it.
    pub tags: u32,
    /// How the processor accesses memory that is on its own bus; `None`: the device moves whole parts by itself.
    pub bursts: Option<Bursts>,
    /// When writes are acknowledged before the cells are programmed; `None`: never.
    pub posted: Option<Posting>,
    /// Whether trims from the host are applied: the units are overwritten with zeros.
    pub trim: bool,
    /// Time the controller itself takes for a request.
    pub overhead: Span,
}

/// Requests of the memory bus: 64 B each with DDR (system 004 slide 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Bytes of a burst.
    pub bytes: u32,
    /// Bursts a processor has in flight.
    pub outstanding: u32,
    /// Time from issuing a burst until its slot is free again; in an open row, if there are rows.
    pub latency: Span,
    /// Bytes of a row of the memory. It is opened by the first burst that reaches it, which waits for the cells, and
    /// stays open until the last has been transferred. `None`: there are no rows, every burst waits for the cells.
    pub row_bytes: Option<u64>,
}

impl Bursts {
    /// Bursts in a part of a request.
    #[inline]
    pub(super) fn count(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.bytes as u64)
    }

    /// Minimum time in which a processor transfers so many bursts.
    #[inline]
    pub(super) fn time(&self, count: u64) -> Span {
        self.latency * count.div_ceil(self.outstanding as u64)
    }

    /// When the first burst after a part of a request is issued, if the bursts of the part, from `at` on, are
    /// complete by `end`: with rows, as soon as the burst `outstanding` places before it is complete. Without rows,
    /// parts do not wait for each other.
    #[inline]
    pub(super) fn next_at(&self, at: Time, end: Time, bytes: u64) -> Time {
        let outstanding = self.outstanding as u64;
        if self.row_bytes.is_none() || self.count(bytes) <= outstanding {
            return at;
        }
        at + end.since(at + self.latency * outstanding)
    }
}

/// Room for writes that were acknowledged but are not programmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// Bytes, in each memory controller.
    pub bytes: u32,
    /// Whether stored energy programs them when the power fails (ADR).
    pub protected: bool,
}

impl ScmConfig {
    /// Units that fit on this many memories with `bytes` each.
    pub fn units_of(&self, controllers: u32, bytes: u64) -> u64 {
        bytes / self.split_bytes * self.split_bytes / self.unit_bytes as u64 * controllers as u64
    }

    /// Checks that it can work on so many memories of `bytes` each; otherwise returns the reason.
    pub fn check(&self, controllers: u32, bytes: u64) -> Result<(), String> {
        let unit = self.unit_bytes as u64;
        if unit == 0 || !self.split_bytes.is_multiple_of(unit) || self.split_bytes == 0 {
            return Err(format!(
                "{} B per memory controller are not a whole number of units of {unit} B",
                self.split_bytes
            ));
        }
        if controllers == 0 || self.tags == 0 {
            return Err(format!(
                "{controllers} memory controllers with {} tags: both must be at least 1",
                self.tags
            ));
        }
        if let Some(bursts) = self.bursts
            && (bursts.bytes == 0 || bursts.outstanding == 0)
        {
            return Err("bursts must have at least 1 byte, with at least one in flight".into());
        }
        if let Some(row) = self.bursts.and_then(|bursts| bursts.row_bytes)
            && !row.is_multiple_of(self.split_bytes)
        {
            return Err(format!(
                "a row of the memory ({row} B) is not a whole number of parts of {} B",
                self.split_bytes
            ));
        }
        if let Some(posting) = self.posted
            && (posting.bytes as u64) < self.split_bytes
        {
            return Err(format!(
                "a buffer of {} B for posted writes is smaller than a part of a request ({} B)",
                posting.bytes, self.split_bytes
            ));
        }
        let units = self.units_of(controllers, bytes);
        if self.logical_units == 0 || self.logical_units as u64 > units {
            return Err(format!(
                "{} units of {unit} B do not fit: {controllers} memories of {bytes} B hold {units}",
                self.logical_units
            ));
        }
        Ok(())
    }
}
