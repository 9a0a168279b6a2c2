//! From the keys of a medium to a [`Part`].

mod senses;
mod slowing;

use super::{Backup, Disk, Flash, Levelling, Part, Pcm, Ram, Words};
use crate::bricks::memories;
use crate::context::Context;
use crate::toml_reader::datum::Datum;
use nvlab_medium::flash::{BitErrors, Faults};
use nvlab_units::quantity::Price;
use nvlab_units::{Interruption, Rate, Span};

/// Reads the medium at `media.NAME`. `None` if a value is wrong or missing, which is then reported.
///
/// Every key is read before the first missing one ends it, so that all errors are found at once.
pub fn read(context: &mut Context, table: &str) -> Option<Part> {
    let kind_path = format!("{table}.kind");
    if !context.has(&kind_path) {
        let help = "part = \"tlc-2022\" (see `nvlab parts list`), or kind = \"nand\", \"nor\", \"pcm\", \"ram\" or \"disk\"";
        context.give_up_on(table);
        context.wrong(&kind_path, format!("`{table}` has neither `part` nor `kind`"), help);
        return None;
    }
    type Read = fn(&mut Reader<'_>) -> Option<Part>;
    let meanings: [(&str, Read); 5] = [
        ("nand", |reader| reader.flash().map(Part::Nand)),
        ("nor", |reader| reader.flash().map(Part::Nor)),
        ("pcm", |reader| reader.pcm().map(Part::Pcm)),
        ("ram", |reader| reader.ram().map(Part::Ram)),
        ("disk", |reader| reader.disk().map(Part::Disk)),
    ];
    let (kind, read) = context.named_choice(&kind_path, "", &meanings)?;
    read(&mut Reader { context, table, kind })
}

/// Kinds of NAND cells, with one bit and more.
const CELLS: [(&str, &str); 4] = [("slc", "slc"), ("mlc", "mlc"), ("tlc", "tlc"), ("qlc", "qlc")];

struct Reader<'a> {
    context: &'a mut Context,
    table: &'a str,
    kind: &'a str,
}

impl Reader<'_> {
    fn path(&self, key: &str) -> String {
        format!("{}.{key}", self.table)
    }
    fn size(&mut self, key: &str) -> Option<u64> {
        self.context.size(&self.path(key), self.kind)
    }
    fn time(&mut self, key: &str) -> Option<Span> {
        self.context.time(&self.path(key), self.kind)
    }
    fn count(&mut self, key: &str) -> Option<u32> {
        self.context.count(&self.path(key), self.kind)
    }
    fn share(&mut self, key: &str) -> Option<f64> {
        self.context.share(&self.path(key), self.kind)
    }
    fn rate(&mut self, key: &str) -> Option<Rate> {
        self.context.rate(&self.path(key), self.kind)
    }
    fn price(&mut self) -> Option<Price> {
        self.context.price(&self.path("price"), self.kind)
    }
    fn choice<T: Copy>(&mut self, key: &str, meanings: &[(&str, T)]) -> Option<T> {
        self.context.choice(&self.path(key), self.kind, meanings)
    }
    fn flag(&mut self, key: &str) -> Option<bool> {
        self.context.flag(&self.path(key), self.kind)
    }
    /// A time, or "none" as `Some(None)`.
    fn time_or_none(&mut self, key: &str) -> Option<Option<Span>> {
        match self.context.get(&self.path(key), Some(self.kind))? {
            Datum::Time(span) => Some(Some(span)),
            _ => Some(None),
        }
    }

    /// `Some(None)`: the part does not state it.
    fn count_or_none(&mut self, key: &str) -> Option<Option<u32>> {
        match self.context.has(&self.path(key)) {
            true => self.count(key).map(Some),
            false => Some(None),
        }
    }

    fn flash(&mut self) -> Option<Flash> {
        let nand = self.kind == "nand";
        let cell = if nand { self.choice("cell", &CELLS) } else { Some("") };
        let page_bytes = self.size("page");
        let oob_bytes = self.size("oob");
        let pages_per_block = self.pages(page_bytes);
        let blocks_per_plane = self.count("blocks");
        let planes = self.count("planes");
        let one_shot = if nand { self.count("one_shot") } else { Some(1) };
        let read = self.read_times(one_shot);
        let program = self.time("program");
        let erase = self.time("erase");
        let page_buffer = if nand { Some(None) } else { self.page_buffer() };
        let suspend = self.time_or_none("suspend");
        let resume = self.time("resume");
        let limit = self.suspends();
        let plane_reads = self.plane_reads(planes);
        let registers = self.registers();
        let decode = if nand { self.time("decode") } else { Some(Span::ZERO) };
        let copy_back = self.flag("copy_back");
        // The times of NOR cells include the transfer.
        let transfer = if nand { self.rate("transfer") } else { Some(Rate::from_bytes_per_second(0)) };
        let endurance = self.count("endurance");
        let endurance_spread = self.share("endurance_spread");
        let retention_years = self.count_or_none("retention_years");
        let slowing = if nand { Some(None) } else { self.slowing(program, erase) };
        let faults = self.faults();
        let price = self.price();
        let interruption = match (suspend?, resume?) {
            (Some(latency), resume) => Interruption::Suspend { latency, resume, limit: limit? },
            (None, _) => Interruption::Wait,
        };
        let (pages_per_block, one_shot) = (pages_per_block?, one_shot?);
        self.check_one_shot(pages_per_block, one_shot)?;
        let (cell, page_bytes, oob_bytes, faults) = (cell?, page_bytes?, oob_bytes?, faults?);
        let (copy_back, endurance_spread) = (copy_back?, endurance_spread?);
        if !nand {
            self.check_nand_only(oob_bytes, copy_back, endurance_spread)?;
        }
        self.check_cell(cell, one_shot)?;
        self.check_codewords(page_bytes, oob_bytes, faults.bit_errors.as_ref())?;
        Some(Flash {
            cell: cell.into(),
            page_bytes,
            oob_bytes,
            pages_per_block,
            blocks_per_plane: blocks_per_plane?,
            planes: planes?,
            one_shot,
            read: read?,
            plane_reads: plane_reads?,
            registers: registers?,
            decode: decode?,
            program: program?,
            erase: erase?,
            page_buffer: page_buffer?,
            interruption,
            copy_back,
            transfer: transfer?,
            endurance: endurance?,
            endurance_spread,
            retention_years: retention_years?,
            slowing: slowing?,
            faults,
            price,
        })
    }

    /// `Some(None)`: the chip has no page buffers.
    fn page_buffer(&mut self) -> Option<Option<(u64, Rate)>> {
        let (buffer, rate) = (self.path("page_buffer"), self.path("page_buffer_rate"));
        if !self.context.has(&buffer) && !self.context.has(&rate) {
            return Some(None);
        }
        let mut needed = |path: &str| {
            if !self.context.has(path) {
                let problem = format!("`{path}` is missing: page buffers need a size and a rate");
                self.context.wrong(
                    path,
                    problem,
                    "page_buffer = \"256 B\", page_buffer_rate = \"465 KiB/s\"",
                );
            }
            self.context.get(path, Some("nor"))
        };
        match (needed(&buffer), needed(&rate)) {
            (Some(Datum::Size(bytes)), Some(Datum::Rate(rate, _))) => Some(Some((bytes, rate))),
            _ => None,
        }
    }

    /// Properties that only NAND uses, though the key table has them for all flash: NOR has the defaults.
    fn check_nand_only(&mut self, oob: u64, copy_back: bool, spread: f64) -> Option<()> {
        let set = [("oob", oob > 0), ("copy_back", copy_back), ("endurance_spread", spread > 0.0)];
        let Some((key, _)) = set.into_iter().find(|(_, set)| *set) else { return Some(()) };
        let path = self.path(key);
        self.context.wrong(&path, format!("`{path}` does not apply to NOR flash"), "leave it out");
        None
    }

    /// A block is programmed in whole operations.
    fn check_one_shot(&mut self, pages_per_block: u32, one_shot: u32) -> Option<()> {
        if pages_per_block.is_multiple_of(one_shot) {
            return Some(());
        }
        let problem =
            format!("a block of {pages_per_block} pages cannot be programmed {one_shot} pages at a time");
        self.context.wrong(&self.path("one_shot"), problem, "a divisor of the pages of a block");
        None
    }

    /// A word line has a page for each bit of its cells, and no more.
    fn check_cell(&mut self, cell: &str, one_shot: u32) -> Option<()> {
        let bits = CELLS.iter().position(|(name, _)| *name == cell).map(|at| at as u32 + 1);
        if bits.is_none_or(|bits| one_shot <= bits) {
            return Some(());
        }
        let problem = format!("a word line of {cell} has fewer than {one_shot} pages");
        self.context.wrong(&self.path("one_shot"), problem, "at most one page per bit of a cell: see `cell`");
        None
    }

    /// The codewords of a page, parity included, lie in the page and its spare area.
    fn check_codewords(&mut self, page: u64, oob: u64, errors: Option<&BitErrors>) -> Option<()> {
        let Some(codeword) = errors.map(|errors| errors.codeword_bits as u64 / 8) else { return Some(()) };
        let count = page.div_ceil(codeword);
        if count * codeword <= page + oob {
            return Some(());
        }
        let problem = format!(
            "{count} codeword(s) of {codeword} B do not fit a page of {page} B with its {oob} B of spare area"
        );
        self.context.wrong(&self.path("ecc.codeword"), problem, "smaller codewords, or a larger `oob`");
        None
    }

    /// Pages of a block, from `pages` or `block`.
    fn pages(&mut self, page_bytes: Option<u64>) -> Option<u32> {
        let (pages_path, block_path) = (self.path("pages"), self.path("block"));
        let (has_pages, has_block) = (self.context.has(&pages_path), self.context.has(&block_path));
        if has_pages && has_block {
            // One of them is read for its own errors; both would contradict or repeat each other.
            let _ = self.size("block");
            let help = "keep one of `pages` and `block`";
            self.context.wrong(
                &block_path,
                format!("`{block_path}` and `{pages_path}` set the same value"),
                help,
            );
            return self.count("pages");
        }
        if has_pages {
            return self.count("pages");
        }
        if !has_block {
            let message = format!("`{pages_path}` is missing");
            let help = "pages = 1_152, the pages of an erase block; or block = \"512 KiB\", its bytes";
            self.context.wrong(&pages_path, message, help);
            return None;
        }
        let (block, page) = (self.size("block")?, page_bytes?);
        match u32::try_from(block / page) {
            Ok(pages) if pages > 0 && block.is_multiple_of(page) => Some(pages),
            _ => {
                let problem = format!("`{block_path}` is not a whole number of pages of {page} B");
                self.context.wrong(&block_path, problem, "a block is a multiple of a page");
                None
            }
        }
    }

    fn faults(&mut self) -> Option<Faults> {
        let factory_bad = self.share("faults.factory_bad");
        let program_failure = self.share("faults.program_failure");
        let erase_failure = self.share("faults.erase_failure");
        let wear_out = self.flag("faults.wear_out");
        let bit_errors = self.bit_errors();
        Some(Faults {
            factory_bad: factory_bad?,
            program_failure: program_failure?,
            erase_failure: erase_failure?,
            wear_out: wear_out?,
            bit_errors: bit_errors?,
            seed: 0,
        })
    }

    /// `Some(None)`: not modelled.
    fn bit_errors(&mut self) -> Option<Option<BitErrors>> {
        let meanings = [("none", false), ("threshold", true)];
        let (path, kind) = (self.path("ecc.kind"), self.kind);
        let (kind, true) = self.context.named_choice(&path, kind, &meanings)? else { return Some(None) };
        let (context, table) = (&mut *self.context, self.table);
        let path = |key: &str| format!("{table}.ecc.{key}");
        let rate_fresh = context.share(&path("rate_fresh"), kind);
        let rate_worn = context.share(&path("rate_worn"), kind);
        let codeword = context.size(&path("codeword"), kind);
        let correctable = context.count(&path("correctable"), kind);
        let retries = context.count(&path("retries"), kind);
        let retry_factor = context.share(&path("retry_factor"), kind);
        Some(Some(BitErrors {
            rate_fresh: rate_fresh?,
            rate_worn: rate_worn?,
            codeword_bits: codeword? as u32 * 8,
            correctable: correctable?,
            retries: retries?,
            retry_factor: retry_factor?,
        }))
    }

    /// A power of two below 2^32.
    fn power_of_two(&mut self, key: &str) -> Option<u32> {
        let bytes = self.size(key)?;
        if !bytes.is_power_of_two() {
            let path = self.path(key);
            self.context.wrong(
                &path,
                format!("`{path}` is not a power of two"),
                "\"2 B\", \"64 B\", \"256 B\"",
            );
            return None;
        }
        u32::try_from(bytes).ok()
    }

    /// Bytes of a memory; 0 if the design states them, or they are derived from its contents
    /// ([`memories::size_by_use`]).
    fn memory_size(&mut self) -> Option<u64> {
        let path = self.path("size");
        if self.kind == "ram" && !self.context.has(&path) {
            // A part by itself is of any size.
            if !self.context.has("ftl.kind") || memories::is_sized_by_use(self.context, self.table) {
                return Some(0);
            }
            self.context.missing(&path, Some(self.kind));
            return None;
        }
        self.size("size")
    }

    fn words(&mut self) -> Option<Words> {
        let size_bytes = self.memory_size();
        let word_bytes = self.power_of_two("word");
        let read = self.time("read");
        let read_next = self.time("read_next");
        let write = self.time("write");
        let write_next = if self.kind == "ram" { self.time("write_next") } else { None };
        let banks = self.count("banks");
        let stripe_bytes = self.size("stripe");
        Some(Words {
            size_bytes: size_bytes?,
            word_bytes: word_bytes?,
            read: read?,
            read_next: read_next.or(read)?,
            write: write?,
            write_next: write_next.or(write)?,
            banks: banks?,
            stripe_bytes: stripe_bytes?,
        })
    }

    fn pcm(&mut self) -> Option<Pcm> {
        let cells = self.words();
        let (step, line) = (self.power_of_two("step"), self.power_of_two("line"));
        let (atomic, differing) = (self.power_of_two("atomic"), self.share("differing"));
        let levels = self.choice("level.kind", &[("none", false), ("start-gap", true)]);
        let start_gap = match levels {
            Some(true) => {
                let (interval, regions) = (self.path("level.interval"), self.path("level.regions"));
                let interval = self.context.count(&interval, "start-gap");
                let regions = self.context.count(&regions, "start-gap");
                let randomise = self.path("level.randomise");
                let randomise = self.context.flag(&randomise, "start-gap").unwrap_or(true);
                Some(Levelling { interval: interval?, regions: regions?, randomise })
            }
            Some(false) | None => None,
        };
        let (endurance, price) = (self.count("endurance"), self.price());
        let cells = cells?;
        let step_bytes = step.unwrap_or(cells.word_bytes);
        if step_bytes < cells.word_bytes {
            let path = self.path("step");
            self.context.wrong(&path, format!("`{path}` is smaller than a word"), "at least `word`");
            return None;
        }
        levels?;
        Some(Pcm {
            step_bytes,
            line_bytes: line.unwrap_or(step_bytes),
            atomic_bytes: atomic.unwrap_or(cells.word_bytes),
            differing: differing?,
            start_gap,
            endurance: endurance?,
            price,
            cells,
        })
    }

    fn ram(&mut self) -> Option<Ram> {
        type Keeps = fn(Option<Span>) -> Option<Backup>;
        let meanings: [(&str, Keeps); 3] = [
            ("none", |_| Some(Backup::None)),
            ("battery", |hold| Some(Backup::Battery(hold))),
            ("capacitor", |hold| hold.map(Backup::Capacitor)),
        ];
        let (cells, backup) = (self.words(), self.choice("backup", &meanings));
        let (hold, price) = (self.time_or_none("hold"), self.price());
        let retention_ua_per_gib = self.count_or_none("retention_ua_per_gib");
        let backup = match backup?(hold?) {
            Some(backup) => backup,
            None => {
                let path = self.path("backup");
                let problem = format!("`{path}`: a capacitor does not hold for ever");
                self.context.wrong(&path, problem, "set how long it holds: hold = \"10 s\"");
                return None;
            }
        };
        Some(Ram { cells: cells?, backup, retention_ua_per_gib: retention_ua_per_gib?, price })
    }

    fn disk(&mut self) -> Option<Disk> {
        let (size_bytes, sector_bytes) = (self.size("size"), self.size("sector"));
        let (seek, seek_track, seek_full) =
            (self.time("seek"), self.time("seek_track"), self.time("seek_full"));
        let (rotation, transfer) = (self.time("rotation"), self.rate("transfer"));
        let (surfaces, overhead, price) = (self.count("surfaces"), self.time("overhead"), self.price());
        Some(Disk {
            size_bytes: size_bytes?,
            sector_bytes: sector_bytes? as u32,
            seek: seek?,
            seek_track: seek_track?,
            seek_full: seek_full?,
            rotation: rotation?,
            transfer: transfer?,
            surfaces: surfaces?,
            overhead: overhead?,
            price,
        })
    }
}
