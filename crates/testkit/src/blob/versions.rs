//! The versions of a blob, as a model and as the engine has them.

use super::site::Site;
use crate::Dice;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, ListItem, ListQuery};
use larimar_engine::{Engine, EngineError};
use larimar_model::blob::{BlobName, DeleteSnapshots, ListInclude, SnapshotTime};
use std::collections::BTreeMap;

/// A blob with its snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Versions<T> {
    pub(super) current: Option<T>,
    pub(super) snapshots: BTreeMap<SnapshotTime, T>,
}

/// Operations on a blob of any type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Common {
    Snapshot,
    DeleteSnapshot(SnapshotTime),
    DeleteSnapshots,
    Delete,
}

impl<T: Clone + PartialEq> Versions<T> {
    pub(super) fn after(&self, step: Common) -> Self {
        let mut next = self.clone();
        match step {
            Common::Snapshot => {}
            Common::DeleteSnapshot(time) => drop(next.snapshots.remove(&time)),
            Common::DeleteSnapshots => next.snapshots.clear(),
            Common::Delete => next = Self { current: None, snapshots: BTreeMap::new() },
        }
        next
    }

    pub(super) fn with(&self, current: T) -> Self {
        Self { current: Some(current), ..self.clone() }
    }

    /// Whether this is what was there before, with one more snapshot of the blob.
    fn has_one_more_than(&self, before: &Self) -> bool {
        let mut fewer = self.clone();
        let new: Vec<_> = fewer.snapshots.keys().filter(|time| !before.snapshots.contains_key(time)).copied().collect();
        let [time] = new[..] else { return false };
        fewer.snapshots.remove(&time) == before.current && fewer == *before
    }

    pub(super) fn some_snapshot(&self, dice: &mut Dice) -> Option<SnapshotTime> {
        let count = self.snapshots.len() as u64;
        (count > 0).then(|| *self.snapshots.keys().nth(dice.below(count) as usize).expect("below the count"))
    }
}

pub(super) async fn act<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    step: Common,
) -> Result<(), EngineError> {
    let (at, none) = (site.at(name), AccessConditions::default());
    match step {
        Common::Snapshot => site.blobs.snapshot_blob(at, None, &none, site.now()).await.map(drop),
        Common::DeleteSnapshot(time) => site.blobs.delete_snapshot(at, time, &none, site.now()).await,
        Common::DeleteSnapshots => site.blobs.delete_blob(at, Some(DeleteSnapshots::Only), &none, site.now()).await,
        Common::Delete => site.blobs.delete_blob(at, Some(DeleteSnapshots::Include), &none, site.now()).await,
    }
}

/// The contents of a blob and its snapshots.
pub(super) async fn read_versions<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> Versions<Vec<u8>> {
    let (times, is_there) = listed(site, name).await;
    let mut found = Versions::default();
    for time in times {
        let content = site.read_of(name, Some(time), None).await.expect("a snapshot is read whole");
        found.snapshots.insert(time, content);
    }
    if is_there {
        found.current = Some(site.read(name).await.expect("the blob is read whole"));
    }
    found
}

/// The times of the snapshots that are listed, and whether the blob is.
pub(super) async fn listed<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> (Vec<SnapshotTime>, bool) {
    let include = ListInclude { snapshots: true, ..ListInclude::default() };
    let page = site.list(&ListQuery { include, ..super::lists::everything() }).await;
    let blobs = page.items.iter().filter_map(|item| match item {
        ListItem::Blob(blob) if blob.name == name.as_str() => Some(blob.snapshot),
        ListItem::Blob(_) | ListItem::Prefix(_) => None,
    });
    let blobs: Vec<Option<SnapshotTime>> = blobs.collect();
    (blobs.iter().filter_map(|snapshot| *snapshot).collect(), blobs.contains(&None))
}

/// Compares the stored versions with the expected ones. After an error both the old and the new state are allowed; the
/// model continues with the stored one.
pub(super) fn settle<T: Clone + PartialEq + std::fmt::Debug>(
    model: &mut Versions<T>,
    (next, is_snapshot): (Versions<T>, bool),
    done: &Result<(), EngineError>,
    found: Versions<T>,
    what: &str,
) {
    // The time of a snapshot is known only from what is there.
    let is_next = if is_snapshot { found.has_one_more_than(&next) } else { found == next };
    let is_right = if done.is_ok() { is_next } else { is_next || found == *model };
    assert!(is_right, "{what}: {done:?}\nfound {found:?}\nbefore {model:?}\nexpected {next:?}");
    if let Err(error) = done {
        assert!(matches!(error, EngineError::Fault(_)), "{what}: {error:?}");
    }
    *model = found;
}
