//! The types of a heap, parsed from the description in its file: enough to follow pointers and to name values.
//!
//! ```text
//! line     = NAME tab type
//! type     = ["array of "] value
//! value    = LEAF ";"                                                 u8 ... f64, nonzero-u8 ... nonzero-i64, bool, char, (), back
//!          | KIND ["?"] "#" TYPE ["|" TYPE] ";"                       a pointer; "?": zero stands for none
//!          | NAME " v" VERSION " " BYTES "{" LEAF ";" {variant} "}"                     an enum
//!          | NAME " v" VERSION " " BYTES "{" {FIELD "@" OFFSET ":" value} "}"           a struct
//! variant  = NAME "=" NUMBER (";" | "{" {FIELD "@" OFFSET ":" value} "}")              its fields hold no pointers
//! ```
//!
//! Names that begin with a dot are this library's. The words may come from a hostile file: every length is checked, and nothing is
//! nested deeper than [`DEPTH_MAX`].

use crate::error::{Error, Result};
use crate::layout::TYPES;
use crate::persist::{NON_ZERO, fingerprint};

/// How deep structs and arrays may be nested in one object.
const DEPTH_MAX: u32 = 32;
/// Pointers that the objects of all types may have.
const POINTERS_MAX: usize = 1 << 20;
const BYTES_MAX: u64 = 1 << 47;

/// How the bytes of a value are to be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Unit,
    Bool,
    Char,
    Integer(Integer),
    /// Zero is no value of it.
    NonZero(Integer),
    Float {
        bytes: u64,
    },
    Enum {
        integer: Integer,
        bytes: u64,
        variants: Vec<Variant>,
    },
    Struct {
        name: String,
        bytes: u64,
        fields: Vec<Field>,
    },
    Array {
        count: u64,
        element: Box<Form>,
    },
    Pointer(PointerAt),
    /// A pointer to an array block, a length and a capacity.
    Vec(PointerAt),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Integer {
    pub bytes: u64,
    pub is_signed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variant {
    pub name: String,
    pub number: i128,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub offset: u64,
    pub form: Form,
}

/// What a pointer does for its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pointing {
    /// It keeps its object alive, alone.
    Box,
    /// It keeps its object alive with others.
    Strong,
    /// It does not.
    Weak,
    /// It keeps the block of an array; the array's length and capacity follow.
    Array,
    /// It leads back to a node that something else keeps, uncounted.
    Back,
    /// It is the only one to the nodes of a sorted map or a hash map.
    Tree,
    Hash,
}

impl Pointing {
    /// Whether it keeps its object alive.
    pub fn is_owner(self) -> bool {
        !matches!(self, Pointing::Weak | Pointing::Back)
    }
}

/// A pointer in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointerAt {
    pub offset: u64,
    pub pointing: Pointing,
    pub is_optional: bool,
    /// The numbers of the types that it may lead to, from 1; 0: no second one, or for [`Pointing::Back`] any.
    pub to: [u16; 2],
}

/// The objects or array blocks of a type.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub name: String,
    pub form: Form,
    pub is_array: bool,
    /// Of an object, or an element.
    pub bytes: u64,
    pub pointers: Vec<PointerAt>,
}

impl Type {
    /// Bytes from one element of an array to the next.
    pub fn stride(&self) -> u64 {
        self.bytes.next_multiple_of(8)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Schema {
    types: Vec<Type>,
}

impl Schema {
    /// Reads the words of a file whose header names their fingerprint.
    pub fn read(words: &[u8], kept: u64) -> Result<Schema> {
        let end = words.iter().position(|&byte| byte == 0).unwrap_or(words.len());
        let text = std::str::from_utf8(&words[..end]).map_err(|error| {
            Error::damaged(TYPES.start + error.valid_up_to() as u64, "the types are not UTF-8 text")
        })?;
        // Names are printed on terminals.
        if let Some(at) = text.find(|c: char| c.is_control() && !['\n', '\t'].contains(&c)) {
            return Err(Error::damaged(TYPES.start + at as u64, "the types are not UTF-8 text"));
        }
        let shapes = || text.lines().filter_map(|line| Some(line.split_once('\t')?.1));
        if fingerprint(shapes()) != kept {
            let why = match end == words.len() {
                true => "the file does not describe all types of the heap",
                false => "the types do not match the fingerprint in the header",
            };
            return Err(Error::damaged(TYPES.start, why));
        }
        Schema::parse(text)
    }

    pub fn parse(text: &str) -> Result<Schema> {
        let lines: Vec<&str> = text.lines().collect();
        let mut schema = Schema { types: Vec::with_capacity(lines.len()) };
        let mut pointers_left = POINTERS_MAX;
        for line in &lines {
            let at = TYPES.start + (line.as_ptr() as usize - text.as_ptr() as usize) as u64;
            let read = read_type(line, lines.len(), &mut pointers_left);
            schema.types.push(read.map_err(|why| Error::damaged(at, format!("a type of the heap: {why}")))?);
        }
        for entry in &schema.types {
            for pointer in &entry.pointers {
                let is_array = |&number: &u16| schema.get(number).is_some_and(|to| to.is_array);
                let arrays = pointer.to.iter().filter(|number| is_array(number)).count();
                if (arrays > 0) != (pointer.pointing == Pointing::Array) {
                    let why = format!("{} has a pointer to the wrong kind of type", entry.name);
                    return Err(Error::damaged(TYPES.start, why));
                }
            }
        }
        Ok(schema)
    }

    /// The type of a number, from 1.
    pub fn get(&self, number: u16) -> Option<&Type> {
        self.types.get(usize::from(number).checked_sub(1)?)
    }

    /// Bytes from one element of an array block to the next, for each type; 0 for objects.
    pub fn strides(&self) -> impl Iterator<Item = u64> {
        self.types.iter().map(|entry| if entry.is_array { entry.stride() } else { 0 })
    }

    pub fn types(&self) -> &[Type] {
        &self.types
    }
}

fn read_type(line: &str, types: usize, pointers_left: &mut usize) -> std::result::Result<Type, String> {
    let (name, shape) = line.split_once('\t').ok_or("it has no name")?;
    let rest = shape.strip_prefix("array of ");
    let mut parser = Parser { rest: rest.unwrap_or(shape), types };
    let form = parser.value(0)?;
    if !parser.rest.is_empty() {
        return Err(format!("{:?} follows it", parser.rest.get(..20).unwrap_or(parser.rest)));
    }
    let mut pointers = Vec::new();
    form.pointers(0, &mut pointers, *pointers_left)?;
    *pointers_left -= pointers.len();
    let is_array = rest.is_some();
    let short = short(name);
    let name = if is_array { format!("[{short}]") } else { short };
    Ok(Type { name, bytes: form.bytes(), form, is_array, pointers })
}

/// A type's name without the modules.
fn short(name: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut word) = (String::new(), String::new());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        if is_word(c) {
            word.push(c);
        } else if c == ':' && rest.peek() == Some(&':') {
            rest.next();
            word.clear();
        } else {
            found.extend(word.drain(..));
            found.push(c);
        }
    }
    found + &word
}

impl Form {
    pub fn bytes(&self) -> u64 {
        match self {
            Form::Unit => 0,
            Form::Bool => 1,
            Form::Char => 4,
            Form::Integer(integer) | Form::NonZero(integer) => integer.bytes,
            Form::Float { bytes } | Form::Struct { bytes, .. } | Form::Enum { bytes, .. } => *bytes,
            Form::Array { count, element } => count * element.bytes(),
            Form::Pointer(_) => 8,
            Form::Vec(_) => 24,
        }
    }

    /// The pointers of a value that begins at `base`.
    fn pointers(
        &self,
        base: u64,
        found: &mut Vec<PointerAt>,
        most: usize,
    ) -> std::result::Result<(), String> {
        match self {
            Form::Pointer(pointer) | Form::Vec(pointer) => {
                if !base.is_multiple_of(8) || found.len() >= most {
                    return Err(format!("its pointer at byte {base} is one too many, or out of place"));
                }
                found.push(PointerAt { offset: base, ..*pointer });
            }
            Form::Struct { fields, .. } => {
                for field in fields {
                    field.form.pointers(base + field.offset, found, most)?;
                }
            }
            Form::Array { count, element } => {
                let before = found.len();
                for index in 0..*count {
                    element.pointers(base + index * element.bytes(), found, most)?;
                    if found.len() == before {
                        break;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

struct Parser<'t> {
    rest: &'t str,
    types: usize,
}

type Parsed<T> = std::result::Result<T, String>;

fn number<T: std::str::FromStr>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

impl<'t> Parser<'t> {
    /// What comes before the next of these characters, which is taken off too.
    fn until(&mut self, ends: &[char]) -> Parsed<(&'t str, char)> {
        let end = self.rest.find(ends).ok_or_else(|| format!("it ends without one of {ends:?}"))?;
        let (word, rest) = self.rest.split_at(end);
        let mut rest = rest.chars();
        let found = rest.next().expect("found above");
        self.rest = rest.as_str();
        Ok((word, found))
    }

    fn value(&mut self, depth: u32) -> Parsed<Form> {
        if depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        match self.until(&[';', '{'])? {
            (leaf, ';') => self.leaf(leaf),
            (head, _) => self.compound(head, depth),
        }
    }

    fn leaf(&self, leaf: &str) -> Parsed<Form> {
        if let Some((kind, to)) = leaf.split_once('#') {
            return self.pointer(kind, to);
        }
        if let Some(integer) = integer(leaf) {
            return Ok(Form::Integer(integer));
        }
        if let Some(integer) = leaf.strip_prefix(NON_ZERO).and_then(integer) {
            return Ok(Form::NonZero(integer));
        }
        let back = PointerAt { offset: 0, pointing: Pointing::Back, is_optional: true, to: [0; 2] };
        Ok(match leaf {
            "()" => Form::Unit,
            "bool" => Form::Bool,
            "char" => Form::Char,
            "f32" => Form::Float { bytes: 4 },
            "f64" => Form::Float { bytes: 8 },
            "back" => Form::Pointer(back),
            _ => return Err(format!("{leaf:?} is not a kind of value")),
        })
    }

    fn pointer(&self, kind: &str, to: &str) -> Parsed<Form> {
        let (first, second) = to.split_once('|').unwrap_or((to, ""));
        let to = |text: &str| match number::<usize>(text)? {
            index if index < self.types.min(usize::from(u16::MAX)) => Ok(index as u16 + 1),
            index => Err(format!("there is no type {index}")),
        };
        let to = [to(first)?, if second.is_empty() { 0 } else { to(second)? }];
        let word = kind.strip_suffix('?').unwrap_or(kind);
        let pointing = match word {
            "box" | "node" => Pointing::Box,
            "strong" => Pointing::Strong,
            "weak" => Pointing::Weak,
            "tree" => Pointing::Tree,
            "hash" => Pointing::Hash,
            "vec" => Pointing::Array,
            _ => return Err(format!("{kind:?} is not a kind of pointer")),
        };
        let is_optional = kind.ends_with('?') || pointing == Pointing::Array;
        let pointer = PointerAt { offset: 0, pointing, is_optional, to };
        Ok(if pointing == Pointing::Array { Form::Vec(pointer) } else { Form::Pointer(pointer) })
    }

    fn compound(&mut self, head: &str, depth: u32) -> Parsed<Form> {
        let mut words = head.rsplitn(3, ' ');
        let bytes: u64 = number(words.next().unwrap_or_default())?;
        let version = words.next().and_then(|version| version.strip_prefix('v')).unwrap_or_default();
        let version: u32 = number(version)?;
        let name = words.next().ok_or("it has no name")?;
        if bytes > BYTES_MAX {
            return Err(format!("no value takes {bytes} B"));
        }
        let mut fields = Vec::new();
        loop {
            match self.until(&['}', '@', ';'])? {
                ("", '}') => break,
                (field, '@') => fields.push(self.field(field, bytes, depth)?),
                (leaf, ';') if fields.is_empty() => return self.variants(leaf, bytes, depth),
                (text, _) => return Err(format!("{text:?} is not a field")),
            }
        }
        if name != ".array" {
            return Ok(Form::Struct { name: name.into(), bytes, fields });
        }
        let (count, element) = (u64::from(version), fields.pop().ok_or("an array without elements")?.form);
        match element.bytes().checked_mul(count) == Some(bytes) {
            true => Ok(Form::Array { count, element: Box::new(element) }),
            false => Err(format!("{count} elements of {} B in {bytes} B", element.bytes())),
        }
    }

    /// A field of what has so many bytes.
    fn field(&mut self, name: &str, bytes: u64, depth: u32) -> Parsed<Field> {
        let offset: u64 = number(self.until(&[':'])?.0)?;
        let form = self.value(depth + 1)?;
        match offset.checked_add(form.bytes()).is_some_and(|end| end <= bytes) {
            true => Ok(Field { name: name.into(), offset, form }),
            false => Err(format!("field {name:?} exceeds its type")),
        }
    }

    fn variants(&mut self, leaf: &str, bytes: u64, depth: u32) -> Parsed<Form> {
        let integer = integer(leaf).filter(|integer| integer.bytes <= bytes);
        let integer = integer.ok_or_else(|| format!("an enum of {bytes} B with {leaf:?}"))?;
        let mut variants = Vec::new();
        loop {
            let (variant, end) = self.until(&['}', ';', '{'])?;
            if (variant, end) == ("", '}') {
                let has_fields = variants.iter().any(|Variant { fields, .. }| !fields.is_empty());
                return match has_fields || integer.bytes == bytes {
                    true => Ok(Form::Enum { integer, bytes, variants }),
                    false => Err(format!("an enum of {bytes} B with {leaf:?}")),
                };
            }
            let (name, value) = variant.split_once('=').ok_or("a variant without a number")?;
            let fields = if end == '{' { self.fields_of_variant(bytes, depth)? } else { Vec::new() };
            variants.push(Variant { name: name.into(), number: number(value)?, fields });
        }
    }

    fn fields_of_variant(&mut self, bytes: u64, depth: u32) -> Parsed<Vec<Field>> {
        let mut fields = Vec::new();
        loop {
            match self.until(&['}', '@'])? {
                ("", '}') => return Ok(fields),
                (name, '@') => {
                    let field = self.field(name, bytes, depth)?;
                    let mut pointers = Vec::new();
                    field.form.pointers(0, &mut pointers, 1)?;
                    if !pointers.is_empty() {
                        return Err(format!("field {name:?} of a variant holds a pointer"));
                    }
                    fields.push(field);
                }
                (text, _) => return Err(format!("{text:?} is not a field")),
            }
        }
    }
}

fn integer(leaf: &str) -> Option<Integer> {
    let bytes = match leaf.get(1..)? {
        "8" => 1,
        "16" => 2,
        "32" => 4,
        "64" | "size" => 8,
        _ => return None,
    };
    let is_signed = leaf.starts_with('i');
    (is_signed || leaf.starts_with('u')).then_some(Integer { bytes, is_signed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let text = "a::Root<b::C, [u8; 2]>\tRoot v1 40{next@0:strong?#0;list@8:vec#1;a@32:.array v2 4{@0:u16;}}\n\
                    a::C\tarray of C v3 1{i8;Low=-1;High=4;}\n";
        let schema = Schema::parse(text).unwrap();
        let root = schema.get(1).unwrap();
        assert_eq!((root.name.as_str(), root.bytes, root.pointers.len()), ("Root<C, [u8; 2]>", 40, 2));
        assert_eq!((root.pointers[1].offset, root.pointers[1].to), (8, [2, 0]));
        let array = schema.get(2).unwrap();
        assert!(array.is_array && schema.get(0).is_none() && schema.get(3).is_none());
        let variant = |name: &str, number| Variant { name: name.into(), number, fields: Vec::new() };
        let variants = vec![variant("Low", -1), variant("High", 4)];
        assert_eq!(
            array.form,
            Form::Enum { integer: Integer { bytes: 1, is_signed: true }, bytes: 1, variants }
        );
        let text = "Maybe<u64>\tMaybe v1 16{u8;None=0;Some=1{0@8:u64;}}\n";
        let schema = Schema::parse(text).unwrap();
        let Form::Enum { bytes: 16, variants, .. } = &schema.get(1).unwrap().form else { panic!("{text}") };
        assert_eq!((variants[0].fields.len(), variants[1].fields[0].offset), (0, 8));
    }

    #[test]
    fn hostile_words_are_refused() {
        let deep = format!("x\t{}", "S v1 8{f@0:".repeat(1000));
        let many = "x\t.array v1048577 8388616{@0:box?#0;}";
        for text in [
            "",
            "x\t",
            "x\tu8",
            "x\tu9;",
            "x\tnonzero-;",
            "x\tnonzero-f64;",
            "x\tnonzero-nonzero-u8;",
            "x\tE v1 1{nonzero-u8;A=1;}",
            "x\tstrong#1;",
            "x\tvec#0;",
            "x\tS v1 8{a@1:u64;}",
            "x\tS v1 8{u8;}",
            "x\tS 8{}",
            "x\tu8;u8;",
            "x\t.array v3 8{@0:u8;}",
            "x\tS v1 16{p@4:box?#0;}",
            &deep,
            many,
            "x\t.array v4294967295 18446744073709551615{@0:u8;}",
            "x\tS v1 9{a@18446744073709551615:u8;}",
            "x\tS v1 2{u16;A}",
            "x\tS v1 16{u8;A=1;}",
            "x\tS v1 16{u8;A=1{0@9:u64;}}",
            "x\tS v1 16{u8;A=1{0@8:box?#0;}}",
            "x\tS v1 16{u8;A=1{0@8:u64;}",
            "x\tS v1 16{u8;A=1{u64;}}",
        ] {
            let read = Schema::parse(text);
            assert!(read.is_err() || text.is_empty(), "{text:?}: {read:?}");
        }
    }
}
