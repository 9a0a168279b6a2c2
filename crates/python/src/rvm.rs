//! Recoverable memory: regions that are read as bytes and changed by whole transactions.
//!
//! Python holds the ranges of a transaction in buffers of its own until it commits: no pointer into mapped memory leaves this
//! module. Calls wait for files without the interpreter.

use crate::error::Trouble;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Error, Options, Region, Rvm};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An open log and its segments.
#[pyclass(frozen, module = "nvlab._nvlab")]
struct RvmStore {
    /// `None` once it is closed.
    rvm: Mutex<Option<Arc<Rvm>>>,
    folder: SegmentFolder,
    /// Shared with its regions, to tell them from others.
    mark: Arc<()>,
}

/// A region. The log stays open until it is closed.
#[pyclass(frozen, module = "nvlab._nvlab")]
struct RvmRegion {
    region: Mutex<Option<Region>>,
    mark: Arc<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> Error {
    Error::Invalid("it is closed".into())
}

impl RvmStore {
    fn rvm(&self) -> Result<Arc<Rvm>, Error> {
        locked(&self.rvm).clone().ok_or_else(closed)
    }
}

fn opened(folder: &Path, log_bytes: u64) -> Result<Rvm, Error> {
    let log = folder.join("log");
    if !log.exists() {
        FileLog::create(&log, log_bytes)?;
    }
    Rvm::open(FileLog::open(&log)?, SegmentFolder::new(folder), Options::default())
}

/// What is written where: region, offset, bytes.
type Written<'py> = (PyRef<'py, RvmRegion>, usize, Vec<u8>);

#[pymethods]
impl RvmStore {
    /// Opens the log of a folder, or creates it, and recovers.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, log_bytes: u64) -> Result<RvmStore, Trouble> {
        let rvm = py.detach(|| opened(&folder, log_bytes))?;
        Ok(RvmStore {
            rvm: Mutex::new(Some(Arc::new(rvm))),
            folder: SegmentFolder::new(folder),
            mark: Arc::default(),
        })
    }

    /// Maps a segment from its beginning; creates it if it does not exist.
    fn map(&self, py: Python<'_>, segment: &str, bytes: u64) -> Result<RvmRegion, Trouble> {
        let rvm = self.rvm()?;
        let region = py.detach(|| {
            if !self.folder.path(segment).exists() {
                self.folder.create(segment, bytes)?;
            }
            rvm.map(segment, 0..bytes)
        })?;
        Ok(RvmRegion { region: Mutex::new(Some(region)), mark: self.mark.clone() })
    }

    /// Commits, all or nothing; with `flush` it is durable when this returns.
    fn commit(&self, py: Python<'_>, written: Vec<Written<'_>>, flush: bool) -> Result<(), Trouble> {
        self.rvm()?;
        let written: Vec<(&RvmRegion, usize, &[u8])> =
            written.iter().map(|(region, at, bytes)| (&**region, *at, bytes.as_slice())).collect();
        Ok(py.detach(|| commit(&self.mark, &written, flush))?)
    }

    /// Waits until all that was committed is durable.
    fn flush(&self, py: Python<'_>) -> Result<(), Trouble> {
        let rvm = self.rvm()?;
        Ok(py.detach(|| rvm.flush())?)
    }

    /// Applies the log to the segments and empties it.
    fn truncate(&self, py: Python<'_>) -> Result<(), Trouble> {
        let rvm = self.rvm()?;
        Ok(py.detach(|| rvm.truncate())?)
    }

    /// What opening it found: commits, bytes of the log, bytes written to segments.
    fn recovery(&self) -> Result<(u64, u64, u64), Trouble> {
        let recovery = self.rvm()?.recovery();
        Ok((recovery.commits, recovery.log_bytes, recovery.applied_bytes))
    }

    /// Lets go of the log; regions that are open keep it.
    fn close(&self, py: Python<'_>) {
        let rvm = locked(&self.rvm).take();
        py.detach(|| drop(rvm));
    }
}

/// Regions are locked in the order of their addresses, so that transactions do not wait for each other in a circle.
fn commit(mark: &Arc<()>, written: &[(&RvmRegion, usize, &[u8])], flush: bool) -> Result<(), Error> {
    let mut regions: Vec<&RvmRegion> = written.iter().map(|(region, ..)| *region).collect();
    regions.sort_by_key(|region| std::ptr::from_ref(*region));
    regions.dedup_by_key(|region| std::ptr::from_ref(*region));
    if regions.iter().any(|region| !Arc::ptr_eq(&region.mark, mark)) {
        return Err(Error::Invalid("a transaction changes regions of its own store".into()));
    }
    let mut guards: Vec<_> = regions.iter().map(|region| locked(&region.region)).collect();
    let mut open = guards.iter_mut().map(|guard| guard.as_mut().ok_or_else(closed));
    let Some(first) = open.next() else { return Ok(()) };
    let mut transaction = first?.begin();
    let others = open.map(|region| transaction.include(region?)).collect::<Result<Vec<_>, Error>>()?;
    for (region, at, bytes) in written {
        let place =
            regions.iter().position(|known| std::ptr::eq(*known, *region)).expect("it is one of them");
        match place {
            0 => transaction.write(*at, bytes)?,
            place => {
                let range = *at..at.saturating_add(bytes.len());
                transaction.set_range_in(others[place - 1], range)?.copy_from_slice(bytes);
            }
        }
    }
    if flush { transaction.commit() } else { transaction.commit_no_flush() }
}

#[pymethods]
impl RvmRegion {
    /// A copy of some bytes.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: usize,
        count: usize,
    ) -> Result<Bound<'py, PyBytes>, Trouble> {
        // Another thread may hold the region while it waits for a file.
        let bytes = py.detach(|| {
            let region = locked(&self.region);
            let region = region.as_ref().ok_or_else(closed)?;
            let bytes = region[..].get(offset..offset.saturating_add(count)).map(<[u8]>::to_vec);
            let outside = || format!("{count} B at {offset}: the region has {} B", region.len());
            bytes.ok_or_else(|| Error::Invalid(outside()))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize, Trouble> {
        Ok(py.detach(|| locked(&self.region).as_ref().map(|region| region.len()).ok_or_else(closed))?)
    }

    /// Unmaps it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.region).take()));
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RvmStore>()?;
    module.add_class::<RvmRegion>()
}
