//! Blocks: their headers, and how they enter and leave the free lists.

use super::{Counter, Error, Heap, LISTS, Result, Words};

/// Where the link to the next free block is, from its header. The link to the previous one follows.
pub(super) const LINKS: u64 = 8;
/// The link of the last block: no block begins at offset 0.
pub(super) const FREE: u64 = 0;

const USED: u64 = 1;
const AFTER_FREE: u64 = 2;
const CHUNKS_MAX: u64 = (1 << 46) - 1;
const CHECK_SHIFT: u32 = 48;

/// What the first word of a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) chunks: u64,
    pub(super) used: bool,
    /// Whether the block before it is free.
    pub(super) after_free: bool,
}

/// 16 bits that a header has because of its place and contents.
fn check(at: u64, contents: u64) -> u64 {
    let mixed = (contents ^ at.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> CHECK_SHIFT
}

impl Header {
    /// Its word at an offset.
    pub(super) fn encode(self, at: u64) -> u64 {
        assert!(self.chunks <= CHUNKS_MAX, "a block of {} chunks", self.chunks);
        let flags = u64::from(self.used) * USED + u64::from(self.after_free) * AFTER_FREE;
        let contents = self.chunks << 2 | flags;
        contents | check(at, contents) << CHECK_SHIFT
    }

    fn decode(at: u64, word: u64) -> Option<Header> {
        let contents = word & ((1 << CHECK_SHIFT) - 1);
        let (used, after_free) = (contents & USED != 0, contents & AFTER_FREE != 0);
        (word >> CHECK_SHIFT == check(at, contents)).then_some(Header {
            chunks: contents >> 2,
            used,
            after_free,
        })
    }
}

impl Heap {
    /// Whether a block may begin there.
    fn is_place(&self, at: u64) -> bool {
        at >= self.first && at < self.end && (at - self.first).is_multiple_of(self.chunk_bytes)
    }

    /// The header there: that of a block, or the end word.
    pub(super) fn header<W: Words>(&self, words: &W, at: u64) -> Result<Header> {
        let damaged = |why| Err(Error::Damaged { at, why });
        if !self.is_place(at) && at != self.end {
            return damaged("no block can begin here");
        }
        let Some(header) = Header::decode(at, words.get(at)) else {
            return damaged("the header of a block was overwritten");
        };
        match header.chunks.checked_mul(self.chunk_bytes) {
            Some(bytes) if bytes <= self.end - at && (bytes == 0) == (at == self.end) => Ok(header),
            _ => damaged("a block has an impossible size"),
        }
    }

    /// The header of a free block.
    pub(super) fn free_header<W: Words>(&self, words: &W, at: u64) -> Result<Header> {
        let header = self.header(words, at)?;
        match header.used {
            true => Err(Error::Damaged { at, why: "a used block is in a free list" }),
            false => Ok(header),
        }
    }

    /// The header, with its place, of the used block whose contents begin at an offset.
    pub(super) fn used_block<W: Words>(&self, words: &W, at: u64) -> Result<(u64, Header)> {
        let block = at.wrapping_sub(8);
        if !self.is_place(block) {
            return Err(Error::Invalid(format!("no block can begin at offset {at}")));
        }
        let header = self.header(words, block)?;
        if header.used { Ok((block, header)) } else { Err(Error::FreedTwice(at)) }
    }

    /// The free block before the one at an offset.
    pub(super) fn free_before<W: Words>(&self, words: &W, at: u64) -> Result<(u64, Header)> {
        let damaged =
            Error::Damaged { at: at - 8, why: "the size at the end of a free block was overwritten" };
        let chunks = words.get(at - 8);
        let bytes = chunks.checked_mul(self.chunk_bytes).filter(|&bytes| bytes <= at - self.first);
        let before = at - bytes.ok_or(damaged.clone())?;
        let header = self.free_header(words, before)?;
        if header.chunks == chunks { Ok((before, header)) } else { Err(damaged) }
    }

    /// Writes a free block and puts it at the head of its list.
    pub(super) fn put_free<W: Words>(&self, words: &mut W, at: u64, header: Header) -> Result<()> {
        words.set(at, header.encode(at))?;
        words.set(at + header.chunks * self.chunk_bytes - 8, header.chunks)?;
        self.link(words, at, header)
    }

    fn link<W: Words>(&self, words: &mut W, at: u64, header: Header) -> Result<()> {
        let list = self.list(header.chunks);
        let next = words.get(LISTS + 8 * list);
        if next != FREE {
            self.free_header(words, next)?;
            words.set(next + LINKS + 8, at)?;
        } else if list == self.lists - 1 {
            self.count(words, Counter::LargeChanges, 1)?;
        }
        words.set(at + LINKS, next)?;
        words.set(at + LINKS + 8, FREE)?;
        Ok(words.set(LISTS + 8 * list, at)?)
    }

    /// Takes a free block out of its list.
    pub(super) fn unlink<W: Words>(&self, words: &mut W, at: u64, header: Header) -> Result<()> {
        let (next, previous) = (words.get(at + LINKS), words.get(at + LINKS + 8));
        let list = self.list(header.chunks);
        let points_here = match previous {
            FREE => words.get(LISTS + 8 * list) == at,
            previous => self.free_header(words, previous).is_ok() && words.get(previous + LINKS) == at,
        };
        let is_pointed_to =
            next == FREE || self.free_header(words, next).is_ok() && words.get(next + LINKS + 8) == at;
        if !points_here || !is_pointed_to {
            return Err(Error::Damaged { at, why: "a free list is damaged" });
        }
        match previous {
            FREE => words.set(LISTS + 8 * list, next)?,
            previous => words.set(previous + LINKS, next)?,
        }
        if next != FREE {
            words.set(next + LINKS + 8, previous)?;
        } else if previous == FREE && list == self.lists - 1 {
            self.count(words, Counter::LargeChanges, 1)?;
        }
        Ok(())
    }

    /// Changes the size of a free block, which keeps its place in its list if that is still the right one.
    pub(super) fn resize<W: Words>(&self, words: &mut W, at: u64, header: Header, chunks: u64) -> Result<()> {
        let resized = Header { chunks, ..header };
        if self.list(chunks) != self.list(header.chunks) {
            self.unlink(words, at, header)?;
            return self.put_free(words, at, resized);
        }
        words.set(at, resized.encode(at))?;
        Ok(words.set(at + chunks * self.chunk_bytes - 8, chunks)?)
    }

    /// Tells the block after one whether that is free.
    pub(super) fn tell_next<W: Words>(
        &self,
        words: &mut W,
        at: u64,
        chunks: u64,
        is_free: bool,
    ) -> Result<()> {
        let next = at + chunks * self.chunk_bytes;
        let header = self.header(words, next)?;
        if header.after_free == is_free {
            return Ok(());
        }
        Ok(words.set(next, Header { after_free: is_free, ..header }.encode(next))?)
    }
}
