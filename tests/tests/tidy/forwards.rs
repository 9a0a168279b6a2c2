//! A wrapper forwards every method that has a default: one it leaves out answers for nothing, not for what it wraps.
//!
//! A type wraps what it holds in a field or is generic over. If that implements a trait and the wrapper does too, then the
//! wrapper must define every method and constant of it, even where that is what the default does. What macros implement
//! is not seen.

use crate::sources::{root, rust_files};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::{
    Fields, GenericParam, ImplItem, Item, ItemImpl, ItemTrait, TraitItem, TypeParamBound, WherePredicate,
};

type Names = BTreeSet<String>;

/// A trait of the workspace.
struct Trait {
    krate: String,
    name: String,
    supers: Names,
    /// Methods and constants that have a default.
    defaults: Names,
}

/// An implementation of a trait.
struct Implementation {
    krate: String,
    place: String,
    of: String,
    on: String,
    defined: Names,
    /// The traits that bound the parameters which the implementing type names.
    bounds: Names,
}

/// What matters here of the sources.
#[derive(Default)]
struct Sources {
    traits: Vec<Trait>,
    implementations: Vec<Implementation>,
    /// By crate and type, the names in the types of its fields, with those of `dyn` traits.
    fields: BTreeMap<(String, String), Names>,
}

/// The names of types and traits in a piece of code.
fn names(code: &impl ToTokens) -> Names {
    let text = code.to_token_stream().to_string();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(char::is_uppercase)).map(str::to_string).collect()
}

/// The traits among bounds.
fn traits_among<'a>(bounds: impl IntoIterator<Item = &'a TypeParamBound>) -> Names {
    let of = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    };
    bounds.into_iter().filter_map(of).collect()
}

impl Sources {
    fn read(&mut self, krate: &str, place: &Path) {
        let text = std::fs::read_to_string(root().join(place)).unwrap();
        let file = syn::parse_file(&text).unwrap_or_else(|why| panic!("{}: {why}", place.display()));
        self.items(krate, &place.display().to_string(), &file.items);
    }

    fn items(&mut self, krate: &str, place: &str, items: &[Item]) {
        for item in items {
            match item {
                Item::Trait(item) => self.traits.push(declaration(krate, item)),
                Item::Impl(item) => self.implementations.extend(implementation(krate, place, item)),
                Item::Struct(item) => self.fields_of(krate, item.ident.to_string(), [&item.fields]),
                Item::Enum(item) => {
                    self.fields_of(krate, item.ident.to_string(), item.variants.iter().map(|v| &v.fields));
                }
                Item::Mod(item) => {
                    self.items(krate, place, item.content.as_ref().map_or(&[], |(_, items)| items));
                }
                _ => {}
            }
        }
    }

    fn fields_of<'a>(&mut self, krate: &str, name: String, all: impl IntoIterator<Item = &'a Fields>) {
        let fields = all.into_iter().flatten().flat_map(|field| names(&field.ty)).collect();
        self.fields.insert((krate.to_string(), name), fields);
    }

    /// The trait of a name: that of the crate itself, else the only one of another.
    fn find(&self, krate: &str, name: &str) -> Option<&Trait> {
        let mut named = self.traits.iter().filter(|found| found.name == name);
        let own = named.clone().find(|found| found.krate == krate);
        own.or_else(|| named.next().filter(|_| named.next().is_none()))
    }

    /// Whether a trait is another one, or requires it.
    fn implies(&self, (krate, name): (&str, &str), other: &Trait) -> bool {
        self.find(krate, name).is_some_and(|found| {
            let is_same = (&found.krate, &found.name) == (&other.krate, &other.name);
            is_same || found.supers.iter().any(|name| self.implies((&found.krate, name), other))
        })
    }

    /// Whether what a type wraps implements a trait.
    fn wraps(&self, wrapper: &Implementation, of: &Trait) -> bool {
        let Implementation { krate, on, bounds, .. } = wrapper;
        let none = Names::new();
        let fields = self.fields.get(&(krate.clone(), on.clone())).unwrap_or(&none);
        // What a box holds is a field's own name, too.
        let held =
            |other: &&Implementation| fields.contains(&other.on) && other.on != *on && other.on != "Box";
        let mut of_fields = self.implementations.iter().filter(held);
        of_fields.any(|other| self.implies((&other.krate, &other.of), of))
            || fields.iter().chain(bounds).any(|name| self.implies((krate, name), of))
    }

    /// What each wrapper leaves to a default although what it wraps has it.
    fn forgotten(&self) -> Vec<String> {
        let mut forgotten = Vec::new();
        for wrapper in &self.implementations {
            let Some(of) = self.find(&wrapper.krate, &wrapper.of) else { continue };
            let left: Vec<&String> = of.defaults.difference(&wrapper.defined).collect();
            if left.is_empty() || !self.wraps(wrapper, of) {
                continue;
            }
            let Implementation { place, of, on, .. } = wrapper;
            forgotten.extend(left.iter().map(|name| format!("{place}: {on} does not forward {of}::{name}")));
        }
        forgotten
    }
}

fn declaration(krate: &str, item: &ItemTrait) -> Trait {
    let default = |inner: &TraitItem| match inner {
        TraitItem::Fn(inner) => inner.default.as_ref().map(|_| inner.sig.ident.to_string()),
        TraitItem::Const(inner) => inner.default.as_ref().map(|_| inner.ident.to_string()),
        _ => None,
    };
    let defaults = item.items.iter().filter_map(default).collect();
    let (krate, name) = (krate.to_string(), item.ident.to_string());
    Trait { krate, name, supers: traits_among(&item.supertraits), defaults }
}

fn implementation(krate: &str, place: &str, item: &ItemImpl) -> Option<Implementation> {
    let (path, _) = item.trait_.as_ref()?;
    let of = path.segments.last()?.ident.to_string();
    let mentioned = names(&item.self_ty);
    let on = match &*item.self_ty {
        syn::Type::Path(path) => path.path.segments.last()?.ident.to_string(),
        _ => String::new(),
    };
    let mut bounds = Names::new();
    for parameter in &item.generics.params {
        if let GenericParam::Type(parameter) = parameter
            && mentioned.contains(&parameter.ident.to_string())
        {
            bounds.extend(traits_among(&parameter.bounds));
        }
    }
    for predicate in item.generics.where_clause.iter().flat_map(|clause| &clause.predicates) {
        if let WherePredicate::Type(predicate) = predicate
            && names(&predicate.bounded_ty).is_subset(&mentioned)
        {
            bounds.extend(traits_among(&predicate.bounds));
        }
    }
    // Of a blanket implementation the parameter is the type itself, which wraps nothing.
    let is_blanket = item
        .generics
        .params
        .iter()
        .any(|parameter| matches!(parameter, GenericParam::Type(parameter) if parameter.ident == on));
    let name = |inner: &ImplItem| match inner {
        ImplItem::Fn(inner) => Some(inner.sig.ident.to_string()),
        ImplItem::Const(inner) => Some(inner.ident.to_string()),
        _ => None,
    };
    let defined = item.items.iter().filter_map(name).collect();
    let (krate, place) = (krate.to_string(), place.to_string());
    (!is_blanket).then_some(Implementation { krate, place, of, on, defined, bounds })
}

#[test]
fn every_wrapper_forwards_what_has_a_default() {
    let mut sources = Sources::default();
    for file in rust_files(&root().join("crates")) {
        let place = file.strip_prefix(root()).unwrap();
        let krate = place.iter().nth(1).unwrap().to_str().unwrap();
        sources.read(krate, place);
    }
    let with_defaults = sources.traits.iter().filter(|found| !found.defaults.is_empty()).count();
    assert!(with_defaults > 5, "only {with_defaults} traits with defaults were found");
    let forgotten = sources.forgotten();
    assert!(forgotten.is_empty(), "{}", forgotten.join("\n"));
}

#[test]
fn a_wrapper_that_forgets_is_found() {
    let code = "trait Inner { fn a(&self) {} fn b(&self); }
        trait Outer: Inner { fn c(&self) {} fn d(&self) {} }
        impl<T: Outer> Inner for Around<T> { fn b(&self) {} }
        impl<T> Outer for Around<T> where T: Outer { fn c(&self) {} }
        struct Held(u8);
        impl Outer for Held { fn d(&self) {} }
        struct Holder { held: Option<Held> }
        impl Outer for Holder { fn c(&self) {} }
        struct Behind { outer: Box<dyn Outer> }
        impl Outer for Behind { fn d(&self) {} }
        impl<T: Inner> Outer for T {}";
    let mut sources = Sources::default();
    sources.items("x", "x.rs", &syn::parse_file(code).unwrap().items);
    let found = |on: &str, name: &str| format!("x.rs: {on} does not forward {name}");
    let expected =
        [("Around", "Inner::a"), ("Around", "Outer::d"), ("Holder", "Outer::d"), ("Behind", "Outer::c")];
    assert_eq!(sources.forgotten(), expected.map(|(on, name)| found(on, name)));
}
