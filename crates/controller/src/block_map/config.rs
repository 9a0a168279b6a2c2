//! What a block-mapped controller is told: plain data, filled from a design.

use nvlab_medium::flash::{CellRules, FlashConfig};
use nvlab_units::Span;

/// A block-mapped controller, with or without log blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockMapConfig {
    /// Pages the host may address. The data array holds them in whole blocks; the rest of it is for logs that
    /// share it, merges and bad blocks.
    pub logical_units: u32,
    /// Where overwritten pages go.
    pub log: Log,
    /// Shared log blocks are blocks of the data array in SLC mode, smaller and faster, each in the room of a
    /// block with all bits (fusion flash, reference 10 of Nam, Na and Lee, APWeb 2010).
    pub slc_log: bool,
    /// A page that was overwritten in the log once is copied to another log block when its own is emptied
    /// first, because it will be overwritten again; only the others are merged (locality as in reference 10).
    pub second_chance: bool,
    /// How wear is evened out.
    pub wear: BlockWear,
    /// Whether the host's trims are heard.
    pub trim: bool,
    /// The checksum beside a unit is checked when the host reads it: what does not match is unreadable. Only where the
    /// medium keeps payload; otherwise damaged data are returned as they are.
    pub verify_reads: bool,
    /// Time the controller itself takes for a request, before the medium is asked.
    pub overhead: Span,
}

/// Where a page goes whose place in its data block is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Nowhere: the block is merged with it at once.
    None,
    /// BAST: into the log block of its data block (Kim et al., IEEE Trans. Consumer Electronics 48-2, 2002).
    PerBlock {
        /// Log blocks in all; at least one per die. The one given out first is merged first.
        blocks: u32,
    },
    /// FAST: into log blocks shared by all (Lee et al., ACM TECS 6-3, 2007).
    Shared {
        /// One block that takes sequential overwrites at their own offsets.
        sequential: bool,
        /// Blocks that take any page, filled and merged in a round; at least one per die of their array.
        random_blocks: u32,
    },
}

/// How wear is evened out. Log blocks are always taken in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWear {
    /// Of the erased blocks the least worn is taken first.
    pub dynamic: bool,
    /// When the most worn erased block of a die was erased this many times more than its least worn data block,
    /// the two change places.
    pub static_threshold: Option<u32>,
}

impl BlockMapConfig {
    /// Checks that it can work over a data array, whose blocks may have an SLC mode, and an array of the log if it has
    /// one of its own; otherwise says why not.
    pub fn check(
        &self,
        data: &FlashConfig,
        log: Option<&FlashConfig>,
        has_slc_mode: bool,
    ) -> Result<(), String> {
        check(self, data, log, has_slc_mode)
    }
}

/// Blocks of the data array of `flash` that hold host data on each die.
pub(super) fn home_blocks(config: &BlockMapConfig, flash: &FlashConfig) -> u32 {
    config.logical_units.div_ceil(flash.geometry.pages_per_block).div_ceil(flash.geometry.dies())
}

/// Why a configuration cannot work, if so. `log` is the array of the log if it has one of its own.
pub(super) fn check(
    config: &BlockMapConfig,
    data: &FlashConfig,
    log: Option<&FlashConfig>,
    has_slc_mode: bool,
) -> Result<(), String> {
    let shared = matches!(config.log, Log::Shared { .. });
    if (config.slc_log || config.second_chance) && !shared {
        return Err("only shared log blocks (FAST) may be in SLC mode or give pages a second chance".into());
    }
    if config.slc_log && (log.is_some() || !has_slc_mode) {
        return Err(
            "log blocks in SLC mode need a data array whose blocks can be used so, and lie in it".into()
        );
    }
    for flash in [Some(data), log].into_iter().flatten() {
        flash.geometry.check()?;
        if flash.geometry.units_per_page != 1 {
            return Err(format!(
                "a block map translates single pages: units of {} B must be pages, not {} to a page",
                flash.geometry.unit_bytes, flash.geometry.units_per_page
            ));
        }
        if flash.geometry.unit_bytes != data.geometry.unit_bytes {
            let (other, bytes) = (flash.geometry.unit_bytes, data.geometry.unit_bytes);
            return Err(format!("data pages have {bytes} B, log pages {other} B: they must be alike"));
        }
    }
    if data.rules != CellRules::NandAnyOrder {
        return Err(
            "a block map keeps pages at their own offsets: the data array must be NAND whose pages may be \
                    programmed in any order"
                .into(),
        );
    }
    if let (Some(log), Log::None | Log::PerBlock { .. }) = (log, config.log) {
        return Err(format!(
            "only shared log blocks (FAST) may lie in an array of their own ({} blocks were given)",
            log.geometry.blocks()
        ));
    }
    check_log(config, data, log)?;
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
    // The block that pages with a second chance move to, before their own is erased.
    let moving = config.second_chance as u32;
    if let Some(log) = log
        && blocks.div_ceil(dies) + moving > log.geometry.blocks_per_die
    {
        return Err(format!(
            "{blocks} log blocks and {moving} to move pages to do not fit {dies} dies of {} blocks",
            log.geometry.blocks_per_die
        ));
    }
    let shared = if log.is_some() { 0 } else { blocks.div_ceil(dies) + moving };
    // One erased block for merges; one more for the block that the host's pages themselves begin, which a power
    // cut may tear when the old one is still needed.
    let set_apart = shared + 1 + (sequential || config.log == Log::None) as u32;
    let per_die = data.geometry.blocks_per_die;
    let home = home_blocks(config, data);
    if config.logical_units == 0 || home + set_apart > per_die {
        return Err(format!(
            "{} logical pages take {home} blocks of each die, {set_apart} more are for logs and merges, a die has \
             {per_die}; give more spare or fewer log blocks",
            config.logical_units
        ));
    }
    Ok(())
}
