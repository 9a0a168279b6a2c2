//! The power fails at every request, before and during and after, in the background work that follows, and again
//! during recovery. Afterwards every word is old or new, what was acknowledged is new, and a transaction
//! is kept or undone as a whole.

use crate::envy::device::{Ask, Model, Setup, draw, perform, read_all, setups};
use nvlab_controller::{Background, Envy};
use nvlab_medium::MemStore;
use nvlab_units::{Rng, Span, Time};

/// A request and what the array held around it.
struct Moment<'a> {
    setup: &'a Setup,
    /// After the request.
    device: &'a Envy<MemStore>,
    ask: Ask,
    before: &'a Model,
    after: &'a Model,
    at: Time,
    end: Time,
}

impl Moment<'_> {
    fn context(&self, cut: Time) -> String {
        format!(
            "cut at {} ps, {:?} from {} to {} ps, {:?}",
            cut.ps(),
            self.ask,
            self.at.ps(),
            self.end.ps(),
            self.setup
        )
    }

    /// What must be found if the request had not, or had, been done.
    fn allowed(&self, cut: Time) -> (Vec<u8>, Vec<u8>) {
        let rolled_back = |model: &Model| model.before.clone().unwrap_or_else(|| model.bytes.clone());
        let (old, new) = (rolled_back(self.before), rolled_back(self.after));
        if cut >= self.end { (new.clone(), new) } else { (old, new) }
    }

    /// Cuts, recovers, compares, cuts the recovery, compares, continues.
    fn cut(&self, cut: Time, rng: &mut Rng) {
        let media = self.device.clone().power_cut(cut);
        let (mut device, report) = self.setup.recover(media, cut);
        device.check();
        let ready = cut + report.time;
        let found = read_all(&mut device.clone(), ready);
        let (old, new) = self.allowed(cut);
        let whole = matches!(self.ask, Ask::Commit | Ask::Abort | Ask::Begin);
        if whole {
            assert!(found == old || found == new, "half a transaction: {}", self.context(cut));
        }
        for (i, word) in found.chunks(8).enumerate() {
            let range = i * 8..i * 8 + 8;
            assert!(
                word == &old[range.clone()] || word == &new[range.clone()],
                "word {i} is {word:x?}, was {:x?}, stored {:x?}: {}",
                &old[range.clone()],
                &new[range],
                self.context(cut)
            );
        }
        for again in 0..2 {
            let second = cut + (report.time * (again * 5 + rng.below(6))) / 10;
            let media = device.clone().power_cut(second);
            let (mut twice, later) = self.setup.recover(media, second);
            twice.check();
            let bytes = read_all(&mut twice, second + later.time);
            assert!(bytes == found, "again at {}: {}", second.ps(), self.context(cut));
        }
        let mut model = self.after.clone();
        (model.bytes, model.before) = (found, None);
        let mut now = ready;
        for _ in 0..25 {
            now = perform(&mut device, &mut model, now, draw(rng, self.setup));
        }
        device.check();
        assert!(read_all(&mut device, now) == model.bytes, "after going on: {}", self.context(cut));
    }
}

fn cut_everywhere(setup: &Setup, seed: u64, requests: u32) {
    let mut device = setup.device();
    let mut model = Model::new(device.capacity_bytes());
    let mut rng = Rng::stream(seed, "cuts");
    let mut now = Time::ZERO;
    for i in 0..500 + requests {
        let ask = draw(&mut rng, setup);
        let (before, at) = (model.clone(), now);
        let end = perform(&mut device, &mut model, at, ask);
        let gap = match rng.below(5) {
            0 => Span::ZERO,
            1 | 2 => Span::from_ns(rng.below(20_000)),
            3 => Span::from_us(rng.below(1000)),
            _ => Span::from_us(rng.below(80_000)),
        };
        now = end + gap;
        if i < 500 {
            device.settle(at);
            continue;
        }
        let moment = Moment { setup, device: &device, ask, before: &before, after: &model, at, end };
        let within = at + end.since(at) * rng.below(1000) / 1000;
        let later = end + gap * rng.below(1000) / 1000;
        for cut in [at, within, end, later, now] {
            moment.cut(cut, &mut rng);
        }
        device.settle(at);
    }
}

/// Goes through set-ups on two threads.
fn explore(first_seed: u64, requests: u32) {
    let setups = setups();
    let work = std::sync::Mutex::new(setups.iter().enumerate());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((index, setup)) = work.lock().unwrap().next() else { break };
                    cut_everywhere(setup, first_seed + index as u64, requests);
                }
            });
        }
    });
}

#[test]
fn no_word_is_lost_or_torn() {
    explore(0, 40);
}

/// Found once: pages on their way to a neighbour that were not there yet had no room in the partner, which
/// flushes had filled before the cut.
#[test]
#[ignore = "two minutes"]
fn no_word_is_lost_or_torn_in_a_long_time() {
    explore(1000, 200);
}

/// Every half microsecond while a segment is copied, every millisecond while it is erased.
#[test]
fn a_clean_can_be_cut_at_every_step() {
    for setup in [&setups()[3], &setups()[39]] {
        let mut device = setup.device();
        let mut model = Model::new(device.capacity_bytes());
        let mut rng = Rng::stream(9, "clean");
        let mut now = Time::ZERO;
        let mut cuts = 0;
        for i in 0..4000 {
            let (cleans, swaps) = (device.stats().cleans, device.stats().wear_swaps);
            let (before, at) = (model.clone(), now);
            let lpa = rng.below(device.capacity_bytes() / 256);
            let ask = Ask::Store { offset: lpa * 256, bytes: 8 };
            let end = perform(&mut device, &mut model, at, ask);
            now = device.idle_at(end).unwrap();
            device.settle(at);
            let busy = device.stats().cleans > cleans || device.stats().wear_swaps > swaps;
            if !busy || i < 3000 {
                continue;
            }
            let moment = Moment { setup, device: &device, ask, before: &before, after: &model, at, end };
            let mut cut = at;
            while cut < now {
                moment.cut(cut, &mut rng);
                cuts += 1;
                let step =
                    if cut.since(at) < Span::from_us(200) { Span::from_ns(500) } else { Span::from_ms(5) };
                cut += step;
            }
            if cuts > 2000 {
                break;
            }
        }
        assert!(cuts > 1000, "{cuts} cuts: {setup:?}");
    }
}

/// The test itself must be able to fail: a device whose time stands still loses what it said was durable.
#[test]
#[should_panic(expected = "was")]
fn an_acknowledgement_too_early_is_caught() {
    let setup = &setups()[3];
    let mut device = setup.device();
    let mut model = Model::new(device.capacity_bytes());
    let before = model.clone();
    let ask = Ask::Store { offset: 0, bytes: 8 };
    let at = Time::from_ns(1000);
    let end = perform(&mut device, &mut model, at, ask);
    let early = end.before(Span::from_ns(101));
    let moment = Moment { setup, device: &device, ask, before: &before, after: &model, at, end: early };
    moment.cut(early, &mut Rng::new(1));
}
