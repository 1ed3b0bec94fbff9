//! The functions that give a struct's columns to filters: `Employee::last_name()`.

use crate::attributes::Container;
use crate::entity::column_name;
use crate::fields::{Field, Format, Kind, Property};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Path, Visibility};

/// An `impl` with a function for each field that a filter can speak of.
pub(crate) fn of(input: &DeriveInput, container: &Container, fields: &[Field]) -> TokenStream {
    let fields = fields.iter().filter(|field| field.has_column && !container.no_columns);
    let functions: Vec<_> = fields.filter_map(|field| function(&container.client, &input.vis, field)).collect();
    if functions.is_empty() {
        return TokenStream::new();
    }
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    quote! {
        #[automatically_derived]
        // A program need not filter by every property, and fields of its own may carry lints.
        #[allow(dead_code, non_snake_case, unreachable_pub, private_interfaces, clippy::pedantic, clippy::nursery)]
        impl #generics #name #arguments #bounds {
            #(#functions)*
        }
    }
}

fn function(client: &Path, vis: &Visibility, field: &Field) -> Option<TokenStream> {
    if let Kind::Property(Property { encrypt: Some(encrypt), .. }) = &field.kind {
        let (hashed, function) = (encrypt.hashed.as_ref()?, format_ident!("{}_hash", field.ident));
        let documentation = format!("The column `{}`, a keyed hash of `{}`.", hashed.value(), field.ident);
        let column = column(client, &hashed.value(), hashed.span());
        return Some(quote_spanned! {field.ident.span()=>
            #[doc = #documentation]
            #[must_use]
            #vis fn #function() -> #client::Column<::std::vec::Vec<u8>> {
                #column
            }
        });
    }
    let (name, type_, ident) = (column_name(field)?, &field.type_, &field.ident);
    let scalar = match &field.kind {
        Kind::PartitionKey | Kind::RowKey => quote!(::std::string::String),
        Kind::Timestamp => quote!(#client::Timestamp),
        Kind::Property(property) if property.format == Format::Text => quote!(::std::string::String),
        _ => quote_spanned!(type_.span()=> <#type_ as #client::Property>::Scalar),
    };
    let (documentation, column) = (format!("The column `{name}`."), column(client, name, type_.span()));
    let column_type = quote_spanned!(type_.span()=> #client::Column<#scalar>);
    Some(quote_spanned! {ident.span()=>
        #[doc = #documentation]
        #[must_use]
        #vis fn #ident() -> #column_type {
            #column
        }
    })
}

/// The macro has checked the name, in any alphabet.
fn column(client: &Path, name: &str, span: Span) -> TokenStream {
    if name.is_ascii() {
        quote_spanned!(span=> #client::Column::named(#name))
    } else {
        quote_spanned! {span=>
            #client::Column::try_named(#name).expect("the name was checked when the program was built")
        }
    }
}
