//! The header of the SRAM: the parameters of the design it was written with that determine the layout of the SRAM and
//! the flash. A different design cannot read it, and must not try.
//!
//! Times, flush thresholds and cleaning policies are not part of it: they may change while the data stays. Segments are
//! divided evenly, so the number of partitions determines how many segments each has.

use super::table::{Record, SramLayout};
use super::{Envy, EnvyConfig};
use nvlab_medium::Store;
use nvlab_medium::ram::Ram;
use nvlab_units::{Geometry, Time};

/// Name and version, at the beginning.
const MAGIC: u64 = u64::from_le_bytes(*b"nvlenvy2");
/// The name, equal in every version.
const NAME: &[u8] = b"nvlenvy";

/// The parameters that must be equal, each with its name.
type Shape = [(&'static str, u32); 9];

fn shape(config: &EnvyConfig, geometry: &Geometry, word_bytes: u32) -> Shape {
    [
        ("logical pages", config.logical_pages),
        ("bytes of a page", geometry.unit_bytes),
        ("pages of a segment", geometry.pages_per_block),
        ("segments of a die", geometry.blocks_per_die),
        ("dies", geometry.dies()),
        ("partitions", config.pool_count(geometry)),
        ("pages of the buffer", config.buffer_pages.max(1)),
        ("pages of a transaction", config.transaction_pages),
        ("bytes of a word of the SRAM", word_bytes),
    ]
}

/// Fails if the SRAM does not hold the state of this design; the error names what differs.
pub(super) fn check<S: Store>(config: &EnvyConfig, geometry: &Geometry, sram: &Ram<S>) -> Result<(), String> {
    let mut bytes = [0; 64];
    sram.peek(SramLayout::HEADER, &mut bytes);
    let mut found = Record::from(bytes);
    if found.u64() != MAGIC {
        return Err(match bytes.starts_with(NAME) {
            true => format!(
                "the SRAM holds the state of another version of the eNVy controller ({}; this one reads {})",
                bytes[..8].escape_ascii(),
                MAGIC.to_le_bytes().escape_ascii()
            ),
            false => "the SRAM holds no state of an eNVy controller".into(),
        });
    }
    let wanted = shape(config, geometry, sram.config().word_bytes);
    let differs = wanted.map(|(name, wanted)| (name, found.u32(), wanted)).into_iter();
    let differs = differs.filter(|(_, found, wanted)| found != wanted);
    let differs: Vec<String> =
        differs.map(|(name, found, wanted)| format!("{name}: stored {found}, given {wanted}")).collect();
    if !differs.is_empty() {
        return Err(format!("the SRAM holds the state of another design: {}", differs.join("; ")));
    }
    let (needed, has) = (config.sram_layout(geometry, sram.config().word_bytes).bytes(), sram.config());
    match needed <= has.capacity_bytes {
        true => Ok(()),
        false => Err(format!("the SRAM has {} B, its state needs {needed} B", has.capacity_bytes)),
    }
}

impl<S: Store> Envy<S> {
    fn header(&self) -> Record<64> {
        let shape = shape(&self.config, self.nor.geometry(), self.sram.config().word_bytes);
        shape.iter().fold(Record::new().with_u64(MAGIC), |record, &(_, value)| record.with_u32(value))
    }

    /// Writes the state of an empty controller, the header last.
    pub(super) fn format(&mut self) {
        if !S::KEEPS {
            return;
        }
        for segment in 0..self.segments.len() as u32 {
            self.note(Time::ZERO, self.map.segment(segment), self.segment_record(segment).bytes());
        }
        self.note(Time::ZERO, SramLayout::HEADER, self.header().bytes());
    }
}
