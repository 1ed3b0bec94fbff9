//! The parts of a store: the settings of each account, and each table, queue and container.

use super::MigrationError;
use super::digest::budget;
use crate::contract::{Engine, Flow, KeyRange, Position, Space, SpaceId, SpaceKind, SpaceName, successor};
use crate::error::{ReadError, WriteError};
use crate::hidden::is_hidden;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A part of a store that is copied and compared by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What the services keep for an account, such as their service properties.
    Settings {
        /// The account.
        account: String,
    },
    /// A table with its entities, a queue with its messages, or a container with its blobs; each with its access control
    /// list and metadata.
    Space {
        /// What it is.
        kind: SpaceKind,
        /// The account.
        account: String,
        /// Its name; of a table the folded one.
        name: String,
    },
}

/// The space that holds a part.
pub(super) type Parts = BTreeMap<Part, Space>;

/// Every part of a store.
pub(super) async fn parts(engine: &impl Engine) -> Result<Parts, MigrationError> {
    let mut parts = Parts::new();
    // The partition without a name is the engines' own, and holds our records.
    let mut range = KeyRange { start: Position::new(successor(""), ""), end: None };
    loop {
        let mut accounts = Vec::new();
        let next = engine.scan(SpaceId::SYSTEM, &range, budget(), |row| {
            if accounts.last().is_none_or(|last: &String| last != row.partition) {
                accounts.push(row.partition.to_owned());
            }
            Flow::Continue
        });
        let next =
            next.await.map_err(|error| MigrationError::Read { what: "the accounts' settings".to_owned(), error })?;
        for account in accounts {
            parts.insert(Part::Settings { account }, Space { id: SpaceId::SYSTEM, meta: Arc::new([]) });
        }
        let Some(next) = next else { break };
        range.start = next;
    }
    for account in engine.accounts().await?.into_iter().filter(|account| !is_hidden(account)) {
        for kind in [SpaceKind::Table, SpaceKind::Queue, SpaceKind::Container] {
            let mut from = String::new();
            loop {
                let listed = engine.list_spaces(SpaceName { account: &account, kind, name: &from }, LISTED_MAX).await?;
                let is_last = listed.len() < LISTED_MAX;
                for (name, space) in listed {
                    from = successor(&name);
                    parts.insert(Part::Space { kind, account: account.clone(), name }, space);
                }
                if is_last {
                    break;
                }
            }
        }
    }
    Ok(parts)
}

impl Part {
    /// Whether it is a table or container of storage analytics, which every server fills by itself.
    pub(super) fn is_analytics(&self) -> bool {
        match self {
            Self::Settings { .. } => false,
            Self::Space { kind: SpaceKind::Table, name, .. } => name.starts_with("$metrics"),
            Self::Space { kind: SpaceKind::Queue, .. } => false,
            Self::Space { kind: SpaceKind::Container, name, .. } => name == "$logs",
        }
    }

    /// The name of its space; `None` for settings.
    pub(super) fn space_name(&self) -> Option<SpaceName<'_>> {
        match self {
            Self::Settings { .. } => None,
            Self::Space { kind, account, name } => Some(SpaceName { kind: *kind, account, name }),
        }
    }

    pub(super) fn kind(&self) -> Option<SpaceKind> {
        self.space_name().map(|name| name.kind)
    }

    /// The rows of the part in its space.
    pub(super) fn range(&self) -> KeyRange {
        match self {
            Self::Settings { account } => KeyRange::partition(account),
            Self::Space { .. } => KeyRange::all(),
        }
    }

    pub(super) fn cannot_read(&self, error: ReadError) -> MigrationError {
        MigrationError::Read { what: self.to_string(), error }
    }

    pub(super) fn cannot_write(&self, error: WriteError) -> MigrationError {
        MigrationError::Write { what: self.to_string(), error }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings { account } => write!(f, "the settings of account {account}"),
            Self::Space { kind, account, name } => {
                let kind = match kind {
                    SpaceKind::Table => "table",
                    SpaceKind::Queue => "queue",
                    SpaceKind::Container => "container",
                };
                write!(f, "{kind} {account}/{name}")
            }
        }
    }
}

/// Spaces listed in one go.
const LISTED_MAX: usize = 1000;
