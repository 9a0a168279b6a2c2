//! How fast the block-mapped controllers are simulated: random overwrites of 4 KiB pages on the arrays of system
//! 002 (8 GiB of MLC data, Table II), merges counted as they come. Prints host page operations and programs per
//! CPU second, and a hash of what was computed.
//!
//! `cargo run --release -p nvlab-controller --example log_block_speed [million operations]`

use nvlab_controller::block_map::{BlockMapConfig, BlockWear, Log};
use nvlab_controller::{BlockMap, Controller};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_units::{Extent, Geometry, Lpa, Rate, Rng, Span, Time};

/// Logical blocks of 128 pages: 8 GiB.
const DATA_BLOCKS: u32 = 16_384;

fn array(blocks: u32, pages: u32, rules: CellRules, us: [u64; 3], cycles: u32) -> FlashConfig {
    let [read, program, erase] = us.map(Span::from_us);
    FlashConfig {
        rules,
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: blocks,
            pages_per_block: pages,
            units_per_page: 1,
            unit_bytes: 4096,
        },
        timing: FlashTiming {
            transfer: Rate::from_bytes_per_second(40_000_000),
            ..FlashTiming::plain(read, program, erase)
        },
        endurance: Endurance { cycles, spread: 0.0 },
        faults: Faults::NONE,
    }
}

/// Nanoseconds this process was on a processor.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Fills the device, brings it to a steady state, and measures.
fn measure(name: &str, log: Log, slc_blocks: u32, millions: u64) {
    let shared = match log {
        Log::None => 0,
        Log::PerBlock { blocks } => blocks,
        Log::Shared { random_blocks, .. } => random_blocks * (slc_blocks == 0) as u32,
    };
    let data = array(DATA_BLOCKS + shared + 64, 128, CellRules::NandAnyOrder, [60, 800, 1500], 10_000);
    let slc = (slc_blocks > 0)
        .then(|| Nand::new(array(slc_blocks, 64, CellRules::Nand, [25, 200, 1500], 100_000), ()));
    let config = BlockMapConfig {
        logical_units: DATA_BLOCKS * 128,
        log,
        slc_log: false,
        second_chance: false,
        wear: BlockWear { dynamic: true, static_threshold: None },
        trim: true,
        verify_reads: false,
        overhead: Span::ZERO,
    };
    let mut device: BlockMap = BlockMap::new(config, Nand::new(data, ()), slc).expect("a design that works");
    let units = device.capacity_units();
    let mut now = device.write(Time::ZERO, Extent { start: Lpa(0), count: units }, &[]).expect("room").end;
    let mut rng = Rng::new(1);
    let mut pages = [0u32; 32];
    let mut begun = (cpu_ns(), 0);
    for batch in 0..(millions * 1_000_000 / 32) * 3 / 2 {
        if batch == millions * 1_000_000 / 64 {
            device.reset_stats();
            begun = (cpu_ns(), batch);
        }
        pages.fill_with(|| rng.below(units as u64) as u32);
        pages.iter().for_each(|&page| device.prefetch(Lpa(page)));
        for &page in &pages {
            now = device.write(now, Extent::one(Lpa(page)), &[]).expect("room").end;
        }
    }
    let stats = *device.stats();
    let (programs, host) = (stats.data.total().programs + stats.log.total().programs, stats.host_write_units);
    let seconds = (cpu_ns() - begun.0) as f64 / 1e9;
    let hash = [programs, stats.data.total().erases, stats.log.total().erases, now.ps()]
        .iter()
        .fold(0u64, |hash, &word| (hash ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(29));
    println!(
        "{name:24} {:6.2} M ops/CPU-s  {:7.0} M programs/CPU-s  {:6.1} programs/op  {:.3} full merges/op  {hash:016x}",
        host as f64 / seconds / 1e6,
        programs as f64 / seconds / 1e6,
        programs as f64 / host as f64,
        stats.full_merges as f64 / host as f64,
    );
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(8);
    for percent in [5, 15, 25] {
        let slc_blocks = DATA_BLOCKS * 2 * percent / 100;
        let shared = |random_blocks| Log::Shared { sequential: true, random_blocks };
        measure(&format!("fast, {percent} % log"), shared(slc_blocks / 2), 0, millions);
        measure(&format!("slc log, {percent} %"), shared(slc_blocks), slc_blocks, millions);
    }
    measure("bast, 256 logs", Log::PerBlock { blocks: 256 }, 0, millions);
    measure("block map", Log::None, 0, millions);
}
