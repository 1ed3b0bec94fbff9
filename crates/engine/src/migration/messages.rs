//! Copies the messages of a queue, with their ids, times, dequeue counts and receipts. Expired ones are left out.

use super::record::{Log, Record};
use super::{Digest, MigrationError, Part};
use crate::contract::{Engine, Message, MessagePlace, Position, Space, SpaceId};
use larimar_model::{Guid, Timestamp};

/// Copies what is left of a queue.
pub(super) async fn copy(
    from: &impl Engine,
    log: &Log<'_, impl Engine>,
    source: SpaceId,
    record: &mut Record,
    mut tell: impl FnMut(&Record),
) -> Result<(), MigrationError> {
    let part = record.part.clone();
    let mut after = record.next.as_ref().map(|next| place(next).ok_or_else(|| record.damaged())).transpose()?;
    loop {
        let now = log.now();
        let messages = read(from, &part, source, after).await?;
        after = messages.last().map(|last| (last.visible_at, last.id));
        let messages: Vec<Message> = messages.into_iter().filter(|message| message.expires > now).collect();
        if !messages.is_empty() {
            let restored = log.to.restore_messages(record.space, &messages, now).await;
            restored.map_err(|error| part.cannot_write(error))?;
            messages.iter().for_each(|message| record.digest.add_message(message));
        }
        record.go_on_at(after.map(position));
        log.put(record).await?;
        tell(record);
        if after.is_none() {
            return Ok(());
        }
    }
}

/// The digest of the messages that live beyond a time.
pub(super) async fn digest(
    engine: &impl Engine,
    part: &Part,
    found: &Space,
    living_at: Timestamp,
    mut tell: impl FnMut(&Digest),
) -> Result<Digest, MigrationError> {
    let (mut digest, mut after) = (Digest::new(part, &found.meta), None);
    loop {
        let messages = read(engine, part, found.id, after).await?;
        let Some(last) = messages.last() else { return Ok(digest) };
        after = Some((last.visible_at, last.id));
        let living = messages.iter().filter(|message| message.expires > living_at);
        living.for_each(|message| digest.add_message(message));
        tell(&digest);
    }
}

/// Whether a queue holds nothing.
pub(super) async fn is_empty(engine: &impl Engine, part: &Part, queue: SpaceId) -> Result<bool, MigrationError> {
    Ok(read(engine, part, queue, None).await?.is_empty())
}

async fn read(
    engine: &impl Engine,
    part: &Part,
    queue: SpaceId,
    after: Option<MessagePlace>,
) -> Result<Vec<Message>, MigrationError> {
    engine.read_messages(queue, after, PAGE_MESSAGES).await.map_err(|error| part.cannot_read(error))
}

/// How a record keeps a place in a queue.
fn position((visible_at, id): MessagePlace) -> Position {
    Position::new("", format!("{:016x}{:032x}", visible_at.ticks(), u128::from_be_bytes(id.0)))
}

fn place(position: &Position) -> Option<MessagePlace> {
    let (visible_at, id) = position.row.split_at_checked(16)?;
    let visible_at = Timestamp::from_ticks(u64::from_str_radix(visible_at, 16).ok()?);
    Some((visible_at, Guid(u128::from_str_radix(id, 16).ok()?.to_be_bytes())))
}

/// Messages in memory at a time: 8 MiB of the largest ones.
const PAGE_MESSAGES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        for found in [(Timestamp::EDM_MIN, Guid([0; 16])), (Timestamp::MAX, Guid([255; 16]))] {
            assert_eq!(place(&position(found)), Some(found));
        }
        assert_eq!(place(&Position::new("", "short")), None);
    }
}
