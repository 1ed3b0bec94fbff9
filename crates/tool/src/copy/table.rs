//! Copies a table: its policies, then its entities, range by range and several ranges at a time.

use super::checksum::{self, Checksum};
use super::state::Prepared;
use super::{Copier, Difference, prepare};
use crate::ranges::Scan;
use crate::{Error, Result};
use futures_util::stream::{StreamExt as _, TryStreamExt as _};
use larimar_client::{BulkOperation, DynamicEntity, Table};

impl Copier {
    pub(super) async fn copy_table(&self, name: &str) -> Result<()> {
        let (from, to) = (self.from.account.table(name), self.to.account.table(name));
        self.prepare_table(name, &from, &to).await?;
        let left = self.state.with(|state| state.tables[name].left.clone());
        if left.is_empty() {
            return Ok(());
        }
        let parts = Scan::new(from).parallel(self.parallel).within(left).parts();
        let written = parts.map(|part| async {
            let part = part?;
            let done = write(&to, &part.entities).await?;
            self.progress.add(done.count);
            part.finish(|left| {
                self.state.with(|state| {
                    let table = state.tables.get_mut(name).expect("the plan has it");
                    table.left = left;
                    table.done.merge(done);
                });
            });
            self.state.save_sometimes()
        });
        written.buffer_unordered(self.parallel).try_collect::<()>().await?;
        self.state.with(|state| state.tables.get_mut(name).expect("the plan has it").left.clear());
        self.state.save()
    }

    async fn prepare_table(&self, name: &str, from: &Table, to: &Table) -> Result<()> {
        let prepared = self.state.with(|state| state.tables[name].prepared);
        if prepared == Prepared::Yes {
            return Ok(());
        }
        if prepared == Prepared::Replace {
            to.delete_table_if_exists().await?;
        }
        prepare::create(|| to.create_if_missing()).await?;
        let policies = async {
            let policies = from.policies().await?;
            if policies.is_empty() { Ok(()) } else { to.set_policies(&policies).await }
        };
        self.note_refusal(policies.await, || format!("stored policies of table '{name}'"))?;
        self.state.with(|state| state.tables.get_mut(name).expect("the plan has it").prepared = Prepared::Yes);
        self.state.save()
    }

    /// Compares the table at the destination with what was read at the source.
    pub(super) async fn verify_table(&self, name: &str) -> Result<Option<Difference>> {
        let expected = self.state.with(|state| state.tables[name].done);
        let mut pages = Scan::new(self.to.account.table(name)).parallel(self.parallel).pages();
        let mut found = Checksum::default();
        while let Some(page) = pages.try_next().await? {
            page.iter().for_each(|entity| found.add(checksum::entity(entity)));
            self.progress.add(page.len() as u64);
        }
        Ok(Difference::between("table", name, expected, found))
    }
}

/// Writes entities in transactions, in the place of any with the same keys, so that writing them again changes nothing.
async fn write(to: &Table, entities: &[DynamicEntity]) -> Result<Checksum> {
    let mut sum = Checksum::default();
    let mut operations = Vec::with_capacity(entities.len());
    for entity in entities {
        sum.add(checksum::entity(entity));
        operations.push(BulkOperation::insert_or_replace(entity)?);
    }
    let groups = to.bulk().concurrency(TRANSACTIONS_AT_ONCE).submit(operations).await.into_groups();
    for group in groups {
        group.outcome.map_err(|error| match error {
            // What the service refuses is of no use without the entity that it is about.
            larimar_client::Error::Service(_) | larimar_client::Error::Transaction(_)
                if error.status() != Some(403) =>
            {
                let (table, partition) = (to.name(), &group.partition_key);
                Error::Failed(format!("table '{table}', partition '{partition}': {error}"))
            }
            other => other.into(),
        })?;
    }
    Ok(sum)
}

/// Transactions of one page, which are of different partitions.
const TRANSACTIONS_AT_ONCE: usize = 4;
