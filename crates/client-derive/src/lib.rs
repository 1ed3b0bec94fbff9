//! The derive macros of `larimar-client`, which re-exports and documents them.
//!
//! Each macro reads its attributes into a description of the type ([`attributes`], [`fields`]), refuses what makes no
//! sense with an error on the token at fault, and writes code that calls the client's public traits and its hidden
//! helpers.

mod attributes;
mod case;
mod column_functions;
mod entity;
mod entity_enum;
mod fields;
mod name;
mod property;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct an entity. See `larimar_client::entities`.
#[proc_macro_derive(Entity, attributes(entity))]
pub fn derive_entity(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), entity::derive_entity)
}

/// Makes a struct a part of entities. See `larimar_client::entities`.
#[proc_macro_derive(Properties, attributes(entity))]
pub fn derive_properties(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), entity::derive_properties)
}

/// Makes an enum of entities an entity. See `larimar_client::entities`.
#[proc_macro_derive(EntityEnum, attributes(entity))]
pub fn derive_entity_enum(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), entity_enum::derive)
}

/// Makes an enum without data, or a struct around one value, the type of a property. See `larimar_client::entities`.
#[proc_macro_derive(Property, attributes(entity))]
pub fn derive_property(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), property::derive)
}

fn expand(input: DeriveInput, derive: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    derive(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
