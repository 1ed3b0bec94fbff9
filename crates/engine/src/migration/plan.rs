//! What to do with each part before anything is copied: refuse, go on, or begin (again).

use super::part::{Parts, parts};
use super::record::{Log, Record, State};
use super::{MigrationError, Part, blobs, messages, rows};
use crate::contract::{Engine, KeyRange, Space, SpaceKind};

/// Checks the destination, and only then prepares it: every part of the source has a record afterwards.
pub(super) async fn plan<E: Engine>(source: &Parts, log: &mut Log<'_, E>) -> Result<(), MigrationError> {
    let destination = parts(log.to).await?;
    let mut stale: Vec<Part> = Vec::new();
    let mut adopted: Vec<Record> = Vec::new();
    // A server that was started on the destination has counted its own requests, which are not needed.
    let is_unused = destination.keys().all(Part::is_analytics);
    let mut replaced: Vec<Part> = Vec::new();
    for (part, ours) in source {
        let theirs = destination.get(part);
        match log.records.get(part) {
            None if theirs.is_some() && is_unused => replaced.push(part.clone()),
            None if theirs.is_some() => return Err(MigrationError::Exists(part.clone())),
            None => {}
            Some(record) => match (record.state, theirs) {
                (State::Planned, Some(theirs)) => adopted.push(adopt(log.to, record, ours, theirs).await?),
                (_, Some(theirs)) if theirs.id != record.space => return Err(MigrationError::Exists(part.clone())),
                (State::Differing, _) => stale.push(part.clone()),
                // It was dropped meanwhile.
                (State::Copying | State::Copied, None) if matches!(part, Part::Space { .. }) => {
                    stale.push(part.clone())
                }
                _ => {}
            },
        }
    }
    for part in replaced {
        discard(log, &part).await?;
    }
    // What came from this migration and is no longer in the source.
    stale.extend(log.records.keys().filter(|part| !source.contains_key(part)).cloned());
    for part in stale {
        let theirs = destination.get(&part).filter(|theirs| log.record(&part).space == theirs.id);
        if theirs.is_some() {
            discard(log, &part).await?;
        }
        log.remove(&part).await?;
    }
    let begun: Vec<Record> =
        source.keys().filter(|part| !log.records.contains_key(part)).cloned().map(Record::new).collect();
    log.put_all(adopted.iter().chain(&begun)).await?;
    for record in adopted.into_iter().chain(begun) {
        log.remember(record);
    }
    Ok(())
}

/// A space that was planned and is there was created just before a run ended, if it is still empty.
async fn adopt(to: &impl Engine, record: &Record, ours: &Space, theirs: &Space) -> Result<Record, MigrationError> {
    let is_empty = match record.part.kind() {
        Some(SpaceKind::Queue) => messages::is_empty(to, &record.part, theirs.id).await?,
        // A server may have begun its index of tags.
        Some(SpaceKind::Container) => !blobs::has_blobs(to, &record.part, theirs.id).await?,
        Some(SpaceKind::Table) | None => {
            rows::is_empty_from(to, &record.part, theirs.id, KeyRange::all().start).await?
        }
    };
    if !is_empty || ours.meta != theirs.meta {
        return Err(MigrationError::Exists(record.part.clone()));
    }
    Ok(Record { state: State::Copying, space: theirs.id, ..record.clone() })
}

/// Removes a part from the destination.
async fn discard<E: Engine>(log: &Log<'_, E>, part: &Part) -> Result<(), MigrationError> {
    match (part, part.space_name()) {
        (Part::Settings { account }, _) => log.remove_settings(account).await,
        (Part::Space { .. }, name) => {
            log.to.drop_space(name.expect("a space has a name")).await?;
            Ok(())
        }
    }
}
