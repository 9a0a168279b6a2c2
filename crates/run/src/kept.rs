//! Stored devices of earlier runs: which one a run may begin with, and storing its own.
//!
//! Stored are page maps without payload behind a link (`ftl.kind = "page"` without `fsms`): those that take long to
//! prepare. A device prepared with a coarse twin depends on the addresses of the writes only, so runs share it whose
//! workloads differ in nothing else (mix, depth, rate); what is then written at the pace of one of them is not
//! shared. On its way to the steady state a device is stored from time to time between two windows, so that an
//! interrupted run continues there.

use super::drive::{DeviceUnderTest, DriveError};
use super::precondition;
use super::precondition::{at_own_pace, depends_on_pace, reborrow};
use super::settle::{Settling, Steps};
use crate::preparation::Preparation;
use crate::prepared::Shelf;
use crate::result::{Precondition, key_of};
use crate::run_plan::OnProgress;
use nvlab_access::Attached;
use nvlab_controller::PageMap;
use nvlab_design::{Design, Ftl};
use nvlab_units::Time;
use nvlab_workload::BlockWorkload;
use nvlab_workload::block::Often;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keeping a device on its way may take one part of the time in this many.
const SHARE: u32 = 20;

/// Where to look for a prepared device and to keep one.
#[derive(Clone, Copy, Debug)]
pub struct Keeping<'a> {
    /// The folder.
    pub shelf: &'a Shelf,
    /// What the writes of the workload depend on: its text, and the hash of its file if it has one.
    pub workload: &'a str,
}

/// The keys of one run, of which one is its device's.
pub(super) struct Keys {
    /// Of a device that came from a twin.
    twin: Option<String>,
    /// Of one that was written at full size.
    full: String,
}

/// What is known of a device that was kept.
pub(super) enum Kept {
    /// It is prepared, and ready at this time.
    Prepared(Precondition, Time),
    /// It is on its way.
    Settling(Settling),
}

impl Keys {
    pub fn new(
        design: &Design,
        preparation: &Preparation,
        workload: &str,
        own: Option<&dyn BlockWorkload>,
    ) -> Keys {
        let base = format!("{}\n{}", design.canonical_text(), preparation.without_idle());
        let key = |writes: String| key_of(&format!("{base}\n{writes}"));
        let mut draws = own.and_then(|own| own.draws()).filter(|draws| !draws.is_empty());
        if let Some([alone]) = draws.as_deref_mut() {
            // The state of a device depends on it only beside other streams.
            alone.often = Often::Rate(1.0);
        }
        Keys {
            twin: draws.map(|draws| key(format!("twin of {draws:?}"))),
            full: key(own.map_or(String::new(), |_| workload.to_string())),
        }
    }

    /// Calls `go` with the device of these keys, if it was kept, prepared or on its way, and with what its run begins with;
    /// nobody else in this program prepares it meanwhile.
    pub fn begin<R>(self, shelf: &Shelf, go: impl FnOnce(Option<Attached<PageMap>>, Begin<'_>) -> R) -> R {
        // One that is prepared is loaded without a turn: many runs may do so at once.
        if let Some((device, kept)) = find_prepared(shelf, &self) {
            let keeper = Some(Keeper::new(shelf, self));
            return go(Some(device), Begin { kept: Some(kept), keeper, turn: None });
        }
        let turn = shelf.turn(self.all().next().expect("there is a key"));
        let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (device, kept) = find(shelf, &self).unzip();
        let keeper = Some(Keeper::new(shelf, self));
        go(device, Begin { kept, keeper, turn: Some(turn) })
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.twin.iter().chain([&self.full])
    }

    fn of(&self, report: &Precondition) -> &str {
        match (&self.twin, report.twin_units) {
            (Some(twin), 2..) if report.own_pace_bytes == 0 => twin,
            _ => &self.full,
        }
    }
}

fn part_of(key: &str) -> String {
    format!("{key}-part")
}

/// True if devices of this design can be kept.
pub(super) fn is_kept(design: &Design) -> bool {
    matches!(design.ftl, Ftl::Page(_)) && design.route.is_none()
}

/// The device of a run, if it was kept, prepared or on its way.
fn find(shelf: &Shelf, keys: &Keys) -> Option<(Attached<PageMap>, Kept)> {
    find_prepared(shelf, keys).or_else(|| {
        let part = keys.all().find_map(|key| shelf.find::<Settling>(&part_of(key)));
        part.map(|(device, settling)| (device, Kept::Settling(settling)))
    })
}

/// The device of a run, if it was kept when it was prepared.
fn find_prepared(shelf: &Shelf, keys: &Keys) -> Option<(Attached<PageMap>, Kept)> {
    // At the pace of this run, if there is one.
    let mut in_order = [&keys.full].into_iter().chain(&keys.twin);
    let prepared = in_order.find_map(|key| shelf.find::<(Precondition, Time)>(key));
    prepared.map(|(device, (report, ready))| (device, Kept::Prepared(report, ready)))
}

/// Keeps the device of one run.
pub(super) struct Keeper<'a> {
    shelf: &'a Shelf,
    keys: Keys,
    began: Instant,
    last: Instant,
    took: Duration,
}

impl<'a> Keeper<'a> {
    pub fn new(shelf: &'a Shelf, keys: Keys) -> Keeper<'a> {
        let now = Instant::now();
        Keeper { shelf, keys, began: now, last: now, took: Duration::ZERO }
    }

    /// Keeps a device between two windows, if that was not done lately.
    pub fn part(&mut self, device: &Attached<PageMap>, settling: &Settling) {
        let due = self.shelf.patience().part_every.max(self.took * SHARE);
        if self.last.elapsed() < due {
            return;
        }
        let began = Instant::now();
        let part = part_of(self.keys.of(&settling.report));
        self.shelf.note(self.shelf.keep(&part, device, settling), true);
        self.took = began.elapsed();
        self.last = Instant::now();
    }

    /// Keeps a prepared device if that took long enough, or was done before in this program.
    pub fn whole(
        &mut self,
        device: &dyn DeviceUnderTest,
        (report, ready): &(Precondition, Time),
        is_repeated: bool,
    ) {
        let Some(device) = device.page_map() else { return };
        let key = self.keys.of(report);
        if is_repeated || self.began.elapsed() >= self.shelf.patience().worth {
            self.shelf.note(self.shelf.keep(key, device, &(report.clone(), *ready)), false);
        }
        self.shelf.drop_kept(&part_of(key));
        self.began = Instant::now();
    }
}

/// What a run begins with, and keeps.
#[derive(Default)]
pub(super) struct Begin<'a> {
    pub kept: Option<Kept>,
    pub keeper: Option<Keeper<'a>>,
    /// No other thread prepares the same device at the same time; the number of times it was prepared in this
    /// program.
    pub turn: Option<MutexGuard<'a, u32>>,
}

impl Begin<'_> {
    /// The device in its state, and when it is ready for the first request.
    pub fn prepared(
        self,
        device: &mut dyn DeviceUnderTest,
        preparation: &Preparation,
        mut own: Option<&mut dyn BlockWorkload>,
        on_progress: OnProgress<'_>,
    ) -> Result<(Precondition, Time), DriveError> {
        let Begin { kept, mut keeper, mut turn } = self;
        let settling = match kept {
            Some(Kept::Prepared(report, ready)) => {
                // Another run may have been idle for another time.
                let fast = (Precondition { kind: preparation.to_string(), ..report }, ready);
                return paced(device, fast, own, keeper, on_progress);
            }
            Some(Kept::Settling(settling)) => Some(settling),
            None => None,
        };
        let between = &mut |device: &Attached<PageMap>, settling: &Settling| {
            keeper.iter_mut().for_each(|keeper| keeper.part(device, settling));
        };
        let mut steps = Steps { on_progress: &mut *on_progress, between };
        let fast = precondition::prepared(device, preparation, reborrow(&mut own), settling, &mut steps)?;
        let earlier = turn.as_deref_mut().map_or(0, |count| std::mem::replace(count, *count + 1));
        // One that was written to at full size is kept at the pace of its run.
        let is_paced = own.as_deref_mut().is_some_and(|own| depends_on_pace(&fast.0, own));
        if fast.0.twin_units > 1 || !is_paced {
            keeper.iter_mut().for_each(|keeper| keeper.whole(device, &fast, earlier > 0));
        }
        drop(turn);
        paced(device, fast, own, keeper, on_progress)
    }
}

/// The device at the pace of a run; kept if that took long.
fn paced(
    device: &mut dyn DeviceUnderTest,
    fast: (Precondition, Time),
    own: Option<&mut dyn BlockWorkload>,
    mut keeper: Option<Keeper<'_>>,
    on_progress: OnProgress<'_>,
) -> Result<(Precondition, Time), DriveError> {
    let before = fast.0.own_pace_bytes;
    let prepared = at_own_pace(device, fast, own, on_progress)?;
    if prepared.0.own_pace_bytes > before {
        keeper.iter_mut().for_each(|keeper| keeper.whole(device, &prepared, false));
    }
    Ok(prepared)
}
