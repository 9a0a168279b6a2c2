//! One file under compilation: its scopes, and what its names mean.

use super::code::{Builder, Constant, Operation, Register};
use super::objects::{Field, Kind, Link, Objects, Root, Space};
use nvlab_rvm::heap::{Result, Words};

/// Where a type is looked for.
pub const TYPES: &[Space] = &[Space::Types, Space::All];
/// Where a value is looked for: constructors are types or variants.
pub const VALUES: &[Space] = &[Space::Values, Space::All, Space::Types];
/// Where the target of an import is looked for.
pub const ANY: &[Space] = &[Space::Types, Space::All, Space::Values, Space::Macros];
/// Imports that lead to imports are followed so far; longer chains are circles.
const IMPORTS_MAX: usize = 16;

/// What the file adds to.
pub struct Front<W> {
    pub objects: Objects<W>,
    /// Lexical scopes, innermost last; the first are the modules around.
    pub scopes: Vec<Link>,
    /// The types that `Self` names.
    pub selves: Vec<Link>,
    /// Functions under way: the outermost, closures in it.
    pub builders: Vec<Builder>,
    /// Counts of this file.
    pub functions: u64,
    pub instructions: u64,
    pub unsupported: u64,
    pub implementations: u64,
    pub closures: u64,
}

impl<W: Words> Front<W> {
    pub fn new(objects: Objects<W>) -> Front<W> {
        Front {
            objects,
            scopes: Vec::new(),
            selves: Vec::new(),
            builders: Vec::new(),
            functions: 0,
            instructions: 0,
            unsupported: 0,
            implementations: 0,
            closures: 0,
        }
    }

    /// The innermost scope.
    pub fn scope(&self) -> Link {
        *self.scopes.last().expect("a file has a module")
    }

    /// The innermost module.
    pub fn module(&self) -> Link {
        let is_module = |&&scope: &&Link| self.objects.kind(scope) == Kind::Module;
        *self.scopes.iter().rev().find(is_module).expect("a file has a module")
    }

    pub fn parent(&self, symbol: Link) -> Link {
        self.objects.field(symbol, Field::Parent)
    }

    /// Declares a name in the innermost scope.
    pub fn declare(&mut self, name: &str, kind: Kind, line: usize) -> Result<Link> {
        let name = self.objects.text(name)?;
        self.objects.declare(self.scope(), name, kind, line as u64)
    }

    /// What an import leads to; other symbols lead to themselves.
    fn follow(&self, mut symbol: Link) -> Link {
        for _ in 0..IMPORTS_MAX {
            match self.objects.kind(symbol) {
                Kind::Import if self.objects.field(symbol, Field::About) != 0 => {
                    symbol = self.objects.field(symbol, Field::About);
                }
                _ => break,
            }
        }
        symbol
    }

    /// A name of a module, type or trait, or one that is imported there with others.
    fn member(&self, of: Link, name: Link, spaces: &[Space]) -> Option<Link> {
        let direct = |of| self.objects.child(of, name, spaces).map(|found| self.follow(found));
        direct(of).or_else(|| {
            let globs = self.objects.children(of).filter(|&child| self.objects.kind(child) == Kind::Glob);
            globs.map(|glob| self.objects.field(glob, Field::About)).find_map(direct)
        })
    }

    /// A name as it is seen from the innermost scope.
    fn lookup(&self, name: Link, spaces: &[Space]) -> Option<Link> {
        for &scope in self.scopes.iter().rev() {
            if let Some(found) = self.member(scope, name, spaces) {
                return Some(found);
            }
            if self.objects.kind(scope) == Kind::Module {
                break;
            }
        }
        [Root::Prelude, Root::Crates]
            .into_iter()
            .find_map(|root| self.objects.child(self.objects.root(root), name, spaces))
    }

    /// The symbol of a path. Names that are not declared yet become external symbols where they are expected.
    pub fn resolve(&mut self, path: &[String], spaces: &[Space]) -> Result<Link> {
        let mut at = 0;
        for (index, segment) in path.iter().enumerate() {
            let is_last = index + 1 == path.len();
            let spaces = if is_last { spaces } else { TYPES };
            let special = match segment.as_str() {
                "crate" => self.scopes.first().copied().map(|module| self.crate_of(module)),
                "self" if at == 0 => Some(self.module()),
                "super" => Some(self.parent(if at == 0 { self.module() } else { at })),
                "Self" => self.selves.last().copied(),
                _ => None,
            };
            if let Some(special) = special {
                at = special;
                continue;
            }
            let name = self.objects.text(segment)?;
            let found = if at == 0 { self.lookup(name, spaces) } else { self.member(at, name, spaces) };
            at = match found {
                Some(found) => found,
                None => {
                    let parent = match (at, is_last) {
                        (0, true) => self.objects.root(Root::Prelude),
                        (0, false) => self.objects.root(Root::Crates),
                        (parent, _) => parent,
                    };
                    self.objects.declare(parent, name, Kind::External, 0)?
                }
            };
        }
        Ok(at)
    }

    fn crate_of(&self, mut module: Link) -> Link {
        let crates = self.objects.root(Root::Crates);
        while self.parent(module) != crates && self.parent(module) != 0 {
            module = self.parent(module);
        }
        module
    }

    /// The symbol of a name that every module knows.
    pub fn prelude(&mut self, name: &str) -> Result<Link> {
        let (root, name) = (self.objects.root(Root::Prelude), self.objects.text(name)?);
        match self.objects.child(root, name, TYPES) {
            Some(found) => Ok(found),
            None => self.objects.declare(root, name, Kind::External, 0),
        }
    }

    /// The symbol of a method of whatever type.
    pub fn selector(&mut self, name: &str) -> Result<Link> {
        let (root, name) = (self.objects.root(Root::Selectors), self.objects.text(name)?);
        match self.objects.child(root, name, &[Space::Types]) {
            Some(found) => Ok(found),
            None => self.objects.declare(root, name, Kind::Selector, 0),
        }
    }

    /// The function under way.
    pub fn builder(&mut self) -> &mut Builder {
        self.builders.last_mut().expect("code is compiled in a function")
    }

    pub fn emit(&mut self, operation: Operation, operands: [u16; 3]) -> usize {
        self.builder().emit(operation, operands)
    }

    pub fn constant(&mut self, constant: Constant) -> u16 {
        self.builder().constant(constant)
    }

    pub fn register(&mut self, of: Link) -> Register {
        self.builder().register(of)
    }

    pub fn type_in(&mut self, register: Register) -> Link {
        self.builder().types[register as usize]
    }

    /// A register with a constant.
    pub fn load(&mut self, constant: Constant, of: Link) -> Register {
        let constant = self.constant(constant);
        let register = self.register(of);
        self.emit(Operation::Constant, [register, constant, 0]);
        register
    }

    /// The operands of the next call.
    pub fn arguments(&mut self, registers: &[Register]) {
        for &register in registers {
            self.emit(Operation::Argument, [register, 0, 0]);
        }
    }

    /// Stands in for what is not compiled.
    pub fn unsupported(&mut self, construct: &str) -> Result<Register> {
        self.unsupported += 1;
        let name = self.objects.text(construct)?;
        let (construct, register) = (self.constant(Constant::Text(name)), self.register(0));
        self.emit(Operation::Unsupported, [register, construct, 0]);
        Ok(register)
    }

    /// The register of a variable; one of an enclosing function is captured at each
    /// use, since the uses may lie on different paths.
    pub fn variable(&mut self, name: &str) -> Option<Register> {
        let of = |builder: &Builder| {
            builder.locals.iter().rev().find(|(known, _)| known == name).map(|&(_, register)| register)
        };
        let depth = self.builders.iter().rposition(|builder| of(builder).is_some())?;
        let mut outer = of(&self.builders[depth])?;
        let known = self.builders[depth].types[outer as usize];
        for builder in &mut self.builders[depth + 1..] {
            let register = builder.register(known);
            builder.emit(Operation::Capture, [register, outer, 0]);
            outer = register;
        }
        Some(outer)
    }

    /// Ends the innermost function; its result is in `result`.
    pub fn finish(&mut self, result: Register) -> Result<bool> {
        self.emit(Operation::Return, [result, 0, 0]);
        let builder = self.builders.pop().expect("a function under way");
        self.functions += 1;
        self.instructions += builder.instructions() as u64;
        self.objects.set_code(builder.symbol, &builder.words())?;
        Ok(!builder.overflowed)
    }
}
