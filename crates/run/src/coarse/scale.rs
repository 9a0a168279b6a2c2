//! The correspondence between units of a device and units of its coarse twin.
//!
//! 1. The streams cut the device into regions, each of which is written by the same streams all over.
//! 2. A unit of the twin stands for neighbours in rank of one region; outside of the regions, for neighbours in
//!    address.
//! 3. No unit of the device has two in the twin. Those that have none, at the edges of regions, are left over.

use nvlab_units::Lpa;
use nvlab_workload::block::Draws;
use std::ops::Range;

/// How units of a device and units of its twin correspond.
#[derive(Debug)]
pub(super) struct Scale {
    /// Units that are one in the twin.
    units: u64,
    /// Units of the twin that stand for units of the device.
    pub all: u64,
    /// Where the streams write, in the order of addresses.
    regions: Vec<Region>,
    /// Bytes of a unit.
    unit_bytes: u64,
    /// What each stream writes.
    streams: Vec<Stream>,
}

/// What a stream writes.
#[derive(Debug)]
struct Stream {
    start: u64,
    slot_units: u64,
    /// Its region; `None`: it is uniform over several.
    region: Option<usize>,
}

/// Neighbouring units of the device that the same streams write.
#[derive(Debug)]
struct Region {
    /// The units of the device.
    fine: Range<u64>,
    /// The units of the twin that stand for them.
    coarse: Range<u64>,
    /// The stream whose ranks say which of them are alike: the one that is not uniform, if there is one.
    stream: usize,
    /// The slot of that stream with which the region begins.
    first_slot: u64,
    /// Units of a slot, and slots that are one unit of the twin.
    slot_units: u64,
    slots: u64,
    /// Groups of neighbours in rank in the order in which their first slots lie on the device, and the place of each in it.
    /// So the first fill leaves as much of what is written often beside what is not as that of the device would: under a
    /// greedy cleaner, that may matter for good.
    groups: Vec<u32>,
    places: Vec<u32>,
}

/// The units that a stream writes.
fn units_of(draws: &Draws, unit_bytes: u64) -> Range<u64> {
    let start = draws.start / unit_bytes;
    start..start + draws.slots * (draws.bytes as u64 / unit_bytes)
}

/// True if a stream may be cut into parts that are drawn alike.
fn is_even(draws: &Draws) -> bool {
    draws.sizes.is_none() && draws.ranks.is_uniform()
}

impl Scale {
    /// `filled_units` of the device are written at all. `None`: units that are about equally popular cannot be told.
    pub fn new(draws: &[Draws], unit_bytes: u64, units: u64, filled_units: u64) -> Option<Scale> {
        let all = filled_units / units;
        let ranges: Vec<Range<u64>> = draws.iter().map(|draws| units_of(draws, unit_bytes)).collect();
        let mut cuts: Vec<u64> = ranges.iter().flat_map(|range| [range.start, range.end]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut regions = Vec::new();
        for cut in cuts.windows(2) {
            let at = cut[0]..cut[1];
            let inside = |range: &Range<u64>| range.start <= at.start && at.end <= range.end;
            let writers: Vec<usize> = (0..draws.len()).filter(|&stream| inside(&ranges[stream])).collect();
            if !writers.is_empty() {
                regions.push(Region::new(draws, &writers, at, unit_bytes, (units, all))?);
            }
        }
        let of_stream = |range: &Range<u64>| regions.iter().position(|region| region.fine == *range);
        let stream = |(draws, range): (&Draws, &Range<u64>)| Stream {
            start: range.start,
            slot_units: draws.bytes as u64 / unit_bytes,
            region: of_stream(range),
        };
        let streams = draws.iter().zip(&ranges).map(stream).collect();
        Some(Scale { units, all, regions, unit_bytes, streams })
    }

    /// The unit of the twin for the slot of a rank of a stream.
    #[inline]
    pub(crate) fn unit_of(&self, stream: usize, rank: u64) -> u64 {
        let stream = &self.streams[stream];
        let (region, rank) = match stream.region {
            Some(region) => (&self.regions[region], rank),
            None => {
                let unit = stream.start + rank * stream.slot_units;
                let region = self.regions.iter().find(|region| unit < region.fine.end);
                let region = region.expect("a stream writes within its regions");
                (region, (unit - region.fine.start) / region.slot_units)
            }
        };
        // The few ranks left over are the least likely: the last group stands in for them.
        let group = (rank / region.slots).min(region.places.len() as u64 - 1);
        region.coarse.start + region.places[group as usize] as u64
    }

    /// The `nth` of the units that `unit` of the twin stands for; `None`: it stands for none.
    pub fn member(&self, draws: &[Draws], unit: Lpa, nth: u32) -> Option<Lpa> {
        let (unit, nth) = (unit.0 as u64, nth as u64);
        if let Some(region) = self.regions.iter().find(|region| region.coarse.contains(&unit)) {
            let group = region.groups[(unit - region.coarse.start) as usize] as u64;
            let slot = region.slot(draws, self.unit_bytes, group * region.slots + nth / region.slot_units);
            return Some(Lpa((slot + nth % region.slot_units) as u32));
        }
        let same = unit * self.units + nth;
        let is_free = unit < self.all && !self.regions.iter().any(|region| region.fine.contains(&same));
        is_free.then_some(Lpa(same as u32))
    }

    /// The units that no unit of the twin stands for.
    pub(crate) fn left_over(&self, draws: &[Draws], filled_units: u64) -> Vec<u64> {
        let mut units = Vec::new();
        for region in &self.regions {
            let all_slots = (region.fine.end - region.fine.start) / region.slot_units;
            for rank in region.places.len() as u64 * region.slots..all_slots {
                let first = region.slot(draws, self.unit_bytes, rank);
                units.extend(first..first + region.slot_units);
            }
        }
        // Outside of the regions: the numbers of units of the twin that stand for units of a region, and those behind all.
        let behind = self.regions.iter().map(|region| region.fine.end..region.coarse.end * self.units);
        let outside = behind.chain(std::iter::once(self.all * self.units..filled_units)).flatten();
        let is_free = |unit: &u64| !self.regions.iter().any(|region| region.fine.contains(unit));
        units.extend(outside.filter(is_free));
        units
    }
}

impl Region {
    /// The region `at` that `writers` write, of a device `k` of whose units are one in a twin of at most `all` units.
    fn new(
        draws: &[Draws],
        writers: &[usize],
        at: Range<u64>,
        unit_bytes: u64,
        (k, all): (u64, u64),
    ) -> Option<Region> {
        let uneven: Vec<usize> = writers.iter().copied().filter(|&stream| !is_even(&draws[stream])).collect();
        let stream = match uneven[..] {
            [] => writers[0],
            [stream] if units_of(&draws[stream], unit_bytes) == at => stream,
            _ => return None,
        };
        let own = &draws[stream];
        let slot_units = own.bytes as u64 / unit_bytes;
        let before = at.start - own.start / unit_bytes;
        let is_of_slots = before.is_multiple_of(slot_units) && (at.end - at.start).is_multiple_of(slot_units);
        if !is_of_slots || writers.iter().any(|&other| draws[other].bytes != own.bytes) {
            return None;
        }
        let (slots, first_slot) = (k / slot_units, before / slot_units);
        let begin = at.start.div_ceil(k);
        let count = ((at.end - at.start) / k).min(all.saturating_sub(begin));
        let mut groups: Vec<u32> = (0..count as u32).collect();
        groups.sort_by_cached_key(|&group| own.ranks.slot_of(first_slot + group as u64 * slots));
        let mut places = vec![0; groups.len()];
        (0..).zip(&groups).for_each(|(place, &group)| places[group as usize] = place);
        let coarse = begin..begin + count;
        (count > 0).then_some(Region {
            fine: at,
            coarse,
            stream,
            first_slot,
            slot_units,
            slots,
            groups,
            places,
        })
    }

    /// The first unit of the device of the slot with a rank in this region.
    fn slot(&self, draws: &[Draws], unit_bytes: u64, rank: u64) -> u64 {
        let own = &draws[self.stream];
        own.start / unit_bytes + own.ranks.slot_of(self.first_slot + rank) * self.slot_units
    }
}
