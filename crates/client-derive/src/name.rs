//! Which texts are names of properties, so that a wrong one does not wait for the service to refuse it.

use proc_macro2::Span;

const UTF16_MAX: usize = 255;
const SYSTEM: [&str; 3] = ["PartitionKey", "RowKey", "Timestamp"];
/// Words of the filter language, which no filter can name as a property. The client has the same list.
const WORDS: [&str; 20] = [
    "and", "or", "not", "eq", "ne", "gt", "ge", "lt", "le", "true", "false", "null", "add", "sub", "mul", "div", "mod",
    "NaN", "INF", "in",
];

/// Refuses what is not a name of a property, and the names that are taken.
pub(crate) fn check(name: &str, span: Span) -> syn::Result<()> {
    if SYSTEM.contains(&name) {
        let attribute = if name == "Timestamp" { "timestamp" } else { "partition_key)] or #[entity(row_key" };
        return Err(syn::Error::new(
            span,
            format!("`{name}` is a property of the service's own: mark the field with #[entity({attribute})]"),
        ));
    }
    if !is_identifier(name) || name.encode_utf16().count() > UTF16_MAX {
        return Err(syn::Error::new(
            span,
            format!(
                "expected a property name of at most 255 letters, digits and underscores, no digit first, found `{name}`"
            ),
        ));
    }
    Ok(())
}

/// Whether texts that start with the prefix may be names of properties.
pub(crate) fn check_prefix(prefix: &str, span: Span) -> syn::Result<()> {
    if prefix.is_empty() || is_identifier(prefix) {
        return Ok(());
    }
    Err(syn::Error::new(span, "expected a prefix of letters, digits and underscores, no digit first"))
}

/// Whether a filter can speak of the property.
pub(crate) fn is_filterable(name: &str) -> bool {
    !WORDS.contains(&name)
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && chars.all(|c| c == '_' || c.is_alphanumeric())
}
