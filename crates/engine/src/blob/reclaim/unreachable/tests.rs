//! Garbage of any size is reclaimed slice by slice, and what is held stays bounded.

use super::*;
use crate::blob::bytes::{ByteWriter as _, Bytes, MemoryBytes};
use crate::blob::layout::encode_uncommitted;
use crate::contract::{Act, Expect, Op, Rows as _, SpaceKind, SpaceName, Spaces as _};
use crate::memory::MemoryEngine;
use larimar_model::blob::BlobName;
use std::sync::Arc;
use std::time::Duration;

type TestBlobs = Blobs<MemoryEngine, MemoryBytes>;

const NOW: Timestamp = Timestamp::from_ticks(638_500_000_000_000_000);

async fn payload(blobs: &TestBlobs, at: BlobRef<'_>) -> Extent {
    let mut writer = blobs.begin(at, Some(1)).await.expect("no fault");
    writer.write(Bytes::from_static(b"x")).await.expect("no fault");
    writer.finish().await.expect("no fault")
}

#[tokio::test]
async fn many_unreachable_rows_and_payloads_are_reclaimed_while_few_are_held() {
    let blobs = Blobs::new(Arc::new(MemoryEngine::default()), Arc::new(MemoryBytes::new(Duration::ZERO)));
    let container = SpaceName { account: "account", kind: SpaceKind::Container, name: "c" };
    let container = blobs.engine.create_space(container, b"").await.expect("no fault").expect("the name is free");
    let name: BlobName = "b".parse().expect("a name");
    let at = BlobRef { container, name: &name };
    // Uncommitted blocks of a blob that does not exist. The first and the last row, which are in different slices, point
    // to the same payload.
    let shared = payload(&blobs, at).await;
    for number in 0..100 {
        let extent = if number == 0 || number == 99 { shared } else { payload(&blobs, at).await };
        let (row, body) = (keys::uncommitted(1, &format!("{number:04}")), encode_uncommitted(&extent));
        let op = Op { row: &row, expect: Expect::Absent, act: Act::Put(&body) };
        blobs.engine.apply(container, "b", &[op], NOW).await.expect("the row is new");
    }
    let mut candidates = Vec::new();
    for _ in 0..35 {
        candidates.push(payload(&blobs, at).await);
    }
    assert_eq!(blobs.bytes.payloads(), 134);
    let max = SliceMax { rows: 10, extents: 10 };
    let reclaimed = blobs.reclaim_in_slices(at, candidates, NOW, max).await.expect("no fault");
    assert_eq!((reclaimed.rows, blobs.bytes.payloads()), (100, 0));
    assert!(reclaimed.held_max <= 30, "ten rows, their payloads and ten candidates: {}", reclaimed.held_max);
}
