//! Copies of containers: every kind of blob, its snapshots and blocks, and their bytes in another store.

use super::failing::{Control as _, Failing};
use super::{OPTIONS, block_on, copied, records};
use larimar_engine::blob::bytes::{
    ByteStatistics, ByteStore, ByteWriter, Bytes, Extent, MemoryBytes, MemoryWriter, Owner, Owners, PayloadHold,
    Reclaimed,
};
use larimar_engine::blob::{
    AccessConditions, BlobRef, Blobs, Container, CopyRequest, CopySource, FindIn, ListItem, ListQuery, NewBlob,
    NewContainer,
};
use larimar_engine::migration::{MigrationError, MigrationOptions, Side, compare, migrate};
use larimar_engine::{Clock as _, Engine, Fault, MemoryEngine, SpaceKind, SpaceName, Spaces as _, SystemClock};
use larimar_model::Guid;
use larimar_model::blob::{
    AppendConditions, BlobName, BlobType, BlockId, BlockListEntry, BlockListKind, Conditions, LeaseAction,
    LeaseDuration, LeaseId, ListInclude, PageRange, SequenceConditions, TagQuery,
};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const CONTAINER: SpaceName<'static> = SpaceName { account: "one", kind: SpaceKind::Container, name: "photos" };

struct Store<E> {
    engine: Arc<E>,
    bytes: Arc<MemoryBytes>,
    blobs: Blobs<E, MemoryBytes>,
}

impl<E: Engine> Store<E> {
    fn new(engine: E) -> Self {
        let (engine, bytes) = (Arc::new(engine), Arc::new(MemoryBytes::new(Duration::ZERO)));
        let blobs = Blobs::new(Arc::clone(&engine), Arc::clone(&bytes));
        Self { engine, bytes, blobs }
    }

    fn side(&self) -> Side<'_, E, MemoryBytes> {
        Side { engine: &self.engine, bytes: Some(&self.bytes) }
    }

    async fn container(&self) -> larimar_engine::SpaceId {
        self.engine.space(CONTAINER).await.expect("no fault").expect("a container").id
    }

    async fn payload(&self, at: BlobRef<'_>, bytes: &[u8]) -> Extent {
        let mut writer = self.blobs.begin(at, None).await.expect("a payload");
        writer.write(Bytes::copy_from_slice(bytes)).await.expect("bytes");
        writer.finish().await.expect("a payload")
    }

    async fn put(&self, name: &str, bytes: &[u8]) {
        let name: BlobName = name.parse().expect("a name");
        let at = BlobRef { container: self.container().await, name: &name };
        let extent = self.payload(at, bytes).await;
        let new = NewBlob::default();
        let put =
            self.blobs.put_block_blob(at, Some(extent), &new, &AccessConditions::default(), SystemClock.now()).await;
        put.expect("a blob");
    }

    /// Everything that clients see in the container.
    async fn seen(&self) -> Vec<String> {
        let (container, now) = (self.container().await, SystemClock.now());
        let include = ListInclude { snapshots: true, uncommitted: true, ..ListInclude::default() };
        let query = ListQuery { items_max: 5000, include, ..ListQuery::default() };
        let page = self.blobs.list_blobs(container, &query, now).await.expect("a page");
        let mut seen = Vec::new();
        for item in page.items {
            let ListItem::Blob(blob) = item else { panic!("no prefix was asked for") };
            let name: BlobName = blob.name.parse().expect("a name");
            let at = BlobRef { container, name: &name };
            let access = AccessConditions::default();
            let mut bytes = Vec::new();
            if !blob.properties.is_uncommitted {
                let open = self.blobs.open(at, blob.snapshot, None, &access, now).await;
                let mut content = open.expect("a blob").content;
                while let Some(piece) = content.next().await.expect("bytes") {
                    bytes.extend_from_slice(&piece);
                }
            }
            let blocks = match blob.properties.kind {
                BlobType::Block => {
                    let list = self.blobs.block_list(at, blob.snapshot, BlockListKind::All, &access, now).await;
                    format!("{:?}", list.expect("a list"))
                }
                BlobType::Append | BlobType::Page => String::new(),
            };
            let mut hash = DefaultHasher::new();
            bytes.hash(&mut hash);
            let hash = hash.finish();
            seen.push(format!("{:?} {blocks} {hash:x}", (&blob.name, blob.snapshot, &blob.properties)));
        }
        let query = TagQuery::parse("colour = 'red'").expect("a query");
        let found = self.blobs.find_blobs(FindIn::Account("one"), &query, None, 100, now).await.expect("a page");
        seen.push(format!("{found:?}"));
        let container = self.blobs.read_container("one", &"photos".parse().expect("a name"), None, now).await;
        let Container { last_modified, public_access, metadata, acl, lease, .. } = container.expect("a container");
        seen.push(format!("{:?}", (last_modified, public_access, metadata, acl, lease)));
        seen
    }
}

fn block(number: u32) -> BlockId {
    BlockId::parse(&format!("{number:04}")).expect("an id")
}

/// Block blobs short and long, with tags, snapshots, uncommitted blocks and a lease; append blobs, sealed and not; a page
/// blob whose snapshot shares pages.
async fn fill<E: Engine>(store: &Store<E>) {
    let (blobs, access) = (&store.blobs, AccessConditions::default());
    let now = || SystemClock.now();
    let made = blobs.create_container("one", &"photos".parse().expect("a name"), &NewContainer::default(), now()).await;
    let container = made.expect("a container").id;
    let names: Vec<BlobName> = ["plain", "long", "only blocks", "appended", "sealed", "pages", "copied", "empty"]
        .iter()
        .map(|name| name.parse().expect("a name"))
        .collect();
    let [plain, long, only_blocks, appended, sealed, pages, copied, empty] =
        std::array::from_fn(|n| BlobRef { container, name: &names[n] });
    let mut new = NewBlob::default();
    new.metadata.insert("Name", "value").expect("metadata");
    new.tags.insert("colour", "red").expect("a tag");
    let extent = store.payload(plain, b"first").await;
    let cool = NewBlob { tier: Some("Cool".parse().expect("a tier")), ..new.clone() };
    blobs.put_block_blob(plain, Some(extent), &cool, &access, now()).await.expect("a blob");
    blobs.snapshot_blob(plain, None, &access, now()).await.expect("a snapshot");
    let lease = LeaseId(Guid([7; 16]));
    let acquire = LeaseAction::Acquire { duration: LeaseDuration::Infinite, proposed: Some(lease) };
    blobs.lease_blob(plain, (acquire, lease), &access, now()).await.expect("a lease");
    blobs.put_block_blob(empty, None, &NewBlob::default(), &access, now()).await.expect("a blob");
    // More blocks than a row holds, one of them twice; then a list that shares most of them with a snapshot.
    for number in 0..600 {
        let extent = store.payload(long, &number.to_string().into_bytes()).await;
        blobs.put_block(long, &block(number), extent, None, now()).await.expect("a block");
    }
    let mut list: Vec<_> = (0..600).map(|number| BlockListEntry::Latest(block(number))).collect();
    list.push(BlockListEntry::Latest(block(0)));
    blobs.put_block_list(long, &list, &new, &access, now()).await.expect("a list");
    blobs.snapshot_blob(long, None, &access, now()).await.expect("a snapshot");
    list.truncate(550);
    blobs.put_block_list(long, &list, &new, &access, now()).await.expect("a list");
    for at in [long, only_blocks] {
        let extent = store.payload(at, b"not committed").await;
        blobs.put_block(at, &block(9999), extent, None, now()).await.expect("a block");
    }
    fill_appends(store, [appended, sealed], &new).await;
    fill_pages(store, pages, &new).await;
    copy(store, plain, copied).await;
}

/// Append blobs of more blocks than a row holds; the second one is sealed.
async fn fill_appends<E: Engine>(store: &Store<E>, ats: [BlobRef<'_>; 2], new: &NewBlob) {
    let (blobs, access) = (&store.blobs, AccessConditions::default());
    let now = || SystemClock.now();
    for at in ats {
        blobs.put_append_blob(at, new, &access, now()).await.expect("a blob");
        for number in 0..200_u32 {
            let extent = store.payload(at, &number.to_be_bytes()).await;
            blobs.append_block(at, extent, AppendConditions::default(), &access, now()).await.expect("a block");
        }
    }
    blobs.seal_blob(ats[1], None, &access, now()).await.expect("it is sealed");
}

/// A page blob whose snapshot shares pages.
async fn fill_pages<E: Engine>(store: &Store<E>, pages: BlobRef<'_>, new: &NewBlob) {
    let (blobs, access) = (&store.blobs, AccessConditions::default());
    let now = || SystemClock.now();
    // Two regions, and one write over their border; more pages after the snapshot.
    let region = 16 << 20;
    blobs.put_page_blob(pages, (2 * region, 5), new, &access, now()).await.expect("a blob");
    let write = async |start: u64, length: u64, byte: u8| {
        let extent = store.payload(pages, &vec![byte; length as usize]).await;
        let range = PageRange::new(start, start + length).expect("pages");
        let put = blobs.put_pages(pages, (range, extent), SequenceConditions::default(), &access, now()).await;
        put.expect("pages");
    };
    for number in 0..150 {
        write(number * 1024, 512, number as u8).await;
    }
    write(region - 1024, 2048, 200).await;
    blobs.snapshot_blob(pages, None, &access, now()).await.expect("a snapshot");
    write(512, 1024, 201).await;
    write(region + 4096, 512, 202).await;
}

async fn copy<E: Engine>(store: &Store<E>, plain: BlobRef<'_>, copied: BlobRef<'_>) {
    let source = CopySource { at: plain, snapshot: None, conditions: Conditions::NONE, if_tags: None };
    let request = CopyRequest {
        id: Guid([1; 16]),
        source_url: "http://here/one/photos/plain".to_owned(),
        metadata: None,
        tags: None,
        tier: None,
        seal: None,
        rehydrate: None,
    };
    store
        .blobs
        .copy_blob(&source, copied, &request, &AccessConditions::default(), SystemClock.now())
        .await
        .expect("a copy");
}

#[test]
fn a_copy_shows_the_same_blobs_with_their_snapshots_blocks_tags_and_bytes() {
    block_on(async {
        let (from, to) = (Store::new(MemoryEngine::new()), Store::new(MemoryEngine::new()));
        fill(&from).await;
        let expected = from.seen().await;
        assert_eq!(expected.len(), 13, "eight blobs, three snapshots, and what is asked besides");
        let reports = migrate(&from.side(), &to.side(), OPTIONS, &mut |_| ()).await.expect("a good end");
        assert_eq!(reports.len(), 1);
        assert_eq!((reports[0].part.to_string().as_str(), reports[0].digest.items), ("container one/photos", 11));
        assert_eq!(to.seen().await, expected);
        assert_eq!(to.bytes.payloads(), from.bytes.payloads(), "what rows share is copied once");
        assert_eq!(from.seen().await, expected, "the source is as it was");
        let compared = compare(&from.side(), &to.side(), &SystemClock, &mut |_| ()).await.expect("alike");
        assert_eq!(compared, reports);
        // The copy goes on as the source would, and reclaiming removes nothing that is needed.
        let (rows, payloads) = to.blobs.reclaim(SystemClock.now()).await.expect("no fault");
        assert_eq!((rows.rows, payloads.removed), (0, 0));
        assert_eq!(to.seen().await, expected);
        to.put("plain two", b"new").await;
    });
}

/// A store of bytes whose payloads of five bytes have another first byte.
struct Damaged(Arc<MemoryBytes>);

impl ByteStore for Damaged {
    type Writer = MemoryWriter;

    async fn begin(&self, owner: Owner<'_>, expected: Option<u64>) -> Result<MemoryWriter, Fault> {
        self.0.begin(owner, expected).await
    }

    async fn read(&self, extent: &Extent, range: Range<u64>) -> Result<Bytes, Fault> {
        let mut bytes = self.0.read(extent, range).await?.to_vec();
        if extent.length == 5 {
            bytes[0] ^= 1;
        }
        Ok(bytes.into())
    }

    fn discard(&self, extents: Vec<Extent>) {
        self.0.discard(extents);
    }

    fn hold(&self) -> PayloadHold {
        self.0.hold()
    }

    async fn reclaim(&self, owners: &impl Owners) -> Result<Reclaimed, Fault> {
        self.0.reclaim(owners).await
    }

    fn statistics(&self) -> ByteStatistics {
        self.0.statistics()
    }
}

#[test]
fn a_changed_byte_of_a_payload_is_found() {
    block_on(async {
        let (from, to) = (Store::new(MemoryEngine::new()), Store::new(MemoryEngine::new()));
        fill(&from).await;
        migrate(&from.side(), &to.side(), OPTIONS, &mut |_| ()).await.expect("a good end");
        let damaged = Damaged(Arc::clone(&to.bytes));
        let damaged = Side { engine: &*to.engine, bytes: Some(&damaged) };
        let found = compare(&from.side(), &damaged, &SystemClock, &mut |_| ()).await.expect_err("they differ");
        assert!(found.to_string().contains("container one/photos"), "{found}");
    });
}

#[test]
fn a_container_goes_on_where_the_last_run_was_interrupted_and_shows_no_half_blob() {
    block_on(async {
        let from = Store::new(MemoryEngine::new());
        fill(&from).await;
        for number in 0..1000 {
            from.put(&format!("small {number:04}"), &[number as u8]).await;
        }
        let expected = from.seen().await;
        for fails_at in 1.. {
            let to = Store::new(Failing::after(fails_at));
            match migrate(&from.side(), &to.side(), OPTIONS, &mut |_| ()).await {
                Ok(_) => {
                    assert!(fails_at > 8, "{fails_at}");
                    return;
                }
                Err(error) => assert!(error.to_string().contains("interrupted"), "{error}"),
            }
            if to.engine.space(CONTAINER).await.expect("no fault").is_some() {
                // Every blob that is there already is whole.
                for seen in to.seen().await.iter().filter(|seen| seen.starts_with("(\"")) {
                    assert!(expected.contains(seen), "after failure {fails_at}: {seen:.200}");
                }
            }
            if records(&*to.engine).await > 0 {
                let again = migrate(&from.side(), &to.side(), OPTIONS, &mut |_| ()).await;
                again.unwrap_or_else(|error| panic!("after failure {fails_at}: {error}"));
            }
            assert_eq!(to.seen().await, expected, "after failure {fails_at}");
            let written = to.engine.0.rows.load(Ordering::Relaxed);
            assert!(written < 3_500, "{written} after failure {fails_at}");
        }
    });
}

#[test]
fn blobs_need_a_store_of_bytes_on_both_sides_and_empty_containers_do_not() {
    block_on(async {
        let (from, to) = (Store::new(MemoryEngine::new()), MemoryEngine::new());
        let made = NewContainer::default();
        let name = "photos".parse().expect("a name");
        from.blobs.create_container("one", &name, &made, SystemClock.now()).await.expect("a container");
        copied(&*from.engine, &to).await.expect("an empty container");
        let to = MemoryEngine::new();
        from.put("one", b"bytes").await;
        let bare = Side::<_, MemoryBytes> { engine: &to, bytes: None };
        let error = migrate(&from.side(), &bare, OPTIONS, &mut |_| ()).await.expect_err("no store");
        assert!(matches!(error, MigrationError::NoBytes { side: "destination", .. }), "{error}");
        let error = copied(&*from.engine, &to).await.expect_err("no store");
        assert!(matches!(error, MigrationError::NoBytes { side: "source", .. }), "{error}");
        assert_eq!(to.accounts().await, Ok(Vec::new()));
        assert_eq!(records(&to).await, 0);
    });
}

#[test]
fn a_restart_drops_the_container_that_was_begun() {
    block_on(async {
        let from = Store::new(MemoryEngine::new());
        fill(&from).await;
        let to = Store::new(Failing::after(5));
        migrate(&from.side(), &to.side(), OPTIONS, &mut |_| ()).await.expect_err("interrupted");
        let begun = to.container().await;
        let restarts = MigrationOptions { restarts: true, ..OPTIONS };
        migrate(&from.side(), &to.side(), restarts, &mut |_| ()).await.expect("a good end");
        assert_ne!(to.container().await, begun);
        assert_eq!(to.seen().await, from.seen().await);
    });
}
