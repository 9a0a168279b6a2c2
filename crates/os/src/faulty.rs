//! A file that fails on demand: for tests of code that must survive I/O errors and power failures.
//!
//! It passes everything through to a real file and counts operations (reads, writes, changes of length, syncs) from 1.
//! The operation named by a [`Fault`] fails as it says; the others succeed. The file remembers what every change since
//! the last successful sync replaced, so that [`FaultyFile::power_failure`] can undo exactly what was not durable.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a planned failure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing is done, and the operation fails with EIO.
    Eio,
    /// Nothing is done, and the operation fails with ENOSPC.
    Enospc,
    /// A write (or read) transfers half of its bytes, rounded down, and says so. Other operations succeed.
    Short,
    /// A sync returns success and makes nothing durable. Other operations succeed.
    LostSync,
}

/// A failure planned for one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of the operation, counted from 1.
    pub operation: u64,
    /// What happens instead of the operation.
    pub failure: Failure,
}

/// What a change replaced.
#[derive(Debug)]
struct Undo {
    offset: u64,
    bytes: Vec<u8>,
    length: u64,
}

#[derive(Debug)]
struct State {
    faults: Vec<Fault>,
    operations: u64,
    unsynced: Vec<Undo>,
}

/// A file with planned failures. Everything in it counts as durable at first.
#[derive(Debug)]
pub struct FaultyFile {
    file: File,
    state: Mutex<State>,
}

impl FaultyFile {
    /// A file, open for reading and writing, that will fail as planned.
    pub fn new(file: File, faults: &[Fault]) -> FaultyFile {
        let state = State { faults: faults.to_vec(), operations: 0, unsynced: Vec::new() };
        FaultyFile { file, state: Mutex::new(state) }
    }

    /// Reads, writes, changes of length and syncs so far, failed ones included.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Changes the length, like [`File::set_len`].
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state();
        state.begin()?;
        let old = self.file.metadata()?.len();
        self.remember(&mut state, length, old.saturating_sub(length))?;
        self.file.set_len(length)
    }

    /// Makes everything before durable, like [`File::sync_data`].
    pub fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.begin()? != Some(Failure::LostSync) {
            self.file.sync_data()?;
            state.unsynced.clear();
        }
        Ok(())
    }

    /// The power fails: every change since the last successful sync is undone. Returns the file as it is found again.
    pub fn power_failure(self) -> io::Result<File> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        for undo in state.unsynced.iter().rev() {
            self.file.write_all_at(&undo.bytes, undo.offset)?;
            self.file.set_len(undo.length)?;
        }
        Ok(self.file)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a change of `bytes` at `offset` is about to replace.
    fn remember(&self, state: &mut State, offset: u64, bytes: u64) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let mut old = vec![0; bytes.min(length.saturating_sub(offset)) as usize];
        self.file.read_exact_at(&mut old, offset)?;
        state.unsynced.push(Undo { offset, bytes: old, length });
        Ok(())
    }
}

impl State {
    /// Counts an operation; the error of a planned one, or a failure that the operation itself acts on.
    fn begin(&mut self) -> io::Result<Option<Failure>> {
        self.operations += 1;
        let failure = self.faults.iter().find(|fault| fault.operation == self.operations);
        match failure.map(|fault| fault.failure) {
            Some(Failure::Eio) => Err(io::Error::from_raw_os_error(libc::EIO)),
            Some(Failure::Enospc) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            other => Ok(other),
        }
    }

    /// Counts a transfer of `bytes`; how many of them it may move.
    fn begin_transfer(&mut self, bytes: usize) -> io::Result<usize> {
        Ok(if self.begin()? == Some(Failure::Short) { bytes / 2 } else { bytes })
    }
}

impl FileExt for FaultyFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.state().begin_transfer(into.len())?;
        self.file.read_at(&mut into[..bytes], offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        let bytes = state.begin_transfer(data.len())?;
        self.remember(&mut state, offset, bytes as u64)?;
        self.file.write_all_at(&data[..bytes], offset)?;
        Ok(bytes)
    }
}
