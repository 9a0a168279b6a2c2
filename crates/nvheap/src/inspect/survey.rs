//! The blocks of a heap: which are in use, and of what.

use super::schema::{PointerAt, Pointing, Schema, Type};
use crate::error::{Error, Result};
use crate::layout::{Layout, PAGE};
use crate::lock;
use crate::memory::Memory;
use crate::pointer::{offset, tag};
use crate::space::{self, CLASSES, HEADER, Kind};
use crate::tx::{ArrayShape, CAPACITY_AT, LIVE_AT, Meta, list_at, value_at};
use std::num::NonZeroU64;

/// A heap that does not change during the examination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'v> {
    pub memory: &'v Memory,
    pub layout: &'v Layout,
    pub schema: &'v Schema,
    /// No transaction has had a greater clock.
    pub clock_limit: u64,
}

/// A block in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub at: u64,
    pub meta: Meta,
    pub bytes: u64,
    /// Of an array: its elements, once its owner has been found.
    pub len: u64,
}

/// A pointer that is not none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Where it lies.
    pub home: u64,
    pub kind: PointerAt,
    /// Where it leads, and the number of the type it names.
    pub at: u64,
    pub tag: u16,
}

/// Pages of a size of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pages {
    pub pages: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Bytes of them that objects take, headers included.
    pub used: u64,
}

/// What is wrong with a heap.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub Vec<Error>);

impl Problems {
    const MOST: usize = 100;

    pub fn add(&mut self, at: u64, why: impl Into<String>) {
        if self.0.len() < Self::MOST {
            self.0.push(Error::damaged(at, why));
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// In the order of the file.
    pub blocks: Vec<Block>,
    pub free_pages: u64,
    /// Free pages behind the last one in use.
    pub free_pages_at_end: u64,
    /// By size of block, and those of large blocks last.
    pub classes: Vec<Pages>,
}

impl Survey {
    /// Finds the blocks in use.
    pub fn new(view: View<'_>, problems: &mut Problems) -> Result<Survey> {
        let (memory, layout) = (view.memory, view.layout);
        let pages = (memory.bytes() - layout.data()) / PAGE;
        let (mut survey, mut page) =
            (Survey { classes: vec![Pages::default(); CLASSES + 1], ..Survey::default() }, 0);
        while page < pages {
            let start = layout.bytes(page);
            match space::kind(memory, layout, page)? {
                Kind::Free => {
                    survey.free_pages += 1;
                    survey.free_pages_at_end += 1;
                    page += 1;
                    continue;
                }
                Kind::Small(class) => {
                    let size = space::block_bytes(class);
                    survey.classes[class].pages += 1;
                    for block in 0..PAGE / size {
                        survey.block(view, class, start + block * size, size, problems)?;
                    }
                }
                Kind::Large(count) if count <= pages - page => {
                    survey.classes[CLASSES].pages += count;
                    if !survey.block(view, CLASSES, start, count * PAGE, problems)? {
                        problems.add(start, "the pages of a large block hold none");
                    }
                    page += count - 1;
                }
                kind => problems.add(layout.page_table() + page * 8, format!("{kind:?} in the page table")),
            }
            survey.free_pages_at_end = 0;
            page += 1;
        }
        Ok(survey)
    }

    /// Notes a block if it is in use; false if it is not.
    fn block(
        &mut self,
        view: View<'_>,
        class: usize,
        at: u64,
        bytes: u64,
        problems: &mut Problems,
    ) -> Result<bool> {
        let meta = Meta(view.memory.load_words(at + 8, 1)?[0]);
        view.lock(at, problems)?;
        if meta.tag() == 0 {
            if meta.0 != 0 {
                problems.add(at, "a free block has references");
            }
            return Ok(false);
        }
        let needed = match view.schema.get(meta.tag()) {
            None => {
                problems.add(at, format!("no type has number {}", meta.tag()));
                return Ok(true);
            }
            Some(entry) if entry.is_array => view.array(at, entry)?.map_or(u64::MAX, |shape| shape.bytes()),
            Some(entry) => HEADER + entry.bytes,
        };
        if needed > bytes {
            problems.add(at, format!("{needed} B in a block of {bytes} B"));
            return Ok(true);
        }
        let pages = &mut self.classes[class];
        (pages.blocks, pages.used) = (pages.blocks + 1, pages.used + needed);
        self.blocks.push(Block { at, meta, bytes, len: 0 });
        Ok(true)
    }

    /// The index of the block that begins there.
    pub fn find(&self, at: u64) -> Option<usize> {
        self.blocks.binary_search_by_key(&at, |block| block.at).ok()
    }

    /// Pointers of a block, none or not.
    pub fn edges(&self, view: View<'_>, index: usize) -> u64 {
        let block = &self.blocks[index];
        view.schema.get(block.meta.tag()).map_or(0, |entry| {
            let objects = if entry.is_array { block.len } else { 1 };
            objects.saturating_mul(entry.pointers.len() as u64)
        })
    }

    /// One of them.
    pub fn edge(&self, view: View<'_>, index: usize, edge: u64) -> Result<Option<Edge>> {
        let block = &self.blocks[index];
        let Some(entry) = view.schema.get(block.meta.tag()) else { return Ok(None) };
        let pointers = entry.pointers.len() as u64;
        let kind = entry.pointers[(edge % pointers) as usize];
        let value = match entry.is_array {
            false => value_at(block.at),
            true => match view.array(block.at, entry)? {
                Some(shape) => shape.element(block.at, edge / pointers).1,
                None => return Ok(None),
            },
        };
        let home = value + kind.offset;
        let word = NonZeroU64::new(view.memory.load_words(home, 1)?[0]);
        Ok(word.map(|word| Edge { home, kind, at: offset(word), tag: tag(word) }))
    }
}

impl View<'_> {
    /// The shape of the array block at `at`, if there can be such a block.
    pub fn array(&self, at: u64, entry: &Type) -> Result<Option<ArrayShape>> {
        Ok(ArrayShape::new(self.memory.load_words(at + CAPACITY_AT, 1)?[0], entry.stride()))
    }

    /// The lock at `at`, whoever holds it or held it last.
    pub fn lock(&self, at: u64, problems: &mut Problems) -> Result<()> {
        let clock = lock::load(self.memory.word(at)?).clock();
        if clock > self.clock_limit {
            problems.add(at, format!("a version {clock} that no transaction made"));
        }
        Ok(())
    }

    /// The length and the capacity that follow the pointer to an array block.
    pub fn vec(&self, home: u64) -> Result<[u64; 2]> {
        let words = self.memory.load_words(home + 8, 2)?;
        Ok([words[0], words[1]])
    }

    /// The first object of a log's list of those to be destroyed.
    pub fn list(&self, log: usize, list: u64) -> Result<u64> {
        Ok(self.memory.load_words(list_at(self.layout, log, list) + 8, 1)?[0])
    }

    /// What a block's header says behind its references.
    pub fn link(&self, at: u64) -> Result<u64> {
        Ok(self.memory.load_words(at + 16, 1)?[0])
    }

    /// Elements of an array block on its way out that are left to be destroyed.
    pub fn live(&self, at: u64) -> Result<u64> {
        Ok(self.memory.load_words(at + LIVE_AT, 1)?[0])
    }
}

impl Edge {
    pub fn is_owner(&self) -> bool {
        self.kind.pointing.is_owner()
    }

    /// Whether its object counts it.
    pub fn is_counted(&self) -> bool {
        self.kind.pointing != Pointing::Back
    }

    pub fn is_array(&self) -> bool {
        self.kind.pointing == Pointing::Array
    }
}
