//! The objects of the compiler in the persistent heap, and the index that finds them.
//!
//! Format, in words of 8 bytes. The memory begins with the roots ([`Root`]) in 64 bytes; the heap follows, and links are
//! offsets in the heap, 0 for none. Every object begins with the link to the next in its chain of the index and a tag: its
//! class, and 56 bits of its hash.
//!
//! | class | words after that |
//! |---|---|
//! | text | length in bytes; the bytes |
//! | symbol | name, parent, kind and line, type or target, code, first child, next sibling |
//! | type | constructor, symbol, number of arguments; the arguments |
//! | file | path, bytes, functions, instructions, unsupported constructs |
//! | code | symbol, registers and parameters, numbers of constants and instructions; types of the registers, constants (kind and value), instructions |

use nvlab_rvm::heap::{Error, Heap, Result, Words};
use xxhash_rust::xxh3::xxh3_64;

/// Offset of an object in the heap; 0 for none.
pub type Link = u64;

const MAGIC: u64 = u64::from_le_bytes(*b"nvlcomp1");
const ROOTS_BYTES: u64 = 64;
const BUCKETS: u64 = 4096;
const CHUNK_BYTES: u64 = 32;
const LISTS: u64 = 64;

/// Words at the beginning of the memory.
#[derive(Clone, Copy)]
pub enum Root {
    Magic,
    /// The block of [`BUCKETS`] links.
    Index,
    /// The newest file; the others follow in its chain.
    Files,
    /// The symbol whose children are crates.
    Crates,
    /// Names that every module knows, and those found nowhere else.
    Prelude,
    /// Names of methods whose receiver's type is unknown.
    Selectors,
}

/// Kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Text = 1,
    Symbol,
    Type,
    File,
    Code,
}

/// Words of a symbol.
#[derive(Clone, Copy)]
pub enum Field {
    Name = 2,
    Parent,
    /// The kind in the lowest byte, the line above.
    Kind,
    /// The type of a value or field, what a function returns, the target of an import.
    About,
    Code,
    Children,
    Sibling,
}

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Module = 1,
    Function,
    Constant,
    Structure,
    Enumeration,
    Variant,
    Field,
    Trait,
    Implementation,
    Alias,
    Import,
    Glob,
    Parameter,
    Macro,
    Selector,
    /// Used but not declared in what was compiled so far.
    External,
}

impl Kind {
    const ALL: [Kind; 16] = [
        Kind::Module,
        Kind::Function,
        Kind::Constant,
        Kind::Structure,
        Kind::Enumeration,
        Kind::Variant,
        Kind::Field,
        Kind::Trait,
        Kind::Implementation,
        Kind::Alias,
        Kind::Import,
        Kind::Glob,
        Kind::Parameter,
        Kind::Macro,
        Kind::Selector,
        Kind::External,
    ];

    /// The name space it is declared in.
    fn space(self) -> Space {
        match self {
            Kind::Function | Kind::Constant => Space::Values,
            Kind::Field => Space::Fields,
            Kind::Macro => Space::Macros,
            Kind::Variant | Kind::Import | Kind::External => Space::All,
            _ => Space::Types,
        }
    }
}

/// Name spaces of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Types,
    Values,
    Fields,
    Macros,
    /// Found from any of them, after the names that are declared in it.
    All,
}

/// The memory without the roots.
pub struct Body<W>(W);

impl<W: Words> Words for Body<W> {
    fn bytes(&self) -> u64 {
        self.0.bytes().saturating_sub(ROOTS_BYTES)
    }

    fn get(&self, at: u64) -> u64 {
        self.0.get(at + ROOTS_BYTES)
    }

    fn set(&mut self, at: u64, word: u64) -> nvlab_rvm::Result<()> {
        self.0.set(at + ROOTS_BYTES, word)
    }
}

/// Objects in words of memory.
pub struct Objects<W> {
    words: Body<W>,
    heap: Heap,
}

impl<W: Words> Objects<W> {
    /// Makes all of `words` an empty heap with an index and the symbols at the roots.
    pub fn create(words: W) -> Result<Objects<W>> {
        let mut words = Body(words);
        let heap = Heap::create(&mut words, CHUNK_BYTES, LISTS)?;
        let mut objects = Objects { words, heap };
        objects.set_root(Root::Magic, MAGIC)?;
        objects.set_root(Root::Files, 0)?;
        let index = objects.heap.allocate(&mut objects.words, BUCKETS * 8)?;
        for bucket in 0..BUCKETS {
            objects.words.set(index + bucket * 8, 0)?;
        }
        objects.set_root(Root::Index, index)?;
        for (root, name) in
            [(Root::Crates, "crates"), (Root::Prelude, "prelude"), (Root::Selectors, "selectors")]
        {
            let name = objects.text(name)?;
            let symbol = objects.declare(0, name, Kind::Module, 0)?;
            objects.set_root(root, symbol)?;
        }
        Ok(objects)
    }

    /// Opens what [`Objects::create`] made.
    pub fn open(words: W) -> Result<Objects<W>> {
        if words.bytes() < ROOTS_BYTES || words.get(0) != MAGIC {
            return Err(Error::Version);
        }
        let words = Body(words);
        let heap = Heap::open(&words)?;
        Ok(Objects { words, heap })
    }

    /// Checks the heap below the objects, and returns the bytes in use.
    pub fn check(&self) -> Result<u64> {
        self.heap.check(&self.words)?;
        Ok(self.heap.statistics(&self.words).used_bytes)
    }

    pub fn root(&self, root: Root) -> Link {
        self.words.0.get(root as u64 * 8)
    }

    fn set_root(&mut self, root: Root, link: Link) -> Result<()> {
        Ok(self.words.0.set(root as u64 * 8, link)?)
    }

    /// A word of an object. Links that lead nowhere read as 0, so that damage is found by the tags.
    pub fn word(&self, object: Link, index: u64) -> u64 {
        let at = object.saturating_add(index * 8);
        if object != 0 && object.is_multiple_of(8) && at < self.words.bytes() {
            self.words.get(at)
        } else {
            0
        }
    }

    pub fn set_word(&mut self, object: Link, index: u64, word: u64) -> Result<()> {
        Ok(self.words.set(object + index * 8, word)?)
    }

    /// Fails unless a link leads to an object of a class.
    pub fn expect(&self, object: Link, class: Class) -> Result<Link> {
        match self.word(object, 1) & 0xff == class as u64 {
            true => Ok(object),
            false => Err(Error::Damaged { at: object, why: "an object of another class was expected" }),
        }
    }

    /// A new object behind `next` in its chain.
    fn allocate(&mut self, next: Link, class: Class, hash: u64, body: &[u64]) -> Result<Link> {
        let object = self.heap.allocate(&mut self.words, 16 + body.len() as u64 * 8)?;
        let head = [next, hash << 8 | class as u64];
        for (index, &word) in (0..).zip(head.iter().chain(body)) {
            self.set_word(object, index, word)?;
        }
        Ok(object)
    }

    /// More objects of a kind than this do not fit: longer lists are circles.
    pub fn objects_max(&self) -> usize {
        (self.words.bytes() / CHUNK_BYTES) as usize
    }

    fn chain(&self, hash: u64) -> impl Iterator<Item = Link> {
        let first = self.word(self.root(Root::Index), hash % BUCKETS);
        std::iter::successors(Some(first), |&object| Some(self.word(object, 0)))
            .take_while(|&object| object != 0)
    }

    /// The object of a class and hash that `is` accepts.
    fn find(&self, class: Class, hash: u64, is: impl Fn(Link) -> bool) -> Option<Link> {
        let tag = hash << 8 | class as u64;
        self.chain(hash).find(|&object| self.word(object, 1) == tag && is(object))
    }

    /// A new object that the index finds.
    fn insert(&mut self, class: Class, hash: u64, body: &[u64]) -> Result<Link> {
        let index = self.root(Root::Index);
        let next = self.word(index, hash % BUCKETS);
        let object = self.allocate(next, class, hash, body)?;
        self.set_word(index, hash % BUCKETS, object)?;
        Ok(object)
    }

    /// The text object of a string; there is one of each.
    pub fn text(&mut self, text: &str) -> Result<Link> {
        let mut body = vec![text.len() as u64];
        body.extend(text.as_bytes().chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        let hash = xxh3_64(text.as_bytes());
        let same = |object| (2..).zip(&body).all(|(index, &word)| self.word(object, index) == word);
        match self.find(Class::Text, hash, same) {
            Some(object) => Ok(object),
            None => self.insert(Class::Text, hash, &body),
        }
    }

    /// The string of a text object.
    pub fn string(&self, text: Link) -> Result<String> {
        self.expect(text, Class::Text)?;
        let bytes = self.word(text, 2).min(self.words.bytes());
        let mut string: Vec<u8> =
            (0..bytes.div_ceil(8)).flat_map(|index| self.word(text, 3 + index).to_le_bytes()).collect();
        string.truncate(bytes as usize);
        String::from_utf8(string).map_err(|_| Error::Damaged { at: text, why: "a text is not UTF-8" })
    }

    /// The one type of a constructor, a symbol and arguments.
    pub fn type_of(&mut self, constructor: u64, symbol: Link, arguments: &[Link]) -> Result<Link> {
        let mut body = vec![constructor, symbol, arguments.len() as u64];
        body.extend(arguments);
        let bytes: Vec<u8> = body.iter().flat_map(|word| word.to_le_bytes()).collect();
        let hash = xxh3_64(&bytes);
        let same = |object| (2..).zip(&body).all(|(index, &word)| self.word(object, index) == word);
        match self.find(Class::Type, hash, same) {
            Some(object) => Ok(object),
            None => self.insert(Class::Type, hash, &body),
        }
    }

    /// A file, its path and its counts.
    pub fn add_file(&mut self, body: &[u64; 5]) -> Result<()> {
        let file = self.allocate(self.root(Root::Files), Class::File, 0, body)?;
        self.set_root(Root::Files, file)
    }

    /// The code of a symbol, in place of what it had.
    pub fn set_code(&mut self, symbol: Link, body: &[u64]) -> Result<()> {
        let code = self.allocate(0, Class::Code, 0, body)?;
        let old = self.field(symbol, Field::Code);
        self.set_field(symbol, Field::Code, code)?;
        if old != 0 { self.heap.free(&mut self.words, old) } else { Ok(()) }
    }

    pub fn field(&self, symbol: Link, field: Field) -> u64 {
        self.word(symbol, field as u64)
    }

    pub fn set_field(&mut self, symbol: Link, field: Field, word: u64) -> Result<()> {
        self.set_word(symbol, field as u64, word)
    }

    pub fn kind(&self, symbol: Link) -> Kind {
        let number = self.field(symbol, Field::Kind) as u8;
        Kind::ALL.into_iter().find(|&kind| kind as u8 == number).unwrap_or(Kind::External)
    }

    pub fn children(&self, symbol: Link) -> impl Iterator<Item = Link> {
        let first = self.field(symbol, Field::Children);
        std::iter::successors(Some(first), |&child| Some(self.field(child, Field::Sibling)))
            .take_while(|&child| child != 0)
            .take(self.objects_max())
    }

    /// The child of a symbol with a name, from the first of `spaces` that has it.
    pub fn child(&self, parent: Link, name: Link, spaces: &[Space]) -> Option<Link> {
        let is = |object: Link, space| {
            (self.field(object, Field::Parent), self.field(object, Field::Name)) == (parent, name)
                && self.kind(object).space() == space
        };
        let hash = symbol_hash(parent, name);
        spaces.iter().find_map(|&space| self.find(Class::Symbol, hash, |object| is(object, space)))
    }

    /// The symbol of a declaration. One that was declared before, or used, is declared now.
    pub fn declare(&mut self, parent: Link, name: Link, kind: Kind, line: u64) -> Result<Link> {
        let found = self.child(parent, name, &[kind.space()]).or_else(|| {
            self.child(parent, name, &[Space::All]).filter(|&found| self.kind(found) == Kind::External)
        });
        let kind = line << 8 | kind as u64;
        if let Some(symbol) = found {
            self.set_field(symbol, Field::Kind, kind)?;
            return Ok(symbol);
        }
        let sibling = self.field(parent, Field::Children);
        let hash = symbol_hash(parent, name);
        let symbol = self.insert(Class::Symbol, hash, &[name, parent, kind, 0, 0, 0, sibling])?;
        if parent != 0 {
            self.set_field(parent, Field::Children, symbol)?;
        }
        Ok(symbol)
    }
}

fn symbol_hash(parent: Link, name: Link) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&parent.to_le_bytes());
    bytes[8..].copy_from_slice(&name.to_le_bytes());
    xxh3_64(&bytes)
}
