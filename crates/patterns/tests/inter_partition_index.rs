//! T2: copies in other partitions, with writers and workers that die at every request, and intents in any order.

use crate::harness::table::{die_everywhere, interleave, patient, taken, worker};
use crate::harness::{self, Death, Mortal, Random, account, healthy, settle};
use futures_util::future::join_all;
use larimar_client::{Account, BoxFuture, DynamicEntity, IfMatch};
use larimar_embedded::Larimar;
use larimar_patterns::Error;
use larimar_patterns::eventual::Work;
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::inter_partition_index::InterPartitionIndex;
use std::collections::BTreeSet;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Employees found by email, in the same table, and by their boss, in another.
fn employees(account: &Account, name: &str) -> (EventualTable, (InterPartitionIndex, InterPartitionIndex)) {
    let queue = format!("work-{}", name.to_lowercase());
    let table = format!("Employees{name}");
    let by_email = InterPartitionIndex::on_property(&account.table(&table), "email", "Email");
    let by_boss = InterPartitionIndex::on_property(&account.table(format!("Bosses{name}")), "boss", "Boss")
        .in_partition(|_| "all".to_owned())
        .copy_only(["Boss"]);
    let builder = EventualTable::builder(account, &table, &queue).derive(&by_email).derive(&by_boss);
    (builder.grace(SECOND).build(), (by_email, by_boss))
}

fn employee(row: &str, email: &str, boss: &str, turn: i32) -> DynamicEntity {
    DynamicEntity::new("Sales", row).with("Email", email).with("Boss", boss).with("Turn", turn)
}

/// What the indexes must say, and what they say: value, row key and, where it is copied, the turn.
async fn compare(account: &Account, name: &str, what: &str) {
    let (_, (by_email, by_boss)) = employees(account, name);
    let all = account.table(format!("Employees{name}")).query::<DynamicEntity>().partition("Sales").all();
    let (mut emails, mut bosses) = (BTreeSet::new(), BTreeSet::new());
    for primary in all.await.expect("primaries") {
        if let Some(email) = primary.get::<Option<String>>("Email").expect("a text") {
            emails.insert((email, primary.row_key.clone(), Some(primary.get::<i32>("Turn").expect("a turn"))));
            bosses.insert((primary.get::<String>("Boss").expect("a boss"), primary.row_key, None));
        }
    }
    let read = |found: Vec<DynamicEntity>, value: &str| -> BTreeSet<_> {
        let text = |entity: &DynamicEntity| entity.get::<String>(value).expect("a value");
        found.iter().map(|e| (text(e), e.row_key.clone(), e.get::<Option<i32>>("Turn").expect("a turn"))).collect()
    };
    let found = by_email.find_prefix("email_Sales", "").await.expect("copies");
    assert_eq!(read(found, "Email"), emails, "{what}: by email");
    let found = by_boss.find_prefix("all", "").await.expect("copies");
    assert_eq!(read(found, "Boss"), bosses, "{what}: by boss");
}

/// An employee as an older release knows it.
#[derive(larimar_client::Entity)]
struct Older {
    #[entity(partition_key)]
    department: String,
    #[entity(row_key)]
    id: String,
    email: Option<String>,
    turn: i32,
}

#[tokio::test]
async fn t2_an_update_keeps_properties_that_its_type_does_not_know() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, (by_email, _)) = employees(&account, "Unknown");
    table.create_if_missing().await.expect("tables");
    let worker = worker(&table);
    table.insert(&employee("1", "old@x", "Jun", 1).with("Room", 12)).await.expect("an insert");
    let change = |one: &mut Older| {
        one.email = Some("new@x".to_owned());
        one.turn += 1;
    };
    table.update("Sales", "1", change).await.expect("an update");
    worker.drain().await.expect("drained");
    let expected = employee("1", "new@x", "Jun", 2).with("Room", 12).take_properties();
    let mut primary = table.get::<DynamicEntity>("Sales", "1").await.expect("a read").expect("it is there");
    assert_eq!(primary.take_properties(), expected);
    let mut copies: Vec<DynamicEntity> = by_email.find("email_Sales", "new@x").await.expect("a look");
    assert_eq!(copies.iter_mut().map(DynamicEntity::take_properties).collect::<Vec<_>>(), [expected]);
    compare(&account, "Unknown", "updated").await;
}

#[tokio::test]
async fn t2_copies_follow_inserts_changes_and_deletes() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, (by_email, by_boss)) = employees(&account, "A");
    table.create_if_missing().await.expect("tables");
    let worker = worker(&table);
    table.insert(&employee("000123", "don@contoso.com", "Jun", 1)).await.expect("an insert");
    table.insert(&employee("000456", "don@contoso.com.mx", "Jun", 1)).await.expect("an insert");
    assert!(matches!(table.insert(&employee("000123", "x", "y", 9)).await, Err(Error::Exists)));
    assert!(by_email.find::<DynamicEntity>("email_Sales", "don@contoso.com").await.expect("a look").is_empty());
    worker.drain().await.expect("drained");
    let found: Vec<DynamicEntity> = by_email.find("email_Sales", "don@contoso.com").await.expect("a look");
    assert_eq!(found.len(), 1, "a value that goes on like it is another: {found:?}");
    let (mut copy, mut primary) =
        (found[0].clone(), table.get::<DynamicEntity>("Sales", "000123").await.expect("a read"));
    copy.timestamp = None;
    let primary = primary.as_mut().expect("it is there");
    let etag = primary.etag.take().expect("a version");
    primary.timestamp = None;
    assert_eq!(copy, *primary, "the same keys and properties");
    let found: Vec<DynamicEntity> = by_boss.find("all", "Jun").await.expect("a look");
    assert_eq!(found.iter().map(|e| e.row_key.as_str()).collect::<Vec<_>>(), ["000123", "000456"]);
    assert_eq!(found[0].properties().len(), 1, "only what was asked for");
    compare(&account, "A", "inserted").await;

    let etag = table.replace(&employee("000123", "don@fabrikam.com/x", "Kim", 2), &etag).await.expect("a replace");
    let stale = table.replace(&employee("000123", "z", "z", 3), &larimar_client::ETag::new("W/\"stale\"")).await;
    assert!(matches!(stale, Err(Error::Changed)));
    table.update("Sales", "000456", |e: &mut DynamicEntity| drop(e.set("Turn", 7))).await.expect("an update");
    worker.drain().await.expect("drained");
    compare(&account, "A", "changed").await;
    assert_eq!(by_email.find::<DynamicEntity>("email_Sales", "don@fabrikam.com/x").await.expect("a look").len(), 1);

    assert!(table.delete("Sales", "000123").await.expect("a delete"));
    assert!(!table.delete("Sales", "000123").await.expect("a delete"), "it is gone");
    assert_eq!(table.get::<DynamicEntity>("Sales", "000123").await.expect("a read"), None);
    let late = table.replace(&employee("000123", "z", "z", 3), &etag).await;
    assert!(matches!(late, Err(Error::NotFound)));
    worker.drain().await.expect("drained");
    compare(&account, "A", "deleted").await;
    table.insert(&employee("000123", "don@contoso.com", "Jun", 4)).await.expect("an insert after a delete");
    worker.drain().await.expect("drained");
    compare(&account, "A", "inserted again").await;
}

/// The guide's promise: a look-up by either key is one request.
#[tokio::test]
async fn t2_a_look_up_is_one_request_and_a_write_is_four() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, (by_email, _)) = employees(&account, "B");
    table.create_if_missing().await.expect("tables");
    let before = server.requests();
    table.insert(&employee("1", "a", "b", 1)).await.expect("an insert");
    let after = server.requests();
    assert_eq!((after.table - before.table, after.queue - before.queue), (2, 2));
    let before = server.requests();
    patient(&table).drain().await.expect("drained");
    let after = server.requests();
    // The primary and two copies; the message, and a look that finds no other.
    assert_eq!((after.table - before.table, after.queue - before.queue), (1 + 2 * 2, 2 + 1));
    let before = server.requests();
    assert_eq!(by_email.find::<DynamicEntity>("email_Sales", "a").await.expect("a look").len(), 1);
    assert_eq!(server.requests().table - before.table, 1);
    let before = server.requests();
    assert!(table.get::<DynamicEntity>("Sales", "1").await.expect("a read").is_some());
    assert_eq!(server.requests().table - before.table, 1);
}

/// A change of both values, made by a writer or carried out by a worker that dies at its k-th request.
#[tokio::test]
async fn t2_whoever_dies_anywhere_the_copies_equal_the_primary_in_the_end() {
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    die_everywhere(
        &server,
        26,
        |account, name| employees(account, name).0,
        async |table| drop(table.insert(&employee("1", "old@contoso.com", "Jun", 1)).await.expect("an insert")),
        async |dying| dying.insert_or_replace(&employee("1", "new@contoso.com", "Kim", 2)).await,
        async |name, is_written, what| {
            compare(&sound, name, what).await;
            let found = employees(&sound, name).0.get::<DynamicEntity>("Sales", "1").await.expect("a read");
            let turn = found.expect("it is there").get::<i32>("Turn").expect("a turn");
            assert!(turn == 2 || !is_written, "{what}: it was written");
        },
    )
    .await;
}

/// The new copy comes before the old one goes: who looks in between finds too much, not too little.
#[tokio::test]
async fn t2_whoever_looks_while_a_value_changes_finds_the_entity() {
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    let mut seen = BTreeSet::new();
    for k in 0..12 {
        let name = format!("Q{k}");
        let (table, (by_email, _)) = employees(&sound, &name);
        table.create_if_missing().await.expect("tables");
        table.insert(&employee("1", "old", "x", 1)).await.expect("an insert");
        worker(&table).drain().await.expect("drained");
        table.insert_or_replace(&employee("1", "new", "x", 2)).await.expect("a change");
        let (dying, _) = employees(&account(&server, Mortal::after(k, Death::BeforeSend)), &name);
        let _ = worker(&dying).drain().await;
        let mut found = Vec::new();
        for email in ["old", "new"] {
            found.push(by_email.find::<DynamicEntity>("email_Sales", email).await.expect("a look").len());
        }
        assert_ne!(found, [0, 0], "after {k} requests of the worker");
        seen.insert(found);
    }
    assert_eq!(seen, [vec![1, 0], vec![1, 1], vec![0, 1]].into(), "all that one may see");
}

/// Every order of four intents on one entity, each of them twice.
#[tokio::test]
async fn t2_intents_in_every_order_and_twice_end_the_same() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let mut orders = vec![vec![]];
    for next in 0..4 {
        let longer =
            |order: Vec<usize>| (0..=order.len()).map(move |at| [&order[..at], &[next], &order[at..]].concat());
        orders = orders.into_iter().flat_map(longer).collect();
    }
    assert_eq!(orders.len(), 24);
    for (number, order) in orders.iter().enumerate() {
        let name = format!("P{number}");
        let (table, _) = employees(&account, &name);
        table.create_if_missing().await.expect("tables");
        table.insert(&employee("1", "a", "x", 1)).await.expect("an insert");
        table.insert_or_replace(&employee("1", "b", "x", 2)).await.expect("a change");
        table.delete("Sales", "1").await.expect("a delete");
        table.insert(&employee("1", "a", "y", 4)).await.expect("an insert");
        let mut intents = taken(&account, &format!("work-{}", name.to_lowercase())).await;
        assert_eq!(intents.len(), 4);
        intents.sort_by_key(|intent| format!("{intent:?}"));
        for turn in order.iter().chain(order.iter().rev()) {
            table.perform(&intents[*turn], 0).await.expect("settled");
        }
        compare(&account, &name, &format!("order {order:?}")).await;
    }
}

/// Writers and workers at the same time, on two entities that share their values.
#[tokio::test]
async fn t2_random_interleavings_end_equal() {
    fn write(table: &EventualTable, random: &mut Random) -> BoxFuture<'static, ()> {
        let (table, row) = (table.clone(), ["1", "2"][random.below(2)]);
        let entity =
            employee(row, ["a", "b", "c"][random.below(3)], ["x", "y"][random.below(2)], random.below(1000) as i32);
        let kind = random.below(4);
        Box::pin(async move {
            // A change that failed may have been made: the primary shows it.
            match kind {
                0 => drop(table.delete("Sales", row).await),
                1 => drop(table.insert(&entity).await),
                _ => drop(table.insert_or_replace(&entity).await),
            }
        })
    }
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    for seed in harness::seeds() {
        let name = format!("R{seed}");
        let make = |account: &Account| {
            let (table, indexes) = employees(account, &name);
            // Intents are seen at once, before the write that they are about.
            let queue = format!("work-r{seed}");
            let table_name = format!("Employees{name}");
            let builder = EventualTable::builder(account, &table_name, &queue).derive(&indexes.0).derive(&indexes.1);
            drop(table);
            (builder.grace(Duration::ZERO).build(), ())
        };
        interleave(&server, seed, &format!("work-r{seed}"), make, 10, |(), table, random| write(table, random)).await;
        compare(&account, &name, &format!("seed {seed}")).await;
    }
}

#[tokio::test]
async fn t2_tombstones_are_forgotten_when_their_time_is_over() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let by_email = InterPartitionIndex::on_property(&account.table("Copies"), "email", "Email");
    let builder = EventualTable::builder(&account, "Employees", "work").derive(&by_email);
    let table = builder.tombstones_for(SECOND).build();
    table.create_if_missing().await.expect("tables");
    table.insert(&employee("1", "a", "x", 1)).await.expect("an insert");
    table.insert_or_replace(&employee("1", "b", "x", 2)).await.expect("a change");
    table.insert(&employee("2", "b", "x", 3)).await.expect("an insert");
    table.delete("Sales", "2").await.expect("a delete");
    settle(&worker(&table)).await;
    for (name, count) in [("Employees", 1), ("Copies", 1)] {
        let left = account.table(name).query::<DynamicEntity>().all().await.expect("entities");
        assert_eq!(left.len(), count, "{name}: {left:?}");
    }
    assert_eq!(table.queue().backlog().await.expect("a count"), 0);
}

#[tokio::test]
async fn t2_repair_corrects_what_was_written_past_it() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, _) = employees(&account, "F");
    table.create_if_missing().await.expect("tables");
    let (plain, copies) = (account.table("EmployeesF"), account.table("BossesF"));
    for (row, email) in [("1", "a"), ("2", "b"), ("3", "c")] {
        table.insert(&employee(row, email, "x", 1)).await.expect("an insert");
    }
    worker(&table).drain().await.expect("drained");
    compare(&account, "F", "at first").await;
    let fine = table.repair().await.expect("repaired");
    assert_eq!((fine.primaries, fine.places, fine.corrected), (3, 6, 0));
    // A new one, a changed one, a deleted one; a missing copy, and a copy without an original.
    plain.insert(&employee("4", "d", "x", 1)).await.expect("an insert");
    plain.insert_or_replace(&employee("1", "changed", "y", 2)).await.expect("a change");
    plain.delete("Sales", "2", IfMatch::Any).await.expect("a delete");
    copies.delete("all", "x!Sales!3", IfMatch::Any).await.expect("a delete");
    let stray = DynamicEntity::new("email_Sales", "nobody!9").with("Email", "nobody").with("Turn", 0);
    let stray =
        stray.with("_version", 5_i64).with("_of_partition", "Sales").with("_of_row", "9").with("_index", "email");
    plain.insert(&stray).await.expect("an insert");
    let repaired = table.repair().await.expect("repaired");
    assert!(repaired.corrected >= 7, "{repaired:?}");
    compare(&account, "F", "repaired").await;
    assert_eq!(table.repair().await.expect("repaired").corrected, 0, "a second run corrects nothing");
}

/// More writers of one entity than tries would do if all of them tried again at once.
#[tokio::test]
async fn t2_many_writers_of_one_entity_all_get_through() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (table, _) = employees(&healthy(&server), "H");
    table.create_if_missing().await.expect("tables");
    table.insert(&employee("1", "a", "x", 0)).await.expect("an insert");
    let add = |e: &mut DynamicEntity| drop(e.set("Turn", e.get::<i32>("Turn").expect("a turn") + 1));
    join_all((0..48).map(async |_| table.update("Sales", "1", add).await.expect("an update"))).await;
    let found = table.get::<DynamicEntity>("Sales", "1").await.expect("a read").expect("it is there");
    assert_eq!(found.get::<i32>("Turn").expect("a turn"), 48);
}

/// Copies from several partitions in one: entities of the same row key and value keep apart.
#[tokio::test]
async fn t2_copies_of_several_partitions_share_one() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (table, (_, by_boss)) = employees(&healthy(&server), "J");
    table.create_if_missing().await.expect("tables");
    let of = |department: &str| DynamicEntity::new(department, "000123").with("Email", "a").with("Boss", "Jun");
    for department in ["Sales", "Marketing", "Sales!000123"] {
        table.insert(&of(department)).await.expect("an insert");
    }
    let departments = async || {
        worker(&table).drain().await.expect("drained");
        let found: Vec<DynamicEntity> = by_boss.find("all", "Jun").await.expect("a look");
        found.into_iter().map(|entity| (entity.partition_key, entity.row_key)).collect::<Vec<_>>()
    };
    let keys = |department: &str| (department.to_owned(), "000123".to_owned());
    assert_eq!(departments().await, ["Marketing", "Sales", "Sales!000123"].map(keys));
    table.delete("Marketing", "000123").await.expect("a delete");
    assert_eq!(departments().await, ["Sales", "Sales!000123"].map(keys), "one goes and the others stay");
}

/// An index that is kept beside primaries never takes the place of one.
#[tokio::test]
async fn t2_a_copy_overwrites_nothing_that_is_not_its_own() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, (by_email, _)) = employees(&account, "L");
    table.create_if_missing().await.expect("tables");
    let primary = DynamicEntity::new("email_Sales", "don!000123").with("Turn", 7);
    table.insert(&primary).await.expect("a department of an odd name");
    table.insert(&employee("000123", "don", "Jun", 1)).await.expect("an insert");
    let stats = patient(&table).drain().await.expect("drained");
    assert_eq!((stats.done, stats.poisoned), (1, 1), "{stats:?}");
    assert!(table.queue().poisoned(1).await.expect("a look")[0].error.contains("email_Sales"));
    let found = table.get::<DynamicEntity>("email_Sales", "don!000123").await.expect("a read").expect("it is there");
    assert_eq!(found.get::<i32>("Turn").expect("a turn"), 7);
    let copies: Vec<DynamicEntity> = by_email.find("email_Sales", "don").await.expect("a look");
    assert_eq!(copies, [], "what is not a copy is not found");
}

/// A machine whose clock is ahead wrote an entity; those whose clocks are right delete it and write it anew.
#[tokio::test]
async fn t2_clocks_that_differ_hold_no_copy_back() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, _) = employees(&account, "N");
    table.create_if_missing().await.expect("tables");
    let ahead = larimar_client::Timestamp::now().after(1800 * SECOND).ticks();
    let ahead = employee("1", "a", "x", 1).with("_version", i64::try_from(ahead).expect("ticks"));
    account.table("EmployeesN").insert(&ahead).await.expect("an insert by another clock");
    table.repair().await.expect("its copies");
    compare(&account, "N", "written ahead").await;
    assert!(table.delete("Sales", "1").await.expect("a delete"));
    worker(&table).drain().await.expect("drained");
    compare(&account, "N", "deleted").await;
    table.insert(&employee("1", "a", "x", 2)).await.expect("an insert");
    worker(&table).drain().await.expect("drained");
    compare(&account, "N", "written anew").await;
}

/// What is equal to nothing, not even to itself, is not copied again and again.
#[tokio::test]
async fn t2_not_a_number_is_copied_once() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (table, _) = employees(&healthy(&server), "M");
    table.create_if_missing().await.expect("tables");
    table.insert(&employee("1", "a", "x", 1).with("Mark", f64::NAN)).await.expect("an insert");
    worker(&table).drain().await.expect("drained");
    assert_eq!(table.repair().await.expect("repaired").corrected, 0);
}

/// What no key can hold is refused before anything is done.
#[tokio::test]
async fn t2_a_value_that_is_no_key_is_refused() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (table, _) = employees(&healthy(&server), "G");
    table.create_if_missing().await.expect("tables");
    let refused = table.insert(&employee("1", &"x".repeat(600), "x", 1)).await;
    assert!(matches!(refused, Err(Error::Key(_))), "{refused:?}");
    assert_eq!(table.get::<DynamicEntity>("Sales", "1").await.expect("a read"), None);
    assert_eq!(table.queue().backlog().await.expect("a count"), 0);
}
