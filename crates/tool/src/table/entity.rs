//! One entity: `larimar table get` and `put`.

use super::TableArgs;
use crate::endpoint::Context;
use crate::output::{Fields, Format, OutputArgs};
use crate::value;
use crate::{Error, Result};
use clap::{Args, ValueEnum};
use larimar_client::{DynamicEntity, IfMatch, Table};
use std::io::{BufRead, IsTerminal as _, Read as _};

/// The keys of an entity.
#[derive(Clone, Args)]
pub(crate) struct KeyArgs {
    /// PartitionKey of the entity
    #[arg(value_name = "PARTITION")]
    pub(super) partition: String,
    /// RowKey of the entity
    #[arg(value_name = "ROW")]
    pub(super) row: String,
}

#[derive(Args)]
pub(crate) struct Get {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Get {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let table = self.table.table(context).await?;
        let KeyArgs { partition, row } = &self.key;
        let entity: Option<DynamicEntity> = table.get(partition, row).await?;
        let entity = entity
            .ok_or_else(|| Error::NotFound(format!("table '{}' has no entity '{partition}' '{row}'", table.name())))?;
        let mut output = self.output.open();
        if output.format() != Format::Table {
            output.write(&entity)?;
            return output.finish().map(drop);
        }
        let mut print = |name: &str, type_name: &str, text: &str| {
            output.write(&Fields::new().with("property", name).with("type", type_name).with("value", text))
        };
        print("PartitionKey", "String", &entity.partition_key)?;
        print("RowKey", "String", &entity.row_key)?;
        if let Some(time) = entity.timestamp {
            print("Timestamp", "DateTime", &time.to_string())?;
        }
        for (name, value) in entity.properties() {
            print(name, value.type_name().trim_start_matches("Edm."), &value::to_text(value))?;
        }
        output.finish().map(drop)
    }
}

/// What happens to an entity that exists, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Replaces the entity if it exists
    InsertOrReplace,
    /// Keeps the properties that are not given
    InsertOrMerge,
    /// Fails if the entity exists
    Insert,
    /// Fails if the entity does not exist
    Replace,
    /// Keeps the properties that are not given; fails if the entity does not exist
    Merge,
}

#[derive(Args)]
pub(crate) struct Put {
    #[command(flatten)]
    table: TableArgs,
    /// The entity: PartitionKey=p RowKey=r Age:int32=35 …, or one JSON object, or - for JSON lines on standard input
    #[arg(
        value_name = "ENTITY",
        required = true,
        long_help = "The entity, in one of three ways:\n\
            \x20 pairs, as in PartitionKey=Sales RowKey=1 Name=Don Age:int32=35; the types are string (default), int32, \
            int64, double, boolean, datetime, guid and binary (base64)\n\
            \x20 one JSON object, with \"Name@odata.type\": \"Edm.Int64\" for types that JSON does not show\n\
            \x20 -, for JSON objects on standard input, one per line"
    )]
    entity: Vec<String>,
    /// What happens to an entity that exists, or does not
    #[arg(long, value_name = "MODE", default_value = "insert-or-replace")]
    mode: Mode,
}

impl Put {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        if self.entity == ["-"] {
            if std::io::stdin().is_terminal() {
                eprintln!("reading JSON lines from the terminal; end with Ctrl-D");
            }
            let table = self.table.table(context).await?;
            return self.put_lines(&table).await;
        }
        let entity = match &self.entity[..] {
            [json] if json.trim_start().starts_with('{') => value::read_json(json),
            pairs => from_pairs(pairs),
        };
        let entity = entity.map_err(Error::Usage)?;
        let table = self.table.table(context).await?;
        self.put(&table, &entity).await
    }

    /// Puts the entities of standard input, one by one.
    async fn put_lines(&self, table: &Table) -> Result<()> {
        for number in 1.. {
            let mut line = Vec::new();
            let read = std::io::stdin().lock().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if read.map_err(|error| Error::io("standard input", error))? == 0 {
                break;
            }
            let refused = |reason: String| Error::Usage(format!("line {number}: {reason}"));
            let line = String::from_utf8(line).map_err(|error| refused(error.to_string()))?;
            if line.trim().is_empty() {
                continue;
            }
            let entity = value::read_json(&line).map_err(refused)?;
            self.put(table, &entity).await.map_err(|error| match error {
                Error::Client(error) => Error::Failed(format!("line {number}: {error}")),
                other => other,
            })?;
        }
        Ok(())
    }

    async fn put(&self, table: &Table, entity: &DynamicEntity) -> Result<()> {
        match self.mode {
            Mode::InsertOrReplace => table.insert_or_replace(entity).await?,
            Mode::InsertOrMerge => table.insert_or_merge(entity).await?,
            Mode::Insert => table.insert(entity).await?,
            Mode::Replace => table.replace(entity, IfMatch::Any).await?,
            Mode::Merge => table.merge(entity, IfMatch::Any).await?,
        };
        Ok(())
    }
}

/// An entity from pairs of the form `Name:type=value`.
fn from_pairs(pairs: &[String]) -> Result<DynamicEntity, String> {
    let mut keys = [None, None];
    let mut entity = DynamicEntity::default();
    for pair in pairs {
        let (name, text) =
            pair.split_once('=').ok_or_else(|| format!("expected Name=value or Name:type=value, found '{pair}'"))?;
        let (name, type_name) = name.split_once(':').unwrap_or((name, "string"));
        if name.starts_with("odata.") {
            return Err(format!("'{name}' is metadata that the service sets, not a property"));
        }
        let place = ["PartitionKey", "RowKey"].iter().position(|key| *key == name);
        let is_new = match place {
            Some(place) => keys[place].replace(text.to_owned()).is_none(),
            None => {
                let value = value::from_text(type_name, text).map_err(|reason| format!("'{name}': {reason}"))?;
                entity.set(name, value).is_none()
            }
        };
        if !is_new {
            return Err(format!("'{name}' is given twice"));
        }
    }
    let [partition, row] = keys;
    entity.partition_key = partition.ok_or("PartitionKey=… is missing")?;
    entity.row_key = row.ok_or("RowKey=… is missing")?;
    Ok(entity)
}

/// More than an entity of 1 MiB has as JSON, with every character escaped.
const LINE_BYTES_MAX: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[&str]) -> Result<DynamicEntity, String> {
        from_pairs(&pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn pairs_are_an_entity() {
        let entity = read(&["RowKey=1", "PartitionKey=", "Age:int32=35", "Formula=a=b", "Empty="]).expect("an entity");
        let expected = DynamicEntity::new("", "1").with("Age", 35).with("Formula", "a=b").with("Empty", "");
        assert_eq!(entity, expected);
    }

    #[test]
    fn what_is_wrong_with_a_pair_is_named() {
        for (pairs, word) in [
            (&["PartitionKey=p"][..], "RowKey=… is missing"),
            (&["RowKey=r"], "PartitionKey=… is missing"),
            (&["Age"], "expected Name=value"),
            (&["PartitionKey=p", "RowKey=r", "A:int32=x"], "'A': expected a 32-bit integer, found 'x'"),
            (&["PartitionKey=p", "RowKey=r", "A:decimal=1"], "unknown type 'decimal'"),
            (&["PartitionKey=p", "RowKey=r", "A=1", "A=2"], "'A' is given twice"),
            (&["PartitionKey=p", "PartitionKey=q"], "'PartitionKey' is given twice"),
            (&["PartitionKey=p", "RowKey=r", "odata.etag=x"], "'odata.etag' is metadata that the service sets"),
        ] {
            let error = read(pairs).expect_err("refused");
            assert!(error.contains(word), "{error}");
        }
    }
}
