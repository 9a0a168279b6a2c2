//! Shrinks the file of a heap to its contents: the blocks are copied, one after the other, into a new file in the
//! same folder, which replaces it.
//!
//! The new file is checked before it replaces the old one ([`crate::replace`]).
//!
//! Rejected: moving blocks within the file by transactions. A block that moves changes every pointer to it; the
//! pointers to one object may be more than a log holds.

use super::Inspection;
use super::survey::{Survey, View};
use crate::core::write_header;
use crate::domain::Persistence;
use crate::error::{Error, Result};
use crate::layout::{Header, Layout, PAGE, TYPES};
use crate::locked::open_locked;
use crate::memory::Memory;
use crate::place::Place;
use crate::pointer::pack;
use crate::renewal::Renewal;
use crate::replace::Replacement;
use crate::space::{self, CLASSES, Kind, block_bytes};
use crate::sums::Sums;
use crate::tx::{Meta, list_at, value_at};
use nvlab_os::file;
use std::fs::File;
use std::path::Path;

/// The treatment of unreachable objects: cycles, objects that the program has forgotten, and what only these point
/// to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// They stay.
    Keep,
    /// They are left out. The references from them are subtracted from the counts, as are references that the program has
    /// forgotten. No `Drop` of the program runs.
    Drop,
}

/// The result of compacting a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Bytes of the file before.
    pub bytes_before: u64,
    /// Bytes of the file now.
    pub bytes: u64,
    /// Objects and array blocks.
    pub blocks: u64,
    /// Objects and array blocks left out.
    pub dropped: u64,
}

/// Where each block goes, and the pages it takes.
struct Plan {
    /// Of the new file.
    layout: Layout,
    /// By the index of the block; 0: it is left out.
    homes: Vec<u64>,
    /// Its references from then on.
    metas: Vec<Meta>,
    /// Whether its value has been destroyed, and it is kept for weak references only.
    is_destroyed: Vec<bool>,
    pages: u64,
    /// The page table, and free blocks of pages that are not full.
    table: Vec<(u64, Kind)>,
    hints: Vec<(u64, u64)>,
}

/// Shrinks the file of a heap to its contents. The heap keeps its identity, limits and permissions; offsets of its
/// objects change.
///
/// # Errors
/// [`Error::Busy`] if the heap is open, [`Error::Damaged`] if a check finds a problem: then the file is unchanged.
pub fn compact(path: impl AsRef<Path>, unreachable: Unreachable) -> Result<Compacted> {
    replace(path.as_ref(), unreachable, false)
}

/// The same; afterwards the heap has checksums ([`crate::Options::checksums`]), whether or not it had them before.
///
/// # Errors
/// As for [`compact`].
pub fn compact_with_checksums(path: impl AsRef<Path>, unreachable: Unreachable) -> Result<Compacted> {
    replace(path.as_ref(), unreachable, true)
}

fn replace(path: &Path, unreachable: Unreachable, checksums: bool) -> Result<Compacted> {
    let old = open_locked(path)?;
    let replacement = Replacement::of(&old, path)?;
    let bytes_before = replacement.bytes_before();
    let heap = Inspection::open_in(old, path)?;
    let checked = heap.checked()?;
    if let Some(problem) = checked.found.problems.into_iter().next() {
        return Err(problem);
    }
    let dropped = if unreachable == Unreachable::Drop { &checked.unreachable[..] } else { &[] };
    let references = (unreachable == Unreachable::Drop).then_some(&checked.references[..]);
    let layout = heap.header.layout;
    let layout = Layout { checksums: checksums || layout.checksums, ..layout };
    let plan = Plan::new((heap.view(), layout), &checked.survey, dropped, references)?;
    let blocks = plan.homes.iter().filter(|&&home| home > 0).count() as u64;
    let new = heap.write(&replacement, path, &checked.survey, &plan, blocks)?;
    let bytes = replacement.finish(&new)?;
    let dropped = checked.survey.blocks.len() as u64 - blocks;
    Ok(Compacted { bytes_before, bytes, blocks, dropped })
}

impl Plan {
    /// `references`: what is counted from then on, but for what the blocks that are `dropped` hold.
    fn new(
        (view, layout): (View<'_>, Layout),
        survey: &Survey,
        dropped: &[usize],
        references: Option<&[(u64, u64)]>,
    ) -> Result<Plan> {
        let mut metas: Vec<Meta> = survey.blocks.iter().map(|block| block.meta).collect();
        for (meta, &(strong, weak)) in metas.iter_mut().zip(references.unwrap_or_default()) {
            *meta = Meta::new(strong, weak, meta.tag());
        }
        let mut is_destroyed = Vec::with_capacity(metas.len());
        for block in &survey.blocks {
            is_destroyed.push(block.meta.strong() == 0 && view.link(block.at)? == block.at);
        }
        for &index in dropped {
            is_destroyed[index] = true;
            if survey.blocks[index].meta.strong() == 0 {
                // It was destroyed before: what it pointed to has lost those references.
                continue;
            }
            for edge in 0..survey.edges(view, index) {
                let Some(edge) = survey.edge(view, index, edge)? else { continue };
                let Some(to) = survey.find(edge.at).filter(|_| edge.is_counted()) else { continue };
                let (meta, is_strong) = (metas[to], edge.is_owner());
                let (strong, weak) = (u64::from(is_strong), u64::from(!is_strong));
                metas[to] = Meta::new(meta.strong() - strong, meta.weak() - weak, meta.tag());
            }
        }
        Ok(Plan::place(layout, survey, metas, is_destroyed))
    }

    fn place(layout: Layout, survey: &Survey, metas: Vec<Meta>, is_destroyed: Vec<bool>) -> Plan {
        let mut of_class: Vec<Vec<usize>> = vec![Vec::new(); CLASSES + 1];
        for (index, block) in survey.blocks.iter().enumerate() {
            if !is_destroyed[index] || metas[index].weak() > 0 {
                of_class[space::class_of(block.bytes).unwrap_or(CLASSES)].push(index);
            }
        }
        let mut plan = Plan {
            layout,
            homes: vec![0; metas.len()],
            metas,
            is_destroyed,
            pages: 0,
            table: Vec::new(),
            hints: Vec::new(),
        };
        for (class, blocks) in of_class[..CLASSES].iter().enumerate() {
            let (size, room) = (block_bytes(class), PAGE / block_bytes(class));
            for blocks in blocks.chunks(room as usize) {
                let start = layout.bytes(plan.pages);
                for (position, &index) in blocks.iter().enumerate() {
                    plan.homes[index] = start + position as u64 * size;
                }
                plan.table.push((plan.pages, Kind::Small(class)));
                plan.hints.push((plan.pages, room - blocks.len() as u64));
                plan.pages += 1;
            }
        }
        for &index in &of_class[CLASSES] {
            let pages = survey.blocks[index].bytes / PAGE;
            plan.homes[index] = layout.bytes(plan.pages);
            plan.table.push((plan.pages, Kind::Large(pages)));
            plan.pages += pages;
        }
        plan
    }

    /// Where the block that was at `at` is now; 0 if it was left out.
    fn home(&self, survey: &Survey, at: u64) -> u64 {
        survey.find(at).map_or(0, |index| self.homes[index])
    }
}

impl Inspection {
    /// Writes the heap into a new file, makes it durable and checks it.
    fn write(
        &self,
        replacement: &Replacement<'_>,
        path: &Path,
        survey: &Survey,
        plan: &Plan,
        blocks: u64,
    ) -> Result<File> {
        let layout = plan.layout;
        let (beside, new) = (replacement.beside(), replacement.begin()?);
        let bytes = layout.bytes(plan.pages);
        for (at, bytes) in layout.stored(plan.pages) {
            file::reserve(&new, at, bytes).map_err(Error::io("reserve space in", &beside.display()))?;
        }
        let clone = || new.try_clone().map_err(Error::io("open", &beside.display()));
        let target =
            Memory::map(clone()?, beside, Place::File, &Persistence::Detect, (bytes, bytes), layout.data())?
                .with_sums(Sums::new(&layout, self.schema.strides()));
        for index in 0..survey.blocks.len() {
            self.copy(&target, survey, plan, index)?;
        }
        for &(page, kind) in &plan.table {
            target.store(layout.page_table() + page * 8, &[kind.entry()])?;
        }
        for &(page, free) in &plan.hints {
            space::set_hint(&target, &layout, page, free)?;
        }
        for (log, list) in (0..layout.logs as usize).flat_map(|log| [(log, 0), (log, 1)]) {
            let first = plan.home(survey, self.view().list(log, list)?);
            target.store(list_at(&layout, log, list) + 8, &[first])?;
        }
        let words = self.memory.load_words(TYPES.start, (TYPES.end - TYPES.start) as usize / 8)?;
        target.store(TYPES.start, &words)?;
        target.sums().map_or(Ok(()), |sums| Renewal::new(sums, &target).all(|_| true))?;
        layout.stored(plan.pages).for_each(|(at, bytes)| target.write_back(at, bytes));
        target.fence(&[(0, bytes)])?;
        write_header(
            &target,
            &Header { layout, root: pack(plan.home(survey, self.root_at()), 1).get(), ..self.header },
        )?;
        target.sync_file()?;
        let found = Inspection::open_in(clone()?, path)?.check()?;
        match found.problems.into_iter().next() {
            Some(problem) => Err(problem),
            None if found.blocks != blocks => {
                Err(Error::Invalid(format!("{} of {blocks} blocks were copied", found.blocks)))
            }
            None => Ok(new),
        }
    }

    /// Copies a block, with its pointers changed.
    fn copy(&self, target: &Memory, survey: &Survey, plan: &Plan, index: usize) -> Result<()> {
        const WORDS: usize = 8192;
        let (view, block, home) = (self.view(), survey.blocks[index], plan.homes[index]);
        let Some(entry) = view.schema.get(block.meta.tag()).filter(|_| home > 0) else { return Ok(()) };
        if plan.is_destroyed[index] {
            return target.store(home + 8, &[plan.metas[index].0, home]);
        }
        target.store(home + 8, &[plan.metas[index].0, plan.home(survey, view.link(block.at)?)])?;
        let (mut first, mut end) = (value_at(block.at), value_at(block.at) + entry.bytes.next_multiple_of(8));
        if entry.is_array {
            // Its live elements and its capacity; then, behind the locks, the elements.
            target.store(value_at(home), &self.memory.load_words(first, 2)?)?;
            let shape = view.array(block.at, entry)?.expect("it was checked");
            (first, end) = (shape.element(block.at, 0).1, shape.element(block.at, block.len).1);
        }
        let mut buffer = vec![0; WORDS];
        for at in (first..end).step_by(WORDS * 8) {
            let words = &mut buffer[..WORDS.min(((end - at) / 8) as usize)];
            self.memory.copy_words(at, words)?;
            target.store(home + (at - block.at), words)?;
        }
        for edge in 0..survey.edges(view, index) {
            if let Some(edge) = survey.edge(view, index, edge)? {
                let to = match plan.home(survey, edge.at) {
                    0 => 0,
                    to => pack(to, edge.tag).get(),
                };
                target.store(home + (edge.home - block.at), &[to])?;
            }
        }
        Ok(())
    }
}
