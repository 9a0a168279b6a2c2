//! `design scale`: the same kind of drive with another capacity.
//!
//! 1. Shares are preserved: of spare space, of an SLC cache, of the capacity between two checkpoints. So is the die,
//!    except that some of its blocks may be left out to make the capacity exact.
//! 2. The write buffer grows with the number of dies. The memory of the map and values given in bytes grow with the
//!    capacity.
//! 3. The host's link and software and everything on the controller chip are unchanged.

use super::bricks::space::SPARE_KEYS;
use super::context::Origin;
use super::error::DesignErrors;
use super::key;
use super::{Design, PageMapped};
use crate::toml_reader::datum::Datum;
use crate::toml_reader::{FileError, SourceKind};
use nvlab_units::Geometry;
use nvlab_units::quantity::{display_bytes, display_fraction, exact_bytes};
use std::collections::BTreeMap;

/// Maximum channels of a drive that is made larger, unless it has more already: controllers of servers have 16.
const CHANNELS_MAX: u32 = 16;
/// Maximum dies of a channel, unless it has more already.
const WAYS_MAX: u32 = 16;
/// Dies may be too small for the requested capacity by this share, which is taken from the spare space.
const SHORT_MAX: f64 = 0.001;
/// Maximum number of times that a memory that is too small is doubled.
const DOUBLINGS: u32 = 8;

/// A design with another capacity.
#[derive(Clone, Debug)]
pub struct Scaled {
    /// The design, read from the text.
    pub design: Design,
    /// A design file that extends the original one.
    pub text: String,
}

/// Values by table and key, each as in a file and with a comment.
type Values = BTreeMap<String, (String, String)>;

/// `design`, which was read from the built-in name or file `reference`, with a capacity of `capacity_bytes`.
pub fn scaled(reference: &str, design: &Design, capacity_bytes: u64) -> Result<Scaled, DesignErrors> {
    let refused = |problem: String, help: &str| DesignErrors::from(FileError::new(problem).help(help));
    let Some(page) = design.ftl.page_map() else {
        let problem = format!("{} is not a page map over NAND", design.name);
        return Err(refused(problem, "change its sizes one by one, with --set or in a file that extends it"));
    };
    let geometry = &design.array.geometry;
    let spare = 1.0 - design.capacity_bytes() as f64 / geometry.bytes() as f64;
    let raw = capacity_bytes as f64 / (1.0 - spare);
    let die = geometry.bytes() as f64 / geometry.dies() as f64;
    let Some((channels, ways)) = shape(geometry, (raw / die * (1.0 - SHORT_MAX)).ceil() as u32) else {
        let most = display_bytes((die * (1.0 - spare)) as u64 * (CHANNELS_MAX * WAYS_MAX) as u64);
        return Err(refused(
            format!("{} is too large for these dies", display_bytes(capacity_bytes)),
            &format!("at most {most}"),
        ));
    };
    let mut values = changes(design);
    let larger = Larger { design, page, capacity_bytes, dies: channels * ways, spare };
    larger.array((channels, ways), raw, &mut values);
    larger.controller(&mut values);
    let file = File { reference, design, capacity_bytes, dies: channels * ways };
    let mut tries = (0..=DOUBLINGS).map(|doublings| {
        larger.memories(1 << doublings, &mut values);
        let text = file.text(&values);
        Design::parse(&file.name(), &text, &[]).map(|design| Scaled { design, text })
    });
    let first = tries.next().expect("it is tried once");
    first.or_else(|errors| tries.find_map(Result::ok).ok_or(errors))
}

/// Channels and ways of at least so many dies: as few dies as possible, of equally many those with the most channels. The
/// channels are those of the array, twice as many, and so on; half as many only if there are fewer dies than channels.
fn shape(array: &Geometry, dies: u32) -> Option<(u32, u32)> {
    let (own, dies) = (array.channels, dies.max(1));
    let halves = std::iter::successors(Some(own), |n| n.is_multiple_of(2).then_some(n / 2));
    let least = halves.take_while(|&channels| channels >= dies.min(own)).last().unwrap_or(own);
    let channels = std::iter::successors(Some(least), |n| n.checked_mul(2));
    let shapes = channels
        .take_while(|&channels| channels <= own.max(CHANNELS_MAX))
        .map(|channels| (channels, dies.div_ceil(channels)));
    let ways_max = WAYS_MAX.max(array.dies() / own);
    let fit = shapes.filter(|&(channels, ways)| channels >= least && ways <= ways_max);
    fit.min_by_key(|&(channels, ways)| (channels * ways, std::cmp::Reverse(channels)))
}

/// The user's changes to the design, without those that state its capacity.
fn changes(design: &Design) -> Values {
    let is_set = |origin: &Origin| matches!(origin, Origin::Text(at, _) if at.source.kind == SourceKind::Set);
    let changed = design.resolved.iter().filter(|value| is_set(&value.origin));
    let others = changed.filter(|value| !SPARE_KEYS.contains(&value.path.as_str()));
    others.map(|value| (value.path.clone(), (value.value.to_string(), String::new()))).collect()
}

/// The values that are made larger or smaller.
struct Larger<'a> {
    design: &'a Design,
    page: &'a PageMapped,
    capacity_bytes: u64,
    dies: u32,
    spare: f64,
}

impl Larger<'_> {
    fn ratio(&self) -> f64 {
        self.capacity_bytes as f64 / self.design.capacity_bytes() as f64
    }

    /// The value at a path, if the design has one.
    fn value(&self, path: &str) -> Option<&Datum> {
        self.design.resolved.iter().find(|value| value.path == path).map(|value| &value.value)
    }

    fn array(&self, (channels, ways): (u32, u32), raw: f64, values: &mut Values) {
        let geometry = &self.design.array.geometry;
        let was = |count: u32| format!("{count} in {}", self.design.name);
        let medium = &self.page.medium;
        let blocks_key = format!("media.{medium}.blocks");
        if let Some(&Datum::Count(blocks)) = self.value(&blocks_key) {
            let die = geometry.bytes() as f64 / geometry.dies() as f64;
            let needed = (blocks as f64 * raw / (die * (channels * ways) as f64) - 1e-6).ceil() as u64;
            if needed < blocks {
                let about =
                    format!("of {blocks}: all blocks of {} dies would exceed the capacity", channels * ways);
                values.insert(blocks_key, (needed.to_string(), about));
            }
        }
        let own_ways = geometry.dies() / geometry.channels;
        values.insert("array.channels".into(), (channels.to_string(), was(geometry.channels)));
        values.insert("array.ways".into(), (ways.to_string(), was(own_ways)));
        let spare = display_fraction((self.spare * 1e4).round() / 1e4);
        let capacity = format!("\"{}\"", exact_bytes(self.capacity_bytes));
        values.insert(
            "ftl.capacity".into(),
            (capacity, format!("a spare of {spare}, as in {}", self.design.name)),
        );
    }

    fn controller(&self, values: &mut Values) {
        let of = |was: u64| format!("{} in {}", display_bytes(was), self.design.name);
        if let Some(buffer) = &self.page.buffer {
            let own_dies = self.design.array.geometry.dies() as u64;
            let bytes = buffer.bytes as u128 * self.dies as u128 / own_dies as u128;
            let grain = if bytes >= 4 << 20 { 1 << 20 } else { self.page.unit_bytes as u64 };
            let size = (bytes as u64).next_multiple_of(grain);
            let about = format!("{}, the same per die", of(buffer.bytes));
            values.insert("ftl.buffer.size".into(), (quoted(size), about));
        }
        match self.value("ftl.map.checkpoint") {
            Some(&Datum::Size(bytes)) => {
                let size = (bytes as f64 * self.ratio()) as u64 >> 20 << 20;
                values.insert("ftl.map.checkpoint".into(), (quoted(size.max(1 << 20)), of(bytes)));
            }
            Some(share @ Datum::Share(_)) => {
                values.insert("ftl.map.checkpoint".into(), (share.to_string(), "of the capacity".into()));
            }
            _ => {}
        }
        for key in ["ftl.cache.fixed", "ftl.cache.dynamic"] {
            if let Some(&Datum::Size(bytes)) = self.value(key) {
                let size = (bytes as f64 * self.ratio()) as u64 >> 20 << 20;
                values.insert(key.into(), (quoted(size), of(bytes)));
            }
        }
    }

    /// The memories of map and buffer, `times` as large as what grows in proportion needs.
    fn memories(&self, times: u64, values: &mut Values) {
        let mut names = vec![&self.page.map.medium];
        names.extend(self.page.buffer.as_ref().map(|buffer| &buffer.medium));
        for name in names {
            let path = format!("media.{name}.size");
            let Some(&Datum::Size(bytes)) = self.value(&path) else { continue };
            // A map on demand has only a part in memory, that of the chip.
            let grown = match self.page.config(0).demand {
                Some(_) => bytes,
                None => (bytes as f64 * self.ratio()).ceil() as u64,
            };
            let size = (grown / 2 + 1).next_power_of_two() * times;
            let about = format!("{} in {}: map and buffer", display_bytes(bytes), self.design.name);
            values.insert(path, (quoted(size), about));
        }
    }
}

fn quoted(bytes: u64) -> String {
    format!("\"{}\"", exact_bytes(bytes))
}

/// Writes the design file.
struct File<'a> {
    reference: &'a str,
    design: &'a Design,
    capacity_bytes: u64,
    dies: u32,
}

impl File<'_> {
    /// `ssd-tlc-1tb`.
    fn name(&self) -> String {
        let size: String = exact_bytes(self.capacity_bytes).to_lowercase().split(' ').collect();
        format!("{}-{size}", self.design.name)
    }

    fn text(&self, values: &Values) -> String {
        let (from, capacity) = (&self.design.name, exact_bytes(self.capacity_bytes));
        let mut text = format!(
            "# {from} with {capacity}, made by `nvlab design scale`: shares and values per die are unchanged; `nvlab design show` \
             prints the rest.\nschema = 1\n\n[design]\nname    = {:?}\nabout   = \"{from} with {capacity}: {} dies\"\nextends = {:?}\n",
            self.name(),
            self.dies,
            self.extends()
        );
        let mut tables: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (path, (value, about)) in values {
            let line = format!("{} = {value}", key::leaf(path));
            let line = if about.is_empty() { line } else { format!("{line:<30} # {about}") };
            tables.entry(key::parent(path)).or_default().push(line);
        }
        for (table, lines) in tables {
            text += &format!("\n[{table}]\n{}\n", lines.join("\n"));
        }
        text
    }

    fn extends(&self) -> String {
        let is_file = self.reference.contains('/') || self.reference.ends_with(".toml");
        match std::path::absolute(self.reference) {
            Ok(path) if is_file => path.display().to_string(),
            _ => format!("builtin:{}", self.reference.trim_start_matches("builtin:")),
        }
    }
}
