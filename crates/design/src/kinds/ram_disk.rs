//! A RAM disk with the delays of its memory: `ftl.kind = "ram-disk"` (NVRamDisk, system 004 slide 12).

use super::Kind;
use crate::bricks::array::{self, Wiring};
use crate::bricks::memories::{self, Media};
use crate::context::Context;
use crate::{Array, Design, HostPath, Payload, footprint};
use nvlab_controller::bare_ram::{BareRam, UNIT_BYTES};
use nvlab_medium::ram::RamConfig;
use nvlab_units::Geometry;

/// Its name in designs.
pub const KIND: &str = "ram-disk";

/// A RAM disk.
#[derive(Clone, Debug, PartialEq)]
pub struct RamDisk {
    /// The memory, by name.
    pub medium: String,
    /// Bytes of it.
    bytes: u64,
}

impl Kind for RamDisk {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        Vec::new()
    }
    fn unit_bytes(&self) -> u32 {
        UNIT_BYTES
    }
    fn logical_units(&self) -> u32 {
        u32::try_from(self.bytes / UNIT_BYTES as u64).unwrap_or(u32::MAX)
    }
    fn bought(&self, _: &Geometry) -> Vec<(&str, u64)> {
        vec![(&self.medium, self.bytes)]
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        BareRam::<()>::check(&self.config(design, 0))
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let banks = self.config(design, 0).banks as u64;
        banks * footprint::LANE + payload.written(self.bytes)
    }
}

impl RamDisk {
    /// Its memory, for [`nvlab_medium::ram`]. `seed` is the run's seed of what a power cut leaves.
    pub fn config(&self, design: &Design, seed: u64) -> RamConfig {
        design.ram_config(&self.medium, seed)
    }
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    _: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, RamDisk)> {
    let memory = memories::ram(context, media, "ftl.medium", KIND);
    memories::not_words(context, path, "a RAM disk")?;
    if context.has_table("ftl.route") {
        let problem = "`ftl.route.kind`: a RAM disk has no routing driver";
        context.wrong("ftl.route.kind", problem, "leave [ftl.route] out, or another `ftl.kind`");
        return None;
    }
    let (medium, ram) = memory?;
    Some((array::none(), RamDisk { medium, bytes: ram.cells.size_bytes }))
}
