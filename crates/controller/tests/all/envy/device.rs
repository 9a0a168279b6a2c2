//! An eNVy array beside a plain array of bytes, for the model and the power-cut tests.

use nvlab_controller::envy::{EnvyConfig, EnvyMedia, SegmentCleaning};
use nvlab_controller::{Controller, ControllerError, Envy, RecoveryReport};
use nvlab_medium::banks::Access;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nor, NorConfig};
use nvlab_medium::ram::{Backup, Ram, RamConfig};
use nvlab_medium::{MemStore, Store};
use nvlab_units::{Extent, Geometry, Interruption, Lpa, Rng, Served, Span, Time};

/// One of the combinations the tests go through.
#[derive(Clone, Debug)]
pub struct Setup {
    pub cleaning: SegmentCleaning,
    pub dies: u32,
    pub segments: u32,
    pub pages: u32,
    pub page_bytes: u32,
    pub buffer: u32,
    pub flush_at: u32,
    pub wear_spread: Option<u32>,
    /// Share of the segments in service that holds data.
    pub utilization: f64,
    pub transaction_pages: u32,
}

impl Setup {
    pub fn geometry(&self) -> Geometry {
        Geometry {
            channels: 1,
            dies_per_channel: self.dies,
            blocks_per_die: self.segments,
            pages_per_block: self.pages,
            units_per_page: 1,
            unit_bytes: self.page_bytes,
        }
    }

    pub fn nor(&self) -> NorConfig {
        NorConfig {
            flash: FlashConfig {
                rules: CellRules::Nor,
                geometry: self.geometry(),
                timing: FlashTiming {
                    interruption: Interruption::Suspend {
                        latency: Span::ZERO,
                        resume: Span::from_us(4),
                        limit: u32::MAX,
                    },
                    copy_back: true,
                    ..FlashTiming::plain(Span::from_ns(100), Span::from_us(4), Span::from_ms(50))
                },
                endurance: Endurance { cycles: 1_000_000, spread: 0.0 },
                faults: Faults::NONE,
            },
            slowing: None,
        }
    }

    pub fn config(&self) -> EnvyConfig {
        let in_service = self.dies * (self.segments - 1) * self.pages;
        EnvyConfig {
            logical_pages: (in_service as f64 * self.utilization) as u32,
            buffer_pages: self.buffer,
            flush_at: self.flush_at,
            cleaning: self.cleaning,
            wear_spread: self.wear_spread,
            control: Span::from_ns(60),
            word_bytes: 8,
            path_bytes: self.page_bytes,
            mapping_cache_entries: 0,
            transaction_pages: self.transaction_pages,
        }
    }

    pub fn ram(&self) -> RamConfig {
        RamConfig {
            capacity_bytes: self.config().sram_bytes(&self.geometry(), 256),
            word_bytes: 256,
            read: Access::even(Span::from_ns(100)),
            write: Access::even(Span::from_ns(100)),
            backup: Backup::Battery { hold: None },
            banks: 1,
            stripe_bytes: 0,
            seed: 7,
        }
    }

    pub fn device(&self) -> Envy<MemStore> {
        let store = MemStore::new(Nor::<MemStore>::store_bytes(&self.geometry()));
        let ram = self.ram();
        let sram = Ram::new(ram.clone(), MemStore::new(ram.capacity_bytes));
        Envy::new(self.config(), Nor::new(self.nor(), store), sram).unwrap()
    }

    /// The same without payload.
    pub fn timing_only(&self) -> Envy<()> {
        Envy::new(self.config(), Nor::new(self.nor(), ()), Ram::new(self.ram(), ())).unwrap()
    }

    pub fn recover(&self, media: EnvyMedia<MemStore>, at: Time) -> (Envy<MemStore>, RecoveryReport) {
        Envy::recover(self.config(), media, at).unwrap()
    }
}

/// Every combination worth its time.
pub fn setups() -> Vec<Setup> {
    let cleanings = [
        SegmentCleaning::Greedy,
        SegmentCleaning::Fifo,
        SegmentCleaning::CostBenefit,
        SegmentCleaning::gathering(1),
        SegmentCleaning::gathering(3),
    ];
    let mut setups = Vec::new();
    for (i, cleaning) in cleanings.into_iter().enumerate() {
        for (j, (buffer, flush_at)) in [(0, 0), (6, 3), (13, 2)].into_iter().enumerate() {
            for (k, dies) in [1, 2, 4].into_iter().enumerate() {
                setups.push(Setup {
                    cleaning,
                    dies,
                    segments: if dies == 1 { 10 } else { 7 },
                    pages: if (i + k) % 2 == 0 { 8 } else { 16 },
                    page_bytes: if (i + j + k) % 4 == 3 { 4096 } else { 256 },
                    buffer,
                    flush_at,
                    wear_spread: [None, Some(2), Some(1)][(i + j) % 3],
                    utilization: 0.6,
                    transaction_pages: if buffer > 0 { 5 } else { 0 },
                });
            }
        }
    }
    setups
}

/// What the host may ask.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Load { offset: u64, bytes: u32 },
    Store { offset: u64, bytes: u32 },
    WritePages(Extent),
    Trim(Extent),
    Begin,
    Commit,
    Abort,
}

/// Draws a request: stores of a few words mostly, half of them in a small hot range.
pub fn draw(rng: &mut Rng, setup: &Setup) -> Ask {
    let pages = setup.config().logical_pages as u64;
    let space = if rng.chance(0.5) { pages / 5 } else { pages };
    let lpa = rng.below(space) as u32;
    let words = setup.page_bytes as u64 / 8;
    let offset = lpa as u64 * setup.page_bytes as u64 + rng.below(words) * 8;
    let bytes = match rng.below(8) {
        0 => setup.page_bytes,
        _ => 8 * (1 + rng.below(6)) as u32,
    };
    let bytes = (bytes as u64).min(pages * setup.page_bytes as u64 - offset) as u32;
    let extent = Extent { start: Lpa(lpa), count: (1 + rng.below(3) as u32).min(pages as u32 - lpa) };
    match rng.below(24) {
        0..=3 => Ask::Load { offset, bytes },
        4 => Ask::Trim(extent),
        5 | 6 => Ask::WritePages(extent),
        7 => Ask::Begin,
        8 => Ask::Commit,
        9 => Ask::Abort,
        _ => Ask::Store { offset, bytes },
    }
}

/// The plain array, and what it was before the transaction.
#[derive(Clone)]
pub struct Model {
    pub bytes: Vec<u8>,
    pub before: Option<Vec<u8>>,
    next: u64,
}

impl Model {
    pub fn new(bytes: u64) -> Model {
        Model { bytes: vec![0; bytes as usize], before: None, next: 1 }
    }

    /// Words never seen before.
    pub fn words(&mut self, bytes: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(bytes);
        while data.len() < bytes {
            // Not all words look alike to the flash: half have all bits of a byte set.
            let word = self.next << 8 | if self.next & 1 == 0 { 0xFF } else { self.next & 0x7F };
            data.extend(word.to_le_bytes());
            self.next += 1;
        }
        data.truncate(bytes);
        data
    }
}

/// Carries out a request on the device and on the model, and checks what a load returns; returns when it was
/// done. A request the state forbids is refused by the device and does nothing.
pub fn perform(device: &mut Envy<MemStore>, model: &mut Model, at: Time, ask: Ask) -> Time {
    let served = match ask {
        Ask::Load { offset, bytes } => {
            let mut into = vec![0xEE; bytes as usize];
            let served = device.load(at, offset, bytes, &mut into).unwrap();
            assert_eq!(into, model.bytes[offset as usize..][..bytes as usize], "{ask:?} at {at}");
            Ok(served)
        }
        Ask::Store { .. } | Ask::WritePages(_) | Ask::Trim(_) => overwrite(device, model, at, ask),
        Ask::Begin => {
            let served = device.begin(at);
            if served.is_ok() {
                assert!(model.before.is_none());
                model.before = Some(model.bytes.clone());
            }
            served
        }
        Ask::Commit => {
            let served = device.commit(at);
            assert_eq!(served.is_ok(), model.before.take().is_some());
            served
        }
        Ask::Abort => {
            let served = device.abort(at);
            assert_eq!(served.is_ok(), model.before.is_some());
            if let Some(before) = model.before.take() {
                model.bytes = before;
            }
            served
        }
    };
    match served {
        Ok(served) => {
            assert!(served.start >= at && served.end >= served.start);
            served.end
        }
        Err(
            ControllerError::TransactionOpen
            | ControllerError::NoTransaction
            | ControllerError::TransactionFull { .. },
        ) => at,
        Err(error) => panic!("{ask:?}: {error}"),
    }
}

/// Stores, writes or trims, on the device and on the model.
fn overwrite(
    device: &mut Envy<MemStore>,
    model: &mut Model,
    at: Time,
    ask: Ask,
) -> Result<Served, ControllerError> {
    let page = device.unit_bytes() as usize;
    let (offset, data) = match ask {
        Ask::Store { offset, bytes } => (offset as usize, model.words(bytes as usize)),
        Ask::WritePages(extent) => (extent.start.index() * page, model.words(extent.count as usize * page)),
        Ask::Trim(extent) => (extent.start.index() * page, vec![0; extent.count as usize * page]),
        _ => panic!("{ask:?} overwrites nothing"),
    };
    let target = &mut model.bytes[offset..][..data.len()];
    let old = target.to_vec();
    target.copy_from_slice(&data);
    let served = match ask {
        Ask::Store { offset, bytes } => device.store(at, offset, bytes, &data),
        Ask::WritePages(extent) => device.write(at, extent, &data),
        Ask::Trim(extent) => device.trim(at, extent),
        _ => panic!("{ask:?} overwrites nothing"),
    };
    if served.is_err() {
        // It may be done in part, page by page.
        reconcile(device, model, offset, &old, &data, page);
    }
    served
}

/// After a refused request: every page of it is wholly old or wholly new.
fn reconcile(
    device: &mut Envy<MemStore>,
    model: &mut Model,
    offset: usize,
    old: &[u8],
    new: &[u8],
    page: usize,
) {
    let mut at = 0;
    while at < old.len() {
        let end = ((offset + at) / page + 1) * page - offset;
        let range = at..end.min(old.len());
        let mut held = vec![0; range.len()];
        device
            .clone()
            .load(
                Time::MAX.before(Span::from_seconds(1e6)),
                (offset + at) as u64,
                range.len() as u32,
                &mut held,
            )
            .unwrap();
        let is_new = held == new[range.clone()];
        assert!(is_new || held == old[range.clone()], "a refused store left something else");
        let value = if is_new { &new[range.clone()] } else { &old[range.clone()] };
        model.bytes[offset + range.start..offset + range.end].copy_from_slice(value);
        at = range.end;
    }
}

/// Everything the device holds.
pub fn read_all(device: &mut Envy<impl Store>, at: Time) -> Vec<u8> {
    let mut bytes = vec![0; device.capacity_bytes() as usize];
    let extent = Extent { start: Lpa(0), count: device.capacity_units() };
    device.read(at, extent, &mut bytes).unwrap();
    bytes
}
