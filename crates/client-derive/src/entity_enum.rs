//! `#[derive(EntityEnum)]`: entities of several types in one table, distinguished by a property or by their keys.

use crate::attributes::{Container, Seen, each, word};
use crate::name;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use std::cmp::Reverse;
use std::collections::HashMap;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Fields, Ident, LitStr, Path, Type};

/// A variant, and how its entities are distinguished from the others.
struct Variant {
    ident: Ident,
    type_: Type,
    by: By,
}

impl Variant {
    /// What its row keys start with, if they distinguish it.
    fn prefix(&self) -> Option<String> {
        match &self.by {
            By::RowKeyPrefix(prefix) => Some(prefix.value()),
            By::Type(_) | By::Other => None,
        }
    }
}

enum By {
    /// The property's value: given, or that of the type or the variant's name.
    Type(Option<LitStr>),
    RowKeyPrefix(LitStr),
    /// None of the others.
    Other,
}

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    if let Some(generic) = input.generics.params.first() {
        return Err(Error::new(generic.span(), "#[derive(EntityEnum)] is for enums without parameters"));
    }
    let container = Container::read(&input.attrs, &["tag", "crate"])?;
    let tag = container.tag.as_ref().map_or_else(|| "EntityType".to_owned(), LitStr::value);
    if let Some(given) = &container.tag {
        name::check(&tag, given.span())?;
    }
    let variants = read(input)?;
    let client = &container.client;
    let constants = variants.iter().map(|variant| constant(client, variant));
    let writes = variants.iter().map(|variant| write(client, &tag, variant, &variants));
    // The variant for the rest is asked last, wherever it stands; longer prefixes before those that they start with.
    let (others, mut tagged): (Vec<_>, Vec<_>) = variants.iter().partition(|variant| matches!(variant.by, By::Other));
    tagged.sort_by_key(|variant| variant.prefix().map(|prefix| Reverse(prefix.len())));
    let types = variants.iter().filter(|variant| matches!(variant.by, By::Type(_)));
    let types = types.map(|variant| constant_name(&variant.ident));
    let reads = tagged.clone().into_iter().map(|variant| read_variant(client, &tag, variant));
    let rest = match others.first() {
        Some(Variant { ident, type_, .. }) => quote_spanned! {type_.span()=>
            <#type_ as #client::Entity>::from_dynamic(entity).map(Self::#ident)
        },
        None => {
            let expected = tagged.into_iter().map(expected);
            quote!(::std::result::Result::Err(#client::__private::unknown_entity(&entity, #tag, &[#(#expected),*])))
        }
    };
    let (name, columns, encrypted) = (&input.ident, columns(client, &tag, &variants), encrypted(client, &variants));
    Ok(quote! {
        const _: () = {
            #(#constants)*
            const _: () = #client::__private::assert_types_differ(&[#(#types),*]);

            #[automatically_derived]
            #[allow(deprecated)]
            impl #client::Entity for #name {
                #encrypted

                fn to_dynamic(
                    &self,
                ) -> ::std::result::Result<::std::borrow::Cow<'_, #client::DynamicEntity>, #client::EntityError> {
                    match self { #(#writes)* }
                }

                fn from_dynamic(
                    entity: #client::DynamicEntity,
                ) -> ::std::result::Result<Self, #client::EntityError> {
                    #(#reads)*
                    #rest
                }

                #columns
            }
        };
    })
}

fn read(input: &DeriveInput) -> syn::Result<Vec<Variant>> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "#[derive(EntityEnum)] is for enums: structs derive Entity"));
    };
    let mut variants = Vec::new();
    let mut taken = HashMap::new();
    for variant in &data.variants {
        let variant = read_one(variant)?;
        let (key, span) = match &variant.by {
            By::Type(Some(name)) => (format!("type = \"{}\"", name.value()), name.span()),
            By::Type(None) => (format!("type = \"{}\"", variant.ident.unraw()), variant.ident.span()),
            By::RowKeyPrefix(prefix) => (format!("row_key_prefix = \"{}\"", prefix.value()), prefix.span()),
            By::Other => ("other".to_owned(), variant.ident.span()),
        };
        if let Some(other) = taken.insert(key.clone(), variant.ident.to_string()) {
            return Err(Error::new(span, format!("`{key}` is that of `{other}` already")));
        }
        variants.push(variant);
    }
    if variants.is_empty() {
        return Err(Error::new(input.ident.span(), "an enum without variants is not an entity"));
    }
    Ok(variants)
}

fn read_one(variant: &syn::Variant) -> syn::Result<Variant> {
    let type_ = match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed[0].ty.clone(),
        _ => {
            return Err(Error::new(
                variant.ident.span(),
                "expected a variant that holds one entity, such as `Employee(Employee)`",
            ));
        }
    };
    let (mut by, mut seen) = (By::Type(None), Seen::default());
    each(&variant.attrs, |meta| {
        let word = word(&meta, &["type", "row_key_prefix", "other"])?;
        seen.once(&word, &meta)?;
        seen.only_with(&word, &[])?;
        by = match word.as_str() {
            "type" => By::Type(Some(meta.value()?.parse()?)),
            "row_key_prefix" => By::RowKeyPrefix(meta.value()?.parse()?),
            _ => By::Other,
        };
        Ok(())
    })?;
    Ok(Variant { ident: variant.ident.clone(), type_, by })
}

/// The name of the constant that holds a variant's type.
fn constant_name(variant: &Ident) -> Ident {
    quote::format_ident!("TYPE_OF_{}", variant.unraw(), span = variant.span())
}

/// The constant that holds a variant's type. It is the type's own, if that has one, for that is what it reads.
fn constant(client: &Path, variant: &Variant) -> TokenStream {
    let By::Type(given) = &variant.by else { return TokenStream::new() };
    let (name, type_, own) = (constant_name(&variant.ident), &variant.type_, variant.ident.unraw().to_string());
    let given = match given {
        Some(given) => quote!(::std::option::Option::Some(#given)),
        None => quote!(::std::option::Option::None),
    };
    let span = variant.type_.span();
    quote_spanned! {span=>
        #[allow(non_upper_case_globals)]
        const #name: &str = #client::__private::variant_type(#given, <#type_ as #client::Entity>::ENTITY_TYPE, #own);
    }
}

fn write(client: &Path, tag: &str, variant: &Variant, all: &[Variant]) -> TokenStream {
    let Variant { ident, type_, by } = variant;
    let write = quote_spanned!(type_.span()=> <#type_ as #client::Entity>::to_dynamic(entity));
    match by {
        By::Type(_) => {
            let constant = constant_name(ident);
            quote!(Self::#ident(entity) => #client::__private::with_type(#write?, #tag, #constant),)
        }
        By::RowKeyPrefix(prefix) => {
            let start = prefix.value();
            let longer =
                all.iter().filter_map(Variant::prefix).filter(|other| *other != start && other.starts_with(&start));
            quote!(Self::#ident(entity) => #client::__private::with_row_key_prefix(#write?, #prefix, &[#(#longer),*]),)
        }
        By::Other => quote!(Self::#ident(entity) => #write,),
    }
}

fn read_variant(client: &Path, tag: &str, variant: &Variant) -> TokenStream {
    let Variant { ident, type_, by } = variant;
    let read = quote_spanned!(type_.span()=> <#type_ as #client::Entity>::from_dynamic);
    match by {
        By::Type(_) => {
            let constant = constant_name(ident);
            quote! {
                if #client::__private::has_type(&entity, #tag, #constant) {
                    return #read(#client::__private::without_type::<#type_>(entity, #tag)).map(Self::#ident);
                }
            }
        }
        By::RowKeyPrefix(prefix) => quote! {
            if entity.row_key.starts_with(#prefix) {
                return #read(entity).map(Self::#ident);
            }
        },
        By::Other => TokenStream::new(),
    }
}

/// The error for an entity of none of the types.
fn expected(variant: &Variant) -> TokenStream {
    match &variant.by {
        By::Type(_) => {
            let constant = constant_name(&variant.ident);
            quote!(#constant)
        }
        By::RowKeyPrefix(prefix) => {
            let text = format!("RowKey {}...", prefix.value());
            quote!(#text)
        }
        By::Other => TokenStream::new(),
    }
}

fn columns(client: &Path, tag: &str, variants: &[Variant]) -> TokenStream {
    let types = variants.iter().map(|variant| &variant.type_);
    let tag = variants.iter().any(|variant| matches!(variant.by, By::Type(_))).then_some(tag);
    let row_key = variants.iter().any(|variant| matches!(variant.by, By::RowKeyPrefix(_))).then_some("RowKey");
    let told_by = tag.into_iter().chain(row_key);
    quote! {
        fn columns() -> ::std::option::Option<::std::vec::Vec<::std::borrow::Cow<'static, str>>> {
            let mut columns = ::std::vec::Vec::new();
            #(columns.push(::std::borrow::Cow::Borrowed(#told_by));)*
            #(columns.extend(<#types as #client::Entity>::columns()?);)*
            columns.sort_unstable();
            columns.dedup();
            ::std::option::Option::Some(columns)
        }
    }
}

/// The properties that any of the types encrypts.
fn encrypted(client: &Path, variants: &[Variant]) -> TokenStream {
    let types: Vec<_> = variants.iter().map(|variant| &variant.type_).collect();
    let all = quote!(&[#(<#types as #client::Entity>::ENCRYPTED),*]);
    quote! {
        const ENCRYPTED: &'static [#client::EncryptedProperty] =
            &#client::__private::encrypted::<{ #client::__private::encrypted_count(#all) }>(#all);
    }
}
