//! Tables: create, query, get, delete.

use crate::call::Call;
use crate::error::{Failure, Result};
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::table::{self, PageLimits, SLICE_STEPS, list_tables};
use larimar_model::filter::{Comparison, Filter, Predicate, Row};
use larimar_model::{BodyBuilder, EntityBody, TableName, Timestamp, Value, ValueRef};
use larimar_wire::error_code::ErrorCode;
use larimar_wire::table::{
    MetadataLevel, Prefer, QueryOptions, TableWriter, encode_token, parse_table_name, write_schema,
};
use std::time::Instant;

pub(super) async fn create_table<E: Engine>(
    call: &Call<'_, E>,
    body: &[u8],
    level: MetadataLevel,
    prefer: Option<Prefer>,
) -> Result<Reply> {
    let name = parse_table_name(body)?;
    if name.is_system() {
        return Err(ErrorCode::InvalidResourceName.into());
    }
    call.check_free(&name.to_folded())?;
    table::create_table(call.engine(), call.account(), &name).await?;
    let location = format!("{}/Tables('{name}')", call.base);
    let reply = match prefer {
        Some(Prefer::NoContent) => Reply::empty(204).with("dataserviceid", location.as_str()),
        Some(Prefer::Content) | None => {
            let mut json = Vec::with_capacity(256);
            writer(call, level).write_single(&mut json, name.as_str());
            Reply::json(201, level, json)
        }
    };
    Ok(reply.with("location", location))
}

pub(super) async fn get_table<E: Engine>(call: &Call<'_, E>, name: &TableName, level: MetadataLevel) -> Result<Reply> {
    let table = call.table_settings(name).await.map_err(missing_resource)?;
    let mut json = Vec::with_capacity(256);
    writer(call, level).write_single(&mut json, &table.name);
    Ok(Reply::json(200, level, json))
}

pub(super) async fn delete_table<E: Engine>(call: &Call<'_, E>, name: &TableName) -> Result<Reply> {
    table::delete_table(call.engine(), call.account(), name).await.map_err(missing_resource)?;
    call.note_deleted(&name.to_folded());
    Ok(Reply::empty(204))
}

pub(super) async fn query_tables<E: Engine>(
    call: &Call<'_, E>,
    options: &QueryOptions,
    level: MetadataLevel,
) -> Result<Reply> {
    let settings = &call.storage.settings;
    let filter = options.filter.as_ref().map(folded);
    let mut page = TablePage::new(options.top, filter.as_ref(), settings.page_entities_max, settings.page_bytes_max);
    let deadline = Instant::now() + settings.page_time_max;
    let writer = writer(call, level);
    writer.write_page_start(&mut page.json);
    let mut from = options.next_table.clone().unwrap_or_default();
    // A page that is full is followed by a token only if another table matches.
    let mut is_exhausted = page.tables_max == 0;
    let mut next = None;
    while next.is_none() && !page.is_over && !is_exhausted {
        let listed = list_tables(call.engine(), call.account(), &from, SLICE_TABLES).await?;
        is_exhausted = listed.len() < SLICE_TABLES;
        for (folded, table) in listed {
            if page.admits(&folded) {
                if page.is_full() {
                    next = Some(folded);
                    break;
                }
                page.add(&writer, &table.name);
            }
            from = folded + "\0";
            if page.steps_of_slice >= SLICE_STEPS {
                page.steps_of_slice = 0;
                tokio::task::yield_now().await;
            }
        }
        tokio::task::yield_now().await;
        page.is_over = page.steps >= PageLimits::STEPS_MAX || Instant::now() >= deadline;
    }
    writer.write_page_end(&mut page.json);
    let next = next.or_else(|| (page.is_over && !is_exhausted).then_some(from));
    let reply = Reply::json(200, level, page.json);
    Ok(reply.with_some("x-ms-continuation-nexttablename", next.map(|next| encode_token(&next))))
}

/// A filter on tables with names in lower case: names of tables compare without case.
fn folded(filter: &Filter) -> Filter {
    let all = |parts: &[Filter]| parts.iter().map(folded).collect();
    match filter {
        Filter::And(parts) => Filter::And(all(parts)),
        Filter::Or(parts) => Filter::Or(all(parts)),
        Filter::Not(inner) => Filter::Not(Box::new(folded(inner))),
        Filter::Compare(Comparison { property, operator, literal: Value::String(name) }) => {
            Filter::Compare(Comparison {
                property: property.clone(),
                operator: *operator,
                literal: Value::String(name.to_ascii_lowercase()),
            })
        }
        other => other.clone(),
    }
}

/// The schema of the service: what every table has is declared, all else is open.
pub(super) fn get_schema<E: Engine>(call: &Call<'_, E>) -> Reply {
    let mut xml = Vec::with_capacity(2048);
    write_schema(&mut xml, call.account());
    Reply::xml(200, xml)
}

/// A page of tables as it grows.
struct TablePage<'o> {
    filter: Option<Predicate<'o>>,
    tables_max: usize,
    bytes_max: usize,
    json: Vec<u8>,
    tables: usize,
    steps: u64,
    steps_of_slice: u64,
    /// Whether it has taken too long or too much work.
    is_over: bool,
}

impl<'o> TablePage<'o> {
    fn new(top: Option<usize>, filter: Option<&'o Filter>, tables_max: usize, bytes_max: usize) -> Self {
        let tables_max = top.unwrap_or(tables_max);
        let filter = filter.map(Predicate::new);
        let json = Vec::with_capacity(4096);
        Self { filter, tables_max, bytes_max, json, tables: 0, steps: 0, steps_of_slice: 0, is_over: false }
    }

    /// Whether nothing may be added. One table at least fits, or a client would never get ahead.
    fn is_full(&self) -> bool {
        self.tables >= self.tables_max || self.tables > 0 && self.json.len() > self.bytes_max || self.is_over
    }

    /// Whether the filter admits a table of this name, which is in lower case.
    fn admits(&mut self, name: &str) -> bool {
        let mut steps = 1;
        let is_admitted = self.filter.as_ref().is_none_or(|filter| admits(filter, name, &mut steps));
        self.steps += steps;
        self.steps_of_slice += steps;
        is_admitted
    }

    fn add(&mut self, writer: &TableWriter<'_>, name: &str) {
        writer.write_item(&mut self.json, name);
        self.tables += 1;
    }
}

/// Whether a filter over `TableName` admits a table.
fn admits(filter: &Predicate<'_>, name: &str, steps: &mut u64) -> bool {
    let mut body = BodyBuilder::new();
    if body.push("TableName", ValueRef::String(name)).is_err() {
        return false;
    }
    let bytes = body.into_bytes();
    let version = Timestamp::EDM_MIN;
    filter.admits(&Row { partition: "", row: "", version, body: EntityBody::from_trusted(&bytes) }, steps)
}

/// Recorded: Get Table and Delete Table call a missing table a missing resource.
fn missing_resource(error: impl Into<Failure>) -> Failure {
    match error.into() {
        Failure::Reply(reply) if reply.code == ErrorCode::TableNotFound => ErrorCode::ResourceNotFound.into(),
        other => other,
    }
}

fn writer<'a, E: Engine>(call: &'a Call<'_, E>, level: MetadataLevel) -> TableWriter<'a> {
    TableWriter { base: call.base, account: call.account(), level }
}

/// Tables read from the engine in one go.
const SLICE_TABLES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q9_a_page_of_tables_is_full_by_number_by_bytes_and_by_work() {
        let host = "h".repeat(260);
        let writer = TableWriter { base: &host, account: "a", level: MetadataLevel::Full };
        let filled = |tables_max: usize, bytes_max: usize| {
            let mut page = TablePage::new(None, None, tables_max, bytes_max);
            while !page.is_full() {
                page.add(&writer, "tab");
            }
            (page.tables, page.json.len())
        };
        assert_eq!(filled(1000, usize::MAX).0, 1000);
        let (tables, bytes) = filled(1000, 10_000);
        assert!(tables < 30 && bytes < 11_000, "{tables} tables in {bytes} bytes");
        assert_eq!(filled(1000, 0).0, 1, "one at least, or a client would never get ahead");
        let mut page = TablePage::new(None, None, 1000, usize::MAX);
        page.is_over = true;
        assert!(page.is_full());
    }
}
