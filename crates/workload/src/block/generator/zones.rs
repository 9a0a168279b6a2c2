//! Writes to zones: `'zones open=4 qd=32 append bs=128KiB read=10%'`, and sequential writes to a device that has zones.
//!
//! 1. Up to `open` zones are written by turns, each from its start to its end; a zone that is full gives its turn to the next
//!    one. A zone is reset before it is written, so that a run may begin on any device.
//! 2. Every write is at the place where the write pointer of its zone is when all requests before it are done. How many writes of a
//!    zone may be in flight is up to the host ([`crate::BlockWorkload::appends`]).
//! 3. Reads go to what it has written; before there is anything, it writes.

use super::{Mix, Plan, Sizes};
use crate::ZoneShape;
use crate::arrivals::Arrivals;
use crate::block::BlockWorkload;
use crate::words::Words;
use crate::{Batch, Op, Pacing, Request, Span, Time, Workload, WorkloadError};
use nvlab_units::Rng;
use nvlab_units::quantity::told_bytes;
use std::ops::Range;

/// The first word of its text.
pub(super) const KIND: &str = "zones";
/// What it has besides the keys of all generators.
pub(super) const KEYS: &[&str] = &["open", "fill"];
/// Its flags.
pub(super) const FLAGS: &[&str] = &["append", "random", "noreset"];
/// Why other generators do not write to zones.
const NOT_IN_ORDER: &str = "it writes in any order, but the zones of this device are written in order, each at its write \
    pointer; use 'zones', 'sequential', or a fio job with zonemode=zbd";
/// Why it needs a device of zones.
const NO_ZONES: &str = "it writes to zones, but this device has none; use a design of kind zoned";

/// How zones are written.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneRules {
    /// Zones written by turns; `None`: one, or of random zones as many as may be open.
    pub open: Option<u32>,
    /// The device chooses the place of each write (zone append).
    pub append: bool,
    /// The share of a zone's capacity that is written before the next zone is.
    pub fill: f64,
    /// The zones are chosen at random; otherwise in order.
    pub is_random: bool,
    /// A zone is reset before it is written. Without, the device must be new.
    pub resets: bool,
    /// Further resets.
    pub more_resets: Option<ZoneResets>,
    /// The zones, if the device has none, or if they must be these.
    pub shape: Option<ZoneShape>,
}

impl Default for ZoneRules {
    fn default() -> ZoneRules {
        ZoneRules {
            open: None,
            append: false,
            fill: 1.0,
            is_random: false,
            resets: true,
            more_resets: None,
            shape: None,
        }
    }
}

/// Resets of zones that are not full (fio's `zone_reset_threshold` and `zone_reset_frequency`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneResets {
    /// Once more than this share of all zones is written, 0 to 1,
    pub threshold: f64,
    /// the zone of every so many writes is reset before it.
    pub every: u64,
}

impl ZoneRules {
    /// The rules of a generator with this mix, in order or not, on a device with these zones, and the zones it writes; `None`: it goes
    /// anywhere. Or why it cannot.
    pub(super) fn on(
        rules: Option<&ZoneRules>,
        on: Option<ZoneShape>,
        (mix, is_in_order): (Mix, bool),
    ) -> Result<Option<(ZoneRules, ZoneShape)>, &'static str> {
        let rules = match (rules, on) {
            (None, None) => return Ok(None),
            (None, Some(_)) if mix == (Mix::Share { read: 1.0, trim: 0.0 }) => return Ok(None),
            (None, Some(_)) if is_in_order => ZoneRules::default(),
            (None, Some(_)) => return Err(NOT_IN_ORDER),
            (Some(rules), _) => rules.clone(),
        };
        // Zones of the same size are those of the device.
        let same = |shape: &ZoneShape| on.is_some_and(|on| on.size_bytes == shape.size_bytes);
        let shape = rules.shape.filter(|shape| !same(shape)).or(on).ok_or(NO_ZONES)?;
        Ok(Some((rules, shape)))
    }

    /// Its words in the text of a generator.
    pub(super) fn parse(words: &Words) -> Result<ZoneRules, WorkloadError> {
        let open = words.number("open", 1..=1_000_000)?.map(|open| open as u32);
        let fill = words.share("fill")?.unwrap_or(1.0);
        if fill == 0.0 {
            return Err(words.wrong("fill", "more than 0 %, at most 100 %"));
        }
        let [append, is_random, keeps] = FLAGS.iter().map(|flag| words.flag(flag)).collect::<Vec<_>>()[..]
        else {
            unreachable!("three flags")
        };
        Ok(ZoneRules { open, append, fill, is_random, resets: !keeps, ..ZoneRules::default() })
    }
}

/// Bytes of each request, and the share of reads; or why these requests do not fit zones.
fn requests(plan: &Plan) -> Result<(u32, f64), String> {
    match (&plan.sizes, plan.mix) {
        (Sizes::Fixed(bytes), Mix::Share { read, trim: 0.0 }) if plan.read_sizes.is_none() => {
            Ok((*bytes, read))
        }
        _ => Err("requests to zones are reads and writes of one size; zones are reset as a whole".into()),
    }
}

/// Fails if the device has other zones.
fn same_zones(shape: ZoneShape, on: Option<ZoneShape>) -> Result<(), String> {
    match on.filter(|on| *on != shape) {
        None => Ok(()),
        Some(on) => Err(format!(
            "its zones are of {}, those of the device of {}",
            told_bytes(shape.size_bytes),
            told_bytes(on.size_bytes)
        )),
    }
}

/// An open zone.
#[derive(Clone, Copy, Debug)]
struct Turn {
    zone: u32,
    written: u64,
}

/// Writes to zones, and reads what it wrote.
#[derive(Clone, Debug)]
pub struct ZoneWriter {
    start: u64,
    zones: u32,
    shape: ZoneShape,
    /// Bytes of a zone that are written.
    limit: u64,
    bytes: u32,
    read_below: u64,
    open: Vec<Option<Turn>>,
    turn: usize,
    /// The next zone in order.
    next_zone: u32,
    /// Bytes in each zone that were written since its last reset.
    written: Vec<u64>,
    written_in_all: u64,
    rules: ZoneRules,
    /// Whether the device has these zones, so that they must be reset.
    is_zoned: bool,
    writes: u64,
    arrivals: Arrivals,
    rng: Rng,
    pending: Option<Request>,
    flush_every: u64,
    flush_in: u64,
    flush_at_end: bool,
    remaining: u64,
    is_endless: bool,
    time_limit: Option<Span>,
    threads: u32,
    like: Request,
}

impl ZoneWriter {
    /// Writes as `plan` says, by `rules`; or the reason why it cannot. `on`: the zones of the device.
    pub(super) fn new(
        plan: &Plan,
        rules: &ZoneRules,
        (shape, on): (ZoneShape, Option<ZoneShape>),
        seed: u64,
    ) -> Result<ZoneWriter, String> {
        let (bytes, read) = requests(plan)?;
        same_zones(shape, on)?;
        let size = shape.size_bytes;
        let zones = u32::try_from((plan.region.end - plan.region.start) / size).unwrap_or(u32::MAX);
        if !plan.region.start.is_multiple_of(size) || zones == 0 {
            return Err(format!(
                "it goes from {} to {}, which is no whole zone of {}",
                told_bytes(plan.region.start),
                told_bytes(plan.region.end),
                told_bytes(size)
            ));
        }
        let limit = match (shape.capacity_bytes as f64 * rules.fill) as u64 / bytes as u64 * bytes as u64 {
            _ if rules.fill == 1.0 => shape.capacity_bytes,
            limit => limit.max(bytes as u64),
        };
        if limit > shape.capacity_bytes || u32::try_from(size).is_err() {
            return Err(format!("zones of {} and requests of {bytes} B", told_bytes(shape.capacity_bytes)));
        }
        let most = if rules.is_random { shape.open_max } else { 1 };
        let open = rules.open.unwrap_or(most).min(zones);
        if open > shape.open_max {
            return Err(format!(
                "open={open}, but at most {} zones of the device may be open",
                shape.open_max
            ));
        }
        let op = if read == 1.0 { Op::Read } else { Op::Write };
        Ok(ZoneWriter {
            start: plan.region.start,
            zones,
            shape,
            limit,
            bytes,
            read_below: if op == Op::Read { 0 } else { (read * (1u128 << 64) as f64) as u64 },
            open: vec![None; open as usize],
            turn: 0,
            next_zone: 0,
            written: vec![0; zones as usize],
            written_in_all: 0,
            is_zoned: on.is_some() && op == Op::Write,
            writes: 0,
            arrivals: Arrivals::new(plan.pace, plan.time_limit, seed),
            rng: Rng::stream(seed, KIND),
            pending: None,
            flush_every: plan.flush_every,
            flush_in: plan.flush_every,
            flush_at_end: plan.flush_at_end,
            remaining: plan.requests.unwrap_or(u64::MAX),
            is_endless: plan.requests.is_none(),
            time_limit: plan.time_limit,
            threads: plan.threads,
            like: Request { op, fua: plan.fua && op == Op::Write, stream: plan.stream, ..Request::default() },
            rules: rules.clone(),
        })
    }

    /// Takes its end away ([`super::AnyGenerator::go_on`]).
    pub(super) fn go_on(&mut self, restarts: bool) {
        (self.remaining, self.is_endless, self.time_limit, self.flush_at_end) = (u64::MAX, true, None, false);
        self.arrivals.go_on(restarts);
    }

    fn zone_start(&self, zone: u32) -> u64 {
        self.start + zone as u64 * self.shape.size_bytes
    }

    #[inline]
    fn next(&mut self) -> Option<Request> {
        if let Some(request) = self.pending.take() {
            return Some(request);
        }
        if self.flush_every > 0 && self.flush_in == 0 {
            self.flush_in = self.flush_every;
            return Some(self.of_no_bytes());
        }
        if self.remaining == 0 {
            return std::mem::take(&mut self.flush_at_end).then(|| self.of_no_bytes());
        }
        let Some(at) = self.arrivals.next() else {
            self.remaining = 0;
            return std::mem::take(&mut self.flush_at_end).then(|| self.of_no_bytes());
        };
        self.remaining -= 1;
        if self.read_below > 0 && self.written_in_all > 0 && self.rng.bits() < self.read_below {
            return Some(Request { at, ..self.read() });
        }
        Some(self.write(at))
    }

    fn of_no_bytes(&self) -> Request {
        Request { at: self.arrivals.now(), op: Op::Flush, stream: self.like.stream, ..Request::default() }
    }

    /// A read of a block that was written.
    fn read(&mut self) -> Request {
        let first = self.rng.below(self.zones as u64) as u32;
        let zone = (0..self.zones).map(|nth| (first + nth) % self.zones);
        let zone = zone.into_iter().find(|&zone| self.written[zone as usize] > 0).unwrap_or(0);
        let blocks = (self.written[zone as usize] / self.bytes as u64).max(1);
        let offset = self.zone_start(zone) + self.rng.below(blocks) * self.bytes as u64;
        let bytes = self.bytes.min(self.written[zone as usize] as u32);
        Request { offset, bytes, op: Op::Read, fua: false, ..self.like }
    }

    /// The next write, or the reset that it needs before.
    fn write(&mut self, at: Time) -> Request {
        if self.rules.is_random {
            self.turn = self.rng.below(self.open.len() as u64) as usize;
        }
        let is_new = self.open[self.turn].is_none();
        if is_new {
            let zone = self.take_zone();
            self.open[self.turn] = Some(Turn { zone, written: 0 });
        }
        self.writes += 1;
        let resets = is_new && self.rules.resets || !is_new && self.is_reset_due();
        let Some(Turn { zone, written }) = &mut self.open[self.turn] else {
            unreachable!("a zone was taken")
        };
        if resets {
            *written = 0;
        }
        let (zone, offset) = (*zone, *written);
        let bytes = (self.limit - offset).min(self.bytes as u64) as u32;
        *written += bytes as u64;
        if *written == self.limit {
            self.open[self.turn] = None;
        }
        if resets {
            self.written_in_all -= std::mem::take(&mut self.written[zone as usize]);
        }
        self.written[zone as usize] += bytes as u64;
        self.written_in_all += bytes as u64;
        self.turn = if self.turn + 1 == self.open.len() { 0 } else { self.turn + 1 };
        self.flush_in = self.flush_in.saturating_sub(1);
        let start = self.zone_start(zone);
        let write = Request { at, offset: start + offset, bytes, ..self.like };
        if !resets || !self.is_zoned {
            return write;
        }
        self.pending = Some(write);
        Request { offset: start, bytes: self.shape.size_bytes as u32, op: Op::Trim, fua: false, ..write }
    }

    /// The next zone to be written: in order, or a random one that is not open.
    fn take_zone(&mut self) -> u32 {
        let is_open = |open: &[Option<Turn>], zone: u32| open.iter().flatten().any(|turn| turn.zone == zone);
        let mut zone = match self.rules.is_random {
            true => self.rng.below(self.zones as u64) as u32,
            false => self.next_zone,
        };
        while is_open(&self.open, zone) {
            zone = (zone + 1) % self.zones;
        }
        self.next_zone = (zone + 1) % self.zones;
        zone
    }

    fn is_reset_due(&self) -> bool {
        self.rules.more_resets.is_some_and(|resets| {
            let all = self.zones as u64 * self.shape.capacity_bytes;
            self.written_in_all as f64 > resets.threshold * all as f64
                && self.writes.is_multiple_of(resets.every.max(1))
        })
    }
}

impl Workload for ZoneWriter {
    fn pacing(&self) -> Pacing {
        self.arrivals.pacing()
    }
    fn threads(&self) -> u32 {
        self.threads
    }
    fn footprint(&self) -> Range<u64> {
        self.start..self.zone_start(self.zones)
    }
    /// Requests left; flushes and resets are not counted.
    fn len_hint(&self) -> Option<u64> {
        (!self.is_endless).then_some(self.remaining)
    }
    fn time_limit(&self) -> Option<Span> {
        self.time_limit
    }
}

impl BlockWorkload for ZoneWriter {
    fn fill(&mut self, batch: &mut Batch) -> usize {
        assert!(batch.room() > 0, "a full batch cannot be filled");
        let before = batch.len();
        while batch.room() > 0 {
            match self.next() {
                Some(request) => batch.push(request),
                None => break,
            }
        }
        batch.len() - before
    }
    fn appends(&self) -> bool {
        self.rules.append
    }
}

#[cfg(test)]
mod tests {
    use super::super::GeneratorSpec;
    use super::*;

    const SEED: u64 = 1;

    /// Zones of 1 MiB, of which 768 KiB can be written.
    const SHAPE: ZoneShape = ZoneShape { size_bytes: 1 << 20, capacity_bytes: 768 << 10, open_max: 4 };

    fn in_zones(text: &str, count: usize) -> Vec<Request> {
        let spec = GeneratorSpec { on: Some(SHAPE), ..GeneratorSpec::parse(text).unwrap() };
        let mut workload = spec.open(text, 8 << 20, SEED).unwrap();
        let (mut batch, mut requests) = (Batch::new(), Vec::new());
        while requests.len() < count && workload.fill(&mut batch) > 0 {
            requests.extend_from_slice(batch.requests());
            batch.clear();
        }
        requests
    }

    #[test]
    fn zones_are_written_by_turns_and_reset_before() {
        let requests = in_zones("zones open=3 bs=64KiB qd=8 append", 200);
        let mut pointers = [u64::MAX; 8];
        for (nth, request) in requests.iter().enumerate() {
            let (zone, offset) = ((request.offset >> 20) as usize, request.offset & 0xf_ffff);
            match request.op {
                Op::Trim => pointers[zone] = 0,
                _ => {
                    assert_eq!(offset, pointers[zone], "request {nth}: {request:?}");
                    pointers[zone] += request.bytes as u64;
                }
            }
        }
        let first: Vec<(Op, u64)> =
            requests[..8].iter().map(|request| (request.op, request.offset >> 16)).collect();
        let (reset, write) = (Op::Trim, Op::Write);
        let wanted = [
            (reset, 0),
            (write, 0),
            (reset, 16),
            (write, 16),
            (reset, 32),
            (write, 32),
            (write, 1),
            (write, 17),
        ];
        assert_eq!(first, wanted);
        let parsed = GeneratorSpec::parse("zones append").unwrap();
        let appends =
            GeneratorSpec { on: Some(SHAPE), ..parsed }.open("zones", 8 << 20, 1).unwrap().appends();
        assert!(
            appends && !GeneratorSpec::parse("sequential").unwrap().open("s", 1 << 20, 1).unwrap().appends()
        );
    }

    #[test]
    fn zones_are_filled_to_a_share_and_read_where_they_are_written() {
        let requests = in_zones("zones fill=25% bs=64KiB read=50% until=400io", 1000);
        let mut written = [0; 8];
        for request in &requests {
            let (zone, end) = ((request.offset >> 20) as usize, request.end() & 0xf_ffff);
            match request.op {
                Op::Trim => written[zone] = 0,
                Op::Write => written[zone] = end,
                _ => assert!(end <= written[zone], "{request:?}"),
            }
            assert!(end <= 192 << 10);
        }
        assert_eq!(requests.iter().filter(|request| request.op != Op::Trim).count(), 400);
        let random = in_zones("zones random open=2 bs=64KiB", 100);
        assert_ne!(random[0].offset + random[2].offset, 0);
    }

    #[test]
    fn what_does_not_fit_zones_is_refused() {
        let refused = |text: &str, on: Option<ZoneShape>| {
            let spec = GeneratorSpec { on, ..GeneratorSpec::parse(text).unwrap() };
            spec.open(text, 8 << 20, SEED).unwrap_err().to_string()
        };
        assert!(refused("zones", None).contains("use a design of kind zoned"));
        assert!(refused("uniform", Some(SHAPE)).contains("written in order"));
        assert!(refused("zones open=5", Some(SHAPE)).contains("at most 4 zones"));
        assert!(refused("zones offset=4KiB", Some(SHAPE)).contains("no whole zone"));
        assert!(refused("zones trim=10%", Some(SHAPE)).contains("zones are reset as a whole"));
        assert!(GeneratorSpec::parse("zones fill=0%").unwrap_err().to_string().contains("fill=0% is wrong"));
        // Reads go anywhere, sequential writes as those of one zone.
        assert!(in_zones("uniform rw=randread", 10).iter().all(|request| request.op == Op::Read));
        assert_eq!(in_zones("sequential bs=64KiB", 20)[13].offset, 1 << 20);
    }
}
