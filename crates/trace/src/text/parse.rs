//! Parses the lines of a trace: blocks of lines are read, parsed and joined in the order of the file. While some blocks are
//! parsed, each on a core of its own, the next ones are read and those before are joined.
//!
//! A block is parsed as if nothing came before it. Where that is not so (a line that is wrong, a format whose lines depend on
//! those before), it is parsed again when its turn comes, with all that came before known. On one core all blocks are parsed
//! then only: there is nothing to gain, and a copy to save.

use crate::TraceError;
use crate::columns::{Columns, Origin, ROWS_MAX};
use crate::options::ReadOptions;
use crate::report::ReadReport;
use crate::rows::{Part, Rows};
use crate::text::lines::{Bad, BadLine, Block, Blocks, Line};
use rayon::prelude::*;
use std::io::Read;
use std::path::Path;

/// Blocks parsed at once, for each core: enough that none waits long for the others.
const BLOCKS_PER_CORE: usize = 4;

/// Requests of a part of a trace that is read in parts.
const PART_ROWS: usize = 4 << 20;

/// A text format: how to read one line.
pub(crate) trait LineFormat: Clone + Send {
    /// The unit of its times, in picoseconds.
    const TICK_PS: u64;
    /// The column names, for messages; also accepted as a first line.
    const COLUMNS: &'static str;

    /// The unit of the times of this text, in picoseconds.
    fn tick_ps(&self) -> u64 {
        Self::TICK_PS
    }

    /// Whether a first line says what the columns are.
    fn is_heading(&self, line: &[u8]) -> bool {
        line.eq_ignore_ascii_case(Self::COLUMNS.as_bytes())
    }

    /// False if a text that begins so is of another format, though its lines fit.
    fn may_begin(_head: &[Vec<u8>]) -> bool {
        true
    }

    /// Reads one line that is not blank.
    fn line(&mut self, line: Line<'_>, rows: &mut Rows) -> Result<(), BadLine>;

    /// Whether the next line means what it would mean as the first.
    fn is_free(&self) -> bool {
        true
    }
}

/// A block that is parsed as if nothing came before it.
struct Slot<F> {
    block: Block,
    format: F,
    part: Part,
    lines: u64,
    /// Whether it is right, as far as the block alone can tell.
    is_good: bool,
}

impl<F: LineFormat> Slot<F> {
    fn parse(&mut self) {
        self.is_good = false;
        if self.block.is_empty() || !self.format.is_free() {
            return;
        }
        let Slot { block, format, part, .. } = self;
        let (lines, result) = block.for_each(|line, _| format.line(line, part.rows()));
        (self.lines, self.is_good) = (lines, result.is_ok() && self.format.is_free());
    }
}

/// The state of parsing after some blocks.
struct Parser<'a, F> {
    path: &'a Path,
    skip_bad: u64,
    fresh: F,
    format: F,
    rows: Rows,
    lines: u64,
    /// Bytes of the lines so far.
    bytes: u64,
    /// Bytes of the whole text; 0 if they are not known, or have been used to expect rows.
    expected_bytes: u64,
    /// The most rows to expect.
    expected_rows_max: u64,
}

impl<F: LineFormat> Parser<'_, F> {
    /// Adds the blocks of all slots, in order.
    fn add_all(&mut self, slots: &mut [Slot<F>]) -> Result<(), TraceError> {
        for slot in slots.iter_mut().filter(|slot| !slot.block.is_empty()) {
            self.add(slot)?;
            self.bytes += slot.block.bytes() as u64;
        }
        if self.bytes > 0 && self.expected_bytes > 0 {
            // As many as there are in the first blocks, and a few more: later lines may be shorter.
            let rows = self.rows.len() as f64 * (self.expected_bytes as f64 / self.bytes as f64) * 1.05;
            self.rows.expect((rows as u64).min(self.expected_rows_max) as usize);
            self.expected_bytes = 0;
        }
        Ok(())
    }

    /// Adds the block of a slot.
    fn add(&mut self, slot: &mut Slot<F>) -> Result<(), TraceError> {
        if slot.is_good && self.format.is_free() && self.rows.append(&mut slot.part) {
            self.lines += slot.lines;
            return Ok(());
        }
        slot.part.clear();
        slot.format = self.fresh.clone();
        let Parser { format, rows, skip_bad, .. } = self;
        let mut is_first = self.lines == 0;
        let (lines, result) = slot.block.for_each(|line, has_end| {
            if std::mem::take(&mut is_first) && format.is_heading(line.text()) {
                rows.report.other_lines += 1;
                return Ok(());
            }
            if rows.is_full() {
                let allowed = "at most 2^30 requests; read single volumes with volume=NAME";
                return Err(Bad::bytes("line", line.text(), allowed));
            }
            format.line(line, rows).or_else(|bad| rows.forgive(bad, has_end, *skip_bad))
        });
        self.lines += lines;
        result.map_err(|bad| bad.at(self.path, self.lines))
    }
}

/// Takes a part of a trace.
pub(crate) type Taker<'a> = &'a mut dyn FnMut(Columns) -> Result<(), TraceError>;

/// Reads all lines, or at least `options.lines_max`, of a text of `expected_bytes` (0: not known). With a taker, parts of at least
/// [`PART_ROWS`] requests go to it, and only the last one is returned.
pub(crate) fn parse<F: LineFormat>(
    format: F,
    (mut blocks, expected_bytes): (Blocks<impl Read + Send>, u64),
    report: ReadReport,
    path: &Path,
    options: &ReadOptions,
    mut taker: Option<Taker<'_>>,
) -> Result<(Columns, ReadReport), TraceError> {
    let (name, tick_ps) = (path.display().to_string(), format.tick_ps());
    let file_error = |source| TraceError::File { path: path.to_owned(), source };
    let slot = || {
        let part = Part::new(&options.volumes);
        Slot { block: Block::default(), format: format.clone(), part, lines: 0, is_good: false }
    };
    let cores = if options.lines_max.is_some() { 1 } else { rayon::current_num_threads() };
    let count = if cores == 1 { 1 } else { cores * BLOCKS_PER_CORE };
    let slots = || -> Vec<Slot<F>> { (0..count).map(|_| slot()).collect() };
    // Three rounds of blocks: those to be joined, to be parsed, to be read.
    let (mut before, mut now, mut next) = (slots(), slots(), slots());
    let mut parser = Parser {
        path,
        skip_bad: options.skip_bad,
        fresh: format.clone(),
        format: format.clone(),
        rows: Rows::new(&options.volumes, report),
        lines: 0,
        bytes: 0,
        expected_bytes: if options.lines_max.is_some() { 0 } else { expected_bytes },
        expected_rows_max: if taker.is_some() { 2 * PART_ROWS as u64 } else { ROWS_MAX },
    };
    let mut fill = |slots: &mut [Slot<F>]| slots.iter_mut().try_for_each(|slot| blocks.fill(&mut slot.block));
    fill(&mut now).map_err(file_error)?;
    loop {
        let is_last = now[0].block.is_empty();
        let (filled, added) = match cores {
            1 => (fill(&mut next), parser.add_all(&mut before)),
            _ => rayon::join(
                || fill(&mut next),
                || {
                    let parse = || now.par_iter_mut().for_each(Slot::parse);
                    rayon::join(parse, || parser.add_all(&mut before)).1
                },
            ),
        };
        added?;
        if let Err(error) = filled {
            parser.add_all(&mut now)?;
            return Err(file_error(error));
        }
        if let Some(taker) = taker.as_mut().filter(|_| parser.rows.len() >= PART_ROWS) {
            parser.rows.take(&name, tick_ps, Origin::default(), false)?.map_or(Ok(()), taker)?;
        }
        if is_last || options.lines_max.is_some_and(|most| parser.lines >= most) {
            break;
        }
        std::mem::swap(&mut before, &mut now);
        std::mem::swap(&mut now, &mut next);
    }
    let Parser { mut rows, lines, .. } = parser;
    rows.report.lines = lines;
    if let Some(taker) = taker.filter(|_| rows.is_holding() && rows.len() > 0) {
        rows.take(&name, tick_ps, Origin::default(), true)?.map_or(Ok(()), taker)?;
    }
    rows.finish(&name, tick_ps, Origin::default())
}
