//! The open blocks: for each die a frontier per stream, and the dies that the host's next pages go to.
//!
//! The streams of the host come first, then that of relocated data, last that of cold data moved to level wear, if that
//! is static. Frontiers are numbered die by die.

use super::config::PageMapConfig;
use super::frontier::Frontier;
use super::spread::Round;
use nvlab_medium::Store;
use nvlab_units::{Die, Geometry};
use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut, Range};

/// The frontiers of all dies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Writers {
    frontiers: Vec<Frontier>,
    streams: u32,
    /// Of each stream of the host.
    pub rounds: Vec<Round>,
}

impl Writers {
    pub fn new<S: Store>(config: &PageMapConfig, geometry: &Geometry) -> Writers {
        let (dies, streams) = (geometry.dies(), config.open_blocks());
        Writers {
            frontiers: vec![Frontier::new::<S>(geometry); (dies * streams) as usize],
            streams,
            rounds: vec![Round::new(dies); config.streams.relocated().max(1) as usize],
        }
    }

    /// The number of the frontier of a stream on a die.
    #[inline(always)]
    pub fn of(&self, die: Die, stream: u32) -> u32 {
        die.0 * self.streams + stream
    }
    /// The numbers of the frontiers of a die.
    pub fn on(&self, die: Die) -> Range<u32> {
        self.of(die, 0)..self.of(die, self.streams)
    }
    /// The die of a frontier.
    #[inline]
    pub fn die_of(&self, index: u32) -> Die {
        Die(if self.streams == 1 { index } else { index / self.streams })
    }
    /// The stream of a frontier.
    pub fn stream_of(&self, index: u32) -> u32 {
        index % self.streams
    }
    /// The stream of cold data that is moved to level wear.
    pub fn cold_stream(&self) -> u32 {
        self.streams - 1
    }
    /// True for a stream of the host.
    pub fn is_host(&self, stream: u32) -> bool {
        stream < self.rounds.len() as u32
    }

    /// All frontiers, by their numbers.
    pub fn all(&self) -> &[Frontier] {
        &self.frontiers
    }
    /// The same, to be changed.
    pub fn all_mut(&mut self) -> &mut [Frontier] {
        &mut self.frontiers
    }
}

impl Index<u32> for Writers {
    type Output = Frontier;
    #[inline(always)]
    fn index(&self, index: u32) -> &Frontier {
        &self.frontiers[index as usize]
    }
}

impl IndexMut<u32> for Writers {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut Frontier {
        &mut self.frontiers[index as usize]
    }
}
