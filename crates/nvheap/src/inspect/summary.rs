//! Figures about a heap's file.

use super::Inspection;
use super::survey::{Pages, Problems, Survey};
use crate::error::Result;
use crate::layout::PAGE;
use crate::space::{CLASSES, block_bytes};

/// Figures of a heap that is not open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Version of the format.
    pub version: u64,
    /// Whether it has checksums of its contents ([`crate::Options::checksums`]).
    pub checksums: bool,
    /// The number drawn when the heap was created.
    pub identity: u64,
    /// The hash of the types.
    pub fingerprint: u64,
    /// The types of objects and, in brackets, of arrays' elements; the root's first.
    pub types: Vec<String>,
    /// Offset of the root, in bytes from the beginning of the file.
    pub root: u64,
    /// Bytes of the file, and its maximum size.
    pub bytes: u64,
    /// See `bytes`.
    pub bytes_max: u64,
    /// Pages of 64 KiB, those without blocks, and how many of these are at the end.
    pub pages: u64,
    /// See `pages`.
    pub free_pages: u64,
    /// See `pages`.
    pub free_pages_at_end: u64,
    /// Blocks by size; only sizes that have pages.
    pub sizes: Vec<BlockSize>,
    /// Blocks in use.
    pub blocks: u64,
    /// Bytes that objects and arrays take in them.
    pub live_bytes: u64,
    /// Bytes of pages outside objects: free pages, free blocks, and unused ends of blocks and pages.
    pub free_bytes: u64,
    /// Share of the bytes of pages with blocks that is outside objects: 0 to 1.
    pub fragmentation: f64,
    /// Maximum number of threads that use the heap at the same time.
    pub logs: u64,
    /// Bytes of each one's log.
    pub log_bytes: u64,
    /// Epochs up to this one need no recovery.
    pub epoch: u64,
    /// Records to be replayed: 0 if the heap was closed in order.
    pub records: u64,
    /// Log lists that hold objects to be destroyed when the heap is opened next.
    pub waiting: u64,
    /// How many times it was opened.
    pub opens: u64,
    /// How changes would be made durable where the file lies now.
    pub persistence: &'static str,
}

/// Blocks of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockSize {
    /// Bytes of a block; `None`: larger than the largest size, each in pages of its own.
    pub bytes: Option<u64>,
    /// Pages of such blocks.
    pub pages: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Blocks the pages have room for.
    pub room: u64,
    /// Bytes that objects and arrays take in them.
    pub live_bytes: u64,
}

impl Inspection {
    /// Counts pages and blocks.
    pub fn summary(&self) -> Result<Summary> {
        let mut problems = Problems::default();
        let (view, header) = (self.view(), &self.header);
        let survey = Survey::new(view, &mut problems)?;
        if let Some(problem) = problems.0.into_iter().next() {
            return Err(problem);
        }
        let layout = header.layout;
        let pages = (self.memory.bytes() - layout.data()) / PAGE;
        let size = |(class, &Pages { pages, blocks, used }): (usize, &Pages)| {
            let bytes = (class < CLASSES).then(|| block_bytes(class));
            let room = bytes.map_or(blocks, |bytes| pages * (PAGE / bytes));
            BlockSize { bytes, pages, blocks, room, live_bytes: used }
        };
        let live_bytes: u64 = survey.classes.iter().map(|class| class.used).sum();
        let used_bytes = (pages - survey.free_pages) * PAGE;
        let mut waiting = 0;
        for (log, list) in (0..layout.logs as usize).flat_map(|log| [(log, 0), (log, 1)]) {
            waiting += u64::from(view.list(log, list)? != 0);
        }
        Ok(Summary {
            version: header.version(),
            checksums: layout.checksums,
            identity: header.identity,
            fingerprint: header.fingerprint,
            types: self.schema.types().iter().map(|entry| entry.name.clone()).collect(),
            root: self.root_at(),
            bytes: self.file_bytes,
            bytes_max: layout.bytes(layout.pages_max),
            pages,
            free_pages: survey.free_pages,
            free_pages_at_end: survey.free_pages_at_end,
            sizes: survey.classes.iter().enumerate().filter(|(_, class)| class.pages > 0).map(size).collect(),
            blocks: survey.blocks.len() as u64,
            live_bytes,
            free_bytes: pages * PAGE - live_bytes,
            fragmentation: if used_bytes == 0 { 0.0 } else { 1.0 - live_bytes as f64 / used_bytes as f64 },
            logs: layout.logs,
            log_bytes: 2 * layout.half_bytes,
            epoch: header.epoch_done,
            records: self.replayed,
            waiting,
            opens: header.opens,
            persistence: self.memory.persistence()?,
        })
    }
}
