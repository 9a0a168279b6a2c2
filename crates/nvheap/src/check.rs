//! Whether a heap is consistent: every block, every pointer and every count.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::persist::{PointerAt, Pointing, TypeEntry};
use crate::pointer::{offset, tag};
use crate::space::{self, HEADER, Kind};
use crate::tx::{ArrayShape, CAPACITY_AT, LIVE_AT, Meta, list_at, value_at};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// Objects and array blocks in use.
    pub blocks: u64,
    /// Bytes of their blocks.
    pub bytes: u64,
    /// Pages of 64 KiB without blocks.
    pub free_pages: u64,
    /// Blocks that nothing reaches from the root: objects that point to each other in a circle.
    pub unreachable: u64,
    /// What is wrong, at most 100 of them. Empty for a heap that only this library has written to.
    pub problems: Vec<Error>,
}

/// A block in use, and the pointers found to it.
struct Block {
    meta: Meta,
    strong: u64,
    weak: u64,
    is_seen: bool,
}

struct Checker<'c> {
    core: &'c Core,
    blocks: BTreeMap<u64, Block>,
    found: Check,
    /// Blocks whose pointers are to be followed.
    next: Vec<u64>,
}

/// A heap that no transaction is changing.
pub(crate) fn check(core: &Core, root: u64) -> Result<Check> {
    let mut checker = Checker { core, blocks: BTreeMap::new(), found: Check::default(), next: Vec::new() };
    checker.pages()?;
    checker.point(root, None, Pointing::Strong);
    checker.follow()?;
    let listed = checker.lists()?;
    checker.follow()?;
    checker.unreachable()?;
    checker.counts(&listed);
    Ok(checker.found)
}

impl Checker<'_> {
    fn wrong(&mut self, at: u64, why: String) {
        if self.found.problems.len() < 100 {
            self.found.problems.push(Error::damaged(at, why));
        }
    }

    fn entry(&self, number: u16) -> Option<&TypeEntry> {
        self.core.types.get(usize::from(number).checked_sub(1)?)
    }

    /// Finds the blocks in use.
    fn pages(&mut self) -> Result<()> {
        let (memory, layout) = (&self.core.memory, &self.core.layout);
        let pages = (memory.bytes() - layout.data()) / crate::layout::PAGE;
        let mut page = 0;
        while page < pages {
            let start = layout.bytes(page);
            match space::kind(memory, layout, page)? {
                Kind::Free => self.found.free_pages += 1,
                Kind::Small(class) => {
                    let size = space::block_bytes(class);
                    for block in 0..crate::layout::PAGE / size {
                        self.block(start + block * size, size)?;
                    }
                }
                Kind::Large(count) if page + count <= pages => {
                    self.block(start, count * crate::layout::PAGE)?;
                    if !self.blocks.contains_key(&start) {
                        self.wrong(start, "the pages of a large block hold none".into());
                    }
                    page += count - 1;
                }
                kind => self.wrong(layout.page_table() + page * 8, format!("{kind:?} in the page table")),
            }
            page += 1;
        }
        Ok(())
    }

    fn block(&mut self, at: u64, size: u64) -> Result<()> {
        let meta = Meta(self.core.memory.load_words(at + 8, 1)?[0]);
        if meta.tag() == 0 {
            return Ok(());
        }
        let needed = match self.entry(meta.tag()) {
            None => {
                self.wrong(at, format!("no type has number {}", meta.tag()));
                return Ok(());
            }
            Some(entry) if entry.is_array => {
                let capacity = self.core.memory.load_words(at + CAPACITY_AT, 1)?[0];
                let stride = (entry.bytes as u64).next_multiple_of(8);
                ArrayShape::new(capacity, stride).map_or(u64::MAX, |shape| shape.bytes())
            }
            Some(entry) => HEADER + entry.bytes as u64,
        };
        if needed > size {
            self.wrong(at, format!("{needed} B in a block of {size} B"));
            return Ok(());
        }
        (self.found.blocks, self.found.bytes) = (self.found.blocks + 1, self.found.bytes + size);
        self.blocks.insert(at, Block { meta, strong: 0, weak: 0, is_seen: false });
        Ok(())
    }

    /// A pointer to a block, which must be of the type.
    fn point(&mut self, at: u64, number: Option<u16>, pointing: Pointing) {
        match self.blocks.get_mut(&at) {
            Some(block) if number.is_none_or(|number| number == block.meta.tag()) => match pointing {
                Pointing::Weak => block.weak += 1,
                Pointing::Strong | Pointing::Array => {
                    block.strong += 1;
                    if !std::mem::replace(&mut block.is_seen, true) {
                        self.next.push(at);
                    }
                }
            },
            _ => self.wrong(at, "a pointer leads to no block of its type".into()),
        }
    }

    /// Follows the pointers of blocks, and of those they lead to.
    fn follow(&mut self) -> Result<()> {
        while let Some(at) = self.next.pop() {
            let meta = self.blocks[&at].meta;
            let Some(entry) = self.entry(meta.tag()).cloned() else { continue };
            if !entry.is_array {
                self.value(value_at(at), &entry)?;
            } else if meta.strong() == 0 {
                // On its way out: so many elements are left.
                let live = self.core.memory.load_words(at + LIVE_AT, 1)?[0];
                self.elements(at, live, &entry)?;
            }
        }
        Ok(())
    }

    fn elements(&mut self, at: u64, len: u64, entry: &TypeEntry) -> Result<()> {
        let capacity = self.core.memory.load_words(at + CAPACITY_AT, 1)?[0];
        let stride = (entry.bytes as u64).next_multiple_of(8);
        match ArrayShape::new(capacity, stride).filter(|_| len <= capacity) {
            Some(_) if entry.pointers.is_empty() && !entry.needs_drop => {}
            Some(shape) => {
                for index in 0..len {
                    self.value(shape.element(at, index).1, entry)?;
                }
            }
            None => self.wrong(at, format!("{len} elements in an array of {capacity}")),
        }
        Ok(())
    }

    fn value(&mut self, home: u64, entry: &TypeEntry) -> Result<()> {
        for pointer in &entry.pointers {
            let words = match pointer.pointing {
                Pointing::Array => self.core.memory.load_words(home + pointer.offset as u64, 3)?,
                _ => self.core.memory.load_words(home + pointer.offset as u64, 1)?,
            };
            let Some(word) = NonZeroU64::new(words[0]) else { continue };
            let (at, number) = (offset(word), pointer.index as u16 + 1);
            // A place may hold pointers to one of several types.
            let is_other = |other: &PointerAt| {
                other.offset == pointer.offset
                    && other.index as u16 + 1 == tag(word)
                    && other.index != pointer.index
            };
            if entry.pointers.iter().any(is_other) {
                continue;
            }
            if tag(word) != number {
                self.wrong(home, format!("a pointer to type {} where {number} belongs", tag(word)));
                continue;
            }
            let is_new =
                self.blocks.get(&at).is_some_and(|block| !block.is_seen && block.meta.tag() == number);
            self.point(at, Some(number), pointer.pointing);
            if pointer.pointing == Pointing::Array && is_new {
                if self.core.memory.load_words(at + CAPACITY_AT, 1)?[0] != words[2] {
                    self.wrong(home, "an array and its block disagree about its capacity".into());
                    continue;
                }
                let target = self.core.types[pointer.index].clone();
                self.elements(at, words[1], &target)?;
            }
        }
        Ok(())
    }

    /// The objects that wait for their destruction: none points to them, and what they point to is still theirs.
    fn lists(&mut self) -> Result<HashMap<u64, u64>> {
        let mut listed = HashMap::new();
        for (log, list) in (0..self.core.slots.len()).flat_map(|log| [(log, 0), (log, 1)]) {
            let mut at = self.core.memory.load_words(list_at(&self.core.layout, log, list) + 8, 1)?[0];
            while at != 0 {
                if !self.blocks.contains_key(&at) || *listed.entry(at).or_insert(0) > 0 {
                    self.wrong(at, "a list of objects to be destroyed leads here".into());
                    break;
                }
                listed.insert(at, 1);
                self.blocks.get_mut(&at).expect("checked").is_seen = true;
                self.next.push(at);
                at = self.core.memory.load_words(at + 16, 1)?[0];
            }
        }
        Ok(listed)
    }

    /// What is left points to what is left: its references count.
    fn unreachable(&mut self) -> Result<()> {
        let mut left: Vec<u64> = self
            .blocks
            .iter()
            .filter(|(_, block)| !block.is_seen && block.meta.strong() > 0)
            .map(|(&at, _)| at)
            .collect();
        self.found.unreachable = left.len() as u64;
        // Arrays are followed from what owns them, which knows their lengths.
        left.sort_by_key(|at| self.entry(self.blocks[at].meta.tag()).is_some_and(|entry| entry.is_array));
        for at in left {
            if !std::mem::replace(&mut self.blocks.get_mut(&at).expect("found above").is_seen, true) {
                self.next.push(at);
                self.follow()?;
            }
        }
        Ok(())
    }

    fn counts(&mut self, listed: &HashMap<u64, u64>) {
        let mut wrong = Vec::new();
        for (&at, block) in &self.blocks {
            let (strong, weak) = (block.meta.strong(), block.meta.weak());
            if (strong, weak) != (block.strong, block.weak) {
                wrong.push((
                    at,
                    format!(
                        "{strong} and {weak} weak references counted, {} and {} found",
                        block.strong, block.weak
                    ),
                ));
            } else if strong == 0 && weak == 0 && !listed.contains_key(&at) {
                wrong.push((at, "a block that nothing refers to".into()));
            }
        }
        wrong.into_iter().for_each(|(at, why)| self.wrong(at, why));
    }
}
