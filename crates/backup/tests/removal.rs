//! Old backups are removed, and those that are kept are restored as before.

use crate::round_trip::{Store, fill};
use larimar_backup::{
    BackupError, BackupJob, Generation, JobState, Keep, Key, Place, Rate, Removing, SingleJob, Wanted, Writers, remove,
    verify,
};
use larimar_engine::SpaceKind;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use std::sync::Arc;
use std::time::Duration;

const OTHERS: Writers<'static> = Writers::Others { is_idle: false };

fn keep(count: usize) -> Removing {
    Removing::Surplus(Keep { time: None, count: Some(count) })
}

async fn assert_whole(place: &Place) {
    for name in Generation::list(place).await.expect("backups") {
        let (_, problems) = verify(place, &name, &|_| ()).await.expect("a generation");
        assert!(problems.is_empty(), "{name}: {problems:?}");
    }
}

#[tokio::test]
async fn what_is_kept_is_restored_and_the_rest_gives_its_room_back() {
    let folder = larimar_testkit::memory_directory();
    Key::create(&folder.path().join("key")).expect("a key file");
    let key = Key::read(&folder.path().join("key")).expect("a key");
    let plain = Place::directory(folder.path().join("plain"));
    for place in [plain, Place::directory(folder.path().join("encrypted")).encrypted(&key)] {
        let store = Store::new();
        let photos = store.create_container("photos").await;
        store.put_blob(photos, "replaced", vec![1; 300_000]).await;
        store.back_up(&place).await;
        store.put_blob(photos, "replaced", vec![2; 1000]).await;
        let before = store.state().await;
        let second = store.back_up(&place).await.name();
        store.put_blob(photos, "another", vec![3; 1000]).await;
        let third = store.back_up(&place).await.name();
        let shown = remove(&place, &keep(2), OTHERS, true).await.expect("a dry run");
        assert_eq!(Generation::list(&place).await.expect("backups").len(), 3, "a dry run changes nothing");
        let removed = remove(&place, &keep(2), OTHERS, false).await.expect("a removal");
        assert_eq!((removed.generations.len(), &removed), (1, &shown));
        assert!(removed.chunk_bytes > 300_000, "the large payload is in the first backup alone: {removed:?}");
        assert_whole(&place).await;
        let (copy, _) = Store::restored(&place, Some(&second)).await.expect("a restore");
        assert_eq!(copy.state().await, before);
        let again = remove(&place, &keep(2), OTHERS, false).await.expect("a removal");
        assert_eq!((again.generations.len(), again.chunks), (0, 0));
        let named = |name: &str| Removing::Named(vec![name.to_owned()]);
        remove(&place, &named(&second), OTHERS, false).await.expect("a removal");
        let none = remove(&place, &named(&second), OTHERS, false).await;
        assert!(matches!(none, Err(BackupError::NoGeneration { .. })));
        assert!(matches!(remove(&place, &named(&third), OTHERS, false).await, Err(BackupError::LastBackup(_))));
        assert_eq!(Generation::list(&place).await.expect("backups"), [third]);
        assert_whole(&place).await;
        // The next backup sends what is missing again.
        store.back_up(&place).await;
        assert_whole(&place).await;
    }
}

#[tokio::test]
async fn an_object_store_is_emptied_by_its_server_or_while_it_is_idle() {
    let objects = Arc::new(InMemory::new());
    let place = Place::objects(objects, "some/where".into(), "s3://b/some/where".to_owned());
    let store = Store::new();
    let (bulk, _) = fill(&store).await;
    let first = store.back_up(&place).await.name();
    store.put_row(bulk, "00300", b"changed").await;
    store.back_up(&place).await;
    assert!(matches!(remove(&place, &keep(1), OTHERS, false).await, Err(BackupError::NotLocked(_))));
    let removed = remove(&place, &keep(1), Writers::Others { is_idle: true }, false).await.expect("a removal");
    assert_eq!((removed.generations, removed.chunks), (vec![first], 0), "young chunks stay");
    let lock = Arc::default();
    let removed =
        remove(&place, &keep(1), Writers::Own { lock: &lock, is_archiving: false }, false).await.expect("a removal");
    assert!(removed.chunks > 1, "{removed:?}");
    assert_whole(&place).await;
}

#[tokio::test]
async fn a_server_removes_old_backups_after_each_one() {
    let folder = larimar_testkit::memory_directory();
    let place = Place::directory(folder.path().join("place"));
    let store = Store::new();
    let (bulk, _) = fill(&store).await;
    let keep = Keep { time: None, count: Some(2) };
    let job = BackupJob::new(Arc::clone(&store.engine), Some(Arc::clone(&store.bytes)), keep);
    for round in 0..4 {
        store.put_row(bulk, "00300", format!("changed {round}").as_bytes()).await;
        job.start(place.clone(), Rate::Max).expect("a start");
        while job.status().state == JobState::Running {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let status = job.status();
        assert_eq!((status.state, &status.error, &status.removal_error), (JobState::Done, &None, &None));
        assert_eq!(status.removed.expect("a removal").generations.len(), usize::from(round > 1), "{round}");
    }
    assert_eq!(Generation::list(&place).await.expect("backups").len(), 2);
    assert_whole(&place).await;
    let (copy, _) = Store::restored(&place, None).await.expect("a restore");
    assert_eq!(copy.state().await, store.state().await);
}

#[tokio::test]
async fn backups_stay_while_one_is_restored_into_the_server() {
    let slow = ThrottleConfig { wait_get_per_call: Duration::from_millis(20), ..ThrottleConfig::default() };
    let objects = Arc::new(ThrottledStore::new(InMemory::new(), slow));
    let place = Place::objects(objects, "some/where".into(), "s3://b/some/where".to_owned());
    let store = Store::new();
    let photos = store.create_container("photos").await;
    store.put_blob(photos, "photo", vec![1; 300_000]).await;
    store.back_up(&place).await;
    let lock: Arc<tokio::sync::RwLock<()>> = Arc::default();
    let (engine, bytes) = (Arc::clone(&store.engine), Some(Arc::clone(&store.bytes)));
    let restores = SingleJob::new(engine, bytes, false, Arc::clone(&lock));
    let wanted = Wanted::read(SpaceKind::Container, "photos=others", "one", "one").expect("a name");
    restores.start(place, None, vec![wanted], Rate::Max).expect("a start");
    let mut held = 0;
    loop {
        let (status, is_free) = (restores.status(), lock.try_write().is_ok());
        if status.state != JobState::Running {
            assert_eq!((status.state, status.error), (JobState::Done, None));
            break;
        }
        if status.generation.is_some() && restores.status().state == JobState::Running && status.totals.payloads == 0 {
            assert!(!is_free, "it reads chunks");
            held += 1;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(held > 0 && lock.try_write().is_ok());
}
