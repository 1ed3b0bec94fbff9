//! Objects keep every promise of a store of bytes: in an S3 server and in a shared folder.

use crate::stores::s3::{BUCKET, S3};
use larimar_bytes::{ObjectBytes, ObjectSettings, Removal};
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter};
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
        let server = S3::start(folder.path(), Signed).await;
        let store = ObjectBytes::open(&s3_settings(&server)).expect("the store opens");
        Self { store, folder, _server: Some(server) }
    }

    fn folder() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = ObjectBytes::open(&folder_settings(&folder)).expect("the store opens");
        Self { store, folder, _server: None }
    }
}

/// Every request with a signature is carried out.
struct Signed;

impl s3s::access::S3Access for Signed {}

/// Settings for a store in the server, without a time of grace. Some are in the URL.
fn s3_settings(server: &S3) -> ObjectSettings {
    let [(_, endpoint), _, _, id, secret] = server.variables();
    let options = [id, secret, ("UNRELATED", "x".to_owned())];
    ObjectSettings {
        url: format!("s3://{BUCKET}/some/prefix?endpoint={endpoint}&allow_http=true&region=here"),
        options: options.map(|(key, value)| (key.to_owned(), value)).into(),
        grace: Duration::ZERO,
        removal: Removal::default(),
    }
}

fn folder_settings(folder: &tempfile::TempDir) -> ObjectSettings {
    let url = format!("file://{}/shared", folder.path().display());
    ObjectSettings { url, options: Vec::new(), grace: Duration::ZERO, removal: Removal::default() }
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
    let server = S3::start(&folder.path().join("s3"), Signed).await;
    for settings in [s3_settings(&server), folder_settings(&folder)] {
        let first = ObjectBytes::open(&settings).expect("the store opens");
        let second = ObjectBytes::open(&settings).expect("the store opens");
        let mut rows = Rows::default();
        for size in [0, 1000, 6 << 20] {
            let bytes = payload(size as u64, size);
            let extent = put(&first, OWNER, &bytes).await.expect("a payload is written");
            rows.point(OWNER, extent);
            assert!(read_all(&second, &extent).await.expect("it is read") == bytes);
        }
        let reclaimed = second.reclaim(&rows).await.expect("a sweep ends");
        assert_eq!((reclaimed.seen, reclaimed.removed), (3, 0));
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
    let server = S3::start(folder.path(), Signed).await;
    let mut settings = s3_settings(&server);
    settings.options.retain(|(key, _)| key != "AWS_SECRET_ACCESS_KEY");
    settings.options.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "another".to_owned()));
    let store = ObjectBytes::open(&settings).expect("nothing is asked yet");
    for size in [10, 12 << 20] {
        let fault = put(&store, OWNER, &payload(1, size)).await.expect_err("the signature is wrong");
        assert!(matches!(&fault, Fault::Unavailable(text) if text.contains("SignatureDoesNotMatch")), "{fault}");
    }
    assert!(matches!(store.reclaim(&Rows::default()).await, Err(Fault::Unavailable(_))));
}

/// The files below a folder whose names have a part after `#`, as those of uploads that are not finished.
fn temporary_files(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(temporary_files(&path));
        } else if path.to_string_lossy().contains('#') {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn a_sweep_removes_what_a_killed_process_was_uploading_into_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut settings = folder_settings(&folder);
    let killed = ObjectBytes::open(&settings).expect("the store opens");
    let mut writer = killed.begin(OWNER, None).await.expect("a payload begins");
    writer.write(payload(1, 11 << 20)).await.expect("bytes are taken");
    // A process that is killed drops nothing.
    std::mem::forget(writer);
    assert_eq!(temporary_files(folder.path()).len(), 1, "an upload is under way");

    killed.reclaim(&Rows::default()).await.expect("a sweep ends");
    assert_eq!(temporary_files(folder.path()).len(), 1, "its own process knows of the upload");
    settings.grace = Duration::from_secs(3600);
    let young = ObjectBytes::open(&settings).expect("the store opens");
    young.reclaim(&Rows::default()).await.expect("a sweep ends");
    assert_eq!(temporary_files(folder.path()).len(), 1, "it may be another server's");
    settings.grace = Duration::ZERO;
    let after = ObjectBytes::open(&settings).expect("the store opens");
    after.reclaim(&Rows::default()).await.expect("a sweep ends");
    assert_eq!(temporary_files(folder.path()), Vec::<String>::new());
}

#[tokio::test]
async fn payloads_stay_while_their_removal_is_refused_or_nobody_answers() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let folder = tempfile::tempdir().expect("a folder");
    let (asked, allowed_after) = (Arc::new(AtomicUsize::new(0)), 2);
    let count = Arc::clone(&asked);
    let removal = Removal::new(move || {
        let number = count.fetch_add(1, Ordering::Relaxed);
        let answer = match number {
            0 => Ok(false),
            1 => Err(Fault::Unavailable("no database".to_owned())),
            _ => Ok(true),
        };
        Box::pin(async { answer })
    });
    let store = ObjectBytes::open(&ObjectSettings { removal, ..folder_settings(&folder) }).expect("the store opens");
    let mut extents = Vec::new();
    for seed in 0..20 {
        extents.push(put(&store, OWNER, &payload(seed, 100)).await.expect("a payload"));
    }
    // Each with a call of its own, as deletes of blobs do.
    extents.iter().for_each(|extent| store.discard(vec![*extent]));
    while asked.load(Ordering::Relaxed) < allowed_after {
        for extent in &extents {
            read_all(&store, extent).await.expect("it is still there");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while store.statistics().discarded > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(store.read(&extents[0], 0..1).await.is_err());
    assert_eq!(asked.load(Ordering::Relaxed), 3, "an answer is valid for all that was discarded before");
}
