//! A small set of entities for a design, and its queries as filters: what a server reads can be compared with what the
//! design predicts.

use crate::access::{self, Access, Kind, asked_periods};
use crate::description::Description;
use crate::error::DesignError;
use crate::key::{Part, Period};
use crate::layout::{Layout, Placement, Role};
use crate::model::{GENERATED, Model, QueryModel, Relation};
use crate::report::tags;
use crate::value::{bucket_text, literal, mixed, part_text, period_text, sample, seconds};
use larimar_model::Value;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// The entities of a trial at most.
pub const ENTITIES_MAX: usize = 20_000;
/// The rows of a trial at most: entities, copies and related records.
pub const ROWS_MAX: usize = 100_000;
/// The requests of one query of a trial at most.
pub const REQUESTS_MAX: usize = 1_000;

/// A trial of a design.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// The rows to write, in no order.
    pub rows: Vec<TrialRow>,
    /// The queries to run.
    pub queries: Vec<TrialQuery>,
    /// Queries that cannot be tried.
    pub not_tried: Vec<NotTried>,
}

/// A query that cannot be tried.
#[derive(Clone, Debug, Serialize)]
pub struct NotTried {
    /// Its name.
    pub name: String,
    /// Why it cannot be tried.
    pub reason: &'static str,
}

/// A row of a trial. As JSON it is its table, and the entity as the service takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRow {
    /// The table, as an end of its name: letters and digits.
    pub table: String,
    /// Its PartitionKey.
    pub partition: String,
    /// Its RowKey.
    pub row: String,
    /// Its other properties.
    pub properties: Vec<(String, Value)>,
}

impl Serialize for TrialRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("table", &self.table)?;
        map.serialize_entry("entity", &EntityJson(self))?;
        map.end()
    }
}

/// The entity of a row in the service's JSON: types that JSON does not show are members of their own.
struct EntityJson<'r>(&'r TrialRow);

impl Serialize for EntityJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("PartitionKey", &self.0.partition)?;
        map.serialize_entry("RowKey", &self.0.row)?;
        for (name, value) in &self.0.properties {
            let edm = value.as_ref().edm_type();
            let is_shown = matches!(value, Value::String(_) | Value::Int32(_) | Value::Boolean(_));
            if !is_shown {
                map.serialize_entry(&format!("{name}@odata.type"), edm.name())?;
            }
            match value {
                Value::String(text) => map.serialize_entry(name, text)?,
                Value::Int32(number) => map.serialize_entry(name, number)?,
                Value::Int64(number) => map.serialize_entry(name, &number.to_string())?,
                Value::Double(number) => map.serialize_entry(name, number)?,
                Value::Boolean(truth) => map.serialize_entry(name, truth)?,
                Value::DateTime(time) => map.serialize_entry(name, &time.to_string())?,
                Value::Guid(guid) => map.serialize_entry(name, &guid.to_string())?,
                // Samples of bytes are texts.
                Value::Binary(_) => {}
            }
        }
        map.end()
    }
}

/// A query of a trial.
#[derive(Clone, Debug, Serialize)]
pub struct TrialQuery {
    /// Its name.
    pub name: String,
    /// What it should cost with the entities of the trial.
    pub predicted: Access,
    /// What to send.
    pub requests: Vec<TrialRequest>,
}

/// One request of a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialRequest {
    /// The table, as an end of its name.
    pub table: String,
    /// The filter; all of the table if empty.
    pub filter: String,
    /// How many entities are wanted, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<u64>,
}

/// A trial of a design with this many entities.
///
/// # Errors
/// A design in blobs, an entity of several parts, or more entities or rows than [`ENTITIES_MAX`] and [`ROWS_MAX`].
pub fn trial(description: &Description, layout: &Layout, entities: usize) -> Result<Trial, DesignError> {
    let max = ENTITIES_MAX;
    if entities == 0 || entities > max {
        let expected = format!("expected 1 to {max} entities, found {entities}");
        return Err(DesignError::invalid("trial", expected));
    }
    if layout.is_in_blobs {
        return Err(DesignError::invalid(
            "trial",
            "expected a design in tables: logs in blobs (T13) have no plans to compare",
        ));
    }
    let scaled = scaled(description, entities)?;
    let days = days(description, &scaled, layout, entities)?;
    let model = Model::sized(&scaled, entities as f64, days)?;
    if model.parts() > 1.0 {
        return Err(DesignError::invalid("trial", "expected entities of one part: wide entities (T10) are not tried"));
    }
    let rows = entities as f64 * (layout.structures.len() as f64 + layout.related_rows(&model));
    if rows > ROWS_MAX as f64 {
        let expected = format!("expected at most {ROWS_MAX} rows, found {rows:.0}: try fewer entities");
        return Err(DesignError::invalid("trial", expected));
    }
    let maker = Maker { model: &model, layout, tags: tags(&model, layout), entities: entities as u64 };
    let (mut queries, mut not_tried) = (Vec::new(), Vec::new());
    for (query, described) in model.queries.iter().zip(&description.queries) {
        match maker.query(query) {
            Ok((predicted, requests)) => queries.push(TrialQuery { name: described.name.clone(), predicted, requests }),
            Err(reason) => not_tried.push(NotTried { name: described.name.clone(), reason }),
        }
    }
    Ok(Trial { rows: maker.rows(), queries, not_tried })
}

/// The description with values in proportion to so many entities, of which no value is more common than others.
fn scaled(description: &Description, entities: usize) -> Result<Description, DesignError> {
    let full = Model::new(description)?;
    let (identity, ratio) = (full.identity.clone(), entities as f64 / full.entities);
    let distinct = |property: u8| {
        let all = full.distinct(property);
        (all * ratio).max(all.min(VALUES_MIN)).min(entities as f64).round().max(1.0) as u64
    };
    let mut scaled = description.clone();
    for (index, property) in scaled.properties.iter_mut().enumerate() {
        property.distinct = Some(distinct(index as u8));
        property.most_common = None;
        property.example = None;
    }
    // The finest property of the identity has as many values as are needed to tell all entities apart.
    if let Some((last, others)) = finest_last(&full, &identity).split_last() {
        let product: u64 = others.iter().map(|property| distinct(*property)).product();
        if let Some(property) = scaled.properties.get_mut(usize::from(*last)) {
            property.distinct = Some((entities as u64).div_ceil(product.max(1)));
        }
    }
    scaled.queries.iter_mut().for_each(|query| query.results = None);
    Ok(scaled)
}

/// Over how many days the entities of a trial are spread.
fn days(description: &Description, scaled: &Description, layout: &Layout, entities: usize) -> Result<f64, DesignError> {
    let full = Model::new(description)?;
    let time = full.time.and_then(|time| scaled.properties.get(usize::from(time)));
    Ok(match (time.and_then(|time| Some((time.distinct?, time.every?))), layout.tables) {
        (Some((values, every)), _) => (values.min(entities as u64) as f64 * every.0).max(every.0),
        (None, Some(period)) => period.days() * TABLES,
        (None, None) => full.days,
    })
}

/// The properties of an identity, the one with the most values last.
fn finest_last(model: &Model<'_>, identity: &[u8]) -> Vec<u8> {
    let mut identity = identity.to_vec();
    identity.sort_by(|a, b| model.distinct(*a).total_cmp(&model.distinct(*b)).then(a.cmp(b)));
    identity
}

/// Makes the rows and requests of a trial.
struct Maker<'m> {
    model: &'m Model<'m>,
    layout: &'m Layout,
    tags: Vec<String>,
    entities: u64,
}

impl Maker<'_> {
    /// The number of the value that an entity has.
    fn number(&self, entity: u64, property: u8) -> u64 {
        let model = self.model;
        if property == GENERATED || model.property(property).is_some_and(|property| property.unique) {
            return entity;
        }
        let identity = finest_last(model, &model.identity);
        let distinct = model.distinct(property) as u64;
        if let Some(place) = identity.iter().position(|it| *it == property) {
            let before: u64 = identity[..place].iter().map(|it| model.distinct(*it) as u64).product();
            let rest = entity / before.max(1);
            return if place + 1 == identity.len() { rest } else { rest % distinct };
        }
        match model.is_growing(property) {
            true => entity * distinct / self.entities,
            false => mixed(entity.wrapping_mul(251) + u64::from(property)) % distinct,
        }
    }

    fn text(&self, parts: &[Part], entity: u64) -> String {
        let text = |part: &Part| part_text(self.model, *part, &self.tags, |property| self.number(entity, property));
        parts.iter().map(text).collect::<Vec<_>>().join("_")
    }

    fn time(&self, entity: u64) -> Option<u64> {
        let time = self.model.time?;
        Some(seconds(self.model, time, self.number(entity, time)))
    }

    /// The table of a structure, for an entity of this time.
    fn table(&self, structure: usize, period: &str) -> String {
        let own = if self.layout.structures[structure].role.is_in_partition() { 0 } else { structure };
        format!("x{own}{}", period.replace(['-', 'T', ':'], ""))
    }

    fn rows(&self) -> Vec<TrialRow> {
        let mut rows = Vec::new();
        for (index, structure) in self.layout.structures.iter().enumerate() {
            let parts = self.layout.row_parts(index);
            let mut seen = BTreeSet::new();
            for entity in 0..self.entities {
                let period = self.layout.tables.zip(self.time(entity)).map(|(period, time)| period_text(time, period));
                let table = self.table(index, &period.unwrap_or_default());
                let (partition, row) = (self.text(&structure.template.partition, entity), self.text(&parts, entity));
                if !seen.insert((table.clone(), partition.clone(), row.clone())) {
                    continue;
                }
                let stored = structure.stores.unwrap_or_else(|| self.model.all());
                let is_stored = |it: &u8| stored.has(*it) && self.model.may_be_key(*it) && !structure.role.is_list();
                let properties = (0..self.model.description.properties.len() as u8).filter(is_stored);
                let value = |it: u8| (self.model.name(it).to_owned(), sample(self.model, it, self.number(entity, it)));
                let properties = properties.map(value).collect();
                if structure.role == Role::Primary {
                    rows.extend(self.related(&table, &partition, &row));
                }
                rows.push(TrialRow { table, partition, row, properties });
            }
        }
        rows
    }

    /// The rows of the records that are beside an entity.
    fn related(&self, table: &str, partition: &str, row: &str) -> Vec<TrialRow> {
        let count = self.layout.related_rows(self.model) as u64;
        let record = |number| TrialRow {
            table: table.to_owned(),
            partition: partition.to_owned(),
            row: format!("{row}_{number:04}"),
            properties: Vec::new(),
        };
        (0..count).map(record).collect()
    }

    /// What a query costs, and its requests; or why it is not tried.
    fn query(&self, query: &QueryModel) -> Result<(Access, Vec<TrialRequest>), &'static str> {
        let is_elsewhere = |related: &usize| match self.layout.placement(self.model, *related) {
            Placement::Inside => false,
            Placement::Together => matches!(self.model.relations[*related], Relation::Parent(_)),
            Placement::Apart => true,
        };
        if query.with.iter().any(is_elsewhere) {
            return Err("it reads records of another kind, which a trial does not have");
        }
        if !self.model.large().is_empty() && query.returns.is_empty() {
            return Err("it reads blobs");
        }
        let predicted = access::cheapest(self.model, self.layout, query);
        if predicted.seeks > REQUESTS_MAX as f64 {
            return Err("it asks more than 1,000 partitions or tables");
        }
        let reference = self.entities / 2;
        let structure = &self.layout.structures[predicted.structure];
        if structure.role.is_list() && predicted.requests > REQUESTS_MAX as f64 {
            return Err("it reads more than 1,000 entities one by one");
        }
        if structure.role.is_list() {
            let mut requests = self.requests(predicted.structure, query, reference, Kind::Point);
            if predicted.rows > 1.0 {
                requests.extend(self.listed(query, reference));
            }
            return Ok((predicted, requests));
        }
        Ok((predicted, self.requests(predicted.structure, query, reference, predicted.kind)))
    }

    /// The requests for the entities of a list.
    fn listed(&self, query: &QueryModel, reference: u64) -> Vec<TrialRequest> {
        let same = |entity: &u64| query.equals.iter().all(|it| self.number(*entity, it) == self.number(reference, it));
        let parts = self.layout.row_parts(0);
        let point = |entity: u64| {
            let period = self.layout.tables.zip(self.time(entity)).map(|(period, time)| period_text(time, period));
            let partition = self.text(&self.layout.primary().partition, entity);
            let filter = format!("PartitionKey eq '{partition}' and RowKey eq '{}'", self.text(&parts, entity));
            TrialRequest { table: self.table(0, &period.unwrap_or_default()), filter, top: None }
        };
        (0..self.entities).filter(same).map(point).collect()
    }

    /// The requests to a structure: one for each table and partition that can have results.
    fn requests(&self, index: usize, query: &QueryModel, reference: u64, kind: Kind) -> Vec<TrialRequest> {
        let structure = &self.layout.structures[index];
        let tables = match (self.layout.tables, self.model.time) {
            (Some(period), Some(time)) => {
                let all = self.layout.table_count(self.model);
                self.periods(query, reference, time, period, all)
            }
            _ => vec![String::new()],
        };
        let partitions = match kind {
            Kind::TableScan => vec![None],
            _ => self.partitions(&structure.template.partition, query, reference).into_iter().map(Some).collect(),
        };
        let is_sorted = query.order.is_none() || {
            let access = access::of_structure(self.model, self.layout, index, query);
            access.is_some_and(|access| !access.is_sorted_by_client)
        };
        let top = query.top.filter(|_| is_sorted).map(|top| top as u64);
        let mut requests = Vec::new();
        for period in &tables {
            for partition in &partitions {
                let mut filter: Vec<String> = Vec::new();
                filter.extend(partition.iter().map(|partition| format!("PartitionKey eq '{partition}'")));
                let exact = match partition {
                    Some(_) => self.row_filter(index, query, reference, &mut filter),
                    None => self.partition_range(&structure.template.partition, query, reference, &mut filter),
                };
                if self.layout.packed.is_none() {
                    self.residual(query, reference, &exact, &mut filter);
                }
                let table = self.table(index, period);
                requests.push(TrialRequest { table, filter: filter.join(" and "), top });
            }
        }
        requests
    }

    /// The partitions that a query asks.
    fn partitions(&self, parts: &[Part], query: &QueryModel, reference: u64) -> Vec<String> {
        let mut texts = vec![String::new()];
        for part in parts {
            let choices = match *part {
                Part::Bucket(property, buckets) if !query.equals.has(property) => {
                    (0..buckets).map(bucket_text).collect()
                }
                Part::Period(property, period) => {
                    let all = (self.model.days / period.days()).ceil().max(1.0);
                    self.periods(query, reference, property, period, all)
                }
                part => vec![self.text(&[part], reference)],
            };
            let joined = |text: &String, choice: &String| match text.is_empty() {
                true => choice.clone(),
                false => format!("{text}_{choice}"),
            };
            texts = texts.iter().flat_map(|text| choices.iter().map(move |choice| joined(text, choice))).collect();
        }
        texts
    }

    /// The periods that a query asks, the newest first.
    fn periods(&self, query: &QueryModel, reference: u64, property: u8, period: Period, all: f64) -> Vec<String> {
        let text = |number: u64| period_text(seconds(self.model, property, number), period);
        if query.equals.has(property) {
            return vec![text(self.number(reference, property))];
        }
        if let Some((low, high)) =
            self.range(query, reference).filter(|_| query.range.is_some_and(|it| it.property == property))
        {
            let texts: BTreeSet<String> = (low..high).map(text).collect();
            return texts.into_iter().collect();
        }
        let texts: BTreeSet<String> = (0..self.entities).map(|entity| text(self.number(entity, property))).collect();
        let asked = asked_periods(self.model, query, property, period, all).unwrap_or(all);
        texts.into_iter().rev().take(asked as usize).collect()
    }

    /// The first number in the range of a query, and the one after the last.
    fn range(&self, query: &QueryModel, reference: u64) -> Option<(u64, u64)> {
        let range = query.range?;
        let distinct = self.model.distinct(range.property) as u64;
        let count = ((range.share * distinct as f64).round() as u64).clamp(1, distinct);
        let low = self.number(reference, range.property).min(distinct - count);
        Some((low, low + count))
    }

    /// Adds what the row key must be. Returns the properties that need no further comparison.
    fn row_filter(&self, index: usize, query: &QueryModel, reference: u64, filter: &mut Vec<String>) -> Vec<u8> {
        let template = &self.layout.structures[index].template;
        let mut exact: Vec<u8> = template
            .partition
            .iter()
            .filter(|it| matches!(it, Part::Value(_)))
            .filter_map(|it| it.property())
            .collect();
        let parts = self.layout.row_parts(index);
        let is_known = |part: &&Part| part.property().is_none_or(|property| query.equals.has(property));
        let known: Vec<Part> = parts.iter().take_while(is_known).copied().collect();
        exact.extend(known.iter().filter_map(|part| part.property()));
        let prefix = self.text(&known, reference);
        let Some(open) = parts.get(known.len()) else {
            let is_family = !query.with.is_empty() && self.layout.related_rows(self.model) > 0.0;
            filter.push(match is_family {
                // '`' is the character after '_'.
                true => format!("RowKey ge '{prefix}' and RowKey lt '{prefix}`'"),
                false => format!("RowKey eq '{prefix}'"),
            });
            return exact;
        };
        let prefix = if known.is_empty() { prefix } else { format!("{prefix}_") };
        let range =
            self.range(query, reference).filter(|_| query.range.is_some_and(|it| open.property() == Some(it.property)));
        if let Some((low, high)) = range {
            let text = |number: u64| part_text(self.model, *open, &self.tags, |_| number);
            exact.extend(open.property());
            // Inverted, the greatest value of the range comes first; the character after all digits ends the last one.
            let (first, last) = match open {
                Part::Inverted(_) => (text(high - 1), text(low)),
                _ => (text(low), text(high - 1)),
            };
            filter.push(format!("RowKey ge '{prefix}{first}' and RowKey lt '{prefix}{last}~'"));
        } else if !known.is_empty() {
            filter.push(format!("RowKey ge '{prefix}' and RowKey lt '{}`'", prefix.trim_end_matches('_')));
        }
        exact
    }

    /// Adds the range of partitions that a scan of the table may be limited to.
    fn partition_range(&self, parts: &[Part], query: &QueryModel, reference: u64, filter: &mut Vec<String>) -> Vec<u8> {
        let (Some(range), Some(Part::Value(first))) = (query.range, parts.first()) else { return Vec::new() };
        let Some((low, high)) = self.range(query, reference).filter(|_| range.property == *first) else {
            return Vec::new();
        };
        let text = |number: u64| part_text(self.model, parts[0], &self.tags, |_| number);
        filter.push(format!("PartitionKey ge '{}' and PartitionKey lt '{}~'", text(low), text(high - 1)));
        vec![*first]
    }

    /// Adds the comparisons that the keys do not make.
    fn residual(&self, query: &QueryModel, reference: u64, exact: &[u8], filter: &mut Vec<String>) {
        let literal = |property: u8, number: u64| literal(&sample(self.model, property, number));
        for property in query.equals.iter().filter(|property| !exact.contains(property)) {
            let literal = literal(property, self.number(reference, property));
            filter.push(format!("{} eq {literal}", self.model.name(property)));
        }
        if let (Some((low, high)), Some(range)) = (self.range(query, reference), query.range)
            && !exact.contains(&range.property)
        {
            let name = self.model.name(range.property);
            let (low, high) = (literal(range.property, low), literal(range.property, high - 1));
            filter.push(format!("{name} ge {low} and {name} le {high}"));
        }
    }
}

/// Values that a property has at least in a trial, if it has so many at all.
const VALUES_MIN: f64 = 8.0;
/// Over how many periods the entities of a trial are spread if each period has a table.
const TABLES: f64 = 4.0;
