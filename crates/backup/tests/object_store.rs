//! Backups in a bucket, over HTTP: taken, verified, removed and restored.

#[path = "../../bytes/tests/stores/s3.rs"]
mod s3;

use crate::round_trip::{Store, fill};
use ::object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use larimar_backup::{Generation, Keep, Key, Place, Removing, Writers, remove, verify};
use s3::{BUCKET, S3};
use s3s::access::S3Access;
use std::sync::Arc;

/// Grants everything that is signed.
struct Signed;

impl S3Access for Signed {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_in_a_bucket_are_verified_removed_and_restored() {
    let folder = larimar_testkit::memory_directory();
    Key::create(&folder.path().join("key")).expect("a key file");
    let key = Key::read(&folder.path().join("key")).expect("a key");
    let server = S3::start(&folder.path().join("s3"), Signed).await;
    let mut builder = AmazonS3Builder::new().with_bucket_name(BUCKET);
    for (name, value) in server.variables() {
        let name: AmazonS3ConfigKey = name.to_ascii_lowercase().parse().expect("a setting");
        builder = builder.with_config(name, value);
    }
    let bucket = Arc::new(builder.build().expect("a store"));
    let place = Place::objects(bucket, "some/where".into(), format!("s3://{BUCKET}/some/where")).encrypted(&key);
    let store = Store::new();
    let (bulk, _) = fill(&store).await;
    let first = store.back_up(&place).await;
    let container = store.create_container("photographs").await;
    store.put_blob(container, "photo", vec![7; 300_000]).await;
    store.back_up(&place).await;
    store.put_blob(container, "photo", vec![8; 10]).await;
    store.put_row(bulk, "00300", b"changed").await;
    let last = store.back_up(&place).await;
    let alone = Arc::default();
    let own = Writers::Own { lock: &alone, is_archiving: false };
    let removed = remove(&place, &Removing::Surplus(Keep { time: None, count: Some(1) }), own, false).await;
    let removed = removed.expect("a removal");
    assert_eq!((removed.generations.len(), removed.generations.first()), (2, Some(&first.name())));
    assert!(removed.chunk_bytes > 300_000, "{removed:?}");
    assert_eq!(Generation::list(&place).await.expect("backups"), [last.name()]);
    let (_, problems) = verify(&place, &last.name(), &|_| ()).await.expect("a generation");
    assert!(problems.is_empty(), "{problems:?}");
    let (copy, _) = Store::restored(&place, None).await.expect("a restore");
    assert_eq!(copy.state().await, store.state().await);
}
