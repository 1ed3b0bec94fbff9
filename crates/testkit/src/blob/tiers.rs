//! The archive tier: archived blobs cannot be read or changed until their rehydration ends by the engine's clock.

use super::site::{Site, blob, refused};
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, NewBlob, TierSet};
use larimar_model::Metadata;
use larimar_model::blob::{AccessTier, RehydratePriority};
use std::time::Duration;

/// An archived blob and its snapshots keep their properties, and can be read again after their rehydration; a
/// rehydration under way cannot be changed.
pub async fn archived_blobs_come_back<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let (at, none) = (site.at(&name), AccessConditions::default());
    let slow = site.rehydrating(Duration::from_secs(3600));
    site.put(&name, b"content").await;
    let (snapshot, _) = slow.blobs.snapshot_blob(at, None, &none, site.now()).await.expect("a snapshot");
    for version in [None, Some(snapshot)] {
        let set = async |of: &Site<E, B>, tier| of.blobs.set_tier(at, version, (tier, None), &none, site.now()).await;
        let open = async || site.blobs.open(at, version, None, &none, site.now()).await.map(drop);
        assert_eq!(set(&slow, AccessTier::ARCHIVE).await, Ok(TierSet::Done));
        assert_eq!(open().await, refused(BlobReject::Archived));
        assert_eq!(set(&slow, AccessTier::HOT).await, Ok(TierSet::Pending));
        site.advance(Duration::from_secs(60)).await;
        // Another server gives the same answer, even if its own rehydrations take longer.
        assert_eq!(open().await, refused(BlobReject::Archived));
        assert_eq!(set(site, AccessTier::ARCHIVE).await, refused(BlobReject::BeingRehydrated));
        let properties = site.blobs.properties(at, version, &none, site.now()).await.expect("properties");
        assert_eq!(properties.tier.map(|(tier, _)| tier), Some(AccessTier::ARCHIVE));
        let rehydration = properties.rehydration.expect("it is under way");
        assert_eq!((rehydration.to, rehydration.priority), (AccessTier::HOT, RehydratePriority::Standard));
    }
    let (metadata, new) = (Metadata::new(), NewBlob::default());
    assert_eq!(site.blobs.set_metadata(at, &metadata, &none, site.now()).await, refused(BlobReject::Archived));
    assert_eq!(site.blobs.put_append_blob(at, &new, &none, site.now()).await, refused(BlobReject::Archived));
    site.advance(Duration::from_secs(3600)).await;
    for version in [None, Some(snapshot)] {
        let properties = site.blobs.properties(at, version, &none, site.now()).await.expect("properties");
        assert_eq!((properties.tier.map(|(tier, _)| tier), properties.rehydration), (Some(AccessTier::HOT), None));
        assert_eq!(site.read_of(&name, version, None).await.as_deref(), Ok(&b"content"[..]));
    }
}
