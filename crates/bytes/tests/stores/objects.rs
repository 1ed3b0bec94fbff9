//! Objects keep every promise of a store of bytes: in an S3 server and in a shared folder.

use crate::s3::S3;
use larimar_bytes::{ObjectBytes, ObjectSettings};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::ByteStore;
use larimar_testkit::bytes::{OWNER, Rows, payload, put, read_all};
use std::ops::Deref;
use std::time::Duration;

/// A store with what it needs to live.
struct Temporary {
    store: ObjectBytes,
    folder: tempfile::TempDir,
    _server: Option<S3>,
}

impl Temporary {
    async fn s3() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = S3::start(folder.path()).await;
        let store = ObjectBytes::open(&server.settings()).expect("the store opens");
        Self { store, folder, _server: Some(server) }
    }

    fn folder() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ObjectBytes::open(&folder_settings(&folder)).expect("the store opens");
        Self { store, folder, _server: None }
    }
}

fn folder_settings(folder: &tempfile::TempDir) -> ObjectSettings {
    let url = format!("file://{}/shared", folder.path().display());
    ObjectSettings { url, options: Vec::new(), grace: Duration::ZERO }
}

impl Deref for Temporary {
    type Target = ObjectBytes;

    fn deref(&self) -> &ObjectBytes {
        assert!(self.folder.path().exists(), "the folder lives as long as the store");
        &self.store
    }
}

mod in_s3 {
    use super::*;
    larimar_testkit::bytes_conformance!(Temporary::s3().await);
}

mod in_a_folder {
    use super::*;
    larimar_testkit::bytes_conformance!(Temporary::folder());
}

#[tokio::test]
async fn payloads_are_there_for_every_server_that_opens_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = S3::start(&folder.path().join("s3")).await;
    for settings in [server.settings(), folder_settings(&folder)] {
        let first = ObjectBytes::open(&settings).expect("the store opens");
        let second = ObjectBytes::open(&settings).expect("the store opens");
        let mut rows = Rows::default();
        for size in [0, 1000, 6 << 20] {
            let bytes = payload(size as u64, size);
            let extent = put(&first, OWNER, &bytes).await.expect("a payload is written");
            rows.point(OWNER, extent);
            assert!(read_all(&second, &extent).await.expect("it is read") == bytes);
        }
        let swept = second.sweep(&rows).await.expect("a sweep ends");
        assert_eq!((swept.seen, swept.removed), (3, 0));
    }
}

#[tokio::test]
async fn a_damaged_object_is_found_out_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = ObjectBytes::open(&folder_settings(&folder)).expect("the store opens");
    let bytes = payload(1, 200_000);
    let extent = put(&store, OWNER, &bytes).await.expect("a payload is written");
    let name = extent.file_name();
    let path = folder.path().join("shared").join(&name[..2]).join(&name);
    let whole = std::fs::read(&path).expect("the object is a file");

    let mut flipped = whole.clone();
    flipped[extent.offset as usize + 70_000] ^= 1;
    std::fs::write(&path, &flipped).expect("the file is written");
    let fault = store.read(&extent, 65_536..65_537).await.expect_err("the second frame is damaged");
    assert!(matches!(&fault, Fault::Damaged(text) if text.contains(&name)), "{fault}");
    assert!(store.read(&extent, 0..65_536).await.expect("the first is not") == bytes[..65_536]);

    std::fs::write(&path, &whole[..whole.len() - 1]).expect("the file is written");
    let fault = store.read(&extent, 199_999..200_000).await.expect_err("the end is missing");
    assert!(matches!(fault, Fault::Damaged(_)), "{fault}");
}

#[tokio::test]
async fn a_store_out_of_reach_is_unavailable() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = S3::start(folder.path()).await;
    let mut settings = server.settings();
    settings.options.retain(|(key, _)| key != "AWS_SECRET_ACCESS_KEY");
    settings.options.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "another".to_owned()));
    let store = ObjectBytes::open(&settings).expect("nothing is asked yet");
    for size in [10, 12 << 20] {
        let fault = put(&store, OWNER, &payload(1, size)).await.expect_err("the signature is wrong");
        assert!(matches!(&fault, Fault::Unavailable(text) if text.contains("SignatureDoesNotMatch")), "{fault}");
    }
    assert!(matches!(store.sweep(&Rows::default()).await, Err(Fault::Unavailable(_))));
}
