//! The derive macros of `larimar-client`, which re-exports and documents them.
//!
//! Each macro reads its attributes into a description of the type (`attributes`, `fields`), refuses what makes no
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

/// Makes a struct with named fields an entity.
///
/// | on the struct | on a field |
/// | --- | --- |
/// | `partition_key = expression`, `row_key = expression` | `partition_key`, `row_key` |
/// | `rename_all = "PascalCase" \| "camelCase" \| "snake_case" \| "none"` | `rename = "..."` |
/// | `entity_type = "..."` | `timestamp`, `etag` |
/// | `no_columns` | `no_column` |
/// | `crate = path` | `skip`, `default`, `default = expression` |
/// | | `string`, `json` |
/// | | `flatten`, `flatten = "Prefix_"` |
/// | | `encrypt`, `hashed = "..."` |
///
/// The guide of the client, `larimar_client::entities`, explains each with an example.
#[proc_macro_derive(Entity, attributes(entity))]
pub fn derive_entity(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), entity::derive_entity)
}

/// Makes a struct with named fields a part of entities, for `#[entity(flatten)]`.
///
/// It takes the attributes of `#[derive(Entity)]` but those of keys, time, version, type and encryption. The guide of
/// the client, `larimar_client::entities`, has an example.
#[proc_macro_derive(Properties, attributes(entity))]
pub fn derive_properties(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), entity::derive_properties)
}

/// Makes an enum, whose variants hold one entity each, an entity: one of several types in a table.
///
/// Variants are distinguished by the property `EntityType` (`#[entity(tag = "...")]` on the enum names another one),
/// which is the variant's name or `#[entity(type = "...")]`; or by `#[entity(row_key_prefix = "...")]`.
/// `#[entity(other)]` takes the rest. The guide of the client, `larimar_client::entities`, has an example.
#[proc_macro_derive(EntityEnum, attributes(entity))]
pub fn derive_entity_enum(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), entity_enum::derive)
}

/// Makes an enum without data, or a struct around one value, the type of a property.
///
/// An enum is stored as text: the variant's name, or `#[entity(rename = "...")]` on it. `#[entity(rename_all = "...")]`
/// on the enum is one of `PascalCase`, `camelCase`, `snake_case`, `kebab-case`, `lowercase`, `UPPERCASE`, `none`.
/// A struct is stored as its value. The guide of the client, `larimar_client::entities`, has an example.
#[proc_macro_derive(Property, attributes(entity))]
pub fn derive_property(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), property::derive)
}

fn expand(input: DeriveInput, derive: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    derive(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
