//! Implausible values: warnings, never errors, since a design may describe hardware that does not exist yet.
//!
//! All ranges are in one table, each with its source. They are wide: a value outside is more often a wrong unit than
//! an invention.

use super::part::{Flash, Part};
use super::{Design, Ftl, HostPath, PathKind};
use nvlab_units::quantity::{display_fraction, exact_span};
use nvlab_units::{Rate, Span};

/// Typical ranges of a kind of flash cell.
struct Range {
    /// `slc`... of NAND.
    cell: &'static str,
    /// Cells to register, one program operation, erasing a block: least and most, in microseconds.
    read_us: [f64; 2],
    program_us: [f64; 2],
    erase_us: [f64; 2],
    /// Rated cycles.
    cycles: [u32; 2],
    basis: &'static str,
}

const RANGES: [Range; 4] = [
    Range {
        cell: "slc",
        read_us: [2.0, 60.0],
        program_us: [50.0, 1_000.0],
        erase_us: [300.0, 20_000.0],
        cycles: [10_000, 1_000_000],
        basis: "K9F1G08 (25 us, 200 us, 1.5 ms, 100 000) to Z-NAND and XL-Flash (3 to 5 us, 75 to 100 us)",
    },
    Range {
        cell: "mlc",
        read_us: [20.0, 500.0],
        program_us: [300.0, 4_000.0],
        erase_us: [500.0, 20_000.0],
        cycles: [500, 50_000],
        basis: "K9G8G08 (60 us, or 482 us at the driver of system 003, EMSOFT 2008; 800 us, 1.5 ms, 5 000) to eMLC of 2012 (30 000, 2 ms)",
    },
    Range {
        cell: "tlc",
        read_us: [25.0, 250.0],
        program_us: [250.0, 8_000.0],
        erase_us: [1_000.0, 30_000.0],
        cycles: [200, 20_000],
        basis: "ISSCC 2014 to 2023 (reads of 39 to 110 us; word lines of three pages in 0.35 to 3 ms; for two planes, 6.7 ms derived from the rate of a data-centre drive), ratings of 300 to 10 000",
    },
    Range {
        cell: "qlc",
        read_us: [50.0, 500.0],
        program_us: [700.0, 25_000.0],
        erase_us: [2_000.0, 40_000.0],
        cycles: [100, 5_000],
        basis: "ISSCC 2018 to 2023 (reads of 65 to 170 us; two-pass word lines of 1.6 to 9 ms per page, 22 ms derived from the rate of a data-centre drive), ratings of 300 to 1 500",
    },
];

/// Years that cells keep their data, least and most, and what that is.
const RETENTION: ([u32; 2], &str) =
    ([1, 40], "JESD218 requires 3 months to 1 year of worn drives, NOR is specified for 20 years");
/// The fastest bus of a chip, in bytes a second, and what that is.
const CHIP_BUS: (u64, &str) = (
    100_000_000_000,
    "ONFI 5.1 carries 3.6 GB/s; 100 GB/s stands for a bus whose time is included in the read time",
);

/// The fastest link of each kind, in bytes a second, and what that is.
const LINKS: [(PathKind, u64, &str); 2] = [
    (PathKind::Sata, 600_000_000, "SATA 3.2 carries 6 Gbit/s in 8b/10b"),
    (PathKind::Nvme, 128_000_000_000, "PCIe 7.0 x8 or 6.0 x16 carries about 126 GB/s"),
];

/// A greater share of the spare space in blocks without data gives a warning: write amplification is then higher by
/// about as much.
const EMPTY_MAX: f64 = 0.25;
/// With less spare space than this the cleaner has hardly a block to work with.
const SPARE_MIN: f64 = 0.02;
/// Maximum ratio of the program rate of a channel's dies to the rate of the channel: further dies change nothing.
const FEED_MAX: f64 = 1.5;

impl Design {
    /// Values that are probably mistakes, each as one sentence that names the key, the value and the usual range with
    /// its source.
    pub fn implausible(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, medium) in &self.media {
            if let Part::Nand(flash) = &medium.part {
                found.extend(nand(name, flash));
            }
        }
        found.extend(self.data_flash().and_then(|(name, flash)| self.fed(name, flash)));
        found.extend(link(&self.path));
        found.extend(self.tight());
        found.extend(self.kept_back());
        found
    }

    /// The flash that holds the data.
    fn data_flash(&self) -> Option<(&str, &Flash)> {
        let name = self.ftl.medium();
        match &self.media.get(name)?.part {
            Part::Nand(flash) => Some((name, flash)),
            _ => None,
        }
    }

    /// Warns if the dies of a channel program faster than the channel delivers data.
    fn fed(&self, name: &str, flash: &Flash) -> Option<String> {
        let geometry = &self.array.geometry;
        let page = geometry.units_per_page as f64 * geometry.unit_bytes as f64;
        let die = page / flash.program.seconds().max(1e-12);
        let ways = geometry.dies() as f64 / geometry.channels as f64;
        let channel = bytes_per_second(self.array.transfer);
        let times = ways * die / channel;
        let most = match channel >= die {
            true => format!("{:.1} of its {ways} dies", channel / die),
            false => {
                format!(
                    "{} of the rate of one die",
                    display_fraction((100.0 * channel / die).round() / 100.0)
                )
            }
        };
        (times > FEED_MAX).then(|| {
            format!(
                "media.{name}: the dies of a channel program {}, the channel carries {}: enough for {most} (bytes \
                 of a page over its program time)",
                bandwidth(ways * die),
                bandwidth(channel)
            )
        })
    }

    /// Warns if there is hardly any spare space.
    fn tight(&self) -> Option<String> {
        let raw = self.raw_bytes();
        let spare = 1.0 - self.capacity_bytes() as f64 / raw.max(1) as f64;
        let is_page_map = matches!(self.ftl, Ftl::Page(_)) && self.data_flash().is_some();
        (is_page_map && spare < SPARE_MIN).then(|| {
            format!(
                "ftl.spare: {} of the raw flash is spare; drives have 7 % to 28 % (GiB sold as GB give 7 %)",
                display_fraction((spare * 1e4).round() / 1e4)
            )
        })
    }

    /// Warns if much of the spare space is in the erased reserve and in blocks being filled: few and large blocks.
    fn kept_back(&self) -> Option<String> {
        let page = self.ftl.page_map()?;
        let (config, geometry) = (page.config(0), &self.array.geometry);
        let blocks = config.allocation.geometry(geometry).blocks();
        let spare = 1.0 - config.logical_units as f64 / geometry.units() as f64;
        let empty = config.empty_blocks(geometry) / blocks as f64;
        let shown = |share: f64| display_fraction((share * 1e3).round() / 1e3);
        (empty > EMPTY_MAX * spare).then(|| {
            format!(
                "ftl.spare: effective spare is about {} of the {} asked: of {blocks} blocks {} are kept back as the erased \
                 reserve, to be filled and for the map, and {:.0} of them are empty at any time; more blocks \
                 (media.{}.blocks) or a smaller ftl.free_blocks_min leave more to the cleaner",
                shown((spare - empty).max(0.0)),
                shown(spare),
                config.set_apart(geometry),
                config.empty_blocks(geometry),
                page.medium
            )
        })
    }
}

fn bytes_per_second(rate: Rate) -> f64 {
    (1 << 20) as f64 / rate.transfer(1 << 20).seconds().max(1e-15)
}

fn bandwidth(bytes_per_second: f64) -> String {
    format!("{} MB/s", (bytes_per_second / 1e6).round())
}

fn nand(name: &str, flash: &Flash) -> Vec<String> {
    let Some(range) = RANGES.iter().find(|range| range.cell == flash.cell) else { return Vec::new() };
    let cell = range.cell.to_uppercase();
    let us = |span: Span| span.ns() as f64 / 1e3;
    let times = [
        ("read", us(*flash.read.iter().min().expect("a part has a read time")), range.read_us),
        ("program", us(flash.program), range.program_us),
        ("erase", us(flash.erase), range.erase_us),
    ];
    let mut found: Vec<String> = times
        .into_iter()
        .filter(|(_, value, [least, most])| value < least || value > most)
        .map(|(key, value, [least, most])| {
            let [value, least, most] =
                [value, least, most].map(|us| exact_span(Span::from_ps((us * 1e6) as u64)));
            format!("media.{name}.{key}: {value}; {cell} takes {least} to {most} ({})", range.basis)
        })
        .collect();
    let ([least, most], basis) = RETENTION;
    if let Some(years) = flash.retention_years.filter(|years| !(least..=most).contains(years)) {
        found.push(format!(
            "media.{name}.retention_years: {years} years; cells keep data for {least} to {most} ({basis})"
        ));
    }
    let (rate, (most, basis)) = (bytes_per_second(flash.transfer), CHIP_BUS);
    if rate > 1.01 * most as f64 {
        let [rate, most] = [rate, most as f64].map(bandwidth);
        found.push(format!("media.{name}.transfer: {rate}; at most {most} ({basis})"));
    }
    let [least, most] = range.cycles;
    if !(least..=most).contains(&flash.endurance) {
        found.push(format!(
            "media.{name}.endurance: {} cycles; {cell} is rated for {least} to {most} ({})",
            flash.endurance, range.basis
        ));
    }
    found
}

fn link(path: &HostPath) -> Option<String> {
    let (_, most, basis) = LINKS.iter().find(|(kind, ..)| *kind == path.kind)?;
    let rate = bytes_per_second(path.rate?);
    (rate > 1.01 * *most as f64)
        .then(|| format!("path.rate: {}; at most {} ({basis})", bandwidth(rate), bandwidth(*most as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BUILT_IN;

    fn of(name: &str, sets: &[&str]) -> Vec<String> {
        let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
        Design::load(name, &sets).unwrap_or_else(|errors| panic!("{errors}")).implausible()
    }

    #[test]
    fn built_in_designs_are_plausible() {
        for (name, _) in BUILT_IN {
            assert_eq!(of(name, &[]), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn slips_of_a_unit_are_named() {
        let cases: [(&str, &[&str], &str); 11] = [
            ("ssd-tlc", &["media.tlc.program=1 us"], "media.tlc.program: 1 us; TLC takes 250 us to 8 ms"),
            ("ssd-tlc", &["media.tlc.read=[\"45 ns\",\"60 ns\",\"75 ns\"]"], "media.tlc.read"),
            ("ssd-tlc", &["media.tlc.erase=5 s"], "media.tlc.erase: 5 s; TLC takes 1 ms to 30 ms"),
            (
                "ssd-tlc",
                &["media.tlc.retention_years=1000"],
                "media.tlc.retention_years: 1000 years; cells keep data",
            ),
            (
                "ssd-tlc",
                &["media.tlc.transfer=1600 GB/s"],
                "media.tlc.transfer: 1600000 MB/s; at most 100000 MB/s (ONFI",
            ),
            ("ssd-tlc", &["media.tlc.read=45 ns"], "media.tlc.read: 45 ns; TLC takes 25 us to 250 us"),
            ("ssd-tlc", &["media.tlc.endurance=100000"], "media.tlc.endurance: 100000 cycles"),
            (
                "ssd-tlc",
                &["path.kind=sata", "path.rate=250 GB/s"],
                "path.rate: 250000 MB/s; at most 600 MB/s (SATA",
            ),
            (
                "ssd-tlc",
                &[
                    "array.ways=16",
                    "media.tlc.blocks=60",
                    "media.tlc.transfer=400 MB/s",
                    "ftl.buffer.size=64 MiB",
                    "media.dram.size=1 GiB",
                ],
                "enough for",
            ),
            ("ssd-tlc", &["ftl.spare=1.5 %"], "ftl.spare: 1.5"),
            // 3 - 1 erased and two half filled blocks of each of 4 dies, of 128: 9.4 % (and 5 of the map: 3.9 %).
            (
                "ssd-tlc",
                &["media.tlc.blocks=32", "ftl.spare=20 %", "ftl.map.checkpoint=none"],
                "effective spare is about 10.6 % of the 20 % asked: of 128 blocks 20 are kept back",
            ),
        ];
        for (name, sets, expected) in cases {
            let found = of(name, sets);
            assert!(found.iter().any(|what| what.contains(expected)), "{sets:?}: {found:?}");
        }
    }
}
