//! Messages: put, get, peek, update, delete, clear.

use crate::call::Call;
use crate::error::Result;
use crate::reply::Reply;
use larimar_engine::Engine;
use larimar_engine::queue::{Change, Message, MessageHandle, NewMessage};
use larimar_model::queue::QueueName;
use larimar_model::{Guid, Timestamp};
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::queue::{MessageXml, parse_message, parse_message_update, write_messages};
use larimar_wire::signature::http_date;
use std::time::Duration;

pub(super) async fn put<E: Engine>(
    call: &Call<'_, E>,
    name: &QueueName,
    hidden_for: Duration,
    lives_for: Option<Duration>,
    body: &[u8],
) -> Result<Reply> {
    let text = parse_message(body)?;
    let queue = call.queue(name).await?;
    let new = NewMessage { text: text.as_bytes(), hidden_for, lives_for };
    let placed = call.engine().put_message(queue.id, new, call.now).await?;
    let receipt = placed.receipt.to_string();
    let message = MessageXml {
        id: placed.id,
        inserted: placed.inserted,
        expires: end(placed.expires),
        receipt: Some((&receipt, placed.visible_at)),
        content: None,
    };
    Ok(list(201, [message]))
}

pub(super) async fn get<E: Engine>(
    call: &Call<'_, E>,
    name: &QueueName,
    count: usize,
    hidden_for: Duration,
) -> Result<Reply> {
    let queue = call.queue(name).await?;
    // Before they are claimed: afterwards it is too late to refuse the answer.
    let held = call.hold(count as u64 * MESSAGE_BYTES).await?;
    let claimed = call.engine().claim(queue.id, count, hidden_for, call.now).await?;
    Ok(Reply { held, ..read(&claimed, true) })
}

pub(super) async fn peek<E: Engine>(call: &Call<'_, E>, name: &QueueName, count: usize) -> Result<Reply> {
    let queue = call.queue(name).await?;
    let held = call.hold(count as u64 * MESSAGE_BYTES).await?;
    let seen = call.engine().peek(queue.id, count, call.now).await?;
    Ok(Reply { held, ..read(&seen, false) })
}

pub(super) async fn update<E: Engine>(
    call: &Call<'_, E>,
    name: &QueueName,
    id: Option<Guid>,
    receipt: &str,
    hidden_for: Duration,
    body: &[u8],
) -> Result<Reply> {
    let text = parse_message_update(body)?;
    let queue = call.queue(name).await?;
    let handle = handle(id, receipt)?;
    let change = Change { text: text.as_deref().map(str::as_bytes), hidden_for };
    let updated = call.engine().update_message(queue.id, handle, change, call.now).await?;
    Ok(Reply::empty(204)
        .with("x-ms-popreceipt", updated.receipt.to_string())
        .with("x-ms-time-next-visible", http_date(updated.visible_at)))
}

pub(super) async fn delete<E: Engine>(
    call: &Call<'_, E>,
    name: &QueueName,
    id: Option<Guid>,
    receipt: &str,
) -> Result<Reply> {
    let queue = call.queue(name).await?;
    let handle = handle(id, receipt)?;
    call.engine().delete_message(queue.id, handle, call.now).await?;
    Ok(Reply::empty(204))
}

pub(super) async fn clear<E: Engine>(call: &Call<'_, E>, name: &QueueName) -> Result<Reply> {
    let queue = call.queue(name).await?;
    call.engine().clear_messages(queue.id, call.now).await?;
    Ok(Reply::empty(204))
}

/// The answer with messages that were read; with receipts if they were claimed.
fn read(messages: &[Message], is_claimed: bool) -> Reply {
    let parts: Vec<_> =
        messages.iter().map(|message| (message.receipt.to_string(), String::from_utf8_lossy(&message.text))).collect();
    let messages = messages.iter().zip(&parts).map(|(message, (receipt, text))| MessageXml {
        id: message.id,
        inserted: message.inserted,
        expires: end(message.expires),
        receipt: is_claimed.then_some((receipt.as_str(), message.visible_at)),
        content: Some((message.dequeue_count, text)),
    });
    list(200, messages)
}

fn list<'a>(status: u16, messages: impl IntoIterator<Item = MessageXml<'a>>) -> Reply {
    let mut xml = Vec::with_capacity(1024);
    write_messages(&mut xml, messages);
    Reply::xml(status, xml)
}

/// The end of a message's life, if it has one.
fn end(expires: Timestamp) -> Option<Timestamp> {
    (expires != Timestamp::MAX).then_some(expires)
}

/// The message that a request means.
fn handle(id: Option<Guid>, receipt: &str) -> Result<MessageHandle> {
    let id = id.ok_or(ErrorCode::MessageNotFound)?;
    let malformed = |_| {
        ErrorReply::of_parameter(ErrorCode::InvalidQueryParameterValue, "popreceipt", receipt)
            .with_detail("Reason", "Invalid pop receipt format")
    };
    Ok(MessageHandle { id, receipt: receipt.parse().map_err(malformed)? })
}

/// What the room for an answer counts for each message: most are far below the 64 KiB that they may have.
const MESSAGE_BYTES: u64 = 16 << 10;
