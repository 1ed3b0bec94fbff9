//! Rows are read as they were written, also those of earlier releases.

use super::super::bytes::Extent;
use super::super::layout::{Block, ChunkHead, Pages, Piece};
use super::codec::SHARED;
use super::*;
use larimar_model::Guid;
use larimar_model::blob::{IncrementalCopy, LeaseId, RehydratePriority};

fn full() -> BlobRow {
    let mut row = BlobRow::uncommitted(Timestamp::EDM_MIN);
    row.is_committed = true;
    row.changed = Timestamp::MAX;
    (row.length, row.sequence_number, row.snapshots) = (u64::MAX, 7, 3);
    row.shared_since = Some(SnapshotTime(Timestamp::EDM_MIN));
    row.pending = Pending { generation: 1 << 60, id_length: 88 };
    row.content = ContentHeaders {
        content_type: Some("text/plain".to_owned()),
        encoding: Some(String::new()),
        language: None,
        md5: Some(vec![9; 16]),
        disposition: Some("inline".to_owned()),
        cache_control: None,
    };
    row.is_sealed = true;
    row.metadata.insert("Name", "value").expect("metadata");
    row.tags.insert("k", "v").expect("a tag");
    row.tier = Some(("Cool".parse().expect("a tier"), Timestamp::MAX));
    row.rehydration = Some(Rehydration {
        to: AccessTier::HOT,
        priority: RehydratePriority::High,
        until: Timestamp::MAX,
        is_copy: true,
    });
    let id = LeaseId(Guid([3; 16]));
    row.lease = Lease::Broken { id, until: Timestamp::MAX };
    row.copy = Some(CopyInfo {
        id: Guid([4; 16]),
        source: "http://127.0.0.1/c/b".to_owned(),
        length: 5,
        completed: Timestamp::EDM_MIN,
        incremental: Some(IncrementalCopy {
            snapshot: SnapshotTime(Timestamp::MAX),
            source: "account/c/b".to_owned(),
            source_snapshot: SnapshotTime(Timestamp::EDM_MIN),
        }),
    });
    let extent = Extent { file: [1; 16], offset: 2, length: 300 };
    row.released.add(&[extent], Timestamp::MAX);
    row.layout = Layout::Blocks(Blocks {
        set: 17,
        chunks: vec![ChunkHead { bytes: 1 << 40, blocks: 512 }],
        tail: vec![
            Block { id: "AAAA".to_owned(), piece: Piece { extent, skip: 100, length: 50 } },
            Block { id: String::new(), piece: Piece::whole(extent) },
        ],
    });
    row
}

#[test]
fn rows_are_read_as_they_were_written() {
    let pages = Layout::Pages(Pages { map: u64::MAX, epoch: u32::MAX });
    let page_blob = BlobRow { kind: BlobType::Page, layout: pages, ..full() };
    for (row, blocks) in [(full(), 514), (BlobRow::uncommitted(Timestamp::EDM_MIN), 0), (page_blob, 0)] {
        let layout = Layout::Blocks(Blocks::default());
        let head = BlobRow { layout, ..row.clone() };
        assert_eq!(BlobRow::decode_head(&row.encode()), Ok((head, blocks)));
        assert_eq!(BlobRow::decode(&row.encode()), Ok(row));
    }
}

#[test]
fn a_row_of_an_earlier_release_may_share_with_any_snapshot() {
    let row = BlobRow { shared_since: None, rehydration: None, is_sealed: false, copy: None, ..full() };
    let mut body = row.encode();
    assert_eq!(BlobRow::decode(&body).map(|row| row.shared_since), Ok(None));
    // What is known of sharing is one byte here, before what is rare and the layout; earlier releases had neither it
    // nor its mark.
    let mut layout = Vec::new();
    row.layout.encode(&mut layout);
    body.remove(body.len() - layout.len() - 1);
    body[1] &= !SHARED;
    let first = SnapshotTime(Timestamp::from_ticks(0));
    assert_eq!(BlobRow::decode(&body).map(|row| row.shared_since), Ok(Some(first)));
}

#[test]
fn a_signature_that_an_earlier_release_stored_is_not_read() {
    let mut row = full();
    let copy = row.copy.as_mut().expect("it is a copy");
    copy.source = "http://127.0.0.1/c/b?snapshot=1&sp=r&sig=secret".to_owned();
    let body = row.encode();
    for read in [BlobRow::decode(&body), BlobRow::decode_head(&body).map(|(row, _)| row)] {
        let copy = read.expect("a row").copy.expect("it is a copy");
        assert_eq!(copy.source, "http://127.0.0.1/c/b?snapshot=1");
    }
}

#[test]
fn what_is_cut_or_of_another_format_is_refused() {
    let body = full().encode();
    for length in 0..body.len() {
        assert!(BlobRow::decode(&body[..length]).is_err(), "{length} bytes");
    }
    let longer = [&body[..], &[0]].concat();
    assert!(BlobRow::decode(&longer).is_err());
    let mut other = body;
    other[0] = 2;
    assert!(BlobRow::decode(&other).is_err());
}

#[test]
fn changes_have_increasing_times() {
    let row = BlobRow { changed: Timestamp::from_ticks(100), ..full() };
    assert_eq!(row.next_change(Timestamp::from_ticks(50)).ticks(), 101);
    assert_eq!(row.next_change(Timestamp::from_ticks(100)).ticks(), 101);
    assert_eq!(row.next_change(Timestamp::from_ticks(500)).ticks(), 500);
}
