//! Expressions become instructions. Each leaves its value in a register; those that do not return leave the unit value.

use super::code::{Builder, Constant, Operation, Register};
use super::front::{Front, TYPES, VALUES};
use super::objects::{Field, Kind, Link, Space};
use super::types::segments;
use nvlab_rvm::heap::{Result, Words};
use syn::punctuated::Punctuated;
use syn::{
    BinOp, Expr, ExprCall, ExprClosure, ExprMethodCall, ExprPath, FnArg, Lit, Macro, Member, Pat, Token, UnOp,
};

/// The register of the unit value.
pub const UNIT: Register = 0;

/// The operator as it is written, and whether it assigns.
fn operator(of: &BinOp) -> (&'static str, bool) {
    match of {
        BinOp::Add(_) => ("+", false),
        BinOp::Sub(_) => ("-", false),
        BinOp::Mul(_) => ("*", false),
        BinOp::Div(_) => ("/", false),
        BinOp::Rem(_) => ("%", false),
        BinOp::And(_) => ("&&", false),
        BinOp::Or(_) => ("||", false),
        BinOp::BitXor(_) => ("^", false),
        BinOp::BitAnd(_) => ("&", false),
        BinOp::BitOr(_) => ("|", false),
        BinOp::Shl(_) => ("<<", false),
        BinOp::Shr(_) => (">>", false),
        BinOp::Eq(_) => ("==", false),
        BinOp::Lt(_) => ("<", false),
        BinOp::Le(_) => ("<=", false),
        BinOp::Ne(_) => ("!=", false),
        BinOp::Ge(_) => (">=", false),
        BinOp::Gt(_) => (">", false),
        BinOp::AddAssign(_) => ("+", true),
        BinOp::SubAssign(_) => ("-", true),
        BinOp::MulAssign(_) => ("*", true),
        BinOp::DivAssign(_) => ("/", true),
        BinOp::RemAssign(_) => ("%", true),
        BinOp::BitXorAssign(_) => ("^", true),
        BinOp::BitAndAssign(_) => ("&", true),
        BinOp::BitOrAssign(_) => ("|", true),
        BinOp::ShlAssign(_) => ("<<", true),
        BinOp::ShrAssign(_) => (">>", true),
        _ => ("?", false),
    }
}

impl<W: Words> Front<W> {
    /// The code of a symbol: parameters, then what `inside` computes.
    pub fn body(
        &mut self,
        symbol: Link,
        inputs: &[&FnArg],
        inside: impl FnOnce(&mut Self) -> Result<Register>,
    ) -> Result<bool> {
        // A function inside another does not see its variables.
        let outer = std::mem::replace(&mut self.builders, vec![Builder::new(symbol)]);
        let mut patterns: Vec<(&Pat, Register)> = Vec::new();
        for input in inputs {
            match input {
                FnArg::Receiver(_) => {
                    let of = self.selves.last().copied();
                    let of = of.map(|of| self.named(of)).transpose()?.unwrap_or(0);
                    let register = self.register(of);
                    self.builder().locals.push(("self".into(), register));
                }
                FnArg::Typed(input) => {
                    let of = self.type_of(&input.ty)?;
                    patterns.push((&input.pat, self.register(of)));
                }
            }
        }
        self.builder().parameters = inputs.len() as u16;
        for (pattern, register) in patterns {
            self.bind(pattern, register)?;
        }
        let result = inside(self)?;
        let fits = self.finish(result);
        self.builders = outer;
        fits
    }

    pub fn expressions<'e>(&mut self, expressions: impl Iterator<Item = &'e Expr>) -> Result<Vec<Register>> {
        expressions.map(|expression| self.expression(expression)).collect()
    }

    pub fn expression(&mut self, expression: &Expr) -> Result<Register> {
        match expression {
            Expr::Lit(literal) => self.literal(&literal.lit),
            Expr::Path(path) => self.path(path),
            Expr::Paren(inner) => self.expression(&inner.expr),
            Expr::Group(inner) => self.expression(&inner.expr),
            Expr::Unary(unary) => {
                let operator = match unary.op {
                    UnOp::Deref(_) => "*",
                    UnOp::Not(_) => "!",
                    _ => "-",
                };
                let operand = self.expression(&unary.expr)?;
                self.unary(operator, operand)
            }
            Expr::Binary(binary) => self.binary(&binary.op, &binary.left, &binary.right),
            Expr::Assign(assign) => {
                let value = self.expression(&assign.right)?;
                self.assign(&assign.left, value)
            }
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::Macro(call) => self.call_macro(&call.mac),
            Expr::Field(field) => {
                let base = self.expression(&field.base)?;
                self.field_of(base, &field.member)
            }
            Expr::Index(index) => {
                let (base, at) = (self.expression(&index.expr)?, self.expression(&index.index)?);
                let register = self.register(0);
                self.emit(Operation::Index, [register, base, at]);
                Ok(register)
            }
            Expr::Reference(reference) => {
                let to = self.expression(&reference.expr)?;
                let mutable = reference.mutability.is_some();
                let known = self.type_in(to);
                let of = if known == 0 { 0 } else { self.reference_to(known, mutable)? };
                let register = self.register(of);
                self.emit(Operation::Reference, [register, to, u16::from(mutable)]);
                Ok(register)
            }
            Expr::Cast(cast) => {
                let value = self.expression(&cast.expr)?;
                let of = self.type_of(&cast.ty)?;
                let (constant, register) = (self.constant(Constant::Type(of)), self.register(of));
                self.emit(Operation::Cast, [register, value, constant]);
                Ok(register)
            }
            Expr::Try(attempt) => {
                let value = self.expression(&attempt.expr)?;
                let register = self.register(0);
                self.emit(Operation::Try, [register, value, 0]);
                Ok(register)
            }
            Expr::Closure(closure) => self.closure(closure),
            Expr::Tuple(tuple) if tuple.elems.is_empty() => Ok(UNIT),
            _ => self.aggregate(expression),
        }
    }

    /// Expressions that make values of parts. The others decide and repeat.
    fn aggregate(&mut self, expression: &Expr) -> Result<Register> {
        match expression {
            Expr::Tuple(tuple) => {
                let parts = self.expressions(tuple.elems.iter())?;
                let types: Vec<Link> = parts.iter().map(|&part| self.type_in(part)).collect();
                let of = if types.contains(&0) { 0 } else { self.tuple_of(&types)? };
                Ok(self.make_of(0, of, &parts))
            }
            Expr::Array(array) => {
                let parts = self.expressions(array.elems.iter())?;
                Ok(self.make_of(0, 0, &parts))
            }
            Expr::Repeat(repeat) => {
                let parts = [self.expression(&repeat.expr)?, self.expression(&repeat.len)?];
                let symbol = self.prelude("repeat")?;
                Ok(self.make_of(symbol, 0, &parts))
            }
            Expr::Range(range) => {
                let parts =
                    self.expressions([&range.start, &range.end].into_iter().flatten().map(|end| &**end))?;
                let symbol = self.prelude(match range.limits {
                    syn::RangeLimits::HalfOpen(_) => "..",
                    syn::RangeLimits::Closed(_) => "..=",
                })?;
                Ok(self.make_of(symbol, 0, &parts))
            }
            Expr::Struct(structure) => {
                let symbol = self.resolve(&segments(&structure.path), TYPES)?;
                let mut parts = Vec::new();
                for field in &structure.fields {
                    // Each part follows the name of its field.
                    let name = match &field.member {
                        Member::Named(ident) => ident.to_string(),
                        Member::Unnamed(index) => index.index.to_string(),
                    };
                    let name = self.objects.text(&name)?;
                    parts.push(self.load(Constant::Text(name), 0));
                    parts.push(self.expression(&field.expr)?);
                }
                if let Some(rest) = &structure.rest {
                    parts.push(self.expression(rest)?);
                }
                let of = self.named(symbol)?;
                Ok(self.make_of(symbol, of, &parts))
            }
            _ => self.control(expression),
        }
    }

    fn make_of(&mut self, symbol: Link, of: Link, parts: &[Register]) -> Register {
        self.arguments(parts);
        let constant = self.constant(Constant::Symbol(symbol));
        let register = self.register(of);
        self.emit(Operation::Make, [register, constant, parts.len() as u16]);
        register
    }

    pub fn literal(&mut self, literal: &Lit) -> Result<Register> {
        let (constant, of) = match literal {
            Lit::Int(value) => {
                let of = if value.suffix().is_empty() { 0 } else { self.primitive(value.suffix())? };
                // Digits beyond 64 bits keep their text.
                match value.base10_parse() {
                    Ok(value) => (Constant::Integer(value), of),
                    Err(_) => (Constant::Text(self.objects.text(value.base10_digits())?), of),
                }
            }
            Lit::Bool(value) => (Constant::Integer(u64::from(value.value)), self.primitive("bool")?),
            Lit::Char(value) => (Constant::Integer(u64::from(value.value())), self.primitive("char")?),
            Lit::Byte(value) => (Constant::Integer(u64::from(value.value())), self.primitive("u8")?),
            Lit::Str(value) => {
                let of = self.primitive("str")?;
                (Constant::Text(self.objects.text(&value.value())?), self.reference_to(of, false)?)
            }
            Lit::Float(value) => {
                (Constant::Text(self.objects.text(value.base10_digits())?), self.primitive("f64")?)
            }
            Lit::ByteStr(value) => {
                (Constant::Text(self.objects.text(&String::from_utf8_lossy(&value.value()))?), 0)
            }
            _ => return self.unsupported("literal"),
        };
        Ok(self.load(constant, of))
    }

    fn path(&mut self, path: &ExprPath) -> Result<Register> {
        let segments = segments(&path.path);
        if let [name] = &segments[..]
            && let Some(register) = self.variable(name)
        {
            return Ok(register);
        }
        let symbol = self.resolve(&segments, VALUES)?;
        let of = match self.objects.kind(symbol) {
            Kind::Constant => self.objects.field(symbol, Field::About),
            Kind::Structure => self.named(symbol)?,
            _ => 0,
        };
        Ok(self.load(Constant::Symbol(symbol), of))
    }

    fn unary(&mut self, operator: &str, operand: Register) -> Result<Register> {
        let name = self.objects.text(operator)?;
        let of = if operator == "*" { 0 } else { self.type_in(operand) };
        let (constant, register) = (self.constant(Constant::Text(name)), self.register(of));
        self.emit(Operation::Unary, [register, operand, constant]);
        Ok(register)
    }

    fn binary(&mut self, of: &BinOp, left: &Expr, right: &Expr) -> Result<Register> {
        let (operator, assigns) = operator(of);
        let first = self.expression(left)?;
        if operator == "&&" || operator == "||" {
            return self.short_circuit(operator, first, right);
        }
        let second = self.expression(right)?;
        let name = self.objects.text(operator)?;
        let of = match operator {
            "==" | "!=" | "<" | "<=" | ">" | ">=" => self.primitive("bool")?,
            _ => self.type_in(first),
        };
        self.arguments(&[second]);
        let (constant, register) = (self.constant(Constant::Text(name)), self.register(of));
        self.emit(Operation::Binary, [register, first, constant]);
        if assigns { self.assign(left, register) } else { Ok(register) }
    }

    fn assign(&mut self, to: &Expr, value: Register) -> Result<Register> {
        if matches!(to, Expr::Infer(_)) {
            return Ok(UNIT);
        }
        let place = self.expression(to)?;
        let is_variable = matches!(to, Expr::Path(_));
        self.emit(if is_variable { Operation::Move } else { Operation::Store }, [place, value, 0]);
        Ok(UNIT)
    }

    pub fn field_of(&mut self, base: Register, member: &Member) -> Result<Register> {
        let name = match member {
            Member::Named(ident) => ident.to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let base_type = self.type_in(base);
        let (constant, of) = match self.part_of(base_type, &name, Space::Fields)? {
            Some(field) => (Constant::Symbol(field), self.objects.field(field, Field::About)),
            None => (Constant::Text(self.objects.text(&name)?), 0),
        };
        let (constant, register) = (self.constant(constant), self.register(of));
        self.emit(Operation::Field, [register, base, constant]);
        Ok(register)
    }

    fn call(&mut self, call: &ExprCall) -> Result<Register> {
        let count = call.args.len() as u16;
        if let Expr::Path(path) = &*call.func {
            let segments = segments(&path.path);
            let variable = match &segments[..] {
                [name] => self.variable(name),
                _ => None,
            };
            if variable.is_none() {
                let symbol = self.resolve(&segments, VALUES)?;
                let arguments = self.expressions(call.args.iter())?;
                return self.call_symbol(symbol, &arguments);
            }
        }
        let function = self.expression(&call.func)?;
        let arguments = self.expressions(call.args.iter())?;
        self.arguments(&arguments);
        let register = self.register(0);
        self.emit(Operation::CallRegister, [register, function, count]);
        Ok(register)
    }

    fn call_symbol(&mut self, symbol: Link, arguments: &[Register]) -> Result<Register> {
        let of = match self.objects.kind(symbol) {
            Kind::Function => self.objects.field(symbol, Field::About),
            Kind::Structure => self.named(symbol)?,
            Kind::Variant => {
                let parent = self.parent(symbol);
                self.named(parent)?
            }
            _ => 0,
        };
        self.arguments(arguments);
        let (constant, register) = (self.constant(Constant::Symbol(symbol)), self.register(of));
        self.emit(Operation::Call, [register, constant, arguments.len() as u16]);
        Ok(register)
    }

    fn method_call(&mut self, call: &ExprMethodCall) -> Result<Register> {
        let mut arguments = vec![self.expression(&call.receiver)?];
        arguments.extend(self.expressions(call.args.iter())?);
        let name = call.method.to_string();
        let receiver = self.type_in(arguments[0]);
        if let Some(method) = self.part_of(receiver, &name, Space::Values)? {
            return self.call_symbol(method, &arguments);
        }
        let selector = self.selector(&name)?;
        self.arguments(&arguments);
        let (constant, register) = (self.constant(Constant::Symbol(selector)), self.register(0));
        self.emit(Operation::CallMethod, [register, constant, arguments.len() as u16]);
        Ok(register)
    }

    /// A macro whose arguments are expressions is a call; others are not expanded.
    pub fn call_macro(&mut self, call: &Macro) -> Result<Register> {
        let symbol = self.resolve(&segments(&call.path), &[Space::Macros, Space::All])?;
        let parsed = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        let Ok(arguments) = parsed else { return self.unsupported("macro") };
        let mut registers = Vec::new();
        for argument in &arguments {
            registers.push(match argument {
                // An argument with a name.
                Expr::Assign(assign) => self.expression(&assign.right)?,
                argument => self.expression(argument)?,
            });
        }
        self.arguments(&registers);
        let (constant, register) = (self.constant(Constant::Symbol(symbol)), self.register(0));
        self.emit(Operation::CallMacro, [register, constant, registers.len() as u16]);
        Ok(register)
    }

    fn closure(&mut self, closure: &ExprClosure) -> Result<Register> {
        self.closures += 1;
        let of = self.builder().symbol;
        let name = self.objects.text(&format!("closure#{}", self.closures))?;
        let symbol = self.objects.declare(of, name, Kind::Function, 0)?;
        self.builders.push(Builder::new(symbol));
        let mut inputs = Vec::new();
        for input in &closure.inputs {
            let of = if let Pat::Type(typed) = input { self.type_of(&typed.ty)? } else { 0 };
            inputs.push((input, self.register(of)));
        }
        self.builder().parameters = closure.inputs.len() as u16;
        for (pattern, register) in inputs {
            self.bind(pattern, register)?;
        }
        let result = self.expression(&closure.body)?;
        if !self.finish(result)? {
            self.builder().overflowed = true;
        }
        let (constant, register) = (self.constant(Constant::Symbol(symbol)), self.register(0));
        self.emit(Operation::Closure, [register, constant, 0]);
        Ok(register)
    }
}
