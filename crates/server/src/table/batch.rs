//! `$batch`: a transaction on one partition, or a single query.

use super::answer::WriteAnswer;
use super::entity::read_write;
use super::explain::Explain;
use super::query::{get_entity, query_entities};
use crate::call::Call;
use crate::error;
use crate::http::{Declared, authorize};
use crate::in_flight::Held;
use crate::reply::Reply;
use crate::yielding::Yielder;
use bytes::Bytes;
use larimar_engine::table::{Table, transact};
use larimar_engine::{Engine, EngineError};
use larimar_model::table::{Transaction, TransactionError, Write};
use larimar_model::{Timestamp, limits};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::table::batch::{Batch, Part, parse};
use larimar_wire::table::batch_response::BatchResponse;
use larimar_wire::table::{MetadataLevel, Prefer, TableOperation, TableRequest};
use std::time::Instant;

pub(super) async fn run<E: Engine>(call: &Call<'_, E>, body: &Bytes) -> error::Result<Reply> {
    match parse(call.head.raw_header("content-type").unwrap_or(""), body)? {
        Batch::Query(part) => Ok(run_query(call, &part).await?),
        Batch::Changeset(_) if call.address.is_secondary => Err(ErrorCode::InsufficientAccountPermissions.into()),
        Batch::Changeset(parts) => Ok(run_changeset(call, &parts, body).await?),
    }
}

/// The operations of a changeset, parsed and authorised.
struct Changeset {
    transaction: Transaction,
    /// How each write is answered.
    forms: Vec<(MetadataLevel, Option<Prefer>)>,
}

async fn run_changeset<E: Engine>(call: &Call<'_, E>, parts: &[Part<'_>], body: &Bytes) -> Result<Reply, ErrorReply> {
    let batch_id = call.storage.ids.next().to_string();
    let mut response = BatchResponse::changeset(&batch_id, &call.storage.ids.next().to_string());
    let held = match change(call, parts, body, &mut response).await {
        Ok(held) => held,
        Err((_, error)) if is_untried(&error) || call.is_repeated_after(&error) => return Err(error),
        Err((index, error)) => {
            write_failure(&mut response, &error, &parts[index], call.request_id, call.now);
            None
        }
    };
    let content_type = response.content_type();
    Ok(Reply { body: response.finish(), held, ..Reply::empty(202) }.with("content-type", content_type))
}

/// Whether nothing was done: the database is away, the server is stopping, or the account's budget is spent. Then the
/// request is refused as a whole, since clients repeat it only if they see that in its own status.
fn is_untried(error: &ErrorReply) -> bool {
    error.status == 503
}

/// An error of the operation at an index, which its message names; but for one of the request as a whole.
fn at_index(error: ErrorReply, index: usize) -> (usize, ErrorReply) {
    let is_untried = is_untried(&error);
    (index, if is_untried { error } else { error.at_index(index) })
}

/// Reads and applies a changeset, and writes its answer, for which the room is taken before anything is changed. A failure
/// comes with the index of the operation that failed.
async fn change<E: Engine>(
    call: &Call<'_, E>,
    parts: &[Part<'_>],
    body: &Bytes,
    response: &mut BatchResponse,
) -> Result<Option<Held>, (usize, ErrorReply)> {
    let changeset = read_changeset(call, parts, body).await?;
    let writes = changeset.transaction.writes();
    let table = call.table(changeset.transaction.table()).await;
    let table = table.map_err(|error| at_index(error.into_reply(call.service), 0))?;
    let place = Some((table.id, writes[0].key().partition.as_str()));
    let started = Instant::now();
    let throttled = call.throttle(place, writes.len()).map_err(|error| at_index(error, 0));
    if throttled.is_err() {
        call.observe_transaction(&table, writes, &throttled, started);
    }
    throttled?;
    let answer_bytes = answer_bytes_max(call, &table, &changeset, parts).await;
    let held = call.hold_answer(answer_bytes).map_err(|error| at_index(error, 0))?;
    let versions = transact(call.engine(), table.id, &changeset.transaction, call.now).await;
    let versions = versions.map_err(|error| failure(&error, writes.len()));
    call.observe_transaction(&table, writes, &versions, started);
    let versions = versions?;
    response.reserve(answer_bytes);
    let mut yielder = Yielder::default();
    for (((write, (level, prefer)), version), part) in writes.iter().zip(&changeset.forms).zip(versions).zip(parts) {
        let answer = WriteAnswer::new(call, &table, write, version, *level, *prefer);
        let version = if answer.status == 201 || prefer.is_some() { "3.0;" } else { "1.0;" };
        write_success(response, &answer, *prefer, version, part.content_id());
        yielder.after(answer.body.len()).await;
    }
    Ok(held)
}

/// The most bytes that the answer to a changeset can have.
async fn answer_bytes_max<E: Engine>(
    call: &Call<'_, E>,
    table: &Table,
    changeset: &Changeset,
    parts: &[Part<'_>],
) -> usize {
    let (mut bytes, mut yielder) = (BatchResponse::PART_BYTES_MAX, Yielder::default());
    for ((write, (level, prefer)), part) in changeset.transaction.writes().iter().zip(&changeset.forms).zip(parts) {
        let answer = WriteAnswer::bytes_max(call, table, write, *level, *prefer);
        bytes += BatchResponse::PART_BYTES_MAX + part.content_id().map_or(0, str::len) + answer;
        yielder.after(part.body.len()).await;
    }
    bytes
}

/// The error of a transaction that the engine refused. In a transaction of one operation an error of
/// execution carries no index (recorded).
fn failure(error: &EngineError, operations: usize) -> (usize, ErrorReply) {
    match error {
        EngineError::RejectAt { op, reject } if operations == 1 => (*op, error::reject(reject)),
        EngineError::RejectAt { op, .. } => (*op, error::engine_error(error)),
        EngineError::Reject(_) | EngineError::Fault(_) => at_index(error::engine_error(error), 0),
    }
}

/// Reads the operations of a changeset and checks what they must have in common.
async fn read_changeset<E: Engine>(
    call: &Call<'_, E>,
    parts: &[Part<'_>],
    body: &Bytes,
) -> Result<Changeset, (usize, ErrorReply)> {
    if parts.len() > limits::TRANSACTION_OPERATIONS_MAX {
        // Recorded: the error names the last operation that would have been allowed.
        let index = limits::TRANSACTION_OPERATIONS_MAX - 1;
        return Err((index, ErrorReply::from(TransactionError::TooManyWrites).at_index(index)));
    }
    let mut transaction: Option<Transaction> = None;
    let mut forms = Vec::with_capacity(parts.len());
    let mut yielder = Yielder::default();
    for (index, part) in parts.iter().enumerate() {
        let fail = |error: ErrorReply| (index, error.at_index(index));
        let TableRequest { operation, level, prefer } = read_part(call, part).map_err(fail)?;
        let TableOperation::Write(operation) = operation else {
            return Err(fail(ErrorReply::new(ErrorCode::InvalidInput)));
        };
        let declared = Declared::new(&operation);
        let authorized = authorize(&call.caller, &declared).map_err(fail)?;
        let json = body.slice_ref(part.body.as_bytes());
        let write = read_write(call, authorized, &json).await.map_err(fail)?;
        yielder.after(part.body.len()).await;
        // Only an insert is asked how it should be answered.
        forms.push((level, prefer.filter(|_| matches!(write, Write::Insert(_)))));
        match &mut transaction {
            None => transaction = Some(Transaction::in_one_partition(operation.table, write)),
            Some(transaction) => transaction.push(&operation.table, write).map_err(|error| fail(error.into()))?,
        }
    }
    Ok(Changeset { transaction: transaction.expect("a changeset has operations"), forms })
}

fn read_part<E: Engine>(call: &Call<'_, E>, part: &Part<'_>) -> Result<TableRequest, ErrorReply> {
    let path = call.below(part.head.authority, part.head.path)?;
    part.head.check_readable()?;
    TableRequest::parse_part(&part.head, call.account(), path)
}

async fn run_query<E: Engine>(call: &Call<'_, E>, part: &Part<'_>) -> Result<Reply, ErrorReply> {
    let mut response = BatchResponse::query(&call.storage.ids.next().to_string());
    let mut held = None;
    match answer_query(call, part).await.map_err(|error| error.into_reply(call.service)) {
        Ok(reply) => {
            held = reply.held;
            let mut headers = vec![("DataServiceVersion", "3.0;")];
            headers.extend(PART_HEADERS);
            for (name, key) in [
                ("Content-Type", "content-type"),
                ("ETag", "etag"),
                ("x-ms-continuation-NextPartitionKey", "x-ms-continuation-nextpartitionkey"),
                ("x-ms-continuation-NextRowKey", "x-ms-continuation-nextrowkey"),
            ] {
                headers.extend(reply.headers.get(key).and_then(|value| value.to_str().ok()).map(|value| (name, value)));
            }
            response.part(reply.status, headers, &reply.body);
        }
        Err(error) if is_untried(&error) || call.is_repeated_after(&error) => return Err(error),
        Err(error) => write_failure(&mut response, &error.at_index(0), part, call.request_id, call.now),
    }
    let content_type = response.content_type();
    let reply = Reply { body: response.finish(), held, is_read: true, ..Reply::empty(202) };
    Ok(reply.with("content-type", content_type))
}

async fn answer_query<E: Engine>(call: &Call<'_, E>, part: &Part<'_>) -> error::Result<Reply> {
    let TableRequest { operation, level, .. } = read_part(call, part)?;
    match &operation {
        TableOperation::GetEntity(get) => {
            get_entity(call, authorize(&call.caller, &Declared::new(get))?, level, Explain::No).await
        }
        TableOperation::QueryEntities(query) => {
            query_entities(call, authorize(&call.caller, &Declared::new(query))?, level, Explain::No).await
        }
        _ => Err(ErrorCode::InvalidInput.into()),
    }
}

/// The headers of every part.
const PART_HEADERS: [(&str, &str); 2] = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-cache")];

fn write_success(
    response: &mut BatchResponse,
    answer: &WriteAnswer,
    prefer: Option<Prefer>,
    version: &str,
    content_id: Option<&str>,
) {
    let mut headers = content_id.map(|id| ("Content-ID", id)).into_iter().collect::<Vec<_>>();
    headers.extend(PART_HEADERS);
    headers.extend(prefer.map(|prefer| ("Preference-Applied", prefer.name())));
    headers.push(("DataServiceVersion", version));
    headers.extend(answer.content_type().map(|content_type| ("Content-Type", content_type)));
    headers.extend(answer.headers.iter().map(|(name, value)| (*name, value.as_str())));
    response.part(answer.status, headers, &answer.body);
}

fn write_failure(response: &mut BatchResponse, error: &ErrorReply, part: &Part<'_>, request_id: &str, now: Timestamp) {
    let mut headers = part.content_id().map(|id| ("Content-ID", id)).into_iter().collect::<Vec<_>>();
    headers.extend(PART_HEADERS);
    let prefer = part.head.raw_header("prefer").filter(|_| part.head.method == "POST");
    headers.extend(prefer.map(|prefer| ("Preference-Applied", prefer)));
    headers.push(("DataServiceVersion", "3.0;"));
    headers.push(("Content-Type", MetadataLevel::Minimal.content_type()));
    let mut body = Vec::with_capacity(256);
    error.write_json(&mut body, request_id, now);
    response.part(error.status, headers, &body);
}
