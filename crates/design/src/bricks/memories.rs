//! Media by name: which hold the data and the map, and the requirements on them.

use crate::context::Context;
use crate::key::Preset::Required;
use crate::key::{Key, key};
use crate::part::{Disk, Flash, Part, Pcm, Ram};
use crate::toml_reader::datum::{Datum, Shape};
use crate::{HostPath, Medium, PathKind};
use std::collections::BTreeMap;

/// The media of a design, by name.
pub type Media = BTreeMap<String, Medium>;

/// Every kind of controller.
pub const EVERY_KIND: &[&str] = &["page", "block", "bast", "fast", "hftl", "zoned", "envy"];
/// The kinds that are block devices over NAND.
pub const BLOCK_DEVICES: &[&str] = &["page", "block", "bast", "fast", "hftl", "zoned"];

/// The keys.
pub const KEYS: &[Key] = &[
    key("ftl.medium", &[], Shape::Medium, Required, "\"tlc\"")
        .about("Medium of the data: a name under [media]."),
    key("ftl.map.in", &[], Shape::Medium, Required, "\"dram\"")
        .about("Memory of the map: a name under [media]. The map must fit."),
];

/// Minimum size of a memory whose size is derived from its contents.
const SIZE_MIN: u64 = 64 << 10;

/// True if the design does not state the size of the memory at `media.NAME` and it is derived from its contents: the
/// map or the write buffer of a page map.
pub fn is_sized_by_use(context: &Context, table: &str) -> bool {
    let is = |path: &str, wanted: &str| {
        context.top.leaves.get(path).is_some_and(|leaf| leaf.value.text() == Some(wanted))
    };
    let name = table.strip_prefix("media.").unwrap_or(table);
    (is("ftl.kind", "page") || is("ftl.kind", "zoned"))
        && (is("ftl.map.in", name) || is("ftl.buffer.in", name))
}

/// Sets memories without a stated size to the next power of two above the bytes the controller stores in them: they
/// follow the capacity.
pub fn size_by_use(context: &mut Context, media: &mut Media, takes: impl Fn(&str) -> u64) {
    for (name, medium) in media {
        if let Part::Ram(ram) = &mut medium.part
            && ram.cells.size_bytes == 0
        {
            ram.cells.size_bytes = takes(name).max(SIZE_MIN).next_power_of_two();
            let size = Datum::Size(ram.cells.size_bytes);
            context.derive(&format!("media.{name}.size"), size, "its contents, rounded up to a power of two");
        }
    }
}

/// A memory that a controller uses, and the bytes it takes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Its name.
    pub medium: String,
    /// Bytes.
    pub bytes: u64,
}

/// The medium that a key names, as `pick` accepts it; otherwise an error, with `help` for the requirements.
fn named<T: Clone>(
    context: &mut Context,
    media: &Media,
    (path, kind): (&str, &str),
    pick: fn(&Part) -> Option<&T>,
    help: &str,
) -> Option<(String, T)> {
    let name = context.text(path, kind)?;
    let Some(medium) = media.get(&name) else {
        let names = context.media_names();
        // A medium that exists but does not fit has been reported already.
        if !names.contains(&name) {
            let help = match names.is_empty() {
                true => "this design has no [media.NAME]".to_string(),
                false => {
                    format!("media of this design: {}", names.into_iter().collect::<Vec<_>>().join(", "))
                }
            };
            context.wrong(path, format!("`{path}`: there is no medium `{name}`"), help);
        }
        return None;
    };
    match pick(&medium.part) {
        Some(part) => Some((name, part.clone())),
        None => {
            let problem = format!("`{path}`: `{name}` is of kind \"{}\"", medium.part.kind());
            context.wrong(path, problem, help);
            None
        }
    }
}

/// DRAM or SRAM.
pub fn ram(context: &mut Context, media: &Media, path: &str, kind: &str) -> Option<(String, Ram)> {
    named(context, media, (path, kind), Part::ram, "it must be a medium of kind \"ram\"")
}

/// A disk.
pub fn disk(context: &mut Context, media: &Media, path: &str, kind: &str) -> Option<(String, Disk)> {
    named(context, media, (path, kind), Part::disk, "it must be a medium of kind \"disk\"")
}

/// The memory or disk that holds the data and is overwritten in place.
pub fn in_place(context: &mut Context, media: &Media, kind: &str) -> Option<(String, Part)> {
    let help = "it must be a medium of kind \"pcm\" or \"disk\"";
    named(context, media, ("ftl.medium", kind), Part::in_place, help)
}

/// NAND flash.
pub fn nand(context: &mut Context, media: &Media, path: &str, kind: &str) -> Option<(String, Flash)> {
    named(context, media, (path, kind), Part::nand, "it must be a medium of kind \"nand\"")
}

/// The NAND that holds the data of `who`.
pub fn data_nand(context: &mut Context, media: &Media, kind: &str, who: &str) -> Option<(String, Flash)> {
    let help = format!("{who} needs a medium of kind \"nand\"");
    named(context, media, ("ftl.medium", kind), Part::nand, &help)
}

/// The NOR flash that holds the data of `who`.
pub fn data_nor(context: &mut Context, media: &Media, kind: &str, who: &str) -> Option<(String, Flash)> {
    named(context, media, ("ftl.medium", kind), Part::nor, &format!("{who} needs a medium of kind \"nor\""))
}

/// Bytes of an entry that is changed in place.
const ENTRY_BYTES: u32 = 8;

/// A non-volatile memory changed in place that writes entries of 8 B atomically.
pub fn pram(context: &mut Context, media: &Media, path: &str, kind: &str) -> Option<(String, Pcm)> {
    let help = "it must be a medium of kind \"pcm\", as part = \"pram-kps1215ezm\"";
    let (name, pcm) = named(context, media, (path, kind), Part::pcm, help)?;
    if pcm.atomic_bytes >= ENTRY_BYTES {
        return Some((name, pcm));
    }
    let problem = format!(
        "`{path}`: a power cut can tear map entries in `{name}`: its writes are atomic only up to {} B",
        pcm.atomic_bytes
    );
    let help = format!("media.{name}.atomic = \"{ENTRY_BYTES} B\", if the part guarantees it");
    context.wrong(path, problem, help);
    None
}

/// A block device cannot be on a memory bus.
pub fn not_words(context: &mut Context, path: Option<&HostPath>, who: &str) -> Option<()> {
    const WORDS: [PathKind; 3] = [PathKind::MemoryBus, PathKind::Ddr, PathKind::CxlMem];
    if path.is_none_or(|path| !WORDS.contains(&path.kind)) {
        return Some(());
    }
    let help = "kind = \"direct\", \"nvme\", \"sata\" or \"bus\"";
    context.wrong("path.kind", format!("`path.kind`: {who} serves blocks, not words"), help);
    None
}

/// A memory is too small: points at its size if the design sets it, else at the key that uses it.
pub fn too_small(
    context: &mut Context,
    medium: &str,
    user: &str,
    problem: String,
    needed: u64,
) -> Option<()> {
    let size = format!("media.{medium}.size");
    let needed = match needed {
        0..0x10_0000 => format!("{} KiB", needed.div_ceil(1 << 10)),
        _ => format!("{} MiB", needed.div_ceil(1 << 20)),
    };
    let at = if context.top.leaves.contains_key(&size) { size.as_str() } else { user };
    context.wrong(at, problem, format!("give `{size}` at least {needed}"));
    None
}
