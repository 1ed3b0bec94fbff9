//! T11: large values in blobs, with writers and workers that die at every request, and readers all the while.

use crate::harness::table::interleave;
use crate::harness::{self, DEATHS, Death, Mortal, account, healthy, settle};
use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use larimar_client::{Account, DynamicEntity};
use larimar_embedded::Larimar;
use larimar_patterns::Error;
use larimar_patterns::eventual::Worker;
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::large_entity::LargeEntities;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn employees(account: &Account, name: &str, grace: Duration) -> LargeEntities {
    let lower = name.to_lowercase();
    let builder = EventualTable::builder(account, &format!("Employees{name}"), &format!("work-{lower}")).grace(grace);
    LargeEntities::new(builder, &account.container(format!("photos-{lower}")), "Employees", ["Essay", "Photo"])
}

fn worker(employees: &LargeEntities) -> Worker<EventualTable> {
    harness::table::worker(employees.table())
}

fn employee(row: &str, turn: i32) -> DynamicEntity {
    DynamicEntity::new("Sales", row).with("Turn", turn)
}

/// A photo that contains the number of its turn, larger than a property may be.
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
    let start = async |name: &str| {
        let employees = employees(&sound, name, SECOND);
        employees.create_if_missing().await.expect("tables");
        employees.put(&employee("1", 1), [("Photo", Some(photo(1)))]).await.expect("a put");
        worker(&employees).drain().await.expect("drained");
        employees
    };
    start("Calm").await;
    let calm = Mortal::never();
    let living = employees(&account(&server, calm.clone()), "Calm", 60 * SECOND);
    living.put(&employee("1", 2), [("Photo", Some(photo(2)))]).await.expect("a put");
    worker(&living).visibility(60 * SECOND).drain().await.expect("drained");
    assert!(calm.sent() <= 14, "{} requests, and not all of them are died at", calm.sent());
    let cases = (0..).take(14).flat_map(|k| DEATHS.map(|death| (k, death)));
    join_all(cases.map(async |(k, death)| {
        let (name, what) = (format!("K{k}x{}", death as u8), format!("{death:?} at request {k}"));
        let employees_ = start(&name).await;
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
    }))
    .await;
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

/// A value that is read in parts, and replaced when the first of them was read.
#[tokio::test]
async fn t11_a_value_that_goes_while_it_is_read_is_read_anew() {
    #[derive(Debug)]
    struct Between(larimar_client::HttpTransport, [tokio::sync::Notify; 2], AtomicBool);
    impl larimar_client::Transport for Between {
        fn send(&self, request: harness::Request) -> larimar_client::BoxFuture<'_, harness::Answer> {
            Box::pin(async move {
                let range = request.headers().get("x-ms-range").and_then(|range| range.to_str().ok());
                let is_first = range.is_none_or(|range| range.starts_with("bytes=0-"));
                if !is_first && !self.2.swap(true, SeqCst) {
                    self.1[0].notify_one();
                    self.1[1].notified().await;
                }
                self.0.send(request).await
            })
        }
    }
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    let employees_ = employees(&sound, "V", SECOND);
    employees_.create_if_missing().await.expect("tables");
    let value = |turn: u8| vec![turn; (8 << 20) + 1];
    employees_.put(&employee("1", 1), [("Photo", Some(value(1)))]).await.expect("a put");
    let between = std::sync::Arc::new(Between(Default::default(), Default::default(), Default::default()));
    let reader = employees(&account(&server, between.clone()), "V", SECOND);
    let replace = async {
        between.1[0].notified().await;
        employees_.put(&employee("1", 2), [("Photo", Some(value(2)))]).await.expect("a put");
        worker(&employees_).drain().await.expect("drained");
        between.1[1].notify_one();
    };
    let (found, ()) = tokio::join!(reader.get::<DynamicEntity>("Sales", "1"), replace);
    let found = found.expect("a read").expect("it is there");
    assert!(found.values["Photo"] == value(2), "the existing one now");
}

/// Keys that would mean something else in the path of a blob.
#[tokio::test]
async fn t11_odd_keys_have_blobs_and_a_sweep_tells_whose_they_are() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let employees = employees(&account, "O", SECOND);
    employees.create_if_missing().await.expect("tables");
    let odd = [".", "..", "", "a.", "%2e%2e", " ", "'", "+&=", "ü\u{10FFFD}\u{FFFF}"];
    for partition in odd {
        for row in odd {
            let entity = DynamicEntity::new(partition, row).with("Turn", 1);
            employees.put(&entity, [("Photo", Some(b"photo".to_vec()))]).await.expect("a put");
            let found = employees.get::<DynamicEntity>(partition, row).await.expect("a read").expect("it is there");
            assert_eq!(found.values["Photo"], b"photo", "{partition:?} {row:?}");
        }
    }
    assert_eq!(employees.sweep(Duration::ZERO).await.expect("swept").corrected, 0);
    let stray = account.container("photos-o").blob("Employees/.2e/a.2e/stray");
    stray.upload(b"stray".to_vec(), Default::default()).await.expect("a blob without an entity");
    let swept = employees.sweep(Duration::ZERO).await.expect("swept");
    assert_eq!((swept.places, swept.corrected), (82, 1));
    assert_eq!(blobs(&account, "O").await, addresses(&account, "O").await);
}

/// An address that others wrote, of another entity's blob: it does not go with an entity that is not its own.
#[tokio::test]
async fn t11_only_an_entitys_own_blobs_go_with_it() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let employees = employees(&account, "W", SECOND);
    employees.create_if_missing().await.expect("tables");
    employees.put(&employee("1", 1), [("Photo", Some(photo(1)))]).await.expect("a put");
    let address = addresses(&account, "W").await.pop_first().expect("an address");
    employees.table().insert(&employee("2", 1).with("Photo", address)).await.expect("an insert past the values");
    employees.put(&employee("2", 2), [("Photo", Some(photo(2)))]).await.expect("a put");
    worker(&employees).drain().await.expect("drained");
    assert_eq!(check(&employees, "1", "the other's photo").await, Some(1));
    assert_eq!(check(&employees, "2", "its own photo").await, Some(2));
}

/// What could not be read again is refused before anything is done.
#[tokio::test]
async fn t11_a_value_that_is_too_large_is_refused() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let employees = employees(&account, "X", SECOND);
    employees.create_if_missing().await.expect("tables");
    let before = server.requests();
    let refused = employees.put(&employee("1", 1), [("Photo", Some(vec![0; (256 << 20) + 1]))]).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let after = server.requests();
    assert_eq!((after.table, after.queue, after.blob), (before.table, before.queue, before.blob));
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
