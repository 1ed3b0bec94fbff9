//! A trial of a design: sample entities in scratch tables, and the queries with the rows that the server read for them.

use crate::{Error, Result};
use futures_util::TryStreamExt as _;
use larimar_client::{Account, BulkOperation, DynamicEntity, Filter, Guid, Table, Timestamp, Value};
use larimar_design::trial::{Trial, TrialQuery, TrialRow, trial};
use larimar_design::{Access, Description, Layout};
use std::collections::{BTreeMap, BTreeSet};

/// A query as it was predicted and as it was.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// What was predicted; none if the query was not tried.
    pub predicted: Option<Access>,
    /// The kinds of plans that the server reported, each once.
    pub plans: BTreeSet<String>,
    /// Rows that the server read.
    pub rows: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Entities that came back.
    pub returned: u64,
    /// Why the query was not tried.
    pub reason: Option<&'static str>,
}

/// Writes sample entities in a layout to scratch tables, runs the queries and removes the tables.
///
/// # Errors
/// A layout that cannot be tried, or a server that fails or does not explain queries.
pub async fn measure(
    account: &Account,
    description: &Description,
    layout: &Layout,
    entities: usize,
) -> Result<Vec<Measured>> {
    let trial = trial(description, layout, entities).map_err(|error| Error::Usage(error.to_string()))?;
    let id = Guid::random().to_string().replace('-', "");
    let names: BTreeSet<&str> = trial.rows.iter().map(|row| row.table.as_str()).collect();
    if names.len() > TABLES_MAX {
        return Err(Error::Usage(format!("expected a design of at most {TABLES_MAX} tables, found {}", names.len())));
    }
    let table = |name: &&str| ((*name).to_owned(), account.table(format!("larimartry{}{name}", &id[..12])));
    let tables: BTreeMap<String, Table> = names.iter().map(table).collect();
    let outcome = run(&tables, &trial).await;
    for table in tables.values() {
        // The outcome matters more than a table that is left.
        if let Err(error) = table.delete_table_if_exists().await {
            eprintln!("the scratch table '{}' is left: {error}", table.name());
        }
    }
    outcome
}

async fn run(tables: &BTreeMap<String, Table>, trial: &Trial) -> Result<Vec<Measured>> {
    for (name, table) in tables {
        table.create().await?;
        let rows = trial.rows.iter().filter(|row| row.table == *name);
        let operations: Vec<BulkOperation> =
            rows.map(|row| Ok(BulkOperation::insert_or_replace(&entity(row))?)).collect::<Result<_>>()?;
        let report = table.bulk().submit(operations).await;
        if !report.is_success() {
            return Err(Error::Failed(format!("some sample entities could not be written to '{}'", table.name())));
        }
    }
    let mut measured = Vec::new();
    for query in &trial.queries {
        measured.push(run_query(tables, query).await?);
    }
    let not_tried = trial.not_tried.iter().map(|it| Measured {
        name: it.name.clone(),
        predicted: None,
        plans: BTreeSet::new(),
        rows: 0,
        requests: 0,
        returned: 0,
        reason: Some(it.reason),
    });
    measured.extend(not_tried);
    Ok(measured)
}

async fn run_query(tables: &BTreeMap<String, Table>, query: &TrialQuery) -> Result<Measured> {
    let mut measured = Measured {
        name: query.name.clone(),
        predicted: Some(query.predicted),
        plans: BTreeSet::new(),
        rows: 0,
        requests: 0,
        returned: 0,
        reason: None,
    };
    for request in &query.requests {
        measured.requests += 1;
        // A period that no sample entity is in has no table.
        let Some(table) = tables.get(&request.table) else { continue };
        let mut entities = table.query::<DynamicEntity>().explain();
        if !request.filter.is_empty() {
            entities = entities.filter(Filter::raw(request.filter.clone()));
        }
        if let Some(top) = request.top {
            entities = entities.limit(usize::try_from(top).unwrap_or(usize::MAX));
        }
        let mut pages = entities.pages();
        let mut count = 0;
        while let Some(page) = pages.try_next().await? {
            let Some(explanation) = page.explanation else {
                let advice = "this server does not explain queries: only Larimar does, unless it is strict";
                return Err(Error::Failed(advice.to_owned()));
            };
            let kind = explanation.plan.split(' ').next().unwrap_or_default();
            measured.plans.insert(kind.to_owned());
            measured.rows += explanation.rows_read;
            measured.returned += explanation.rows_returned;
            count += 1;
        }
        measured.requests += count.max(1) - 1;
    }
    Ok(measured)
}

fn entity(row: &TrialRow) -> DynamicEntity {
    let mut entity = DynamicEntity::new(&row.partition, &row.row);
    for (name, value) in &row.properties {
        entity.set(name.clone(), client_value(value));
    }
    entity
}

/// The value in the client's types.
fn client_value(value: &larimar_model::Value) -> Value {
    match value {
        larimar_model::Value::String(text) => Value::String(text.clone()),
        larimar_model::Value::Int32(number) => Value::Int32(*number),
        larimar_model::Value::Int64(number) => Value::Int64(*number),
        larimar_model::Value::Double(number) => Value::Double(*number),
        larimar_model::Value::Boolean(truth) => Value::Boolean(*truth),
        larimar_model::Value::DateTime(time) => Value::DateTime(Timestamp::from_ticks(time.ticks())),
        larimar_model::Value::Guid(guid) => Value::Guid(Guid::from_bytes(guid.0)),
        larimar_model::Value::Binary(bytes) => Value::Binary(bytes.clone()),
    }
}

/// Scratch tables of a trial at most.
const TABLES_MAX: usize = 32;
