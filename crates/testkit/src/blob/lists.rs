//! Listings: their order, their pages, their cost.

use super::site::{Site, blob, id, names};
use crate::Dice;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{AccessConditions, ListItem, ListQuery};
use larimar_model::blob::ListInclude;
use larimar_model::utf16;
use std::collections::BTreeSet;

/// All blobs, without anything else.
pub(super) fn everything() -> ListQuery {
    ListQuery { items_max: 5_000, ..ListQuery::default() }
}

/// The names of all pages, and how many pages there were.
async fn walk<E: Engine, B: ByteStore>(site: &Site<E, B>, query: &ListQuery) -> (Vec<String>, usize) {
    let (mut all, mut query) = (Vec::new(), query.clone());
    for pages in 1..10_000 {
        let page = site.list(&query).await;
        assert!(page.items.len() <= query.items_max);
        all.extend(names(&page));
        match page.next {
            Some(next) => query.from = Some(next),
            None => return (all, pages),
        }
    }
    panic!("a listing does not end");
}

/// Names come by UTF-16 code units, a page at a time, and a page that is just full is the last.
pub async fn blobs_are_listed_in_order_page_by_page<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let mut expected = ["b", "a", "a/b", "B", "ä", "\u{1F600}", "\u{E000}", "a/c", "c"];
    for name in expected {
        site.put(&blob(name), name.as_bytes()).await;
    }
    expected.sort_by(|a, b| utf16::compare(a, b));
    for (max, pages) in [(5_000, 1), (9, 1), (8, 2), (3, 3), (1, 9)] {
        let query = ListQuery { items_max: max, ..ListQuery::default() };
        assert_eq!(walk(site, &query).await, (expected.map(str::to_owned).to_vec(), pages), "{max} a page");
    }
    let query = ListQuery { prefix: "a".to_owned(), items_max: 2, ..ListQuery::default() };
    assert_eq!(walk(site, &query).await, (["a", "a/b", "a/c"].map(str::to_owned).to_vec(), 2));
    let page = site.list(&everything()).await;
    let lengths = page.items.iter().map(|item| match item {
        ListItem::Blob(found) => (found.properties.length as usize, found.name.len()),
        ListItem::Prefix(_) => panic!("no prefixes"),
    });
    assert!(lengths.into_iter().all(|(length, name)| length == name));
}

/// Names with the delimiter after the prefix are grouped into one prefix, in the order of names.
pub async fn a_delimiter_joins_names<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for name in ["a", "a/1", "a/2/x", "a/3", "a0", "b/1", "b//2", "c--1", "c--2", "d/"] {
        site.put(&blob(name), b"").await;
    }
    let list = async |prefix: &str, delimiter: &str| {
        let mut listed = Vec::new();
        for items_max in [1, 2, 3, 100] {
            let (prefix, delimiter) = (prefix.to_owned(), delimiter.to_owned());
            let query = ListQuery { prefix, delimiter, items_max, ..ListQuery::default() };
            listed.push(walk(site, &query).await.0.join(" "));
        }
        listed.dedup();
        assert_eq!(listed.len(), 1, "the size of pages makes no difference: {listed:?}");
        listed.remove(0)
    };
    assert_eq!(list("", "/").await, "a a/ a0 b/ c--1 c--2 d/");
    assert_eq!(list("a/", "/").await, "a/1 a/2/ a/3");
    assert_eq!(list("b/", "/").await, "b// b/1");
    assert_eq!(list("", "--").await, "a a/1 a/2/x a/3 a0 b//2 b/1 c-- d/");
    assert_eq!(list("d/", "/").await, "d/");
    assert_eq!(list("x", "/").await, "");
}

/// Snapshots count as items, oldest first, and are listed once over any pages.
pub async fn snapshots_are_listed_before_their_blob<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for name in ["a", "b", "c"] {
        site.put(&blob(name), name.as_bytes()).await;
        let taken = if name == "b" { 3 } else { 0 };
        for _ in 0..taken {
            let name = blob(name);
            site.blobs
                .snapshot_blob(site.at(&name), None, &AccessConditions::default(), site.now())
                .await
                .expect("a snapshot");
        }
    }
    let include = ListInclude { snapshots: true, ..ListInclude::default() };
    for items_max in 1..7 {
        let query = ListQuery { items_max, include, ..ListQuery::default() };
        assert_eq!(walk(site, &query).await.0, ["a", "b@", "b@", "b@", "b", "c"], "{items_max} a page");
    }
    let page = site.list(&ListQuery { include, ..everything() }).await;
    let times = page.items.iter().filter_map(|item| match item {
        ListItem::Blob(found) => found.snapshot,
        ListItem::Prefix(_) => None,
    });
    assert!(times.is_sorted_by(|a, b| a < b));
    assert_eq!(walk(site, &everything()).await.0, ["a", "b", "c"]);
}

/// Blobs with only uncommitted blocks are listed on request, and marked as such.
pub async fn uncommitted_blobs_are_listed_on_demand<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    site.put(&blob("a"), b"a").await;
    site.put_block(&blob("b"), &id(1), b"block").await.expect("a block");
    site.put_block(&blob("p/c"), &id(1), b"block").await.expect("a block");
    site.put(&blob("d"), b"d").await;
    site.put_block(&blob("d"), &id(1), b"block").await.expect("a block");
    assert_eq!(walk(site, &everything()).await.0, ["a", "d"]);
    let by_slash = ListQuery { delimiter: "/".to_owned(), ..everything() };
    assert_eq!(walk(site, &by_slash).await.0, ["a", "d"]);
    let include = ListInclude { uncommitted: true, ..ListInclude::default() };
    let page = site.list(&ListQuery { include, ..everything() }).await;
    assert_eq!(names(&page), ["a", "b", "d", "p/c"]);
    let listed = page.items.iter().map(|item| match item {
        ListItem::Blob(found) => (found.properties.is_uncommitted, found.properties.length),
        ListItem::Prefix(_) => panic!("no prefixes"),
    });
    assert_eq!(listed.collect::<Vec<_>>(), [(false, 1), (true, 0), (false, 1), (true, 0)]);
}

/// A page visits about as many rows as it lists, however many blobs, blocks and names under a prefix there are.
pub async fn a_page_costs_the_page<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    for n in 0..300 {
        site.put(&blob(&format!("many/{n:03}")), b"").await;
    }
    let busy = blob("a-busy");
    let extent = site.payload(&busy, b"block").await;
    for n in 0..1_000 {
        // Only rows matter here: all blobs share a payload.
        site.blobs.put_block(site.at(&busy), &id(n), extent, None, site.now()).await.expect("a block");
    }
    for name in ["b", "c", "z"] {
        site.put(&blob(name), b"").await;
    }
    let cost = async |query: ListQuery| {
        let before = site.visited();
        let page = site.list(&query).await;
        (names(&page), site.visited() - before)
    };
    let (listed, visited) = cost(ListQuery { items_max: 2, ..ListQuery::default() }).await;
    assert_eq!(listed, ["b", "c"]);
    assert!(visited <= 12, "{visited} rows for two blobs behind a thousand blocks");
    let by_slash = ListQuery { delimiter: "/".to_owned(), items_max: 100, ..ListQuery::default() };
    let (listed, visited) = cost(by_slash).await;
    assert_eq!(listed, ["b", "c", "many/", "z"]);
    assert!(visited <= 20, "{visited} rows for a prefix of three hundred names");
    let inside = ListQuery { prefix: "many/1".to_owned(), items_max: 10, ..ListQuery::default() };
    let (listed, visited) = cost(inside).await;
    assert_eq!(listed.len(), 10);
    assert!(visited <= 12, "{visited} rows for ten of three hundred");
}

/// Random containers and queries: the pages together equal a simple model.
pub async fn any_walk_of_pages_tells_everything_once<E: Engine, B: ByteStore>(site: &Site<E, B>) {
    let mut dice = Dice::new(11);
    let parts = ["a", "b", "/", "//", "a/", "-", "\u{1F600}", "\u{FFFF}", "ab"];
    let mut all = BTreeSet::new();
    for _ in 0..120 {
        let name: String = (0..1 + dice.below(4)).map(|_| *dice.pick(&parts)).collect();
        site.put(&blob(&name), b"").await;
        all.insert(name);
    }
    for _ in 0..60 {
        let prefix: String = (0..dice.below(3)).map(|_| *dice.pick(&parts)).collect();
        let delimiter = (*dice.pick(&["", "/", "a", "\u{FFFF}", "//"])).to_owned();
        let items_max = 1 + dice.below(9) as usize;
        let mut expected: Vec<String> = all
            .iter()
            .filter_map(|name| name.strip_prefix(&prefix).map(|rest| (name, rest)))
            .map(|(name, rest)| match rest.find(&delimiter).filter(|_| !delimiter.is_empty()) {
                Some(at) => format!("{prefix}{}", &rest[..at + delimiter.len()]),
                None => name.clone(),
            })
            .collect();
        expected.sort_by(|a, b| utf16::compare(a, b));
        expected.dedup();
        let query = ListQuery { prefix, delimiter, items_max, ..ListQuery::default() };
        assert_eq!(walk(site, &query).await.0, expected, "{query:?}");
    }
}
