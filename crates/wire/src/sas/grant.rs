//! What a verified token allows. What each operation needs is in `need.rs`.

use super::need::{Letters, Need, Target};
use super::{Permissions, ResponseOverrides, SasError};
use larimar_model::utf16;
use std::cmp::Ordering;

/// What a verified token allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The letters.
    pub permissions: Permissions,
    /// Where they hold.
    pub scope: Scope,
    /// The headers that reads of a blob with this token answer in the place of the blob's own.
    pub overrides: Option<Box<ResponseOverrides>>,
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
    /// For the messages of one queue.
    Queue {
        /// The queue.
        queue: String,
    },
    /// For one container and its blobs.
    Container {
        /// The container.
        container: String,
    },
    /// For one blob, or one snapshot of it.
    Blob {
        /// The blob's container.
        container: String,
        /// The blob's name.
        blob: String,
        /// The snapshot that the token is for; without one it is for the blob and all its snapshots.
        snapshot: Option<String>,
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
    /// Tables, queues, containers.
    Container,
    /// Entities, messages, blobs.
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
            Scope::Queue { .. } | Scope::Container { .. } | Scope::Blob { .. } | Scope::Account { .. } => None,
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

    /// Checks that the token allows to write in the place of a blob that is there: `c` alone only makes
    /// new ones.
    ///
    /// # Errors
    /// A token without `w`.
    pub fn permits_overwrite(&self) -> Result<(), SasError> {
        match self.permissions.contains(b'w') {
            true => Ok(()),
            false if self.hides_refusals => Err(SasError::Hidden),
            false => Err(SasError::Overwrite),
        }
    }

    fn check(&self, need: &Need<'_>) -> Result<(), SasError> {
        if need.letters == Letters::Never || !self.scope.covers(&need.target) {
            return Err(SasError::Scope);
        }
        if let Scope::Account { types } = &self.scope
            && !need.types.iter().any(|kind| types.contains(kind))
        {
            return Err(SasError::ResourceType);
        }
        let has = |letter| self.permissions.contains(letter);
        let allowed = match need.letters {
            Letters::All(letters) => letters.bytes().all(has),
            Letters::Any(letters) => letters.bytes().any(has),
            Letters::Never => false,
        };
        if allowed { Ok(()) } else { Err(SasError::Permission) }
    }
}

impl Scope {
    /// Whether this is where a token holds.
    fn covers(&self, target: &Target<'_>) -> bool {
        match (self, target) {
            (Self::Account { .. }, _) => true,
            (Self::Table { table, .. }, Target::Table(needed)) => needed.eq_ignore_ascii_case(table),
            (Self::Queue { queue }, Target::Queue(needed)) => needed == queue,
            (Self::Container { container }, Target::Container(needed) | Target::Blob { container: needed, .. }) => {
                needed == container
            }
            (Self::Blob { container, blob, snapshot }, Target::Blob { container: its, blob: name, snapshot: at }) => {
                let is_snapshot = |only: &String| at.is_some_and(|at| at.to_string() == *only);
                its == container && name == blob && snapshot.as_ref().is_none_or(is_snapshot)
            }
            _ => false,
        }
    }
}
