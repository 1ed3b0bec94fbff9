//! Reads of entities: by both keys, and by a filter in pages.

use super::explain::{Explain, Explanation};
use super::slow::AnsweredQuery;
use crate::call::Call;
use crate::error::{Failure, Result};
use crate::http::Authorized;
use crate::in_flight::ResponseRoom;
use crate::insights::Outcome;
use crate::reply::Reply;
use larimar_engine::table::{self, PageLimits, Plan, QueryKind};
use larimar_engine::{Engine, Flow, Key, Position};
use larimar_model::filter::Row;
use larimar_model::{ETag, EntityBody};
use larimar_wire::error_code::ErrorCode;
use larimar_wire::table::{EntityWriter, GetEntity, MetadataLevel, QueryEntities, QueryOptions, encode_token};
use std::time::Instant;

pub(super) async fn get_entity<E: Engine>(
    call: &Call<'_, E>,
    get: Authorized<'_, GetEntity>,
    level: MetadataLevel,
    explain: Explain,
) -> Result<Reply> {
    let started = Instant::now();
    let GetEntity { table, key, select } = get.operation();
    let table = call.table(table).await?;
    // Recorded: to a token that may read the table, rows outside of its range do not exist.
    call.caller.permits_key(key).map_err(|_| ErrorCode::ResourceNotFound)?;
    let (partition, row) = (key.partition.as_str(), key.row.as_str());
    call.throttle(Some((table.id, partition)), 1)
        .inspect_err(|error| call.observe_get(&table, key, Some(Outcome::of_status(error.status)), started))?;
    let writer = EntityWriter { base: call.base, account: call.account(), table: &table.name, level, select };
    if explain == Explain::PlanOnly {
        return Ok(Explanation::of_point(partition, row, started).add_to(empty_page(&writer), 0, 0));
    }
    let found = call.engine().get(Key { space: table.id, partition, row }, |found| {
        found.map(|found| {
            let mut json = Vec::with_capacity(512 + 2 * found.body.len());
            let body = EntityBody::from_trusted(found.body);
            writer.write_single(&mut json, &Row { partition, row, version: found.version, body });
            (json, found.version)
        })
    });
    let found = found.await.map_err(Failure::from);
    let outcome = match &found {
        Ok(None) => Some(Outcome::Missing),
        found => call.outcome(found),
    };
    call.observe_get(&table, key, outcome, started);
    let found = found?;
    call.storage.metrics.query(QueryKind::Point.name(), 1, u64::from(found.is_some()));
    let (json, version) = found.ok_or(ErrorCode::ResourceNotFound)?;
    let reply = Reply::json(200, level, json).with("etag", ETag(version).to_string());
    Ok(match explain {
        Explain::No => reply,
        Explain::Run | Explain::PlanOnly => Explanation::of_point(partition, row, started).add_to(reply, 1, 1),
    })
}

pub(super) async fn query_entities<E: Engine>(
    call: &Call<'_, E>,
    query: Authorized<'_, QueryEntities>,
    level: MetadataLevel,
    explain: Explain,
) -> Result<Reply> {
    let started = Instant::now();
    let QueryEntities { table, options } = query.operation();
    let table = call.table(table).await?;
    let plan = plan(call, options);
    let explanation = (explain != Explain::No).then(|| Explanation::of_plan(&plan, started));
    let plan = match &options.next {
        Some((partition, row)) => plan.resumed_at(Position::new(partition.as_str(), row.as_str())),
        None => plan,
    };
    call.throttle(plan.ranges.first().map(|range| (table.id, range.start.partition.as_str())), 1)
        .inspect_err(|error| call.observe_failed_query(&table, Some(Outcome::of_status(error.status)), started))?;
    let settings = &call.storage.settings;
    let limits = PageLimits {
        entities_max: options.top.unwrap_or(usize::MAX).min(settings.page_entities_max),
        deadline: Instant::now() + settings.page_time_max,
        steps_max: PageLimits::STEPS_MAX,
    };
    let select = &options.select;
    let writer = EntityWriter { base: call.base, account: call.account(), table: &table.name, level, select };
    let explanation = match explanation {
        Some(explanation) if explain == Explain::PlanOnly => {
            return Ok(explanation.add_to(empty_page(&writer), 0, 0));
        }
        explanation => explanation,
    };
    let mut room = ResponseRoom::new(call.share);
    let mut json = Vec::with_capacity(4096);
    writer.write_page_start(&mut json);
    let start = json.len();
    let page = table::query(call.engine(), table.id, &plan, limits, |row| {
        // One entity at least, or a client would never get ahead.
        if json.len() > start && (json.len() > settings.page_bytes_max || !room.allows(json.capacity())) {
            return Flow::StopHere;
        }
        writer.write_item(&mut json, row);
        Flow::Continue
    });
    let page = page.await.map_err(Failure::from);
    if page.is_err() {
        call.observe_failed_query(&table, call.outcome(&page), started);
    }
    let page = page?;
    writer.write_page_end(&mut json);
    call.observe_query(&table, options.filter.as_ref(), &plan, &page, started);
    call.storage.metrics.query(plan.kind.name(), page.rows_read, page.rows_returned);
    let (filter, kind, elapsed) = (options.filter.as_ref(), plan.kind, started.elapsed());
    let table::Page { rows_read, rows_returned, .. } = page;
    AnsweredQuery { table: &table.name, filter, kind, rows_read, rows_returned, elapsed }.report(call);
    let reply = Reply { held: room.into_held(), ..Reply::json(200, level, json) };
    let reply = match explanation {
        Some(explanation) => explanation.add_to(reply, page.rows_read, page.rows_returned),
        None => reply,
    };
    Ok(with_continuation(reply, page.next.as_ref()))
}

/// The plan for the rows that the caller may see.
fn plan<E: Engine>(call: &Call<'_, E>, options: &QueryOptions) -> Plan {
    let plan = Plan::new(options.filter.as_ref());
    match call.caller.visible_range() {
        Some(range) => plan.limited_to(&range),
        None => plan,
    }
}

/// A page without entities.
fn empty_page(writer: &EntityWriter<'_>) -> Reply {
    let mut json = Vec::with_capacity(256);
    writer.write_page_start(&mut json);
    writer.write_page_end(&mut json);
    Reply::json(200, writer.level, json)
}

fn with_continuation(reply: Reply, next: Option<&Position>) -> Reply {
    match next {
        Some(next) => reply
            .with("x-ms-continuation-nextpartitionkey", encode_token(&next.partition))
            .with("x-ms-continuation-nextrowkey", encode_token(&next.row)),
        None => reply,
    }
}
