//! How fast hFTL is simulated: random overwrites of 2 KiB pages on the array and the PRAM of system 003, cleaning
//! counted as it comes. Prints host page writes and programs per CPU second, and a hash of what was computed.
//!
//! `cargo run --release -p nvlab-controller --example hftl_speed [million operations]`

use nvlab_controller::hftl::HftlConfig;
use nvlab_controller::page_map::{Cleaning, WearLevelling};
use nvlab_controller::{BesidePram, Controller, Hftl};
use nvlab_medium::banks::Access;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_medium::pcm::{LineWear, Pcm, PcmConfig, Selection, Tear};
use nvlab_units::{Extent, Geometry, Lpa, Rate, Rng, Span, Time};

fn array() -> FlashConfig {
    FlashConfig {
        rules: CellRules::Nand,
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: 4096,
            pages_per_block: 128,
            units_per_page: 1,
            unit_bytes: 2048,
        },
        timing: FlashTiming {
            transfer: Rate::from_bytes_per_second(33_333_333),
            ..FlashTiming::plain(Span::from_us(60), Span::from_us(800), Span::from_us(1400))
        },
        endurance: Endurance { cycles: 10_000, spread: 0.0 },
        faults: Faults::NONE,
    }
}

fn pram() -> Pcm<()> {
    let config = PcmConfig {
        capacity_bytes: 64 << 20,
        word_bytes: 2,
        read: Access { first: Span::from_ns(80), next: Span::from_ns(10) },
        program: Span::from_us(10),
        words_per_step: 1,
        selection: Selection::Differing { share: 0.16 },
        wear: Some(LineWear { line_bytes: 64, endurance: 1_000_000, refuse: false }),
        atomic_bytes: 8,
        tear: Tear::Atomic,
        banks: 1,
        stripe_bytes: 64,
        seed: 1,
    };
    Pcm::new(config, ())
}

/// Nanoseconds this process was on a processor.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Fills the device, brings it to a steady state, and measures. `percent` of the pages are the host's.
fn measure(percent: u32, millions: u64) {
    let config = HftlConfig {
        logical_units: 4096 * 128 / 100 * percent,
        cleaning: Cleaning::Greedy,
        free_blocks_min: 2,
        wear: WearLevelling { dynamic: true, static_threshold: None },
        trim: true,
        verify_reads: false,
        lookup: Span::from_ns(90),
        overhead: Span::ZERO,
        seed: 1,
    };
    let mut device = Hftl::new(config, Nand::new(array(), ()), pram()).expect("a design that works");
    let units = device.capacity_units();
    let mut now = device.write(Time::ZERO, Extent { start: Lpa(0), count: units }, &[]).expect("room").end;
    let mut rng = Rng::new(1);
    let mut pages = [0u32; 32];
    let mut begun = cpu_ns();
    for batch in 0..(millions * 1_000_000 / 32) * 3 / 2 {
        if batch == millions * 1_000_000 / 64 {
            device.reset_stats();
            begun = cpu_ns();
        }
        pages.fill_with(|| rng.below(units as u64) as u32);
        pages.iter().for_each(|&page| device.prefetch(Lpa(page)));
        for &page in &pages {
            now = device.write(now, Extent::one(Lpa(page)), &[]).expect("room").end;
        }
    }
    let seconds = (cpu_ns() - begun) as f64 / 1e9;
    let (stats, wa) = (device.stats(), device.stats().write_amplification());
    let updates = stats.map_updates + stats.block_updates + stats.live_updates;
    let steps = device.pram().stats().steps;
    let hash = [updates, steps, stats.clean_units, now.ps()]
        .iter()
        .fold(0u64, |hash, &word| (hash ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(29));
    println!(
        "hftl, {percent} % of the array {:6.2} M writes/CPU-s  {:6.2} M programs/CPU-s  WA {wa:.2}  {:.2} PRAM \
         updates/write  {hash:016x}",
        stats.host_write_units as f64 / seconds / 1e6,
        stats.host_write_units as f64 * wa / seconds / 1e6,
        updates as f64 / stats.host_write_units as f64,
    );
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(4);
    for percent in [70, 85, 93] {
        measure(percent, millions);
    }
}
