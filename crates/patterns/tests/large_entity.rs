//! T11: large values in blobs, with writers and workers that die at every request, and readers all the while.

mod harness;

use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use harness::table::interleave;
use harness::{DEATHS, Death, Mortal, account, healthy, settle};
use larimar_client::{Account, DynamicEntity};
use larimar_embedded::Larimar;
use larimar_patterns::Error;
use larimar_patterns::eventual::Worker;
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::large_entity::LargeEntities;
use std::collections::BTreeSet;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn employees(account: &Account, name: &str, grace: Duration) -> LargeEntities {
    let lower = name.to_lowercase();
    let builder = EventualTable::builder(account, &format!("Employees{name}"), &format!("work-{lower}")).grace(grace);
    LargeEntities::new(builder, &account.container(format!("photos-{lower}")), "Employees", ["Essay", "Photo"])
}

fn worker(employees: &LargeEntities) -> Worker<EventualTable> {
    employees.worker().visibility(SECOND).backoff(SECOND, SECOND).attempts_max(100)
}

fn employee(row: &str, turn: i32) -> DynamicEntity {
    DynamicEntity::new("Sales", row).with("Turn", turn)
}

/// A photo that tells which turn it is of, larger than a property may be.
fn photo(turn: i32) -> Vec<u8> {
    turn.to_le_bytes().repeat(20_000)
}

async fn blobs(account: &Account, name: &str) -> BTreeSet<String> {
    let container = account.container(format!("photos-{}", name.to_lowercase()));
    let all: Vec<_> = container.list("").try_collect().await.expect("a list");
    all.into_iter().map(|blob| blob.name).collect()
}

async fn addresses(account: &Account, name: &str) -> BTreeSet<String> {
    let all = account.table(format!("Employees{name}")).query::<DynamicEntity>().all().await.expect("entities");
    let address = |entity: &DynamicEntity, name| entity.get::<Option<String>>(name).expect("an address");
    all.iter().flat_map(|entity| [address(entity, "Photo"), address(entity, "Essay")]).flatten().collect()
}

/// Reads an employee and holds its photo to its turn.
async fn check(employees: &LargeEntities, row: &str, what: &str) -> Option<i32> {
    let found = employees.get::<DynamicEntity>("Sales", row).await.unwrap_or_else(|error| panic!("{what}: {error}"))?;
    let turn = found.entity.get::<i32>("Turn").expect("a turn");
    assert!(found.values["Photo"] == photo(turn), "{what}: the photo of another turn");
    Some(turn)
}

#[tokio::test]
async fn t11_a_write_costs_four_requests_and_one_for_each_value() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let employees = employees(&account, "A", SECOND);
    employees.create_if_missing().await.expect("tables");
    let before = server.requests();
    employees
        .put(&employee("ü", 1), [("Photo", Some(photo(1))), ("Essay", Some(b"once".to_vec()))])
        .await
        .expect("a put");
    let after = server.requests();
    assert_eq!((after.table - before.table, after.queue - before.queue, after.blob - before.blob), (2, 2, 2));
    let refused = employees.put(&employee("1", 1), [("Other", Some(vec![1]))]).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn t11_what_is_not_named_stays() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let employees = employees(&account, "B", SECOND);
    employees.create_if_missing().await.expect("tables");
    let worker = worker(&employees);
    employees
        .put(&employee("1", 1), [("Photo", Some(photo(1))), ("Essay", Some(b"once".to_vec()))])
        .await
        .expect("a put");
    employees.put(&employee("1", 2), [("Photo", Some(photo(2)))]).await.expect("a put");
    assert_eq!(blobs(&account, "B").await.len(), 3, "the old photo waits for the worker");
    worker.drain().await.expect("drained");
    assert_eq!(blobs(&account, "B").await, addresses(&account, "B").await);
    let before = server.requests();
    let found = employees.get::<DynamicEntity>("Sales", "1").await.expect("a read").expect("it is there");
    let after = server.requests();
    assert_eq!((after.table - before.table, after.blob - before.blob), (1, 2));
    assert_eq!((found.values["Essay"].as_slice(), found.values["Photo"] == photo(2)), (&b"once"[..], true));
    employees.put(&found.entity, [("Essay", None::<Vec<u8>>)]).await.expect("a put");
    worker.drain().await.expect("drained");
    assert_eq!(check(&employees, "1", "without an essay").await, Some(2));
    assert_eq!(blobs(&account, "B").await.len(), 1);
    assert!(employees.delete("Sales", "1").await.expect("a delete"));
    assert_eq!(check(&employees, "1", "deleted").await, None);
    worker.drain().await.expect("drained");
    assert!(blobs(&account, "B").await.is_empty());
}

#[tokio::test]
async fn t11_whoever_dies_anywhere_no_address_is_without_its_blob() {
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    let cases = (0..).take(14).flat_map(|k| DEATHS.map(|death| (k, death)));
    let outcomes = join_all(cases.map(async |(k, death)| {
        let (name, what) = (format!("K{k}x{}", death as u8), format!("{death:?} at request {k}"));
        let employees_ = employees(&sound, &name, SECOND);
        employees_.create_if_missing().await.expect("tables");
        employees_.put(&employee("1", 1), [("Photo", Some(photo(1)))]).await.expect("a put");
        worker(&employees_).drain().await.expect("drained");
        let mortal = Mortal::after(k, death);
        let dying = employees(&account(&server, mortal.clone()), &name, SECOND);
        let written = dying.put(&employee("1", 2), [("Photo", Some(photo(2)))]).await;
        let _ = worker(&dying).drain().await;
        let seen = check(&employees_, "1", &what).await;
        assert!(seen == Some(2) || written.is_err() && seen == Some(1), "{what}: {seen:?}");
        let worker = worker(&employees_);
        settle(&worker).await;
        assert!(check(&employees_, "1", &what).await >= seen, "{what}");
        assert_eq!(blobs(&sound, &name).await, addresses(&sound, &name).await, "{what}: no orphan is left");
        mortal.deliver_late().await;
        settle(&worker).await;
        check(&employees_, "1", &format!("{what}, late")).await;
        employees_.sweep(Duration::ZERO).await.expect("swept");
        check(&employees_, "1", &format!("{what}, swept")).await;
        assert_eq!(blobs(&sound, &name).await, addresses(&sound, &name).await, "{what}: swept");
        mortal.is_dead()
    }))
    .await;
    assert!(outcomes.iter().any(|is_dead| !is_dead), "more requests than deaths were tried");
}

/// An upload that arrives after the worker cleaned up is removed by the second look.
#[tokio::test]
async fn t11_a_blob_that_comes_late_is_removed_too() {
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    let make = |account: &Account| {
        let builder = EventualTable::builder(account, "Employees", "work").grace(SECOND).tombstones_for(10 * SECOND);
        LargeEntities::new(builder, &account.container("photos-late"), "Employees", ["Photo"])
    };
    let employees = make(&sound);
    employees.create_if_missing().await.expect("tables");
    // Read the entity, put the intent: the third request is the upload.
    let mortal = Mortal::after(2, Death::UnderWay);
    let lost = make(&account(&server, mortal.clone())).put(&employee("1", 1), [("Photo", Some(photo(1)))]).await;
    assert!(lost.is_err());
    let worker = worker(&employees);
    while worker.stats().done == 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        worker.drain().await.expect("drained");
    }
    mortal.deliver_late().await;
    assert_eq!(blobs(&sound, "late").await.len(), 1, "it came late");
    while employees.table().queue().backlog().await.expect("a count") > 0 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        worker.drain().await.expect("drained");
    }
    assert!(blobs(&sound, "late").await.is_empty());
}

/// An upload that takes longer than the grace: workers leave its intent alone.
#[tokio::test]
async fn t11_a_slow_upload_is_waited_for() {
    #[derive(Debug)]
    struct Slow(larimar_client::HttpTransport);
    impl larimar_client::Transport for Slow {
        fn send(&self, request: harness::Request) -> larimar_client::BoxFuture<'_, harness::Answer> {
            Box::pin(async move {
                if request.uri().path().contains("photos") {
                    tokio::time::sleep(9 * SECOND).await;
                }
                self.0.send(request).await
            })
        }
    }
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    let employees_ = employees(&sound, "S", 4 * SECOND);
    employees_.create_if_missing().await.expect("tables");
    let slow = employees(&account(&server, std::sync::Arc::new(Slow(Default::default()))), "S", 4 * SECOND);
    let before = server.requests().blob;
    let worker = worker(&employees_);
    let done = tokio::sync::Notify::new();
    let put = async {
        slow.put(&employee("1", 1), [("Photo", Some(photo(1)))]).await.expect("a put");
        done.notify_one();
    };
    tokio::join!(put, worker.run(done.notified()));
    assert_eq!(server.requests().blob - before, 1, "it was uploaded once");
    settle(&worker).await;
    assert_eq!(check(&employees_, "1", "uploaded slowly").await, Some(1));
}

/// Writers, workers and readers at the same time: readers see a photo of the turn, always.
#[tokio::test]
async fn t11_random_interleavings_never_show_an_address_without_its_blob() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    for seed in harness::seeds() {
        let name = format!("R{seed}");
        let make = |account: &Account| {
            let employees = employees(account, &name, Duration::ZERO);
            (employees.table().clone(), employees)
        };
        interleave(&server, seed, &format!("work-r{seed}"), make, 16, |employees, _, random| {
            let (employees, turn, row) = (employees.clone(), random.below(1000) as i32, ["1", "2"][random.below(2)]);
            let kind = random.below(5);
            Box::pin(async move {
                match kind {
                    0 => drop(employees.delete("Sales", row).await),
                    1 | 2 => match employees.get::<DynamicEntity>("Sales", row).await {
                        Ok(None) | Err(Error::Client(_)) => {}
                        Ok(Some(found)) => {
                            let turn = found.entity.get::<i32>("Turn").expect("a turn");
                            assert!(found.values["Photo"] == photo(turn), "the photo of another turn");
                        }
                        Err(other) => panic!("{other}"),
                    },
                    _ => drop(employees.put(&employee(row, turn), [("Photo", Some(photo(turn)))]).await),
                }
            })
        })
        .await;
        let employees = employees(&account, &name, SECOND);
        for row in ["1", "2"] {
            check(&employees, row, &format!("seed {seed}")).await;
        }
        employees.sweep(Duration::ZERO).await.expect("swept");
        assert_eq!(blobs(&account, &name).await, addresses(&account, &name).await, "seed {seed}");
    }
}
