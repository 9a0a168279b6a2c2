//! The write buffer: `[ftl.buffer]`, and what a power cut does to it.

use super::memories::{self, Media};
use crate::context::Context;
use crate::key::Preset::{Is, Nothing, Required};
use crate::key::{Key, key};
use crate::part::Backup;
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_units::Span;
use nvlab_units::quantity::display_bytes;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.buffer.kind",
        &["page", "zoned"],
        Shape::OneOf(&[
            ("none", "a write is acknowledged when its page is programmed"),
            ("write-back", "a write is acknowledged when it is in the buffer"),
        ]),
        Is("none"),
        "\"write-back\"",
    )
    .about("The write buffer. Without one, a write waits until its page is programmed."),
    key(
        "ftl.buffer.kind",
        &["envy"],
        Shape::OneOf(&[
            ("none", "every written page is flushed at once"),
            ("fifo", "a page is copied to the buffer at its first write; pages are flushed in that order"),
        ]),
        Is("fifo"),
        "\"fifo\"",
    )
    .about("The write buffer."),
    key(
        "ftl.buffer.kind",
        &["direct"],
        Shape::OneOf(&[
            ("none", "a write is acknowledged when its cells are programmed"),
            ("posted", "a write is acknowledged when its memory controller has received it"),
        ]),
        Is("none"),
        "\"posted\"",
    )
    .about("The write buffer of each memory controller. `power.on_cut` sets whether it survives a power cut."),
    key("ftl.buffer.in", &["write-back", "fifo"], Shape::Medium, Required, "\"dram\"").about(
        "The memory that holds the buffer. If it has a battery or capacitor (`backup`), the buffer \
         survives a power cut and a flush has nothing to do.",
    ),
    key(
        "ftl.buffer.size",
        &["write-back"],
        Shape::Size { min: 1, max: u64::MAX },
        Nothing(
            "two pages of the array for every die and stream (page) or for every die, and one for every active zone (zoned): \
             one fills while the other is programmed",
        ),
        "\"32 MiB\"",
    )
    .about(
        "Size of the buffer: at least one page of the array for every die and stream (page), or one for every active zone \
         and one more (zoned).",
    ),
    key(
        "ftl.buffer.size",
        &["fifo", "posted"],
        Shape::Size { min: 1, max: u64::MAX },
        Required,
        "\"32 MiB\"",
    )
    .about("Size of the buffer: at least one page (fifo); per memory controller, at least `array.split` (posted)."),
    key("ftl.buffer.flush_at", &["fifo"], Shape::Share { max: 1.0 }, Is("75 %"), "\"62.5 %\"").about(
        "Fill level of the buffer at which flushing begins. A high level lets more overwrites of a page hit the buffer \
         before it is flushed, and leaves less room for bursts.",
    ),
    key(
        "ftl.buffer.absorb",
        &["write-back"],
        Shape::Flag,
        Nothing("true if the buffer survives a power cut (power.on_cut), false otherwise"),
        "false",
    )
    .about(
        "Whether a write to a unit that is still in the buffer, in a page whose program has not begun, replaces it there, so \
         that both take one program. Drives whose buffer is protected by a battery or capacitors do so; a buffer that is lost in \
         a power cut must be programmed at every flush, and does not.",
    ),
    key(
        "power.on_cut",
        &[],
        Shape::OneOf(&[
            ("keep-buffer", "the write buffer survives; its memory must have a battery or capacitor"),
            ("lose-buffer", "unflushed data is lost, even if the memory could keep it"),
        ]),
        Nothing("keep-buffer if its memory has a battery or capacitor, lose-buffer otherwise"),
        "\"lose-buffer\"",
    )
    .about("What a power cut does to the write buffer."),
];

/// Room for posted writes in every memory controller: its bytes, and whether it survives a power cut. `Some(None)`:
/// none.
pub fn posted(context: &mut Context, ftl: &str) -> Option<Option<(u64, bool)>> {
    let meanings = [("none", false), ("posted", true)];
    let (kind, exists) = context.named_choice("ftl.buffer.kind", ftl, &meanings)?;
    let keep = kept(context);
    if !exists {
        return Some(None);
    }
    if !context.has("power.on_cut") {
        context.derive("power.on_cut", Datum::Text("lose-buffer".into()), "the default");
    }
    Some(Some((context.size("ftl.buffer.size", kind)?, keep.unwrap_or(false))))
}

/// Whether the design states that a power cut leaves the buffer intact.
fn kept(context: &mut Context) -> Option<bool> {
    context.choice("power.on_cut", "", &[("keep-buffer", true), ("lose-buffer", false)])
}

/// The write buffer of a page map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// The memory that holds it, by name.
    pub medium: String,
    /// Its bytes; `None`: they follow from the array.
    pub bytes: Option<u64>,
    /// It survives a power cut.
    pub protected: bool,
    /// Overwrites of units still in the buffer are not programmed separately.
    pub absorb: bool,
    /// Time to store one unit in it.
    pub store: Span,
}

/// Reads the buffer of a page map with units of this many bytes. `Some(None)`: there is no buffer.
pub fn write_back(
    context: &mut Context,
    media: &Media,
    ftl: &str,
    unit: Option<u64>,
) -> Option<Option<WriteBack>> {
    let meanings = [("none", false), ("write-back", true)];
    let (kind, exists) = context.named_choice("ftl.buffer.kind", ftl, &meanings)?;
    let kept = kept(context);
    if !exists {
        return Some(None);
    }
    let ram = memories::ram(context, media, "ftl.buffer.in", kind);
    let is_said = context.has("ftl.buffer.size");
    let bytes = context.size("ftl.buffer.size", kind);
    let (medium, ram) = ram?;
    let backed = ram.backup != Backup::None;
    let protected = match kept {
        Some(true) if !backed => {
            let problem = format!("`power.on_cut`: `{medium}` loses its contents when power fails");
            let help =
                format!("media.{medium}.backup = \"battery\" or \"capacitor\", or on_cut = \"lose-buffer\"");
            context.wrong("power.on_cut", problem, help);
            return None;
        }
        Some(kept) => kept,
        None => {
            let text = if backed { "keep-buffer" } else { "lose-buffer" };
            context.derive("power.on_cut", Datum::Text(text.into()), "the backup of the buffer's memory");
            backed
        }
    };
    if ftl == "zoned" {
        let absorb = not_absorbed(context, kind)?;
        return Some(Some(WriteBack { medium, bytes, protected, absorb, store: ram.cells.store(unit?) }));
    }
    let absorb = match context.flag("ftl.buffer.absorb", kind) {
        Some(true) if !protected => {
            let problem = "`ftl.buffer.absorb`: the buffer is lost when power fails".to_string();
            let help = format!(
                "absorb = false, or media.{medium}.backup = \"capacitor\" with on_cut = \"keep-buffer\""
            );
            context.wrong("ftl.buffer.absorb", problem, help);
            return None;
        }
        Some(absorb) => absorb,
        None => {
            context.derive(
                "ftl.buffer.absorb",
                Datum::Flag(protected),
                "whether the buffer survives a power cut",
            );
            protected
        }
    };
    let store = ram.cells.store(unit?);
    if is_said {
        bytes?;
    }
    Some(Some(WriteBack { medium, bytes, protected, absorb, store }))
}

/// What is written to a zone is not overwritten.
fn not_absorbed(context: &mut Context, kind: &str) -> Option<bool> {
    if context.flag("ftl.buffer.absorb", kind) != Some(true) {
        return Some(false);
    }
    let problem = "`ftl.buffer.absorb`: what is written to a zone is not overwritten";
    context.wrong("ftl.buffer.absorb", problem, "leave it out");
    None
}

/// The buffer of eNVy as written.
pub struct Fifo {
    memory: Option<String>,
    bytes: u64,
    flush_at: f64,
}

/// Reads the buffer of eNVy.
pub fn fifo(context: &mut Context, ftl: &str) -> Option<Fifo> {
    let (kind, true) = context.named_choice("ftl.buffer.kind", ftl, &[("none", false), ("fifo", true)])?
    else {
        return Some(Fifo { memory: None, bytes: 0, flush_at: 0.0 });
    };
    let memory = context.text("ftl.buffer.in", kind);
    let bytes = context.size("ftl.buffer.size", kind);
    let flush_at = context.share("ftl.buffer.flush_at", kind);
    Some(Fifo { memory: Some(memory?), bytes: bytes?, flush_at: flush_at? })
}

/// Pages of the buffer, and the number of pages above which flushing begins: always at least one fewer, or it never
/// would.
pub fn in_pages(context: &mut Context, buffer: Fifo, memory: &str, page_bytes: u32) -> Option<[u32; 2]> {
    let Some(own) = buffer.memory else { return Some([0, 0]) };
    if own != memory {
        let problem = format!("`ftl.buffer.in`: `{own}` is not the memory of the page table");
        context.wrong("ftl.buffer.in", problem, format!("in = \"{memory}\", as `ftl.map.in`"));
        return None;
    }
    let pages = buffer.bytes / page_bytes as u64;
    match u32::try_from(pages) {
        Ok(pages) if pages > 0 => {
            let flush_at = (pages as f64 * buffer.flush_at + 1e-6).floor() as u32;
            Some([pages, flush_at.min(pages - 1)])
        }
        _ => {
            let problem = format!("`ftl.buffer.size` is out of range: {}", display_bytes(buffer.bytes));
            let help =
                format!("at least one page of {}; or kind = \"none\"", display_bytes(page_bytes as u64));
            context.wrong("ftl.buffer.size", problem, help);
            None
        }
    }
}
