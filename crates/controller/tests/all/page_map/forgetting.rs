//! A store that forgets what the controller discards, beside one that keeps everything: whatever is asked, and whenever the
//! power fails, the two devices do, count and return the same. And little more is kept than what is live.

use crate::array::UNIT;
use crate::page_map::device::{
    Ask, Model, Setup, cached_setups, demand_setups, draw, of_superblocks, perform, setups,
};
use nvlab_controller::page_map::PageMapMedia;
use nvlab_controller::{Background, Controller, ControllerError, PageMap, RecoveryReport};
use nvlab_medium::flash::{Faults, Nand};
use nvlab_medium::{MemStore, Store};
use nvlab_units::{Extent, Geometry, Lpa, Ppa, Rng, Span, Time};

const REQUESTS: u32 = 70;
/// What was forgotten reads as these: nothing that was ever written.
const FORGOTTEN: u8 = 0xdb;
/// The first bytes of spare areas of checkpoints, of the journal of trims and of translation pages.
const OF_MAP: [u8; 3] = [0xc1, 0xb1, 0xe9];
/// Programs and erases that fail.
const FAULTS: Faults =
    Faults { factory_bad: 0.02, program_failure: 2200.0, erase_failure: 2200.0, seed: 3, ..Faults::NONE };

/// A store that keeps payload until it is discarded.
#[derive(Clone, Debug)]
pub struct Forgetful {
    bytes: MemStore,
    /// Of every unit, whether it was written and not discarded, and not zeros.
    held: Vec<bool>,
}

impl Forgetful {
    fn units(&self, offset: u64, bytes: u64) -> Option<std::ops::Range<usize>> {
        let (first, count) = (offset as usize / UNIT, bytes as usize / UNIT);
        (first < self.held.len()).then(|| first..first + count)
    }
}

impl Store for Forgetful {
    const KEEPS: bool = true;
    const SHOWS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        self.bytes.read(offset, into);
    }
    fn view(&self, offset: u64, bytes: usize) -> &[u8] {
        self.bytes.view(offset, bytes)
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        self.bytes.write(offset, data);
        for (unit, data) in self.units(offset, data.len() as u64).into_iter().flatten().zip(data.chunks(UNIT))
        {
            self.held[unit] = data.iter().any(|&byte| byte != 0);
        }
    }
    fn discard(&mut self, offset: u64, bytes: u64) {
        let units = self.units(offset, bytes).expect("only payload is discarded");
        self.held[units].fill(false);
        self.bytes.write(offset, &vec![FORGOTTEN; bytes as usize]);
    }
    fn holds(&self, offset: u64) -> bool {
        self.held[offset as usize / UNIT]
    }
}

/// A fresh store for an array.
pub fn forgetful(geometry: &Geometry) -> Forgetful {
    let bytes = MemStore::new(Nand::<MemStore>::store_bytes(geometry));
    Forgetful { bytes, held: vec![false; geometry.units() as usize] }
}

fn recover<S: Store>(setup: &Setup, media: PageMapMedia<S>, at: Time) -> (PageMap<S>, RecoveryReport) {
    let (device, report) = PageMap::recover(setup.config(), setup.cache, media, at).unwrap();
    device.check();
    (device, report)
}

/// The same device over both stores.
#[derive(Clone)]
struct Pair {
    whole: PageMap<MemStore>,
    forgetful: PageMap<Forgetful>,
}

impl Pair {
    fn new(setup: &Setup) -> Pair {
        Pair { whole: setup.device(), forgetful: setup.device_over(forgetful(&setup.flash().geometry)) }
    }

    /// `None` at the end of its life.
    fn perform(
        &mut self,
        model: &mut Model,
        at: Time,
        ask: Ask,
        context: &dyn Fn() -> String,
    ) -> Option<Time> {
        let mut twin = model.clone();
        let one = perform(&mut self.whole, model, at, ask);
        let other = perform(&mut self.forgetful, &mut twin, at, ask);
        assert_eq!(one, other, "{} {ask:?}", context());
        one.ok()
    }

    fn settle(&mut self, upto: Time) {
        self.whole.settle(upto);
        self.forgetful.settle(upto);
    }

    fn cut(self, setup: &Setup, at: Time, context: &dyn Fn() -> String) -> (Pair, Span) {
        let (whole, report) = recover(setup, self.whole.power_cut(at), at);
        let (forgetful, other) = recover(setup, self.forgetful.power_cut(at), at);
        assert_eq!((report.time, report.nand_reads), (other.time, other.nand_reads), "{}", context());
        let mut pair = Pair { whole, forgetful };
        pair.compare(at + report.time, context);
        (pair, report.time)
    }

    /// Every unit reads the same, and what was counted is the same.
    fn compare(&mut self, at: Time, context: &dyn Fn() -> String) {
        let (mut one, mut other) = (vec![0; UNIT], vec![0; UNIT]);
        let (mut whole, mut forgetful) = (self.whole.clone(), self.forgetful.clone());
        for lpa in 0..whole.capacity_units() {
            let extent = Extent::one(Lpa(lpa));
            assert_eq!(
                whole.read(at, extent, &mut one),
                forgetful.read(at, extent, &mut other),
                "{}",
                context()
            );
            assert_eq!(one, other, "{}: unit {lpa}", context());
        }
        assert_eq!(whole.stats(), forgetful.stats(), "{}", context());
        assert_eq!(whole.sequence(), forgetful.sequence(), "{}", context());
        assert_eq!(whole.nand().stats(), forgetful.nand().stats(), "{}", context());
    }

    /// What it holds is all there is to hold it against.
    fn settle_on_found(&self, at: Time, model: &mut Model, context: &dyn Fn() -> String) {
        let (mut device, mut bytes) = (self.whole.clone(), vec![0; UNIT]);
        let found: Vec<u64> = (0..device.capacity_units())
            .map(|lpa| {
                device.read(at, Extent::one(Lpa(lpa)), &mut bytes).unwrap();
                model.identify(lpa, &bytes, context)
            })
            .collect();
        model.settle_on(&found);
    }
}

/// Cuts the power, and again during recovery and after, and goes on.
fn cut_and_compare(
    setup: &Setup,
    (pair, model): (&Pair, &Model),
    cut: Time,
    rng: &mut Rng,
    context: &dyn Fn() -> String,
) {
    let (found, time) = pair.clone().cut(setup, cut, context);
    for part in [1, 5, 9] {
        let second = cut + time * part / 8;
        let (again, _) = found.clone().cut(setup, second, &|| format!("{}, again at {part}/8", context()));
        drop(again);
    }
    if !rng.chance(0.2) {
        return;
    }
    let (mut pair, mut now) = (found, cut + time);
    let mut model = model.clone();
    pair.settle_on_found(now, &mut model, context);
    let units = pair.whole.capacity_units();
    for _ in 0..30 {
        let ask = draw(rng, units);
        let Some(end) = pair.perform(&mut model, now, ask, context) else { return };
        pair.settle(now);
        now = end;
    }
    pair.cut(setup, now, &|| format!("{}, and 30 requests later", context()));
}

fn explore(setups: &[Setup]) {
    let work = std::sync::Mutex::new(setups.iter().enumerate());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((index, setup)) = work.lock().unwrap().next() else { break };
                    explore_one(setup, index as u64);
                }
            });
        }
    });
}

fn explore_one(setup: &Setup, seed: u64) {
    let mut pair = Pair::new(setup);
    let units = pair.whole.capacity_units();
    let (mut model, mut rng) = (Model::new(units), Rng::stream(seed, "forgetting"));
    let mut now = Time::ZERO;
    for request in 0..200 + REQUESTS {
        let ask = draw(&mut rng, units);
        let context = || format!("seed {seed}, request {request} {ask:?} of {setup:?}");
        let at = now;
        let Some(end) = pair.perform(&mut model, at, ask, &context) else { return };
        // As a server does: no cut comes before the time of the request that was answered last.
        if rng.chance(0.8) {
            pair.settle(at);
        }
        let length = end.since(at);
        now = end + if rng.chance(0.5) { length * rng.below(4000) / 1000 } else { Span::ZERO };
        if request >= 200 {
            for cut in [at + length * rng.below(1000) / 1000, end, now] {
                cut_and_compare(setup, (&pair, &model), cut, &mut rng, &context);
            }
        }
    }
}

#[test]
fn discarded_payload_is_never_missed() {
    explore(&setups());
}

#[test]
fn discarded_payload_is_never_missed_with_superblocks() {
    explore(&of_superblocks(setups()));
}

#[test]
fn discarded_payload_is_never_missed_with_a_cache_or_a_map_on_demand() {
    let setups: Vec<Setup> = cached_setups().into_iter().chain(demand_setups()).collect();
    explore(&setups);
}

/// A piece of an unfinished turn may tell of a trim of which nothing else on flash does, and the recovery that finds it erases
/// it: the trimmed version comes back with the next cut as it was, or never if a flush comes before.
#[test]
fn a_trim_known_only_to_an_unfinished_turn_keeps_its_payload() {
    const TRIMMED: u32 = 500;
    let unprotected = |setup: &Setup| setup.buffer == Some(false) && setup.units_per_page == 4;
    let mut came_back = 0;
    for setup in setups().into_iter().filter(|setup| setup.checkpoint.is_some() && unprotected(setup)) {
        // Of four pieces.
        let setup = Setup { checkpoint: Some(700), dies: 3, ..setup };
        let context = || format!("{setup:?}");
        let (mut pair, mut now) = (Pair::new(&setup), Time::ZERO);
        let mut model = Model::new(pair.whole.capacity_units());
        let write = |pair: &mut Pair, model: &mut Model, now: &mut Time, request: u32| {
            let extent = Extent { start: Lpa(request * 4 % 960), count: 4 };
            *now = pair.perform(model, *now, Ask::Write(extent), &context).unwrap();
            pair.settle(*now);
        };
        // From before the trimmed unit on, so that the first turn has it.
        (120..360).for_each(|request| write(&mut pair, &mut model, &mut now, request));
        // All of a turn, before anything has to be erased.
        for round in 0..20 {
            (0..5).for_each(|request| write(&mut pair, &mut model, &mut now, request));
            let (mut pair, mut model, mut now) = (pair.clone(), model.clone(), now);
            now = pair.perform(&mut model, now, Ask::Trim(Extent::one(Lpa(TRIMMED))), &context).unwrap();
            for request in 0..40 {
                write(&mut pair, &mut model, &mut now, request % 5);
                if (request + round) % 4 != 0 {
                    continue;
                }
                let cut = now + Span::from_ms(10);
                let (mut found, time) = pair.clone().cut(&setup, cut, &context);
                let (again, _) = found.clone().cut(&setup, cut + time * 2, &context);
                if !found.whole.is_mapped(Lpa(TRIMMED)) && again.whole.is_mapped(Lpa(TRIMMED)) {
                    came_back += 1;
                }
                if !found.whole.is_mapped(Lpa(TRIMMED)) {
                    let flushed =
                        found.perform(&mut model.clone(), cut + time, Ask::Flush, &context).unwrap();
                    let (again, _) = found.cut(&setup, flushed, &context);
                    assert!(
                        !again.whole.is_mapped(Lpa(TRIMMED)),
                        "{setup:?}: a trim that was flushed is gone"
                    );
                }
            }
        }
    }
    assert!(came_back > 0, "no piece told of the trim");
}

#[test]
fn discarded_payload_is_never_missed_where_programs_and_erases_fail() {
    let setups = setups().into_iter().chain(of_superblocks(setups()));
    let setups: Vec<Setup> =
        setups.map(|setup| Setup { faults: FAULTS, spare_blocks: 16, ..setup }).collect();
    explore(&setups);
}

/// The test must be able to fail: a controller that discards a version as soon as there is a newer one is caught.
#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn payload_discarded_too_early_is_missed() {
    let setup = &setups()[12];
    assert_eq!(setup.buffer, Some(false));
    let mut pair = Pair::new(setup);
    let (mut model, mut rng) = (Model::new(pair.whole.capacity_units()), Rng::new(1));
    let mut now = Time::ZERO;
    for _ in 0..100 {
        let ask = draw(&mut rng, pair.whole.capacity_units());
        now = pair.perform(&mut model, now, ask, &String::new).unwrap();
        // The end of what is queued, which a cut may well come before.
        pair.forgetful.settle(now + Span::from_ms(10));
        cut_and_compare(setup, (&pair, &model), now, &mut rng, &String::new);
    }
}

/// Units kept, beyond those that are live: what waits for its program or may still be undone, and the map's own.
#[test]
fn little_more_is_kept_than_what_is_live() {
    // Of pages of several units, one that is superseded by a unit that was superseded itself before its program failed stays until
    // its block is erased.
    let alone = setups().into_iter().filter(|setup| setup.units_per_page == 1);
    let failing = alone.map(|setup| Setup { faults: FAULTS, spare_blocks: 16, ..setup });
    let whole = setups().into_iter().chain(of_superblocks(setups())).chain(cached_setups());
    let mut failing_rounds = 0;
    'setups: for (seed, setup) in whole.chain(failing).enumerate() {
        let mut device = setup.device_over(forgetful(&setup.flash().geometry));
        let units = device.capacity_units();
        let (mut model, mut rng) = (Model::new(units), Rng::stream(seed as u64, "kept"));
        let mut now = Time::ZERO;
        for round in 0..40 {
            for _ in 0..100 {
                let mut ask = draw(&mut rng, units);
                if matches!(ask, Ask::Trim(_)) && !setup.trims_last() {
                    ask = Ask::Flush;
                }
                now = match perform(&mut device, &mut model, now, ask) {
                    Ok(end) => end,
                    // Too many blocks failed.
                    Err(ControllerError::EndOfLife { .. }) if setup.faults == FAULTS => continue 'setups,
                    Err(error) => panic!("{error} in round {round} of {setup:?}"),
                };
                device.settle(now);
            }
            now = device.drain(now).unwrap();
            now = device.idle_at(now).unwrap();
            device.settle(now);
            let all = (0..device.nand().geometry().units() as u32).map(Ppa);
            let of_map = |unit| device.nand().spare(unit).is_ok_and(|spare| OF_MAP.contains(&spare[0]));
            let kept = all.filter(|&unit| device.nand().holds(unit) && !of_map(unit)).count() as u32;
            let live = (0..units).filter(|&lpa| device.is_mapped(Lpa(lpa))).count() as u32;
            assert!(kept <= live, "round {round}: {kept} units for {live} live ones of {setup:?}");
            failing_rounds += u32::from(setup.faults == FAULTS);
        }
        assert!(device.stats().cleans > 5, "{setup:?}");
    }
    assert!(failing_rounds > 20, "only {failing_rounds} rounds with programs that fail");
}
