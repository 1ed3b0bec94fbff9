//! Incremental copies at the same time as other copies and changes.

use super::incremental::{copied, copy, snapshot, snapshots};
use super::pages::{clear, put_page_blob, write};
use super::servers::interruption;
use super::site::{Site, blob, filled, refused};
use futures_util::future::join_all;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, Written};
use larimar_engine::{Engine, EngineError};
use larimar_model::blob::{BlobName, CopyInfo, DeleteSnapshots, SnapshotTime};

/// Copies at once by several servers: each that is acknowledged is whole, and they are in the order of the source's.
pub async fn incremental_copies_at_once_are_made_one_after_the_other<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (from, to) = (blob("from"), blob("to"));
    put_page_blob(site, &from, 8 * 512).await;
    let mut times = Vec::new();
    for number in 0..8 {
        write(site, &from, number * 512, &filled(number as u8 + 1, 512)).await.expect("pages");
        times.push(snapshot(site, &from).await);
    }
    let servers = [site, &site.second()];
    let copies = times.iter().enumerate().map(|(number, time)| copy(servers[number % 2], (&from, *time), &to));
    let done = join_all(copies).await;
    let mut made = Vec::new();
    for (result, time) in done.into_iter().zip(&times) {
        match result {
            Ok((_, info)) => made.push((info.incremental.expect("it is incremental").snapshot, *time)),
            Err(error) => assert_eq!(Err(error), refused::<()>(BlobReject::IncrementalCopyOfEarlierSnapshot)),
        }
    }
    assert!(made.iter().any(|(_, time)| Some(time) == times.last()), "the latest is copied");
    made.sort_unstable();
    assert!(made.is_sorted_by_key(|(_, time)| *time), "{made:?}");
    assert_eq!(snapshots(site, &to).await, made.iter().map(|(made, _)| *made).collect::<Vec<_>>());
    for (made, time) in made {
        assert_eq!(site.read_of(&to, Some(made), None).await, site.read_of(&from, Some(time), None).await);
    }
}

/// What another server does between two calls of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Other {
    /// It copies an earlier snapshot that was not copied when this copy started.
    Copies(SnapshotTime),
    /// It deletes the destination.
    DeletesDestination,
    /// It deletes the destination's snapshots and reclaims.
    DeletesSnapshots,
    /// It deletes the source's snapshot that was copied last.
    DeletesSource(SnapshotTime),
}

/// Whatever another server does between two calls of the engine, a copy is whole, and so are those before it.
pub async fn an_incremental_copy_beside_other_changes_is_whole<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    // More than the calls of a copy.
    for moment in 0..16 {
        for number in 0..4 {
            let (from, to) = (blob(&format!("from-{moment}-{number}")), blob(&format!("to-{moment}-{number}")));
            put_page_blob(site, &from, 8 * 512).await;
            write(site, &from, 0, &filled(1, 4 * 512)).await.expect("pages");
            let first = snapshot(site, &from).await;
            write(site, &from, 512, &filled(2, 512)).await.expect("pages");
            let second = snapshot(site, &from).await;
            write(site, &from, 1024, &filled(3, 512)).await.expect("pages");
            clear(site, &from, 0, 512).await.expect("cleared");
            let third = snapshot(site, &from).await;
            copied(site, (&from, first), &to).await;
            let others = [Other::Copies(second), Other::DeletesDestination, Other::DeletesSnapshots];
            let other = others.get(number).copied().unwrap_or(Other::DeletesSource(first));
            let done = Box::pin(copy_beside(site, (&from, third), &to, (moment, other))).await;
            match (&done, other) {
                (Ok(_), _) => {}
                (Err(_), Other::DeletesSource(_)) => {
                    assert_eq!(done, refused(BlobReject::PreviousSnapshotNotFound), "moment {moment}");
                }
                (Err(error), _) => panic!("moment {moment}, {other:?}: {error}"),
            }
            for made in snapshots(site, &to).await {
                let properties =
                    site.blobs.properties(site.at(&to), Some(made), &AccessConditions::default(), site.now()).await;
                let info = properties.expect("it is there").copy.and_then(|copy| copy.incremental);
                let of = info.expect("it is incremental").source_snapshot;
                if other != Other::DeletesSource(of) {
                    let expected = site.read_of(&from, Some(of), None).await;
                    assert_eq!(site.read_of(&to, Some(made), None).await, expected, "moment {moment}, {other:?}");
                }
            }
        }
    }
}

/// Copies a snapshot while another server does something before one of the engine's calls.
async fn copy_beside<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    from: (&BlobName, SnapshotTime),
    to: &BlobName,
    (moment, other): (u64, Other),
) -> Result<(Written, CopyInfo), EngineError> {
    let source = from.0.clone();
    let others = vec![interruption(site, to, moment, move |site, to| async move {
        let (none, now) = (AccessConditions::default(), site.now());
        match other {
            Other::Copies(time) => copy(&site, (&source, time), &to).await.map(drop),
            Other::DeletesDestination => {
                site.blobs.delete_blob(site.at(&to), Some(DeleteSnapshots::Include), &none, now).await
            }
            Other::DeletesSnapshots => {
                site.blobs.delete_blob(site.at(&to), Some(DeleteSnapshots::Only), &none, now).await?;
                site.blobs.reclaim_container(site.container, site.now()).await.map(drop)
            }
            Other::DeletesSource(time) => site.blobs.delete_snapshot(site.at(&source), time, &none, now).await,
        }
    })];
    Box::pin(site.interrupted(others, copy(site, from, to))).await
}
