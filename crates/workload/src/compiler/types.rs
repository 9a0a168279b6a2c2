//! Types of the source become type objects, one of each.

use super::front::{Front, TYPES};
use super::objects::{Class, Kind, Link, Space};
use nvlab_rvm::heap::{Result, Words};
use syn::{GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};

/// How a type is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Constructor {
    Named = 1,
    Reference,
    MutableReference,
    Pointer,
    Slice,
    Array,
    Tuple,
    Function,
    Bounds,
    Never,
    /// Inferred, or of a macro.
    Unknown,
}

/// The segments of a path.
pub fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

impl<W: Words> Front<W> {
    fn make(&mut self, constructor: Constructor, symbol: Link, arguments: &[Link]) -> Result<Link> {
        self.objects.type_of(constructor as u64, symbol, arguments)
    }

    /// The type of a symbol without arguments.
    pub fn named(&mut self, symbol: Link) -> Result<Link> {
        self.make(Constructor::Named, symbol, &[])
    }

    /// A type that every module knows.
    pub fn primitive(&mut self, name: &str) -> Result<Link> {
        let symbol = self.prelude(name)?;
        self.named(symbol)
    }

    pub fn reference_to(&mut self, to: Link, mutable: bool) -> Result<Link> {
        match mutable {
            true => self.make(Constructor::MutableReference, 0, &[to]),
            false => self.make(Constructor::Reference, 0, &[to]),
        }
    }

    pub fn tuple_of(&mut self, parts: &[Link]) -> Result<Link> {
        self.make(Constructor::Tuple, 0, parts)
    }

    /// The symbol whose fields and methods a value of a type has: that of the type behind its references.
    pub fn named_by(&self, mut of: Link) -> Option<Link> {
        loop {
            self.objects.expect(of, Class::Type).ok()?;
            let constructor = self.objects.word(of, 2);
            if constructor == Constructor::Named as u64 {
                return Some(self.objects.word(of, 3));
            }
            let is_reference = [Constructor::Reference, Constructor::MutableReference]
                .into_iter()
                .any(|reference| reference as u64 == constructor);
            if !is_reference {
                return None;
            }
            of = self.objects.word(of, 5);
        }
    }

    /// A field or method of a value of a type, if both are declared.
    pub fn part_of(&mut self, of: Link, name: &str, space: Space) -> Result<Option<Link>> {
        let name = self.objects.text(name)?;
        let symbol = self.named_by(of);
        let found = symbol.and_then(|symbol| self.objects.child(symbol, name, &[space]));
        Ok(found.filter(|&found| self.objects.kind(found) != Kind::External))
    }

    pub fn type_of(&mut self, source: &Type) -> Result<Link> {
        match source {
            Type::Path(path) => self.type_of_path(&path.path),
            Type::Reference(reference) => {
                let to = self.type_of(&reference.elem)?;
                self.reference_to(to, reference.mutability.is_some())
            }
            Type::Ptr(pointer) => self.wrap(Constructor::Pointer, &pointer.elem),
            Type::Slice(slice) => self.wrap(Constructor::Slice, &slice.elem),
            Type::Array(array) => self.wrap(Constructor::Array, &array.elem),
            Type::Paren(inner) => self.type_of(&inner.elem),
            Type::Group(inner) => self.type_of(&inner.elem),
            Type::Tuple(tuple) => {
                let parts = self.types_of(tuple.elems.iter())?;
                self.tuple_of(&parts)
            }
            Type::FnPtr(function) => {
                self.function_type(function.inputs.iter().map(|input| &input.ty), &function.output)
            }
            Type::ImplTrait(bounds) => self.bounds(bounds.bounds.iter()),
            Type::TraitObject(bounds) => self.bounds(bounds.bounds.iter()),
            Type::Never(_) => self.make(Constructor::Never, 0, &[]),
            _ => self.make(Constructor::Unknown, 0, &[]),
        }
    }

    fn wrap(&mut self, constructor: Constructor, inner: &Type) -> Result<Link> {
        let inner = self.type_of(inner)?;
        self.make(constructor, 0, &[inner])
    }

    fn types_of<'t>(&mut self, sources: impl Iterator<Item = &'t Type>) -> Result<Vec<Link>> {
        sources.map(|source| self.type_of(source)).collect()
    }

    fn function_type<'t>(
        &mut self,
        inputs: impl Iterator<Item = &'t Type>,
        output: &ReturnType,
    ) -> Result<Link> {
        let mut parts = vec![self.returned(output)?];
        parts.extend(self.types_of(inputs)?);
        self.make(Constructor::Function, 0, &parts)
    }

    /// What a function returns.
    pub fn returned(&mut self, output: &ReturnType) -> Result<Link> {
        match output {
            ReturnType::Default => self.tuple_of(&[]),
            ReturnType::Type(_, source) => self.type_of(source),
        }
    }

    fn bounds<'t>(&mut self, bounds: impl Iterator<Item = &'t TypeParamBound>) -> Result<Link> {
        let mut traits = Vec::new();
        for bound in bounds {
            if let TypeParamBound::Trait(bound) = bound {
                traits.push(self.type_of_path(&bound.path)?);
            }
        }
        self.make(Constructor::Bounds, 0, &traits)
    }

    fn type_of_path(&mut self, path: &syn::Path) -> Result<Link> {
        let symbol = self.resolve(&segments(path), TYPES)?;
        let mut arguments = Vec::new();
        for segment in &path.segments {
            match &segment.arguments {
                PathArguments::None => {}
                PathArguments::AngleBracketed(list) => {
                    for argument in &list.args {
                        match argument {
                            GenericArgument::Type(source) => arguments.push(self.type_of(source)?),
                            GenericArgument::AssocType(named) => arguments.push(self.type_of(&named.ty)?),
                            _ => {}
                        }
                    }
                }
                PathArguments::Parenthesized(list) => {
                    let inputs = list.inputs.iter().map(|input| &input.ty);
                    arguments.push(self.function_type(inputs, &list.output)?);
                }
            }
        }
        self.make(Constructor::Named, symbol, &arguments)
    }
}
