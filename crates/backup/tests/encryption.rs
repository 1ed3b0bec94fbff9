//! Encrypted places: nothing of the content shows, and nothing is read with another key or under another name.

use crate::round_trip::{Store, files};
use larimar_backup::{BackupError, Generation, Key, Place, Rate, back_up, verify};
use std::path::Path;

fn key(folder: &Path, name: &str) -> Key {
    let file = folder.join(name);
    Key::create(&file).expect("a key file");
    Key::read(&file).expect("a key")
}

#[tokio::test]
async fn an_encrypted_backup_is_restored_with_its_key_and_shows_nothing_without() {
    let folder = larimar_testkit::memory_directory();
    let bare = Place::directory(folder.path().join("place"));
    let place = bare.clone().encrypted(&key(folder.path(), "key"));
    let store = Store::new();
    let photos = store.create_container("photos").await;
    store.put_blob(photos, "small", vec![1; 1000]).await;
    store.put_blob(photos, "in-a-piece", b"a text that nobody else reads".repeat(10_000)).await;
    let first = store.back_up(&place).await;
    let again = store.back_up(&place).await;
    assert!(again.totals.sent_bytes < first.totals.sent_bytes / 10, "chunks are known by their content");
    let (copy, _) = Store::restored(&place, None).await.expect("a restore");
    assert_eq!(copy.state().await, store.state().await);
    let (_, problems) = verify(&place, &first.name(), &|_| ()).await.expect("a generation");
    assert!(problems.is_empty(), "{problems:?}");
    let plain = Place::directory(folder.path().join("plain"));
    store.back_up(&plain).await;
    let names = |place: &str| {
        files(&folder.path().join(place).join("chunks"))
            .into_iter()
            .map(|file| file.file_name().expect("a name").to_owned())
    };
    assert!(names("place").all(|name| names("plain").all(|other| other != name)), "names do not show the content");
    for file in files(&folder.path().join("place")).iter().filter(|file| !file.ends_with("larimar-backup")) {
        let bytes = std::fs::read(file).expect("a file");
        assert!(bytes.is_empty() || bytes.starts_with(b"LARENC1\n"), "{}", file.display());
        assert!(!bytes.windows(13).any(|window| window == b"a text that n"), "{}", file.display());
    }
}

#[tokio::test]
async fn a_place_needs_its_key_and_is_never_half_encrypted() {
    let folder = larimar_testkit::memory_directory();
    let (one, other) = (key(folder.path(), "one"), key(folder.path(), "other"));
    let store = Store::new();
    let bare = |name: &str| Place::directory(folder.path().join(name));
    store.back_up(&bare("plain")).await;
    store.back_up(&bare("secret").encrypted(&one)).await;
    for (place, reason) in [
        (bare("secret"), "secret is encrypted: give the key file"),
        (bare("secret").encrypted(&other), "is encrypted with another key"),
        (bare("plain").encrypted(&one), "plain is not encrypted"),
    ] {
        let before = files(folder.path());
        let refused = back_up(&*store.engine, Some(&*store.bytes), &place, Rate::Max, &|_| ()).await;
        let listed = Generation::list(&place).await;
        for error in [refused.expect_err("a refusal"), listed.expect_err("a refusal")] {
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert_eq!(files(folder.path()), before, "nothing was written");
    }
    let mark = folder.path().join("secret/larimar-backup");
    std::fs::write(&mark, &std::fs::read(&mark).expect("a mark")[..70]).expect("a mark");
    let error = Generation::list(&bare("secret").encrypted(&one)).await.expect_err("a damaged mark");
    assert!(matches!(error, BackupError::Damaged { .. }), "{error}");
}

#[tokio::test]
async fn an_encrypted_file_that_was_changed_or_swapped_is_named() {
    let folder = larimar_testkit::memory_directory();
    let place = Place::directory(folder.path().join("place")).encrypted(&key(folder.path(), "key"));
    let store = Store::new();
    let photos = store.create_container("photos").await;
    store.put_blob(photos, "small", vec![1; 1000]).await;
    store.put_blob(photos, "in-a-piece", vec![2; 300_000]).await;
    let name = store.back_up(&place).await.name();
    let chunks = files(&folder.path().join("place/chunks"));
    let whole: Vec<_> = chunks.iter().map(|file| std::fs::read(file).expect("a file")).collect();
    for (at, file) in chunks.iter().enumerate() {
        let mut flipped = whole[at].clone();
        flipped[60] ^= 1;
        for damaged in [&flipped, &whole[(at + 1) % whole.len()]] {
            std::fs::write(file, damaged).expect("a file");
            let (_, problems) = verify(&place, &name, &|_| ()).await.expect("a generation");
            let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert!(said.iter().any(|problem| problem.contains(&file.display().to_string())), "{said:?}");
        }
        std::fs::write(file, &whole[at]).expect("a file");
    }
    let (_, problems) = verify(&place, &name, &|_| ()).await.expect("a generation");
    assert!(problems.is_empty(), "{problems:?}");
}
