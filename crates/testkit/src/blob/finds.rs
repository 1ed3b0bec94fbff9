//! Find Blobs by Tags: results, pages, costs, and the state of the index.

use super::site::{ACCOUNT, Site, blob, id, plain_copy};
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{
    AccessConditions, BlobReject, CopyRequest, FindFrom, FindIn, FindPage, NewBlob, NewContainer,
};
use larimar_engine::{Act, Engine, EngineError, Expect, Fault, Op, Reject, Rows as _, SpaceId};
use larimar_model::blob::{BlobName, BlockListEntry, TagQuery, Tags};
use std::collections::BTreeSet;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let mut tags = Tags::new();
    pairs.iter().for_each(|(key, value)| tags.insert(key, value).expect("a tag"));
    tags
}

fn query(text: &str) -> TagQuery {
    TagQuery::parse(text).expect("an expression")
}

impl<E: Engine, B: ByteStore> Site<E, B> {
    async fn put_tagged(&self, name: &str, pairs: &[(&str, &str)]) {
        self.put_tagged_in(self.container, name, pairs).await;
    }

    async fn put_tagged_in(&self, container: SpaceId, name: &str, pairs: &[(&str, &str)]) {
        let (name, new) = (blob(name), NewBlob { tags: tags(pairs), ..NewBlob::default() });
        let at = larimar_engine::blob::BlobRef { container, name: &name };
        self.blobs.put_append_blob(at, &new, &AccessConditions::default(), self.now()).await.expect("it is put");
    }

    async fn tag(&self, name: &str, pairs: &[(&str, &str)]) -> Result<(), EngineError> {
        let name = blob(name);
        self.blobs.set_tags(self.at(&name), &tags(pairs), &AccessConditions::default(), self.now()).await
    }

    fn here(&self) -> FindIn<'static> {
        FindIn::Container { name: "container", id: self.container }
    }

    async fn find_page(&self, within: FindIn<'_>, text: &str, from: Option<&FindFrom>, max: usize) -> FindPage {
        for _ in 0..1000 {
            match self.blobs.find_blobs(within, &query(text), from, max, self.now()).await {
                // A slow machine may need several calls to build an index.
                Err(EngineError::Fault(Fault::Unavailable(reason))) if reason.contains("being built") => {}
                page => return page.expect("a page"),
            }
        }
        panic!("the index is never built");
    }

    /// The names of all blobs that are found, as `container/blob`, with so many a page.
    async fn find_all(&self, within: FindIn<'_>, text: &str, max: usize) -> Vec<String> {
        let (mut found, mut from) = (Vec::new(), None);
        for _ in 0..10_000 {
            let page = self.find_page(within, text, from.as_ref(), max).await;
            assert!(page.blobs.len() <= max);
            found.extend(page.blobs.into_iter().map(|blob| format!("{}/{}", blob.container, blob.name)));
            from = page.next;
            if from.is_none() {
                return found;
            }
        }
        panic!("a search does not end");
    }

    /// The names of the blobs of the container that are found.
    async fn find(&self, text: &str) -> Vec<String> {
        let found = self.find_all(self.here(), text, 5_000).await.into_iter();
        found.map(|name| name.strip_prefix("container/").expect("of this container").to_owned()).collect()
    }

    async fn create(&self, name: &str) -> SpaceId {
        let name = name.parse().expect("a name");
        let created = self.blobs.create_container(ACCOUNT, &name, &NewContainer::default(), self.now()).await;
        created.expect("a container").id
    }

    /// Writes a row of the index directly.
    async fn write_index(&self, row: &str, act: Act<'_>) {
        let op = Op { row, expect: Expect::Any, act };
        self.blobs.engine().apply(self.container, "", &[op], self.now()).await.expect("it is written");
    }
}

/// Blobs are found by equality and by ranges of values, if all comparisons hold; the result has the tags that the
/// expression names. Snapshots and uncommitted blobs are not found.
pub async fn blobs_are_found_by_their_tags<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    site.put_tagged("b", &[("a", "1"), ("c", "x")]).await;
    site.put_tagged("a", &[("a", "10"), ("c", "x")]).await;
    site.put_tagged("ä\u{1F600}\u{1}", &[("a", "2"), ("d", "")]).await;
    site.put_tagged("none", &[]).await;
    let long = "n".repeat(1024);
    let (key, value) = ("k".repeat(128), "v".repeat(256));
    site.put_tagged(&long, &[(&key, &value)]).await;
    for (text, expected) in [
        ("a = '1'", &["b"][..]),
        ("a = '2' AND d = ''", &["ä\u{1F600}\u{1}"]),
        ("a >= '1'", &["b", "a", "ä\u{1F600}\u{1}"]),
        ("a > '1'", &["a", "ä\u{1F600}\u{1}"]),
        ("a > '1' AND a < '2'", &["a"]),
        ("a <= '10'", &["b", "a"]),
        ("c = 'x'", &["a", "b"]),
        ("a <= '1' AND c = 'x'", &["b"]),
        ("c = 'x' AND @container = 'container'", &["a", "b"]),
        ("c = 'x' AND @container = 'other'", &[]),
        ("a = ''", &[]),
        ("e = '1'", &[]),
        ("A = '1'", &[]),
    ] {
        assert_eq!(site.find(text).await, expected, "{text}");
    }
    assert_eq!(site.find(&format!("\"{key}\" = '{value}'")).await, [long]);
    let page = site.find_page(site.here(), "a = '1'", None, 10).await;
    assert_eq!(page.blobs[0].tags, tags(&[("a", "1")]));
    let name = blob("b");
    site.blobs.snapshot_blob(site.at(&name), None, &AccessConditions::default(), site.now()).await.expect("a snapshot");
    site.tag("b", &[("a", "3")]).await.expect("it is tagged");
    assert_eq!(site.find("a = '1'").await, Vec::<String>::new());
    assert_eq!(site.find("a = '3'").await, ["b"]);
    site.put_block(&blob("u"), &id(1), b"x").await.expect("a block");
    assert_eq!(site.find("a >= ''").await.len(), 3);
}

/// A put, a list of blocks, a copy and new tags change what is found; other changes do not; a deleted blob is not found. No
/// row of the index is left behind.
pub async fn what_is_found_follows_every_change<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (name, none) = (blob("b"), AccessConditions::default());
    let found = async || (site.find("t = 'old'").await, site.find("t = 'new'").await);
    let old = || (vec!["b".to_owned()], Vec::<String>::new());
    let new = || (Vec::<String>::new(), vec!["b".to_owned()]);
    site.put_tagged("b", &[("t", "old")]).await;
    assert_eq!(found().await, old());
    site.put_tagged("b", &[("t", "new")]).await;
    assert_eq!(found().await, new());
    site.tag("b", &[("t", "old")]).await.expect("it is tagged");
    assert_eq!(found().await, old());
    site.blobs.set_metadata(site.at(&name), &Default::default(), &none, site.now()).await.expect("metadata");
    assert_eq!(found().await, old());
    site.blobs.delete_blob(site.at(&name), None, &none, site.now()).await.expect("it is deleted");
    assert_eq!(site.index_rows().await.len(), 1, "only the progress is left");
    site.put_block(&name, &id(1), b"x").await.expect("a block");
    let list = [BlockListEntry::Latest(id(1))];
    for (value, expected) in [("new", new()), ("old", old())] {
        let tagged = NewBlob { tags: tags(&[("t", value)]), ..NewBlob::default() };
        site.blobs.put_block_list(site.at(&name), &list, &tagged, &none, site.now()).await.expect("it is committed");
        assert_eq!(found().await, expected);
    }
    let copy = CopyRequest { tags: Some(tags(&[("t", "new")])), ..plain_copy() };
    let source = site.source(&name, None);
    site.blobs.copy_blob(&source, site.at(&name), &copy, &none, site.now()).await.expect("it is copied");
    assert_eq!(found().await, new());
    site.put(&name, b"without tags").await;
    assert_eq!(found().await, (Vec::new(), Vec::new()));
    assert_eq!(site.index_rows().await.len(), 1, "only the progress is left");
    let tagged = site.tag("missing", &[("t", "old")]).await;
    assert_eq!(tagged, Err(EngineError::Reject(Reject::Blob(BlobReject::BlobNotFound))));
    assert_eq!(site.index_rows().await.len(), 1);
}

/// Pages of any length together find every blob once, in order; a page reads only the entries and the blobs that it
/// returns.
pub async fn pages_find_everything_once_and_read_little<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for n in 0..60 {
        let kind = if n % 3 == 0 { "wanted" } else { "other" };
        site.put_tagged(&format!("b{n:02}"), &[("kind", kind), ("n", &format!("{n:02}"))]).await;
    }
    let expected: Vec<String> = (0..60).step_by(3).map(|n| format!("container/b{n:02}")).collect();
    for max in [1, 3, 7, 20, 5_000] {
        assert_eq!(site.find_all(site.here(), "kind = 'wanted'", max).await, expected, "{max} a page");
        assert_eq!(site.find_all(FindIn::Account(ACCOUNT), "kind = 'wanted'", max).await, expected, "{max} a page");
        let both = "kind = 'wanted' AND n >= '30'";
        assert_eq!(site.find_all(site.here(), both, max).await, expected[10..], "{max} a page");
        let range = "n >= '10' AND n < '12'";
        assert_eq!(site.find_all(site.here(), range, max).await, ["container/b10", "container/b11"], "{max} a page");
    }
    for (text, max, rows) in [
        // The progress; entries and rows; one entry more that ends the scan, where an engine visits it.
        ("kind = 'wanted'", 5, 1 + 5 + 5),
        ("kind = 'wanted'", 100, 1 + 20 + 20),
        ("n = '07'", 100, 1 + 1 + 1),
        ("n > '20' AND n <= '25'", 100, 1 + 5 + 5),
        ("kind = 'missing'", 100, 1),
    ] {
        let before = site.visited();
        site.find_page(site.here(), text, None, max).await;
        let visited = site.visited() - before;
        assert!(visited <= rows, "{visited} rows for {text}");
    }
}

/// However many entries are stale, a page ends with a continuation.
pub async fn a_search_without_a_result_is_bounded<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    // Stale entries, as an older release leaves them.
    site.put_tagged("b", &[("k", "v")]).await;
    let entry = site.index_rows().await.pop().expect("an entry");
    let stem = entry.strip_suffix('b').expect("it ends with the name").to_owned();
    let names: Vec<String> = (0..10_600).map(|n| format!("{stem}a{n:05}")).collect();
    for rows in names.chunks(500) {
        let ops: Vec<_> = rows.iter().map(|row| Op { row, expect: Expect::Any, act: Act::Put(b"") }).collect();
        site.blobs.engine().apply(site.container, "", &ops, site.now()).await.expect("they are written");
    }
    let (mut found, mut from, mut pages) = (Vec::new(), None, 0);
    loop {
        let before = site.visited();
        let page = site.find_page(site.here(), "k = 'v'", from.as_ref(), 5_000).await;
        assert!(site.visited() - before <= 10_300, "{} rows", site.visited() - before);
        found.extend(page.blobs.into_iter().map(|blob| blob.name));
        (from, pages) = (page.next, pages + 1);
        if from.is_none() {
            break;
        }
    }
    assert_eq!(found, ["b"]);
    assert!(pages > 1, "the first page ended before the last entry");
}

/// The containers of an account are searched in their order; those of others are not.
pub async fn an_account_is_searched_container_by_container<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let (first, last) = (site.create("aaa").await, site.create("zzz").await);
    site.create("empty").await;
    let other = "zzz".parse().expect("a name");
    let other = site.blobs.create_container("other", &other, &NewContainer::default(), site.now()).await;
    site.put_tagged_in(other.expect("a container").id, "b", &[("k", "v")]).await;
    for container in [first, site.container, last] {
        site.put_tagged_in(container, "1", &[("k", "v")]).await;
        site.put_tagged_in(container, "2", &[("k", "v")]).await;
    }
    let account = FindIn::Account(ACCOUNT);
    let expected = ["aaa/1", "aaa/2", "container/1", "container/2", "zzz/1", "zzz/2"];
    for max in [1, 2, 3, 4, 100] {
        assert_eq!(site.find_all(account, "k = 'v'", max).await, expected, "{max} a page");
        let within = "@container = 'zzz' AND k = 'v'";
        assert_eq!(site.find_all(account, within, max).await, expected[4..], "{max} a page");
    }
    assert_eq!(site.find_all(account, "@container = 'missing' AND k = 'v'", 9).await, Vec::<String>::new());
    // A marker of another query, or an invented one, finds what comes after it.
    let from = |container: &str, entry: &str| FindFrom { container: container.to_owned(), entry: entry.to_owned() };
    for (marker, left) in [(from("b", "x"), 4), (from("zzz", "\u{10FFFF}"), 0), (from("zzz", "\0"), 2)] {
        let page = site.find_page(account, "k = 'v'", Some(&marker), 100).await;
        assert_eq!((page.blobs.len(), page.next), (left, None), "{marker:?}");
    }
}

/// Nothing is found in a deleted container, and in a new one of the same name only its own blobs.
pub async fn a_deleted_container_has_nothing_to_find<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    site.put_tagged("b", &[("k", "v")]).await;
    let name = "container".parse().expect("a name");
    let deleted = site.blobs.delete_container(ACCOUNT, &name, &AccessConditions::default(), site.now()).await;
    deleted.expect("it is deleted");
    let found = site.blobs.find_blobs(site.here(), &query("k = 'v'"), None, 10, site.now()).await;
    assert_eq!(found, Err(EngineError::Reject(Reject::Blob(BlobReject::ContainerNotFound))));
    let account = FindIn::Account(ACCOUNT);
    assert_eq!(site.find_all(account, "k = 'v'", 10).await, Vec::<String>::new());
    let again = site.create("container").await;
    assert_eq!(site.find_all(account, "k = 'v'", 10).await, Vec::<String>::new());
    site.put_tagged_in(again, "c", &[("k", "v")]).await;
    assert_eq!(site.find_all(account, "k = 'v'", 10).await, ["container/c"]);
}

/// Blobs of an earlier release have no entries: the index is built once, before the first result. Blobs that older
/// servers write afterwards are found after the next pass.
pub async fn blobs_without_entries_are_found_once_the_index_is_built<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let forget = async |with_progress: bool| {
        for row in site.index_rows().await {
            if with_progress || row.starts_with('t') {
                site.write_index(&row, Act::Delete).await;
            }
        }
    };
    for n in 0..250 {
        site.put_tagged(&format!("b{n:03}"), &[("k", if n % 2 == 0 { "even" } else { "odd" })]).await;
        if n % 50 == 0 {
            // Rows of other kinds between the blobs.
            for number in 0..10 {
                site.put_block(&blob(&format!("b{n:03}u")), &id(number), b"x").await.expect("a block");
            }
        }
    }
    let rows = site.index_rows().await;
    forget(true).await;
    assert_eq!(site.find("k = 'even'").await.len(), 125);
    assert_eq!(site.index_rows().await, rows, "the index is as it was");
    let before = site.visited();
    site.find_page(site.here(), "k = 'even'", None, 5).await;
    assert!(site.visited() - before <= 11, "it is built once");
    // An older server writes a blob.
    forget(false).await;
    assert_eq!(site.find("k = 'even'").await, Vec::<String>::new());
    site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
    assert_eq!(site.find("k = 'even'").await.len(), 125);
    assert_eq!(site.index_rows().await, rows);
}

/// An entry whose blob has other tags by now, or is deleted, has no effect, and the next pass removes it.
pub async fn entries_that_were_left_behind_are_not_seen_and_removed<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    site.put_tagged("b", &[("k", "1")]).await;
    site.put_tagged("gone", &[("k", "1")]).await;
    let left = site.index_rows().await;
    site.put_tagged("b", &[("k", "2")]).await;
    let name = blob("gone");
    site.blobs
        .delete_blob(site.at(&name), None, &AccessConditions::default(), site.now())
        .await
        .expect("it is deleted");
    let rows = site.index_rows().await;
    for row in left.iter().filter(|row| row.starts_with('t')) {
        site.write_index(row, Act::Put(b"")).await;
    }
    assert_eq!(site.index_rows().await.len(), rows.len() + 2);
    assert_eq!(site.find("k = '1'").await, Vec::<String>::new());
    assert_eq!(site.find("k >= '1'").await, ["b"]);
    site.blobs.reclaim_container(site.container, site.now()).await.expect("it is reclaimed");
    assert_eq!(site.index_rows().await, rows);
}

/// A blob whose tags change all the time is found once by each search that all of them satisfy: a page is one snapshot.
pub async fn a_blob_is_found_once_while_its_tags_change<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for name in ["a", "b", "c"] {
        site.put_tagged(name, &[("k", "0")]).await;
    }
    let second = site.second();
    let writes = async {
        for n in 0..60_u32 {
            let value = format!("{}", n * 7 % 10);
            let writer = if n % 2 == 0 { site } else { &second };
            match n % 3 {
                0 => writer.put_tagged("b", &[("k", &value)]).await,
                _ => writer.tag("b", &[("k", &value)]).await.expect("it is tagged"),
            }
        }
    };
    let reads = async {
        for _ in 0..60 {
            let mut found = site.find("k >= '0'").await;
            found.sort();
            assert_eq!(found, ["a", "b", "c"]);
        }
    };
    futures_util::future::join(writes, reads).await;
    assert_eq!(site.index_rows().await.len(), 1 + 3, "no entry is left behind");
}

/// Wherever the engine stops in a change of tags, what is found afterwards is what the blobs have.
pub async fn the_index_agrees_with_the_blobs_wherever_the_engine_stops<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let name: BlobName = blob("b");
    for calls in 0..12 {
        for change in 0..3 {
            site.put_tagged("b", &[("k", "old"), ("same", "1")]).await;
            site.stop_after(calls);
            let at = site.at(&name);
            let new = NewBlob { tags: tags(&[("k", "new"), ("same", "1")]), ..NewBlob::default() };
            let _ = match change {
                0 => site.blobs.set_tags(at, &new.tags, &AccessConditions::default(), site.now()).await,
                1 => site.blobs.put_append_blob(at, &new, &AccessConditions::default(), site.now()).await.map(drop),
                _ => site.blobs.delete_blob(at, None, &AccessConditions::default(), site.now()).await,
            };
            site.go_on();
            let properties = site.blobs.properties(at, None, &AccessConditions::default(), site.now()).await;
            let has = properties.map_or_else(|_| Tags::new(), |properties| properties.tags);
            for value in ["old", "new"] {
                let is_found = !site.find(&format!("k = '{value}'")).await.is_empty();
                assert_eq!(is_found, has.get("k") == Some(value), "{calls} calls, change {change}");
            }
            let entries: BTreeSet<String> = site.index_rows().await.into_iter().skip(1).collect();
            assert_eq!(entries.len(), has.len(), "{calls} calls, change {change}");
        }
    }
}
