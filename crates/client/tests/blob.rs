//! Blobs over a server of their own, and what the client makes of answers that are lost.

use crate::suite::{self, blob, blob_parts, losing, over_larimar};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::{Method, Request, Response};
use larimar_client::sas::{BlobPermissions, BlobSas};
use larimar_client::{
    Account, AppendOptions, Blob, BlobCondition, BoxFuture, Error, HttpTransport, RetryPolicy, SharedKey, Timestamp,
    Transport, TransportError, UploadOptions,
};
use larimar_embedded::Larimar;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

blob::blob_cases!(over_larimar);
blob_parts::blob_part_cases!(over_larimar);

#[tokio::test]
async fn x2_a_sealed_blob_grows_no_more() {
    let server = Larimar::ephemeral().await.expect("a server");
    let container = suite::connect(&server.connection_string()).container("logs");
    container.create_if_missing().await.expect("created");
    let blob = container.blob("log");
    blob.create_append(UploadOptions::default()).await.expect("created");
    blob.append("a", AppendOptions::default()).await.expect("appended");
    blob.seal().await.expect("sealed");
    assert!(blob.append("b", AppendOptions::default()).await.is_err());
    let page = container.list_pages(larimar_client::ListOptions::default()).try_next().await.expect("listed");
    assert!(page.expect("a page").blobs[0].is_sealed);
}

/// A server, an account that loses the answer to one request, and another account.
async fn losing(is_victim: fn(&Request<Bytes>) -> bool) -> (Larimar, Account, Account, Arc<AtomicBool>) {
    let server = Larimar::ephemeral().await.expect("a server");
    let other = suite::connect(&server.connection_string());
    other.container("logs").create_if_missing().await.expect("created");
    let (account, has_lost) = losing::account(&server, is_victim);
    (server, account, other, has_lost)
}

fn is_append(request: &Request<Bytes>) -> bool {
    request.uri().query().is_some_and(|query| query.contains("comp=appendblock"))
}

async fn text(account: &Account, blob: &str) -> String {
    let read = account.container("logs").blob(blob).download().await.expect("read").expect("it is there");
    String::from_utf8(read.bytes.to_vec()).expect("text")
}

#[tokio::test]
async fn c10_an_append_whose_answer_is_lost_took_place_once() {
    for options in [AppendOptions::default(), AppendOptions::default().at(2), AppendOptions::default().max_size(5)] {
        let (_server, account, other, has_lost) = losing(is_append).await;
        let setup = other.container("logs").blob("log");
        setup.create_append(UploadOptions::default()).await.expect("made");
        setup.append("0\n", AppendOptions::default().at(0)).await.expect("appended");
        let log = account.container("logs").blob("log");
        assert_eq!(log.append("1\n", options.clone()).await.expect("appended"), 2, "{options:?}");
        assert!(has_lost.load(Ordering::Relaxed));
        assert_eq!(text(&other, "log").await, "0\n1\n");
    }
}

#[tokio::test]
async fn c10_a_conditional_upload_whose_answer_is_lost_has_written() {
    for block_size in [1 << 20, 2] {
        let (_server, account, other, has_lost) = losing(|request| {
            request.method() == Method::PUT && !request.uri().query().is_some_and(|query| query.contains("comp=block&"))
        })
        .await;
        let blob = account.container("logs").blob("a");
        let options = UploadOptions::default().metadata([("A", "b")]).condition(BlobCondition::Missing);
        let options = options.block_size(block_size);
        let etag = blob.upload("first", options.clone()).await.expect("written by the first attempt");
        assert!(has_lost.load(Ordering::Relaxed));
        let stored = blob.properties().await.expect("asked").expect("it is there");
        assert_eq!(stored.etag, etag);
        assert_eq!(text(&other, "a").await, "first");
        assert!(blob.upload("first", options).await.expect_err("nothing was lost this time").is_conflict());
    }
}

#[tokio::test]
async fn c10_a_lost_race_is_a_conflict_though_an_answer_was_lost() {
    // The first attempt is refused, and the refusal is lost.
    let (_server, account, other, has_lost) = losing(|request| request.method() == Method::PUT).await;
    other.container("logs").blob("a").upload("theirs", UploadOptions::default()).await.expect("written");
    let options = UploadOptions::default().condition(BlobCondition::Missing);
    let error = account.container("logs").blob("a").upload("mine!!", options).await.expect_err("they were first");
    assert_eq!(error.code(), Some("BlobAlreadyExists"));
    assert!(has_lost.load(Ordering::Relaxed));
    assert_eq!(text(&other, "a").await, "theirs");
}

#[tokio::test]
async fn c10_an_append_after_a_lost_refusal_goes_to_the_new_end() {
    let (_server, account, other, _) = losing(is_append).await;
    let theirs = other.container("logs").blob("log");
    theirs.create_append(UploadOptions::default()).await.expect("made");
    theirs.append("theirs\n", AppendOptions::default()).await.expect("appended");
    let mine = account.container("logs").blob("log");
    let error = mine.append("mine..\n", AppendOptions::default().at(0)).await.expect_err("they were first");
    assert_eq!(error.code(), Some("AppendPositionConditionNotMet"));
    assert_eq!(mine.append("mine..\n", AppendOptions::default()).await.expect("appended"), 7);
    assert_eq!(text(&other, "log").await, "theirs\nmine..\n");
}

#[tokio::test]
async fn c10_deletes_and_metadata_whose_answers_are_lost_count() {
    let (_server, account, other, _) = losing(|request| request.method() == Method::DELETE).await;
    other.container("logs").blob("a").upload("a", UploadOptions::default()).await.expect("written");
    let blob = account.container("logs").blob("a");
    blob.delete(BlobCondition::Always).await.expect("deleted by the first attempt");
    assert_eq!(blob.download().await.expect("asked"), None);

    let (_server, account, other, has_lost) = losing(|request| request.method() == Method::PUT).await;
    let etag = other.container("logs").blob("a").upload("a", UploadOptions::default()).await.expect("written");
    let blob = account.container("logs").blob("a");
    let metadata = BTreeMap::from([("Key".to_owned(), "value".to_owned())]);
    let set = blob.set_metadata(&metadata, etag).await.expect("set by the first attempt");
    assert!(has_lost.load(Ordering::Relaxed));
    let stored = blob.properties().await.expect("asked").expect("it is there");
    assert_eq!((stored.etag, stored.metadata.get("key").map(String::as_str)), (set, Some("value")));
}

#[tokio::test]
async fn s2_a_shared_access_signature_opens_a_blob_for_what_it_allows() {
    let server = Larimar::ephemeral().await.expect("a server");
    let owner = suite::connect(&server.connection_string()).container("photos");
    owner.create_if_missing().await.expect("created");
    owner.blob("a b/ü").upload("open", UploadOptions::default()).await.expect("uploaded");
    let token = BlobSas::blob("photos", "a b/ü")
        .permissions(BlobPermissions::READ)
        .expires(Timestamp::now().after(Duration::from_secs(60)))
        .sign(&SharedKey::new(server.account(), server.key()).expect("a key"))
        .expect("a token");
    let guest = Account::builder().blob_endpoint(server.blob_endpoint()).sas(token.as_str()).build();
    let guest = guest.expect("an account").container("photos");
    assert_eq!(guest.blob("a b/ü").download().await.expect("it may read").expect("there").bytes, "open");
    let error = guest.blob("a b/ü").upload("x", UploadOptions::default()).await.expect_err("it may not write");
    assert_eq!(error.status(), Some(403), "{error}");
    assert_eq!(guest.blob("other").download().await.expect_err("it may not read this").status(), Some(403));
}

/// Azurite lets such a write through, and takes a range right behind the last byte for an empty one.
#[tokio::test]
async fn x2_what_has_to_exist_does() {
    let server = Larimar::ephemeral().await.expect("a server");
    let container = suite::connect(&server.connection_string()).container("photos");
    container.create_if_missing().await.expect("created");
    let blob = container.blob("a");
    let options = UploadOptions::default().condition(BlobCondition::Exists);
    assert!(blob.upload("a", options.clone()).await.expect_err("it is not there").is_changed());
    blob.upload("a", UploadOptions::default()).await.expect("uploaded");
    blob.upload("b", options).await.expect("it is there");
    assert_eq!(blob.download_range(1..).await.expect_err("there is one byte").code(), Some("InvalidRange"));
}

#[tokio::test]
async fn x2_names_that_xml_cannot_say_are_listed() {
    let server = Larimar::ephemeral().await.expect("a server");
    let container = suite::connect(&server.connection_string()).container("odd");
    container.create_if_missing().await.expect("created");
    let name = "a/\u{1}%41<\u{FFFE}";
    container.blob(name).upload("odd", UploadOptions::default()).await.expect("uploaded");
    let found: Vec<_> = container.list("a/").try_collect().await.expect("listed");
    assert_eq!(found.iter().map(|blob| blob.name.as_str()).collect::<Vec<_>>(), [name]);
    assert_eq!(container.blob(name).download().await.expect("read").expect("there").bytes, "odd");
}

#[tokio::test]
async fn x2_what_the_service_would_refuse_is_not_sent() {
    let server = Larimar::ephemeral().await.expect("a server");
    let blob = suite::connect(&server.connection_string()).container("c").blob("b");
    for options in [
        UploadOptions::default().block_size(0),
        UploadOptions::default().concurrency(0),
        UploadOptions::default().block_size(1),
        UploadOptions::default().metadata([("a-b", "c")]),
        UploadOptions::default().content_type("a\nb"),
    ] {
        let refused = blob.upload(vec![0; 50_001], options.clone()).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{options:?}: {refused:?}");
    }
    let account = suite::connect(&server.connection_string());
    for (container, blob) in
        [("", "a"), ("ab", "a"), ("Abc", "a"), ("..", "a"), ("abc", ""), ("abc", "a/../b"), ("abc", ".")]
    {
        let refused = account.container(container).blob(blob).delete_if_exists().await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{container}/{blob}: {refused:?}");
    }
    let refused = account.container("Abc").create_if_missing().await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert_eq!(server.requests().blob, 0);
}

/// Before the second part of a blob is read, another client replaces the blob.
#[derive(Debug)]
struct Meddling {
    inner: HttpTransport,
    other: Blob,
    left: AtomicUsize,
}

impl Transport for Meddling {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let is_second =
            request.headers().get("x-ms-range").is_some_and(|range| !range.as_bytes().starts_with(b"bytes=0-"));
        let meddles = is_second
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        Box::pin(async move {
            if meddles {
                let content = vec![self.left.load(Ordering::Relaxed) as u8; 9 << 20];
                self.other.upload(content, UploadOptions::default().block_size(16 << 20)).await.expect("replaced");
            }
            self.inner.send(request).await
        })
    }
}

#[tokio::test]
async fn x2_a_download_is_of_one_version() {
    for (changes, comes_through) in [(2, true), (9, false)] {
        let server = Larimar::ephemeral().await.expect("a server");
        let owner = suite::connect(&server.connection_string()).container("photos");
        owner.create_if_missing().await.expect("created");
        owner.blob("a").upload(vec![99; 9 << 20], UploadOptions::default()).await.expect("uploaded");
        let transport =
            Meddling { inner: HttpTransport::new(), other: owner.blob("a"), left: AtomicUsize::new(changes) };
        let builder = Account::builder().connection_string(server.connection_string()).transport(Arc::new(transport));
        let read = builder.build().expect("an account").container("photos").blob("a").download().await;
        match read {
            Ok(read) => {
                let bytes = read.expect("it is there").bytes;
                assert!(comes_through && bytes.len() == 9 << 20 && bytes.iter().all(|byte| *byte == 0));
            }
            Err(error) => assert!(!comes_through && error.is_changed(), "{error}"),
        }
    }
}

/// A primary that loses the answer to an append and fails once when it is asked for it, and a secondary that has heard of
/// nothing.
#[derive(Debug, Default)]
struct Lagging {
    requests: std::sync::Mutex<Vec<String>>,
}

impl Transport for Lagging {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let mut requests = self.requests.lock().expect("no panic");
        requests.push(format!("{} {}", request.method(), request.uri()));
        let is_secondary = request.uri().path().contains("-secondary");
        let answer =
            Response::builder().header("etag", "\"1\"").header("last-modified", "Fri, 09 Oct 2009 21:04:30 GMT");
        let answer = answer.header("x-ms-blob-type", "AppendBlob").header("content-type", "text/plain");
        let answer = match (request.method(), requests.len()) {
            (&Method::HEAD, _) => answer.header("content-length", "0").body(Bytes::new()),
            (&Method::PUT, 2) => return Box::pin(async { Err(TransportError::lost("lost")) }),
            (&Method::PUT, 3) => {
                answer.status(412).header("x-ms-error-code", "AppendPositionConditionNotMet").body(Bytes::new())
            }
            (&Method::PUT, _) => answer.status(201).body(Bytes::new()),
            _ if is_secondary => answer.status(416).header("x-ms-error-code", "InvalidRange").body(Bytes::new()),
            (_, 4) => answer.status(500).body(Bytes::new()),
            _ => answer.status(206).header("content-range", "bytes 0-1/2").body(Bytes::from_static(b"1\n")),
        };
        Box::pin(async move { Ok(answer.expect("an answer")) })
    }
}

#[tokio::test(start_paused = true)]
async fn c10_whether_an_append_took_place_is_not_asked_of_a_secondary() {
    let transport = Arc::new(Lagging::default());
    let account = Account::builder()
        .connection_string("UseDevelopmentStorage=true")
        .retry(RetryPolicy::exponential().read_from_secondary(true))
        .transport(Arc::clone(&transport) as Arc<dyn Transport>);
    let log = account.build().expect("an account").container("logs").blob("log");
    assert_eq!(log.append("1\n", AppendOptions::default()).await.expect("found done"), 0);
    let requests = transport.requests.lock().expect("no panic").clone();
    assert_eq!(requests.iter().filter(|line| line.starts_with("PUT")).count(), 2, "appended once: {requests:?}");
}
