//! Parses the lines of a trace: blocks of lines are read, parsed and joined in the order of the file. While some blocks are
//! parsed, each on a core of its own, the next ones are read.
//!
//! A block is parsed as if nothing came before it. Where that is not so (a line that is wrong, a format whose lines depend on
//! those before), it is parsed again when its turn comes, with all that came before known.

use super::lines::{Bad, BadLine, Block, Blocks, Line};
use super::rows::{Part, Rows};
use super::{ReadOptions, ReadReport};
use crate::WorkloadError;
use crate::columns::{Columns, Origin};
use rayon::prelude::*;
use std::io::Read;
use std::path::Path;

/// Blocks parsed at once, for each core: enough that none waits long for the others.
const BLOCKS_PER_CORE: usize = 4;

/// Requests of a part of a trace that is read in parts.
const PART_ROWS: usize = 4 << 20;

/// A text format: how to read one line.
pub(super) trait LineFormat: Clone + Default + Send {
    /// The unit of its times, in picoseconds.
    const TICK_PS: u64;
    /// The column names, for messages; also accepted as a first line.
    const COLUMNS: &'static str;

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
    /// As far as can be told from the block alone.
    is_good: bool,
}

impl<F: LineFormat> Slot<F> {
    fn parse(&mut self) {
        if self.block.is_empty() || !self.format.is_free() {
            self.is_good = false;
            return;
        }
        let Slot { block, format, part, .. } = self;
        let (lines, result) = block.for_each(|line, _| format.line(line, part.rows()));
        (self.lines, self.is_good) = (lines, result.is_ok() && self.format.is_free());
    }
}

/// What was read so far.
struct Parser<'a, F> {
    path: &'a Path,
    skip_bad: u64,
    fresh: F,
    format: F,
    rows: Rows,
    lines: u64,
}

impl<F: LineFormat> Parser<'_, F> {
    /// Adds the next block.
    fn add(&mut self, slot: &mut Slot<F>) -> Result<(), WorkloadError> {
        if slot.is_good && self.format.is_free() && self.rows.append(&mut slot.part) {
            self.lines += slot.lines;
            return Ok(());
        }
        slot.part.clear();
        slot.format = self.fresh.clone();
        let Parser { format, rows, skip_bad, .. } = self;
        let mut is_first = self.lines == 0;
        let (lines, result) = slot.block.for_each(|line, has_end| {
            if std::mem::take(&mut is_first) && line.text().eq_ignore_ascii_case(F::COLUMNS.as_bytes()) {
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
pub(super) type Taker<'a> = &'a mut dyn FnMut(Columns) -> Result<(), WorkloadError>;

/// Reads all lines, or at least `options.lines_max`. With a taker, parts of at least [`PART_ROWS`] requests go to it, and only the
/// last one is returned.
pub(super) fn parse<F: LineFormat>(
    format: F,
    mut blocks: Blocks<impl Read + Send>,
    report: ReadReport,
    path: &Path,
    options: &ReadOptions,
    mut taker: Option<Taker<'_>>,
) -> Result<(Columns, ReadReport), WorkloadError> {
    let name = path.display().to_string();
    let file_error = |source| WorkloadError::File { path: path.to_owned(), source };
    let slot = || {
        let part = Part::new(&options.volumes);
        Slot { block: Block::default(), format: format.clone(), part, lines: 0, is_good: false }
    };
    let cores = rayon::current_num_threads();
    let count = if options.lines_max.is_some() { 1 } else { cores * BLOCKS_PER_CORE };
    let mut now: Vec<Slot<F>> = (0..count).map(|_| slot()).collect();
    let mut next: Vec<Slot<F>> = (0..count).map(|_| slot()).collect();
    let mut parser = Parser {
        path,
        skip_bad: options.skip_bad,
        fresh: format.clone(),
        format: format.clone(),
        rows: Rows::new(&options.volumes, report),
        lines: 0,
    };
    let mut fill = |slots: &mut [Slot<F>]| slots.iter_mut().try_for_each(|slot| blocks.fill(&mut slot.block));
    fill(&mut now).map_err(file_error)?;
    while !now[0].block.is_empty() && options.lines_max.is_none_or(|most| parser.lines < most) {
        let (filled, ()) = rayon::join(|| fill(&mut next), || now.par_iter_mut().for_each(Slot::parse));
        now.iter_mut().filter(|slot| !slot.block.is_empty()).try_for_each(|slot| parser.add(slot))?;
        filled.map_err(file_error)?;
        if let Some(taker) = taker.as_mut().filter(|_| parser.rows.len() >= PART_ROWS) {
            taker(parser.rows.take(&name, F::TICK_PS, Origin::default())?)?;
        }
        std::mem::swap(&mut now, &mut next);
    }
    let Parser { mut rows, lines, .. } = parser;
    rows.report.lines = lines;
    rows.finish(&name, F::TICK_PS, Origin::default())
}
