//! `larimar table remove` and `clear`: entities are deleted in transactions, several at once.

use super::TableArgs;
use super::count::ParallelArgs;
use crate::confirm::ConfirmArgs;
use crate::endpoint::Context;
use crate::output::counted;
use crate::progress::Progress;
use crate::ranges::Scan;
use crate::{Error, Result};
use clap::Args;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use larimar_client::{DynamicEntity, IfMatch, Table};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    table: TableArgs,
    /// PartitionKey of the entity
    #[arg(value_name = "PARTITION", required_unless_present = "filter", requires = "row")]
    partition: Option<String>,
    /// RowKey of the entity
    #[arg(value_name = "ROW")]
    row: Option<String>,
    /// Delete all entities that pass this filter
    #[arg(long, value_name = "FILTER", conflicts_with = "partition")]
    filter: Option<String>,
    #[command(flatten)]
    parallel: ParallelArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

impl Remove {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        if self.filter.as_ref().is_some_and(|filter| filter.trim().is_empty()) {
            return Err(Error::Usage(
                "expected a filter, found an empty text; `larimar table clear` deletes all".to_owned(),
            ));
        }
        let table = self.table.table(context).await?;
        if let (Some(partition), Some(row)) = (&self.partition, &self.row) {
            return match table.delete(partition, row, IfMatch::Any).await {
                Err(error) if error.is_entity_not_found() => {
                    Err(Error::NotFound(format!("table '{}' has no entity '{partition}' '{row}'", table.name())))
                }
                other => Ok(other?),
            };
        }
        let filter = self.filter.unwrap_or_default();
        self.confirm.ask(&format!("Delete the entities of {} that pass the filter {filter}", table.url()))?;
        let scan = self.parallel.scan(table.clone(), Some(filter));
        // An entity that was changed after it was read may not pass the filter any more.
        delete(&table, scan, self.parallel, true).await
    }
}

#[derive(Args)]
pub(crate) struct Clear {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    parallel: ParallelArgs,
    #[command(flatten)]
    confirm: ConfirmArgs,
}

impl Clear {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let table = self.table.table(context).await?;
        self.confirm.ask(&format!("Delete all entities of {}", table.url()))?;
        delete(&table, self.parallel.scan(table.clone(), None), self.parallel, false).await
    }
}

/// Deletes what a scan finds and prints how many that were. An entity that changed since it was read is kept if
/// `only_unchanged`.
async fn delete(table: &Table, scan: Scan, parallel: ParallelArgs, only_unchanged: bool) -> Result<()> {
    let progress = Progress::new("entities deleted", None);
    let changed = AtomicU64::new(0);
    let groups =
        scan.select(["RowKey"]).pages().map_ok(|page| stream::iter(groups(page)).map(Ok::<_, Error>)).try_flatten();
    let done = groups.try_for_each_concurrent(parallel.count(), |group| {
        let (progress, changed) = (&progress, &changed);
        async move {
            let outcome = delete_group(table, &group, only_unchanged).await?;
            progress.add(outcome.deleted);
            changed.fetch_add(outcome.changed, Ordering::Relaxed);
            Ok::<(), Error>(())
        }
    });
    let outcome = done.await;
    let deleted = progress.count();
    drop(progress);
    eprintln!("{} deleted", counted(deleted, "entity", "entities"));
    let changed = changed.into_inner();
    if changed > 0 {
        eprintln!("{} changed meanwhile and kept", counted(changed, "entity was", "entities were"));
    }
    outcome
}

#[derive(Default)]
struct Outcome {
    deleted: u64,
    changed: u64,
}

/// The entities of a page by partition, at most as many as a transaction takes.
fn groups(page: Vec<DynamicEntity>) -> Vec<Vec<DynamicEntity>> {
    let mut groups: Vec<Vec<DynamicEntity>> = Vec::new();
    for entity in page {
        match groups.last_mut() {
            Some(group) if group[0].partition_key == entity.partition_key && group.len() < TRANSACTION_MAX => {
                group.push(entity);
            }
            _ => groups.push(vec![entity]),
        }
    }
    groups
}

async fn delete_group(table: &Table, group: &[DynamicEntity], only_unchanged: bool) -> Result<Outcome> {
    if group.len() > 1 {
        let mut transaction = table.transaction();
        for entity in group {
            transaction
                .delete(&entity.partition_key, &entity.row_key, condition(entity, only_unchanged))
                .map_err(larimar_client::Error::from)?;
        }
        match transaction.submit().await {
            Ok(_) => return Ok(Outcome { deleted: group.len() as u64, changed: 0 }),
            // One of them is gone or changed, so none was deleted: each by itself, then.
            Err(error) if error.is_entity_not_found() || error.is_changed() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut outcome = Outcome::default();
    for entity in group {
        match table.delete(&entity.partition_key, &entity.row_key, condition(entity, only_unchanged)).await {
            Ok(()) => outcome.deleted += 1,
            Err(error) if error.is_entity_not_found() => {}
            Err(error) if error.is_changed() => outcome.changed += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(outcome)
}

fn condition(entity: &DynamicEntity, only_unchanged: bool) -> IfMatch {
    match &entity.etag {
        Some(etag) if only_unchanged => IfMatch::ETag(etag.clone()),
        _ => IfMatch::Any,
    }
}

/// The most operations of a transaction.
const TRANSACTION_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_of_one_partition_and_fit_a_transaction() {
        let page: Vec<_> =
            (0..250).map(|row| DynamicEntity::new(if row < 201 { "a" } else { "b" }, format!("{row:03}"))).collect();
        let sizes: Vec<usize> = groups(page).iter().map(Vec::len).collect();
        assert_eq!(sizes, [100, 100, 1, 49]);
        assert!(groups(Vec::new()).is_empty());
    }
}
