//! Examines the file of a heap without the program whose types it holds.
//!
//! * The file contains a description of its types ([`schema`]): where the pointers of a value are and how to read it.
//! * Nothing is ever written to the file: pending records in the logs are replayed into a private mapping.
//! * The file may be hostile: every offset and length is checked before it is used, and links are followed without
//!   recursion. Time and memory are in proportion to the file.

mod check;
mod collections;
mod compact;
mod cycles;
mod schema;
mod summary;
mod sums;
mod survey;
mod text;
mod valid;
mod value;

pub use check::{Check, Cycle};
pub use compact::{Compacted, Unreachable, compact, compact_with_checksums};
pub use summary::{BlockSize, Summary};
pub use value::{Limits, Reference, Value};

use crate::core::Core;
use crate::error::{Error, Result};
use crate::layout::{Header, TYPES};
use crate::memory::Memory;
use crate::persist::{Counted, TypeEntry, words};
use crate::pointer::offset;
use crate::recover;
use crate::sums::Sums;
use crate::tx::Cut;
use check::{Checked, Checker};
use nvlab_os::file;
use schema::{PointerAt, Pointing, Schema};
use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use survey::View;

/// A heap examined without its program. It shows the state that opening the heap would find, and changes nothing.
#[derive(Debug)]
pub struct Inspection {
    memory: Memory,
    header: Header,
    schema: Schema,
    file_bytes: u64,
    replayed: u64,
}

impl Inspection {
    /// Opens a heap for reading. Others may do so at the same time; no program can open the heap during this time.
    ///
    /// # Errors
    /// [`Error::Busy`] if a program has it open, [`Error::Format`] or [`Error::Damaged`] if it is not a complete
    /// heap.
    pub fn open(path: impl AsRef<Path>) -> Result<Inspection> {
        let path = path.as_ref();
        let mut options = file::private();
        let file = options.write(false).open(path).map_err(Error::io("open", &path.display()))?;
        match file::try_lock_shared(&file).map_err(Error::io("lock", &path.display()))? {
            true => Inspection::open_in(file, path),
            false => Err(Error::Busy(path.into())),
        }
    }

    /// Examines the heap in an open file that does not change; `path` is for messages.
    pub fn open_in(file: File, path: &Path) -> Result<Inspection> {
        let mut start = vec![0; TYPES.end as usize];
        let read = file.read_at(&mut start, 0).map_err(Error::io("read", &path.display()))?;
        let header = Header::find(path, &start[..read.min(TYPES.start as usize)])?;
        let layout = header.layout;
        let file_bytes = file.metadata().map_err(Error::io("examine", &path.display()))?.len();
        let pages = header.pages(path, file_bytes)?;
        let schema = Schema::read(&start[TYPES.start as usize..], header.fingerprint)?;
        let memory = Memory::private(file, path, layout.bytes(pages), layout.data())?
            .with_sums(Sums::new(&layout, schema.strides()));
        let replayed = recover::replay(&memory, &header)?;
        Ok(Inspection { memory, header, schema, file_bytes, replayed })
    }

    fn view(&self) -> View<'_> {
        let Header { layout, clock_limit, .. } = &self.header;
        View { memory: &self.memory, layout, schema: &self.schema, clock_limit: *clock_limit }
    }

    fn root_at(&self) -> u64 {
        offset(NonZeroU64::new(self.header.root).expect("checked when it was opened"))
    }

    fn checked(&self) -> Result<Checked> {
        Checker::run(self.view(), self.root_at(), &[])
    }

    /// Checks every block, pointer, count and value, and finds unreachable objects. It takes memory in proportion to
    /// the number of objects.
    pub fn check(&self) -> Result<Check> {
        Ok(self.checked()?.found)
    }

    /// The root.
    pub fn root(&self) -> Reference {
        Reference { at: self.root_at(), number: 1 }
    }
}

/// Finds the counted pointers in the values of each type.
pub(crate) fn find_pointers(types: &mut [TypeEntry]) -> Result<()> {
    let schema = Schema::parse(&words(types))?;
    for (entry, found) in types.iter_mut().zip(schema.types()) {
        let counted = found.pointers.iter().filter(|pointer| pointer.pointing != Pointing::Back);
        let word = |pointer: &PointerAt| Counted {
            word: (pointer.offset / 8) as u32,
            is_weak: pointer.pointing == Pointing::Weak,
        };
        entry.pointers = counted.map(word).collect();
    }
    Ok(())
}

/// Checks a heap of a program, which is running no transaction.
pub(crate) fn check_core(core: &Core, root: u64) -> Result<Check> {
    let schema = Schema::parse(&words(&core.types))?;
    Ok(Checker::run(view_of(core, &schema)?, root, &[])?.found)
}

/// Of a heap of a program, which is running no transaction.
fn view_of<'v>(core: &'v Core, schema: &'v Schema) -> Result<View<'v>> {
    if core.memory.sums().is_some() {
        // Checksums are those of what is at home.
        core.checkpoint(core.epoch.load(Ordering::Acquire))?;
    }
    let clock_limit = core.limit.load(Ordering::Acquire);
    Ok(View { memory: &core.memory, layout: &core.layout, schema, clock_limit })
}

/// The changes that free the objects reachable neither from the root nor from those `kept` by handles.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Pointers to drop, which opens the cycles.
    pub cuts: Vec<Cut>,
    /// Objects of which pointers were forgotten, and how many strong and weak references that are.
    pub forgotten: Vec<(u64, u64, u64)>,
    /// Blocks that are lost.
    pub blocks: u64,
}

/// Looks for what is lost.
pub(crate) fn lost(core: &Core, root: u64, kept: &[u64]) -> Result<Lost> {
    let schema = Schema::parse(&words(&core.types))?;
    let view = view_of(core, &schema)?;
    let checked = Checker::run(view, root, kept)?;
    if let Some(problem) = checked.found.problems.first() {
        return Err(problem.clone());
    }
    let counted = checked.survey.blocks.iter().zip(&checked.references);
    let forgotten = counted
        .filter(|&(block, &found)| (block.meta.strong(), block.meta.weak()) != found)
        .map(|(block, &(strong, weak))| (block.at, block.meta.strong() - strong, block.meta.weak() - weak))
        .collect();
    let cuts = cycles::cuts(&checked.survey, view, &checked.unreachable)?;
    Ok(Lost { cuts, forgotten, blocks: checked.found.unreachable })
}
