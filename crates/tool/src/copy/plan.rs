//! What is to be copied: what the source has, what was selected, and what the destination has already.

use super::endpoint::Side;
use crate::{Error, Result};
use clap::ValueEnum;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use larimar_client::{Account, DynamicEntity, Guid, ListOptions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The kinds of things that are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Tables with their entities
    Tables,
    /// Queues with their messages
    Queues,
    /// Containers with their blobs
    Blobs,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Tables, Self::Queues, Self::Blobs];

    /// One thing of the kind.
    pub(super) const fn one(self) -> &'static str {
        match self {
            Self::Tables => "table",
            Self::Queues => "queue",
            Self::Blobs => "container",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tables => "tables",
            Self::Queues => "queues",
            Self::Blobs => "blobs",
        })
    }
}

/// What was selected: of each kind all, or these names. A kind that is absent is not copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Selection {
    names: BTreeMap<Kind, Vec<String>>,
    /// Whether the kinds were chosen, so that an account without one of them is an error.
    is_explicit: bool,
    /// How the messages of queues are read.
    pub(super) messages: super::Messages,
}

impl Selection {
    /// Without names, everything is selected; with names, only what they name.
    pub(super) fn new(only: &[Kind], named: [(Kind, &[String]); 3], messages: super::Messages) -> Result<Self> {
        let has_names = named.iter().any(|(_, names)| !names.is_empty());
        let mut selected = BTreeMap::new();
        for (kind, names) in named {
            let is_allowed = only.is_empty() || only.contains(&kind);
            if !names.is_empty() && !is_allowed {
                return Err(Error::Usage(format!("--{} names something that --only excludes", kind.one())));
            }
            if names.is_empty() && has_names && !only.contains(&kind) || !is_allowed {
                continue;
            }
            let mut names = names.to_vec();
            names.sort();
            names.dedup();
            selected.insert(kind, names);
        }
        Ok(Self { names: selected, is_explicit: has_names || !only.is_empty(), messages })
    }

    #[cfg(test)]
    pub(super) fn with_table(mut self, name: &str) -> Self {
        self.names.entry(Kind::Tables).or_default().push(name.to_owned());
        self
    }

    /// The kinds that both accounts have. A kind that was chosen and is missing is an error, another is left out with a
    /// note.
    pub(super) fn within(&self, from: &Side, to: &Side, note: impl Fn(&str)) -> Result<Vec<Kind>> {
        let mut kinds = Vec::new();
        for &kind in self.names.keys() {
            match [("FROM", from), ("TO", to)].into_iter().find(|(_, side)| !side.has(kind)) {
                None => kinds.push(kind),
                Some((side, _)) if self.is_explicit => {
                    return Err(Error::Usage(format!("{side} has no {kind}")));
                }
                Some((side, _)) => note(&format!("{kind} are not copied: {side} has none")),
            }
        }
        if kinds.is_empty() {
            return Err(Error::Usage("FROM and TO have no service in common".to_owned()));
        }
        Ok(kinds)
    }
}

/// Something to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// About how many messages the queue has.
    pub(super) messages: u64,
    pub(super) at_destination: Found,
}

/// What the destination has under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Empty,
    Content,
}

/// Everything that is selected, with what is at the destination.
pub(super) async fn items(selection: &Selection, kinds: &[Kind], from: &Account, to: &Account) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for &kind in kinds {
        let given = &selection.names[&kind];
        let names = if given.is_empty() { list(from, kind).await? } else { given.clone() };
        let must_exist = !given.is_empty();
        let found = names.into_iter().map(|name| async move {
            if must_exist && look(from, kind, &name).await? == Found::Nothing {
                return Err(Error::NotFound(format!("FROM has no {} '{name}'", kind.one())));
            }
            let messages = match kind {
                Kind::Queues => from.queue(&name).approximate_count().await?,
                Kind::Tables | Kind::Blobs => 0,
            };
            let at_destination = look(to, kind, &name).await?;
            Ok(Item { kind, name, messages, at_destination })
        });
        items.extend(stream::iter(found).buffered(LOOKS_AT_ONCE).try_collect::<Vec<_>>().await?);
    }
    Ok(items)
}

/// Whether both accounts are one, under two addresses: FROM then has what was created at TO a moment ago.
pub(super) async fn is_same_account(kind: Kind, from: &Account, to: &Account) -> Result<bool> {
    let name = format!("larimarprobe{}", Guid::random()).replace('-', "");
    match kind {
        Kind::Tables => to.table(&name).create_if_missing().await?,
        Kind::Queues => to.queue(&name).create_if_missing().await?,
        Kind::Blobs => to.container(&name).create_if_missing().await?,
    };
    let found = look(from, kind, &name).await;
    let deleted = match kind {
        Kind::Tables => to.table(&name).delete_table().await,
        Kind::Queues => to.queue(&name).delete_queue().await,
        Kind::Blobs => to.container(&name).delete_container().await,
    };
    deleted.map_err(|error| Error::Failed(format!("{} '{name}' stays at TO: {error}", kind.one())))?;
    Ok(found? != Found::Nothing)
}

async fn list(account: &Account, kind: Kind) -> Result<Vec<String>> {
    Ok(match kind {
        Kind::Tables => account.tables().list(None).map_ok(|table| table.name).try_collect().await?,
        Kind::Queues => account.queues().list("").map_ok(|queue| queue.name).try_collect().await?,
        Kind::Blobs => account.blobs().list("").map_ok(|container| container.name).try_collect().await?,
    })
}

async fn look(account: &Account, kind: Kind, name: &str) -> Result<Found> {
    let is_empty = match kind {
        Kind::Tables => {
            let first = account.table(name).query::<DynamicEntity>().select(["RowKey"]).first().await;
            first.map(|first| first.is_none())
        }
        Kind::Queues => account.queue(name).approximate_count().await.map(|count| count == 0),
        Kind::Blobs => {
            let mut pages = account.container(name).list_pages(ListOptions::default().page_size(1));
            pages.try_next().await.map(|page| page.is_none_or(|page| page.blobs.is_empty()))
        }
    };
    match is_empty {
        Ok(true) => Ok(Found::Empty),
        Ok(false) => Ok(Found::Content),
        Err(error) if error.is_not_found() => Ok(Found::Nothing),
        Err(error) => Err(error.into()),
    }
}

const LOOKS_AT_ONCE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(only: &[Kind], tables: &[&str], queues: &[&str]) -> Result<Selection> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let named = [(Kind::Tables, &own(tables)[..]), (Kind::Queues, &own(queues)), (Kind::Blobs, &[])];
        Selection::new(only, named, super::super::Messages::default())
    }

    #[test]
    fn names_select_themselves_and_kinds_all_of_them() {
        let kinds = |selection: Selection| selection.names.into_iter().collect::<Vec<_>>();
        let all = kinds(selection(&[], &[], &[]).expect("everything"));
        assert_eq!(all, Kind::ALL.map(|kind| (kind, Vec::new())));
        let one = kinds(selection(&[], &["b", "a", "b"], &[]).expect("two tables"));
        assert_eq!(one, [(Kind::Tables, vec!["a".to_owned(), "b".to_owned()])]);
        let queues = kinds(selection(&[Kind::Queues], &[], &[]).expect("all queues"));
        assert_eq!(queues, [(Kind::Queues, Vec::new())]);
        let both = kinds(selection(&[Kind::Tables, Kind::Queues], &["a"], &[]).expect("a table and all queues"));
        assert_eq!(both, [(Kind::Tables, vec!["a".to_owned()]), (Kind::Queues, Vec::new())]);
        assert_eq!(selection(&[Kind::Queues], &["a"], &[]).expect_err("excluded").exit_code(), 2);
    }
}
