//! Devices of every kind under a program that ends between any two writes to their stores, as a killed server does:
//! nothing is undone, nothing more is done, and only the bytes are left. Rebuilt from them, the device must hold
//! everything that was acknowledged; the write in progress may have left old and new bytes.

use nvlab_controller::PageMap;
use nvlab_design::{Design, PageMapped};
use nvlab_medium::Store;
use nvlab_medium::flash::Nand;
use nvlab_run::device::{Backing, BuildError, Device, PageMapOver, Visit, build, new_page_map};
use nvlab_units::{Rng, Time};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Small designs without a protected buffer, whose contents are kept by the serving edge.
const DESIGNS: &[(&str, &[&str])] = &[
    ("bench-4g", &["media.nand.blocks=20", "media.nand.pages=16", "ftl.spare=50%"]),
    (
        "hot-cold",
        &["media.mlc.blocks=40", "media.mlc.block=32KiB", "media.slc.block=16KiB", "ftl.utilization=65%"],
    ),
    ("mlc-block", &["media.mlc.blocks=4", "media.mlc.block=32KiB"]),
    ("mlc-bast", &["media.mlc.blocks=8", "media.mlc.block=32KiB"]),
    ("hybrid-slc-mlc", &["media.mlc.blocks=8", "media.mlc.block=32KiB", "media.slc.block=16KiB"]),
    ("fusion-fast", &["media.mlc.blocks=12", "media.mlc.block=32KiB", "media.slc.block=16KiB"]),
    ("hftl", HFTL),
    ("hftl-fsms", &[HFTL[0], HFTL[1], HFTL[2], HFTL[3], ROUTE[0], ROUTE[1]]),
    ("hftl-fsms", &[HFTL[0], HFTL[1], HFTL[2], HFTL[3], ROUTE[0], ROUTE[1], "ftl.route.update=journal"]),
    ("lbftl-fsms", &[HFTL[0], HFTL[1], HFTL[2], HFTL[3], ROUTE[0], ROUTE[1], "ftl.log.blocks=5"]),
];
const HFTL: &[&str] =
    &["media.nand.blocks=24", "media.nand.pages=8", "ftl.capacity=256KiB", "media.pram.size=64KiB"];
const ROUTE: &[&str] = &["ftl.route.size=24KiB", "ftl.route.first=8KiB"];
const ROUNDS: u64 = 150;

/// Bytes that outlive the device; the program ends when the budget of writes is used up.
#[derive(Clone, Debug)]
struct Mortal {
    bytes: Arc<Mutex<Vec<u8>>>,
    budget: Arc<AtomicU64>,
}

impl Store for Mortal {
    const KEEPS: bool = true;
    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes.lock().unwrap()[offset as usize..][..into.len()]);
    }
    fn write(&mut self, offset: u64, data: &[u8]) {
        let left = self.budget.load(Ordering::Relaxed);
        if left == 0 {
            // Not a failure: the program just ends here.
            resume_unwind(Box::new(Killed));
        }
        self.budget.store(left - 1, Ordering::Relaxed);
        self.bytes.lock().unwrap()[offset as usize..][..data.len()].copy_from_slice(data);
    }
}

/// Why the program ended.
struct Killed;

/// The files of a device.
struct Files {
    media: Mutex<BTreeMap<String, Mortal>>,
    budget: Arc<AtomicU64>,
    used: bool,
}

impl Backing for Files {
    type Store = Mortal;
    type PageMap = PageMap<Mortal>;
    fn store(&self, medium: &str, bytes: u64) -> Result<Mortal, BuildError> {
        let fresh =
            || Mortal { bytes: Arc::new(Mutex::new(vec![0; bytes as usize])), budget: self.budget.clone() };
        let mortal = self.media.lock().unwrap().entry(medium.into()).or_insert_with(fresh).clone();
        assert_eq!(mortal.bytes.lock().unwrap().len(), bytes as usize, "{medium}");
        Ok(mortal)
    }
    fn is_used(&self) -> bool {
        self.used
    }
}

impl PageMapOver<Mortal> for PageMap<Mortal> {
    fn open<B: Backing<Store = Mortal> + ?Sized>(
        backing: &B,
        page: &PageMapped,
        seed: u64,
        nand: Nand<Mortal>,
    ) -> Result<(PageMap<Mortal>, Time), BuildError> {
        if !backing.is_used() {
            return Ok((new_page_map(page, seed, nand)?, Time::ZERO));
        }
        let (config, cache) = (page.config(seed), page.cache.as_ref().map(|cache| cache.config));
        let media = nvlab_controller::page_map::PageMapMedia::new(nand);
        let found = PageMap::recover(config, cache, media, Time::ZERO).map_err(BuildError::Recovery)?;
        Ok((found.0, Time::ZERO + found.1.time))
    }
}

/// A plain array, and the range and data of the write in progress.
struct Model {
    now: Vec<u8>,
    under_way: Option<(usize, Vec<u8>)>,
}

/// Compares a device with the model, then writes until the program ends.
struct Life<'a> {
    what: &'a str,
    model: &'a mut Model,
    rng: &'a mut Rng,
    budget: &'a AtomicU64,
    writes: u64,
}

impl Visit for Life<'_> {
    type Output = ();
    fn visit<D: Device>(self, mut device: D, ready: Time) {
        let Life { what, model, rng, budget, writes } = self;
        let mut now = ready;
        let bytes = device.capacity_bytes() as usize;
        model.now.resize(bytes, 0);
        let mut found = vec![1; bytes];
        for (piece, offset) in found.chunks_mut(1 << 16).zip((0..).step_by(1 << 16)) {
            now = device.read(now, offset, piece.len() as u32, piece).unwrap().end;
        }
        if let Some((at, data)) = model.under_way.take() {
            let range = at..at + data.len();
            for (byte, (new, old)) in
                found[range.clone()].iter().zip(data.iter().zip(&model.now[range.clone()]))
            {
                assert!(byte == new || byte == old, "{what}: {byte:#x} is neither {old:#x} nor {new:#x}");
            }
            model.now[range.clone()].copy_from_slice(&found[range]);
        }
        let wrong = (0..bytes).find(|&at| found[at] != model.now[at]);
        assert_eq!(wrong, None, "{what}: a byte is not what was written last");
        budget.store(writes, Ordering::Relaxed);
        loop {
            device.settle(now);
            let count = (1 + rng.below(24) as usize) * 512;
            let at = rng.below(((bytes - count) / 512) as u64 + 1) as usize * 512;
            let data: Vec<u8> = (0..count).map(|_| rng.bits() as u8).collect();
            model.under_way = Some((at, data));
            let (at, data) = model.under_way.as_ref().unwrap();
            let written = device.write(now, *at as u64, data.len() as u32, data).unwrap();
            // Flush a volatile buffer, so that acknowledged data must survive.
            now = device.flush(written.end).unwrap().end;
            model.now[*at..*at + data.len()].copy_from_slice(data);
            model.under_way = None;
        }
    }
}

#[test]
fn a_program_that_is_killed_anywhere_loses_nothing() {
    for (number, (name, sets)) in DESIGNS.iter().enumerate() {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        let design = Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let budget = Arc::new(AtomicU64::new(u64::MAX));
        let mut files = Files { media: Mutex::default(), budget: budget.clone(), used: false };
        let mut rng = Rng::stream(number as u64, "kill");
        let mut model = Model { now: Vec::new(), under_way: None };
        for round in 0..ROUNDS {
            let what = format!("design {number} {name}, life {round}");
            // Some lives end during recovery.
            let early = round > 0 && rng.chance(0.3);
            budget.store(if early { rng.below(60) } else { u64::MAX }, Ordering::Relaxed);
            let writes = rng.below(800);
            let life = Life { what: &what, model: &mut model, rng: &mut rng, budget: &budget, writes };
            let ended = catch_unwind(AssertUnwindSafe(|| build(&design, 7, &files, life)));
            match ended {
                Err(why) if why.is::<Killed>() => {}
                Err(why) => resume_unwind(why),
                Ok(built) => panic!("{what}: {:?}", built.err()),
            }
            files.used = true;
        }
    }
}
