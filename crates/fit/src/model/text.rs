//! A design file of a drive.

use super::forms::DEVICE_S;
use super::{Model, Values};
use crate::figures::{Class, Link};
use crate::priors::Knob;
use nvlab_units::Span;
use nvlab_units::quantity::{display_fraction, exact_bytes, exact_span};
use std::fmt::Write as _;

/// How much of a drive its design has. All of it, or a share of its dies or of the pages of a block that measures the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    /// Dies of so many are left.
    pub dies: u32,
    /// Pages of a block are divided by this.
    pub pages: u32,
    /// The cache in SLC mode is left out, as one that is full.
    pub without_cache: bool,
}

/// The share of a cache in SLC mode that it has also on a full drive, and the most of all blocks that this takes: 6 of 42 GB on
/// the 970 EVO Plus, and what spare space leaves.
const FIXED: f64 = 0.15;
const FIXED_MOST: f64 = 0.025;

/// The comment behind a key, by the number that it is of.
pub type Comment<'a> = &'a dyn Fn(Knob) -> String;

/// The design of a drive: all of it.
pub fn whole(model: &Model, values: &Values, size: usize, comment: Comment<'_>) -> String {
    let part = Part { dies: values.dies, pages: 1, without_cache: false };
    of_part(model, values, size, part, comment)
}

/// The same with a cache in SLC mode that takes no more.
pub(crate) fn without_cache(model: &Model, values: &Values, size: usize) -> String {
    let part = Part { dies: values.dies, pages: 1, without_cache: true };
    of_part(model, values, size, part, &|_| String::new())
}

fn span(seconds: f64) -> String {
    format!("\"{}\"", exact_span(Span::from_seconds(three(seconds))))
}

/// Four digits are more than any number here is known to.
fn three(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn rate(bytes_per_s: f64) -> String {
    format!("\"{}/s\"", exact_bytes(three(bytes_per_s).round() as u64))
}

/// Pages of a block of a part of a drive.
fn pages(model: &Model, values: &Values, part: Part) -> u32 {
    (model.pages.count / part.pages / values.bits).max(1) * values.bits
}

/// The design of a part of a drive.
pub(super) fn of_part(
    model: &Model,
    values: &Values,
    size: usize,
    part: Part,
    comment: Comment<'_>,
) -> String {
    let pages = pages(model, values, part);
    let blocks = model.blocks(values).max(1);
    let pages_share = f64::from(pages) / f64::from(model.pages.count);
    let file = File {
        model,
        values,
        blocks,
        pages,
        pages_share,
        dies_share: f64::from(part.dies) / f64::from(values.dies),
        has_slc: model.drive.class == Class::Client && !part.without_cache,
        comment,
        text: String::from("schema = 1\n"),
    };
    file.written(size, part)
}

/// A design file that is being written.
struct File<'a> {
    model: &'a Model,
    values: &'a Values,
    blocks: u32,
    pages: u32,
    pages_share: f64,
    dies_share: f64,
    has_slc: bool,
    comment: Comment<'a>,
    text: String,
}

impl File<'_> {
    fn table(&mut self, name: &str) {
        let _ = writeln!(self.text, "\n[{name}]");
    }

    fn key(&mut self, key: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{key:15} = {value}");
    }

    fn named(&mut self, key: &str, name: &str) {
        self.key(key, format_args!("\"{name}\""));
    }

    /// A key that a number was fitted for.
    fn fitted(&mut self, key: &str, value: impl std::fmt::Display, knob: Knob) {
        let has = self.model.priors.of(knob).is_some();
        match (self.comment)(knob) {
            about if has && !about.is_empty() => {
                let left = format!("{key:15} = {value}");
                let _ = writeln!(self.text, "{left:34} # {about}");
            }
            _ => self.key(key, value),
        }
    }

    fn written(mut self, size: usize, part: Part) -> String {
        let (values, drive) = (self.values, &self.model.drive);
        let name = match drive.capacities.len() {
            1 => drive.name.clone(),
            _ => format!(
                "{}-{}",
                drive.name,
                exact_bytes(drive.capacities[size]).to_lowercase().replace(' ', "")
            ),
        };
        self.table("design");
        self.named("name", &name);
        self.named("about", &format!("{}, fitted to stated figures: {} dies", name, part.dies));
        self.media();
        let channels = (1..=values.channels).rev().find(|n| part.dies.is_multiple_of(*n)).unwrap_or(1);
        self.table("array");
        self.fitted("channels", channels, Knob::Channels);
        self.fitted("ways", part.dies / channels, Knob::Extra);
        if part.dies == values.dies && values.programming() < f64::from(values.dies) {
            self.fitted("programs", values.programming(), Knob::Programs);
        }
        self.controller();
        self.path();
        self.text
    }

    fn planes(&mut self) {
        let senses = if self.values.of(Knob::Independent) > 0.5 { "independent" } else { "multi" };
        self.fitted("planes", self.values.of(Knob::Planes), Knob::Planes);
        self.fitted("plane_reads", format_args!("\"{senses}\""), Knob::Independent);
        self.fitted("transfer", rate(self.values.of(Knob::Transfer)), Knob::Transfer);
    }

    fn media(&mut self) {
        let (values, model) = (self.values, self.model);
        self.table("media.flash");
        self.named("part", &model.priors.part);
        self.fitted("blocks", self.blocks, Knob::Die);
        if self.pages != model.pages.count {
            self.key("pages", self.pages);
        }
        self.planes();
        let erase = values.of(Knob::Erase) * self.pages_share;
        self.fitted("read", span(values.of(Knob::Read)), Knob::Read);
        self.fitted("program", span(values.of(Knob::Program)), Knob::Program);
        self.fitted("erase", span(erase), Knob::Erase);
        self.fitted("endurance", values.of(Knob::Cycles).round(), Knob::Cycles);
        if self.has_slc {
            self.table("media.slc");
            self.named("part", &model.priors.slc);
            self.key("blocks", self.blocks);
            self.key("pages", self.pages / values.bits);
            self.planes();
            self.fitted("program", span(values.of(Knob::SlcProgram)), Knob::SlcProgram);
            self.key("erase", span(erase));
        }
        self.table("media.dram");
        self.named("part", "dram");
        if model.drive.class == Class::DataCentre {
            self.named("backup", "capacitor");
            self.named("hold", "500 ms");
        }
    }

    fn controller(&mut self) {
        let values = self.values;
        let is_part = self.dies_share < 1.0 || self.pages_share < 1.0;
        let share = self.dies_share * self.pages_share;
        let capacity = match is_part {
            true => (values.capacity_bytes as f64 * share) as u64 / 4096 * 4096,
            false => values.capacity_bytes,
        };
        self.table("ftl");
        self.named("kind", "page");
        self.named("medium", "flash");
        self.named("unit", "4 KiB");
        self.fitted("capacity", format_args!("\"{}\"", exact_bytes(capacity)), Knob::Reserve);
        self.key("trim", true);
        self.named("streams", "host-and-relocated");
        self.key("free_blocks_min", 3);
        self.fitted("overhead", span(values.of(Knob::Firmware)), Knob::Firmware);
        self.table("ftl.map");
        self.named("in", "dram");
        self.buffer();
        self.table("ftl.clean");
        self.named("kind", "greedy");
        self.table("ftl.wear");
        self.named("kind", "static");
        self.key("threshold", 50);
        if self.has_slc {
            let share = |share: f64| format!("\"{}\"", display_fraction((share * 1e4).round() / 1e4));
            self.table("ftl.cache");
            self.named("kind", "pslc");
            self.named("in", "slc");
            self.key("size_min", share((values.of(Knob::Cache) * FIXED).min(FIXED_MOST)));
            self.fitted("size_max", share(values.of(Knob::Cache)), Knob::Cache);
            self.named("fold_after", "100 ms");
            self.named("when_full", "direct");
        }
    }

    fn buffer(&mut self) {
        let values = self.values;
        // A page of every die for each stream, at least, and some more: with less the dies wait for one another.
        let page = values.of(Knob::Planes) * f64::from(values.bits) * self.model.pages.bytes as f64;
        let least = 2.5 * page * f64::from(values.dies) * self.dies_share;
        let bytes = (values.of(Knob::Buffer) * self.dies_share).max(least) as u64;
        let bytes = exact_bytes(bytes.next_multiple_of(1 << 20));
        self.table("ftl.buffer");
        self.named("kind", "write-back");
        self.named("in", "dram");
        self.fitted("size", format_args!("\"{bytes}\""), Knob::Buffer);
    }

    fn path(&mut self) {
        let (kind, queue) = match self.model.drive.link {
            Link::Sata => ("sata", 32),
            Link::Pcie { .. } => ("nvme", 1024),
        };
        let values = self.values;
        self.table("path");
        self.named("kind", kind);
        self.fitted("rate", rate(values.link_rate() * self.dies_share), Knob::Link);
        let to_drive = rate(values.link_to_drive() * self.dies_share);
        self.fitted("rate_write", to_drive, Knob::LinkWrite);
        self.key("queue", queue);
        self.fitted("command", span(values.of(Knob::Command) / self.dies_share), Knob::Command);
        let command = span(values.write_command() / self.dies_share);
        self.fitted("command_write", command, Knob::CommandWrite);
        self.fitted("overhead.host", span(values.of(Knob::Host)), Knob::Host);
        self.key("overhead.device", span(DEVICE_S));
    }
}
