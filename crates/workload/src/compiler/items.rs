//! Items of a file become symbols, in four passes: names, imports, members of implementations, then types and bodies. So
//! an item may use any other of its file, wherever it stands.

use super::front::{ANY, Front};
use super::objects::{Field, Kind, Link};
use super::types::segments;
use nvlab_rvm::heap::{Result, Words};
use syn::spanned::Spanned;
use syn::{
    Block, Expr, Fields, FnArg, GenericParam, Generics, ImplItem, Item, ItemImpl, Signature, TraitItem, Type,
    UseTree,
};

fn line(of: &impl Spanned) -> usize {
    of.span().start().line
}

impl<W: Words> Front<W> {
    /// Compiles the items of a module, the innermost scope. Returns whether every function fits its numbers.
    pub fn items(&mut self, items: &[Item]) -> Result<bool> {
        self.within_modules(items, &mut |front, items| front.declare_all(items))?;
        self.within_modules(items, &mut |front, items| front.import_all(items))?;
        let first = self.implementations;
        self.within_modules(items, &mut |front, items| front.declare_members(items))?;
        self.implementations = first;
        self.within_modules(items, &mut |front, items| front.define_all(items))
    }

    /// Runs a pass over a module and those inside it.
    fn within_modules(
        &mut self,
        items: &[Item],
        pass: &mut impl FnMut(&mut Self, &[Item]) -> Result<bool>,
    ) -> Result<bool> {
        let mut fits = pass(self, items)?;
        for item in items {
            if let Item::Mod(module) = item {
                let symbol = self.declare(&module.ident.to_string(), Kind::Module, line(module))?;
                self.scopes.push(symbol);
                let inner = module.content.as_ref().map_or(&[][..], |(_, items)| items);
                fits &= self.within_modules(inner, pass)?;
                self.scopes.pop();
            }
        }
        Ok(fits)
    }

    fn declare_all(&mut self, items: &[Item]) -> Result<bool> {
        for item in items {
            let (ident, kind) = match item {
                Item::Const(item) => (&item.ident, Kind::Constant),
                Item::Static(item) => (&item.ident, Kind::Constant),
                Item::Fn(item) => (&item.sig.ident, Kind::Function),
                Item::Struct(item) => (&item.ident, Kind::Structure),
                Item::Union(item) => (&item.ident, Kind::Structure),
                Item::Trait(item) => (&item.ident, Kind::Trait),
                Item::Type(item) => (&item.ident, Kind::Alias),
                Item::Enum(item) => (&item.ident, Kind::Enumeration),
                Item::Macro(item) => match &item.ident {
                    Some(ident) => (ident, Kind::Macro),
                    None => continue,
                },
                _ => continue,
            };
            let symbol = self.declare(&ident.to_string(), kind, line(item))?;
            if let Item::Enum(item) = item {
                self.scopes.push(symbol);
                for variant in &item.variants {
                    self.declare(&variant.ident.to_string(), Kind::Variant, line(variant))?;
                }
                self.scopes.pop();
            }
        }
        Ok(true)
    }

    fn import_all(&mut self, items: &[Item]) -> Result<bool> {
        for item in items {
            if let Item::Use(item) = item {
                self.import(&item.tree, &mut Vec::new(), line(item))?;
            }
        }
        Ok(true)
    }

    fn import(&mut self, tree: &UseTree, path: &mut Vec<String>, line: usize) -> Result<()> {
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.import(&tree.tree, path, line)?;
                path.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path, line)?;
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                let last = path.last().cloned().unwrap_or_default();
                self.import_as(path, &last, line)?;
            }
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.import_as(path, &name.ident.to_string(), line)?;
                path.pop();
            }
            UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                self.import_as(path, &name.rename.to_string(), line)?;
                path.pop();
            }
            UseTree::Glob(_) => {
                let target = self.resolve(path, ANY)?;
                let glob = self.declare(&format!("{}::*", path.join("::")), Kind::Glob, line)?;
                self.objects.set_field(glob, Field::About, target)?;
            }
        }
        Ok(())
    }

    fn import_as(&mut self, path: &[String], name: &str, line: usize) -> Result<()> {
        let target = self.resolve(path, ANY)?;
        let import = self.declare(name, Kind::Import, line)?;
        if import != target {
            self.objects.set_field(import, Field::About, target)?;
        }
        Ok(())
    }

    /// Runs `inside` in the scope of an implementation: that of the type, or of the trait for the type.
    fn implementation(
        &mut self,
        item: &ItemImpl,
        inside: impl FnOnce(&mut Self) -> Result<bool>,
    ) -> Result<bool> {
        self.implementations += 1;
        let of = item.trait_.as_ref().map_or("impl".into(), |(path, _)| segments(path).join("::"));
        let name = format!("{of}#{}", self.implementations);
        let symbol = self.declare(&name, Kind::Implementation, line(item))?;
        self.scopes.push(symbol);
        self.generics(&item.generics)?;
        let self_type = self.type_of(&item.self_ty)?;
        self.objects.set_field(symbol, Field::About, self_type)?;
        let named = self.named_by(self_type).unwrap_or(symbol);
        self.selves.push(named);
        if item.trait_.is_none() {
            self.scopes.push(named);
        }
        let outcome = inside(self);
        if item.trait_.is_none() {
            self.scopes.pop();
        }
        self.selves.pop();
        self.scopes.pop();
        outcome
    }

    fn declare_members(&mut self, items: &[Item]) -> Result<bool> {
        for item in items {
            let Item::Impl(item) = item else { continue };
            self.implementation(item, |front| {
                for member in &item.items {
                    let (ident, kind) = match member {
                        ImplItem::Fn(member) => (&member.sig.ident, Kind::Function),
                        ImplItem::Const(member) => (&member.ident, Kind::Constant),
                        ImplItem::Type(member) => (&member.ident, Kind::Alias),
                        _ => continue,
                    };
                    let symbol = front.declare(&ident.to_string(), kind, line(member))?;
                    if let ImplItem::Fn(member) = member {
                        front.scopes.push(symbol);
                        front.generics(&member.sig.generics)?;
                        let returned = front.returned(&member.sig.output)?;
                        front.scopes.pop();
                        front.objects.set_field(symbol, Field::About, returned)?;
                    }
                }
                Ok(true)
            })?;
        }
        Ok(true)
    }

    fn define_all(&mut self, items: &[Item]) -> Result<bool> {
        let mut fits = true;
        for item in items {
            fits &= self.define(item)?;
        }
        Ok(fits)
    }

    /// Items inside a function.
    pub fn inner_items(&mut self, items: &[Item]) -> Result<bool> {
        self.declare_all(items)?;
        self.import_all(items)?;
        let first = self.implementations;
        self.declare_members(items)?;
        self.implementations = first;
        self.define_all(items)
    }

    fn define(&mut self, item: &Item) -> Result<bool> {
        match item {
            Item::Const(item) => self.value(&item.ident.to_string(), line(item), &item.ty, Some(&item.expr)),
            Item::Static(item) => self.value(&item.ident.to_string(), line(item), &item.ty, Some(&item.expr)),
            Item::Fn(item) => self.function(&item.sig, Some(&item.block)),
            Item::Type(item) => {
                let symbol = self.declare(&item.ident.to_string(), Kind::Alias, line(item))?;
                let of = self.type_of(&item.ty)?;
                self.objects.set_field(symbol, Field::About, of)?;
                Ok(true)
            }
            Item::Struct(item) => {
                let symbol = self.declare(&item.ident.to_string(), Kind::Structure, line(item))?;
                self.fields(symbol, &item.generics, &item.fields)
            }
            Item::Enum(item) => {
                let symbol = self.declare(&item.ident.to_string(), Kind::Enumeration, line(item))?;
                self.scopes.push(symbol);
                self.generics(&item.generics)?;
                for variant in &item.variants {
                    let symbol = self.declare(&variant.ident.to_string(), Kind::Variant, line(variant))?;
                    self.fields(symbol, &Generics::default(), &variant.fields)?;
                }
                self.scopes.pop();
                Ok(true)
            }
            Item::Trait(item) => {
                let symbol = self.declare(&item.ident.to_string(), Kind::Trait, line(item))?;
                self.scopes.push(symbol);
                self.selves.push(symbol);
                self.generics(&item.generics)?;
                let mut fits = true;
                for member in &item.items {
                    fits &= self.trait_member(member)?;
                }
                self.selves.pop();
                self.scopes.pop();
                Ok(fits)
            }
            Item::Impl(item) => self.implementation(item, |front| {
                let mut fits = true;
                for member in &item.items {
                    fits &= front.member_of_implementation(member)?;
                }
                Ok(fits)
            }),
            Item::Use(_) | Item::Mod(_) | Item::Macro(_) | Item::ExternCrate(_) => Ok(true),
            _ => {
                self.unsupported += 1;
                Ok(true)
            }
        }
    }

    fn trait_member(&mut self, member: &TraitItem) -> Result<bool> {
        match member {
            TraitItem::Fn(member) => self.function(&member.sig, member.default.as_ref()),
            TraitItem::Const(member) => {
                let default = member.default.as_ref().map(|(_, expression)| expression);
                self.value(&member.ident.to_string(), line(member), &member.ty, default)
            }
            TraitItem::Type(member) => {
                self.declare(&member.ident.to_string(), Kind::Alias, line(member)).map(|_| true)
            }
            _ => {
                self.unsupported += 1;
                Ok(true)
            }
        }
    }

    fn member_of_implementation(&mut self, member: &ImplItem) -> Result<bool> {
        match member {
            ImplItem::Fn(member) => self.function(&member.sig, Some(&member.block)),
            ImplItem::Const(member) => {
                self.value(&member.ident.to_string(), line(member), &member.ty, Some(&member.expr))
            }
            ImplItem::Type(member) => {
                let symbol = self.declare(&member.ident.to_string(), Kind::Alias, line(member))?;
                let of = self.type_of(&member.ty)?;
                self.objects.set_field(symbol, Field::About, of)?;
                Ok(true)
            }
            _ => {
                self.unsupported += 1;
                Ok(true)
            }
        }
    }

    fn generics(&mut self, generics: &Generics) -> Result<()> {
        for parameter in &generics.params {
            match parameter {
                GenericParam::Type(parameter) => {
                    self.declare(&parameter.ident.to_string(), Kind::Parameter, line(parameter))?;
                }
                GenericParam::Const(parameter) => {
                    self.declare(&parameter.ident.to_string(), Kind::Parameter, line(parameter))?;
                }
                GenericParam::Lifetime(_) => {}
            }
        }
        Ok(())
    }

    fn fields(&mut self, of: Link, generics: &Generics, fields: &Fields) -> Result<bool> {
        self.scopes.push(of);
        self.selves.push(of);
        self.generics(generics)?;
        for (index, field) in fields.iter().enumerate() {
            let name = field.ident.as_ref().map_or(index.to_string(), |ident| ident.to_string());
            let symbol = self.declare(&name, Kind::Field, line(field))?;
            let of = self.type_of(&field.ty)?;
            self.objects.set_field(symbol, Field::About, of)?;
        }
        self.selves.pop();
        self.scopes.pop();
        Ok(true)
    }

    /// A constant, and the code that computes it.
    fn value(&mut self, name: &str, line: usize, of: &Type, expression: Option<&Expr>) -> Result<bool> {
        let symbol = self.declare(name, Kind::Constant, line)?;
        let of = self.type_of(of)?;
        self.objects.set_field(symbol, Field::About, of)?;
        match expression {
            Some(expression) => self.body(symbol, &[], |front| front.expression(expression)),
            None => Ok(true),
        }
    }

    fn function(&mut self, signature: &Signature, block: Option<&Block>) -> Result<bool> {
        let symbol = self.declare(&signature.ident.to_string(), Kind::Function, line(&signature.ident))?;
        self.scopes.push(symbol);
        self.generics(&signature.generics)?;
        let returned = self.returned(&signature.output)?;
        self.objects.set_field(symbol, Field::About, returned)?;
        let inputs: Vec<&FnArg> = signature.inputs.iter().collect();
        let fits = match block {
            Some(block) => self.body(symbol, &inputs, |front| front.block(block)),
            None => Ok(true),
        };
        self.scopes.pop();
        fits
    }
}
