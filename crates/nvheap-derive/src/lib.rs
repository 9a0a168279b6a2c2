//! `#[derive(Persist)]`: see `nvlab-nvheap`.
//!
//! The layout must be fixed, so a struct is `#[repr(C)]`, and an enum `#[repr(u8)]` or another integer. Every field must itself be
//! persistent in the same heap, which the generated code asks of the compiler field by field.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Fields, GenericParam, Ident, LitInt, Meta, Result, Token, Type, TypeParamBound,
};

/// Makes a type persistent. `#[persist(heap = Bank)]`: it has pointers into heaps of this brand, or of this type parameter;
/// `#[persist(version = 2)]`: its values are not those of version 1, although the layout may be the same.
#[proc_macro_derive(Persist, attributes(persist))]
pub fn derive_persist(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

#[derive(Default)]
struct Attributes {
    heap: Option<Type>,
    version: u32,
    repr: Option<Ident>,
    is_c: bool,
}

fn attributes(input: &DeriveInput) -> Result<Attributes> {
    let mut found = Attributes { version: 1, ..Attributes::default() };
    for attribute in &input.attrs {
        if attribute.path().is_ident("persist") {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("heap") {
                    found.heap = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("version") {
                    found.version = meta.value()?.parse::<LitInt>()?.base10_parse()?;
                } else {
                    return Err(meta.error("expected `heap = Brand` or `version = number`"));
                }
                Ok(())
            })?;
        } else if attribute.path().is_ident("repr") {
            let reprs = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
            for repr in reprs {
                if repr.path().is_ident("packed") {
                    return Err(Error::new(repr.span(), "a packed type cannot be borrowed field by field"));
                }
                found.is_c |= repr.path().is_ident("C");
                found.repr = repr.path().get_ident().cloned().or(found.repr);
            }
        }
    }
    Ok(found)
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = attributes(input)?;
    let name = &input.ident;
    let Some(repr) = &attributes.repr else {
        let what = match input.data {
            Data::Enum(_) => "#[repr(u8)]",
            _ => "#[repr(C)]",
        };
        let message =
            format!("a persistent type needs {what}: without it, its layout may differ between compilers");
        return Err(Error::new(name.span(), message));
    };
    // The brand: named, or a parameter bounded by `Brand`, or any.
    let parameter = input.generics.params.iter().find_map(|parameter| match parameter {
        GenericParam::Type(parameter) if parameter.bounds.iter().any(is_brand) => Some(&parameter.ident),
        _ => None,
    });
    let is_any = attributes.heap.is_none() && parameter.is_none();
    let brand = match (&attributes.heap, parameter) {
        (Some(heap), _) => quote!(#heap),
        (None, Some(parameter)) => quote!(#parameter),
        (None, None) => quote!(__Brand),
    };
    let body = match &input.data {
        Data::Struct(data) => of_struct(&data.fields, &brand),
        Data::Enum(data) => {
            let generics = &input.generics;
            let is_generic =
                generics.type_params().next().is_some() || generics.const_params().next().is_some();
            of_enum(name, data, &attributes, (repr, is_generic), &brand)?
        }
        Data::Union(_) => {
            return Err(Error::new(
                name.span(),
                "a union cannot be persistent: which of its fields is valid is unknown",
            ));
        }
    };
    let Body { any_bytes, describe, is_valid } = body;
    let mut generics = input.generics.clone();
    let parameters: Vec<Ident> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    for parameter in parameters.iter().filter(|&ident| *ident != brand.to_string()) {
        generics
            .make_where_clause()
            .predicates
            .push(syn::parse_quote!(#parameter: ::nvlab_nvheap::Persist<#brand>));
    }
    let (_, of_type, _) = input.generics.split_for_impl();
    let where_clause = generics.where_clause.clone();
    if is_any {
        generics.params.push(syn::parse_quote!(__Brand: ::nvlab_nvheap::Brand));
    }
    let (of_impl, _, _) = generics.split_for_impl();
    let (version, text) = (attributes.version, name.to_string());
    Ok(quote! {
        // SAFETY: the layout is fixed by `repr`; every field is described, checked, and persistent in the same heap.
        unsafe impl #of_impl ::nvlab_nvheap::Persist<#brand> for #name #of_type #where_clause {
            const ANY_BYTES: bool = #any_bytes;
            fn describe(shape: &mut ::nvlab_nvheap::Shape) {
                shape.begin(#text, #version, ::core::mem::size_of::<Self>());
                #describe
                shape.end();
            }
            unsafe fn is_valid(at: *const Self) -> bool {
                #is_valid
            }
        }
    })
}

fn is_brand(bound: &TypeParamBound) -> bool {
    matches!(bound, TypeParamBound::Trait(bound) if bound.path.segments.last().is_some_and(|last| last.ident == "Brand"))
}

struct Body {
    any_bytes: TokenStream,
    describe: TokenStream,
    is_valid: TokenStream,
}

fn of_struct(fields: &Fields, brand: &TokenStream) -> Body {
    let (mut any_bytes, mut describe, mut is_valid) = (quote!(true), quote!(), quote!(true));
    for (index, field) in fields.iter().enumerate() {
        let member = match &field.ident {
            Some(ident) => syn::Member::from(ident.clone()),
            None => syn::Member::from(index),
        };
        let text = field.ident.as_ref().map_or_else(|| index.to_string(), Ident::to_string);
        let field = &field.ty;
        // With the span of the field, so that the compiler points to it.
        let persist = quote_spanned!(field.span()=> <#field as ::nvlab_nvheap::Persist<#brand>>);
        any_bytes.extend(quote!(&& #persist::ANY_BYTES));
        describe.extend(quote_spanned! {field.span()=>
            shape.field::<#field, #brand>(#text, ::core::mem::offset_of!(Self, #member));
        });
        is_valid.extend(quote! {
            // SAFETY: the field is inside what the caller answers for.
            && unsafe { #persist::is_valid(&raw const (*at).#member) }
        });
    }
    Body { any_bytes, describe, is_valid: quote!(let _ = at; #is_valid) }
}

fn of_enum(
    name: &Ident,
    data: &syn::DataEnum,
    attributes: &Attributes,
    (repr, is_generic): (&Ident, bool),
    brand: &TokenStream,
) -> Result<Body> {
    let integers = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"];
    if !integers.iter().any(|integer| repr == integer) {
        return Err(Error::new(repr.span(), "a persistent enum must state its size: #[repr(u8)]"));
    }
    if data.variants.is_empty() {
        return Err(Error::new(name.span(), "an enum without variants has no values"));
    }
    let has_fields = data.variants.iter().any(|variant| !matches!(variant.fields, Fields::Unit));
    if has_fields && attributes.is_c {
        let message = "a persistent enum with fields must be #[repr(u8)] without C, which changes the layout";
        return Err(Error::new(repr.span(), message));
    }
    let mut describe = quote!(shape.leaf(stringify!(#repr)););
    let mut is_valid = quote!(false);
    // The number of a variant is one more than that of the one before, unless it says another.
    let (mut first, mut behind) = (quote!(0), 0_u64);
    for variant in &data.variants {
        if let Some((_, number)) = &variant.discriminant {
            (first, behind) = (quote!(#number), 0);
        }
        let more = proc_macro2::Literal::u64_unsuffixed(behind);
        behind += 1;
        let (ident, text) = (&variant.ident, variant.ident.to_string());
        let number = match has_fields {
            true => quote!(const { let first: #repr = #first; first + #more }),
            false => quote!((#name::#ident as #repr)),
        };
        if matches!(variant.fields, Fields::Unit) {
            describe.extend(quote!(shape.leaf(&format!("{}={}", #text, #number));));
            is_valid.extend(quote!(|| found == #number));
            continue;
        }
        let Body { describe: fields, is_valid: are_valid, .. } =
            of_variant(&variant.fields, (repr, is_generic), brand);
        describe.extend(quote! {
            shape.begin_variant(#text, &#number);
            { #fields }
            shape.end();
        });
        is_valid.extend(quote!(|| (found == #number && { #are_valid })));
    }
    let is_valid = quote! {
        // SAFETY: the bytes of the integer, aligned.
        let found = unsafe { *at.cast::<#repr>() };
        #is_valid
    };
    Ok(Body { any_bytes: quote!(false), describe, is_valid })
}

/// The fields of a variant: laid out like those of a `repr(C)` struct whose first field is the integer.
fn of_variant(fields: &Fields, (repr, is_generic): (&Ident, bool), brand: &TokenStream) -> Body {
    let begin = quote!(let end = ::core::mem::size_of::<#repr>(););
    let (mut describe, mut is_valid) = (begin.clone(), begin);
    for (index, field) in fields.iter().enumerate() {
        let text = field.ident.as_ref().map_or_else(|| index.to_string(), Ident::to_string);
        let field = &field.ty;
        let place = quote! {
            let at_field = end.next_multiple_of(::core::mem::align_of::<#field>());
            let end = at_field + ::core::mem::size_of::<#field>();
        };
        if !is_generic {
            // The same that `field_of_variant` asserts, before anything is generated.
            describe.extend(quote_spanned! {field.span()=>
                const _: () = assert!(
                    !::core::mem::needs_drop::<#field>(),
                    "a field of a persistent enum holds no pointer: use a struct with a kind and `Option`s of pointers"
                );
            });
        }
        describe.extend(quote_spanned! {field.span()=>
            #place
            shape.field_of_variant::<#field, #brand>(#text, at_field);
        });
        is_valid.extend(quote! {
            #place
            // SAFETY: the field is inside what the caller answers for: its variant is the one that is there.
            if !unsafe { <#field as ::nvlab_nvheap::Persist<#brand>>::is_valid(at.byte_add(at_field).cast()) } {
                return false;
            }
        });
    }
    describe.extend(quote!(let _ = end;));
    is_valid.extend(quote!(let _ = end; true));
    Body { any_bytes: quote!(false), describe, is_valid }
}
