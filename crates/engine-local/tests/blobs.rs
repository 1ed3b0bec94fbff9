//! Blobs keep every promise on the embedded engine, and what was acknowledged is there after it is opened again.

use larimar_engine::blob::bytes::{ByteWriter, Bytes, MemoryBytes};
use larimar_engine::blob::{AccessConditions, BlobRef, Blobs, NewBlob, NewContainer};
use larimar_engine::{Clock, SystemClock};
use larimar_engine_local::{Durability, LocalEngine, Settings};
use larimar_model::blob::{BlobName, BlockId, BlockListEntry, BlockListKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(folder: &Path, durability: Durability) -> Arc<LocalEngine> {
    let settings = Settings { folder: folder.into(), durability, memory_bytes: Some(64 << 20), reserve_bytes: 0 };
    Arc::new(LocalEngine::open(&settings).expect("the store opens"))
}

fn fresh() -> (Arc<LocalEngine>, Arc<MemoryBytes>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    (open(folder.path(), Durability::Memory), Arc::new(MemoryBytes::new(Duration::ZERO)), folder)
}

larimar_testkit::blob_conformance!(fresh());

/// An engine that is opened again has all blobs whole, blocks that are not committed, and nothing half.
#[tokio::test]
async fn what_was_acknowledged_is_there_after_opening_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = Arc::new(MemoryBytes::new(Duration::ZERO));
    let (container, none) = ("container".parse().expect("a name"), AccessConditions::default());
    let (long, begun): (BlobName, BlobName) = ("long".parse().expect("a name"), "begun".parse().expect("a name"));
    let id = |n: u32| BlockId::parse(&format!("{n:04}")).expect("an id");
    {
        let blobs = Blobs::new(open(folder.path(), Durability::Sync), Arc::clone(&bytes));
        let now = || SystemClock.now();
        let new = NewContainer::default();
        let space = blobs.create_container("account", &container, &new, now()).await.expect("a container").id;
        for name in [&long, &begun] {
            let at = BlobRef { container: space, name };
            for n in 0..300 {
                let mut writer = blobs.begin(at, None).await.expect("a payload");
                writer.write(Bytes::from(format!("block {n};"))).await.expect("bytes");
                let extent = writer.finish().await.expect("a payload");
                blobs.put_block(at, &id(n), extent, None, now()).await.expect("a block");
            }
        }
        let list: Vec<_> = (0..300).map(|n| BlockListEntry::Latest(id(n))).collect();
        let at = BlobRef { container: space, name: &long };
        blobs.put_block_list(at, &list, &NewBlob::default(), &none, now()).await.expect("it is committed");
    }
    let blobs = Blobs::new(open(folder.path(), Durability::Sync), bytes);
    let now = SystemClock.now();
    let space = blobs.find_container("account", &container, now).await.expect("a container").id;
    let at = BlobRef { container: space, name: &long };
    let mut opened = blobs.open(at, None, None, &none, now).await.expect("it is there");
    let mut content = Vec::new();
    while let Some(piece) = opened.content.next().await.expect("bytes") {
        content.extend_from_slice(&piece);
    }
    let expected: String = (0..300).map(|n| format!("block {n};")).collect();
    assert_eq!(String::from_utf8(content).as_deref(), Ok(expected.as_str()));
    let at = BlobRef { container: space, name: &begun };
    let list = blobs.block_list(at, None, BlockListKind::All, &none, now).await.expect("a list");
    assert_eq!((list.properties, list.committed.len(), list.uncommitted.len()), (None, 0, 300));
}
