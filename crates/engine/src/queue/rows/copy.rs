//! Reads and stores messages exactly as they are, for copies of a store.

use super::record::{Content, Delivery, DeliveryKey, DeliveryRow, content_row};
use super::{RowQueues, content, message, walk};
use crate::contract::{Flow, Message, MessagePlace, RowRef, Rows, SpaceId};
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
        let (mut keys, mut rows) = (Vec::with_capacity(messages.len()), Vec::with_capacity(2 * messages.len()));
        for message in messages {
            let Message { id, inserted, expires, dequeue_count, receipt, visible_at, text } = message;
            // Versions come from the clock. A nonce from another engine may be any number: as a version it would set
            // this engine's clock.
            let is_version = receipt.nonce <= now.ticks();
            let version = if is_version { Timestamp::from_ticks(receipt.nonce) } else { (*inserted).min(now) };
            let nonce = (!is_version).then_some(receipt.nonce);
            let delivery = Delivery { expires: *expires, dequeue_count: *dequeue_count, nonce };
            let key = DeliveryKey { visible_at: *visible_at, id: *id };
            rows.push((content_row(*id), version, Content::body(*inserted, *expires, text)));
            rows.push((key.row(), version, delivery.to_body()));
            keys.push(key);
        }
        let earliest = messages.iter().map(|message| message.expires).min().unwrap_or(Timestamp::MAX);
        let write = state.write(keys, earliest);
        let row = |(row, version, body)| RowRef { partition: super::PARTITION, row, version, body };
        let rows: Vec<RowRef<'_>> = rows.iter().map(|(name, version, body)| row((name, *version, body))).collect();
        self.noting_gone(queue, engine.restore(queue, &rows).await)?;
        write.done(i64::try_from(messages.len()).unwrap_or(i64::MAX));
        Ok(())
    }
}
