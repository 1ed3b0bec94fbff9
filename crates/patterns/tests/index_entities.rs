//! T4: lists of row keys, in the partition of their entities, in other partitions and in blobs.

use crate::harness::table::{die_everywhere, interleave, patient, worker};
use crate::harness::{self, DEATHS, Mortal, Random, account, healthy, settle};
use futures_util::future::join_all;
use larimar_client::{Account, DynamicEntity, IfMatch};
use larimar_embedded::Larimar;
use larimar_patterns::Error;
use larimar_patterns::eventual_table::EventualTable;
use larimar_patterns::index_entities::{KeyLists, ListedTable};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn last_name(entity: &DynamicEntity) -> Option<String> {
    entity.get::<Option<String>>("LastName").ok().flatten()
}

fn employee(row: &str, name: &str) -> DynamicEntity {
    DynamicEntity::new("Sales", row).with("LastName", name)
}

/// The row keys of every value, as the entities themselves tell.
async fn expected(account: &Account, table: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut lists = BTreeMap::<_, BTreeSet<String>>::new();
    for entity in account.table(table).query::<DynamicEntity>().partition("Sales").all().await.expect("entities") {
        if let Some(name) = last_name(&entity) {
            lists.entry(name).or_default().insert(entity.row_key);
        }
    }
    lists
}

const NAMES: [&str; 4] = ["Jones", "Jones Jr/2", "Smith", "Übel!"];

// In the partition.

fn listed(account: &Account) -> ListedTable {
    ListedTable::new(&account.table("Employees"), "lastname", last_name)
}

async fn compare_listed(account: &Account, what: &str) {
    let lists = expected(account, "Employees").await;
    for name in NAMES {
        let keys = listed(account).keys("Sales", name).await.expect("keys");
        let wanted = lists.get(name).into_iter().flatten().cloned().collect::<Vec<_>>();
        assert_eq!(keys, wanted, "{what}: {name}");
    }
}

#[tokio::test]
async fn t4_lists_in_the_partition_change_with_their_entities() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let table = listed(&account);
    table.table().create_if_missing().await.expect("a table");
    let requests = || server.requests().table;
    let before = requests();
    table.insert(&employee("000123", "Jones")).await.expect("an insert");
    assert_eq!(requests() - before, 3);
    table.insert(&employee("000456", "Jones")).await.expect("an insert");
    table.insert(&employee("000789", "Smith")).await.expect("an insert");
    assert!(matches!(table.insert(&employee("000123", "Smith")).await, Err(Error::Exists)));
    let before = requests();
    assert_eq!(table.keys("Sales", "Jones").await.expect("keys"), ["000123", "000456"]);
    assert_eq!(requests() - before, 1);
    let before = requests();
    table.insert_or_replace(&employee("000123", "Smith")).await.expect("a change");
    assert_eq!(requests() - before, 4);
    compare_listed(&account, "changed").await;
    let found: Vec<DynamicEntity> = table.find("Sales", "Smith").await.expect("entities");
    assert_eq!(found.iter().map(|e| e.row_key.as_str()).collect::<Vec<_>>(), ["000123", "000789"]);
    let before = requests();
    table.replace(&employee("000123", "Smith"), found[0].etag.as_ref().expect("a version")).await.expect("a replace");
    assert_eq!(requests() - before, 2, "no list is touched");
    let stale = table.replace(&employee("000123", "Jones"), found[0].etag.as_ref().expect("a version")).await;
    assert!(matches!(stale, Err(Error::Changed)));
    table.delete("Sales", "000456").await.expect("a delete");
    assert!(matches!(table.delete("Sales", "000456").await, Err(Error::NotFound)));
    compare_listed(&account, "deleted").await;
    let own = table.insert(&DynamicEntity::new("Sales", "lastname!Jones!0000")).await;
    assert!(matches!(own, Err(Error::Invalid(_))), "rows of lists are not for entities");
}

/// A full chunk is followed by another, and an empty one goes.
#[tokio::test]
async fn t4_a_list_that_grows_is_split() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let table = listed(&account).chunk_characters(40);
    table.table().create_if_missing().await.expect("a table");
    let rows = (0..20).map(|number| format!("{number:06}")).collect::<Vec<_>>();
    for row in &rows {
        table.insert(&employee(row, "Jones")).await.expect("an insert");
    }
    let chunks = async || {
        let all = account.table("Employees").query::<DynamicEntity>().all().await.expect("entities");
        all.iter().filter(|entity| entity.row_key.starts_with("lastname!")).count()
    };
    assert!(chunks().await >= 5);
    assert_eq!(table.keys("Sales", "Jones").await.expect("keys"), rows);
    compare_listed(&account, "split").await;
    for row in &rows[..19] {
        table.delete("Sales", row).await.expect("a delete");
    }
    assert_eq!(chunks().await, 1);
    table.insert(&employee("000000", "Jones")).await.expect("an insert");
    compare_listed(&account, "grown again").await;
}

/// Eight writers on the same lists; then writers that die at every request.
#[tokio::test]
async fn t4_lists_in_the_partition_are_right_at_every_moment() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account_ = healthy(&server);
    listed(&account_).table().create_if_missing().await.expect("a table");
    let table = listed(&account_).chunk_characters(30);
    join_all((0..8).map(async |writer: u64| {
        let random = &mut Random::new(writer);
        for _ in 0..12 {
            let (row, name) = (format!("{}", random.below(6)), NAMES[random.below(4)]);
            let result = match random.below(3) {
                0 => table.delete("Sales", &row).await,
                _ => table.insert_or_replace(&employee(&row, name)).await,
            };
            assert!(matches!(result, Ok(()) | Err(Error::NotFound | Error::Contended)), "{result:?}");
        }
    }))
    .await;
    compare_listed(&account_, "many writers").await;
    table.insert_or_replace(&employee("0", "Jones")).await.expect("a write");
    for k in 0..6 {
        for death in DEATHS {
            let what = format!("{death:?} at request {k}");
            let mortal = Mortal::after(k, death);
            let dying = listed(&account(&server, mortal.clone()));
            let name = if k % 2 == 0 { "Smith" } else { "Jones" };
            let _ = dying.insert_or_replace(&employee("0", name)).await;
            compare_listed(&account_, &what).await;
            mortal.deliver_late().await;
            compare_listed(&account_, &format!("{what}, late")).await;
        }
    }
}

/// More writers of one list than tries would do if all of them tried again at once.
#[tokio::test]
async fn t4_many_writers_of_one_list_all_get_through() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let table = listed(&account);
    table.table().create_if_missing().await.expect("a table");
    let rows = (0..48).map(|number| format!("{number:03}")).collect::<Vec<_>>();
    join_all(rows.iter().map(async |row| table.insert(&employee(row, "Jones")).await.expect("an insert"))).await;
    assert_eq!(table.keys("Sales", "Jones").await.expect("keys"), rows);
}

// In other partitions and in blobs.

fn employees(account: &Account, name: &str, grace: Duration) -> (EventualTable, [KeyLists; 2]) {
    let lower = name.to_lowercase();
    let in_table = KeyLists::in_table(&account.table(format!("Lists{name}")), "lastname", last_name).buckets(3);
    let in_blobs = KeyLists::in_blobs(&account.container(format!("lists-{lower}")), "byname", last_name);
    let builder = EventualTable::builder(account, &format!("Employees{name}"), &format!("work-{lower}"));
    (builder.derive(&in_table).derive(&in_blobs).grace(grace).build(), [in_table, in_blobs])
}

async fn compare(account: &Account, name: &str, what: &str) {
    let (_, lists) = employees(account, name, SECOND);
    let wanted = expected(account, &format!("Employees{name}")).await;
    for list in lists {
        for value in NAMES {
            let keys = list.keys("Sales", value).await.expect("keys");
            let wanted = wanted.get(value).into_iter().flatten().cloned().collect::<Vec<_>>();
            assert_eq!(keys, wanted, "{what}: {value} in {list:?}");
        }
    }
}

#[tokio::test]
async fn t4_lists_elsewhere_follow_in_the_end() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, lists) = employees(&account, "A", SECOND);
    table.create_if_missing().await.expect("tables");
    let worker = worker(&table);
    for number in 0..30 {
        table.insert(&employee(&format!("{number:03}"), NAMES[number % 4])).await.expect("an insert");
    }
    worker.drain().await.expect("drained");
    compare(&account, "A", "inserted").await;
    for number in 0..10 {
        table.insert_or_replace(&employee(&format!("{number:03}"), "Smith")).await.expect("a change");
        table.delete("Sales", &format!("{:03}", number + 15)).await.expect("a delete");
    }
    // The lists are late, and what is read by them is not wrong.
    for list in &lists {
        let found: Vec<DynamicEntity> = list.find(&table, "Sales", "Jones").await.expect("entities");
        let rows = found.iter().map(|e| e.row_key.as_str()).collect::<Vec<_>>();
        assert_eq!(rows, ["012", "028"], "those that were named Jones, and are");
    }
    worker.drain().await.expect("drained");
    compare(&account, "A", "changed and deleted").await;
    let before = server.requests();
    lists[0].keys("Sales", "Smith").await.expect("keys");
    lists[1].keys("Sales", "Smith").await.expect("keys");
    let after = server.requests();
    assert_eq!((after.table - before.table, after.blob - before.blob), (1, 1));
}

#[tokio::test]
async fn t4_whoever_dies_anywhere_the_lists_are_right_in_the_end() {
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    die_everywhere(
        &server,
        28,
        |account, name| employees(account, name, SECOND).0,
        async |table| {
            table.insert(&employee("1", "Jones")).await.expect("an insert");
            table.insert(&employee("2", "Jones")).await.expect("an insert");
        },
        async |dying| dying.insert_or_replace(&employee("1", "Smith")).await,
        async |name, is_written, what| {
            compare(&sound, name, what).await;
            let lists = expected(&sound, &format!("Employees{name}")).await;
            assert!(lists.contains_key("Smith") || !is_written, "{what}: it was written");
        },
    )
    .await;
}

#[tokio::test]
async fn t4_random_interleavings_end_right() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    for seed in harness::seeds() {
        let name = format!("R{seed}");
        let make = |account: &Account| (employees(account, &name, Duration::ZERO).0, ());
        interleave(&server, seed, &format!("work-r{seed}"), make, 10, |(), table, random| {
            let (table, row) = (table.clone(), ["1", "2", "3"][random.below(3)]);
            let (entity, deletes) = (employee(row, NAMES[random.below(3)]), random.chance(4));
            Box::pin(async move {
                match deletes {
                    true => drop(table.delete("Sales", row).await),
                    false => drop(table.insert_or_replace(&entity).await),
                }
            })
        })
        .await;
        compare(&account, &name, &format!("seed {seed}")).await;
    }
}

#[tokio::test]
async fn t4_repair_lists_what_was_written_past_it_and_empty_lists_go() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, _) = employees(&account, "F", SECOND);
    table.create_if_missing().await.expect("tables");
    let plain = account.table("EmployeesF");
    for row in ["1", "2", "3"] {
        table.insert(&employee(row, "Jones")).await.expect("an insert");
    }
    worker(&table).drain().await.expect("drained");
    assert_eq!(table.repair().await.expect("repaired").corrected, 0);
    plain.insert(&employee("4", "Übel!")).await.expect("an insert");
    plain.insert_or_replace(&employee("1", "Smith")).await.expect("a change");
    plain.delete("Sales", "2", IfMatch::Any).await.expect("a delete");
    assert!(table.repair().await.expect("repaired").corrected >= 6);
    compare(&account, "F", "repaired").await;
    assert_eq!(table.repair().await.expect("repaired").corrected, 0, "a second run corrects nothing");

    let lists = KeyLists::in_table(&account.table("Brief"), "lastname", last_name);
    let builder = EventualTable::builder(&account, "BriefEmployees", "brief").derive(&lists);
    let brief = builder.tombstones_for(SECOND).build();
    brief.create_if_missing().await.expect("tables");
    brief.insert(&employee("1", "Jones")).await.expect("an insert");
    brief.delete("Sales", "1").await.expect("a delete");
    settle(&worker(&brief)).await;
    for table in ["Brief", "BriefEmployees"] {
        let left = account.table(table).query::<DynamicEntity>().all().await.expect("entities");
        assert!(left.is_empty(), "{table}: {left:?}");
    }
}

/// Employees with a list of the name Jones, which has the key `1`.
async fn one_list(account: &Account) -> (EventualTable, KeyLists) {
    let lists = KeyLists::in_table(&account.table("Lists"), "lastname", last_name);
    let table = EventualTable::builder(account, "Employees", "work").derive(&lists).build();
    table.create_if_missing().await.expect("tables");
    table.insert(&employee("1", "Jones")).await.expect("an insert");
    patient(&table).drain().await.expect("drained");
    (table, lists)
}

/// The list as it is stored.
async fn stored_list(account: &Account) -> DynamicEntity {
    let stored = account.table("Lists").get::<DynamicEntity>("lastname_Sales", "Jones!0000").await.expect("a read");
    stored.expect("a list")
}

/// Writes the list past its keeper.
async fn overwrite_list(account: &Account, keys: &[u8]) {
    let mut stored = stored_list(account).await;
    for (number, chunk) in keys.chunks(64 * 1024).enumerate() {
        stored.set(format!("Keys{number:02}"), chunk);
    }
    account.table("Lists").replace(&stored, IfMatch::Any).await.expect("a full list");
}

/// A list that is full goes to the poison queue with its name; nothing else is held up.
#[tokio::test]
async fn t4_a_list_that_is_full_is_told_of() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, lists) = one_list(&account).await;
    // A list of 15 properties of 64 KiB, as many as there may be.
    let full = (0..).map(|number| format!("\"{number:0500}\":[1,1]")).take(1931).collect::<Vec<_>>().join(",");
    overwrite_list(&account, format!("{{{full}}}").as_bytes()).await;
    for digit in ["7", "8", "9"] {
        table.insert(&employee(&digit.repeat(400), "Jones")).await.expect("the entity is written");
    }
    table.insert(&employee("2", "Smith")).await.expect("an insert");
    let stats = patient(&table).concurrency(1).drain().await.expect("drained");
    assert!(stats.poisoned > 0 && stats.failed == 0, "{stats:?}");
    assert!(table.queue().poisoned(1).await.expect("a look")[0].error.contains("the list of 'Jones'"));
    assert_eq!(lists.keys("Sales", "Smith").await.expect("keys"), ["2"]);
}

/// What leaves a list takes no more room for the hour that it is remembered.
#[tokio::test]
async fn t4_a_list_that_is_full_can_shrink() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let (table, lists) = one_list(&account).await;
    // To the last byte that 15 properties of 64 KiB have.
    let mut full = stored_list(&account).await.get::<Vec<u8>>("Keys00").expect("keys");
    assert_eq!(full.pop(), Some(b'}'));
    let others = (0..).map(|number| format!(",\"{number:0500}\":[1,1]")).take(1930).collect::<String>();
    full.extend(others.into_bytes());
    let rest = 15 * 64 * 1024 - full.len() - ",\"\":[1,1]}".len();
    full.extend(format!(",\"{}\":[1,1]}}", "x".repeat(rest)).into_bytes());
    assert_eq!(full.len(), 15 * 64 * 1024);
    overwrite_list(&account, &full).await;
    table.delete("Sales", "1").await.expect("a delete");
    let stats = patient(&table).drain().await.expect("drained");
    assert_eq!((stats.done, stats.poisoned), (1, 0), "{stats:?}");
    assert_eq!(lists.keys("Sales", "Jones").await.expect("keys").len(), 1931);
}

/// Keys and values that would mean something else in the path of a blob, or be too much for its metadata.
#[tokio::test]
async fn t4_lists_in_blobs_take_odd_keys_and_long_values() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    let lists = KeyLists::in_blobs(&account.container("lists"), "byname", last_name);
    let table = EventualTable::builder(&account, "Employees", "work").derive(&lists).build();
    table.create_if_missing().await.expect("tables");
    let long = "名".repeat(480);
    let odd = [".", "..", "", "a.", "%2e", " ", "'", "ü\u{10FFFD}\u{FFFF}", long.as_str()];
    for partition in odd {
        for value in [".", "..", "", "a/../b", "a\\b?#%", long.as_str()] {
            let row = value.replace(['/', '\\', '?', '#'], "_");
            let entity = DynamicEntity::new(partition, row.as_str()).with("LastName", value);
            table.insert(&entity).await.expect("an insert");
            let stats = patient(&table).drain().await.expect("drained");
            assert_eq!(stats.done, 1, "{partition:?} {value:?}: {stats:?}");
            assert_eq!(lists.keys(partition, value).await.expect("keys"), [row], "{partition:?} {value:?}");
        }
    }
    let repaired = table.repair().await.expect("repaired");
    assert_eq!((repaired.primaries, repaired.places, repaired.corrected), (54, 54, 0), "all of them are found again");
}
