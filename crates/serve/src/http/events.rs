//! Streams of events: every half second, the state of each device and its counts since the previous event.
//!
//! One event is made for all clients, and only while there are any: a device without clients pays nothing. Streams
//! have no queue: each sends the latest event, so that a slow client misses some and delays nobody.

use super::watched::Watched;
use crate::served::View;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nvlab_controller::Use;
use nvlab_run::device::RegionMap;
use nvlab_run::meter::{OpTotals, TRANSACTION};
use nvlab_units::{Histogram, Span};
use nvlab_workload::Op;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two events.
pub(super) const EVERY: Duration = Duration::from_millis(500);
/// Cells of a map at most; more blocks share cells.
const CELLS_MAX: usize = 1 << 14;
/// Power cuts that are listed.
const CUTS_LISTED: usize = 10;

/// The latest event.
pub(super) struct Events {
    shown: Vec<Arc<dyn Watched>>,
    last: Mutex<Option<Made>>,
}

struct Made {
    at: Instant,
    number: u64,
    text: Arc<str>,
    views: Vec<View>,
}

impl Events {
    pub fn new(shown: Vec<Arc<dyn Watched>>) -> Events {
        Events { shown, last: Mutex::default() }
    }

    pub fn shown(&self) -> &[Arc<dyn Watched>] {
        &self.shown
    }

    /// True if all of it has ended.
    pub fn ended(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_some_and(|made| made.views.iter().all(|view| view.ended))
    }

    /// The latest event and its number, made now if the last one is too old.
    pub fn latest(&self) -> (u64, Arc<str>) {
        // A panic can damage an event only.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = last.as_ref().filter(|made| made.at.elapsed() < EVERY) {
            return (made.number, Arc::clone(&made.text));
        }
        let (at, views) = (Instant::now(), self.shown.iter().map(|shown| shown.view()).collect::<Vec<_>>());
        let number = last.as_ref().map_or(1, |made| made.number + 1);
        let before = last.as_ref().map(|made| (at - made.at, &made.views));
        let device = |(number, view): (usize, &View)| {
            let before = before.map(|(since, views)| (since, &views[number]));
            of(self.shown[number].name(), view, before)
        };
        let devices: Vec<Value> = views.iter().enumerate().map(device).collect();
        let text = Arc::from(format!("id: {number}\ndata: {}\n\n", json!({ "devices": devices })));
        *last = Some(Made { at, number, text, views });
        let made = last.as_ref().expect("it was just made");
        (number, Arc::clone(&made.text))
    }
}

/// A device as of `view`, and what it did since the one before.
fn of(name: &str, view: &View, before: Option<(Duration, &View)>) -> Value {
    let none = View::default();
    // After a power cut counts start anew. A rate is one of the device's time in a run, where it is not that of a wall.
    let (seconds, old) = match before {
        Some((wall, old)) if old.cuts.len() == view.cuts.len() => {
            let device = view.now.since(old.now.min(view.now)).seconds();
            (if view.is_run { device } else { wall.as_secs_f64() }, old)
        }
        Some((wall, _)) => (wall.as_secs_f64(), &none),
        None => (0.0, view),
    };
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let op = |op: usize| {
        let [old, new] = [&old.totals[op], &view.totals[op]];
        let [p50, p99] = recent(old, new).map(|span| span.map(|span| span.seconds()));
        json!({
            "per_s": per_second(new.count().saturating_sub(old.count())),
            "bytes_per_s": per_second(new.bytes.saturating_sub(old.bytes)),
            "p50_s": p50, "p99_s": p99, "count": new.count(), "bytes": new.bytes,
        })
    };
    let ratio = |over: u64, under: u64| (under > 0).then(|| over as f64 / under as f64);
    let (host, programmed) = (view.counters.host_units, view.counters.programmed_units());
    let since = |new: u64, old: u64| new.saturating_sub(old);
    let (inside, was) = (&view.inside, &old.inside);
    // A memory used in place and a disk never make room.
    let makes_room = inside.units_per_block() > 0;
    let cleaned = since(inside.cleaned.0, was.cleaned.0);
    let live = since(inside.cleaned.1, was.cleaned.1);
    let cuts = view.cuts.iter().enumerate().rev().take(CUTS_LISTED).map(|(number, cut)| {
        json!({
            "number": number + 1, "operations": cut.operations,
            "at_s": cut.at.seconds(), "recovery_s": cut.recovery.seconds(),
        })
    });
    json!({
        "name": name, "is_run": view.is_run, "capacity_bytes": view.capacity_bytes, "now_s": view.now.seconds(),
        "lost": view.lost, "paused": view.paused, "ended": view.ended,
        "has_plug": view.has_plug, "has_pause": view.has_pause, "has_rate": view.has_rate,
        "phase": view.phase.as_ref().map(|(phase, _)| phase), "done": view.phase.as_ref().map(|(_, done)| done),
        "queue_growth": view.queue_growth, "rate": view.rate, "speed": view.speed,
        "read": op(Op::Read as usize), "write": op(Op::Write as usize),
        "transaction": (view.totals[TRANSACTION].count() > 0).then(|| op(TRANSACTION)),
        "wa": ratio(since(programmed, old.counters.programmed_units()), since(host, old.counters.host_units)),
        "wa_all": ratio(programmed, host),
        // The share of a cleaned block that had to be moved first.
        "clean_live": ratio(live, cleaned * inside.units_per_block() as u64),
        // What the host's units cost in moves: the cleaning cost of eNVy (section 4.1), for any device.
        "clean_cost": ratio(since(inside.moved_units, was.moved_units), since(host, old.counters.host_units))
            .filter(|_| makes_room),
        "clean_cost_all": ratio(inside.moved_units, host).filter(|_| makes_room),
        "cleaned": inside.cleaned.0, "erases": makes_room.then_some(view.counters.erases),
        "buffer": inside.buffer.map(|fill| json!({ "used": fill.used, "room": fill.room, "what": fill.what })),
        "figures": view.figures,
        "cuts": cuts.collect::<Vec<_>>(), "cut_count": view.cuts.len(),
        "maps": inside.maps.iter().flatten().filter(|map| !map.is_empty()).map(map).collect::<Vec<_>>(),
        "no_map": inside.maps.as_ref().err(),
    })
}

/// A map: a byte for each cell, by live data, by wear and by use, as far as they are known.
fn map(map: &RegionMap) -> Value {
    let (regions, parts) = (map.len(), map.part_count.max(1) as usize);
    let per_part = regions / parts;
    let shared = regions.div_ceil(CELLS_MAX).clamp(1, per_part.max(1));
    let cells = |level: &dyn Fn(Range<usize>) -> u8| -> String {
        let cells = (0..parts).flat_map(|part| {
            let (first, end) = (part * per_part, (part + 1) * per_part);
            (first..end).step_by(shared).map(move |from| from..(from + shared).min(end))
        });
        STANDARD.encode(cells.map(level).collect::<Vec<u8>>())
    };
    let mut value = json!({
        "name": map.name, "regions": map.regions, "parts": map.parts, "part_count": parts, "per_part": per_part,
        "shared": shared,
    });
    if let Some(held) = &map.held {
        let live = |cell: Range<usize>| {
            let room = cell.len() as u64 * held.units.max(1) as u64;
            let live: u64 = held.regions[cell].iter().map(|region| region.live as u64).sum();
            (live * 255).div_ceil(room).min(255) as u8
        };
        // Of several that share a cell the use that the most have.
        let used = |cell: Range<usize>| {
            let mut counts = [0; Use::ALL.len()];
            held.regions[cell].iter().for_each(|region| counts[region.used as usize] += 1);
            (0..counts.len()).max_by_key(|&used| (counts[used], Reverse(used))).unwrap_or(0) as u8
        };
        let count = |used: &Use| held.regions.iter().filter(|region| region.used == *used).count();
        let uses = Use::ALL.iter().map(|used| json!({ "name": used.name(), "count": count(used) }));
        value["live"] = cells(&live).into();
        value["live_units"] = map.live().into();
        value["units"] = (regions as u64 * held.units as u64).into();
        value["used"] = cells(&used).into();
        value["uses"] = uses.collect();
    }
    if let Some(worn) = &map.wear {
        let (least, most) = (worn.counts.iter().min(), worn.counts.iter().max());
        let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
        let wear = |cell: Range<usize>| {
            let worn = worn.counts[cell].iter().max().copied().unwrap_or(least);
            ((worn - least) as u64 * 255 / (most - least).max(1) as u64) as u8
        };
        let mean = worn.counts.iter().map(|&count| count as f64).sum::<f64>() / regions as f64;
        value["wear"] = cells(&wear).into();
        value["worn"] =
            json!({ "min": least, "mean": mean, "max": most, "rated": worn.rated, "what": worn.what });
    }
    value
}

/// Median and 99th percentile of what was added; `None` if nothing was.
fn recent(before: &OpTotals, now: &OpTotals) -> [Option<Span>; 2] {
    let (before, now): (&Histogram, &Histogram) = (&before.latency, &now.latency);
    let mut old = before.buckets().peekable();
    let mut came = Vec::new();
    for (bound, count) in now.buckets() {
        // Buckets never shrink, so each old one is among the new.
        let had = old.next_if(|&(old, _)| old == bound).map_or(0, |(_, count)| count);
        came.push((bound, count.saturating_sub(had)));
    }
    let all = now.count().saturating_sub(before.count());
    [0.5, 0.99].map(|share| {
        let mut left = (all as f64 * share).ceil() as u64;
        let reached = came.iter().find(|&&(_, count)| {
            left = left.saturating_sub(count);
            left == 0
        });
        reached.filter(|_| all > 0).map(|&(bound, _)| bound)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::Inside;
    use nvlab_controller::Region;
    use nvlab_run::device::maps::{Held, Worn};
    use nvlab_units::Time;

    #[test]
    fn percentiles_are_of_what_came_since() {
        let [mut before, mut now] = [OpTotals::default(), OpTotals::default()];
        for _ in 0..1000 {
            before.latency.add(Span::from_us(7000));
            now.latency.add(Span::from_us(7000));
        }
        assert_eq!(recent(&before, &now), [None; 2]);
        (0..98).for_each(|_| now.latency.add(Span::from_us(10)));
        (0..2).for_each(|_| now.latency.add(Span::from_us(300)));
        let [p50, p99] = recent(&before, &now).map(Option::unwrap);
        let near = |found: Span, us: u64| (found.ps() as f64 / (us as f64 * 1e6) - 1.0).abs() < 0.1;
        assert!(near(p50, 10) && near(p99, 300), "{p50} {p99}");
    }

    #[test]
    fn rates_are_between_two_events_and_begin_anew_with_the_power() {
        let before = View::default();
        let mut view = View::default();
        view.totals[Op::Write as usize].bytes = 4000;
        (0..8).for_each(|_| view.totals[Op::Write as usize].latency.add(Span::ZERO));
        (view.counters.host_units, view.counters.causes.host) = (2, 3);
        let event = of("x", &view, Some((Duration::from_secs(2), &before)));
        assert_eq!((&event["write"]["bytes_per_s"], &event["write"]["per_s"]), (&json!(2000.0), &json!(4.0)));
        assert_eq!(
            (&event["wa"], &event["wa_all"], &event["read"]["p99_s"]),
            (&json!(1.5), &json!(1.5), &Value::Null)
        );
        let cut = crate::served::Cut { operations: 1, at: Time::ZERO, recovery: Span::ZERO };
        let again = View { cuts: vec![cut], ..View::default() };
        let event = of("x", &again, Some((Duration::from_secs(1), &view)));
        assert_eq!((&event["write"]["bytes_per_s"], &event["cut_count"]), (&json!(0.0), &json!(1)));
        // A run is measured in its own time.
        let (then, now) =
            (View { is_run: true, ..before }, View { is_run: true, now: Time::from_ns(500), ..view });
        assert_eq!(of("x", &now, Some((Duration::from_secs(2), &then)))["write"]["per_s"], 8.0 / 500e-9);
    }

    #[test]
    fn a_map_has_a_bounded_number_of_cells() {
        let blocks = 100_000;
        let regions = vec![Region { live: 8, used: Use::Data }; blocks];
        let made = RegionMap {
            name: "data",
            regions: "blocks",
            parts: "dies",
            part_count: 8,
            held: Some(Held { regions, units: 16 }),
            wear: Some(Worn { counts: (0..blocks as u32).collect(), what: "erases", rated: 3000 }),
        };
        let value = map(&made);
        let cells = |name: &str| STANDARD.decode(value[name].as_str().unwrap()).unwrap();
        let wear = cells("wear");
        assert!(wear.len() <= CELLS_MAX + 8 && wear[0] == 0 && *wear.last().unwrap() == 255);
        assert!(cells("live").iter().all(|cell| *cell == 128), "half is live");
        assert!(cells("used").iter().all(|cell| *cell == Use::Data as u8));
        assert_eq!((&value["live_units"], &value["units"]), (&json!(800_000), &json!(1_600_000)));
        let counted: u64 =
            value["uses"].as_array().unwrap().iter().map(|used| used["count"].as_u64().unwrap()).sum();
        assert_eq!(counted, blocks as u64);
        // Of a memory only its wear is known.
        let memory = RegionMap { held: None, ..made };
        assert_eq!((&map(&memory)["live"], map(&memory)["wear"].is_string()), (&Value::Null, true));
    }

    #[test]
    fn a_device_without_a_map_says_why() {
        let inside = Inside { maps: Err("it has none"), ..Inside::default() };
        let event = of("x", &View { inside, ..View::default() }, None);
        assert_eq!((&event["no_map"], &event["maps"]), (&json!("it has none"), &json!([])));
    }
}
