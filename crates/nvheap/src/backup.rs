//! A copy of an open heap as of one moment, while transactions continue.
//!
//! The copy is a heap that was closed in order: it has no records to replay. Its headers are written last, when
//! everything else is durable, so an interrupted copy is not a heap.

use crate::core::Core;
use crate::domain::Persistence;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::layout::{HEADERS, Header, LINE, PAGE, TYPES};
use crate::locked::lock;
use crate::memory::Memory;
use crate::mutex::locked;
use crate::persist::Brand;
use crate::place::Place;
use crate::renewal::Renewal;
use crate::replace::sync_name;
use crate::snapshot::Snapshot;
use crate::sums::Sums;
use crate::tx::is_inside;
use crate::wait::back_off;
use nvlab_os::file;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Words copied at a time.
const PIECE_WORDS: usize = 8192;

impl<H: Brand> Heap<H> {
    /// Copies the heap into a new file while transactions continue: the copy contains every transaction that
    /// committed before some moment during the call, and nothing of later ones. It is durable on return. Returns its
    /// size in bytes.
    ///
    /// Until then, overwritten data is kept in memory, at most nine eighths of the size of the heap. Waits for long
    /// reads if they occupy all snapshots ([`Heap::transaction`]).
    ///
    /// Another program reads an open heap in this way: it opens the copy.
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists, or there is no room; [`Error::Invalid`] for a heap in recoverable memory,
    /// whose segment and log are copied together, and inside a transaction on the heap.
    pub fn backup_to(&self, path: impl AsRef<Path>) -> Result<u64> {
        let (core, path) = (&*self.core, path.as_ref());
        if core.memory.region().is_some() {
            return Err(Error::Invalid("a heap in recoverable memory is copied with its log".into()));
        }
        if is_inside(core) {
            return Err(Error::Invalid("a heap is not copied inside a transaction".into()));
        }
        let new = file::private().create_new(true).open(path);
        let new = new.map_err(Error::io("create", &path.display()))?;
        let copied = lock(&new, path).and_then(|()| copy_moment(core, &new, path));
        copied.inspect_err(|_| _ = std::fs::remove_file(path))
    }
}

/// A snapshot that ends with this value, also on a panic.
struct Moment<'c>(&'c Core, Option<Arc<Snapshot>>);

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        self.1.take().into_iter().for_each(|snapshot| self.0.end_snapshot(snapshot));
    }
}

fn copy_moment(core: &Core, new: &File, path: &Path) -> Result<u64> {
    let mut tries = 0;
    loop {
        let moment = Moment(core, core.take_snapshot()?);
        if let Some(snapshot) = &moment.1 {
            return copy(core, snapshot, new, path);
        }
        tries += 1;
        back_off(tries);
    }
}

fn copy(core: &Core, snapshot: &Snapshot, new: &File, path: &Path) -> Result<u64> {
    let (layout, bytes) = (&core.layout, snapshot.bytes());
    new.set_len(bytes).map_err(Error::io("lengthen", &path.display()))?;
    // Whoever opens it stores to the same as here.
    for (at, bytes) in layout.stored((bytes - layout.data()) / PAGE) {
        file::reserve(new, at, bytes).map_err(Error::io("reserve space in", &path.display()))?;
    }
    // The halves of the logs stay empty, and so do the headers for now.
    let heads = (0..layout.logs as usize).map(|log| layout.log_head(log)..layout.log_head(log) + LINE);
    for range in heads.chain([TYPES, layout.page_table()..layout.sums(), layout.data()..bytes]) {
        copy_range(core, snapshot, (new, path), range)?;
    }
    if let Some(sums) = core.memory.sums() {
        copy_sums(core, sums, (new, path), bytes)?;
    }
    let sync = || new.sync_all().map_err(Error::io("sync", &path.display()));
    sync()?;
    // As of now: locks may have been copied that commits released since.
    let header: Header = *locked(&core.header);
    for at in HEADERS {
        write(new, path, at, &header.encode())?;
    }
    sync()?;
    sync_name(path)?;
    Ok(bytes)
}

/// Checksums of lines that may have changed since the heap was opened are computed anew. The others are copied, so
/// that they still show damage.
fn copy_sums(core: &Core, sums: &Sums, (new, path): (&File, &Path), bytes: u64) -> Result<()> {
    let (layout, mut is_changed) = (&core.layout, Vec::new());
    for page in 0..(bytes - layout.data()) / PAGE {
        let found = sums.unchanged(&core.memory, page)?;
        is_changed.push(found.is_none());
        if let Some((found, at)) = found.zip(sums.place(layout.bytes(page))) {
            write(new, path, at, &found)?;
        }
    }
    let copy = new.try_clone().map_err(Error::io("open", &path.display()))?;
    let copy = Memory::map(copy, path, Place::File, &Persistence::Process, (bytes, bytes), layout.data())?
        .with_sums(sums.of_copy());
    let sums = copy.sums().expect("those of the copy");
    Renewal::new(sums, &copy).all(|page| is_changed[page as usize])
}

fn copy_range(
    core: &Core,
    snapshot: &Snapshot,
    (new, path): (&File, &Path),
    range: Range<u64>,
) -> Result<()> {
    let mut piece = vec![0; PIECE_WORDS];
    for at in range.clone().step_by(PIECE_WORDS * 8) {
        let words = &mut piece[..PIECE_WORDS.min(((range.end - at) / 8) as usize)];
        core.memory.copy_words(at, words)?;
        snapshot.restore(at, words);
        // What is new is zero.
        if words.iter().any(|&word| word != 0) {
            write(new, path, at, words)?;
        }
    }
    Ok(())
}

fn write(new: &File, path: &Path, at: u64, words: &[u64]) -> Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    new.write_all_at(&bytes, at).map_err(Error::io("write", &path.display()))
}

#[cfg(test)]
mod tests {
    use crate::layout::PAGE;
    use crate::{Brand, Error, Heap, Options};
    use std::os::unix::fs::MetadataExt;

    struct Failing;
    impl Brand for Failing {
        type Root = u64;
    }

    fn with_heap(test: impl Fn(&std::path::Path, Heap<Failing>) + Send + Sync + 'static) {
        let run = move || {
            let folder = tempfile::tempdir_in("/dev/shm").unwrap();
            let options = Options { bytes_max: 1 << 20, logs: 1, ..Options::default() };
            let heap = Heap::<Failing>::create(folder.path().join("heap"), options, |_| Ok(0)).unwrap();
            test(&folder.path().join("copy"), heap);
        };
        shuttle::check_random(run, 1);
    }

    #[test]
    fn a_heap_that_has_failed_leaves_no_file() {
        with_heap(|copy, heap| {
            let _ = heap.core.failed.set(Error::Conflict);
            let copied = heap.backup_to(copy);
            assert!(matches!(copied, Err(Error::Failed(_))), "{copied:?}");
            assert!(!copy.exists());
        });
    }

    /// Stores to a mapping of a file without the space would end the program.
    #[test]
    fn a_backup_has_its_space_reserved() {
        with_heap(|copy, heap| {
            let (bytes, layout) = (heap.backup_to(copy).unwrap(), &heap.core.layout);
            let needed = layout.page_table() + (bytes - layout.data()) / PAGE * (PAGE + 8 + 2);
            let has = std::fs::metadata(copy).unwrap().blocks() * 512;
            assert!(has >= needed, "{has} of {needed}");
        });
    }
}
