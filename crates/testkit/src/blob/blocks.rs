//! Blocks and the lists that make blobs of them.

use super::site::{Site, blob, filled, id, refused};
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, BlobReject, BlockList, NewBlob};
use larimar_engine::{Engine, RowRef, Rows as _};
use larimar_model::blob::{BlobName, BlockId, BlockListEntry, BlockListKind, ByteRange};

fn latest(numbers: impl IntoIterator<Item = u32>) -> Vec<BlockListEntry> {
    numbers.into_iter().map(|number| BlockListEntry::Latest(id(number))).collect()
}

fn listed(blocks: &[(u32, u64)]) -> Vec<(String, u64)> {
    blocks.iter().map(|(number, length)| (id(*number).to_string(), *length)).collect()
}

async fn list_of<E: Engine, B: ByteStore>(site: &Site<E, B>, name: &BlobName) -> BlockList {
    let list =
        site.blobs.block_list(site.at(name), None, BlockListKind::All, &AccessConditions::default(), site.now()).await;
    list.expect("a list")
}

/// The list's order counts, not that of the blocks, and a block may come twice.
pub async fn a_list_makes_a_blob_in_its_order<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    for number in [3, 1, 2] {
        site.put_block(&name, &id(number), &filled(number as u8, 100 * number as usize)).await.expect("a block");
    }
    let put = site.commit(&name, &latest([2, 3, 1, 3])).await.expect("it is committed");
    let content = [2, 3, 1, 3].map(|n| filled(n, 100 * usize::from(n))).concat();
    assert_eq!(site.read(&name).await, Ok(content));
    let list = list_of(site, &name).await;
    assert_eq!(list.committed, listed(&[(2, 200), (3, 300), (1, 100), (3, 300)]));
    assert_eq!(list.uncommitted, []);
    assert_eq!(list.properties.map(|properties| (properties.etag(), properties.length)), Some((put.etag(), 900)));
    site.commit(&name, &[]).await.expect("an empty list");
    assert_eq!(site.read(&name).await, Ok(Vec::new()));
}

/// Put Block changes neither what is read nor the etag.
pub async fn blocks_are_out_of_sight_until_they_are_committed<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    site.put_block(&name, &id(1), b"one").await.expect("a block");
    assert_eq!(site.read(&name).await, refused(BlobReject::BlobNotFound));
    let deleted = site.blobs.delete_blob(site.at(&name), None, &AccessConditions::default(), site.now()).await;
    assert_eq!(deleted, refused(BlobReject::BlobNotFound));
    let list = list_of(site, &name).await;
    assert_eq!((list.properties, list.committed, list.uncommitted), (None, vec![], listed(&[(1, 3)])));
    let put = site.commit(&name, &latest([1])).await.expect("it is committed");
    site.put_block(&name, &id(1), b"other").await.expect("a block");
    site.put_block(&name, &id(2), b"two").await.expect("a block");
    assert_eq!(site.read(&name).await, Ok(b"one".to_vec()));
    let list = list_of(site, &name).await;
    assert_eq!(list.properties.map(|properties| properties.etag()), Some(put.etag()));
    assert_eq!((list.committed, list.uncommitted), (listed(&[(1, 3)]), listed(&[(1, 5), (2, 3)])));
    // A whole blob drops them.
    site.put(&name, b"whole").await;
    assert_eq!(list_of(site, &name).await.uncommitted, []);
    assert_eq!(site.commit(&name, &latest([2])).await, refused(BlobReject::InvalidBlockList));
}

/// Committed and uncommitted blocks of the same id are distinguished; the latest is the uncommitted one.
pub async fn entries_choose_between_committed_and_uncommitted<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    use BlockListEntry::{Committed, Latest, Uncommitted};
    let name = blob("b");
    site.put_block(&name, &id(1), b"old1").await.expect("a block");
    site.put_block(&name, &id(2), b"old2").await.expect("a block");
    site.commit(&name, &latest([1, 2])).await.expect("it is committed");
    site.put_block(&name, &id(1), b"new1").await.expect("a block");
    let list = [Committed(id(1)), Uncommitted(id(1)), Latest(id(1)), Latest(id(2)), Committed(id(2))];
    site.commit(&name, &list).await.expect("it is committed");
    assert_eq!(site.read(&name).await, Ok(b"old1new1new1old2old2".to_vec()));
    assert_eq!(site.commit(&name, &[Uncommitted(id(2))]).await, refused(BlobReject::InvalidBlockList));
}

/// A list with an unknown block changes nothing.
pub async fn an_unknown_block_refuses_the_list<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    assert_eq!(site.commit(&name, &latest([1])).await, refused(BlobReject::InvalidBlockList));
    site.put_block(&name, &id(1), b"one").await.expect("a block");
    assert_eq!(site.commit(&name, &latest([1, 2])).await, refused(BlobReject::InvalidBlockList));
    let committed = site.commit(&name, &[BlockListEntry::Committed(id(1))]).await;
    assert_eq!(committed, refused(BlobReject::InvalidBlockList));
    assert_eq!(list_of(site, &name).await.uncommitted, listed(&[(1, 3)]));
    assert_eq!(site.read(&name).await, refused(BlobReject::BlobNotFound));
}

/// After a commit no block is uncommitted, and no row of one is left.
pub async fn a_commit_drops_what_it_does_not_name<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    for number in 0..20 {
        site.put_block(&name, &id(number), b"block").await.expect("a block");
    }
    site.commit(&name, &latest([7])).await.expect("it is committed");
    let list = list_of(site, &name).await;
    assert_eq!((list.committed, list.uncommitted), (listed(&[(7, 5)]), vec![]));
    assert_eq!(site.commit(&name, &latest([8])).await, refused(BlobReject::InvalidBlockList));
    assert_eq!(site.rows().await, [("b".to_owned(), String::new())]);
    site.expect_payloads(1, "only the committed block is kept").await;
}

/// Ids of blocks that are not committed have one length; a commit ends that.
pub async fn ids_have_one_length<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let longer = BlockId::parse("AAAAAAAA").expect("an id");
    site.put_block(&name, &id(1), b"one").await.expect("a block");
    let other = site.put_block(&name, &longer, b"two").await;
    assert_eq!(other, refused(BlobReject::InvalidBlobOrBlock));
    site.commit(&name, &latest([1])).await.expect("it is committed");
    site.put_block(&name, &longer, b"two").await.expect("a block");
    let longest = BlockId::parse(&format!("{}==", "A".repeat(86))).expect("an id");
    let name = blob(&"\u{1F600}".repeat(512));
    site.put_block(&name, &longest, b"three").await.expect("a block of the longest id of the longest name");
    site.commit(&name, &[BlockListEntry::Latest(longest)]).await.expect("it is committed");
    assert_eq!(site.read(&name).await, Ok(b"three".to_vec()));
}

/// Blocks belong to block blobs, and pages and appends to the others.
pub async fn other_types_have_no_blocks<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let at = site.at(&name);
    site.blobs.put_append_blob(at, &NewBlob::default(), &none, site.now()).await.expect("it is put");
    assert_eq!(site.put_block(&name, &id(1), b"x").await, refused(BlobReject::InvalidBlobType));
    assert_eq!(site.commit(&name, &[]).await, refused(BlobReject::InvalidBlobType));
    let list = site.blobs.block_list(at, None, BlockListKind::All, &none, site.now()).await;
    assert_eq!(list, refused(BlobReject::InvalidBlobType));
    site.put(&name, b"block blob").await;
    let extent = site.payload(&name, b"x").await;
    let append = site.blobs.append_block(at, extent, Default::default(), &none, site.now()).await;
    assert_eq!(append, refused(BlobReject::InvalidBlobType));
    site.expect_payloads(1, "what was refused is removed").await;
}

/// A list that is too long for the blob's row is read as a short one is, and a range reads only its chunks.
pub async fn a_long_list_is_read_in_ranges<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    let mut content = Vec::new();
    for number in 0..60 {
        let bytes = filled(number as u8, 10 + number as usize);
        site.put_block(&name, &id(number), &bytes).await.expect("a block");
    }
    // Some blocks many times: 3,000 in all.
    let order: Vec<u32> = (0..3_000).map(|n| n * 7 % 60).collect();
    for number in &order {
        content.extend(filled(*number as u8, 10 + *number as usize));
    }
    site.commit(&name, &latest(order.clone())).await.expect("it is committed");
    assert!(site.read(&name).await == Ok(content.clone()));
    let list = list_of(site, &name).await;
    assert_eq!(list.committed.len(), 3_000);
    let before = site.visited();
    for start in (0..content.len()).step_by(7_777) {
        let last = (start + 99).min(content.len() - 1);
        let read = site.read_of(&name, None, Some(ByteRange { start: start as u64, last: Some(last as u64) })).await;
        assert!(read == Ok(content[start..=last].to_vec()), "from {start}");
    }
    let reads = content.len().div_ceil(7_777) as u64;
    assert!(site.visited() - before <= 2 * reads, "a short range lies in two chunks at most");
    // What was committed can be committed again, in another order.
    let entry = |number: &u32| BlockListEntry::Committed(id(*number));
    let again: Vec<_> = order.iter().rev().map(entry).collect();
    site.commit(&name, &again).await.expect("it is committed");
    let reversed: Vec<u8> = order.iter().rev().flat_map(|n| filled(*n as u8, 10 + *n as usize)).collect();
    assert!(site.read(&name).await == Ok(reversed));
    site.expect_payloads(60, "the blocks are kept").await;
}

/// A list of more than 50,000 entries is refused as such.
pub async fn too_long_a_list_is_refused<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    site.put_block(&name, &id(1), b"x").await.expect("a block");
    let list = latest(std::iter::repeat_n(1, 50_001));
    assert_eq!(site.commit(&name, &list).await, refused(BlobReject::BlockListTooLong));
}

/// The longest list is committed at once and read in ranges.
pub async fn a_list_of_fifty_thousand_blocks_is_committed<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    for number in 0..10 {
        site.put_block(&name, &id(number), &[number as u8; 16]).await.expect("a block");
    }
    site.commit(&name, &latest((0..50_000).map(|n| n % 10))).await.expect("it is committed");
    let properties = site.blobs.properties(site.at(&name), None, &AccessConditions::default(), site.now()).await;
    assert_eq!(properties.map(|properties| properties.length), Ok(800_000));
    for start in [0_u64, 12_345, 799_984] {
        let read = site.read_of(&name, None, Some(ByteRange { start, last: Some(start + 15) })).await;
        let expected: Vec<u8> = (start..start + 16).map(|byte| (byte / 16 % 10) as u8).collect();
        assert_eq!(read, Ok(expected));
    }
    site.put(&name, b"short").await;
    assert_eq!(site.rows().await.len(), 1);
    site.expect_payloads(1, "the chunks' blocks are removed").await;
}

/// Blocks that are not committed are bounded in number, if not to the last one.
pub async fn too_many_uncommitted_blocks_are_refused<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name = blob("b");
    site.put_block(&name, &id(0), b"x").await.expect("a block");
    let mut rows = site.rows().await.into_iter();
    let (_, row) = rows.find(|(_, row)| !row.is_empty()).expect("the block's row");
    let stem = row.strip_suffix(id(0).as_str()).expect("the id ends the row's name").to_owned();
    let key = larimar_engine::Key { space: site.container, partition: "b", row: &row };
    let found = site.blobs.engine().get(key, |row| row.map(|row| (row.version, row.body.to_vec()))).await;
    let (version, body) = found.expect("a read").expect("the block's row");
    for thousand in 0..100 {
        let names: Vec<String> = (1..=1_000).map(|n| format!("{stem}{}", id(thousand * 1_000 + n))).collect();
        let rows: Vec<_> = names.iter().map(|row| RowRef { partition: "b", row, version, body: &body }).collect();
        site.blobs.engine().restore(site.container, &rows).await.expect("rows are stored");
    }
    for n in 0..10_000 {
        match site.put_block(&name, &id(200_000 + n), b"x").await {
            Ok(()) => {}
            other => return assert_eq!(other, refused(BlobReject::BlockCountExceedsLimit)),
        }
    }
    panic!("the number of blocks has no bound");
}
