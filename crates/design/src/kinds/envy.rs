//! eNVy: `ftl.kind = "envy"`.

use super::Kind;
use crate::bricks::array::{self, Wiring};
use crate::bricks::memories::{self, Media};
use crate::bricks::{buffer, cleaning, space, wear};
use crate::context::Context;
use crate::key::Preset::{Is, Nothing};
use crate::key::{Key, key};
use crate::part::{self, Flash, Part, Ram};
use crate::toml_reader::datum::{Datum, Shape};
use crate::{Array, Design, HostPath, PathKind, Payload, footprint};
use nvlab_controller::envy::{EnvyConfig, SegmentCleaning};
use nvlab_medium::flash::{Nor, NorConfig, PlaneReads};
use nvlab_medium::ram::RamConfig;
use nvlab_units::Geometry;
use nvlab_units::quantity::display_bytes;
use nvlab_workload::Serves;

const KIND: &str = "envy";
/// Default over-provisioning (section 4.1: live data is limited to 80 %).
const SPARE: f64 = 0.2;
/// Segments of a die: one being filled, one to clean, one erased.
const SEGMENTS_MIN: u32 = 3;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.unit",
        &["envy"],
        Shape::Size { min: 16, max: 1 << 20 },
        Nothing("the width of the array: a page is transferred in one cycle"),
        "\"256 B\"",
    )
    .about(
        "Page size: the granularity of copies to the buffer and of flushes. An array narrower than a page transfers and \
         programs it in several steps (eNVy section 8).",
    ),
    key("ftl.concurrent", &["envy"], Shape::Count { min: 1, max: 1024 }, Is("1"), "4").about(
        "Programs and erases in progress at the same time, on different banks; a divisor of the number of banks, \
         `array.channels` x `array.ways`. A host access suspends those in its own bank. (eNVy section 6: 4 to 8.)",
    ),
    key("ftl.transaction_pages", &["envy"], Shape::Count { min: 0, max: 1 << 24 }, Is("0"), "1024").about(
        "Pages that one hardware transaction may change; space is reserved for their old versions. 0 disables \
         transactions. (eNVy section 6.)",
    ),
    key(
        "ftl.utilization_of",
        &["envy"],
        Shape::OneOf(&[
            ("in-service", "of the segments in service: all but the reserve"),
            ("total", "of all segments"),
        ]),
        Is("in-service"),
        "\"total\"",
    )
    .about(
        "What `utilization` and `spare` are a share of. eNVy section 4.1 limits live data to 80 % \
         \"of the total Flash array size\", and expects a cleaning cost of 4, for which 80 % of the \
         segments in service have to be live.",
    ),
    key("ftl.map.entry", &["envy"], Shape::Size { min: 1, max: 64 }, Is("6 B"), "\"6 B\"")
        .about("Page table memory per page of flash. (eNVy section 3.3: 6 B.)"),
    key("ftl.map.cache", &["envy"], Shape::Count { min: 0, max: 1 << 24 }, Is("0"), "4096").about(
        "Entries of the cache of recent mappings. A miss reads the page table; 0: look-ups take no time. (eNVy section \
         5.1 states no size and adds no time.)",
    ),
];

/// The controller of eNVy.
#[derive(Clone, Debug, PartialEq)]
pub struct Envy {
    /// The flash, by name.
    pub medium: String,
    /// The memory that holds page table and buffer, by name.
    pub memory: String,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Steps in which the array moves and programs a page: its bytes over the array's width.
    pub page_steps: u32,
    /// The controller, for [`nvlab_controller::envy`].
    pub config: EnvyConfig,
}

impl Kind for Envy {
    fn medium(&self) -> &str {
        &self.medium
    }
    fn memories(&self) -> Vec<&str> {
        vec![&self.memory]
    }
    fn unit_bytes(&self) -> u32 {
        self.page_bytes
    }
    fn logical_units(&self) -> u32 {
        self.config.logical_pages
    }
    fn check(&self, design: &Design) -> Result<(), String> {
        let ram = self.ram_config(design, 0);
        ram.check()?;
        self.config.check(&self.nor_config(design, 0), &ram)
    }
    fn serves(&self) -> Serves {
        Serves::Words
    }
    fn memory_bytes(&self, design: &Design, payload: Payload) -> u64 {
        let nor = self.nor_config(design, 0);
        let geometry = &nor.flash.geometry;
        let ram = self.ram_config(design, 0);
        let kept = payload.written(Nor::<()>::store_bytes(geometry) + ram.capacity_bytes);
        let transaction = match self.config.transaction_pages {
            0 => 0,
            pages => pages as u64 * 8 + self.config.logical_pages as u64 / 8,
        };
        4 * geometry.units()
            + 4 * self.config.logical_pages as u64
            + 4 * self.config.mapping_cache_entries as u64
            + 24 * self.config.buffer_pages as u64
            + 96 * geometry.blocks() as u64
            + geometry.pages_per_block as u64 * 16
            + transaction
            + ram.banks as u64 * footprint::LANE
            + footprint::array(&nor.flash, false, Payload::Nothing)
            + kept
    }
}

impl Envy {
    /// The array of a design, for [`nvlab_medium::flash::Nor`]. A page takes as many programs as the array has steps
    /// for it; a word the host loads lies in one step.
    pub fn nor_config(&self, design: &Design, seed: u64) -> NorConfig {
        let mut flash = design.flash_config(seed);
        let step = flash.timing.program;
        flash.timing.program = step * self.page_steps as u64;
        let slowing = design.slowing().map(|slowing| slowing.of_step(step, flash.timing.program));
        NorConfig { flash, slowing }
    }

    /// The memory of page table and buffer of a design, for [`nvlab_medium::ram`]. It is at least as large as this
    /// program's tables, which are laid out differently from the paper's; the price is that of the design's memory.
    pub fn ram_config(&self, design: &Design, seed: u64) -> RamConfig {
        let memory = design.ram_config(&self.memory, seed);
        let needed = self.config.sram_bytes(&design.array.geometry, memory.word_bytes);
        RamConfig { capacity_bytes: memory.capacity_bytes.max(needed), ..memory }
    }
}

/// Reads and checks it.
pub fn read(
    context: &mut Context,
    media: &Media,
    wiring: Wiring,
    path: Option<&HostPath>,
) -> Option<(Array, Envy)> {
    let flash = memories::data_nor(context, media, KIND, "eNVy");
    let unit = match context.get("ftl.unit", Some(KIND)) {
        Some(Datum::Size(bytes)) => Some(bytes),
        _ => None,
    };
    let concurrent = context.count("ftl.concurrent", KIND);
    let transaction_pages = context.count("ftl.transaction_pages", KIND);
    let share = space::spare(context, KIND, SPARE);
    let of_total = context.choice("ftl.utilization_of", KIND, &[("in-service", false), ("total", true)]);
    let memory = memory(context, media);
    let entry_bytes = context.size("ftl.map.entry", KIND);
    let mapping_cache_entries = context.count("ftl.map.cache", KIND);
    let buffer = buffer::fifo(context, KIND);
    let cleaning = cleaning::of_segments(context, KIND);
    let wear_spread = wear::read_swapping(context, KIND);
    link(context, path)?;

    let (medium, flash) = flash?;
    not_buffered(context, &medium)?;
    let (memory, ram) = memory?;
    let (array, page_steps) = shape(context, &flash, wiring, unit, concurrent?)?;
    let (geometry, path) = (&array.geometry, path?);
    let page_bytes = geometry.unit_bytes;
    let logical_pages = logical_pages(context, geometry, share?, of_total?)?;
    let [buffer_pages, flush_at] = buffer::in_pages(context, buffer?, &memory, page_bytes)?;
    let config = EnvyConfig {
        logical_pages,
        buffer_pages,
        flush_at,
        cleaning: cleaning?,
        wear_spread: wear_spread?,
        control: path.overhead_device,
        word_bytes: path.word_bytes,
        path_bytes: page_bytes / page_steps,
        mapping_cache_entries: mapping_cache_entries?,
        transaction_pages: transaction_pages?,
    };
    let envy = Envy { medium, memory, page_bytes, page_steps, config };
    check_partition(context, geometry, &envy)?;
    check_path(context, path, &envy)?;
    check_memory(context, geometry, &envy, entry_bytes?, &ram)?;
    Some((array, envy))
}

/// A page of the gang is programmed in one step: page buffers that a part has are not used.
fn not_buffered(context: &mut Context, medium: &str) -> Option<()> {
    let path = format!("media.{medium}.page_buffer");
    if !context.top.leaves.contains_key(&path) {
        return Some(());
    }
    context.wrong(
        &path,
        format!("`{path}` does not apply to eNVy"),
        "leave it out: it is for logs (kind rvm)",
    );
    None
}

fn link(context: &mut Context, path: Option<&HostPath>) -> Option<()> {
    if path?.kind == PathKind::MemoryBus {
        return Some(());
    }
    let help = "kind = \"memory-bus\"; as a block device it is then a RAM disk";
    context.wrong("path.kind", "`path.kind`: eNVy is memory accessed by loads and stores", help);
    None
}

/// The memory of the page table. Its contents must survive a power cut.
fn memory(context: &mut Context, media: &Media) -> Option<(String, Ram)> {
    let (name, ram) = memories::ram(context, media, "ftl.map.in", "")?;
    if ram.backup != part::Backup::None {
        return Some((name, ram));
    }
    let problem =
        format!("`ftl.map.in`: `{name}` loses the page table, and with it all data, when power fails");
    context.wrong("ftl.map.in", problem, format!("media.{name}.backup = \"battery\""));
    None
}

/// The array, and the steps of a page. A *die* of the geometry is a unit that programs and erases by itself: banks
/// share the controller's attention, so `concurrent` counts, not their number.
fn shape(
    context: &mut Context,
    flash: &Flash,
    wiring: Wiring,
    unit: Option<u64>,
    concurrent: u32,
) -> Option<(Array, u32)> {
    let gang = wiring.gang?;
    let planes = array::planes(context, wiring.planes, flash)?;
    let width = flash.page_bytes * gang as u64 * planes as u64;
    let unit = unit.unwrap_or_else(|| {
        context.derive("ftl.unit", Datum::Size(width), "the width of the array");
        width
    });
    let segment = width * flash.pages_per_block as u64;
    if !unit.is_multiple_of(width) || !segment.is_multiple_of(unit) {
        let problem = format!(
            "`ftl.unit` ({}) does not fit an array {} wide, with segments of {}",
            display_bytes(unit),
            display_bytes(width),
            display_bytes(segment)
        );
        context.wrong(
            "ftl.unit",
            problem,
            "a page is a multiple of the width, a segment a multiple of a page",
        );
        return None;
    }
    let banks = wiring.channels? as u64 * wiring.ways? as u64;
    if !banks.is_multiple_of(concurrent as u64) {
        let problem = format!("`ftl.concurrent` is {concurrent}, the array has {banks} bank(s)");
        context.wrong("ftl.concurrent", problem, "a divisor of the number of banks");
        return None;
    }
    let segments = banks * flash.blocks_per_plane as u64 * (flash.planes / planes) as u64;
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: concurrent,
        blocks_per_die: narrow(segments / concurrent as u64),
        pages_per_block: narrow(segment / unit),
        units_per_page: 1,
        unit_bytes: narrow(unit),
    };
    if let Err(problem) = geometry.check() {
        context.wrong("ftl.unit", problem, "a larger `ftl.unit`, fewer banks or fewer segments");
        return None;
    }
    if geometry.blocks_per_die < SEGMENTS_MIN {
        let problem = format!(
            "{} segment(s) per concurrent operation ({concurrent}) are too few for cleaning",
            geometry.blocks_per_die
        );
        let help =
            format!("at least {SEGMENTS_MIN}: more banks, or more blocks, or a smaller `ftl.concurrent`");
        context.wrong("ftl.concurrent", problem, help);
        return None;
    }
    if wiring.transfer.is_some() {
        let help = "leave it out: the times of reading and programming include the transfer";
        context.wrong("array.transfer", "`array.transfer` does not apply to NOR flash", help);
        return None;
    }
    let transfer = array::ganged(flash, gang);
    Some((
        Array { gang, planes, transfer, programs: None, geometry, units_per_read: 1, reads: PlaneReads::ONE },
        narrow(unit / width),
    ))
}

/// Bytes of a sector of the RAM disk that the memory may be used as.
const SECTOR_BYTES: u32 = 512;

/// Segments that hold data: one of each die is kept erased (section 3.4).
fn in_service(geometry: &Geometry) -> u32 {
    geometry.blocks() - geometry.dies()
}

fn logical_pages(
    context: &mut Context,
    geometry: &Geometry,
    share: space::Share,
    of_total: bool,
) -> Option<u32> {
    let serving = in_service(geometry) as u64 * geometry.units_per_block() as u64;
    let raw = if of_total { geometry.units() } else { serving };
    let pages = space::logical_units(context, raw, geometry.unit_bytes, share)?;
    if (pages as u64) < serving {
        // Whole sectors: as a disk its last page would be out of reach.
        let in_sector = (SECTOR_BYTES / geometry.unit_bytes).max(1);
        return Some(pages / in_sector * in_sector);
    }
    let key = space::spare_key(context);
    let problem =
        format!("`{key}` leaves nothing to clean: {pages} pages in {} segments", in_service(geometry));
    context.wrong(key, problem, "less live data than the segments in service can hold");
    None
}

fn check_partition(context: &mut Context, geometry: &Geometry, envy: &Envy) -> Option<()> {
    let segments = geometry.blocks_per_die - 1;
    match envy.config.cleaning {
        SegmentCleaning::Gathering(gathering) if gathering.partition_segments > segments => {
            let problem = format!("`ftl.clean.partition` is {}", gathering.partition_segments);
            let help = format!("a whole number from 1 to {segments}, the segments in service");
            context.wrong("ftl.clean.partition", problem, help);
            None
        }
        _ => Some(()),
    }
}

fn check_path(context: &mut Context, path: &HostPath, envy: &Envy) -> Option<()> {
    if path.word_bytes <= envy.page_bytes && envy.page_bytes.is_multiple_of(path.word_bytes) {
        return Some(());
    }
    let problem =
        format!("`path.width` ({} B) does not divide a page of {} B", path.word_bytes, envy.page_bytes);
    context.wrong("path.width", problem, "a page is a multiple of a word");
    None
}

/// Page table and buffer must fit in their memory.
fn check_memory(
    context: &mut Context,
    geometry: &Geometry,
    envy: &Envy,
    entry_bytes: u64,
    ram: &Ram,
) -> Option<()> {
    let table = geometry.units() * entry_bytes;
    let buffer = envy.config.buffer_pages as u64 * envy.page_bytes as u64;
    let size = Part::Ram(ram.clone()).bytes();
    if table + buffer <= size {
        return Some(());
    }
    let problem = format!(
        "`{}` has {}, but the page table takes {} and the buffer {}",
        envy.memory,
        display_bytes(size),
        display_bytes(table),
        display_bytes(buffer)
    );
    memories::too_small(context, &envy.memory, "ftl.map.in", problem, table + buffer)
}
