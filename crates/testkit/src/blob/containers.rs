//! Containers: made, found, listed, changed, leased, deleted.

use super::site::{ACCOUNT, Site, blob, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, LeaseReject, NewContainer};
use larimar_model::blob::{
    Conditions, ContainerName, ETagCondition, LeaseAction, LeaseDuration, LeaseId, LeaseState, PublicAccess,
};
use larimar_model::{Guid, Metadata};

fn name(text: &str) -> ContainerName {
    text.parse().expect("a name")
}

/// A second creation is refused and leaves the first as it was.
pub async fn a_container_is_created_once_and_found<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let mut metadata = Metadata::new();
    metadata.insert("a", "b").expect("metadata");
    let new = NewContainer { metadata: metadata.clone(), public_access: PublicAccess::Blob };
    let created = site.blobs.create_container(ACCOUNT, &name("first"), &new, site.now()).await.expect("a container");
    let again = site.blobs.create_container(ACCOUNT, &name("first"), &NewContainer::default(), site.now()).await;
    assert_eq!(again, refused(BlobReject::ContainerExists));
    let found = site.blobs.find_container(ACCOUNT, &name("first"), site.now()).await.expect("it is there");
    assert_eq!(found, created);
    assert_eq!((found.metadata, found.public_access), (metadata, PublicAccess::Blob));
    let other = site.blobs.find_container("other", &name("first"), site.now()).await;
    assert_eq!(other, refused(BlobReject::ContainerNotFound));
}

/// Names come in order, from a name on and by prefix; the container of logs only among the system's.
pub async fn containers_are_listed_by_prefix_page_by_page<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for text in ["b-2", "a-1", "b-1", "b-3", "c-1", "$logs", "$root"] {
        let created = site.blobs.create_container("lists", &name(text), &NewContainer::default(), site.now()).await;
        created.expect("a container");
    }
    let list = async |prefix: &str, from: &str, max: usize, with_system: bool| {
        let page = site.blobs.list_containers("lists", (prefix, from), max, with_system, site.now()).await;
        let page = page.expect("a page");
        (page.containers.into_iter().map(|found| found.name).collect::<Vec<_>>(), page.next)
    };
    let all = ["$root", "a-1", "b-1", "b-2", "b-3", "c-1"].map(str::to_owned).to_vec();
    assert_eq!(list("", "", 10, false).await, (all.clone(), None));
    assert_eq!(list("", "", 10, true).await, ([vec!["$logs".to_owned()], all].concat(), None));
    assert_eq!(list("b-", "", 2, false).await, (vec!["b-1".to_owned(), "b-2".to_owned()], Some("b-3".to_owned())));
    assert_eq!(list("b-", "b-3", 2, false).await, (vec!["b-3".to_owned()], None));
    assert_eq!(list("d", "", 2, false).await, (vec![], None));
}

/// A deleted container refuses everything; one created again is empty.
pub async fn a_deleted_container_is_gone_with_its_blobs<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    site.put(&blob("b"), b"bytes").await;
    let container = name("container");
    site.blobs
        .delete_container(ACCOUNT, &container, &AccessConditions::default(), site.now())
        .await
        .expect("it is deleted");
    let again = site.blobs.delete_container(ACCOUNT, &container, &AccessConditions::default(), site.now()).await;
    assert_eq!(again, refused(BlobReject::ContainerNotFound));
    assert_eq!(site.read(&blob("b")).await, refused(BlobReject::ContainerNotFound));
    let put = site.put_if(&blob("b"), b"more", &AccessConditions::default()).await;
    assert_eq!(put, refused(BlobReject::ContainerNotFound));
    let created = site.blobs.create_container(ACCOUNT, &container, &NewContainer::default(), site.now()).await;
    let created = created.expect("it is created again");
    let page = site.blobs.list_blobs(created.id, &super::lists::everything(), site.now()).await.expect("a page");
    assert_eq!(page.items, []);
}

/// Metadata and access are replaced, each with a new etag, on conditions.
pub async fn metadata_and_access_change_the_etag<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let container = name("container");
    let before = site.blobs.find_container(ACCOUNT, &container, site.now()).await.expect("it is there");
    let mut metadata = Metadata::new();
    metadata.insert("k", "v").expect("metadata");
    let none = AccessConditions::default();
    let set = site.blobs.set_container_metadata(ACCOUNT, &container, &metadata, &none, site.now()).await;
    let after = site.blobs.find_container(ACCOUNT, &container, site.now()).await.expect("it is there");
    assert_eq!(set.map(|written| written.etag()), Ok(after.etag()));
    assert!(after.etag() > before.etag() && after.metadata == metadata);
    let acl = (PublicAccess::Container, "<SignedIdentifiers/>");
    let set = site.blobs.set_container_acl(ACCOUNT, &container, acl, &none, site.now()).await.expect("it is set");
    let last = site.blobs.find_container(ACCOUNT, &container, site.now()).await.expect("it is there");
    assert_eq!((last.public_access, last.acl.as_str(), last.etag()), (acl.0, acl.1, set.etag()));
    assert_eq!(last.metadata, metadata);
    let unmodified = Conditions { if_unmodified_since: Some(before.last_modified), ..Conditions::NONE };
    site.advance(std::time::Duration::from_secs(10)).await;
    let access = AccessConditions { conditions: unmodified, ..AccessConditions::default() };
    site.blobs.set_container_metadata(ACCOUNT, &container, &metadata, &none, site.now()).await.expect("it is set");
    let late = site.blobs.set_container_metadata(ACCOUNT, &container, &metadata, &access, site.now()).await;
    assert_eq!(late, refused(BlobReject::ConditionNotMet));
}

/// A lease guards the deletion, and a request that names one must name the right one.
pub async fn a_leased_container_is_deleted_only_with_the_lease<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let container = name("container");
    let (own, other) = (LeaseId(Guid([1; 16])), LeaseId(Guid([2; 16])));
    let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: None };
    let before = site.blobs.find_container(ACCOUNT, &container, site.now()).await.expect("it is there");
    let none = Conditions::NONE;
    let (written, leased) =
        site.blobs.lease_container(ACCOUNT, &container, (acquire, own), &none, site.now()).await.expect("it is leased");
    assert_eq!((leased.id, written.etag()), (Some(own), before.etag()));
    let found = site.blobs.read_container(ACCOUNT, &container, Some(own), site.now()).await.expect("it is there");
    assert_eq!(found.lease.state, LeaseState::Leased);
    let read = site.blobs.read_container(ACCOUNT, &container, Some(other), site.now()).await;
    assert_eq!(read, refused(BlobReject::ContainerLease(LeaseReject::IdMismatch)));
    let delete = async |lease| {
        let access = AccessConditions { lease, ..AccessConditions::default() };
        site.blobs.delete_container(ACCOUNT, &container, &access, site.now()).await
    };
    assert_eq!(delete(None).await, refused(BlobReject::ContainerLease(LeaseReject::IdMissing)));
    assert_eq!(delete(Some(other)).await, refused(BlobReject::ContainerLease(LeaseReject::IdMismatch)));
    site.put(&blob("b"), b"the lease does not guard blobs").await;
    assert_eq!(delete(Some(own)).await, Ok(()));
    let foreign = Conditions { if_match: Some(ETagCondition::Foreign), ..Conditions::NONE };
    let gone = site.blobs.lease_container(ACCOUNT, &container, (acquire, own), &foreign, site.now()).await;
    assert_eq!(gone, refused(BlobReject::ContainerNotFound));
}
