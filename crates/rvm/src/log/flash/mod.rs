//! A log on flash: appended by programming bytes where they are, truncated by erasing blocks.
//!
//! The log is circular over its erase blocks: the byte at position p is in block (p / block bytes) modulo the number of
//! blocks. Worn-out blocks are retired by [`remap`], the status is kept by a [`mini_log`] (Price and Nettles, "Transactions
//! in a Flash", 1996, slides 19 to 21).
//!
//! 1. Only erased bytes are programmed. The tail never reaches a block that still holds a byte of the log or has not
//!    been erased since: the blocks from that of the head to that of the tail are distinct. So the capacity is one
//!    block less than all of them, because the head may be anywhere in its block.
//! 2. The status changes first, then the blocks before the new head are erased. A power failure in between leaves
//!    unused blocks that will be erased by the next reset; the other order would leave a head at erased records.
//! 3. After opening nothing is known to be erased (an interrupted erase may look like a complete one), so nothing is
//!    appended before [`Log::reset`], which then erases every block. Later it erases those that were used.
//! 4. An append is durable when it returns; [`Log::force`] has nothing to do.
//! 5. After an error of the device the log refuses all work until it is opened again.
//!
//! # Format, version 1
//!
//! The device below has the format of [`remap`]. Of its blocks, 0 to 2 are the mini-log of the status, kind `stat`; the others
//! are the log. So besides spares, six erase blocks are not the log's. The value of the status: generation, head, and the
//! number of blocks of the log (8 B each, little-endian); both mini-logs have the identity of the log.

pub mod mini_log;
pub mod remap;

use crate::flash::{Erased, Flash, PlainFile, by_block, by_piece};
use crate::log::{Log, Status};
use crate::{Error, Result};
use mini_log::{MiniLog, Place};
use remap::Remap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const KIND: [u8; 4] = *b"stat";
const STATUS: Place = Place { first: 0, data_blocks: 2 };

/// A log on a flash device with erase blocks, without a translation layer.
#[derive(Debug)]
pub struct FlashLog<F> {
    flash: Remap<F>,
    status_log: MiniLog,
    status: Status,
    /// Where the next append begins; none before the reset that follows opening.
    tail: Option<u64>,
    /// Blocks, counted from position 0, that may be programmed: those before this one.
    erased_to: u64,
    failed: Option<Arc<Error>>,
}

fn encode(status: Status, blocks: u64) -> [u8; 24] {
    let mut value = [0; 24];
    for (into, field) in value.as_chunks_mut().0.iter_mut().zip([status.generation, status.head, blocks]) {
        *into = field.to_le_bytes();
    }
    value
}

impl FlashLog<PlainFile> {
    /// Opens the log in a file laid out as flash, with the erase blocks that the log says it was made for. A power failure
    /// may have torn what says it: then [`PlainFile::open`] has to be told.
    pub fn open_file(path: &Path) -> Result<FlashLog<PlainFile>> {
        let name = path.display();
        let found = FlashLog::block_bytes_of(path).map_err(Error::io("read", &name))?;
        let Some(block_bytes) = found else {
            let why = "this is not a log: it does not begin with the header of one".into();
            return Err(Error::Format { what: name.to_string(), offset: 0, why });
        };
        FlashLog::open(PlainFile::open(path, block_bytes)?)
    }

    /// Whether a file begins like a log on flash.
    pub(crate) fn is_in_file(path: &Path) -> bool {
        matches!(FlashLog::block_bytes_of(path), Ok(Some(_)))
    }

    fn block_bytes_of(path: &Path) -> io::Result<Option<u64>> {
        let mut header = [0; mini_log::HEADER];
        match File::open(path)?.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            read => read.map(|()| mini_log::block_bytes_of(&header)),
        }
    }
}

impl<F: Flash> FlashLog<F> {
    /// Makes an empty log of a device, with so many spare blocks to take the place of worn-out ones; durable when it returns.
    /// What was on the device is lost. The log takes the other blocks but six, and needs at least two.
    pub fn create(flash: F, identity: u64, spares: u32) -> Result<FlashLog<F>> {
        let mut flash = Remap::create(flash, identity, spares)?;
        let blocks = flash.shape().blocks;
        if blocks < STATUS.blocks() + 2 {
            let why = format!(
                "{blocks} erase blocks for status and log: at least {} are needed",
                STATUS.blocks() + 2
            );
            return Err(Error::Invalid(why));
        }
        let blocks = u64::from(blocks - STATUS.blocks());
        let status = Status { identity, generation: 0, head: 0 };
        // The status says that there is a log: it comes last.
        erase_log(&mut flash, 0..blocks, blocks)?;
        let status_log = MiniLog::create(&mut flash, STATUS, KIND, identity, &encode(status, blocks))?;
        Ok(FlashLog { flash, status_log, status, tail: Some(0), erased_to: blocks, failed: None })
    }

    /// Opens the log of a device. It can be read; [`Log::reset`] makes it ready for appends.
    pub fn open(flash: F) -> Result<FlashLog<F>> {
        let mut flash = Remap::open(flash)?;
        let (status_log, status) = read_status(&mut flash)?;
        Ok(FlashLog { flash, status_log, status, tail: None, erased_to: 0, failed: None })
    }

    /// Spare blocks that are no longer free.
    pub fn spares_used(&self) -> u32 {
        self.flash.spares_used()
    }

    fn block_bytes(&self) -> u64 {
        self.flash.shape().block_bytes
    }

    /// Blocks of the log.
    fn blocks(&self) -> u64 {
        u64::from(self.flash.shape().blocks - STATUS.blocks())
    }

    fn check(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(Error::Failed(error.clone())))
    }

    /// Remembers a failure: nobody knows what is on the device now.
    fn fail_on_error<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.failed = Some(Arc::new(error.clone())))
    }

    /// Where the byte at a position is among the blocks of the status and the log.
    fn place(&self, position: u64) -> u64 {
        let block_bytes = self.block_bytes();
        let block = u64::from(STATUS.blocks()) + position / block_bytes % self.blocks();
        block * block_bytes + position % block_bytes
    }

    fn program(&mut self, position: u64, data: &[u8]) -> Result<()> {
        let name = self.flash.name();
        for (block, within, range) in by_block(self.block_bytes(), position, data.len()) {
            let place = self.place(block * self.block_bytes() + within);
            self.flash.program(place, &data[range]).map_err(Error::io("append to", &name))?;
        }
        Ok(())
    }

    /// Changes the status, then erases the blocks, counted from position 0, that it gives up.
    fn advance(&mut self, status: Status, given_up: std::ops::Range<u64>) -> Result<()> {
        let blocks = self.blocks();
        self.status_log.commit(&mut self.flash, &encode(status, blocks))?;
        self.status = status;
        erase_log(&mut self.flash, given_up, blocks)?;
        self.erased_to = status.head / self.block_bytes() + blocks;
        Ok(())
    }
}

/// Finds the status of the log of a device.
fn read_status<F: Flash>(flash: &mut Remap<F>) -> Result<(MiniLog, Status)> {
    let status_log = match MiniLog::open(flash, STATUS, KIND) {
        Ok(log) => log,
        Err(Error::Format { what, offset, why }) => {
            return Err(Error::Format { what, offset: flash.device_offset(offset), why });
        }
        Err(Error::Damaged { what, offset, why }) => {
            return Err(Error::Damaged { what, offset: flash.device_offset(offset), why });
        }
        Err(error) => return Err(error),
    };
    let blocks = u64::from(flash.shape().blocks - STATUS.blocks());
    let fields: Vec<u64> =
        status_log.value().as_chunks().0.iter().map(|&field| u64::from_le_bytes(field)).collect();
    let identity = flash.identity();
    match *fields.as_slice() {
        [generation, head, found] if found == blocks && status_log.identity() == identity => {
            Ok((status_log, Status { identity, generation, head }))
        }
        _ => {
            let offset = flash.device_offset(0);
            let why = format!("the status {fields:?} does not fit a log of {blocks} blocks");
            Err(Error::Format { what: flash.name(), offset, why })
        }
    }
}

/// Erases blocks of the log, counted from position 0.
fn erase_log<F: Flash>(flash: &mut Remap<F>, blocks: std::ops::Range<u64>, of: u64) -> Result<()> {
    for block in blocks {
        let block = STATUS.blocks() + (block % of) as u32;
        let erased = match flash.erase(block) {
            Ok(Erased::Clean) => continue,
            Ok(Erased::WornOut) => Err(io::Error::other("it is worn out, and no spare is left")),
            Err(error) => Err(error),
        };
        return erased.map_err(Error::io("erase a log block of", &flash.name()));
    }
    Ok(())
}

impl<F: Flash> Log for FlashLog<F> {
    fn name(&self) -> String {
        self.flash.name()
    }

    fn capacity(&self) -> u64 {
        (self.blocks() - 1) * self.block_bytes()
    }

    fn status(&self) -> Status {
        self.status
    }

    fn read(&mut self, position: u64, into: &mut [u8]) -> Result<()> {
        self.check()?;
        let end = position.checked_add(into.len() as u64);
        if position < self.status.head || end.is_none_or(|end| end > self.status.head + self.capacity()) {
            let (bytes, head) = (into.len(), self.status.head);
            return Err(Error::Invalid(format!(
                "{bytes} B at position {position}; the log begins at {head}"
            )));
        }
        let name = self.flash.name();
        for (block, within, range) in by_block(self.block_bytes(), position, into.len()) {
            let place = self.place(block * self.block_bytes() + within);
            self.flash.read(place, &mut into[range]).map_err(Error::io("read", &name))?;
        }
        Ok(())
    }

    fn append(&mut self, position: u64, data: &[u8]) -> Result<()> {
        self.check()?;
        if self.tail != Some(position) {
            let why = format!("an append at position {position}; the tail is {:?}", self.tail);
            return Err(Error::Invalid(why));
        }
        let end = position + data.len() as u64;
        if end > self.erased_to * self.block_bytes() {
            let why = format!(
                "an append to position {end}; the log ends at {}",
                self.erased_to * self.block_bytes()
            );
            return Err(Error::Invalid(why));
        }
        let programmed = self.program(position, data);
        self.fail_on_error(programmed)?;
        self.tail = Some(end);
        Ok(())
    }

    /// What can be read from flash is on it, unless it is a file. That is written as a whole, with the status, which is then read
    /// again: the one that was found may be on no disk.
    fn begin_rewrite(&mut self) -> Result<()> {
        self.check()?;
        let rewritten = self.flash.rewrite().map_err(Error::io("write", &self.flash.name()));
        if self.fail_on_error(rewritten)? {
            let found = read_status(&mut self.flash);
            (self.status_log, self.status) = self.fail_on_error(found)?;
        }
        Ok(())
    }

    fn rewrite(&mut self, _position: u64, _data: &[u8]) -> Result<()> {
        self.check()
    }

    fn end_rewrite(&mut self) -> Result<()> {
        self.check()
    }

    fn force(&mut self) -> Result<()> {
        self.check()
    }

    fn truncate(&mut self, head: u64) -> Result<()> {
        self.check()?;
        self.status.check_head(self.tail, head)?;
        let given_up = self.status.head / self.block_bytes()..head / self.block_bytes();
        let status = Status { head, ..self.status };
        let advanced = self.advance(status, given_up);
        self.fail_on_error(advanced)
    }

    fn reset(&mut self, tail: u64) -> Result<u64> {
        self.check()?;
        let tail = tail.max(self.tail.unwrap_or(self.status.head));
        let next = tail.div_ceil(self.block_bytes());
        let given_up = match self.tail {
            None => next..next + self.blocks(),
            Some(_) => self.status.head / self.block_bytes()..next,
        };
        let status = self.status.next_generation(next * self.block_bytes());
        let advanced = self.advance(status, given_up);
        self.fail_on_error(advanced)?;
        self.tail = Some(status.head);
        Ok(status.head)
    }

    /// Clears all bits behind the tail. The next reset erases them.
    fn cut(&mut self, tail: u64) -> Result<()> {
        self.check()?;
        let end = self.status.head + self.capacity();
        let cut = by_piece(tail, end, |position, zeros| self.program(position, zeros));
        self.fail_on_error(cut)
    }

    fn is_flash(&self) -> bool {
        true
    }

    fn offset(&self, position: u64) -> u64 {
        self.flash.device_offset(self.place(position))
    }
}
