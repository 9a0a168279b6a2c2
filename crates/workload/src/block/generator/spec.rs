//! The text of a generator: `'zipf theta=0.99 read=70% bs=4KiB qd=32 span=1GiB'`, and making it for a device.

use super::zones::{self, ZoneRules, ZoneWriter};
use super::{AnyGenerator, Generator, Mix, Plan, Sizes, jesd219};
use crate::WorkloadError;
use crate::ZoneShape;
use crate::addresses::{
    AnyAddresses, Jumps, Normal, Partly, SelfSimilar, Sequential, Shuffled, Uniform, ZipfAddresses, Zone,
    Zones, hot,
};
use crate::arrivals::{Limits, Pace};
use crate::words::{self, Words};
use nvlab_units::quantity;
use nvlab_units::suggest;

/// The kinds of generators, as written in the text.
pub const KINDS: [&str; 8] =
    ["uniform", "shuffled", "sequential", "zipf", "hotcold", "selfsimilar", zones::KIND, jesd219::KIND];
const KEYS: [&str; 14] = [
    "rw", "read", "trim", "bs", "align", "qd", "threads", "rate", "arrivals", "span", "offset", "flush",
    "fua", "until",
];
/// Regions begin at multiples of this.
const SECTOR_BYTES: u64 = 512;
const THREADS_MAX: u64 = 1024;
const DEFAULT_BLOCK_BYTES: u32 = 4096;
const DEFAULT_THETA: f64 = 0.99;
const DEFAULT_SELF_SIMILAR: f64 = 0.2;
const DEFAULT_HOT: (f64, f64) = (0.2, 0.8);

/// Where requests go, as the first word of the text says.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Evenly, with replacement.
    Uniform,
    /// Every block once per pass, in random order.
    Shuffled {
        /// The order of all passes is that of the first.
        repeats: bool,
    },
    /// Ascending, from the first block again after the last.
    Sequential {
        /// Bytes left out after each request; if negative, bytes to go back.
        skip_bytes: i64,
    },
    /// In proportion to `1 / rank^theta`.
    Zipf {
        /// Above 0, at most 10; 0.99 if not given.
        theta: f64,
        /// Spreads the ranks over the space instead of the hottest first.
        scatter: bool,
    },
    /// By zone; hot/cold has two.
    Zones {
        /// The zones, from the first byte on.
        zones: Vec<Zone>,
        /// Spreads each zone's blocks over the space.
        scatter: bool,
    },
    /// 80/20 within 80/20.
    SelfSimilar {
        /// The share of the space that receives `1 - h` of the accesses.
        h: f64,
        /// Spreads the ranks over the space instead of the hottest first.
        scatter: bool,
    },
    /// A bell around the middle.
    Normal {
        /// The standard deviation, as a share of the space.
        deviation: f64,
    },
}

/// Bytes, or a share of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A number of bytes, the same on every device.
    Bytes(u64),
    /// A share of the device, 0 to 1.
    Share(f64),
}

impl Amount {
    /// In bytes on a device of `whole` bytes; a share is rounded down to a multiple of `unit`.
    pub(crate) fn of(self, whole: u64, unit: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Share(share) => (whole as f64 * share) as u64 / unit * unit,
        }
    }

    /// `1GiB` or `30%`.
    fn parse(words: &Words, key: &str) -> Result<Option<Amount>, WorkloadError> {
        words.quantity(key, Amount::read)
    }

    pub(crate) fn read(value: &str) -> Result<Amount, quantity::QuantityError> {
        match value.ends_with('%') {
            true => quantity::fraction(value).map(Amount::Share),
            false => words::size(value).map(Amount::Bytes),
        }
    }
}

/// A generator before it knows its device.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratorSpec {
    /// Where requests go.
    pub distribution: Distribution,
    /// Shares of reads, writes and trims.
    pub mix: Mix,
    /// Of writes and trims, and of reads without `read_sizes`.
    pub sizes: Sizes,
    /// How large reads are; `None`: as the others.
    pub read_sizes: Option<Sizes>,
    /// Which requests go to a new place of the distribution, the others following the last one; `None`: all.
    pub jumps: Option<Jumps>,
    /// Requests begin at multiples of this many bytes, counted from `offset`; `None`: of the smallest request.
    pub align: Option<u32>,
    /// When; the depth of a closed loop is that of all threads together.
    pub pace: Pace,
    /// Threads that issue; each keeps its share of the depth in flight.
    pub threads: u32,
    /// Where its region begins on the device.
    pub offset: Amount,
    /// The bytes of its region; `None` for all from `offset` on.
    pub span: Option<Amount>,
    /// A flush after every this many writes; 0 for none.
    pub flush_every: u64,
    /// Whether a flush follows the last request.
    pub flush_at_end: bool,
    /// Whether every write is forced to the medium (force unit access).
    pub fua: bool,
    /// Requests, bytes and time after which it ends, whichever comes first.
    pub limits: Limits,
    /// Number of the workload when several run at once.
    pub stream: u8,
    /// How it writes to zones; `None`: it knows nothing of them.
    pub zones: Option<ZoneRules>,
    /// The zones of the device it is opened on, if that has any.
    pub on: Option<ZoneShape>,
}

impl Default for GeneratorSpec {
    /// Uniform writes of 4 KiB over the whole device, one at a time, without an end.
    fn default() -> GeneratorSpec {
        GeneratorSpec {
            distribution: Distribution::Uniform,
            mix: Mix::Share { read: 0.0, trim: 0.0 },
            sizes: Sizes::Fixed(DEFAULT_BLOCK_BYTES),
            read_sizes: None,
            jumps: None,
            align: None,
            pace: Pace::Closed { depth: 1 },
            threads: 1,
            offset: Amount::Bytes(0),
            span: None,
            flush_every: 0,
            flush_at_end: false,
            fua: false,
            limits: Limits::default(),
            stream: 0,
            zones: None,
            on: None,
        }
    }
}

/// fio's names of access patterns: whether the addresses are random, and the mix. Mixed patterns read half.
pub(crate) fn pattern(name: &str) -> Option<(bool, Mix)> {
    let share = |read, trim| Mix::Share { read, trim };
    Some(match name {
        "read" => (false, share(1.0, 0.0)),
        "write" => (false, share(0.0, 0.0)),
        "trim" => (false, share(0.0, 1.0)),
        "rw" | "readwrite" => (false, share(0.5, 0.0)),
        "trimwrite" => (false, Mix::TrimThenWrite),
        "randread" => (true, share(1.0, 0.0)),
        "randwrite" => (true, share(0.0, 0.0)),
        "randtrim" => (true, share(0.0, 1.0)),
        "randrw" => (true, share(0.5, 0.0)),
        "randtrimwrite" => (true, Mix::TrimThenWrite),
        _ => return None,
    })
}

impl GeneratorSpec {
    /// Reads a text such as `'hotcold hot=10/90 read=70% bs=8KiB rate=20k/s'`.
    pub fn parse(text: &str) -> Result<GeneratorSpec, WorkloadError> {
        let kind = Words::head_of(text);
        let own: &[&str] = match kind.as_str() {
            "zipf" => &["theta", "scatter"],
            "hotcold" => &["hot", "scatter"],
            "selfsimilar" => &["h", "scatter"],
            zones::KIND => zones::KEYS,
            _ => &[],
        };
        let flags = if kind == zones::KIND { zones::FLAGS } else { &[] };
        let words = Words::new(text, &[&KEYS[..], own].concat(), flags)?;
        let is_random = kind != "sequential" && kind != zones::KIND;
        let distribution = distribution(&words)?;
        let until = words.value("until").map(|value| until(&words, value)).transpose()?.unwrap_or_default();
        let sizes = sizes(&words)?;
        let align = words.quantity("align", words::size)?.map(|bytes| {
            let align = u32::try_from(bytes).ok().filter(|&bytes| bytes > 0);
            align.ok_or_else(|| words.wrong("align", "1 B to 4294967295 B"))
        });
        let of_kind = (kind == jesd219::KIND).then_some(jesd219::ALIGN_BYTES);
        let threads = words.number("threads", 1..=THREADS_MAX)?.unwrap_or(1) as u32;
        Ok(GeneratorSpec {
            distribution,
            mix: mix(&words, is_random)?,
            sizes,
            read_sizes: None,
            jumps: None,
            align: align.transpose()?.or(of_kind),
            pace: Pace::parse(&words, "20k/s")?.of_each(threads),
            threads,
            offset: Amount::parse(&words, "offset")?.unwrap_or(Amount::Bytes(0)),
            span: Amount::parse(&words, "span")?,
            flush_every: words.number("flush", 1..=u64::MAX)?.unwrap_or(0),
            flush_at_end: false,
            fua: words.yes_no("fua")?.unwrap_or(false),
            limits: until,
            stream: 0,
            zones: if kind == zones::KIND { Some(ZoneRules::parse(&words)?) } else { None },
            on: None,
        })
    }

    /// What a user should know of the results.
    pub(crate) fn note(&self) -> Option<&'static str> {
        (self.sizes == jesd219::sizes()).then_some(jesd219::NOTE)
    }

    /// The workload on a device of `capacity` bytes; `what` is its name in messages.
    pub fn open(&self, what: &str, capacity: u64, seed: u64) -> Result<AnyGenerator, WorkloadError> {
        let plan = self
            .plan(capacity)
            .map_err(|reason| WorkloadError::DoesNotFit { what: what.to_owned(), reason })?;
        if let Some(writer) = self.in_zones(what, &plan, seed)? {
            return Ok(AnyGenerator::InZones(writer));
        }
        let slots = plan.slots();
        let addresses = self.addresses(slots, seed);
        if let Some(jumps) = self.jumps {
            return Ok(AnyGenerator::Partly(Generator::new(
                &plan,
                Partly::new(slots, addresses, jumps, seed),
                seed,
            )));
        }
        Ok(match addresses {
            AnyAddresses::Uniform(addresses) => AnyGenerator::Uniform(Generator::new(&plan, addresses, seed)),
            AnyAddresses::Shuffled(addresses) => {
                AnyGenerator::Shuffled(Generator::new(&plan, addresses, seed))
            }
            AnyAddresses::Sequential(addresses) => {
                AnyGenerator::Sequential(Generator::new(&plan, addresses, seed))
            }
            AnyAddresses::Zipf(addresses) => AnyGenerator::Zipf(Generator::new(&plan, addresses, seed)),
            AnyAddresses::Zones(addresses) => AnyGenerator::Zones(Generator::new(&plan, addresses, seed)),
            AnyAddresses::SelfSimilar(addresses) => {
                AnyGenerator::SelfSimilar(Generator::new(&plan, addresses, seed))
            }
            AnyAddresses::Normal(addresses) => AnyGenerator::Normal(Generator::new(&plan, addresses, seed)),
        })
    }

    /// The same as a writer of zones, if it is one: because it says so, or because it writes in order to a device that has zones.
    fn in_zones(&self, what: &str, plan: &Plan, seed: u64) -> Result<Option<ZoneWriter>, WorkloadError> {
        let refused = |reason: String| WorkloadError::DoesNotFit { what: what.to_owned(), reason };
        let is_in_order = self.distribution == (Distribution::Sequential { skip_bytes: 0 });
        let rules = ZoneRules::on(self.zones.as_ref(), self.on, (plan.mix, is_in_order));
        let Some((rules, shape)) = rules.map_err(|why| refused(why.to_owned()))? else { return Ok(None) };
        ZoneWriter::new(plan, &rules, (shape, self.on), seed).map(Some).map_err(refused)
    }

    fn addresses(&self, slots: u64, seed: u64) -> AnyAddresses {
        match self.distribution {
            Distribution::Uniform => AnyAddresses::Uniform(Uniform::new(slots, seed)),
            Distribution::Shuffled { repeats } => AnyAddresses::Shuffled(Shuffled::new(slots, repeats, seed)),
            Distribution::Sequential { skip_bytes } => {
                AnyAddresses::Sequential(Sequential::skipping(slots, skip_bytes / self.slot_bytes() as i64))
            }
            Distribution::Zipf { theta, scatter } => {
                AnyAddresses::Zipf(ZipfAddresses::new(slots, theta, scatter, seed))
            }
            Distribution::Zones { ref zones, scatter } => {
                AnyAddresses::Zones(Zones::new(slots, zones, scatter, seed))
            }
            Distribution::SelfSimilar { h, scatter } => {
                AnyAddresses::SelfSimilar(SelfSimilar::new(slots, h, scatter, seed))
            }
            Distribution::Normal { deviation } => AnyAddresses::Normal(Normal::new(slots, deviation, seed)),
        }
    }

    /// Bytes that addresses are multiples of.
    pub(crate) fn slot_bytes(&self) -> u32 {
        self.align.unwrap_or_else(|| self.smallest())
    }

    pub(crate) fn smallest(&self) -> u32 {
        let reads = self.read_sizes.as_ref().map_or(u32::MAX, Sizes::smallest);
        self.sizes.smallest().min(reads)
    }

    fn largest(&self) -> u32 {
        self.sizes.largest().max(self.read_sizes.as_ref().map_or(0, Sizes::largest))
    }

    pub(crate) fn mean_bytes(&self) -> f64 {
        match (&self.read_sizes, self.mix) {
            (Some(reads), Mix::Share { read, .. }) => read * reads.mean() + (1.0 - read) * self.sizes.mean(),
            _ => self.sizes.mean(),
        }
    }

    fn plan(&self, capacity: u64) -> Result<Plan, String> {
        let exact = quantity::told_bytes;
        let (unit, largest) = (self.slot_bytes() as u64, self.largest() as u64);
        let offset = self.offset.of(capacity, unit);
        if !offset.is_multiple_of(SECTOR_BYTES) {
            return Err(format!("offset {} is not a multiple of {}", exact(offset), exact(SECTOR_BYTES)));
        }
        let rest = capacity.saturating_sub(offset);
        let span = self.span.map_or(rest, |span| span.of(capacity, unit));
        if span > rest {
            let end = offset.saturating_add(span);
            return Err(format!("it extends to {}, but the device ends at {}", exact(end), exact(capacity)));
        }
        if span / unit * unit < largest {
            return Err(format!("requests of {} do not fit in {}", exact(largest), exact(span)));
        }
        if let Distribution::Zones { zones, .. } = &self.distribution
            && span / unit < zones.len() as u64
        {
            return Err(format!("{} blocks are too few for {} zones", span / unit, zones.len()));
        }
        let by_bytes = self.limits.bytes.map(|bytes| (bytes as f64 / self.mean_bytes()).ceil() as u64);
        Ok(Plan {
            region: offset..offset + span,
            sizes: self.sizes.clone(),
            read_sizes: self.read_sizes.clone(),
            slot_bytes: self.slot_bytes(),
            mix: self.mix,
            pace: self.pace,
            threads: self.threads,
            flush_every: self.flush_every,
            flush_at_end: self.flush_at_end,
            fua: self.fua,
            requests: [self.limits.requests, by_bytes].into_iter().flatten().min(),
            time_limit: self.limits.time,
            stream: self.stream,
        })
    }
}

fn distribution(words: &Words) -> Result<Distribution, WorkloadError> {
    Ok(match words.head.as_str() {
        "uniform" => Distribution::Uniform,
        "shuffled" => Distribution::Shuffled { repeats: false },
        "sequential" | zones::KIND => Distribution::Sequential { skip_bytes: 0 },
        "zipf" => {
            let theta = words
                .decimal("theta", "a number above 0, at most 10", |theta| theta > 0.0 && theta <= 10.0)?;
            let scatter = words.yes_no("scatter")?.unwrap_or(true);
            Distribution::Zipf { theta: theta.unwrap_or(DEFAULT_THETA), scatter }
        }
        "hotcold" => {
            let (space, accesses) = hot(words)?.unwrap_or(DEFAULT_HOT);
            let scatter = words.yes_no("scatter")?.unwrap_or(false);
            Distribution::Zones { zones: Zone::hot_cold(space, accesses).to_vec(), scatter }
        }
        "selfsimilar" => {
            let h = words.decimal("h", "a number above 0, at most 0.5", |h| h > 0.0 && h <= 0.5)?;
            let scatter = words.yes_no("scatter")?.unwrap_or(true);
            Distribution::SelfSimilar { h: h.unwrap_or(DEFAULT_SELF_SIMILAR), scatter }
        }
        jesd219::KIND => Distribution::Zones { zones: jesd219::zones(), scatter: false },
        other => {
            let hint = suggest::hint(other, KINDS);
            return Err(words.error(format!("unknown kind '{other}'{hint} (known: {})", KINDS.join(", "))));
        }
    })
}

fn mix(words: &Words, is_random: bool) -> Result<Mix, WorkloadError> {
    let mut mix = Mix::Share { read: 0.0, trim: 0.0 };
    if let Some(name) = words.value("rw") {
        let allowed = match is_random {
            true => {
                "randread, randwrite, randrw, randtrim or randtrimwrite; sequential ones need 'sequential'"
            }
            false => "read, write, rw, trim or trimwrite; random ones need 'uniform' or another random kind",
        };
        mix = match pattern(name) {
            Some((random, mix)) if random == is_random => mix,
            _ => return Err(words.wrong("rw", allowed)),
        };
    }
    let (read, trim) = (words.share("read")?, words.share("trim")?);
    match mix {
        Mix::TrimThenWrite if read.is_some() || trim.is_some() => {
            Err(words.error("read= and trim= do not apply to rw=trimwrite"))
        }
        Mix::TrimThenWrite => Ok(mix),
        Mix::Share { read: read_before, trim: trim_before } => {
            // An explicit share replaces the one implied by the pattern's name.
            let (read, trim) = (read.unwrap_or(read_before), trim.unwrap_or(trim_before));
            if read + trim > 1.0 + 1e-12 {
                return Err(words.error("read and trim together are more than 100 %"));
            }
            Ok(Mix::Share { read, trim: trim.min(1.0 - read) })
        }
    }
}

fn sizes(words: &Words) -> Result<Sizes, WorkloadError> {
    let is_jesd219 = words.head == jesd219::KIND;
    let Some(value) = words.value("bs") else {
        return Ok(if is_jesd219 { jesd219::sizes() } else { Sizes::Fixed(DEFAULT_BLOCK_BYTES) });
    };
    if is_jesd219 {
        return Err(words.error("bs= does not apply: the sizes are those of JESD219"));
    }
    let size = |text: &str| {
        let bytes = words::size(text).map_err(|error| words.error(format!("bs: {error}")))?;
        u32::try_from(bytes)
            .ok()
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| words.wrong("bs", "1 B to 4294967295 B"))
    };
    if !value.contains([',', '/']) {
        return Ok(Sizes::Fixed(size(value)?));
    }
    let mut parts = Vec::new();
    for part in value.split(',') {
        let Some((bytes, weight)) = part.split_once('/') else {
            return Err(words.wrong("bs", "one size, or SIZE/SHARE,SIZE/SHARE, e.g. 4KiB/60%,64KiB/40%"));
        };
        let weight =
            quantity::fraction(weight.trim()).map_err(|error| words.error(format!("bs: {error}")))?;
        parts.push((size(bytes.trim())?, weight));
    }
    let sum: f64 = parts.iter().map(|&(_, weight)| weight).sum();
    if (sum - 1.0).abs() > 1e-6 {
        return Err(words.wrong("bs", "the shares of the sizes must add up to 100 %"));
    }
    Ok(Sizes::Split(parts))
}

fn until(words: &Words, value: &str) -> Result<Limits, WorkloadError> {
    let mut limits = Limits::default();
    if let Some(count) = value.strip_suffix("io") {
        match quantity::count(count.trim()) {
            Ok(count) => limits.requests = Some(count),
            Err(error) => return Err(words.error(format!("until: {error}"))),
        }
    } else if value.ends_with('B') {
        limits.bytes = words.quantity("until", words::size)?;
    } else {
        let time = quantity::span(value).map_err(|error| match error.is_too_large() {
            true => words.error(format!("until: {error}")),
            false => words.wrong("until", "a time (60 s), a number of requests (1e6 io) or a size (2 TiB)"),
        })?;
        limits.time = Some(time);
    }
    Ok(limits)
}
