//! Closed forms that a simulation must agree with, and the comparison of the two.
//!
//! A first-in-first-out cleaner over many pages leaves a victim the live share `u` that solves
//! `rho = (u - 1) / ln u`, where `rho` is the share of the space in rotation that holds data; its cleaning cost
//! is `u / (1 - u)` programs per host write and write amplification `1 / (1 - u)`. Greedy cleaning has the same
//! limit for large blocks (Desnoyers 2012; Bux and Iliadis 2010). With classes of pages written at different
//! rates, a page of class c survives a round of length T with probability `e^(-r_c T)`.
//!
//! Space in rotation: the erased blocks kept for cleaning never hold data when a victim is chosen, so they do
//! not count ("net of reserved blocks").

use nvlab_controller::page_map::{Cleaning, PageMapConfig};
use nvlab_controller::{Controller, PageMap};
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_units::{Extent, Geometry, Lpa, Rng, Span, Time};
use rayon::prelude::*;

/// Finds the root of a function that falls from positive to negative between `low` and `high`.
fn root(mut low: f64, mut high: f64, falls: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if falls(middle) > 0.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Live share of a block when FIFO cleans it, pages written uniformly; `0 < rho < 1`.
pub fn fifo_live_share(rho: f64) -> f64 {
    // (u - 1) / ln u grows with u.
    root(1e-12, 1.0 - 1e-12, |u| rho - (u - 1.0) / u.ln())
}

/// Cleaning cost of a live share: programs of the cleaner per host write (eNVy section 4.1).
pub fn cleaning_cost(live_share: f64) -> f64 {
    live_share / (1.0 - live_share)
}

/// A class of pages: its share of the data and its share of the writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Share of the data.
    pub data: f64,
    /// Share of the writes.
    pub writes: f64,
}

/// Cleaning cost of FIFO with classes of pages in the same blocks; the shares of each kind add up to 1.
///
/// Finds T with `sum_c rho d_c (r_c T) / (1 - e^(-r_c T)) = 1`, `r_c = a_c / d_c`, T in writes per page of data;
/// the cost is `(1 - rho T) / (rho T)`.
fn fifo_mixed_cost(rho: f64, classes: &[Class]) -> f64 {
    let filled = |t: f64| {
        let share = |class: &Class| {
            let x = class.writes / class.data * t;
            rho * class.data * if x < 1e-12 { 1.0 } else { x / -(-x).exp_m1() }
        };
        classes.iter().map(share).sum::<f64>()
    };
    let t = root(0.0, 1e6, |t| 1.0 - filled(t));
    (1.0 - rho * t) / (rho * t)
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What was simulated.
    pub what: String,
    /// Write amplification of the closed form.
    pub expected: f64,
    /// Write amplification measured.
    pub measured: f64,
    /// Relative deviation allowed.
    pub tolerance: f64,
}

impl Check {
    /// Relative deviation.
    pub fn deviation(&self) -> f64 {
        self.measured / self.expected - 1.0
    }
    /// True if the deviation is allowed.
    pub fn holds(&self) -> bool {
        self.deviation().abs() <= self.tolerance
    }
}

/// A simulation to be compared with theory.
#[derive(Clone, Copy, Debug)]
struct Point {
    cleaning: Cleaning,
    rho: f64,
    /// Share of the data that receives the remaining share of the writes; 0.5: uniform.
    hot_data: f64,
    blocks: u32,
    pages: u32,
    tolerance: f64,
}

impl Point {
    fn name(&self) -> String {
        let policy = match self.cleaning {
            Cleaning::Greedy => "greedy",
            _ => "FIFO",
        };
        let hot = (self.hot_data * 100.0).round();
        let locality = if self.hot_data == 0.5 { "uniform".into() } else { format!("{hot}/{}", 100.0 - hot) };
        format!("{policy}, {locality}, rho {:.2}, {} blocks of {} pages", self.rho, self.blocks, self.pages)
    }

    fn expected(&self) -> f64 {
        if self.hot_data == 0.5 {
            return 1.0 + cleaning_cost(fifo_live_share(self.rho));
        }
        let (hot, cold) = (self.hot_data, 1.0 - self.hot_data);
        1.0 + fifo_mixed_cost(
            self.rho,
            &[Class { data: hot, writes: cold }, Class { data: cold, writes: hot }],
        )
    }

    fn check(&self, rounds: u32) -> Check {
        Check {
            what: self.name(),
            expected: self.expected(),
            measured: self.simulate(rounds),
            tolerance: self.tolerance,
        }
    }

    /// Write amplification after the device has been written `rounds` times, measured over as many again.
    fn simulate(&self, rounds: u32) -> f64 {
        // One erased block is kept for cleaning: the rest is in rotation.
        let units = ((self.blocks - 1) as f64 * self.pages as f64 * self.rho).round() as u32;
        let mut map = device(self.cleaning, self.blocks, self.pages, units);
        let mut rng = Rng::stream(1, "theory");
        let hot = (units as f64 * self.hot_data).round() as u64;
        let mut write = |map: &mut PageMap<()>, count: u64| {
            let mut batch = [Lpa(0); 32];
            for _ in 0..count / 32 {
                for lpa in &mut batch {
                    // Hot data receives the larger share of the writes: 10/90 is 10 % of data, 90 % of writes.
                    let in_hot = rng.chance(1.0 - self.hot_data);
                    let unit = if in_hot { rng.below(hot) } else { hot + rng.below(units as u64 - hot) };
                    *lpa = Lpa(unit as u32);
                }
                batch.iter().for_each(|&lpa| map.prefetch(lpa));
                for &lpa in &batch {
                    map.write(Time::ZERO, Extent::one(lpa), &[]).expect("a device with spare space");
                }
            }
        };
        for lpa in (0..units).map(Lpa) {
            map.write(Time::ZERO, Extent::one(lpa), &[]).expect("a device with spare space");
        }
        write(&mut map, units as u64 * rounds as u64);
        map.reset_stats();
        write(&mut map, units as u64 * rounds as u64);
        map.stats().write_amplification()
    }
}

/// A device whose operations take no time.
fn device(cleaning: Cleaning, blocks: u32, pages: u32, logical_units: u32) -> PageMap<()> {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: blocks,
        pages_per_block: pages,
        units_per_page: 1,
        unit_bytes: 4096,
    };
    let timing = FlashTiming { copy_back: true, ..FlashTiming::plain(Span::ZERO, Span::ZERO, Span::ZERO) };
    let flash = FlashConfig {
        rules: CellRules::Nand,
        geometry,
        timing,
        endurance: Endurance { cycles: 1, spread: 0.0 },
        faults: Faults::NONE,
    };
    let config = PageMapConfig { cleaning, free_blocks_min: 1, ..PageMapConfig::plain(logical_units) };
    PageMap::new(config, Nand::new(flash, ())).expect("a device that fits")
}

/// Compares the simulation with every closed form; calls `on_row` with each comparison in order. True if all hold.
pub fn check_all(mut on_row: impl FnMut(&Check)) -> bool {
    let fifo = |rho| Point {
        cleaning: Cleaning::Fifo,
        rho,
        hot_data: 0.5,
        blocks: 2048,
        pages: 256,
        tolerance: 0.01,
    };
    let greedy =
        |rho| Point { cleaning: Cleaning::Greedy, blocks: 1024, pages: 4096, tolerance: 0.02, ..fifo(rho) };
    let mixed = |hot_data| Point { hot_data, ..fifo(0.8) };
    let uniform = [0.5, 0.6, 0.7, 0.8, 0.9];
    let points: Vec<Point> = uniform
        .map(fifo)
        .into_iter()
        .chain(uniform.map(greedy))
        .chain([0.4, 0.3, 0.2, 0.1, 0.05].map(mixed))
        .collect();
    let checks: Vec<Check> = points.par_iter().map(|point| point.check(12)).collect();
    checks.iter().for_each(&mut on_row);
    checks.iter().all(Check::holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The theory sheet's table (uniform FIFO) and Figure 8's closed forms (mixed, rho 0.8).
    #[test]
    fn closed_forms_match_the_sheet() {
        let table = [
            (0.5, 0.203, 0.255),
            (0.6, 0.324, 0.480),
            (0.7, 0.467, 0.876),
            (0.8, 0.629, 1.693),
            (0.9, 0.807, 4.18),
        ];
        for (rho, live, cost) in table {
            let share = fifo_live_share(rho);
            assert!((share - live).abs() < 6e-4, "rho {rho}: {share}");
            assert!((cleaning_cost(share) / cost - 1.0).abs() < 3e-3, "rho {rho}: {}", cleaning_cost(share));
        }
        for (hot, cost) in
            [(0.5, 1.693), (0.4, 1.722), (0.3, 1.820), (0.2, 2.034), (0.1, 2.533), (0.05, 3.074)]
        {
            let classes = [Class { data: hot, writes: 1.0 - hot }, Class { data: 1.0 - hot, writes: hot }];
            let found = fifo_mixed_cost(0.8, &classes);
            assert!((found / cost - 1.0).abs() < 1e-3, "{hot}: {found}");
        }
    }

    /// The smoke size of `check-theory`: a smaller array, and twice the tolerance because of its size.
    #[test]
    fn a_small_array_is_close_already() {
        let point = Point {
            cleaning: Cleaning::Fifo,
            rho: 0.8,
            hot_data: 0.2,
            blocks: 512,
            pages: 64,
            tolerance: 0.02,
        };
        let check = point.check(8);
        assert!(check.holds(), "{check:?}");
    }
}
