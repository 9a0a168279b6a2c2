//! The result of a run: plain data, in base units, the unit in the name. `result.json` is this, field by field; a
//! field is never renamed within a schema version.

mod doubts;
mod durable;
mod lifetime;
mod map;
mod precondition;
mod price;
mod regained;
mod repeat;
mod tenants;

pub use doubts::Precision;
pub use doubts::{EXACT, is_life, plus_minus};
pub use durable::{DurableResult, DurableTime};
pub use lifetime::{LaterLevelling, Lifetime};
pub use map::MapResult;
pub use precondition::{PassResult, Precondition};
pub use price::{Price, PricePart};
pub use regained::{ENOUGH, caveat, regained};
pub use tenants::TenantResult;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the JSON document.
pub const SCHEMA: &str = "nvlab.run/2";
/// Raised only when the same design, workload and seed may produce other numbers than before.
pub const RESULTS_VERSION: u32 = 11;
/// The version of nvlab and a digest of the sources that results depend on (`build.rs`).
const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("NVLAB_SOURCES"));
/// Seconds of a year of 365.25 days.
pub(crate) const SECONDS_PER_YEAR: f64 = 365.25 * 86_400.0;

/// The key of what this program computes from all that `inputs` say, 32 hexadecimal digits: what another program computed is never
/// taken for it.
pub(crate) fn key_of(inputs: &str) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{PROGRAM}\n{inputs}").as_bytes()))
}

/// Everything a run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Names this kind of document and its version.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// 32 hexadecimal digits that identify design, workload, seed, preconditioning and the program: a digest of its
    /// sources.
    pub key: String,
    /// Version of nvlab.
    pub nvlab: String,
    /// Raised when the same design, workload and seed may produce other numbers than before.
    pub results_version: u32,
    /// The design.
    pub design: DesignInfo,
    /// The workload's text.
    pub workload: String,
    /// One line about the actual workload (a trace's replay report, a generator's parameters).
    pub workload_about: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The value of `--until`; `None`: the workload's own end, or the default.
    pub until: Option<String>,
    /// How the device was brought to its state.
    pub precondition: Precondition,
    /// Requests the run was to serve, if that was known in advance, and requests it served.
    pub requests_asked: Option<u64>,
    /// Requests served.
    pub requests_served: u64,
    /// Whether an open loop was served as fast as its requests came; `None` for a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsResult>,
    /// Simulated time from the first request to the last completion, s.
    pub simulated_s: f64,
    /// Wall time, s. It need not be reproducible, so it is not in `result.json` but in the manifest.
    #[serde(default, skip_serializing)]
    pub wall_s: f64,
    /// Requests, bytes and latency, per kind.
    pub read: OpResult,
    /// See `read`.
    pub write: OpResult,
    /// See `read`.
    pub trim: OpResult,
    /// See `read`.
    pub flush: OpResult,
    /// From the first write since a flush (or a write that is durable at its end) until the next one is done: what it takes
    /// to make something durable. Not requests of their own.
    #[serde(default)]
    pub commit: OpResult,
    /// Whole transactions of a program on a memory; `read` and `write` are then its loads and stores.
    #[serde(default)]
    pub transaction: OpResult,
    /// What caused the programs.
    pub write_amplification: WriteAmplification,
    /// What the flash did; `None` for a device without flash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashResult>,
    /// The same by medium: the data medium first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediumResult>,
    /// When the device will be worn out.
    pub lifetime: Lifetime,
    /// The device set the pace, as fast as it could: a slower one wears more slowly, so years cannot be compared.
    #[serde(default)]
    pub closed_loop: bool,
    /// What it costs.
    pub price: Price,
    /// Current that preserves the contents of all RAM while the power is off, mA; `None` without RAM, or if a part does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ma: Option<f64>,
    /// Bytes of memory the controller's tables take in this simulator, and per logical unit.
    pub controller_memory_bytes: u64,
    /// Transfers between memories used in place and the host: bursts of the memory bus if the processor moves the data,
    /// otherwise whole parts of requests. `None` for other devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<u64>,
    /// Share of the units read that hold no data, because they were never written or were trimmed: no cell was read for
    /// them. 0 if nothing was read.
    #[serde(default)]
    pub unwritten_read_share: f64,
    /// Time that requests waited in the host because the device's queue was full, or the issuing thread was late, s.
    #[serde(default)]
    pub queue_wait_s: f64,
    /// Host time spent waiting for room in the write buffer, s.
    pub buffer_wait_s: f64,
    /// Host time spent waiting until log blocks were merged, s; of a controller with log blocks.
    #[serde(default)]
    pub merge_wait_s: f64,
    /// What only a memory has; `None` for a block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryResult>,
    /// Figures of a cache of blocks in SLC mode; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// Figures of a cache of lines in front of the controller; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LinesResult>,
    /// Figures of a map that is read from flash on demand; `None` if it is all in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapResult>,
    /// Bytes of its file that a file-system client read or wrote; `None` if the workload has no such client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_bytes: Option<u64>,
    /// Figures of a recorded program; `None` if the workload is not a recorded program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramResult>,
    /// Figures of the host's software; `None` if the design has no stages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<SoftwareResult>,
    /// The streams of a workload of several, in their order; empty for a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantResult>,
    /// Figures of the PRAM of tables and metadata; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pram: Option<PramResult>,
    /// Of a run shorter than a pass of a workload that writes each address once a pass, the bytes of a pass: within it, what is live in
    /// a block and so write amplification changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of_pass: Option<u64>,
    /// The cost of a mount after a power cut at the end; `None` if the media of the run stored no bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<MountResult>,
    /// What a log of recoverable memory did; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<DurableResult>,
    /// The precision of the run's random figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub precision: Vec<Precision>,
    /// The run in up to 400 windows of equally many requests.
    pub series: Vec<Window>,
}

impl RunResult {
    /// Why there is no lifetime: true if nothing wears the device, false if the wear is unknown.
    pub fn without_end(&self) -> bool {
        let programmed = self.flash.as_ref().map_or(0, |flash| flash.programs + flash.erases);
        let wears = self.flash.is_some() || self.pram.is_some() || self.durable.is_some();
        self.lifetime.years.is_none() && programmed == 0 && (self.write.bytes == 0 || !wears)
    }
}

/// The requests of an open loop, which arrive at their own times: the number offered, and the number served.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalsResult {
    /// Requests wanted until the run ended.
    pub offered: u64,
    /// Those of them that had not begun then, and were not served.
    pub waiting: u64,
    /// Requests wanted per second.
    pub offered_per_s: f64,
    /// Requests served per second.
    pub served_per_s: f64,
    /// Requests per second by which the host's queue grew; 0 if it did not.
    pub growth_per_s: f64,
}

/// A recorded program on this device (`think=keep`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramResult {
    /// Time with a request in flight, s.
    pub waiting_s: f64,
    /// The rest: what the program computed while nothing was in flight, s.
    pub computing_s: f64,
    /// What it took where it was recorded, s.
    pub recorded_s: f64,
    /// The part of it with a request in flight, s.
    pub recorded_waiting_s: f64,
}

/// The host's software as stages. Times are means for a request; latency = software + device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoftwareResult {
    /// Name of the stack.
    pub stack: String,
    /// Threads that issued requests.
    pub threads: u32,
    /// Cores they share; `None`: one each.
    pub cores: Option<u32>,
    /// Locks of the stack.
    pub locks: u32,
    /// Latency without the device: stages, locks and waiting for the own thread or a core, ns.
    pub latency_ns: f64,
    /// From the call of the device to its answer, including the wait for room in its queue, ns.
    pub device_ns: f64,
    /// Waiting until the own thread was free and had a core, ns; part of the latency of the software.
    pub queue_ns: f64,
    /// Processor time of the stages, ns: neither spinning nor waiting for locks.
    pub cpu_ns: f64,
    /// Processor time spent spinning for the device, ns.
    pub spin_ns: f64,
    /// Processor time spent waiting for locks, ns.
    pub lock_ns: f64,
    /// Processor time of all three kinds over the time of the run.
    pub cores_used: f64,
    /// Share of the latency that is waiting for locks.
    pub lock_share: f64,
    /// Each stage.
    pub stages: Vec<StageResult>,
}

/// One stage of the host's software; times are means for a request, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageResult {
    /// Its name.
    pub name: String,
    /// True if it comes before the device.
    pub submits: bool,
    /// Processor time.
    pub cpu_ns: f64,
    /// Waiting for its lock.
    pub lock_ns: f64,
    /// Waiting without a processor.
    pub wait_ns: f64,
}

impl StageResult {
    /// What it adds to the latency, ns.
    pub fn total_ns(&self) -> f64 {
        self.cpu_ns + self.lock_ns + self.wait_ns
    }
}

/// The design of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DesignInfo {
    /// Name, with what `--set` changed: `ssd-tlc`, `ssd-tlc ftl.clean.kind=fifo`.
    pub name: String,
    /// One line.
    pub about: String,
    /// The publication it follows; may be empty.
    pub cite: String,
    /// Every value, as `design show` prints it.
    pub resolved_toml: String,
    /// Bytes the host can address.
    pub capacity_bytes: u64,
    /// Bytes of flash.
    pub raw_bytes: u64,
}

/// Throughput and latency of one kind of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpResult {
    /// Requests.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// Requests per simulated second.
    pub per_s: f64,
    /// Bytes per simulated second.
    pub bytes_per_s: f64,
    /// Latency from the moment the host wanted the request.
    pub latency: Latency,
    /// Upper bound of each latency bucket (ns) and how many requests fell into it; empty buckets left out.
    pub histogram_ns: Vec<(u64, u64)>,
}

/// Latency percentiles, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95 %.
    pub p95_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p99_9_ns: u64,
    /// 99.99 %.
    pub p99_99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// Units programmed per unit the host wrote, by cause; the parts add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteAmplification {
    /// All of it; 0 if the host wrote nothing.
    pub total: f64,
    /// What the host wrote: 1, less what the write buffer absorbed.
    pub host: f64,
    /// Share of the units the host wrote that replaced a version still in the write buffer, and were not programmed on their
    /// own; not part of the total.
    #[serde(default)]
    pub absorbed: f64,
    /// Moved by cleaning.
    pub clean: f64,
    /// Moved by merging log blocks into data blocks.
    #[serde(default)]
    pub merge: f64,
    /// Moved from a cache of blocks in SLC mode to blocks with all bits.
    #[serde(default)]
    pub fold: f64,
    /// Moved between partitions by a cleaner that gathers what changes together.
    #[serde(default)]
    pub transfer: f64,
    /// Moved by wear levelling.
    pub wear: f64,
    /// Moved because a block was retired or a program failed.
    pub retire: f64,
    /// Checkpoints of the map, records of trims.
    pub map: f64,
    /// Overwritten because of trims, by a controller without a map.
    #[serde(default)]
    pub trim: f64,
    /// Pages programmed before they were full.
    pub padding: f64,
    /// Writes of part of a unit: the rest of the unit, read and written again by the device's front end. Counted
    /// as bytes of units touched over bytes the host asked to write; not part of the total.
    pub unaligned: f64,
    /// Blocks cleaned, and the mean share of live units in them.
    pub cleaned_blocks: u64,
    /// See `cleaned_blocks`.
    pub cleaned_live_share: f64,
}

impl WriteAmplification {
    /// Names of the causes, in the order of [`WriteAmplification::parts`].
    pub const CAUSES: [&'static str; 10] = [
        "host",
        "cleaning",
        "merges",
        "folding",
        "between partitions",
        "wear levelling",
        "retired blocks",
        "map",
        "trims",
        "padding",
    ];

    /// True if the host wrote anything.
    pub fn is_of_something(&self) -> bool {
        self.total > 0.0 || self.absorbed > 0.0
    }

    /// The causes, which add up to the total.
    pub fn parts(&self) -> [f64; 10] {
        [
            self.host,
            self.clean,
            self.merge,
            self.fold,
            self.transfer,
            self.wear,
            self.retire,
            self.map,
            self.trim,
            self.padding,
        ]
    }
}

/// Figures of one kind of flash in the run: an array, or the blocks of one in SLC mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediumResult {
    /// Its name in the design.
    pub name: String,
    /// `data`, `log`, or `slc` for blocks of the data array in SLC mode.
    pub role: String,
    /// Bytes of flash in the price, and their cost, USD; 0 and `None` if another medium's entry contains them.
    pub bytes: u64,
    /// See `bytes`.
    pub usd: Option<f64>,
    /// Cell reads, programs, erases.
    pub reads: u64,
    /// See `reads`.
    pub programs: u64,
    /// See `reads`.
    pub erases: u64,
    /// Pages that were erased without having been programmed since the erase before.
    #[serde(default)]
    pub skipped_pages: u64,
    /// Die time spent reading, programming, erasing: operations times their times, s.
    pub read_s: f64,
    /// See `read_s`.
    pub program_s: f64,
    /// See `read_s`.
    pub erase_s: f64,
    /// Bytes programmed, including those that wait for it in the write buffer, in a cache in SLC mode or in a log of another
    /// medium.
    #[serde(default)]
    pub programmed_bytes: u64,
    /// Blocks the wear is spread over; of a log those of its records.
    pub blocks: u32,
    /// Rated cycles of a block.
    pub rated_cycles: u32,
    /// Cycles of the mean block in this run: pages programmed and pages skipped over the pages of a block.
    #[serde(default)]
    pub cycles: f64,
    /// Years until these blocks reach the rated ones on average, at this run's rate; `None` if nothing was programmed.
    pub years: Option<f64>,
}

/// What the flash did during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashResult {
    /// Cell reads, programs, erases, of all arrays; the wear of blocks below is that of the data array.
    pub reads: u64,
    /// See `reads`.
    pub programs: u64,
    /// See `reads`.
    pub erases: u64,
    /// Reads repeated because of bit errors.
    pub read_retries: u64,
    /// Uncorrectable reads, failed programs, failed erases.
    pub failures: [u64; 3],
    /// Blocks retired, in the run.
    pub retired_blocks: u64,
    /// Share of die time spent reading, programming, erasing; the rest is idle (or waiting for a resume).
    pub busy_read: f64,
    /// See `busy_read`.
    pub busy_program: f64,
    /// See `busy_read`.
    pub busy_erase: f64,
    /// Share of channel time spent transferring.
    pub busy_channel: f64,
    /// Erase counts of all blocks (of a log those of its records) since new: least, mean, most, standard deviation.
    pub cycles_min: u32,
    /// See `cycles_min`.
    pub cycles_mean: f64,
    /// See `cycles_min`.
    pub cycles_max: u32,
    /// See `cycles_min`.
    pub cycles_deviation: f64,
    /// Blocks by erase count: (count, blocks).
    pub cycles_histogram: Vec<(u32, u32)>,
    /// Erase count of each of these blocks, die by die, if there are at most 65,536.
    pub cycles: Vec<u32>,
}

/// Figures of a memory: words on the host's side, pages of flash on the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryResult {
    /// Words loaded and stored.
    pub loads: u64,
    /// See `loads`.
    pub stores: u64,
    /// Stores that found their page in the write buffer.
    pub buffer_hits: u64,
    /// Pages copied from flash to the write buffer because of a store.
    pub copied_pages: u64,
    /// Pages flushed from the write buffer to flash.
    pub flushed_pages: u64,
    /// Look-ups that missed the cache of mappings.
    pub mapping_misses: u64,
    /// Times that a worn and a young area swapped their data.
    pub wear_swaps: u64,
    /// Pages programmed by the cleaner for each page flushed.
    pub cleaning_cost: f64,
    /// Bytes of the page table as the design counts them.
    pub table_bytes: u64,
    /// Where the time went.
    pub time: TimeSplit,
}

/// What a page map's cache of blocks in SLC mode did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheResult {
    /// Share of the units programmed for the host that went to it; 0 if none was.
    pub written_share: f64,
    /// Blocks folded in idle time or to make room; blocks emptied by the cleaner count as cleaning.
    pub folded_blocks: u64,
    /// Blocks in SLC mode at the end.
    pub blocks: u32,
}

/// What a cache of lines did: words, or lines as blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinesResult {
    /// Lines of the cache.
    pub lines: u32,
    /// Those that were newer than the flash at the end.
    pub dirty: u32,
    /// Words loaded, and lines read as blocks.
    pub loads: u64,
    /// Words stored, and lines written as blocks.
    pub stores: u64,
    /// Of both, those that found their line.
    pub hits: u64,
    /// Lines read because they were missing.
    pub fetched: u64,
    /// Lines read ahead, and those of them that were used.
    pub fetched_ahead: u64,
    /// See `fetched_ahead`.
    pub ahead_used: u64,
    /// Lines written back.
    pub written_back: u64,
}

impl LinesResult {
    /// Share of accesses that found their line; 0 without accesses.
    pub fn hit_share(&self) -> f64 {
        self.hits as f64 / (self.loads + self.stores).max(1) as f64
    }
}

/// Figures of the PRAM of a controller's tables and of a file system's metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PramResult {
    /// Bytes of the memory, of the controller's tables in it, and of the driver's part.
    pub size_bytes: u64,
    /// See `size_bytes`.
    pub map_bytes: u64,
    /// See `size_bytes`.
    pub route_bytes: u64,
    /// Writes; program steps (words) they took, and those they spared because nothing differed.
    pub writes: u64,
    /// See `writes`.
    pub words_programmed: u64,
    /// See `writes`.
    pub words_spared: u64,
    /// Writes that lines have borne since new: mean and most.
    pub line_writes_mean: f64,
    /// See `line_writes_mean`.
    pub line_writes_max: u32,
    /// Life until the most written line is worn out, as a share of the life if all lines wore evenly and wear levelling
    /// wrote nothing itself; from the writes that lines have borne since new. `None` if nothing was written.
    #[serde(default)]
    pub life_share: Option<f64>,
    /// Bytes of registers that wear levelling needs beside the memory.
    #[serde(default)]
    pub level_bytes: u64,
    /// Writes a line endures.
    pub rated_writes: u32,
    /// Years until the most written line reaches them, at this run's rate; `None` if nothing was written.
    pub years: Option<f64>,
    /// Writes that the mean line has borne in this run.
    #[serde(default)]
    pub line_writes_run: f64,
    /// Mean share of a line that a write of it programmed; 0 if none was written. The whole line counts as written.
    #[serde(default)]
    pub line_share: f64,
    /// What the driver in front sent where; `None` if there is none.
    pub route: Option<RouteResult>,
}

/// What a driver that separates a file system's metadata did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteResult {
    /// `fat12`, `fat16`, `fat32`, `exfat` (refused: everything goes to the controller) or `unknown`.
    pub file_system: String,
    /// Sectors the host wrote, and those of them that went to PRAM.
    pub written_sectors: u64,
    /// See `written_sectors`.
    pub pram_written_sectors: u64,
    /// Metadata sectors that went to the controller because PRAM was full.
    pub spilled_sectors: u64,
    /// Sectors in PRAM at the end.
    pub sectors_in_pram: u32,
    /// Share of words that changed where a sector in PRAM was overwritten; 0 if none was.
    pub changed_share: f64,
    /// Clusters trimmed because their FAT entries became free.
    pub clusters_trimmed: u64,
}

/// What a mount after a power cut costs, or the restart of a log of recoverable memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MountResult {
    /// Simulated time, s.
    pub time_s: f64,
    /// Pages of flash read for it.
    pub nand_reads: u64,
}

/// Shares of the time from the first access until the last operation that was queued is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeSplit {
    /// Loads, of the controller's time.
    pub read: f64,
    /// Stores and the copies that they caused, of the controller's time.
    pub write: f64,
    /// Flushes, of the time of the dies that program and erase in parallel; so are the next three.
    pub flush: f64,
    /// Cleaning, moves between partitions included.
    pub clean: f64,
    /// Swaps for wear.
    pub wear: f64,
    /// Erases.
    pub erase: f64,
    /// The rest: nothing to do, or waiting to resume what the host suspended.
    pub idle: f64,
}

/// A window of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// From and to, s since the run began.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// Requests served.
    pub requests: u64,
    /// Bytes read and written by the host.
    pub read_bytes: u64,
    /// See `read_bytes`.
    pub write_bytes: u64,
    /// Read latency, ns: median and 99 %; 0 if there was none.
    pub read_p50_ns: u64,
    /// See `read_p50_ns`.
    pub read_p99_ns: u64,
    /// Write latency, ns.
    pub write_p50_ns: u64,
    /// See `write_p50_ns`.
    pub write_p99_ns: u64,
    /// Units programmed per unit the host wrote; 0 if it wrote none.
    pub write_amplification: f64,
    /// Units that the cleaner moved per unit the host wrote; 0 if it wrote none.
    #[serde(default)]
    pub cleaning_cost: f64,
    /// Blocks erased.
    pub erases: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_the_program() {
        let other = |program: &str| {
            format!("{:032x}", xxhash_rust::xxh3::xxh3_128(format!("{program}\nx").as_bytes()))
        };
        assert_eq!(key_of("x"), other(PROGRAM));
        assert!(PROGRAM.ends_with(env!("NVLAB_SOURCES")) && env!("NVLAB_SOURCES").len() == 16);
        let older = PROGRAM.replace(env!("NVLAB_SOURCES"), "0123456789abcdef");
        assert_ne!(key_of("x"), other(&older), "the key of another program's result");
    }
}
