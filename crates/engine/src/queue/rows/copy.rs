//! Reads and stores messages exactly as they are, for copies of a store.

use super::record::{Content, Delivery, DeliveryKey, DeliveryRow, content_row};
use super::{RowQueues, content, message, walk};
use crate::contract::{Flow, Message, MessagePlace, OwnedRow, RowRef, Rows, SpaceId};
use crate::error::{Fault, ReadError, WriteError};
use larimar_model::{Guid, Timestamp};

/// One of the two rows of a message, as a backup has them.
#[derive(Debug)]
pub enum MessageRow {
    /// Everything but the time of its insertion and its text.
    Delivery(Message),
    /// The rest.
    Content {
        /// The message's name.
        id: Guid,
        /// When it was added.
        inserted: Timestamp,
        /// Its bytes.
        text: Vec<u8>,
    },
}

impl MessageRow {
    /// Reads a row of a queue.
    ///
    /// # Errors
    /// A row that cannot be read.
    pub fn parse(row: RowRef<'_>) -> Result<Self, Fault> {
        let Some(id) = row.row.strip_prefix('m') else {
            let found = DeliveryRow::parse(row)?;
            let content = Content { inserted: found.version, expires: found.delivery.expires, text: Vec::new() };
            return Ok(Self::Delivery(message(&found, content, found.delivery.dequeue_count, found.nonce())));
        };
        let unknown = |_| Fault::Damaged(format!("a queue has an unknown row {:?}", row.row));
        let id = Guid(u128::from_str_radix(id, 16).map_err(unknown)?.to_be_bytes());
        let Content { inserted, text, .. } = Content::parse(row.body)?;
        Ok(Self::Content { id, inserted, text })
    }
}

impl RowQueues {
    /// As [`Messages::read_messages`](crate::queue::Messages::read_messages).
    pub async fn read(
        &self,
        engine: &impl Rows,
        queue: SpaceId,
        after: Option<MessagePlace>,
        max: usize,
    ) -> Result<Vec<Message>, ReadError> {
        let after = after.map(|(visible_at, id)| DeliveryKey { visible_at, id }.next());
        let mut from = after.unwrap_or(DeliveryKey::FIRST);
        loop {
            let mut found: Vec<DeliveryRow> = Vec::new();
            let walked = walk(engine, queue, (from, None), |row| {
                if found.len() == max {
                    return Flow::StopHere;
                }
                found.push(row);
                Flow::Continue
            });
            let (_, next) = self.noting_gone_reading(queue, walked.await)?;
            let mut messages = Vec::with_capacity(found.len());
            for found in found {
                // A message that was deleted meanwhile is left out.
                if let Some(content) = content(engine, queue, found.key.id).await? {
                    messages.push(message(&found, content, found.delivery.dequeue_count, found.nonce()));
                }
            }
            match next {
                Some(next) if messages.is_empty() => from = next,
                _ => return Ok(messages),
            }
        }
    }

    /// As [`Messages::restore_messages`](crate::queue::Messages::restore_messages).
    pub async fn restore(
        &self,
        engine: &impl Rows,
        queue: SpaceId,
        messages: &[Message],
        now: Timestamp,
    ) -> Result<(), WriteError> {
        let state = self.state(queue);
        let keys = messages.iter().map(|message| DeliveryKey { visible_at: message.visible_at, id: message.id });
        let earliest = messages.iter().map(|message| message.expires).min().unwrap_or(Timestamp::MAX);
        let write = state.write(keys.collect(), earliest);
        let rows: Vec<OwnedRow> = messages.iter().flat_map(|message| message_rows(message, now)).collect();
        let rows: Vec<RowRef<'_>> = rows.iter().map(OwnedRow::as_ref).collect();
        self.noting_gone(queue, engine.restore(queue, &rows).await)?;
        write.done(i64::try_from(messages.len()).unwrap_or(i64::MAX));
        Ok(())
    }
}

/// The rows of a message: its content and its delivery.
#[must_use]
pub fn message_rows(message: &Message, now: Timestamp) -> [OwnedRow; 2] {
    let Message { id, inserted, expires, dequeue_count, receipt, visible_at, text } = message;
    // Versions come from the clock. A nonce from another engine may be any number: as a version it would set this engine's
    // clock.
    let is_version = receipt.nonce <= now.ticks();
    let version = if is_version { Timestamp::from_ticks(receipt.nonce) } else { (*inserted).min(now) };
    let nonce = (!is_version).then_some(receipt.nonce);
    let delivery = Delivery { expires: *expires, dequeue_count: *dequeue_count, nonce };
    let key = DeliveryKey { visible_at: *visible_at, id: *id };
    let row = |row, body| OwnedRow { partition: super::PARTITION.to_owned(), row, version, body };
    [row(content_row(*id), Content::body(*inserted, *expires, text)), row(key.row(), delivery.to_body())]
}
