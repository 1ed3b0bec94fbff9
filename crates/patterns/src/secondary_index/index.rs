//! What an index is: a name, a value of each entity, and what its copies hold.

use crate::key_text::{self, escape};
use crate::{Error, Result};
use larimar_client::{Filter, keys};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The value of an entity in an index; `None` leaves the entity out of it.
type ValueOf<E> = Arc<dyn Fn(&E) -> Option<String> + Send + Sync>;

/// An index of entities by a value that they have.
///
/// The function must always give the same value for the same entity: by it old copies are found. Values stand in row
/// keys, which are never encrypted: an index by an encrypted property shows what it hides.
pub struct Index<E> {
    name: String,
    value: ValueOf<E>,
    is_unique: bool,
    only: Option<Vec<Cow<'static, str>>>,
}

impl<E> Index<E> {
    /// An index whose values no two entities of a partition share, with row keys `{name}_{value}`.
    ///
    /// Values stand in row keys as they are, so they cannot have the characters that keys cannot have. If they may be
    /// anything, [`escape`] them here and where they are looked for.
    pub fn unique(name: impl Into<String>, value: impl Fn(&E) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), value: Arc::new(value), is_unique: true, only: None }
    }

    /// An index whose values entities may share, with row keys `{name}_{value}!{primary key}`. Values may have any
    /// characters: they are escaped.
    pub fn many(name: impl Into<String>, value: impl Fn(&E) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { name: name.into(), value: Arc::new(value), is_unique: false, only: None }
    }

    /// Keeps only these properties in the copies, which then take less space.
    #[must_use]
    pub fn only(mut self, properties: impl IntoIterator<Item = impl Into<Cow<'static, str>>>) -> Self {
        self.only = Some(properties.into_iter().map(Into::into).collect());
        self
    }

    /// The name, which is also the prefix of row keys.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn is_unique(&self) -> bool {
        self.is_unique
    }

    pub(super) const fn is_partial(&self) -> bool {
        self.only.is_some()
    }

    pub(super) fn properties(&self) -> Option<&[Cow<'static, str>]> {
        self.only.as_deref()
    }

    /// The row key of an entity's copy, if it has one.
    pub(super) fn row_key_of(&self, entity: &E, primary: &str) -> Result<Option<String>> {
        (self.value)(entity).map(|value| self.row_key(&value, primary)).transpose()
    }

    pub(super) fn row_key(&self, value: &str, primary: &str) -> Result<String> {
        let name = &self.name;
        let key = match self.is_unique {
            true => format!("{name}_{value}"),
            false => format!("{name}_{}!{}", escape(value), escape(primary)),
        };
        key_text::check(&key)?;
        Ok(key)
    }

    pub(super) fn filter(&self, range: IndexRange) -> Filter {
        range.filter(&self.name, self.is_unique)
    }
}

impl<E> Clone for Index<E> {
    fn clone(&self) -> Self {
        let Self { name, value, is_unique, only } = self;
        Self { name: name.clone(), value: Arc::clone(value), is_unique: *is_unique, only: only.clone() }
    }
}

impl<E> fmt::Debug for Index<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, is_unique, only, .. } = self;
        let mut text = f.debug_struct("Index");
        text.field("name", name).field("is_unique", is_unique).field("only", only).finish_non_exhaustive()
    }
}

/// Which values of an index a query asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexRange {
    /// All of them.
    All,
    /// One of them.
    Equal(String),
    /// Those that start with a text.
    StartsWith(String),
    /// Those from the first text up to the second, which is left out. They compare by UTF-16 code units.
    Between(String, String),
}

impl IndexRange {
    /// The rows of the range in an index. Values that entities share are escaped and followed by a sign.
    pub(super) fn filter(self, index: &str, is_unique: bool) -> Filter {
        let row = |value: &str| format!("{index}_{}", if is_unique { value.to_owned() } else { escape(value) });
        let row_key = keys::row_key();
        match self {
            Self::All => row_key.starts_with(row("")),
            Self::Equal(value) if is_unique => row_key.eq(row(&value)),
            Self::Equal(value) => row_key.starts_with(row(&value) + "!"),
            Self::StartsWith(text) => row_key.starts_with(row(&text)),
            Self::Between(first, end) => row_key.between(row(&first), row(&end)),
        }
    }
}

/// Refuses a prefix that would leave unclear where it ends, or that keys cannot have.
pub(super) fn check_prefix(prefix: &str) -> Result<()> {
    match !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        true => Ok(()),
        false => Err(Error::Invalid(format!("expected a prefix of letters, digits and hyphens, found '{prefix}'"))),
    }
}
