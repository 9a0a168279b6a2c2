//! A small storage-class memory for the tests.

use crate::array::UNIT;
use nvlab_controller::Scm;
use nvlab_controller::scm::{Posting, ScmConfig};
use nvlab_medium::banks::Access;
use nvlab_medium::pcm::{LineWear, Pcm, PcmConfig, Selection, Tear};
use nvlab_medium::{MemStore, StartGap, StartGapConfig, Store};
use nvlab_units::{Rate, Span};

pub type Levelled = StartGap<Pcm<MemStore>>;

/// One of the combinations the tests go through.
#[derive(Clone, Debug)]
pub struct Setup {
    pub controllers: u32,
    pub banks: u32,
    pub split_units: u64,
    pub trim: bool,
    pub posted: Option<Posting>,
    pub levelling: StartGapConfig,
}

/// Bytes of each memory.
const MEMORY: u64 = 4096;

impl Setup {
    pub fn pcm<S: Store>(&self, store: impl Fn(u64) -> S) -> Pcm<S> {
        let config = PcmConfig {
            capacity_bytes: MEMORY,
            word_bytes: 32,
            read: Access::even(Span::from_ns(67)),
            program: Span::from_ns(215),
            words_per_step: 2,
            selection: Selection::All,
            wear: Some(LineWear {
                line_bytes: self.levelling.line_bytes,
                endurance: 1_000_000,
                refuse: false,
            }),
            atomic_bytes: UNIT as u32,
            tear: Tear::Atomic,
            banks: self.banks,
            stripe_bytes: 128,
            seed: 5,
        };
        let store = store(Pcm::<S>::store_bytes(&config));
        Pcm::new(config, store)
    }

    pub fn config(&self, memory_bytes: u64) -> ScmConfig {
        let config = ScmConfig {
            unit_bytes: UNIT as u32,
            logical_units: 1,
            split_bytes: self.split_units * UNIT as u64,
            channel: Some(Rate::from_bytes_per_second(4_000_000_000)),
            ring: Some(Rate::from_bytes_per_second(4_000_000_000)),
            tags: 5,
            bursts: None,
            posted: self.posted,
            trim: self.trim,
            overhead: Span::from_ns(40),
        };
        let units = config.units_of(self.controllers, memory_bytes) as u32;
        ScmConfig { logical_units: units, ..config }
    }

    pub fn plain(&self) -> Scm<Pcm<MemStore>> {
        let memories = (0..self.controllers).map(|_| self.pcm(MemStore::new)).collect();
        Scm::new(self.config(MEMORY), memories).unwrap()
    }

    pub fn levelled(&self) -> Scm<Levelled> {
        let memory = || StartGap::new(self.levelling, self.pcm(MemStore::new)).unwrap();
        let bytes = self.levelling.capacity_bytes(MEMORY, UNIT as u32).unwrap();
        Scm::new(self.config(bytes), (0..self.controllers).map(|_| memory()).collect()).unwrap()
    }
}

/// Every combination worth its time.
pub fn setups() -> Vec<Setup> {
    let protected = Posting { bytes: 512, protected: true };
    let posted = [None, Some(Posting { protected: false, ..protected }), Some(protected)];
    let mut setups = Vec::new();
    for (i, (controllers, split_units)) in [(1, 4), (2, 1), (3, 5), (4, 8)].into_iter().enumerate() {
        for (j, posted) in posted.into_iter().enumerate() {
            let levelling = StartGapConfig {
                line_bytes: if i % 2 == 0 { 64 } else { 128 },
                regions: 1 + j as u32,
                interval: 1 + (i + j) as u32 % 3,
                permutation: (j > 0).then_some(7),
            };
            let banks = [1, 4][(i + j) % 2];
            setups.push(Setup { controllers, banks, split_units, trim: i != 3, posted, levelling });
        }
    }
    setups
}
