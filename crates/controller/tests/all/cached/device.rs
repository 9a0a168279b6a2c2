//! Small devices for these tests, and a plain array of words that knows every version.

use nvlab_controller::cached::CachedConfig;
use nvlab_controller::page_map::{PageMapConfig, Streams, WearLevelling, WriteBuffer};
use nvlab_controller::{Cached, Controller, ControllerError, PageMap};
use nvlab_medium::MemStore;
use nvlab_medium::banks::Access;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_medium::ram::{Backup, Ram, RamConfig};
use nvlab_units::{Extent, Geometry, Interruption, Lpa, Rate, Rng, Span, Time};

pub type Device = Cached<PageMap<MemStore>, MemStore>;

/// Bytes of a word, and words of a line.
pub const WORD: u32 = 8;
pub const LINE_WORDS: u32 = 8;
pub const LINE: u32 = WORD * LINE_WORDS;

/// One of the combinations the tests go through.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub sets: u32,
    pub ways: u32,
    pub line_units: u32,
    pub dirty_lines_max: u32,
    pub prefetch_lines: u32,
    pub write_backs: u32,
    /// What the memory of the cache lives on when the power fails.
    pub backup: Backup,
    /// Whether the write buffer of the page map outlives the power; `None`: there is none.
    pub buffer: Option<bool>,
}

pub const AMPLE: Backup = Backup::Battery { hold: None };

impl Setup {
    pub fn cached(&self) -> CachedConfig {
        CachedConfig {
            line_bytes: LINE,
            ways: self.ways,
            sets: self.sets,
            dirty_lines_max: self.dirty_lines_max,
            prefetch_lines: self.prefetch_lines,
            write_backs: self.write_backs,
            word_bytes: WORD,
            control: Span::from_ns(100),
        }
    }

    pub fn ram_config(&self) -> RamConfig {
        let each = Access { first: Span::from_ns(60), next: Span::from_ns(3) };
        RamConfig {
            capacity_bytes: self.cached().ram_bytes(),
            word_bytes: WORD,
            read: each,
            write: each,
            backup: self.backup,
            banks: 1,
            stripe_bytes: LINE as u64,
            seed: 1,
        }
    }

    pub fn flash(&self) -> FlashConfig {
        FlashConfig {
            rules: CellRules::Nand,
            geometry: Geometry {
                channels: 2,
                dies_per_channel: 1,
                blocks_per_die: 20,
                pages_per_block: 8,
                units_per_page: 2,
                unit_bytes: LINE / self.line_units,
            },
            timing: FlashTiming {
                units_per_read: 2,
                transfer: Rate::from_bytes_per_second(40_000_000),
                interruption: Interruption::Suspend {
                    latency: Span::from_us(5),
                    resume: Span::from_us(20),
                    limit: u32::MAX,
                },
                copy_back: true,
                ..FlashTiming::plain(Span::from_us(25), Span::from_us(200), Span::from_us(1500))
            },
            endurance: Endurance { cycles: 1000, spread: 0.0 },
            faults: Faults::NONE,
        }
    }

    pub fn page_map(&self) -> PageMapConfig {
        PageMapConfig {
            streams: Streams::HostAndRelocated,
            wear: WearLevelling { dynamic: true, static_threshold: None },
            buffer: self.buffer.map(|protected| WriteBuffer {
                units: 16,
                protected,
                absorb: protected,
                store: Span::from_us(1),
            }),
            checkpoint_units: Some(90),
            overhead: Span::from_us(2),
            ..PageMapConfig::plain(256)
        }
    }

    pub fn behind(&self) -> PageMap<MemStore> {
        let flash = self.flash();
        let store = MemStore::new(Nand::<MemStore>::store_bytes(&flash.geometry));
        PageMap::new(self.page_map(), Nand::new(flash, store)).unwrap()
    }

    pub fn ram(&self) -> Ram<MemStore> {
        let config = self.ram_config();
        let store = MemStore::new(config.capacity_bytes);
        Ram::new(config, store)
    }

    pub fn device(&self) -> Device {
        Cached::new(self.cached(), self.behind(), self.ram()).unwrap()
    }
}

/// Shapes worth their time: sets and ways down to one, lines of several units, every buffer behind.
pub fn setups(backup: Backup) -> Vec<Setup> {
    let mut setups = Vec::new();
    for (sets, ways) in [(1, 6), (8, 1), (4, 4), (16, 2)] {
        for (nth, buffer) in [None, Some(false), Some(true)].into_iter().enumerate() {
            setups.push(Setup {
                sets,
                ways,
                line_units: 1 + (nth as u32 + ways) % 2,
                dirty_lines_max: 1 + sets * ways * nth as u32 / 3,
                prefetch_lines: if nth == 1 { 0 } else { 4.min(sets - 1) },
                write_backs: 1 + nth as u32 * 3,
                backup,
                buffer,
            });
        }
    }
    setups
}

/// What the host may ask; words and lines by number.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    Load(u32, u32),
    Store(u32, u32),
    Read(Extent),
    Write(Extent),
    Trim(Extent),
    Flush,
}

impl Ask {
    /// The words it changes: the first, and how many.
    pub fn changes(self) -> Option<(u32, u32)> {
        match self {
            Ask::Store(word, count) => Some((word, count)),
            Ask::Write(lines) | Ask::Trim(lines) => {
                Some((lines.start.0 * LINE_WORDS, lines.count * LINE_WORDS))
            }
            _ => None,
        }
    }
}

/// Draws a request: in a hot range half of the time, along a stride sometimes.
pub fn draw(rng: &mut Rng, lines: u32, nth: u32) -> Ask {
    let space = if rng.chance(0.5) { lines / 8 } else { lines };
    let line = if rng.chance(0.2) { nth * 3 % lines } else { rng.below(space as u64) as u32 };
    let word = line * LINE_WORDS + rng.below(LINE_WORDS as u64) as u32;
    let words = if rng.chance(0.8) { 1 } else { 1 + rng.below(20) as u32 };
    let words = words.min(lines * LINE_WORDS - word);
    let extent = Extent { start: Lpa(line), count: (1 + rng.below(5) as u32).min(lines - line) };
    match rng.below(20) {
        0..=4 => Ask::Load(word, words),
        5..=11 => Ask::Store(word, words),
        12..=14 => Ask::Read(extent),
        15..=17 => Ask::Write(extent),
        18 if rng.chance(0.5) => Ask::Trim(extent),
        18 => Ask::Flush,
        _ => Ask::Load(word, 1),
    }
}

/// Every version each word had, and from which on it may not be lost. A version is its content.
#[derive(Clone, Debug)]
pub struct Model {
    versions: Vec<Vec<u64>>,
    durable_from: Vec<usize>,
    next: u64,
}

impl Model {
    pub fn new(lines: u32) -> Model {
        let words = (lines * LINE_WORDS) as usize;
        Model { versions: vec![vec![0]; words], durable_from: vec![0; words], next: 1 }
    }

    fn write(&mut self, (word, count): (u32, u32)) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in word..word + count {
            self.versions[word as usize].push(self.next);
            bytes.extend(self.next.to_le_bytes());
            self.next += 1;
        }
        bytes
    }

    pub fn current(&self, word: u32) -> u64 {
        *self.versions[word as usize].last().unwrap()
    }

    /// The current versions of these words may not be lost any more.
    pub fn durable(&mut self, (word, count): (u32, u32)) {
        for word in word as usize..(word + count) as usize {
            self.durable_from[word] = self.versions[word].len() - 1;
        }
    }

    /// These words may read as any version they had.
    pub fn may_go_back(&mut self, (word, count): (u32, u32)) {
        self.durable_from[word as usize..(word + count) as usize].fill(0);
    }

    pub fn all(&self) -> (u32, u32) {
        (0, self.versions.len() as u32)
    }

    /// Panics unless a word reads as a version that it may have.
    pub fn identify(&self, word: u32, found: u64, context: &dyn Fn() -> String) {
        let versions = &self.versions[word as usize];
        let from = self.durable_from[word as usize];
        assert!(
            versions[from..].contains(&found),
            "{}: word {word} reads as version {found} of {versions:?}, durable is {}",
            context(),
            versions[from]
        );
    }

    /// After a power cut: what was found is all there is.
    pub fn settle_on(&mut self, found: &[u64]) {
        for (word, &version) in found.iter().enumerate() {
            self.versions[word] = vec![version];
            self.durable_from[word] = 0;
        }
    }
}

fn words_of(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Carries out a request and checks what a read returns; returns when it was done.
pub fn perform(device: &mut Device, model: &mut Model, at: Time, ask: Ask) -> Result<Time, ControllerError> {
    let place = |word: u32, count: u32| (word as u64 * WORD as u64, count * WORD);
    let mut bytes = vec![0xee; 32 * LINE as usize];
    let (served, read) = match ask {
        Ask::Load(word, count) => {
            let (offset, length) = place(word, count);
            let into = &mut bytes[..length as usize];
            (device.load(at, offset, length, into)?, Some((word, count)))
        }
        Ask::Read(lines) => {
            let into = &mut bytes[..(lines.count * LINE) as usize];
            (device.read(at, lines, into)?, Some((lines.start.0 * LINE_WORDS, lines.count * LINE_WORDS)))
        }
        Ask::Store(word, count) => {
            let (offset, length) = place(word, count);
            (device.store(at, offset, length, &model.write((word, count)))?, None)
        }
        Ask::Write(lines) => {
            let data = model.write(ask.changes().unwrap());
            (device.write(at, lines, &data)?, None)
        }
        Ask::Trim(lines) => {
            let (first, count) = ask.changes().unwrap();
            for word in first..first + count {
                model.versions[word as usize].push(0);
            }
            (device.trim(at, lines)?, None)
        }
        Ask::Flush => (device.flush(at)?, None),
    };
    if let Some((first, count)) = read {
        for (word, found) in (first..).zip(words_of(&bytes[..(count * WORD) as usize])) {
            assert_eq!(found, model.current(word), "word {word} at {at}");
        }
    }
    assert!(served.start >= at && served.end >= served.start);
    Ok(served.end)
}

/// Every word, line by line.
pub fn read_all(device: &mut Device, at: Time) -> Vec<u64> {
    let mut bytes = vec![0; LINE as usize];
    let mut found = Vec::new();
    for line in 0..device.capacity_units() {
        device.read(at, Extent::one(Lpa(line)), &mut bytes).unwrap();
        found.extend(words_of(&bytes));
    }
    found
}
