//! What blobs do, over any server: each case takes an account and makes a container of its own.

use crate::suite::unique;
use futures_util::TryStreamExt as _;
use larimar_client::{
    Account, AppendOptions, BlobCondition, BlobItem, BlobKind, Container, ETag, Error, IfMatch, ListOptions,
    UploadOptions,
};
use std::collections::BTreeMap;

async fn container(account: &Account) -> Container {
    let container = account.container(unique("blobs"));
    assert!(container.create_if_missing().await.expect("created"));
    container
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Bytes that differ at every offset that matters.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect()
}

pub(crate) async fn x2_a_blob_is_uploaded_read_changed_and_deleted(account: &Account) {
    let container = container(account).await;
    let blob = container.blob("photos/ü +%/O'Neil.jpg");
    assert_eq!(blob.download().await.expect("asked"), None);
    assert_eq!(blob.properties().await.expect("asked"), None);
    assert!(!blob.delete_if_exists().await.expect("asked"));

    let options = UploadOptions::default().content_type("image/jpeg").metadata([("Author", "Don <&>"), ("n", "1")]);
    let etag = blob.upload("first", options).await.expect("uploaded");
    let read = blob.download().await.expect("read").expect("it is there");
    assert_eq!((&read.bytes[..], read.blob_size, &read.etag), (&b"first"[..], 5, &etag));
    assert_eq!(
        (read.content_type.as_str(), &read.metadata),
        ("image/jpeg", &pairs(&[("author", "Don <&>"), ("n", "1")]))
    );
    let properties = blob.properties().await.expect("asked").expect("it is there");
    assert_eq!((properties.size, &properties.etag, properties.kind), (5, &etag, BlobKind::Block));
    assert_eq!((properties.last_modified, &properties.metadata), (read.last_modified, &read.metadata));
    assert_eq!(properties.content_type, "image/jpeg");

    let second = blob.upload("second", UploadOptions::default()).await.expect("replaced");
    assert_ne!(second, etag);
    let read = blob.download().await.expect("read").expect("it is there");
    assert_eq!((&read.bytes[..], &read.metadata), (&b"second"[..], &BTreeMap::new()), "all of it is replaced");
    let third = blob.set_metadata(&pairs(&[("a", "b")]), &second).await.expect("set");
    let stale = blob.set_metadata(&pairs(&[("a", "c")]), &second).await.expect_err("an old version");
    assert!(stale.is_changed(), "{stale}");
    assert_eq!(blob.properties().await.expect("asked").expect("there").metadata, pairs(&[("a", "b")]));
    assert!(blob.delete(&second).await.expect_err("an old version").is_changed());
    blob.delete(third).await.expect("deleted");
    let gone = blob.delete(BlobCondition::Always).await.expect_err("it is gone");
    assert_eq!((gone.is_not_found(), gone.code()), (true, Some("BlobNotFound")));
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_names_of_blobs_may_hold_anything(account: &Account) {
    let container = container(account).await;
    let names =
        ["a b+c", "a?b#c", "a&b=c;d,e", "100%25 %", "a//b/", "~!*'()", "{}|^`\"<>", "日本/\u{1F600}", ".a/b..c/..."];
    for name in names {
        let options = UploadOptions::default().condition(BlobCondition::Missing);
        container.blob(name).upload(name, options).await.expect("another blob than all before");
        assert_eq!(container.blob(name).download().await.expect("read").expect("there").bytes, name);
        let found: Vec<BlobItem> = container.list(name).try_collect().await.expect("listed");
        assert_eq!(found.iter().map(|blob| blob.name.as_str()).collect::<Vec<_>>(), [name]);
    }
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_conditions_decide_who_writes(account: &Account) {
    let container = container(account).await;
    let blob = container.blob("list");
    let on = |condition: BlobCondition| UploadOptions::default().condition(condition);
    let first = blob.upload("a", on(BlobCondition::Missing)).await.expect("it was not there");
    let error = blob.upload("b", on(BlobCondition::Missing)).await.expect_err("it is there");
    assert_eq!((error.is_conflict(), error.code()), (true, Some("BlobAlreadyExists")));
    let second = blob.upload("b", on(IfMatch::Any.into())).await.expect("it is there");
    assert!(blob.upload("c", on(first.into())).await.expect_err("an old version").is_changed());
    blob.upload("c", on(second.into())).await.expect("the version is right");
    assert_eq!(blob.download().await.expect("read").expect("there").bytes, "c");
    let odd = blob.upload("d", on(ETag::new("\"a\r\nb: c\"").into())).await;
    assert!(matches!(odd, Err(Error::Invalid(_))));
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_large_blobs_go_and_come_in_pieces(account: &Account) {
    let container = container(account).await;
    let blob = container.blob("large");
    let large = content((20 << 20) + 1234);
    let options = UploadOptions::default().metadata([("k", "v")]).content_type("a/b").check_md5(true).concurrency(2);
    let etag = blob.upload(large.clone(), options.condition(BlobCondition::Missing)).await.expect("uploaded");
    let read = blob.download().await.expect("read").expect("there");
    assert!(read.bytes == large, "other bytes");
    assert_eq!((read.content_type.as_str(), &read.metadata, &read.etag), ("a/b", &pairs(&[("k", "v")]), &etag));
    let (from, to) = ((7 << 20) + 1, (18 << 20) + 3);
    let part = blob.download_range(from as u64..to as u64).await.expect("read").expect("there");
    assert!(part.bytes == large[from..to], "other bytes");
    assert_eq!(part.blob_size, large.len() as u64);
    let small = blob.with_download_max(1 << 20);
    assert!(matches!(small.download().await, Err(Error::Invalid(_))), "larger than the limit");
    assert_eq!(small.download_range(5..=9).await.expect("read").expect("there").bytes, large[5..=9]);
    // A blob in blocks of three bytes is as good as any.
    let text = "in many small blocks";
    let options = UploadOptions::default().block_size(3).concurrency(5);
    blob.upload(text, options.clone().condition(&etag)).await.expect("replaced");
    assert_eq!(blob.download().await.expect("read").expect("there").bytes, text);
    let error = blob.upload("other text", options.condition(&etag)).await.expect_err("an old version");
    assert!(error.is_changed(), "{error}");
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_ranges_end_where_the_blob_does(account: &Account) {
    let container = container(account).await;
    let blob = container.blob("digits");
    assert_eq!(blob.download_range(1..).await.expect("asked"), None);
    blob.upload("0123456789", UploadOptions::default()).await.expect("uploaded");
    let read = async |range: (std::ops::Bound<u64>, std::ops::Bound<u64>)| {
        blob.download_range(range).await.map(|read| read.expect("there").bytes)
    };
    use std::ops::Bound::{Excluded, Included, Unbounded};
    assert_eq!(read((Included(2), Excluded(5))).await.expect("read"), "234");
    assert_eq!(read((Excluded(2), Included(5))).await.expect("read"), "345");
    assert_eq!(read((Included(7), Unbounded)).await.expect("read"), "789");
    assert_eq!(read((Unbounded, Excluded(1000))).await.expect("read"), "0123456789");
    assert_eq!(read((Unbounded, Unbounded)).await.expect("read"), "0123456789");
    let beyond = read((Included(11), Excluded(20))).await.expect_err("there is nothing");
    assert_eq!((beyond.status(), beyond.code()), (Some(416), Some("InvalidRange")));
    assert!(matches!(read((Included(3), Excluded(3))).await, Err(Error::Invalid(_))));
    blob.upload("", UploadOptions::default().metadata([("a", "b")])).await.expect("uploaded");
    let empty = blob.download().await.expect("read").expect("there");
    assert_eq!((empty.bytes.len(), empty.blob_size, empty.metadata), (0, 0, pairs(&[("a", "b")])));
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn t13_logs_grow_and_are_found_by_prefix(account: &Account) {
    let container = container(account).await;
    let log = container.blob("queue/2014/07/31/1800/000001.log");
    let error = log.append("a", AppendOptions::default()).await.expect_err("there is no blob");
    assert_eq!((error.is_not_found(), error.code()), (true, Some("BlobNotFound")));
    let options = UploadOptions::default().content_type("text/plain").metadata([("starttime", "1")]);
    assert!(log.create_append_if_missing(options.clone()).await.expect("made"));
    assert!(!log.create_append_if_missing(options.clone()).await.expect("it is there"));
    assert_eq!(log.append("one\n", AppendOptions::default()).await.expect("appended"), 0);
    assert_eq!(log.append("two\n", AppendOptions::default().at(4).check_md5(true)).await.expect("appended"), 4);
    let error = log.append("three\n", AppendOptions::default().at(4)).await.expect_err("it is longer");
    assert_eq!((error.is_changed(), error.code()), (true, Some("AppendPositionConditionNotMet")));
    let error = log.append("three\n", AppendOptions::default().max_size(13)).await.expect_err("too long");
    assert_eq!((error.is_changed(), error.code()), (true, Some("MaxBlobSizeConditionNotMet")));
    assert_eq!(log.append("three\n", AppendOptions::default().max_size(14)).await.expect("appended"), 8);
    assert!(matches!(log.append("", AppendOptions::default()).await, Err(Error::Invalid(_))));
    let read = log.download().await.expect("read").expect("there");
    assert_eq!((&read.bytes[..], read.metadata), (&b"one\ntwo\nthree\n"[..], pairs(&[("starttime", "1")])));
    assert_eq!(log.properties().await.expect("asked").expect("there").kind, BlobKind::Append);
    let found: Vec<BlobItem> = container.list("queue/2014/07/31/").try_collect().await.expect("listed");
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!((found.name.as_str(), found.size, found.kind), (log.name(), 14, BlobKind::Append));
    assert_eq!((found.content_type.as_str(), &found.metadata), ("text/plain", &pairs(&[("starttime", "1")])));
    log.delete(&found.etag).await.expect("the ETag of a list is a condition as well");
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn t13_several_writers_append_without_losing_a_line(account: &Account) {
    let container = container(account).await;
    let log = container.blob("log");
    log.create_append(UploadOptions::default()).await.expect("made");
    let writers = (0..4).map(|writer| {
        let log = log.clone();
        async move {
            for n in 0..5 {
                log.append(format!("{writer}.{n}\n"), AppendOptions::default()).await.expect("appended");
            }
        }
    });
    futures_util::future::join_all(writers).await;
    let read = log.download().await.expect("read").expect("there");
    let text = String::from_utf8(read.bytes.to_vec()).expect("text");
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<_> = (0..4).flat_map(|writer| (0..5).map(move |n| format!("{writer}.{n}"))).collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_blobs_are_listed_by_prefix_page_by_page(account: &Account) {
    let container = container(account).await;
    let mut names: Vec<_> = (0..7).map(|n| format!("a/{n}")).collect();
    names.extend(["b <&>".to_owned(), "b/1/x".to_owned(), "b/1/y".to_owned(), "b/2".to_owned()]);
    for name in &names {
        container.blob(name).upload(name.clone(), UploadOptions::default()).await.expect("uploaded");
    }
    let listed = async |prefix: &str| -> Vec<String> {
        let found: Vec<BlobItem> = container.list(prefix).try_collect().await.expect("listed");
        found.into_iter().map(|blob| blob.name).collect()
    };
    assert_eq!(listed("").await, names);
    assert_eq!(listed("b/").await, ["b/1/x", "b/1/y", "b/2"]);
    assert_eq!(listed("c").await, [""; 0]);

    let options = ListOptions::default().prefix("a/").page_size(3);
    let pages: Vec<_> = container.list_pages(options.clone()).try_collect().await.expect("listed");
    assert_eq!(pages.iter().map(|page| page.blobs.len()).collect::<Vec<_>>(), [3, 3, 1]);
    let marker = pages[0].marker.clone().expect("there is more");
    let rest: Vec<_> = container.list_pages(options.start_at(marker)).try_collect().await.expect("listed");
    assert_eq!(rest, pages[1..]);

    let folders = container.list_pages(ListOptions::default().prefix("b").delimiter("/"));
    let folders: Vec<_> = folders.try_collect().await.expect("listed");
    assert_eq!(folders[0].prefixes, ["b/"]);
    assert_eq!(folders[0].blobs.iter().map(|blob| blob.name.as_str()).collect::<Vec<_>>(), ["b <&>"]);
    let refused: Result<Vec<_>, _> = container.list_pages(ListOptions::default().page_size(0)).try_collect().await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_containers_are_made_listed_and_deleted(account: &Account) {
    let first = container(account).await;
    assert!(!first.create_if_missing().await.expect("it is there"));
    let second = account.container(format!("{}-b", first.name()));
    assert!(second.create_if_missing().await.expect("created"));
    let listed: Vec<_> = account.blobs().list(first.name()).try_collect().await.expect("listed");
    let names: Vec<_> = listed.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, [first.name(), second.name()]);
    let url = first.blob("a/b c").url();
    assert_eq!(url, format!("{}/a/b%20c", first.url()));
    second.delete_container().await.expect("deleted");
    assert!(!second.delete_container_if_exists().await.expect("it is gone"));
    let nowhere = second.blob("a");
    for error in [
        nowhere.upload("a", UploadOptions::default()).await.err(),
        nowhere.download().await.err(),
        nowhere.properties().await.err(),
        second.list("").try_collect::<Vec<_>>().await.err(),
    ] {
        let error = error.expect("there is no container");
        assert_eq!((error.is_not_found(), error.code()), (true, Some("ContainerNotFound")), "{error}");
    }
    first.delete_container().await.expect("deleted");
}

macro_rules! blob_cases {
    ($test:ident) => {
        $test! { blob:
            x2_a_blob_is_uploaded_read_changed_and_deleted,
            x2_names_of_blobs_may_hold_anything,
            x2_conditions_decide_who_writes,
            x2_large_blobs_go_and_come_in_pieces,
            x2_ranges_end_where_the_blob_does,
            t13_logs_grow_and_are_found_by_prefix,
            t13_several_writers_append_without_losing_a_line,
            x2_blobs_are_listed_by_prefix_page_by_page,
            x2_containers_are_made_listed_and_deleted,
        }
    };
}
pub(crate) use blob_cases;
