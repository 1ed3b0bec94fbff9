//! T12: the bucket of an id never changes, all buckets take part, and a read finds what is in any of them, in order.

use crate::atomic::fixture::{Fixture, odd_text, service_order};
use futures_util::TryStreamExt as _;
use larimar_client::{Column, DynamicEntity, Filter};
use larimar_patterns::Error;
use larimar_patterns::spread_key::{Heat, SpreadKey, hash};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn t12_the_hash_is_the_one_that_is_written_down() {
    // Published values of FNV-1a with 64 bits, folded.
    for (text, fnv) in
        [("", 0xcbf2_9ce4_8422_2325_u64), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
    {
        assert_eq!(u64::from(hash(text)), (fnv >> 32) ^ (fnv & 0xffff_ffff), "{text}");
    }
}

#[test]
fn t12_ids_and_turns_spread_over_all_buckets() {
    for buckets in [1, 3, 16, 64] {
        let spread = SpreadKey::new(buckets).expect("buckets");
        let mut by_hash = BTreeMap::<String, usize>::new();
        for id in 0..buckets * 200 {
            *by_hash.entry(spread.by_hash("day", &format!("employee-{id:06}"))).or_default() += 1;
        }
        assert_eq!(by_hash.len(), buckets);
        assert!(by_hash.values().all(|count| (100..300).contains(count)), "{by_hash:?}");
        let turns: BTreeSet<_> = (0..buckets).map(|_| spread.by_turns("day")).collect();
        assert_eq!(turns.into_iter().collect::<Vec<_>>(), spread.partitions("day").collect::<Vec<_>>());
    }
}

#[test]
fn t12_numbers_of_buckets_that_make_no_sense_are_refused() {
    for buckets in [0, 1001, usize::MAX] {
        assert!(matches!(SpreadKey::new(buckets), Err(Error::Invalid(_))), "{buckets}");
    }
    let spread = SpreadKey::new(8).expect("buckets");
    for earlier in [0, 8, 9] {
        assert!(matches!(spread.clone().earlier(earlier), Err(Error::Invalid(_))), "{earlier}");
    }
    for other in ["", "00", "008_x", "000", "000x", "-01_x", "0001_x", "é_x", "００_x"] {
        assert_eq!(spread.key(other), None, "{other}");
    }
    assert_eq!(spread.key("007_"), Some(""));
}

proptest! {
    #[test]
    fn t12_the_key_is_found_in_the_partition(key in odd_text(), id in odd_text(), buckets in 1..=1000_usize) {
        let spread = SpreadKey::new(buckets).expect("buckets");
        let partition = spread.by_hash(&key, &id);
        prop_assert_eq!(spread.key(&partition), Some(key.as_str()));
        prop_assert!(spread.partitions(&key).any(|other| other == partition));
    }

    #[test]
    fn t12_heat_never_misses_a_partition_above_its_share(
        hot in 0..5_u8, requests in prop::collection::vec(0..60_u8, 1..400), capacity in 1..20_usize,
    ) {
        let heat = Heat::new(capacity);
        let mut exact = BTreeMap::<String, u64>::new();
        for (n, partition) in requests.iter().enumerate() {
            let partition = if n % 2 == 0 { hot } else { *partition };
            heat.count(partition.to_string());
            *exact.entry(partition.to_string()).or_default() += 1;
        }
        let hottest = heat.hottest(usize::MAX);
        prop_assert!(hottest.len() <= capacity);
        for found in &hottest {
            let count = exact.get(&found.partition_key).copied().unwrap_or(0);
            prop_assert!(found.requests >= count && found.requests - found.at_most_over <= count);
        }
        for (partition, count) in exact {
            let is_hot = count * capacity as u64 > requests.len() as u64;
            prop_assert!(!is_hot || hottest.iter().any(|found| found.partition_key == partition), "{}", partition);
        }
    }
}

#[tokio::test]
async fn t12_a_read_merges_all_buckets_in_order() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Events").await;
    let spread = SpreadKey::new(7).expect("buckets");
    let mut rows = vec!["\u{ffff}".to_owned(), "\u{1f600}".to_owned(), "".to_owned(), "é".to_owned()];
    rows.extend((0..60).map(|row| format!("{row:03}")));
    for (number, row) in rows.iter().enumerate() {
        let event = DynamicEntity::new(spread.by_hash("2026-02-15", row), row.as_str());
        table.insert(&event.with("Number", i32::try_from(number).expect("small"))).await.expect("inserted");
    }
    table.insert(&DynamicEntity::new("000_2026-02-16", "stranger")).await.expect("inserted");

    let read = spread.read::<DynamicEntity>(&table, "2026-02-15", Filter::everything());
    let (found, requests) = fixture.counted(read.try_collect::<Vec<_>>()).await;
    let found: Vec<_> = found.expect("read").into_iter().map(|event| event.row_key).collect();
    rows.sort_by(|a, b| service_order(a, b));
    assert_eq!((found, requests), (rows, 7));

    let few = spread.read::<DynamicEntity>(&table, "2026-02-15", Column::<i32>::named("Number").lt(2));
    let few: Vec<_> = few.map_ok(|event| event.row_key).try_collect().await.expect("read");
    assert_eq!(few, ["\u{1f600}", "\u{ffff}"]);
    let nothing = spread.read::<DynamicEntity>(&table, "2026-02-17", Filter::everything());
    assert!(nothing.try_collect::<Vec<_>>().await.expect("read").is_empty());
    let missing = fixture.account.table("Missing");
    let failed = spread.read::<DynamicEntity>(&missing, "x", Filter::everything()).try_collect::<Vec<_>>().await;
    assert!(matches!(failed, Err(Error::Client(error)) if error.is_not_found()));
}

#[tokio::test]
async fn t12_more_buckets_lose_nothing() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Events").await;
    let before = SpreadKey::new(4).expect("buckets");
    let now = SpreadKey::new(10).expect("buckets").earlier(4).expect("fewer");
    for id in 0..40 {
        let id = format!("{id:03}");
        let spread = if id.as_str() < "020" { &before } else { &now };
        table.insert(&DynamicEntity::new(spread.by_hash("day", &id), id)).await.expect("inserted");
    }
    for id in 0..40 {
        let id = format!("{id:03}");
        let (found, requests) = fixture.counted(now.get::<DynamicEntity>(&table, "day", &id, &id)).await;
        assert!(found.expect("read").is_some(), "{id}");
        assert_eq!(
            requests,
            if now.by_hash("day", &id) == before.by_hash("day", &id) || id.as_str() >= "020" { 1 } else { 2 }
        );
    }
    let all = now.read::<DynamicEntity>(&table, "day", Filter::everything());
    assert_eq!(all.try_collect::<Vec<_>>().await.expect("read").len(), 40);
    assert!(now.get::<DynamicEntity>(&table, "day", "999", "999").await.expect("read").is_none());
}
