//! Leases of blobs: their effect on operations. The table of states has unit tests of its own.

use super::appends::put_append;
use super::site::{Site, blob, id, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, LeaseReject, Leased, NewBlob};
use larimar_model::blob::{BlobName, BreakPeriod, LeaseAction, LeaseDuration, LeaseId, LeaseState, Tags};
use larimar_model::{Guid, Metadata};
use std::time::Duration;

pub(super) const OWN: LeaseId = LeaseId(Guid([1; 16]));
const OTHER: LeaseId = LeaseId(Guid([2; 16]));

async fn act<E: Engine, B: ByteStore>(
    site: &Site<E, B>,
    name: &BlobName,
    action: LeaseAction,
) -> Result<Leased, larimar_engine::EngineError> {
    let done = site.blobs.lease_blob(site.at(name), (action, OWN), &AccessConditions::default(), site.now()).await;
    done.map(|(_, leased)| leased)
}

fn with(lease: LeaseId) -> AccessConditions {
    AccessConditions { lease: Some(lease), ..AccessConditions::default() }
}

async fn state<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> LeaseState {
    let properties = site.blobs.properties(site.at(name), None, &AccessConditions::default(), site.now()).await;
    properties.expect("it is there").lease.state
}

const ACQUIRE: LeaseAction = LeaseAction::Acquire { duration: LeaseDuration::Seconds(15), proposed: None };

/// Every write needs the id; reads do not, but a wrong one is refused.
pub async fn a_leased_blob_is_written_only_with_the_lease<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let at = site.at(&name);
    assert_eq!(act(site, &name, ACQUIRE).await, refused(BlobReject::BlobNotFound));
    site.put(&name, b"one").await;
    assert_eq!(act(site, &name, ACQUIRE).await.map(|leased| leased.id), Ok(Some(OWN)));
    for (access, reject) in
        [(AccessConditions::default(), LeaseReject::IdMissing), (with(OTHER), LeaseReject::IdMismatch)]
    {
        let now = site.now();
        assert_eq!(site.put_if(&name, b"x", &access).await, refused(reject));
        assert_eq!(site.blobs.set_metadata(at, &Metadata::new(), &access, now).await, refused(reject));
        assert_eq!(site.blobs.set_content(at, &Default::default(), &access, now).await, refused(reject));
        assert_eq!(site.blobs.set_tags(at, &Tags::new(), &access, now).await, refused(reject));
        assert_eq!(site.blobs.delete_blob(at, None, &access, now).await, refused(reject));
        assert_eq!(site.blobs.put_append_blob(at, &NewBlob::default(), &access, now).await, refused(reject));
        let list = site.blobs.put_block_list(at, &[], &NewBlob::default(), &access, now).await;
        assert_eq!(list, refused(reject));
        let extent = site.payload(&name, b"x").await;
        assert_eq!(site.blobs.put_block(at, &id(1), extent, access.lease, now).await, refused(reject));
    }
    assert_eq!(site.read(&name).await, Ok(b"one".to_vec()));
    let read = site.blobs.properties(at, None, &with(OTHER), site.now()).await;
    assert_eq!(read, refused(LeaseReject::IdMismatch));
    site.put_if(&name, b"two", &with(OWN)).await.expect("the owner writes");
    assert_eq!(state(site, &name).await, LeaseState::Leased);
    site.blobs.delete_blob(at, None, &with(OWN), site.now()).await.expect("the owner deletes");
    let log = blob("log");
    put_append(site, &log).await;
    let absent = site.blobs.set_metadata(site.at(&log), &Metadata::new(), &with(OWN), site.now()).await;
    assert_eq!(absent, refused(LeaseReject::NotPresent));
}

/// An expired lease does not block writes, and can be renewed only until the next write.
pub async fn a_lease_ends_with_its_time<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    site.put(&name, b"one").await;
    act(site, &name, ACQUIRE).await.expect("it is leased");
    site.advance(Duration::from_secs(16)).await;
    assert_eq!(state(site, &name).await, LeaseState::Expired);
    let lost = site.put_if(&name, b"x", &with(OWN)).await;
    assert_eq!(lost, refused(LeaseReject::Lost));
    act(site, &name, LeaseAction::Renew { id: OWN }).await.expect("the blob was not written");
    site.advance(Duration::from_secs(16)).await;
    site.put(&name, b"two").await;
    assert_eq!(state(site, &name).await, LeaseState::Available);
    let late = act(site, &name, LeaseAction::Renew { id: OWN }).await;
    assert_eq!(late, refused(LeaseReject::IdMismatchWithLeaseOperation));
    act(site, &name, ACQUIRE).await.expect("it is leased");
    let period = BreakPeriod::new(5).ok();
    let broken = act(site, &name, LeaseAction::Break { period }).await.expect("it breaks");
    assert_eq!((broken.seconds_left, state(site, &name).await), (Some(5), LeaseState::Breaking));
    assert_eq!(site.put_if(&name, b"x", &AccessConditions::default()).await, refused(LeaseReject::IdMissing));
    site.advance(Duration::from_secs(6)).await;
    assert_eq!(state(site, &name).await, LeaseState::Broken);
    site.put(&name, b"three").await;
}

/// No lease operation changes the etag, and a copy or snapshot of a leased blob is not leased.
pub async fn lease_operations_keep_the_etag<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let at = site.at(&name);
    let put = site.put(&name, b"one").await;
    for action in [
        ACQUIRE,
        LeaseAction::Renew { id: OWN },
        LeaseAction::Change { id: OWN, proposed: OTHER },
        LeaseAction::Break { period: None },
        LeaseAction::Release { id: OTHER },
        LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: Some(OTHER) },
    ] {
        let done = site.blobs.lease_blob(at, (action, OWN), &AccessConditions::default(), site.now()).await;
        assert_eq!(done.map(|(written, _)| written.etag()), Ok(put.etag()), "{action:?}");
    }
    let taken =
        site.blobs.snapshot_blob(at, None, &AccessConditions::default(), site.now()).await.expect("a snapshot").0;
    let properties = site.blobs.properties(at, Some(taken), &AccessConditions::default(), site.now()).await;
    assert_eq!(properties.map(|properties| properties.lease.state), Ok(LeaseState::Available));
}
