//! Reading the fields of a struct: what each is for and what its property is called.

use crate::attributes::{Seen, each, word};
use crate::case::Case;
use crate::name;
use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Expr, Fields, GenericArgument, Ident, LitStr, PathArguments, Token, Type};

/// A field of an entity.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) type_: Type,
    pub(crate) kind: Kind,
    /// Whether there is to be a function for its column.
    pub(crate) has_column: bool,
}

/// What a field is for.
pub(crate) enum Kind {
    PartitionKey,
    RowKey,
    Timestamp,
    ETag,
    Skip,
    /// A struct whose properties are the entity's, with a prefix to their names.
    Flatten(String),
    Property(Property),
}

/// A field that is a property.
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) format: Format,
    pub(crate) default: Option<Absent>,
    pub(crate) encrypt: Option<Encrypt>,
}

/// How a field's value becomes the property's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// By the client's trait.
    Plain,
    /// As text, by `Display` and `FromStr`.
    Text,
    /// As JSON text.
    Json,
}

/// What an absent property is read as.
pub(crate) enum Absent {
    OfType,
    Value(Box<Expr>),
}

/// A property that is encrypted, with the one that holds its hash.
pub(crate) struct Encrypt {
    pub(crate) span: Span,
    pub(crate) hashed: Option<LitStr>,
}

const WORDS: [&str; 13] = [
    "partition_key",
    "row_key",
    "timestamp",
    "etag",
    "rename",
    "skip",
    "default",
    "flatten",
    "string",
    "json",
    "encrypt",
    "hashed",
    "no_column",
];

/// Reads the fields of a struct that names them.
pub(crate) fn read(input: &DeriveInput, derive: &str, case: Case) -> syn::Result<Vec<Field>> {
    let Data::Struct(data) = &input.data else {
        let hint = if derive == "Entity" { ": for an enum of entities there is #[derive(EntityEnum)]" } else { "" };
        return Err(Error::new(input.ident.span(), format!("#[derive({derive})] is for structs{hint}")));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new(
            input.ident.span(),
            format!("#[derive({derive})] names properties after fields, and this struct has no names for its fields"),
        ));
    };
    // All errors of a struct are shown at once.
    let mut read = Vec::new();
    let mut errors: Option<Error> = None;
    for field in &fields.named {
        match read_field(field, case) {
            Ok(field) => read.push(field),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    errors.map_or(Ok(read), Err)
}

fn read_field(field: &syn::Field, case: Case) -> syn::Result<Field> {
    let ident = field.ident.clone().expect("the fields are named");
    let mut seen = Seen::default();
    let (mut rename, mut hashed, mut prefix): (Option<LitStr>, Option<LitStr>, Option<LitStr>) = (None, None, None);
    let mut default = None;
    each(&field.attrs, |meta| {
        let word = word(&meta, &WORDS)?;
        seen.once(&word, &meta)?;
        match word.as_str() {
            "rename" => rename = Some(meta.value()?.parse()?),
            "hashed" => hashed = Some(meta.value()?.parse()?),
            "flatten" if meta.input.peek(Token![=]) => prefix = Some(meta.value()?.parse()?),
            "default" if meta.input.peek(Token![=]) => default = Some(Absent::Value(Box::new(meta.value()?.parse()?))),
            "default" => default = Some(Absent::OfType),
            _ => {}
        }
        Ok(())
    })?;
    let kind = match special(&seen)? {
        Some("partition_key") => Kind::PartitionKey,
        Some("row_key") => Kind::RowKey,
        Some("timestamp") => Kind::Timestamp,
        Some("etag") => Kind::ETag,
        Some("skip") => Kind::Skip,
        Some(_) => {
            let text = prefix.as_ref().map_or_else(String::new, LitStr::value);
            name::check_prefix(&text, prefix.span())?;
            Kind::Flatten(text)
        }
        None => Kind::Property(property(&ident, case, &seen, rename, hashed, default)?),
    };
    Ok(Field { ident, type_: field.ty.clone(), kind, has_column: seen.span("no_column").is_none() })
}

/// The word that makes a field something else than a property, if there is one.
fn special(seen: &Seen) -> syn::Result<Option<&'static str>> {
    for word in ["partition_key", "row_key", "timestamp", "etag", "skip", "flatten"] {
        if seen.span(word).is_some() {
            seen.only_with(word, &["no_column"])?;
            return Ok(Some(word));
        }
    }
    Ok(None)
}

fn property(
    ident: &Ident,
    case: Case,
    seen: &Seen,
    rename: Option<LitStr>,
    hashed: Option<LitStr>,
    default: Option<Absent>,
) -> syn::Result<Property> {
    let (name, span) = match &rename {
        Some(rename) => (rename.value(), rename.span()),
        None => (case.apply(&ident.unraw().to_string()), ident.span()),
    };
    name::check(&name, span)?;
    let format = match (seen.span("string"), seen.span("json")) {
        (Some(_), Some(json)) => return Err(Error::new(json, "`json` has no meaning next to `string`")),
        (Some(_), None) => Format::Text,
        (None, Some(_)) => Format::Json,
        (None, None) => Format::Plain,
    };
    let encrypt = seen.span("encrypt");
    if let Some(hashed) = &hashed {
        name::check(&hashed.value(), hashed.span())?;
        if encrypt.is_none() {
            return Err(Error::new(hashed.span(), "`hashed` has a meaning only next to `encrypt`"));
        }
    }
    Ok(Property { name, span, format, default, encrypt: encrypt.map(|span| Encrypt { span, hashed }) })
}

/// The `T` of a type spelled `Option<T>`.
pub(crate) fn option_of(type_: &Type) -> Option<&Type> {
    let Type::Path(path) = type_ else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) if arguments.args.len() == 1 => Some(inner),
        _ => None,
    }
}
