//! `zonemode`: how a job writes to zones, or leaves out stretches of the device.

use super::options::{Options, Pattern};
use super::places::shares;
use crate::WorkloadError;
use crate::ZoneShape;
use crate::block::generator::{Mix, ZoneResets, ZoneRules};

/// The zones of a section; `None`: its requests go anywhere.
pub(super) fn rules(
    options: &Options,
    pattern: Pattern,
    mix: Mix,
) -> Result<Option<ZoneRules>, WorkloadError> {
    let size = options.bytes("zonesize")?.filter(|&bytes| bytes > 0);
    match options.value("zonemode") {
        // As in fio, a size of zones alone means strides.
        None if size.is_some() => strided(options, pattern, mix, size).map(Some),
        None | Some("none") => Ok(None),
        Some("strided") => strided(options, pattern, mix, size).map(Some),
        Some("zbd") => zoned(options, pattern, mix, size),
        Some(_) => Err(options.wrong("zonemode", "none, strided or zbd")),
    }
}

/// `zonesize` bytes of each `zonerange`, then `zoneskip` left out.
fn strided(
    options: &Options,
    pattern: Pattern,
    mix: Mix,
    size: Option<u64>,
) -> Result<ZoneRules, WorkloadError> {
    let key = if options.value("zonemode").is_some() { "zonemode" } else { "zonesize" };
    let Some(size) = size else {
        return Err(options.wrong("zonemode", "strided needs zonesize"));
    };
    if pattern.is_random || pattern.skip_bytes != 0 || !shares(mix).contains(&1.0) {
        let reason = "strides are simulated for rw=read and rw=write; for random places use random_distribution=zoned_abs";
        return Err(options.refused(key, reason));
    }
    let range = options.bytes("zonerange")?.filter(|&bytes| bytes > 0).unwrap_or(size);
    if range < size {
        return Err(options.wrong("zonerange", "at least zonesize"));
    }
    let skip = options.bytes("zoneskip")?.unwrap_or(0);
    let shape = ZoneShape { size_bytes: range + skip, capacity_bytes: size, open_max: 1 };
    Ok(ZoneRules { resets: false, shape: Some(shape), ..ZoneRules::default() })
}

fn zoned(
    options: &Options,
    pattern: Pattern,
    mix: Mix,
    size: Option<u64>,
) -> Result<Option<ZoneRules>, WorkloadError> {
    let capacity = options.bytes("zonecapacity")?.filter(|&bytes| bytes > 0);
    if capacity.is_some_and(|capacity| size.is_none_or(|size| capacity > size)) {
        return Err(options.wrong("zonecapacity", "at most zonesize, which must be given"));
    }
    let limit = |key| options.number(key, 0..=u32::MAX as u64).map(|zones| zones.filter(|&zones| zones > 0));
    let open = limit("job_max_open_zones")?.or(limit("max_open_zones")?).map(|zones| zones as u32);
    let share = |key: &'static str| match options.value(key).map(str::parse::<f64>) {
        None => Ok(None),
        Some(Ok(share)) if (0.0..=1.0).contains(&share) => Ok(Some(share)),
        Some(_) => Err(options.wrong(key, "0 to 1")),
    };
    let (threshold, frequency) = (share("zone_reset_threshold")?, share("zone_reset_frequency")?);
    let more_resets = frequency.filter(|&frequency| frequency > 0.0).map(|frequency| ZoneResets {
        threshold: threshold.unwrap_or(0.0),
        every: (1.0 / frequency).round() as u64,
    });
    if pattern.is_random && shares(mix)[0] == 1.0 {
        return Ok(None);
    }
    let shape = size.map(|size_bytes| ZoneShape {
        size_bytes,
        capacity_bytes: capacity.unwrap_or(size_bytes),
        open_max: u32::MAX,
    });
    Ok(Some(ZoneRules { open, is_random: pattern.is_random, more_resets, shape, ..ZoneRules::default() }))
}
