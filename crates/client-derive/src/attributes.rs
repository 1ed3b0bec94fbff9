//! Reading `#[entity(...)]`: on a type, and what all its places have in common.

use crate::case::Case;
use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, LitStr, Path, parse_quote};

/// What `#[entity(...)]` says on a type.
pub(crate) struct Container {
    /// Where the client is found.
    pub(crate) client: Path,
    pub(crate) rename_all: Option<LitStr>,
    pub(crate) partition_key: Option<Expr>,
    pub(crate) row_key: Option<Expr>,
    pub(crate) entity_type: Option<LitStr>,
    pub(crate) tag: Option<LitStr>,
    pub(crate) no_columns: bool,
}

impl Container {
    /// Reads the attributes of a type, of which only the words in `known` have a meaning there.
    pub(crate) fn read(attributes: &[Attribute], known: &[&str]) -> syn::Result<Self> {
        let mut read = Self {
            client: parse_quote!(::larimar_client),
            rename_all: None,
            partition_key: None,
            row_key: None,
            entity_type: None,
            tag: None,
            no_columns: false,
        };
        let mut seen = Seen::default();
        each(attributes, |meta| {
            let word = word(&meta, known)?;
            seen.once(&word, &meta)?;
            match word.as_str() {
                "crate" => read.client = meta.value()?.call(Path::parse_mod_style)?,
                "rename_all" => read.rename_all = Some(meta.value()?.parse()?),
                "partition_key" => read.partition_key = Some(meta.value()?.parse()?),
                "row_key" => read.row_key = Some(meta.value()?.parse()?),
                "entity_type" => read.entity_type = Some(meta.value()?.parse()?),
                "tag" => read.tag = Some(meta.value()?.parse()?),
                _ => read.no_columns = true,
            }
            Ok(())
        })?;
        Ok(read)
    }

    /// How names of properties are written.
    pub(crate) fn property_case(&self) -> syn::Result<Case> {
        self.rename_all.as_ref().map_or(Ok(Case::Pascal), Case::of_properties)
    }

    /// How texts are written.
    pub(crate) fn text_case(&self) -> syn::Result<Case> {
        self.rename_all.as_ref().map_or(Ok(Case::None), Case::of_texts)
    }
}

/// Calls a function with each word within `#[entity(...)]`.
pub(crate) fn each(
    attributes: &[Attribute],
    mut read: impl FnMut(ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    let ours = attributes.iter().filter(|attribute| attribute.path().is_ident("entity"));
    ours.into_iter().try_for_each(|attribute| attribute.parse_nested_meta(&mut read))
}

/// The word that an attribute begins with, if it is one of the known.
pub(crate) fn word(meta: &ParseNestedMeta<'_>, known: &[&str]) -> syn::Result<String> {
    let found = meta.path.get_ident().map(ToString::to_string).filter(|word| known.contains(&word.as_str()));
    found.ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|word| format!("`{word}`")).collect();
        Error::new(meta.path.span(), format!("unknown attribute here, expected one of {}", known.join(", ")))
    })
}

/// The words read so far, none of which may come twice.
#[derive(Default)]
pub(crate) struct Seen(Vec<(String, Span)>);

impl Seen {
    pub(crate) fn once(&mut self, word: &str, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        if self.0.iter().any(|(seen, _)| seen == word) {
            return Err(Error::new(meta.path.span(), format!("`{word}` is given twice")));
        }
        self.0.push((word.to_owned(), meta.path.span()));
        Ok(())
    }

    /// Where the word stands, if it was read.
    pub(crate) fn span(&self, word: &str) -> Option<Span> {
        self.0.iter().find(|(seen, _)| seen == word).map(|(_, span)| *span)
    }

    /// Refuses the words that have no meaning next to another.
    pub(crate) fn only_with(&self, word: &str, others: &[&str]) -> syn::Result<()> {
        match self.0.iter().find(|(seen, _)| seen != word && !others.contains(&seen.as_str())) {
            Some((other, span)) => Err(Error::new(*span, format!("`{other}` has no meaning next to `{word}`"))),
            None => Ok(()),
        }
    }
}
