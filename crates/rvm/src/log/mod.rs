//! Logs: one file for each kind, behind one small trait.
//!
//! A log is a sequence of bytes that is appended at its tail and dropped at its head. Both are *positions*, which
//! count bytes since the log was created and never decrease; a log finds the place of a position itself. The meaning
//! of the bytes is defined in [`crate::record`]: every record has a checksum that begins with the log's identity, its
//! generation and the position, so the tail need not be stored: it is where the next record is invalid.

pub mod battery_ram;
pub mod file;
pub mod flash;
pub mod flash_disk;
pub mod hybrid;
pub mod status;

use crate::core::View;
use crate::flash::by_piece;
use crate::{Error, Result};
use std::fmt::Debug;

/// What a log keeps in its status, durable once the call that changes it has returned. After a power failure during
/// that call it is the old or the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// A random number given to the log when it was created.
    pub identity: u64,
    /// Counts resets: records of an earlier generation are not found again.
    pub generation: u64,
    /// Position of the oldest record that is still needed.
    pub head: u64,
}

impl Status {
    /// The status after a reset: no record of before is found again.
    fn next_generation(self, head: u64) -> Status {
        Status { generation: self.generation + 1, head, ..self }
    }

    /// Refuses an append of `bytes` bytes that does not begin at the tail or does not fit.
    fn check_append(&self, tail: Option<u64>, capacity: u64, position: u64, bytes: usize) -> Result<()> {
        if tail == Some(position) && position + bytes as u64 <= self.head + capacity {
            return Ok(());
        }
        let head = self.head;
        Err(Error::Invalid(format!("{bytes} B at position {position} of a log from {head} to {tail:?}")))
    }

    /// Refuses a new head that is not between head and tail.
    fn check_head(&self, tail: Option<u64>, head: u64) -> Result<()> {
        if tail.is_some_and(|tail| (self.head..=tail).contains(&head)) {
            return Ok(());
        }
        Err(Error::Invalid(format!("a new head {head}; the log is from {} to {tail:?}", self.head)))
    }
}

fn cannot_cut(name: &str) -> Error {
    Error::Invalid(format!("{name}: a log of this kind cannot be shortened at its end"))
}

/// Rewrites what can be read from the head to `tail` ([`Log::rewrite`]); durable when it returns.
pub fn rewrite_to(log: &mut dyn Log, tail: u64) -> Result<()> {
    log.begin_rewrite()?;
    by_piece(log.status().head, tail, |position, piece| {
        log.read(position, piece)?;
        log.rewrite(position, piece)
    })?;
    log.end_rewrite()
}

/// A place for records. It takes one caller at a time; whoever opened it is the only one.
pub trait Log: Debug + Send {
    /// Its name in messages: the path of a file, the name of a device.
    fn name(&self) -> String;
    /// Bytes that can be between head and tail.
    fn capacity(&self) -> u64;
    /// What is durable of the log besides its records.
    fn status(&self) -> Status;
    /// Reads the bytes at `position`, between the head and the head plus the capacity. Bytes never written since the head
    /// passed them last may be anything.
    fn read(&mut self, position: u64, into: &mut [u8]) -> Result<()>;
    /// Writes `data` at `position`, the tail: where the last append ended, or the head after a reset. It is within the
    /// capacity. Durable after [`Log::force`]; before, a power failure may keep any part of it.
    fn append(&mut self, position: u64, data: &[u8]) -> Result<()>;
    /// Begins to write once more what the log holds, before anything of it is read for that. A log that does not take what is to be
    /// written from its caller writes it now, all of it durably; its status may be an earlier one afterwards.
    fn begin_rewrite(&mut self) -> Result<()> {
        Ok(())
    }
    /// Writes `data`, which was read at `position` and checks, once more; durable after [`Log::end_rewrite`]. Recovery calls it for all
    /// from the head to the tail, in order, before it applies a record: what a program left that was killed, or whose sync failed,
    /// can be read from the page cache and need not be on the disk. After a failed sync it is marked clean, so that no other sync
    /// would write it.
    fn rewrite(&mut self, position: u64, data: &[u8]) -> Result<()>;
    /// Writes the status once more, and makes it and everything rewritten durable.
    fn end_rewrite(&mut self) -> Result<()>;
    /// Least bytes worth writing ahead; `None`: it writes nothing ahead.
    fn ahead_bytes_min(&self) -> Option<usize> {
        None
    }
    /// Begins to write what will most likely be appended at `position`, not before the tail, and does not wait for it; returns the bytes
    /// that no earlier call has written. They are no part of the log before they are appended; an append that brings other bytes writes
    /// those.
    fn write_ahead(&mut self, _position: u64, _data: &[u8]) -> Result<usize> {
        Ok(0)
    }
    /// Of the bytes written ahead, those that no append has used: another came first, or brought other bytes.
    fn ahead_wasted_bytes(&self) -> u64 {
        0
    }
    /// Makes every append before durable. Once it has failed, so do all calls that write: a later sync may succeed although it
    /// does not write what the failed one should have.
    fn force(&mut self) -> Result<()>;
    /// Moves the head forward to `head`, a position not after the tail; durable when it returns. The space before it may be
    /// used again.
    fn truncate(&mut self, head: u64) -> Result<()>;
    /// Begins a new generation with an empty log, after the records up to `tail` have been applied; durable when it
    /// returns. Returns the new head, where the next append begins: `tail` or somewhat later.
    fn reset(&mut self, tail: u64) -> Result<u64>;
    /// Makes `tail`, where a record cannot be read, the end: nothing behind it can be read any more. Durable when it returns. A power
    /// failure meanwhile leaves everything before `tail` as it was. Logs that cannot be repaired in place refuse.
    fn cut(&mut self, _tail: u64) -> Result<()> {
        Err(cannot_cut(&self.name()))
    }
    /// A position before which everything was durable. It is not more than 1 MiB before the end of the last forced append, or that
    /// append alone lies behind it. `None`: the log keeps no such mark.
    fn mark(&self) -> Option<u64> {
        None
    }
    /// Whether it is flash: all bits are set where nothing has been written since the head passed.
    fn is_flash(&self) -> bool {
        false
    }
    /// Its contents in memory, for a log that is mapped.
    fn view(&self) -> Result<Option<View>> {
        Ok(None)
    }
    /// The offset from the beginning of the file or device where the byte at `position` lies, for messages.
    fn offset(&self, position: u64) -> u64;
    /// The name of that file or device, of a log that has several.
    fn name_at(&self, _position: u64) -> String {
        self.name()
    }
}

impl<L: Log + ?Sized> Log for Box<L> {
    fn name(&self) -> String {
        (**self).name()
    }
    fn capacity(&self) -> u64 {
        (**self).capacity()
    }
    fn status(&self) -> Status {
        (**self).status()
    }
    fn read(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        (**self).read(position, into)
    }
    fn append(&mut self, position: u64, data: &[u8]) -> Result<()> {
        (**self).append(position, data)
    }
    fn ahead_bytes_min(&self) -> Option<usize> {
        (**self).ahead_bytes_min()
    }
    fn write_ahead(&mut self, position: u64, data: &[u8]) -> Result<usize> {
        (**self).write_ahead(position, data)
    }
    fn ahead_wasted_bytes(&self) -> u64 {
        (**self).ahead_wasted_bytes()
    }
    fn begin_rewrite(&mut self) -> Result<()> {
        (**self).begin_rewrite()
    }
    fn rewrite(&mut self, position: u64, data: &[u8]) -> Result<()> {
        (**self).rewrite(position, data)
    }
    fn end_rewrite(&mut self) -> Result<()> {
        (**self).end_rewrite()
    }
    fn force(&mut self) -> Result<()> {
        (**self).force()
    }
    fn truncate(&mut self, head: u64) -> Result<()> {
        (**self).truncate(head)
    }
    fn reset(&mut self, tail: u64) -> Result<u64> {
        (**self).reset(tail)
    }
    fn cut(&mut self, tail: u64) -> Result<()> {
        (**self).cut(tail)
    }
    fn mark(&self) -> Option<u64> {
        (**self).mark()
    }
    fn is_flash(&self) -> bool {
        (**self).is_flash()
    }
    fn view(&self) -> Result<Option<View>> {
        (**self).view()
    }
    fn offset(&self, position: u64) -> u64 {
        (**self).offset(position)
    }
    fn name_at(&self, position: u64) -> String {
        (**self).name_at(position)
    }
}
