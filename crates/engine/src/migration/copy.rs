//! Copies every part of a store, each from where its record says.

use super::digest::{budget, size};
use super::part::Parts;
use super::record::{Log, Record, State};
use super::{Digest, Meter, MigrationError, Part, Side, Stage, blobs, messages, rows};
use crate::blob::bytes::ByteStore;
use crate::blob::relocate::is_blob;
use crate::contract::{Engine, Flow, KeyRange, Space, SpaceKind};

/// Copies what is left of every part.
pub(super) async fn copy_parts(
    from: &Side<'_, impl Engine, impl ByteStore>,
    to_bytes: Option<&impl ByteStore>,
    source: &Parts,
    log: &mut Log<'_, impl Engine>,
    meter: &mut Meter<'_>,
    counts_first: bool,
) -> Result<(), MigrationError> {
    if counts_first {
        meter.items_total = Some(count(from.engine, source, log, meter).await?);
    }
    meter.stage = Stage::Copy;
    let mut done = Digest::default();
    for (index, (part, found)) in source.iter().enumerate() {
        let mut record = log.record(part);
        match record.state {
            State::Planned => record = create(log, record, found).await?,
            // The source's description may have changed since the run that created the space.
            State::Copying => describe(log.to, part, found).await?,
            State::Copied | State::Differing => {}
        }
        let tell = |so_far: &Digest| meter.tell(part, index, done.and(so_far));
        copy_part(from, to_bytes, log, found, &mut record, tell).await?;
        done = done.and(&record.digest);
        log.remember(record);
    }
    meter.items_total = Some(done.items);
    Ok(())
}

/// Copies what is left of a part.
async fn copy_part(
    from: &Side<'_, impl Engine, impl ByteStore>,
    to_bytes: Option<&impl ByteStore>,
    log: &Log<'_, impl Engine>,
    found: &Space,
    record: &mut Record,
    mut tell: impl FnMut(&Digest),
) -> Result<(), MigrationError> {
    if record.state == State::Copied {
        return Ok(());
    }
    if record.next.is_none() {
        record.digest = Digest::new(&record.part, &found.meta);
    }
    match record.part.kind() {
        None | Some(SpaceKind::Table) => {
            rows::copy(from.engine, log, found.id, record, |record| tell(&record.digest)).await
        }
        Some(SpaceKind::Queue) => {
            messages::copy(from.engine, log, found.id, record, |record| tell(&record.digest)).await
        }
        Some(SpaceKind::Container) => blobs::copy(from, to_bytes, log, found.id, record, tell).await,
    }
}

/// How many items the parts have, those that earlier runs copied included.
async fn count(
    from: &impl Engine,
    source: &Parts,
    log: &Log<'_, impl Engine>,
    meter: &mut Meter<'_>,
) -> Result<u64, MigrationError> {
    let mut total = Digest::default();
    for (index, (part, found)) in source.iter().enumerate() {
        let record = log.record(part);
        if record.state == State::Copied {
            total = total.and(&record.digest);
        } else if part.kind() == Some(SpaceKind::Queue) {
            let counted = from.count_messages(found.id, log.now()).await;
            total.items += counted.map_err(|error| part.cannot_read(error))?;
        } else {
            total = total.and(&record.digest);
            let is_container = part.kind() == Some(SpaceKind::Container);
            let mut next = Some(record.range().start);
            while let Some(start) = next {
                let range = KeyRange { start, end: part.range().end };
                let scanned = from.scan(found.id, &range, budget(), |row| {
                    total.items += u64::from(!is_container || is_blob(&row));
                    total.bytes += size(&row);
                    Flow::Continue
                });
                next = scanned.await.map_err(|error| part.cannot_read(error))?;
                meter.tell(part, index, total);
            }
        }
        meter.tell(part, index, total);
    }
    Ok(total.items)
}

/// Creates the space of a part that is planned.
async fn create(log: &Log<'_, impl Engine>, mut record: Record, found: &Space) -> Result<Record, MigrationError> {
    let name = record.part.space_name().expect("only spaces are planned");
    let id = log.to.create_space(name, &found.meta).await?;
    record.space = id.ok_or_else(|| MigrationError::Raced(record.part.clone()))?;
    record.state = State::Copying;
    log.put(&record).await?;
    Ok(record)
}

/// Gives a space the description that it has in the source.
async fn describe(to: &impl Engine, part: &Part, found: &Space) -> Result<(), MigrationError> {
    if let Some(name) = part.space_name()
        && let Some(space) = to.space(name).await?
    {
        // Nothing else writes to a copy, so the bytes that were found are the bytes that are there.
        to.change_space(name, &space.meta, &found.meta).await?;
    }
    Ok(())
}
