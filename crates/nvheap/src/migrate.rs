//! Converts heaps of older types to those of the program.
//!
//! 1. The version of a file is identified by the fingerprint of its types. Each version is a brand with its own
//!    types, so old and new pointers cannot be mixed up.
//! 2. A step reads the old heap and returns the new root: one transaction on the new heap. The old heap is a private
//!    copy of the file in memory: the contents of its logs are replayed there, and nothing reaches the file.
//! 3. The new file replaces the old one when it is complete and durable ([`crate::replace`]). A version between the
//!    first and the last is a file without a name, which disappears with the program.
//!
//! Rejected: changing objects in place. Their sizes change, so nearly all blocks and every pointer to them would
//! change, in more than one transaction; a crash between two of them leaves a heap of two versions, which no program
//! can open.

use crate::domain::Persistence;
use crate::error::{Error, Result};
use crate::heap::{Heap, Options, difference, run};
use crate::layout::{Header, Layout, PAGE, TYPES};
use crate::locked::open_locked;
use crate::memory::Memory;
use crate::persist::{Brand, Shape};
use crate::place::{self, Place};
use crate::recover;
use crate::replace::Replacement;
use crate::sums::Sums;
use crate::tx::{Tx, lease};
use std::any::type_name;
use std::fmt;
use std::fs::File;
use std::marker::PhantomData;
use std::path::Path;

/// A heap of an older version, and the file for that of the next.
struct Pair<'f> {
    old: File,
    path: &'f Path,
    new: File,
    beside: &'f Path,
    /// Of the new one, if nothing else is needed.
    options: Options,
}

type Step<'s> = Box<dyn FnMut(Pair<'_>) -> Result<()> + 's>;

/// A version that heaps may have, and the step to the next.
struct Version<'s> {
    name: &'static str,
    fingerprint: u64,
    /// That of files that were made before some types had words of their own.
    older: u64,
    step: Step<'s>,
}

/// Steps from older versions of a heap to that of brand `H`. Made by [`migrate`].
pub struct Migration<'s, H: Brand> {
    /// Oldest first.
    versions: Vec<Version<'s>>,
    last: PhantomData<fn(H) -> H>,
}

impl<H: Brand> fmt::Debug for Migration<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.versions.iter().map(|version| version.name).chain([type_name::<H>()]);
        f.debug_list().entries(names).finish()
    }
}

/// The step from heaps of brand `Old` to those of brand `New`: `step` gets the old root and a transaction on each
/// heap, and returns the new root.
///
/// ```
/// use nvlab_nvheap::{Brand, Heap, Options, Persist, Result, migrate};
///
/// /// The types as they were.
/// mod v1 {
///     use super::*;
///
///     pub struct Shop;
///     impl Brand for Shop {
///         type Root = Stock;
///     }
///
///     #[derive(Persist)]
///     #[repr(C)]
///     pub struct Stock {
///         pub price_in_francs: u32,
///     }
/// }
///
/// struct Shop;
/// impl Brand for Shop {
///     type Root = Stock;
/// }
///
/// #[derive(Persist)]
/// #[repr(C)]
/// struct Stock {
///     price_in_centimes: u64,
/// }
///
/// # fn main() -> Result<()> {
/// # let folder = tempfile::tempdir_in("/dev/shm").unwrap();
/// # let path = folder.path().join("shop");
/// # drop(Heap::<v1::Shop>::create(&path, Options::default(), |_| Ok(v1::Stock { price_in_francs: 12 }))?);
/// let heap = migrate::<v1::Shop, Shop>(|old, _, _| {
///     Ok(Stock { price_in_centimes: u64::from(old.price_in_francs) * 100 })
/// })
/// .open(&path, Options::default())?;
/// let stock = heap.root()?;
/// assert_eq!(heap.transaction(|tx| Ok(stock.read(tx)?.price_in_centimes))?, 1200);
/// # Ok(())
/// # }
/// ```
pub fn migrate<'s, Old: Brand, New: Brand>(
    step: impl FnMut(&Old::Root, &Tx<'_, Old>, &Tx<'_, New>) -> Result<New::Root> + Send + 's,
) -> Migration<'s, New> {
    Migration { versions: Vec::new(), last: PhantomData::<fn(Old) -> Old> }.then(step)
}

impl<'s, H: Brand> Migration<'s, H> {
    /// Adds the step from there to the next version.
    pub fn then<Next: Brand>(
        mut self,
        mut step: impl FnMut(&H::Root, &Tx<'_, H>, &Tx<'_, Next>) -> Result<Next::Root> + Send + 's,
    ) -> Migration<'s, Next> {
        let shape = Shape::of::<H>();
        self.versions.push(Version {
            name: type_name::<H>(),
            fingerprint: shape.fingerprint(),
            older: shape.older_fingerprint(),
            step: Box::new(move |pair| run_step(pair, &mut step)),
        });
        Migration { versions: self.versions, last: PhantomData }
    }

    /// Opens a heap of the last version. If the file has an older one, the result of the steps from there on replaces
    /// it first; a heap of the newest version is opened unchanged.
    ///
    /// If the program or machine stops in the middle, the old heap or the new one remains. The old file is unchanged
    /// until the new one is complete and durable; a step that fails or panics changes nothing. The new heap has the
    /// limits of the old one or those of `options`, whichever are greater. Every step is one transaction on the new
    /// heap, which takes memory in proportion to its result; changes of a step in the old heap are discarded.
    ///
    /// # Errors
    /// [`Error::Schema`] if the file has none of the versions, [`Error::Invalid`] if two of them have the same layout
    /// (`#[persist(version = 2)]` tells such types apart) or if the heap has to be migrated and is not a file with one name;
    /// what a step returned; and those of [`Heap::open`].
    pub fn open(mut self, path: impl AsRef<Path>, options: Options) -> Result<Heap<H>> {
        let path = path.as_ref();
        let last = Shape::of::<H>();
        self.check_apart(last.fingerprint())?;
        let file = open_locked(path)?;
        let place = Place::of(&file, path)?;
        let start = place.read_start(&file, path, TYPES.end)?;
        let Header { fingerprint, layout, .. } = Header::find(path, &start)?;
        let version = self.versions.iter().position(|version| version.fingerprint == fingerprint);
        if fingerprint == last.fingerprint() || version.is_none() && last.is_of(fingerprint) {
            return Heap::open_in(file, path, options);
        }
        let older = || self.versions.iter().position(|version| version.older == fingerprint);
        let Some(first) = version.or_else(older) else {
            let difference = difference(&start[TYPES.start as usize..], &last);
            let why = format!("{} has none of the versions {self:?}: {difference}", path.display());
            return Err(Error::Schema { why });
        };
        if place.is_fixed() {
            let why =
                format!("{} is not a file, so it cannot be replaced by one of {self:?}", path.display());
            return Err(Error::Invalid(why));
        }
        let replacement = Replacement::of(&file, path)?;
        let clone = |file: &File| file.try_clone().map_err(Error::io("open", &path.display()));
        let mut new = clone(&file)?;
        let steps = &mut self.versions[first..];
        let count = steps.len();
        for (number, version) in steps.iter_mut().enumerate() {
            let mut options = widest(&options, &layout);
            if number + 1 < count {
                options.persistence = Persistence::Process;
            }
            let old = std::mem::replace(&mut new, replacement.begin()?);
            (version.step)(Pair { old, path, new: clone(&new)?, beside: replacement.beside(), options })?;
        }
        replacement.finish(&new)?;
        // The lock of the new file has been held since before it had this name.
        Heap::open_in(new, path, options)
    }

    /// Versions with the same layout cannot be distinguished, nor can a version be distinguished from an earlier one
    /// whose files may have the same description of their types: its step would never run.
    fn check_apart(&self, last: u64) -> Result<()> {
        let names = self.versions.iter().map(|version| (version.fingerprint, version.older, version.name));
        let mut known: Vec<(u64, u64, &str)> = Vec::new();
        for (fingerprint, older, name) in names.chain([(last, last, type_name::<H>())]) {
            if let Some((.., other)) = known.iter().find(|known| [known.0, known.1].contains(&fingerprint)) {
                let why = format!("{other} and {name} have the same layout: give a type of one a version");
                return Err(Error::Invalid(why));
            }
            known.push((fingerprint, older, name));
        }
        Ok(())
    }
}

/// Options for a heap with the limits of another one or more.
fn widest(options: &Options, old: &Layout) -> Options {
    Options {
        bytes_max: options.bytes_max.max(old.pages_max * PAGE),
        logs: options.logs.max(old.logs as u32),
        log_bytes: options.log_bytes.max(old.half_bytes * 2),
        checksums: options.checksums || old.checksums,
        ..options.clone()
    }
}

/// Makes a heap of what another one holds, as far as durable in its file.
fn run_step<Old: Brand, New: Brand>(
    pair: Pair<'_>,
    step: &mut impl FnMut(&Old::Root, &Tx<'_, Old>, &Tx<'_, New>) -> Result<New::Root>,
) -> Result<()> {
    let Pair { old, path, new, beside, options } = pair;
    let old = open_copy::<Old>(old, path)?;
    let root = old.root()?;
    let lease = lease(&old.core)?;
    run(lease, &mut |from: &Tx<'_, Old>| {
        let root = root.read(from)?;
        let file = new.try_clone().map_err(Error::io("open", &beside.display()))?;
        Heap::<New>::create_by(file, beside, options.clone(), |to| step(&root, from, to)).map(drop)
    })
}

/// Opens a private copy of the heap in a file, which cannot grow.
fn open_copy<H: Brand>(file: File, path: &Path) -> Result<Heap<H>> {
    let start = Place::File.read_start(&file, path, TYPES.end)?;
    let (header, shape) = Heap::<H>::identify(path, &start)?;
    let layout = header.layout;
    let pages = header.pages(path, place::bytes(&file, path)?)?;
    let memory = Memory::private(file, path, layout.bytes(pages), layout.data())?
        .with_sums(Sums::new(&layout, shape.strides()));
    let replayed = recover::replay(&memory, &header)?;
    Heap::resume(memory, header, shape, replayed)
}
