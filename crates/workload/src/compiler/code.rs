//! Three-address code: instructions on the registers of a function, one word each.
//!
//! An instruction is an operation in the lowest byte and three operands of 16 bits: registers, indices of constants,
//! numbers or jump targets, as the operation says. Register 0 is the unit value; parameters come next.

use super::objects::Link;

/// A register of a function.
pub type Register = u16;

/// Operations. `d` is the register that is set; `k` is a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// d = constant k.
    Constant = 1,
    /// d = a.
    Move,
    /// d = a by the operator k.
    Unary,
    /// d = a, the operator k, and b from the following [`Operation::Argument`].
    Binary,
    /// d = field k of a.
    Field,
    /// d = the place a\[b].
    Index,
    /// d = number k of the parts of a, a tuple or the payload of a variant.
    Part,
    /// d = reference to a; k is 1 if it may be written.
    Reference,
    /// The place d becomes a.
    Store,
    /// An operand of the next call, constructor or binary operation: register a.
    Argument,
    /// d = the function of symbol k on the last n arguments.
    Call,
    /// d = the function in register a on the last n arguments.
    CallRegister,
    /// d = the method named by symbol k on the last n arguments.
    CallMethod,
    /// d = the macro of symbol k on the last n arguments.
    CallMacro,
    /// d = the type of symbol k made of the last n arguments; 0 for a tuple or array.
    Make,
    /// d = a as type k.
    Cast,
    /// d = whether a is of variant, or equal to constant, k.
    Is,
    /// d = the next item of iterator a; jumps if there is none.
    Next,
    /// d = the value in a; returns a if it is an error or none.
    Try,
    /// Jumps.
    Jump,
    /// Jumps unless a is true.
    JumpUnless,
    /// d = the variable of the enclosing function in its register a.
    Capture,
    /// d = the closure k with the code of its symbol.
    Closure,
    /// Returns a.
    Return,
    /// d = what construct k would be: it is not compiled.
    Unsupported,
}

/// A constant of a function. The tag is its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    Integer(u64),
    Text(Link),
    Symbol(Link),
    Type(Link),
}

impl Constant {
    pub fn words(self) -> [u64; 2] {
        match self {
            Constant::Integer(value) => [0, value],
            Constant::Text(link) => [1, link],
            Constant::Symbol(link) => [2, link],
            Constant::Type(link) => [3, link],
        }
    }
}

/// A loop or labelled block under way.
pub struct Loop {
    pub label: Option<String>,
    pub start: u16,
    /// What `break` sets.
    pub result: Register,
    /// Jumps to its end.
    pub breaks: Vec<usize>,
}

/// The code of a function as it is made.
#[derive(Default)]
pub struct Builder {
    pub symbol: Link,
    pub parameters: u16,
    /// Types of the registers, 0 where unknown.
    pub types: Vec<Link>,
    /// Variables in scope, innermost last.
    pub locals: Vec<(String, Register)>,
    pub loops: Vec<Loop>,
    constants: Vec<Constant>,
    instructions: Vec<u64>,
    /// A number was larger than an operand.
    pub overflowed: bool,
}

impl Builder {
    pub fn new(symbol: Link) -> Builder {
        Builder { symbol, types: vec![0], ..Builder::default() }
    }

    pub fn register(&mut self, of: Link) -> Register {
        self.types.push(of);
        self.operand(self.types.len() - 1)
    }

    pub fn constant(&mut self, constant: Constant) -> u16 {
        let found = self.constants.iter().position(|&known| known == constant);
        let index = found.unwrap_or_else(|| {
            self.constants.push(constant);
            self.constants.len() - 1
        });
        self.operand(index)
    }

    fn operand(&mut self, number: usize) -> u16 {
        u16::try_from(number).unwrap_or_else(|_| {
            self.overflowed = true;
            0
        })
    }

    /// Adds an instruction and returns its place.
    pub fn emit(&mut self, operation: Operation, operands: [u16; 3]) -> usize {
        let [a, b, c] = operands.map(u64::from);
        self.instructions.push(operation as u64 | a << 8 | b << 24 | c << 40);
        self.instructions.len() - 1
    }

    /// Where the next instruction goes.
    pub fn here(&mut self) -> u16 {
        self.operand(self.instructions.len())
    }

    /// Lets jumps lead to the next instruction.
    pub fn land(&mut self, jumps: &[usize]) {
        let here = u64::from(self.here());
        for &jump in jumps {
            self.instructions[jump] = self.instructions[jump] & !(0xffff << 40) | here << 40;
        }
    }

    pub fn instructions(&self) -> usize {
        self.instructions.len()
    }

    /// The words of the code object.
    pub fn words(&self) -> Vec<u64> {
        let counts = (self.constants.len() as u64) << 32 | self.instructions.len() as u64;
        let mut words =
            vec![self.symbol, (self.types.len() as u64) << 16 | u64::from(self.parameters), counts];
        words.extend(&self.types);
        words.extend(self.constants.iter().flat_map(|constant| constant.words()));
        words.extend(&self.instructions);
        words
    }
}
