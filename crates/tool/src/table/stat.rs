//! `larimar table stat`: the size of a table and its largest parts.

use super::TableArgs;
use super::count::ParallelArgs;
use crate::Result;
use crate::endpoint::Context;
use crate::output::{Field, Fields, Format, OutputArgs, counted};
use crate::progress::Progress;
use clap::Args;
use futures_util::TryStreamExt as _;
use larimar_client::DynamicEntity;
use std::collections::HashMap;

#[derive(Args)]
pub(crate) struct Stat {
    #[command(flatten)]
    table: TableArgs,
    /// Only entities that pass this filter
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    #[command(flatten)]
    parallel: ParallelArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Stat {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let table = self.table.table(context).await?;
        let mut pages = self.parallel.scan(table, self.filter).pages();
        let progress = Progress::new("entities", None);
        let mut totals = Totals::default();
        while let Some(page) = pages.try_next().await? {
            progress.add(page.len() as u64);
            totals.add(&page);
        }
        drop(progress);
        let totals = totals.finish();
        let mut output = self.output.open();
        if output.format() != Format::Table {
            output.write(&totals.record())?;
            return output.finish().map(drop);
        }
        for (name, value) in totals.lines() {
            output.write(&Fields::new().with("figure", name).with("value", value))?;
        }
        output.finish().map(drop)
    }
}

/// The figures of a table, from pages in any order.
#[derive(Default)]
struct Totals {
    rows: u64,
    bytes: u64,
    partitions: u64,
    largest_entity: Option<(u64, String, String)>,
    largest_partition: Option<(Part, String)>,
    /// Partitions at the edges of pages, which may have more rows in other pages. Those within a page are complete, so
    /// memory grows with the number of pages and not with that of partitions.
    edges: HashMap<String, Part>,
}

/// A partition, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    bytes: u64,
    rows: u64,
}

impl Totals {
    fn add(&mut self, page: &[DynamicEntity]) {
        let mut runs: Vec<(&str, Part)> = Vec::new();
        for entity in page {
            let bytes = entity.size() as u64;
            self.rows += 1;
            self.bytes += bytes;
            if self.largest_entity.as_ref().is_none_or(|(most, ..)| bytes > *most) {
                self.largest_entity = Some((bytes, entity.partition_key.clone(), entity.row_key.clone()));
            }
            match runs.last_mut() {
                Some((partition, part)) if *partition == entity.partition_key => part.grow(Part { bytes, rows: 1 }),
                _ => runs.push((&entity.partition_key, Part { bytes, rows: 1 })),
            }
        }
        let last = runs.len().saturating_sub(1);
        for (place, (partition, part)) in runs.into_iter().enumerate() {
            match place == 0 || place == last {
                true => self.edges.entry(partition.to_owned()).or_default().grow(part),
                false => self.complete(partition, part),
            }
        }
    }

    fn complete(&mut self, partition: &str, part: Part) {
        self.partitions += 1;
        if self.largest_partition.as_ref().is_none_or(|(largest, _)| part > *largest) {
            self.largest_partition = Some((part, partition.to_owned()));
        }
    }

    fn finish(mut self) -> Self {
        for (partition, part) in std::mem::take(&mut self.edges) {
            self.complete(&partition, part);
        }
        self
    }

    fn record(&self) -> Fields {
        let record =
            Fields::new().with("entities", self.rows).with("bytes", self.bytes).with("partitions", self.partitions);
        let record = match &self.largest_entity {
            Some((bytes, partition, row)) => record
                .with("largest_entity_bytes", *bytes)
                .with("largest_entity_partition_key", partition.as_str())
                .with("largest_entity_row_key", row.as_str()),
            None => record,
        };
        match &self.largest_partition {
            Some((part, partition)) => record
                .with("largest_partition_entities", part.rows)
                .with("largest_partition_bytes", part.bytes)
                .with("largest_partition_key", partition.as_str()),
            None => record,
        }
    }

    fn lines(&self) -> Vec<(&'static str, Field)> {
        let mut lines: Vec<(&'static str, Field)> = vec![
            ("entities", self.rows.to_string().into()),
            ("bytes", self.bytes.to_string().into()),
            ("partitions", self.partitions.to_string().into()),
        ];
        if let Some((bytes, partition, row)) = &self.largest_entity {
            lines.push(("largest entity", format!("{bytes} bytes: '{partition}' '{row}'").into()));
        }
        if let Some((part, partition)) = &self.largest_partition {
            let entities = counted(part.rows, "entity", "entities");
            let text = format!("{} bytes in {entities}: '{partition}'", part.bytes);
            lines.push(("largest partition", text.into()));
        }
        lines
    }
}

impl Part {
    const fn grow(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.rows += other.rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pages_in_any_order_give_the_figures_of_the_whole(
            keys in prop::collection::btree_set(("[a-e]", "[a-z]{1,2}"), 0..60),
            size in 1_usize..9,
        ) {
            let entities: Vec<_> = keys.iter().map(|(partition, row)| DynamicEntity::new(partition, row)).collect();
            let mut totals = Totals::default();
            for page in entities.chunks(size).rev() {
                totals.add(page);
            }
            let totals = totals.finish();
            let mut partitions: HashMap<&str, u64> = HashMap::new();
            entities.iter().for_each(|entity| *partitions.entry(&entity.partition_key).or_default() += 1);
            prop_assert_eq!(totals.rows, entities.len() as u64);
            prop_assert_eq!(totals.partitions, partitions.len() as u64);
            prop_assert_eq!(totals.bytes, entities.iter().map(|entity| entity.size() as u64).sum::<u64>());
            let largest = totals.largest_partition.map(|(part, partition)| (partition, part.rows));
            prop_assert!(largest.is_none_or(|(partition, rows)| partitions[partition.as_str()] == rows));
        }
    }
}
