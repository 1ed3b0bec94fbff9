//! Blobs in parts and the settings of containers, over any server: each case takes an account and makes a container of
//! its own.

use crate::suite::unique;
use futures_util::TryStreamExt as _;
use larimar_client::sas::ContainerPermissions;
use larimar_client::{
    Account, BlobCondition, BlobKind, Container, ContainerAccess, ContentHeaders, ListOptions, PublicAccess,
    StoredPolicy, UploadOptions,
};
use std::collections::BTreeMap;

async fn container(account: &Account) -> Container {
    let container = account.container(unique("parts"));
    assert!(container.create_if_missing().await.expect("created"));
    container
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn headers() -> ContentHeaders {
    let mut headers = ContentHeaders::default();
    headers.content_type = Some("text/plain".to_owned());
    headers.content_encoding = Some("identity".to_owned());
    headers.content_language = Some("en".to_owned());
    headers.content_disposition = Some("attachment; filename=\"a.txt\"".to_owned());
    headers.cache_control = Some("max-age=60".to_owned());
    headers
}

pub(crate) async fn x2_a_container_keeps_metadata_and_access(account: &Account) {
    let container = container(account).await;
    assert_eq!(container.metadata().await.expect("read"), BTreeMap::new());
    assert_eq!(container.access().await.expect("read"), ContainerAccess::default());
    container.set_metadata(&pairs(&[("Owner", "Don"), ("n", "1")])).await.expect("set");
    assert_eq!(container.metadata().await.expect("read"), pairs(&[("owner", "Don"), ("n", "1")]));
    let letters = ContainerPermissions::READ | ContainerPermissions::LIST | ContainerPermissions::TAGS;
    let [start, end] = ["2021-06-08T02:05:09Z", "2031-06-08T02:05:09Z"].map(|time| time.parse().expect("a time"));
    let policies = vec![StoredPolicy::new("readers").permissions(letters).starts(start).expires(end)];
    for public in [PublicAccess::Container, PublicAccess::Blob, PublicAccess::None] {
        let access = ContainerAccess::new(public, policies.clone());
        container.set_access(&access).await.expect("set");
        assert_eq!(container.access().await.expect("read"), access);
    }
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_headers_and_tags_are_listed(account: &Account) {
    let container = container(account).await;
    let tags = pairs(&[("project", "a+b c"), ("empty", "")]);
    let options = UploadOptions::default().content_headers(headers()).tags(tags.clone());
    container.blob("tagged").upload("first", options).await.expect("uploaded");
    let properties = container.blob("tagged").properties().await.expect("read").expect("it is there");
    let mut expected = headers();
    expected.content_md5.clone_from(&properties.content_md5);
    assert!(expected.content_md5.is_some(), "the service computes it");
    assert_eq!(properties.content_headers, expected);
    for (with_tags, expected_tags) in [(false, BTreeMap::new()), (true, tags)] {
        let page = container.list_pages(ListOptions::default().tags(with_tags)).try_next().await.expect("listed");
        let page = page.expect("a page");
        let [blob] = &page.blobs[..] else { panic!("{page:?}") };
        assert_eq!((&blob.content_headers, &blob.tags), (&expected, &expected_tags));
        assert_eq!((blob.kind, blob.sequence_number, blob.is_sealed), (BlobKind::Block, 0, false));
    }
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_blocks_wait_until_they_are_committed(account: &Account) {
    let container = container(account).await;
    let blob = container.blob("in/blocks");
    assert_eq!(blob.uncommitted_blocks().await.expect("none yet"), []);
    for (id, text) in [("YQ==", "first "), ("Yg==", "second")] {
        blob.put_block(id, text).await.expect("sent");
    }
    let mut waiting = blob.uncommitted_blocks().await.expect("listed");
    waiting.sort();
    assert_eq!(waiting, [("YQ==".to_owned(), 6), ("Yg==".to_owned(), 6)]);
    assert_eq!(blob.download().await.expect("asked"), None);
    let options = UploadOptions::default().content_headers(headers()).metadata([("n", "1")]);
    let etag = blob.commit_blocks(["YQ==", "Yg=="], &options).await.expect("committed");
    assert_eq!(blob.download_part(0..12, &etag).await.expect("read"), "first second");
    assert_eq!(blob.download_part(2..8, &etag).await.expect("read"), "rst se");
    assert!(blob.download_part(2..13, &etag).await.is_err(), "beyond the end");
    assert!(blob.download_part(2..2, &etag).await.is_err(), "nothing");
    blob.upload("other", UploadOptions::default()).await.expect("uploaded");
    assert!(blob.download_part(0..5, &etag).await.expect_err("another version").is_changed());
    assert!(blob.put_block("YQ==", "").await.is_err(), "no bytes");
    container.delete_container().await.expect("deleted");
}

pub(crate) async fn x2_page_blobs_are_written_in_ranges(account: &Account) {
    let container = container(account).await;
    let blob = container.blob("disk.vhd");
    let options = UploadOptions::default().content_headers(headers()).metadata([("n", "1")]);
    let etag = blob.create_page(8192, 7, &options).await.expect("created");
    assert_eq!(blob.page_ranges(0..8192, etag).await.expect("listed"), []);
    blob.write_pages(512, vec![1; 1024]).await.expect("written");
    blob.write_pages(4096, vec![2; 512]).await.expect("written");
    assert_eq!(blob.page_ranges(0..8192, BlobCondition::Always).await.expect("listed"), [512..1536, 4096..4608]);
    assert_eq!(blob.page_ranges(1024..4608, BlobCondition::Always).await.expect("listed"), [1024..1536, 4096..4608]);
    let read = blob.download().await.expect("read").expect("it is there").bytes;
    assert_eq!((read.len(), read[511], read[512], read[1536], read[4096]), (8192, 0, 1, 0, 2));
    let page = container.list_pages(ListOptions::default()).try_next().await.expect("listed").expect("a page");
    assert_eq!((page.blobs[0].kind, page.blobs[0].sequence_number), (BlobKind::Page, 7));
    for (offset, length) in [(0, 0), (1, 512), (0, 511)] {
        assert!(blob.write_pages(offset, vec![0; length]).await.is_err(), "{length} bytes at {offset}");
    }
    container.delete_container().await.expect("deleted");
}

macro_rules! blob_part_cases {
    ($test:ident) => {
        $test! { blob_parts:
            x2_a_container_keeps_metadata_and_access,
            x2_headers_and_tags_are_listed,
            x2_blocks_wait_until_they_are_committed,
            x2_page_blobs_are_written_in_ranges,
        }
    };
}
pub(crate) use blob_part_cases;
