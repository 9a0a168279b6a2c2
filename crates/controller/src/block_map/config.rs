//! The configuration of a block-mapped controller: plain data, filled from a design.

use nvlab_medium::flash::{CellRules, FlashConfig};
use nvlab_units::Span;

/// A block-mapped controller, with or without log blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockMapConfig {
    /// Pages the host may address. The data array holds them in whole blocks; the rest of it is for logs in the
    /// same array, merges and bad blocks.
    pub logical_units: u32,
    /// Where overwritten pages go.
    pub log: Log,
    /// Shared log blocks are blocks of the data array in SLC mode, smaller and faster, each taking the place of a
    /// block with all bits per cell (fusion flash, reference 10 of Nam, Na and Lee, APWeb 2010).
    pub slc_log: bool,
    /// A page that was already overwritten in the log once is copied to another log block when its own is emptied,
    /// because it will probably be overwritten again; only the others are merged (locality as in reference 10).
    pub second_chance: bool,
    /// Wear levelling.
    pub wear: BlockWear,
    /// Whether trims from the host are applied.
    pub trim: bool,
    /// Whether a unit's checksum is verified when the host reads it: on a mismatch it is unreadable. Only if the medium
    /// keeps payload. If false, damaged data is returned as it is.
    pub verify_reads: bool,
    /// Time of the controller itself per request, before it accesses the medium.
    pub overhead: Span,
}

/// Where a page goes when its place in the data block is already programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// No log: the block is merged with it at once.
    None,
    /// BAST: into the log block of its data block (Kim et al., IEEE Trans. Consumer Electronics 48-2, 2002).
    PerBlock {
        /// Log blocks in total; at least one per die. The one assigned first is merged first.
        blocks: u32,
    },
    /// FAST: into log blocks shared by all (Lee et al., ACM TECS 6-3, 2007).
    Shared {
        /// One block for sequential overwrites at their own offsets.
        sequential: bool,
        /// Blocks for any page, filled and merged round-robin; at least one per die of their array.
        random_blocks: u32,
    },
}

/// Wear levelling. Log blocks are always used round-robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWear {
    /// The least worn erased block is taken first.
    pub dynamic: bool,
    /// When the most worn erased block of a die was erased this many times more than its least worn data block,
    /// the two are swapped.
    pub static_threshold: Option<u32>,
}

impl BlockMapConfig {
    /// Checks that it can work on a data array, whose blocks may have an SLC mode, and on the log's array if it has its
    /// own; otherwise returns the reason.
    pub fn check(
        &self,
        data: &FlashConfig,
        log: Option<&FlashConfig>,
        has_slc_mode: bool,
    ) -> Result<(), String> {
        let shared = matches!(self.log, Log::Shared { .. });
        if (self.slc_log || self.second_chance) && !shared {
            return Err(
                "only shared log blocks (FAST) may be in SLC mode or give pages a second chance".into()
            );
        }
        if self.slc_log && (log.is_some() || !has_slc_mode) {
            return Err(
                "log blocks in SLC mode must be in the data array, whose blocks must support SLC mode".into(),
            );
        }
        for flash in [Some(data), log].into_iter().flatten() {
            flash.geometry.check()?;
            if flash.geometry.units_per_page != 1 {
                return Err(format!(
                    "a block map translates pages: a unit of {} B must be a page, but a page has {} units",
                    flash.geometry.unit_bytes, flash.geometry.units_per_page
                ));
            }
            if flash.geometry.unit_bytes != data.geometry.unit_bytes {
                let (other, bytes) = (flash.geometry.unit_bytes, data.geometry.unit_bytes);
                return Err(format!(
                    "data pages have {bytes} B, log pages {other} B: they must have the same size"
                ));
            }
        }
        if data.rules != CellRules::NandAnyOrder {
            return Err(
            "a block map keeps pages at their own offsets: the data array must be NAND whose pages may be \
                    programmed in any order"
                .into(),
        );
        }
        if let (Some(log), Log::None | Log::PerBlock { .. }) = (log, self.log) {
            return Err(format!(
                "only shared log blocks (FAST) may be in a separate array ({} blocks were given)",
                log.geometry.blocks()
            ));
        }
        check_log(self, data, log)?;
        let pages = data.geometry.units() + log.map_or(0, |log| log.geometry.units());
        // Two numbers above the pages mean "nothing" and "in place".
        if pages >= u32::MAX as u64 - 1 {
            return Err(format!(
                "both arrays together have {pages} pages, at most {} can be numbered",
                u32::MAX - 2
            ));
        }
        Ok(())
    }
}

/// Blocks of each die of the data array that hold host data.
pub(super) fn home_blocks(config: &BlockMapConfig, flash: &FlashConfig) -> u32 {
    config.logical_units.div_ceil(flash.geometry.pages_per_block).div_ceil(flash.geometry.dies())
}

fn check_log(config: &BlockMapConfig, data: &FlashConfig, log: Option<&FlashConfig>) -> Result<(), String> {
    let (blocks, sequential) = match config.log {
        Log::None => (0, false),
        Log::PerBlock { blocks } => (blocks, false),
        Log::Shared { sequential, random_blocks } => (random_blocks, sequential),
    };
    let dies = log.unwrap_or(data).geometry.dies();
    if config.log != Log::None && blocks < dies {
        return Err(format!("{blocks} log blocks for {dies} dies: every die needs one"));
    }
    // The block to which pages with a second chance move before their own is erased.
    let moving = config.second_chance as u32;
    if let Some(log) = log
        && blocks.div_ceil(dies) + moving > log.geometry.blocks_per_die
    {
        return Err(format!(
            "{blocks} log blocks and {moving} blocks to move pages to do not fit in {dies} dies of {} blocks",
            log.geometry.blocks_per_die
        ));
    }
    let shared = if log.is_some() { 0 } else { blocks.div_ceil(dies) + moving };
    // One erased block for merges; one more for a block begun by host pages, which a power cut may tear while the
    // old one is still needed.
    let set_apart = shared + 1 + (sequential || config.log == Log::None) as u32;
    let per_die = data.geometry.blocks_per_die;
    let home = home_blocks(config, data);
    if config.logical_units == 0 || home + set_apart > per_die {
        return Err(format!(
            "{} logical pages take {home} blocks of each die, logs and merges {set_apart} more, but a die has \
                 {per_die}; give more spare or fewer log blocks",
            config.logical_units
        ));
    }
    Ok(())
}
