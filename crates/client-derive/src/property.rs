//! `#[derive(Property)]`: enums without data as texts, and structs around one value as that value.

use crate::attributes::{Container, Seen, each, word};
use crate::case::Case;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use std::collections::HashMap;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, LitStr, Path, Type, Variant};

pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    if let Some(generic) = input.generics.params.first() {
        return Err(Error::new(generic.span(), "#[derive(Property)] is for types without parameters"));
    }
    match &input.data {
        Data::Enum(data) => of_enum(input, data),
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => of_newtype(input, &fields.unnamed[0].ty),
            _ => Err(Error::new(
                input.ident.span(),
                "#[derive(Property)] is for enums without data and structs around one value: \
                 for a struct of several there are #[entity(flatten)] and #[entity(json)]",
            )),
        },
        Data::Union(_) => Err(Error::new(input.ident.span(), "#[derive(Property)] is for enums and structs")),
    }
}

fn of_enum(input: &DeriveInput, data: &DataEnum) -> syn::Result<TokenStream> {
    let container = Container::read(&input.attrs, &["rename_all", "crate"])?;
    let texts = texts(data, container.text_case()?)?;
    if texts.is_empty() {
        return Err(Error::new(input.ident.span(), "an enum without variants has no value to store"));
    }
    let (client, name) = (&container.client, &input.ident);
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let expected = texts.iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(" or ");
    let others = trait_impls(client, name);
    Ok(quote! {
        #others

        #[automatically_derived]
        // Old variants are still read.
        #[allow(deprecated)]
        impl #client::Property for #name {
            type Scalar = Self;

            fn to_value(
                &self,
            ) -> ::std::result::Result<::std::option::Option<#client::Value>, #client::PropertyError> {
                let text = match self {
                    #(Self::#variants => #texts,)*
                };
                ::std::result::Result::Ok(::std::option::Option::Some(#client::Value::from(text)))
            }

            fn from_value(
                value: ::std::option::Option<#client::Value>,
            ) -> ::std::result::Result<Self, #client::PropertyError> {
                let text = <::std::string::String as #client::Property>::from_value(value)?;
                match text.as_str() {
                    #(#texts => ::std::result::Result::Ok(Self::#variants),)*
                    other => ::std::result::Result::Err(#client::__private::unknown_text(#expected, other)),
                }
            }
        }
    })
}

/// What lets the enum stand in filters and be encrypted.
fn trait_impls(client: &Path, name: &syn::Ident) -> TokenStream {
    let literal = |type_: TokenStream| {
        quote! {
            #[automatically_derived]
            impl #client::IntoLiteral<#name> for #type_ {
                fn into_literal(self) -> #client::Value {
                    #client::__private::literal::<#name>(&self)
                }
            }
        }
    };
    let (owned, borrowed) = (literal(quote!(#name)), literal(quote!(&#name)));
    quote! {
        #[automatically_derived]
        impl #client::__private::Text for #name {}
        #owned
        #borrowed
    }
}

/// The text of each variant.
fn texts(data: &DataEnum, case: Case) -> syn::Result<Vec<String>> {
    let mut taken = HashMap::new();
    let mut texts = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(Error::new(
                variant.fields.span(),
                "#[derive(Property)] stores the name of a variant, and this one has data besides: \
                 #[entity(json)] on the field that has this type stores both",
            ));
        }
        let (text, span) = match rename(variant)? {
            Some(rename) => (rename.value(), rename.span()),
            None => (case.apply(&variant.ident.unraw().to_string()), variant.ident.span()),
        };
        if let Some(other) = taken.insert(text.clone(), variant.ident.to_string()) {
            return Err(Error::new(span, format!("`{text}` is the text of `{other}` already")));
        }
        texts.push(text);
    }
    Ok(texts)
}

fn rename(variant: &Variant) -> syn::Result<Option<LitStr>> {
    let mut rename = None;
    let mut seen = Seen::default();
    each(&variant.attrs, |meta| {
        let word = word(&meta, &["rename"])?;
        seen.once(&word, &meta)?;
        rename = Some(meta.value()?.parse()?);
        Ok(())
    })?;
    Ok(rename)
}

/// A struct around one value is stored as that value and compared with what that value is compared with.
fn of_newtype(input: &DeriveInput, inner: &Type) -> syn::Result<TokenStream> {
    let client = Container::read(&input.attrs, &["crate"])?.client;
    let (name, scalar) = (&input.ident, quote_spanned!(inner.span()=> <#inner as #client::Property>::Scalar));
    Ok(quote! {
        #[automatically_derived]
        impl #client::Property for #name {
            type Scalar = #scalar;

            fn to_value(
                &self,
            ) -> ::std::result::Result<::std::option::Option<#client::Value>, #client::PropertyError> {
                <#inner as #client::Property>::to_value(&self.0)
            }

            fn from_value(
                value: ::std::option::Option<#client::Value>,
            ) -> ::std::result::Result<Self, #client::PropertyError> {
                <#inner as #client::Property>::from_value(value).map(Self)
            }
        }

        #[automatically_derived]
        impl #client::IntoLiteral<#scalar> for #name {
            fn into_literal(self) -> #client::Value {
                <#inner as #client::IntoLiteral<#scalar>>::into_literal(self.0)
            }
        }
    })
}
