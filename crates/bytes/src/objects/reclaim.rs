//! Finds objects that nothing points to, by asking the owners named in their headers.

use super::writer::PART_BYTES;
use super::{Shared, temporary_files};
use crate::record::{HEADER_BYTES_FIRST, Header, Undecoded, parse_name, payload_bytes};
use crate::release::{Candidate, release_unowned};
use futures_util::{StreamExt, TryStreamExt, stream};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{Extent, Owners, Reclaimed};
use object_store::{Error, ObjectMeta, ObjectStoreExt};
use std::time::{Duration, SystemTime};

pub(super) async fn reclaim(shared: &Shared, owners: &impl Owners) -> Result<Reclaimed, Fault> {
    let mut reclaimed = Reclaimed::default();
    let now = shared.location.now().await?;
    temporary_files::reclaim(shared, now).await?;
    let mut listed = shared.location.store.list(Some(&shared.location.prefix)).chunks(PAGE_OBJECTS);
    while let Some(page) = listed.next().await {
        let page: Result<Vec<ObjectMeta>, Error> = page.into_iter().collect();
        let page = page.map_err(|error| Fault::Unavailable(format!("the list of blob objects: {error}")))?;
        // Objects of this process's writers are not asked about before they are finished.
        let writing = shared.writing.lock().clone();
        let is_ours = |meta: &ObjectMeta| {
            meta.location.filename().and_then(parse_name).is_some_and(|name| !writing.contains(&name))
        };
        let ours: Vec<_> = page.into_iter().filter(is_ours).collect();
        reclaimed.seen += ours.len() as u64;
        let old = ours.into_iter().filter(|meta| is_old(meta, now, shared.grace)).map(Ok);
        let candidates: Vec<Option<Candidate>> = stream::iter(old)
            .map_ok(|meta| candidate(shared, meta))
            .try_buffer_unordered(HEADERS_AT_ONCE)
            .try_collect()
            .await?;
        let garbage = release_unowned(owners, candidates.into_iter().flatten().collect()).await?;
        reclaimed.removed += garbage.len() as u64;
        reclaimed.removed_bytes += garbage.iter().map(|extent| extent.length).sum::<u64>();
        if !garbage.is_empty() {
            shared.remover.discard(garbage, shared.grace);
        }
    }
    Ok(reclaimed)
}

/// The payload that an object's header describes; `None` if the object is gone or its header is damaged.
async fn candidate(shared: &Shared, meta: ObjectMeta) -> Result<Option<Candidate>, Fault> {
    let Some(file) = meta.location.filename().and_then(parse_name) else { return Ok(None) };
    let mut want = HEADER_BYTES_FIRST;
    let header = loop {
        let range = 0..meta.size.min(want as u64);
        let found = match shared.location.store.get_range(&meta.location, range).await {
            Ok(found) => found,
            // Removed meanwhile.
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(shared.location.read_fault(&meta.location, &error)),
        };
        match Header::decode(&found, file, 0) {
            Ok(header) => break header,
            Err(Undecoded::Need(more)) if found.len() == want && more > want => want = more,
            Err(_) => {
                tracing::warn!(object = %meta.location, "the header of a blob object is damaged; it is kept");
                return Ok(None);
            }
        }
    };
    let length = meta.size.checked_sub(header.bytes()).and_then(payload_bytes);
    Ok(length.map(|length| {
        let extent = Extent { file, offset: header.bytes(), length };
        Candidate { space: header.space, blob: header.blob, extent }
    }))
}

/// Whether an object is past the grace period by the store's clock. S3 dates an object that was uploaded in parts by
/// the start of its upload, so these have a day more.
fn is_old(meta: &ObjectMeta, now: SystemTime, grace: Duration) -> bool {
    if grace.is_zero() {
        return true;
    }
    let in_parts = meta.size > PART_BYTES as u64;
    let grace = if in_parts { grace + UPLOAD_MAX } else { grace };
    // Both times may be cut to seconds.
    now.duration_since(meta.last_modified.into()).is_ok_and(|age| age >= grace + Duration::from_secs(1))
}

/// Objects that are asked about together.
const PAGE_OBJECTS: usize = 1000;
/// Headers that are read at the same time.
const HEADERS_AT_ONCE: usize = 16;
/// How long an upload in parts may take.
const UPLOAD_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_measured_by_the_stores_clock_alone() {
        // A store whose clock stands decades behind this machine's.
        let store_now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let object = |age: u64, size: u64| ObjectMeta {
            location: object_store::path::Path::from("x"),
            last_modified: (store_now - Duration::from_secs(age)).into(),
            size,
            e_tag: None,
            version: None,
        };
        let grace = Duration::from_secs(20);
        assert!(!is_old(&object(0, 10), store_now, grace));
        assert!(!is_old(&object(20, 10), store_now, grace), "seconds may be cut");
        assert!(is_old(&object(21, 10), store_now, grace));
        assert!(!is_old(&object(80_000, 6 << 20), store_now, grace), "it may have been uploaded for long");
        assert!(is_old(&object(90_000, 6 << 20), store_now, grace));
        assert!(is_old(&object(0, 6 << 20), store_now, Duration::ZERO));
    }
}
