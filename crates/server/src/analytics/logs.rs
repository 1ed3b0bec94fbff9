//! Blobs of `$logs`: a flush of entries becomes one blob for each hour, which is never written again.

use super::log_buffer::BufferedEntry;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Bytes};
use larimar_engine::blob::{
    AccessConditions, BlobRef, BlobReject, Blobs, ListFrom, ListItem, ListQuery, NewBlob, create_logs,
};
use larimar_engine::{Engine, EngineError, Fault, Reject, SpaceId};
use larimar_model::blob::{BlobName, Conditions, ContainerName, ContentHeaders, DeleteSnapshots, ETagCondition};
use larimar_model::{Metadata, Timestamp};
use larimar_wire::analytics::{LogOf, log_counter, log_hour_prefix, log_name, log_prefix, log_time};
use larimar_wire::operation::Kind;
use larimar_wire::sas::Service;

/// Writes entries of one hour as a new blob. `next` is the number to try, if it is known, and then the one after it.
pub(super) async fn write<E: Engine, B: ByteStore>(
    blobs: &Blobs<E, B>,
    of: &LogOf<'_>,
    hour: Timestamp,
    entries: &[BufferedEntry],
    next: &mut Option<u32>,
    now: Timestamp,
) -> Result<(), EngineError> {
    let container = container(blobs, of.account, now).await?;
    let mut text = String::with_capacity(entries.len() * LINE_BYTES);
    entries.iter().for_each(|logged| logged.entry.write(of, &mut text));
    let text = Bytes::from(text);
    let new = NewBlob {
        content: ContentHeaders { content_type: Some("application/octet-stream".to_owned()), ..Default::default() },
        metadata: metadata(of, entries),
        ..Default::default()
    };
    let absent = Conditions { if_none_match: Some(ETagCondition::Any), ..Default::default() };
    let access = AccessConditions { conditions: absent, ..AccessConditions::default() };
    let first = match *next {
        Some(next) => next,
        None => counter_after(blobs, container, &log_hour_prefix(of.service, hour), now).await?,
    };
    for counter in first..first.saturating_add(ATTEMPTS_MAX) {
        let name: BlobName = log_name(of.service, hour, counter).parse().expect("a name of ours");
        let at = BlobRef { container, name: &name };
        let _hold = blobs.hold(at);
        let mut writer = blobs.begin(at, Some(text.len() as u64)).await?;
        writer.write(text.clone()).await?;
        let extent = writer.finish().await?;
        match blobs.put_block_blob(at, Some(extent), &new, &access, now).await {
            Ok(_) => {
                *next = Some(counter + 1);
                return Ok(());
            }
            // Another server took the number.
            Err(EngineError::Reject(Reject::Blob(BlobReject::BlobExists | BlobReject::ConditionNotMet))) => {}
            Err(other) => return Err(other),
        }
    }
    *next = None;
    Err(Fault::Unavailable("all names for a log are taken".to_owned()).into())
}

/// The metadata of a log blob: its times and kinds of requests.
fn metadata(of: &LogOf<'_>, entries: &[BufferedEntry]) -> Metadata {
    let starts = || entries.iter().map(|logged| logged.entry.start);
    let has = |kind: &&Kind| entries.iter().any(|logged| logged.entry.kind == **kind);
    let types: Vec<&str> = Kind::ALL.iter().filter(has).map(|kind| kind.as_str()).collect();
    let mut metadata = Metadata::default();
    for (name, value) in [
        ("StartTime", starts().min().map(log_time).unwrap_or_default()),
        ("EndTime", starts().max().map(log_time).unwrap_or_default()),
        ("LogType", types.join(",")),
        ("LogVersion", of.version.as_str().to_owned()),
    ] {
        metadata.insert(name, &value).expect("names are identifiers and values are short");
    }
    metadata
}

/// The number after the greatest that a log of an hour has.
async fn counter_after<E: Engine, B: ByteStore>(
    blobs: &Blobs<E, B>,
    container: SpaceId,
    prefix: &str,
    now: Timestamp,
) -> Result<u32, EngineError> {
    let mut counter = 0;
    let mut from = None;
    // Names of an hour are numbered, so there is an end to them.
    loop {
        let (names, next) = page(blobs, container, prefix, from, now).await?;
        counter = names.iter().filter_map(|name| log_counter(name)).map(|last| last + 1).fold(counter, u32::max);
        match next {
            Some(next) => from = Some(next),
            None => return Ok(counter),
        }
    }
}

/// Removes logs of a service before an hour, a page of them. `from` is where to begin, and then where the next page does:
/// leased logs, which stay, do not block the ones after them. Returns whether there may be more.
pub(super) async fn clear<E: Engine, B: ByteStore>(
    blobs: &Blobs<E, B>,
    (account, service): (&str, Service),
    before: Timestamp,
    from: &mut Option<ListFrom>,
    now: Timestamp,
) -> Result<bool, EngineError> {
    let container = match blobs.find_container(account, &ContainerName::logs(), now).await {
        Err(EngineError::Reject(_)) => return Ok(false),
        found => found?.id,
    };
    let end = log_hour_prefix(service, before);
    let (names, next) = page(blobs, container, &log_prefix(service), from.take(), now).await?;
    let old: Vec<&String> = names.iter().take_while(|name| **name < end).collect();
    *from = next.filter(|_| old.len() == names.len());
    let mut failed = Vec::new();
    for name in old {
        let Ok(name) = name.parse::<BlobName>() else { continue };
        let at = BlobRef { container, name: &name };
        match blobs.delete_blob(at, Some(DeleteSnapshots::Include), &AccessConditions::default(), now).await {
            Ok(()) => {}
            // Deleted already, or leased: the next round tries again.
            Err(EngineError::Reject(reject)) => tracing::debug!(%reject, blob = name.as_str(), "an old log stays"),
            // Perhaps this one is damaged and the others are not; perhaps the store is away.
            Err(other) => failed.push(other),
        }
        if failed.len() == FAILURES_MAX {
            break;
        }
    }
    match failed.pop() {
        Some(error) => Err(error),
        None => Ok(from.is_some()),
    }
}

async fn page<E: Engine, B: ByteStore>(
    blobs: &Blobs<E, B>,
    container: SpaceId,
    prefix: &str,
    from: Option<ListFrom>,
    now: Timestamp,
) -> Result<(Vec<String>, Option<ListFrom>), EngineError> {
    let query = ListQuery { prefix: prefix.to_owned(), from, items_max: PAGE_BLOBS, ..Default::default() };
    let page = blobs.list_blobs(container, &query, now).await?;
    let names = page.items.into_iter().filter_map(|item| match item {
        ListItem::Blob(blob) => Some(blob.name),
        ListItem::Prefix(_) => None,
    });
    Ok((names.collect(), page.next))
}

/// The container is made when logging is switched on; one that is missing all the same is made now.
async fn container<E: Engine, B: ByteStore>(
    blobs: &Blobs<E, B>,
    account: &str,
    now: Timestamp,
) -> Result<SpaceId, EngineError> {
    create_logs(blobs.engine(), account, now).await?;
    Ok(blobs.find_container(account, &ContainerName::logs(), now).await?.id)
}

/// Numbers to try before giving up until the next flush.
const ATTEMPTS_MAX: u32 = 100;
/// Logs that are listed, or removed, in one go.
const PAGE_BLOBS: usize = 500;
/// Logs of a page that cannot be removed before the rest of the page waits for the next round.
const FAILURES_MAX: usize = 8;
/// About how long a line is.
const LINE_BYTES: usize = 512;
