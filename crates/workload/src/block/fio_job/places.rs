//! Where a job's requests go, and how large they are: `random_distribution`, `bs`, `bsrange`, `bssplit`.

use super::numbers;
use super::options::{Each, Options, Pattern};
use crate::WorkloadError;
use crate::addresses::{Jumps, Zone};
use crate::block::generator::{Distribution, Mix, Sizes};

const DEFAULT_BYTES: u32 = 4096;
/// Sizes of a `bsrange`, at most: a wider one takes larger steps.
const RANGE_SIZES_MAX: u64 = 1024;

/// Of the values for reads, writes and trims the one that counts for all requests of a mix: that of its only kind, or of writes.
pub(super) fn main_kind(mix: Mix) -> usize {
    match mix {
        Mix::Share { read: 1.0, .. } => 0,
        Mix::Share { trim: 1.0, .. } => 2,
        _ => 1,
    }
}

/// The share of reads, writes and trims in a mix.
pub(super) fn shares(mix: Mix) -> [f64; 3] {
    match mix {
        Mix::Share { read, trim } => [read, 1.0 - read - trim, trim],
        Mix::TrimThenWrite => [0.0, 0.5, 0.5],
    }
}

/// The sizes of a job's requests, and of its reads if they differ.
pub(super) fn sizes(options: &Options, mix: Mix) -> Result<(Sizes, Option<Sizes>), WorkloadError> {
    let kb_base = options.kb_base()?;
    let size = |text: &str| {
        let bytes = numbers::size(text, kb_base)?;
        u32::try_from(bytes).ok().filter(|&bytes| bytes > 0)
    };
    let fixed = |text: &str| size(text).map(Sizes::Fixed);
    let range = |text: &str| {
        let (least, most) = text.split_once(['-', ':'])?;
        range(size(least)?, size(most)?)
    };
    let split = |text: &str| split(text, size);
    let bs = options.each(
        "bs",
        "sizes in fio's notation, e.g. 4k, 1m or 2g; of reads, writes and trims",
        fixed,
    )?;
    let ranges = options.each("bsrange", "MIN-MAX, e.g. 4k-64k", range)?;
    let splits = "SIZE/PERCENT:SIZE/PERCENT adding up to 100, e.g. 4k/60:64k/40";
    let splits = options.each("bssplit", splits, split)?;
    let of = |kind: usize| -> Sizes {
        let pick = |each: &Each<Sizes>| each[kind].clone();
        pick(&splits).or(pick(&ranges)).or(pick(&bs)).unwrap_or(Sizes::Fixed(DEFAULT_BYTES))
    };
    let sizes = of(main_kind(mix));
    let reads = of(0);
    let has_other_reads = shares(mix)[0] > 0.0 && reads != sizes;
    Ok((sizes, has_other_reads.then_some(reads)))
}

/// The multiples of the least size, equally likely.
fn range(least: u32, most: u32) -> Option<Sizes> {
    if least > most {
        return None;
    }
    let count = (most / least) as u64;
    let step = count.div_ceil(RANGE_SIZES_MAX) as usize;
    Some(Sizes::Split((1..=most / least).step_by(step).map(|times| (times * least, 1.0)).collect()))
}

fn split(text: &str, size: impl Fn(&str) -> Option<u32>) -> Option<Sizes> {
    let parts = text.split(':').map(|part| part.split_once('/').unwrap_or((part, "")));
    let parts = parts.map(|(bytes, percent)| Some((size(bytes)?, percent)));
    let (sizes, percents): (Vec<u32>, Vec<&str>) = parts.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let percents = percents_of(&percents)?;
    Some(Sizes::Split(sizes.into_iter().zip(percents).collect()))
}

/// Percentages that make 100; those left out divide the rest.
fn percents_of(texts: &[&str]) -> Option<Vec<f64>> {
    let percent = |text: &&str| match text.trim() {
        "" => Some(None),
        text => text.parse().ok().filter(|percent| (0.0..=100.0).contains(percent)).map(Some),
    };
    let given: Vec<Option<f64>> = texts.iter().map(percent).collect::<Option<_>>()?;
    let sum: f64 = given.iter().flatten().sum();
    let open = given.iter().filter(|percent| percent.is_none()).count();
    let is_whole = if open == 0 { (sum - 100.0).abs() < 1e-6 } else { sum < 100.0 };
    is_whole.then(|| given.iter().map(|percent| percent.unwrap_or((100.0 - sum) / open as f64)).collect())
}

/// `random_distribution`, or fio's map of blocks already accessed, and the bytes it is over if it says so.
pub(super) fn distribution(
    options: &Options,
    pattern: Pattern,
    mix: Mix,
) -> Result<(Distribution, Option<u64>), WorkloadError> {
    if !pattern.is_random {
        return Ok((Distribution::Sequential { skip_bytes: pattern.skip_bytes }, None));
    }
    let value = options.value("random_distribution").unwrap_or("random");
    let (kind, parameters) = value.split_once(':').unwrap_or((value, ""));
    let wrong = |allowed: &str| options.wrong("random_distribution", allowed);
    let number = |is_allowed: fn(f64) -> bool| {
        // A second one is where the middle is, which is left out.
        let parameter = parameters.split(':').next()?;
        parameter.parse::<f64>().ok().filter(|&number| is_allowed(number))
    };
    // Those of reads, of writes and of trims.
    let each: Vec<&str> = parameters.split(',').collect();
    let zones = each.get(main_kind(mix)).or(each.last()).copied().unwrap_or_default();
    let distribution = match kind {
        "random" if options.flag("norandommap")? => Distribution::Uniform,
        "random" => Distribution::Shuffled { repeats: false },
        "zipf" => {
            let theta = number(|theta| theta > 0.0 && theta <= 10.0);
            let theta = theta.ok_or_else(|| wrong("zipf:THETA, above 0, at most 10, e.g. zipf:1.2"))?;
            Distribution::Zipf { theta, scatter: true }
        }
        "pareto" => {
            let h = number(|h| h > 0.0 && h <= 0.5);
            let h = h.ok_or_else(|| wrong("pareto:H, above 0, at most 0.5, e.g. pareto:0.2"))?;
            Distribution::SelfSimilar { h, scatter: true }
        }
        "normal" => {
            let percent = number(|percent| percent > 0.0 && percent <= 100.0);
            let percent =
                percent.ok_or_else(|| wrong("normal:PERCENT, above 0, at most 100, e.g. normal:20"))?;
            Distribution::Normal { deviation: percent / 100.0 }
        }
        "zoned" => {
            let allowed =
                "zoned:ACCESSES/SPACE:... in percent, each adding up to 100, e.g. zoned:60/10:30/20:10/70";
            let zones = zones_of(zones).ok_or_else(|| wrong(allowed))?;
            Distribution::Zones { zones, scatter: false }
        }
        "zoned_abs" => {
            let kb_base = options.kb_base()?;
            let allowed = "zoned_abs:ACCESSES/SIZE:..., the accesses in percent adding up to 100, e.g. zoned_abs:60/10g:40/90g";
            let (zones, bytes) = absolute_zones(zones, kb_base).ok_or_else(|| wrong(allowed))?;
            return Ok((Distribution::Zones { zones, scatter: false }, Some(bytes)));
        }
        "sequence" => {
            let reason =
                "sequences of blocks are not supported; give the requests as a trace (nvlab explain formats)";
            return Err(options.refused("random_distribution", reason));
        }
        _ => return Err(wrong("random, zipf:THETA, pareto:H, normal:PERCENT, zoned:... or zoned_abs:...")),
    };
    Ok((distribution, None))
}

/// `percentage_random` and `rw=randread:8`.
pub(super) fn jumps(options: &Options, pattern: Pattern, mix: Mix) -> Result<Option<Jumps>, WorkloadError> {
    let percent = |text: &str| text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    let percents = options.each("percentage_random", "0 to 100", percent)?;
    let share = percents[main_kind(mix)].filter(|&percent| percent < 100.0 && pattern.is_random);
    let every = pattern.jump_every.filter(|&every| every > 1);
    Ok(share.map(|percent| Jumps::Share(percent / 100.0)).or(every.map(Jumps::Every)))
}

fn zones_of(text: &str) -> Option<Vec<Zone>> {
    let parts: Vec<(&str, &str)> = text.split(':').map(|part| part.split_once('/')).collect::<Option<_>>()?;
    let (accesses, space): (Vec<&str>, Vec<&str>) = parts.into_iter().unzip();
    let zones = percents_of(&accesses)?.into_iter().zip(percents_of(&space)?);
    let zones: Vec<Zone> = zones.map(|(accesses, space)| Zone { accesses, space }).collect();
    zones.iter().all(|zone| zone.space > 0.0).then_some(zones)
}

fn absolute_zones(text: &str, kb_base: u64) -> Option<(Vec<Zone>, u64)> {
    let parts: Vec<(&str, &str)> = text.split(':').map(|part| part.split_once('/')).collect::<Option<_>>()?;
    let (accesses, sizes): (Vec<&str>, Vec<&str>) = parts.into_iter().unzip();
    let size = |text: &&str| numbers::size(text, kb_base).filter(|&bytes| bytes > 0);
    let sizes: Vec<u64> = sizes.iter().map(size).collect::<Option<_>>()?;
    let zones = percents_of(&accesses)?.into_iter().zip(&sizes);
    let zones = zones.map(|(accesses, &bytes)| Zone { accesses, space: bytes as f64 }).collect();
    Some((zones, sizes.iter().sum()))
}
