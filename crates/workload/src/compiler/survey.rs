//! A walk over everything the compiler left in the heap.

use super::objects::{Class, Field, Kind, Link, Objects, Root};
use nvlab_rvm::heap::{Error, Result, Words};
use std::collections::{HashMap, HashSet};
use std::fmt;
use xxhash_rust::xxh3::Xxh3;

/// What a heap holds. Two heaps with the same contents have the same survey but for `used_bytes`, wherever their objects
/// lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Files.
    pub files: u64,
    /// Their source text in bytes.
    pub source_bytes: u64,
    /// Symbols, with those that are only used.
    pub symbols: u64,
    /// Symbols that are used but not declared in any file.
    pub external: u64,
    /// Types that symbols and code refer to.
    pub types: u64,
    /// Symbols with code: functions, closures, constants.
    pub functions: u64,
    /// Their instructions.
    pub instructions: u64,
    /// Constructs that were not compiled.
    pub unsupported: u64,
    /// Bytes of the heap in use.
    pub used_bytes: u64,
    /// Over names, kinds, lines, types and code; not over places.
    pub checksum: u64,
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Survey { files, source_bytes, symbols, external, types, functions, instructions, .. } = self;
        writeln!(f, "{files} files, {source_bytes} B of source")?;
        writeln!(f, "{symbols} symbols ({external} external), {types} types")?;
        writeln!(f, "{functions} functions, {instructions} instructions, {} unsupported", self.unsupported)?;
        writeln!(f, "{} B of heap, checksum {:016x}", self.used_bytes, self.checksum)
    }
}

/// A heap in bytes that are only read.
struct Bytes<'b>(&'b [u8]);

impl Words for Bytes<'_> {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn get(&self, at: u64) -> u64 {
        let bytes = self.0.get(at as usize..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn set(&mut self, _: u64, _: u64) -> nvlab_rvm::Result<()> {
        Err(nvlab_rvm::Error::Invalid("a survey changes nothing".into()))
    }
}

/// A walk under way.
struct Walk<'b> {
    objects: Objects<Bytes<'b>>,
    survey: Survey,
    hash: Xxh3,
    /// Types that were met, by the order in which they were: a type is hashed once.
    types: HashMap<Link, u64>,
    /// Symbols that were met.
    symbols: HashSet<Link>,
    /// Hashes of the paths of symbols.
    paths: HashMap<Link, u64>,
}

impl Survey {
    /// Walks the heap in `bytes`, every object and every link, and checks it.
    pub fn of(bytes: &[u8]) -> Result<Survey> {
        let objects = Objects::open(Bytes(bytes))?;
        let survey = Survey { used_bytes: objects.check()?, ..Survey::default() };
        let (types, symbols, paths) = (HashMap::new(), HashSet::new(), HashMap::new());
        let mut walk = Walk { objects, survey, hash: Xxh3::new(), types, symbols, paths };
        walk.files()?;
        for root in [Root::Crates, Root::Prelude, Root::Selectors] {
            let symbol = walk.objects.root(root);
            walk.symbol(symbol)?;
        }
        Ok(Survey { checksum: walk.hash.digest(), ..walk.survey })
    }
}

impl Walk<'_> {
    /// Fails if there are more of something than fit in the heap.
    fn at_most(&self, count: u64, at: Link) -> Result<()> {
        match count > 4 * self.objects.objects_max() as u64 {
            true => Err(Error::Damaged { at, why: "a list or number is longer than the heap" }),
            false => Ok(()),
        }
    }

    fn add(&mut self, number: u64) {
        self.hash.update(&number.to_le_bytes());
    }

    fn add_text(&mut self, text: Link) -> Result<()> {
        let string = self.objects.string(text)?;
        self.add(string.len() as u64);
        self.hash.update(string.as_bytes());
        Ok(())
    }

    fn files(&mut self) -> Result<()> {
        let mut file = self.objects.root(Root::Files);
        while file != 0 {
            self.at_most(self.survey.files, file)?;
            self.objects.expect(file, Class::File)?;
            self.add_text(self.objects.word(file, 2))?;
            for index in 3..7 {
                self.add(self.objects.word(file, index));
            }
            self.survey.files += 1;
            self.survey.source_bytes += self.objects.word(file, 3);
            self.survey.unsupported += self.objects.word(file, 6);
            file = self.objects.word(file, 0);
        }
        Ok(())
    }

    /// A symbol, its type and code, and its children.
    fn symbol(&mut self, symbol: Link) -> Result<()> {
        let path = self.path(symbol)?;
        self.add(path);
        let word = self.objects.field(symbol, Field::Kind);
        self.add(word);
        let kind = self.objects.kind(symbol);
        if !self.symbols.insert(symbol) {
            return Err(Error::Damaged { at: symbol, why: "a symbol is in two lists" });
        }
        self.survey.symbols += 1;
        self.survey.external += u64::from(kind == Kind::External);
        match (kind, self.objects.field(symbol, Field::About)) {
            (_, 0) => {}
            (Kind::Import | Kind::Glob, target) => {
                let path = self.path(target)?;
                self.add(path);
            }
            (_, of) => self.of_type(of)?,
        }
        let code = self.objects.field(symbol, Field::Code);
        if code != 0 {
            self.code(code, symbol)?;
        }
        let children: Vec<Link> = self.objects.children(symbol).collect();
        for child in children {
            if self.objects.field(child, Field::Parent) != symbol {
                return Err(Error::Damaged { at: child, why: "a symbol is in the list of another parent" });
            }
            self.symbol(child)?;
        }
        Ok(())
    }

    /// A hash of the names from the root to a symbol.
    fn path(&mut self, symbol: Link) -> Result<u64> {
        if symbol == 0 {
            return Ok(0);
        }
        if let Some(&known) = self.paths.get(&symbol) {
            return Ok(known);
        }
        self.objects.expect(symbol, Class::Symbol)?;
        // Ends a circle of parents, which only a damaged heap has.
        self.paths.insert(symbol, 0);
        let parent = self.path(self.objects.field(symbol, Field::Parent))?;
        let name = self.objects.string(self.objects.field(symbol, Field::Name))?;
        let mut hash = Xxh3::new();
        hash.update(&parent.to_le_bytes());
        hash.update(name.as_bytes());
        let hash = hash.digest();
        self.paths.insert(symbol, hash);
        Ok(hash)
    }

    fn of_type(&mut self, of: Link) -> Result<()> {
        let count = self.types.len() as u64;
        if let Some(&number) = self.types.get(&of) {
            self.add(number);
            return Ok(());
        }
        self.objects.expect(of, Class::Type)?;
        self.types.insert(of, count);
        self.survey.types += 1;
        self.add(self.objects.word(of, 2));
        let path = self.path(self.objects.word(of, 3))?;
        self.add(path);
        let arguments = self.objects.word(of, 4);
        self.at_most(arguments, of)?;
        self.add(arguments);
        (0..arguments).try_for_each(|index| self.of_type(self.objects.word(of, 5 + index)))
    }

    fn code(&mut self, code: Link, symbol: Link) -> Result<()> {
        self.objects.expect(code, Class::Code)?;
        if self.objects.word(code, 2) != symbol {
            return Err(Error::Damaged { at: code, why: "code belongs to another symbol" });
        }
        let (registers, counts) = (self.objects.word(code, 3), self.objects.word(code, 4));
        let (constants, instructions) = (counts >> 32, counts & 0xffff_ffff);
        self.at_most((registers >> 16).saturating_add(constants * 2 + instructions), code)?;
        self.survey.functions += 1;
        self.survey.instructions += instructions;
        self.add(registers);
        self.add(counts);
        let mut at = 5;
        for index in at..at + (registers >> 16) {
            match self.objects.word(code, index) {
                0 => self.add(0),
                of => self.of_type(of)?,
            }
        }
        at += registers >> 16;
        for index in (at..at + constants * 2).step_by(2) {
            let (kind, value) = (self.objects.word(code, index), self.objects.word(code, index + 1));
            self.add(kind);
            match kind {
                0 => self.add(value),
                1 => self.add_text(value)?,
                2 => {
                    let path = self.path(value)?;
                    self.add(path);
                }
                _ => self.of_type(value)?,
            }
        }
        at += constants * 2;
        (at..at + instructions).for_each(|index| self.add(self.objects.word(code, index)));
        Ok(())
    }
}
