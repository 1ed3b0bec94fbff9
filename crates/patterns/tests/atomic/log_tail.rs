//! T7: the newest comes first, whatever the clock does; the latest cost one request.

use crate::atomic::fixture::{Fixture, any_time, time};
use larimar_client::{DynamicEntity, Timestamp};
use larimar_patterns::log_tail::{LogTail, LogTailKey, LogTailKeys, between};
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #[test]
    fn t7_keys_give_back_their_time(at in any_time(), number: u64, writer: u64) {
        let key = LogTailKey::new(at, number, writer);
        let read: LogTailKey = key.to_string().parse().expect("a key");
        prop_assert_eq!(read, key);
        prop_assert_eq!((read.time(), read.number(), read.writer()), (at, number, writer));
    }

    #[test]
    fn t7_the_order_of_keys_is_the_reverse_of_time(a in any_time(), b in any_time(), near in 0..3_u64, n: (u64, u64)) {
        for (a, b) in [(a, b), (a, Timestamp::from_ticks((a.ticks() + near).min(Timestamp::MAX.ticks())))] {
            let [first, second] = [(a, n.0), (b, n.1)].map(|(at, number)| LogTailKey::new(at, number, 7));
            let expected = (b, n.1).cmp(&(a, n.0));
            prop_assert_eq!(first.to_string().cmp(&second.to_string()), expected);
            prop_assert_eq!(first.cmp(&second), expected);
        }
    }

    #[test]
    fn t7_a_span_holds_its_start_and_not_its_end(start in any_time(), end in any_time(), at in any_time(), number: u64) {
        for at in [at, start, end, Timestamp::from_ticks(end.ticks() - 1)] {
            let key = LogTailKey::new(at, number, number).to_string();
            let filter = between(start..end);
            let bounds: Vec<_> = filter.as_str().split('\'').collect();
            let holds = bounds.len() == 5 && (bounds[1]..bounds[3]).contains(&key.as_str());
            prop_assert_eq!(holds, (start..end).contains(&at), "{} {}", filter, key);
        }
    }

    #[test]
    fn t7_texts_that_are_no_keys_are_refused(text in "[0-9a-fA-F_+]{0,60}") {
        if let Ok(key) = text.parse::<LogTailKey>() {
            prop_assert_eq!(key.to_string(), text);
        }
    }
}

#[test]
fn t7_keys_of_many_threads_are_unique_and_newest_first_in_each() {
    let keys = LogTailKeys::new();
    let made: Vec<Vec<LogTailKey>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..2000).map(|_| keys.next()).collect())).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for of_thread in &made {
        assert!(of_thread.is_sorted_by(|older, newer| newer.to_string() < older.to_string()));
    }
    let unique: BTreeSet<String> = made.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(unique.len(), 8000);
    let tick = time("2026-02-15T00:00:00Z");
    assert_ne!(LogTailKeys::new().at(tick), LogTailKeys::new().at(tick), "two programs at the same tick");
    assert!(keys.at(tick) > keys.at(tick), "the later call is the newer one");
}

#[tokio::test]
async fn t7_the_latest_are_one_request() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Claims").await;
    let claims = LogTail::new(table);
    let start = time("2026-02-15T00:00:00Z");
    for minute in 0..30_u64 {
        let claim = DynamicEntity::new("000123", "ignored").with("Minute", i64::try_from(minute).expect("small"));
        let at = start.after(std::time::Duration::from_secs(60 * (minute / 2)));
        let (key, requests) = fixture.counted(claims.append_at(at, &claim)).await;
        assert_eq!((key.expect("appended").time(), requests), (at, 1));
    }
    claims.append(&DynamicEntity::new("000124", "")).await.expect("appended");
    let (latest, requests) = fixture.counted(claims.latest::<DynamicEntity>("000123", 5)).await;
    let minutes: Vec<i64> = latest.expect("read").iter().map(|claim| claim.get("Minute").expect("a number")).collect();
    assert_eq!((minutes, requests), (vec![29, 28, 27, 26, 25], 1));

    let span = time("2026-02-15T00:03:00Z")..time("2026-02-15T00:05:00Z");
    let (found, requests) = fixture.counted(claims.between::<DynamicEntity>("000123", span).all()).await;
    let minutes: Vec<i64> = found.expect("read").iter().map(|claim| claim.get("Minute").expect("a number")).collect();
    assert_eq!((minutes, requests), (vec![9, 8, 7, 6], 1));
    let (none, requests) = fixture.counted(claims.latest::<DynamicEntity>("000123", 0)).await;
    assert_eq!((none.expect("read").len(), requests), (0, 0));
    let backwards = claims.between::<DynamicEntity>("000123", start.after(std::time::Duration::from_secs(9))..start);
    assert!(backwards.all().await.expect("read").is_empty());
}
