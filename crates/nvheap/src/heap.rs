//! Opening a heap and running transactions on it.

use crate::core::{CLOCK_STEP, Core, Slot, write_header};
use crate::domain::Persistence;
use crate::error::{Error, Result};
use crate::inspect::{self, Check};
use crate::layout::{Header, Layout, PAGE, TYPES};
use crate::locked::{lock, open_locked};
use crate::memory::Memory;
use crate::mutex::locked;
use crate::persist::{Brand, Shape, words};
use crate::place::{self, Place};
use crate::pointer::{Handle, PBox, offset, pack, tag_of};
use crate::reap::{Entered, destroy_dropped, destroy_rest, reap_undamaged};
use crate::recover;
use crate::space::Space;
use crate::sums::Sums;
use crate::sync::{AtomicBool, AtomicU64, Mutex};
use crate::tx::{Lease, List, RawTx, Tx, end_lease, lease};
use nvlab_os::{afresh_mut, barrier, file};
use std::any::{TypeId, type_name};
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Options for creating or opening a heap.
#[derive(Clone, Debug)]
pub struct Options {
    /// How changes are made durable.
    pub persistence: Persistence,
    /// Maximum size in bytes, fixed when the heap is created. It reserves address space only.
    pub bytes_max: u64,
    /// Maximum number of threads that use the heap at the same time, at most 127; fixed when it is created.
    pub logs: u32,
    /// Bytes of a thread's log; fixed when the heap is created. The size of a transaction is not limited: a record
    /// longer than half a log is written to free pages of the heap, which may have to grow for it, and needs memory
    /// in proportion to the changes.
    pub log_bytes: u64,
    /// Whether the heap has checksums of all its contents, which detect damage that looks like valid values; fixed
    /// when it is created. Off by default: they take a sixteenth of the file, and time when changes are written home
    /// (docs/nvheap.md has figures).
    ///
    /// The checksums of a page of 64 KiB are compared when the program first uses data in it after opening the heap,
    /// and by every check. Refused for heaps in recoverable memory.
    pub checksums: bool,
    /// A number that identifies the heap and seeds its hash maps: random, unless set to make the placement of objects
    /// reproducible.
    pub identity: Option<u64>,
}

impl Default for Options {
    /// 64 GiB at most, 32 threads with logs of 512 KiB.
    fn default() -> Self {
        Options {
            persistence: Persistence::Detect,
            bytes_max: 64 << 30,
            logs: 32,
            log_bytes: 512 << 10,
            checksums: false,
            identity: None,
        }
    }
}

impl Options {
    pub(crate) fn layout(&self) -> Layout {
        Layout {
            logs: u64::from(self.logs),
            half_bytes: (self.log_bytes / 2).next_multiple_of(4096),
            pages_max: self.bytes_max.div_ceil(PAGE).next_multiple_of(4),
            checksums: self.checksums,
        }
    }
}

/// Statistics of an open heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes of the file.
    pub bytes: u64,
    /// How many times it was opened.
    pub opens: u64,
    /// Records replayed when it was opened: 0 after it was closed in order.
    pub replayed: u64,
}

/// An open heap of brand `H`.
///
/// Dropping it writes all changes home. A program that is killed loses nothing either: the next one replays the logs.
pub struct Heap<H: Brand> {
    pub(crate) core: Arc<Core>,
    root: u64,
    replayed: u64,
    brand: PhantomData<fn(H) -> H>,
}

impl<H: Brand> fmt::Debug for Heap<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heap<{}>({})", type_name::<H>(), self.core.memory.path().display())
    }
}

/// The types as stored in the file, truncated to the space available.
fn kept(shape: &Shape) -> Vec<u8> {
    let mut text = words(&shape.types).into_bytes();
    text.truncate((TYPES.end - TYPES.start) as usize);
    text
}

/// Bytes as words, padded with zeros.
fn whole_words(bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    bytes.chunks(8).map(word).collect()
}

impl<H: Brand> Heap<H> {
    /// Creates a heap in a new file, with the root that `root` returns; or on a block device or memory window that
    /// begins with zeros.
    pub fn create(
        path: impl AsRef<Path>,
        options: Options,
        root: impl FnMut(&Tx<'_, H>) -> Result<H::Root> + Send,
    ) -> Result<Self> {
        let path = path.as_ref();
        let (file, is_new) = place::create(path).map_err(Error::io("create", &path.display()))?;
        Self::create_in(file, path, options, root).inspect_err(|_| {
            if is_new {
                // Nobody else has seen it, and it is no heap yet.
                let _ = std::fs::remove_file(path);
            }
        })
    }

    /// Opens the heap, or creates one if it does not exist or its creation was interrupted.
    pub fn open_or_create(
        path: impl AsRef<Path>,
        options: Options,
        root: impl FnMut(&Tx<'_, H>) -> Result<H::Root> + Send,
    ) -> Result<Self> {
        let path = path.as_ref();
        let file = match place::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Self::create(path, options, root),
            Err(error) => return Err(Error::io("open", &path.display())(error)),
        };
        lock(&file, path)?;
        match Place::of(&file, path)?.is_blank(&file, path)? {
            true => Self::create_in(file, path, options, root),
            false => Self::open_in(file, path, options),
        }
    }

    /// Creates a heap in an open and empty file, a block device, or a memory window; `path` is for messages. If the
    /// size is fixed, the heap uses all of it, up to [`Options::bytes_max`].
    pub fn create_in(
        file: File,
        path: &Path,
        options: Options,
        root: impl FnMut(&Tx<'_, H>) -> Result<H::Root> + Send,
    ) -> Result<Self> {
        Self::create_by(file, path, options, root)
    }

    /// The same with a `root` that is known to hold no pointers.
    pub(crate) fn create_by(
        file: File,
        path: &Path,
        options: Options,
        root: impl FnMut(&Tx<'_, H>) -> Result<H::Root>,
    ) -> Result<Self> {
        lock(&file, path)?;
        let place = Place::of(&file, path)?;
        if !place.is_blank(&file, path)? {
            return Err(Error::Format { path: path.into(), why: "it already holds something else".into() });
        }
        let mut layout = options.layout();
        if place.is_fixed() {
            layout = layout.fit(place::bytes(&file, path)?);
        }
        if !layout.is_sane() {
            return Err(Error::Invalid(format!("{} cannot hold a heap with {options:?}", path.display())));
        }
        let bytes_max = layout.bytes(layout.pages_max);
        let mut bytes = bytes_max;
        if !place.is_fixed() {
            bytes = layout.data();
            file.set_len(0)
                .and_then(|()| file.set_len(bytes))
                // Logs are written without asking for space again.
                .and_then(|()| layout.stored(0).try_for_each(|(at, bytes)| file::reserve(&file, at, bytes)))
                .map_err(Error::io("reserve space in", &path.display()))?;
        }
        let memory = Memory::map(file, path, place, &options.persistence, (bytes, bytes_max), layout.data())?;
        Self::make(memory, (layout, options.identity), root)
    }

    /// Creates a heap where none exists.
    pub(crate) fn make(
        memory: Memory,
        (layout, identity): (Layout, Option<u64>),
        mut root: impl FnMut(&Tx<'_, H>) -> Result<H::Root>,
    ) -> Result<Self> {
        let shape = Shape::of::<H>();
        let memory = memory.with_sums(Sums::new(&layout, shape.strides()));
        let header = Header {
            layout,
            identity: match identity {
                Some(identity) => identity,
                None => file::random_u64()
                    .map_err(Error::io("draw a random number for", &memory.path().display()))?,
            },
            fingerprint: shape.fingerprint(),
            root: 0,
            epoch_done: 0,
            clock_limit: CLOCK_STEP,
            opens: 1,
        };
        // First: without a root it says that the rest is still being made.
        write_header(&memory, &header)?;
        if memory.bytes() > layout.data() {
            // It has its full size already, and was something else before, perhaps a heap.
            let tables = layout.page_table()..layout.sums() + layout.sums_bytes(layout.pages_max);
            (0..layout.logs as usize)
                .map(|log| layout.log_head(log)..layout.half(log, 0))
                .chain([TYPES, tables])
                .try_for_each(|range| memory.clear(range))?;
        }
        memory.sums().map_or(Ok(()), |sums| sums.begin(&memory))?;
        memory.persist(TYPES.start, &whole_words(&kept(&shape)))?;
        let mut heap = Self::start(memory, header, shape, (0, 0))?;
        let made = run(lease(&heap.core)?, &mut |tx| {
            let root = PBox::<H::Root, H>::new(tx, root(tx)?)?;
            let at = root.word().get();
            // It is never dropped: the header points to it.
            std::mem::forget(root);
            tx.raw.allow(offset(NonZeroU64::new(at).expect("of a pointer")), false, 1);
            Ok(at)
        })?;
        heap.core.checkpoint(heap.core.epoch.load(Ordering::Acquire))?;
        heap.root = made;
        let mut header = locked(&heap.core.header);
        header.root = made;
        heap.core.memory.sync_file()?;
        write_header(&heap.core.memory, &header)?;
        drop(header);
        Ok(heap)
    }

    /// Opens a heap and recovers it.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        Self::open_in(open_locked(path)?, path, options)
    }

    /// Opens the heap in an open file, block device or memory window; `path` is for messages.
    pub fn open_in(file: File, path: &Path, options: Options) -> Result<Self> {
        lock(&file, path)?;
        let place = Place::of(&file, path)?;
        let start = place.read_start(&file, path, TYPES.end)?;
        let (header, shape) = Self::identify(path, &start)?;
        let layout = header.layout;
        let pages = header.pages(path, place::bytes(&file, path)?)?;
        let sizes = (layout.bytes(pages), layout.bytes(layout.pages_max));
        let memory = Memory::map(file, path, place, &options.persistence, sizes, layout.data())?
            .with_sums(Sums::new(&layout, shape.strides()));
        let replayed = recover::replay(&memory, &header)?;
        Self::resume(memory, header, shape, replayed)
    }

    /// The header of the heap whose first bytes are `start`; its types are the program's.
    pub(crate) fn identify(path: &Path, start: &[u8]) -> Result<(Header, Shape)> {
        let header = Header::find(path, start)?;
        let shape = Shape::of::<H>();
        if !shape.is_of(header.fingerprint) {
            return Err(Error::Schema { why: difference(&start[TYPES.start as usize..], &shape) });
        }
        Ok((header, shape))
    }

    /// Continues with a heap that has been recovered.
    pub(crate) fn resume(memory: Memory, mut header: Header, shape: Shape, replayed: u64) -> Result<Self> {
        // From here on no lock is held, and what was replayed is never replayed again.
        let base = header.clock_limit;
        header.clock_limit += CLOCK_STEP;
        header.epoch_done += 2;
        header.opens += 1;
        write_header(&memory, &header)?;
        let heap = Self::start(memory, header, shape, (base, replayed))?;
        heap.core.memory.check_object(heap.root_at(), 8)?;
        if let Some(sums) = heap.core.memory.sums() {
            sums.examine_heads(&heap.core.memory)?;
        }
        let lease = lease(&heap.core)?;
        for log in 0..heap.core.slots.len() {
            reap_undamaged(lease, log, List::Dead)?;
            reap_undamaged(lease, log, List::Kept)?;
        }
        Ok(heap)
    }

    fn start(memory: Memory, header: Header, mut shape: Shape, (base, replayed): (u64, u64)) -> Result<Self> {
        barrier::register();
        inspect::find_pointers(&mut shape.types)?;
        let layout = header.layout;
        let core = Arc::new_cyclic(|this| Core {
            // Hints change outside transactions: a log has them only if the heap was closed.
            space: Space::open(
                [memory.bytes(), memory.bytes_max()].map(|bytes| (bytes - layout.data()) / PAGE),
                memory.region().is_none() || replayed == 0,
            ),
            memory,
            layout,
            identity: header.identity,
            base,
            limit: AtomicU64::new(header.clock_limit),
            epoch: AtomicU64::new(header.epoch_done + 1),
            is_held_up: AtomicBool::default(),
            beginning: Mutex::default(),
            slots: (0..layout.logs).map(|_| Slot::new(base)).collect(),
            types: shape.types,
            brand: TypeId::of::<H>(),
            brand_name: type_name::<H>(),
            failed: OnceLock::new(),
            handles: Mutex::default(),
            this: this.clone(),
            header: Mutex::new(header),
        });
        Ok(Heap { core, root: header.root, replayed, brand: PhantomData })
    }

    pub(crate) fn root_at(&self) -> u64 {
        offset(NonZeroU64::new(self.root).expect("checked when it was opened"))
    }

    /// Runs a transaction: the changes of `body` happen as a whole or, if it returns an error or panics, not at all.
    ///
    /// `body` is called again after a conflict with other threads. If it only reads, it soon gets a snapshot, which
    /// conflicts with nothing: data that others overwrite is kept in memory for it, at most nine eighths of the size
    /// of the heap. A heap has four snapshots at a time; a fifth long read is repeated until it succeeds without one.
    /// A transaction that reads much and then changes something gets none.
    /// `R` is `Send`, so that no pointer into the heap leaves the transaction; use [`Handle`]s for that. A
    /// transaction inside another one on the same heap is part of it; if it fails, all of it fails.
    pub fn transaction<R: Send>(&self, mut body: impl FnMut(&Tx<'_, H>) -> Result<R> + Send) -> Result<R> {
        let lease = lease(&self.core)?;
        run(lease, &mut body)
    }

    /// The root.
    pub fn root(&self) -> Result<Handle<H::Root, H>> {
        self.transaction(|tx| {
            let word = NonZeroU64::new(self.root).expect("set when the heap was made");
            let tag = tag_of::<H::Root>(tx.raw, false)?;
            Handle::new(tx, pack(offset(word), tag))
        })
    }

    /// Statistics.
    pub fn stat(&self) -> Stat {
        Stat {
            bytes: self.core.memory.bytes(),
            opens: locked(&self.core.header).opens,
            replayed: self.replayed,
        }
    }

    /// Checks every block: whether page table, headers and pointers agree, and which objects are unreachable. It
    /// takes memory in proportion to the number of objects. The exclusive borrow excludes transactions.
    pub fn check(&mut self) -> Result<Check> {
        inspect::check_core(&self.core, self.root_at())
    }

    /// Writes all changes home and empties the logs, so that the next open has nothing to replay.
    pub fn checkpoint(&self) -> Result<()> {
        if let Some(region) = self.core.memory.region() {
            return region.truncate();
        }
        for _ in 0..2 {
            self.core.checkpoint(self.core.epoch.load(Ordering::Acquire))?;
        }
        Ok(())
    }
}

impl<H: Brand> Drop for Heap<H> {
    fn drop(&mut self) {
        end_lease(&self.core);
        // If it fails, the logs have what is not at home.
        let _ = self.core.keep_hints().and_then(|()| self.checkpoint());
        self.core.wait_until_alone();
    }
}

/// Runs transactions until one commits or fails permanently.
// The body is called in one place, so that the compiler makes it part of this.
#[inline]
pub(crate) fn run<H: Brand, R>(
    mut lease: Lease<'_>,
    mut body: &mut impl FnMut(&Tx<'_, H>) -> Result<R>,
) -> Result<R> {
    let mut tries = 0;
    loop {
        lease = lease.afresh();
        body = afresh_mut(body);
        let tx = lease.tx();
        let entered = Entered::new(tx)?;
        let result = body(&Tx::new(tx));
        if !entered.is_outermost() {
            return result.map_err(|error| tx.doom(error));
        }
        let error = match result {
            Ok(result) => {
                entered.leave();
                match tx.commit() {
                    Ok(()) if !tx.context.has_dead.get() => return Ok(result),
                    Ok(()) => return destroy_rest(lease).map(|()| result),
                    Err(error) => *error,
                }
            }
            Err(error) => {
                let error = failure(tx, error);
                drop(entered);
                error
            }
        };
        match error {
            Error::Conflict => {
                tries += 1;
                tx.prepare_try(tries)?;
            }
            error => {
                destroy_dropped(lease);
                return Err(error);
            }
        }
    }
}

/// The error of a transaction whose body returned `error`: a conflict remains a conflict, even if the program
/// returned another error for it.
#[cold]
fn failure(tx: RawTx<'_>, error: Error) -> Error {
    match tx.context.doomed() {
        Some(conflict @ Error::Conflict) => conflict,
        _ => error,
    }
}

/// The first type of the heap that is not the program's; `found` is what it says about its types.
pub(crate) fn difference(found: &[u8], shape: &Shape) -> String {
    let end = found.iter().position(|&byte| byte == 0).unwrap_or(found.len());
    let (found, mine) = (String::from_utf8_lossy(&found[..end]).into_owned(), kept(shape));
    let mine = String::from_utf8_lossy(&mine).into_owned();
    let same = found.lines().zip(mine.lines()).take_while(|(theirs, mine)| theirs == mine).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("nothing").to_string();
    format!("the file has {}, the program {}", line(&found), line(&mine))
}
