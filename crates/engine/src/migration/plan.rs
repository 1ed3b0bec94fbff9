//! What to do with each part before anything is copied: refuse, go on, or begin (again).

use super::digest::budget;
use super::record::{Log, Record, State};
use super::{MigrationError, Part, Parts, parts};
use crate::contract::{Engine, Flow, KeyRange, Space, SpaceKind, SpaceName};

/// Checks the destination, and only then prepares it: every part of the source has a record afterwards.
pub(super) async fn plan<E: Engine>(source: &Parts, log: &mut Log<'_, E>) -> Result<(), MigrationError> {
    let destination = parts(log.to).await?;
    let mut stale: Vec<Part> = Vec::new();
    let mut adopted: Vec<Record> = Vec::new();
    // A server that was started on the destination has counted its own requests, which are not needed.
    let is_unused = destination.keys().all(Part::is_metrics);
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
                // Someone dropped the table meanwhile.
                (State::Copying | State::Copied, None) if matches!(part, Part::Table { .. }) => {
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

/// A table that was planned and is there was created just before a run ended, if it is still empty.
async fn adopt(to: &impl Engine, record: &Record, ours: &Space, theirs: &Space) -> Result<Record, MigrationError> {
    let mut is_empty = true;
    let range = KeyRange::all();
    let scanned = to.scan(theirs.id, &range, budget(), |_| {
        is_empty = false;
        Flow::StopHere
    });
    scanned.await.map_err(|error| record.part.cannot_read(error))?;
    if !is_empty || ours.meta != theirs.meta {
        return Err(MigrationError::Exists(record.part.clone()));
    }
    Ok(Record { state: State::Copying, space: theirs.id, ..record.clone() })
}

/// Removes a part from the destination.
async fn discard<E: Engine>(log: &Log<'_, E>, part: &Part) -> Result<(), MigrationError> {
    match part {
        Part::Settings { account } => log.remove_settings(account).await,
        Part::Table { account, name } => {
            log.to.drop_space(SpaceName { account, kind: SpaceKind::Table, name }).await?;
            Ok(())
        }
    }
}
