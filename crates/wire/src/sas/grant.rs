//! What a verified token allows, and what each operation needs.

use super::{Permissions, SasError};
use larimar_model::utf16;
use std::cmp::Ordering;

/// What a verified token allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The letters.
    pub permissions: Permissions,
    /// Where they hold.
    pub scope: Scope,
    /// Whether the token is of a version that answers 404 to what it does not allow.
    pub(super) hides_refusals: bool,
}

/// Where a token holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// For entities of one table.
    Table {
        /// The table's folded name.
        table: String,
        /// The entities of it.
        keys: KeyLimits,
    },
    /// For the whole account.
    Account {
        /// The kinds of resources.
        types: Vec<ResourceType>,
    },
}

/// The kinds of resources that account tokens tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceType {
    /// The service itself: properties, statistics.
    Service,
    /// Tables.
    Container,
    /// Entities.
    Object,
}

impl ResourceType {
    pub(super) const fn letter(self) -> u8 {
        match self {
            Self::Service => b's',
            Self::Container => b'c',
            Self::Object => b'o',
        }
    }
}

/// The entities that a token is for: those from (`start_partition`, `start_row`) to (`end_partition`,
/// `end_row`), both included, in the order of a scan. An absent partition leaves its side open; an absent
/// row means the whole partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// `spk`.
    pub start_partition: Option<String>,
    /// `srk`, only with `spk`.
    pub start_row: Option<String>,
    /// `epk`.
    pub end_partition: Option<String>,
    /// `erk`, only with `epk`.
    pub end_row: Option<String>,
}

impl KeyLimits {
    /// The first key that is allowed, if there is a limit: its partition and its row.
    #[must_use]
    pub fn lower(&self) -> Option<(&str, &str)> {
        Some((self.start_partition.as_deref()?, self.start_row.as_deref().unwrap_or("")))
    }

    /// The last key that is allowed, if there is a limit: its partition, and its row unless all rows of
    /// that partition are allowed.
    #[must_use]
    pub fn upper(&self) -> Option<(&str, Option<&str>)> {
        Some((self.end_partition.as_deref()?, self.end_row.as_deref()))
    }

    /// Whether there is no limit.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        self.start_partition.is_none() && self.end_partition.is_none()
    }

    /// Whether the entity of these keys is allowed.
    #[must_use]
    pub fn contains(&self, partition: &str, row: &str) -> bool {
        let after_start = self.lower().is_none_or(|(first_partition, first_row)| {
            utf16::compare(partition, first_partition).then_with(|| utf16::compare(row, first_row)) != Ordering::Less
        });
        let before_end = self.upper().is_none_or(|(last_partition, last_row)| {
            let rows = || last_row.map_or(Ordering::Equal, |last_row| utf16::compare(row, last_row));
            utf16::compare(partition, last_partition).then_with(rows) != Ordering::Greater
        });
        after_start && before_end
    }
}

/// What an operation needs a token to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need<'a> {
    /// The kinds of resources it counts among; one of them suffices.
    pub types: &'static [ResourceType],
    /// The letters.
    pub letters: Letters,
    /// The table whose entities it works on, in any case.
    pub table: Option<&'a str>,
}

/// The letters that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    /// All of these.
    All(&'static str),
    /// One of these.
    Any(&'static str),
    /// No letters suffice: the operation needs an account key.
    Never,
}

/// The operations of the Table service (service: create an account SAS, create a service SAS).
impl<'a> Need<'a> {
    /// Get Table Service Properties, Get Table Service Stats.
    pub const READ_SERVICE: Self = Self::new(&[ResourceType::Service], Letters::All("r"));
    /// Set Table Service Properties.
    pub const WRITE_SERVICE: Self = Self::new(&[ResourceType::Service], Letters::All("w"));
    /// Query Tables. The reference says containers, some clients' documentation says the service.
    pub const QUERY_TABLES: Self = Self::new(&[ResourceType::Container, ResourceType::Service], Letters::All("l"));
    /// Query Tables for one table by its name.
    pub const GET_TABLE: Self = Self::new(&[ResourceType::Container], Letters::All("l"));
    /// Create Table.
    pub const CREATE_TABLE: Self = Self::new(&[ResourceType::Container], Letters::Any("cw"));
    /// Delete Table.
    pub const DELETE_TABLE: Self = Self::new(&[ResourceType::Container], Letters::All("d"));
    /// Get and Set Table ACL.
    pub const ACL: Self = Self::new(&[ResourceType::Container], Letters::Never);

    /// Query Entities, and the read of one.
    #[must_use]
    pub const fn query(table: &'a str) -> Self {
        Self::entities(table, "r")
    }

    /// Insert Entity.
    #[must_use]
    pub const fn insert(table: &'a str) -> Self {
        Self::entities(table, "a")
    }

    /// Update Entity and Merge Entity.
    #[must_use]
    pub const fn update(table: &'a str) -> Self {
        Self::entities(table, "u")
    }

    /// Insert Or Replace Entity and Insert Or Merge Entity.
    #[must_use]
    pub const fn upsert(table: &'a str) -> Self {
        Self::entities(table, "au")
    }

    /// Delete Entity.
    #[must_use]
    pub const fn delete(table: &'a str) -> Self {
        Self::entities(table, "d")
    }

    const fn entities(table: &'a str, letters: &'static str) -> Self {
        Self { types: &[ResourceType::Object], letters: Letters::All(letters), table: Some(table) }
    }

    const fn new(types: &'static [ResourceType], letters: Letters) -> Self {
        Self { types, letters, table: None }
    }
}

impl Grant {
    /// Whether the token allows an operation. Rows are another matter: see [`Grant::keys`].
    ///
    /// # Errors
    /// The first check that fails: the resource, then the letters.
    pub fn permits(&self, need: &Need<'_>) -> Result<(), SasError> {
        let allowed = self.check(need);
        allowed.map_err(|error| if self.hides_refusals { SasError::Hidden } else { error })
    }

    /// The limits of the entities that the token is for. An operation on an entity outside of them is
    /// refused with [`Grant::refusal_of_key`]; a query leaves such entities out.
    #[must_use]
    pub const fn keys(&self) -> Option<&KeyLimits> {
        match &self.scope {
            Scope::Table { keys, .. } => Some(keys),
            Scope::Account { .. } => None,
        }
    }

    /// Checks that the entity of these keys is within the token's limits.
    ///
    /// # Errors
    /// An entity outside of them.
    pub fn permits_key(&self, partition: &str, row: &str) -> Result<(), SasError> {
        match self.keys() {
            Some(keys) if !keys.contains(partition, row) => Err(self.refusal_of_key()),
            _ => Ok(()),
        }
    }

    /// The error for an entity outside of the token's limits.
    #[must_use]
    pub const fn refusal_of_key(&self) -> SasError {
        if self.hides_refusals { SasError::Hidden } else { SasError::Scope }
    }

    fn check(&self, need: &Need<'_>) -> Result<(), SasError> {
        match &self.scope {
            Scope::Table { table, .. } => {
                if !need.table.is_some_and(|needed| needed.eq_ignore_ascii_case(table)) {
                    return Err(SasError::Scope);
                }
            }
            Scope::Account { types } => {
                if need.letters == Letters::Never {
                    return Err(SasError::Scope);
                }
                if !need.types.iter().any(|kind| types.contains(kind)) {
                    return Err(SasError::ResourceType);
                }
            }
        }
        let has = |letter| self.permissions.contains(letter);
        let allowed = match need.letters {
            Letters::All(letters) => letters.bytes().all(has),
            Letters::Any(letters) => letters.bytes().any(has),
            Letters::Never => return Err(SasError::Scope),
        };
        if allowed { Ok(()) } else { Err(SasError::Permission) }
    }
}
