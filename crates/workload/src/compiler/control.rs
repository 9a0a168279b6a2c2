//! Blocks, branches, loops and patterns.

use super::code::{Constant, Loop, Operation, Register};
use super::expressions::UNIT;
use super::front::{Front, VALUES};
use super::objects::Kind;
use super::types::segments;
use nvlab_rvm::heap::{Result, Words};
use syn::{
    Block, Expr, ExprForLoop, ExprIf, ExprMatch, Item, Label, Lifetime, Local, Member, Pat, PatStruct,
    RangeLimits, Stmt,
};

fn label(of: Option<&Label>) -> Option<String> {
    of.map(|label| label.name.ident.to_string())
}

impl<W: Words> Front<W> {
    /// Statements in a scope of their own.
    pub fn block(&mut self, block: &Block) -> Result<Register> {
        let locals = self.builder().locals.len();
        let items: Vec<Item> = block.stmts.iter().filter_map(item).collect();
        if !items.is_empty() && !self.inner_items(&items)? {
            self.builder().overflowed = true;
        }
        let mut value = UNIT;
        for statement in &block.stmts {
            value = match statement {
                Stmt::Local(local) => self.local(local)?,
                Stmt::Item(_) => UNIT,
                Stmt::Expr(expression, semicolon) => {
                    let value = self.expression(expression)?;
                    if semicolon.is_some() { UNIT } else { value }
                }
                Stmt::Macro(call) => self.call_macro(&call.mac)?,
            };
        }
        self.builder().locals.truncate(locals);
        Ok(value)
    }

    fn local(&mut self, local: &Local) -> Result<Register> {
        let Some(init) = &local.init else {
            let value = self.register(0);
            self.bind(&local.pat, value)?;
            return Ok(UNIT);
        };
        let value = self.expression(&init.expr)?;
        let value = match (&local.pat, &*init.expr) {
            // A variable of its own, not another name for what it was copied from.
            (Pat::Ident(_), Expr::Path(_)) => {
                let of = self.type_in(value);
                let register = self.register(of);
                self.emit(Operation::Move, [register, value, 0]);
                register
            }
            _ => value,
        };
        match &init.diverge {
            None => self.bind(&local.pat, value)?,
            Some((_, diverge)) => {
                let failures = self.test(&local.pat, value)?;
                let matched = self.emit(Operation::Jump, [0; 3]);
                self.builder().land(&failures);
                self.expression(diverge)?;
                self.builder().land(&[matched]);
            }
        }
        Ok(UNIT)
    }

    /// Expressions that decide and repeat; others are not supported.
    pub fn control(&mut self, expression: &Expr) -> Result<Register> {
        match expression {
            Expr::Block(block) if block.label.is_some() => {
                self.looped(label(block.label.as_ref()), false, |front| front.block(&block.block))
            }
            Expr::Block(block) => self.block(&block.block),
            Expr::Unsafe(block) => self.block(&block.block),
            Expr::Const(block) => self.block(&block.block),
            Expr::If(branch) => self.branch(branch),
            Expr::Match(choice) => self.choice(choice),
            Expr::Let(test) => self.condition(&test.pat, &test.expr),
            Expr::Loop(repeat) => {
                self.looped(label(repeat.label.as_ref()), true, |front| front.block(&repeat.body))
            }
            Expr::While(repeat) => self.looped(label(repeat.label.as_ref()), true, |front| {
                let locals = front.builder().locals.len();
                let condition = front.expression(&repeat.cond)?;
                let exit = front.emit(Operation::JumpUnless, [condition, 0, 0]);
                front.block(&repeat.body)?;
                front.builder().locals.truncate(locals);
                front.leave(exit);
                Ok(UNIT)
            }),
            Expr::ForLoop(repeat) => self.for_loop(repeat),
            Expr::Break(exit) => {
                let value = exit.expr.as_ref().map(|value| self.expression(value)).transpose()?;
                let Some(index) = self.target(exit.label.as_ref()) else {
                    return self.unsupported("break");
                };
                let result = self.builder().loops[index].result;
                if let Some(value) = value {
                    self.emit(Operation::Move, [result, value, 0]);
                }
                let jump = self.emit(Operation::Jump, [0; 3]);
                self.builder().loops[index].breaks.push(jump);
                Ok(UNIT)
            }
            Expr::Continue(repeat) => {
                let Some(index) = self.target(repeat.label.as_ref()) else {
                    return self.unsupported("continue");
                };
                let start = self.builder().loops[index].start;
                self.emit(Operation::Jump, [0, 0, start]);
                Ok(UNIT)
            }
            Expr::Return(exit) => {
                let value = exit.expr.as_ref().map(|value| self.expression(value)).transpose()?;
                self.emit(Operation::Return, [value.unwrap_or(UNIT), 0, 0]);
                Ok(UNIT)
            }
            Expr::Infer(_) => Ok(UNIT),
            Expr::Async(_) | Expr::Await(_) => self.unsupported("async"),
            Expr::RawAddr(_) => self.unsupported("raw address"),
            _ => self.unsupported("expression"),
        }
    }

    /// The loop that a `break` or `continue` means.
    fn target(&mut self, label: Option<&Lifetime>) -> Option<usize> {
        let label = label.map(|label| label.ident.to_string());
        self.builder().loops.iter().rposition(|known| label.is_none() || known.label == label)
    }

    fn leave(&mut self, jump: usize) {
        let innermost = self.builder().loops.last_mut().expect("inside a loop");
        innermost.breaks.push(jump);
    }

    fn looped(
        &mut self,
        label: Option<String>,
        repeats: bool,
        inside: impl FnOnce(&mut Self) -> Result<Register>,
    ) -> Result<Register> {
        let (result, start) = (self.register(0), self.builder().here());
        self.builder().loops.push(Loop { label, start, result, breaks: Vec::new() });
        let value = inside(self)?;
        match repeats {
            true => self.emit(Operation::Jump, [0, 0, start]),
            false => self.emit(Operation::Move, [result, value, 0]),
        };
        let ended = self.builder().loops.pop().expect("the loop begun above");
        self.builder().land(&ended.breaks);
        Ok(result)
    }

    fn for_loop(&mut self, repeat: &ExprForLoop) -> Result<Register> {
        let iterator = self.expression(&repeat.expr)?;
        self.looped(label(repeat.label.as_ref()), true, |front| {
            let locals = front.builder().locals.len();
            let next = front.register(0);
            let exit = front.emit(Operation::Next, [next, iterator, 0]);
            front.leave(exit);
            front.bind(&repeat.pat, next)?;
            front.block(&repeat.body)?;
            front.builder().locals.truncate(locals);
            Ok(UNIT)
        })
    }

    /// `left && right` and `left || right`: the right side only where it decides.
    pub fn short_circuit(&mut self, operator: &str, left: Register, right: &Expr) -> Result<Register> {
        let of = self.primitive("bool")?;
        let result = self.register(of);
        self.emit(Operation::Move, [result, left, 0]);
        let to_right = self.emit(Operation::JumpUnless, [left, 0, 0]);
        let mut ends = vec![to_right];
        if operator == "||" {
            ends = vec![self.emit(Operation::Jump, [0; 3])];
            self.builder().land(&[to_right]);
        }
        let right = self.expression(right)?;
        self.emit(Operation::Move, [result, right, 0]);
        self.builder().land(&ends);
        Ok(result)
    }

    fn branch(&mut self, branch: &ExprIf) -> Result<Register> {
        let result = self.register(0);
        let locals = self.builder().locals.len();
        let condition = self.expression(&branch.cond)?;
        let to_else = self.emit(Operation::JumpUnless, [condition, 0, 0]);
        let value = self.block(&branch.then_branch)?;
        self.builder().locals.truncate(locals);
        self.emit(Operation::Move, [result, value, 0]);
        let Some((_, otherwise)) = &branch.else_branch else {
            self.builder().land(&[to_else]);
            return Ok(result);
        };
        let end = self.emit(Operation::Jump, [0; 3]);
        self.builder().land(&[to_else]);
        let value = self.expression(otherwise)?;
        self.emit(Operation::Move, [result, value, 0]);
        self.builder().land(&[end]);
        Ok(result)
    }

    fn choice(&mut self, choice: &ExprMatch) -> Result<Register> {
        let value = self.expression(&choice.expr)?;
        let result = self.register(0);
        let mut ends = Vec::new();
        for arm in &choice.arms {
            let locals = self.builder().locals.len();
            let failures = self.test(&arm.pat, value)?;
            let arm_value = self.expression(&arm.body)?;
            self.emit(Operation::Move, [result, arm_value, 0]);
            ends.push(self.emit(Operation::Jump, [0; 3]));
            self.builder().land(&failures);
            self.builder().locals.truncate(locals);
        }
        self.builder().land(&ends);
        Ok(result)
    }

    /// `let pattern = value` as a condition: a register with whether it matched.
    fn condition(&mut self, pattern: &Pat, value: &Expr) -> Result<Register> {
        let value = self.expression(value)?;
        let of = self.primitive("bool")?;
        let result = self.load(Constant::Integer(0), of);
        let failures = self.test(pattern, value)?;
        let one = self.constant(Constant::Integer(1));
        self.emit(Operation::Constant, [result, one, 0]);
        self.builder().land(&failures);
        Ok(result)
    }

    /// Binds the variables of a pattern that cannot fail.
    pub fn bind(&mut self, pattern: &Pat, value: Register) -> Result<()> {
        let failures = self.test(pattern, value)?;
        self.builder().land(&failures);
        Ok(())
    }

    /// Tests a value and binds variables; returns the jumps of failed tests.
    fn test(&mut self, pattern: &Pat, value: Register) -> Result<Vec<usize>> {
        match pattern {
            Pat::Wild(_) | Pat::Rest(_) => Ok(Vec::new()),
            Pat::Ident(ident) => self.test_name(ident, value),
            Pat::Lit(literal) => {
                let literal = self.literal(&literal.lit)?;
                Ok(vec![self.test_equal(value, literal)?])
            }
            Pat::Path(path) => self.test_symbol(&path.path, value),
            Pat::TupleStruct(pattern) => {
                let mut failures = self.test_symbol(&pattern.path, value)?;
                failures.extend(self.test_parts(pattern.elems.iter(), value)?);
                Ok(failures)
            }
            Pat::Tuple(pattern) => self.test_parts(pattern.elems.iter(), value),
            Pat::Slice(pattern) => self.test_parts(pattern.elems.iter(), value),
            Pat::Struct(pattern) => self.test_structure(pattern, value),
            Pat::Reference(inner) => self.test(&inner.pat, value),
            Pat::Paren(inner) => self.test(&inner.pat, value),
            Pat::Type(typed) => {
                let of = self.type_of(&typed.ty)?;
                self.builder().types[value as usize] = of;
                self.test(&typed.pat, value)
            }
            Pat::Guard(guarded) => {
                let mut failures = self.test(&guarded.pat, value)?;
                let condition = self.expression(&guarded.guard)?;
                failures.push(self.emit(Operation::JumpUnless, [condition, 0, 0]));
                Ok(failures)
            }
            Pat::Or(pattern) => {
                let mut matched = Vec::new();
                let mut failures = Vec::new();
                for case in &pattern.cases {
                    self.builder().land(&failures);
                    failures = self.test(case, value)?;
                    matched.push(self.emit(Operation::Jump, [0; 3]));
                }
                self.builder().land(&failures);
                let failed = self.emit(Operation::Jump, [0; 3]);
                self.builder().land(&matched);
                Ok(vec![failed])
            }
            Pat::Range(range) => {
                let ends = [&range.start, &range.end].into_iter().flatten();
                let ends = self.expressions(ends.map(|end| &**end))?;
                let closed = matches!(range.limits, RangeLimits::Closed(_));
                self.arguments(&ends);
                let (kind, of) = (self.constant(Constant::Integer(closed.into())), self.primitive("bool")?);
                let inside = self.register(of);
                self.emit(Operation::Is, [inside, value, kind]);
                Ok(vec![self.emit(Operation::JumpUnless, [inside, 0, 0])])
            }
            _ => {
                self.unsupported("pattern")?;
                Ok(Vec::new())
            }
        }
    }

    /// A name binds, unless it is that of a constant or variant.
    fn test_name(&mut self, ident: &syn::PatIdent, value: Register) -> Result<Vec<usize>> {
        let name = ident.ident.to_string();
        if name.starts_with(char::is_uppercase) && ident.subpat.is_none() {
            return self.test_symbol(&ident.ident.clone().into(), value);
        }
        self.builder().locals.push((name, value));
        match &ident.subpat {
            Some((_, pattern)) => self.test(pattern, value),
            None => Ok(Vec::new()),
        }
    }

    fn test_equal(&mut self, value: Register, other: Register) -> Result<usize> {
        let (name, of) = (self.objects.text("==")?, self.primitive("bool")?);
        self.arguments(&[other]);
        let (constant, equal) = (self.constant(Constant::Text(name)), self.register(of));
        self.emit(Operation::Binary, [equal, value, constant]);
        Ok(self.emit(Operation::JumpUnless, [equal, 0, 0]))
    }

    fn test_symbol(&mut self, path: &syn::Path, value: Register) -> Result<Vec<usize>> {
        let symbol = self.resolve(&segments(path), VALUES)?;
        if self.objects.kind(symbol) == Kind::Structure {
            return Ok(Vec::new());
        }
        let of = self.primitive("bool")?;
        let (constant, is) = (self.constant(Constant::Symbol(symbol)), self.register(of));
        self.emit(Operation::Is, [is, value, constant]);
        Ok(vec![self.emit(Operation::JumpUnless, [is, 0, 0])])
    }

    fn test_parts<'p>(
        &mut self,
        parts: impl Iterator<Item = &'p Pat>,
        value: Register,
    ) -> Result<Vec<usize>> {
        let mut failures = Vec::new();
        for (number, part) in parts.enumerate() {
            if matches!(part, Pat::Wild(_) | Pat::Rest(_)) {
                continue;
            }
            let register = self.register(0);
            self.emit(Operation::Part, [register, value, number as u16]);
            failures.extend(self.test(part, register)?);
        }
        Ok(failures)
    }

    fn test_structure(&mut self, pattern: &PatStruct, value: Register) -> Result<Vec<usize>> {
        let mut failures = self.test_symbol(&pattern.path, value)?;
        for field in &pattern.fields {
            let member: &Member = &field.member;
            let register = self.field_of(value, member)?;
            failures.extend(self.test(&field.pat, register)?);
        }
        Ok(failures)
    }
}

fn item(statement: &Stmt) -> Option<Item> {
    if let Stmt::Item(item) = statement { Some(item.clone()) } else { None }
}
