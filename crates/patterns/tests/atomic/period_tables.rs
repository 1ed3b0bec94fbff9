//! T8: writes find their table, reads all tables of a span, and only what is over is dropped.

use crate::atomic::fixture::{Fixture, any_time, time};
use futures_util::{StreamExt as _, TryStreamExt as _};
use larimar_client::{DynamicEntity, Timestamp};
use larimar_patterns::period_tables::PeriodTables;
use larimar_patterns::{Error, Period};
use proptest::prelude::*;
use std::time::Duration;

const PERIODS: [Period; 4] = [Period::Hour, Period::Day, Period::Month, Period::Year];

proptest! {
    #[test]
    fn t8_every_time_lies_in_the_period_of_its_name(at in any_time(), other in any_time()) {
        for period in PERIODS {
            let (start, end) = (period.start(at), period.end(at));
            prop_assert!(start <= at && (at < end || end == Timestamp::MAX));
            prop_assert_eq!(period.parse(&period.name(at)), Some(start));
            prop_assert_eq!(period.name(at).cmp(&period.name(other)), start.cmp(&period.start(other)));
            prop_assert!(end == Timestamp::MAX || period.start(end) == end);
        }
    }
}

#[tokio::test]
async fn t8_prefixes_that_make_no_table_names_are_refused() {
    let fixture = Fixture::new().await;
    for prefix in ["", "1Logs", "Lo-gs", "Lo_gs", "Lögs", "Logs2", &"x".repeat(56)] {
        let refused = PeriodTables::new(fixture.account.clone(), prefix, Period::Day);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{prefix}");
    }
    // The longest and the shortest are taken by the service too.
    for prefix in ["x".repeat(55), "x".to_owned()] {
        let tables = PeriodTables::new(fixture.account.clone(), prefix, Period::Day).expect("tables");
        tables.insert(time("2026-02-15T00:00:00Z"), &DynamicEntity::new("p", "r")).await.expect("inserted");
    }
}

#[tokio::test]
async fn t8_the_first_write_of_a_period_makes_the_table_and_the_others_are_one_request() {
    let fixture = Fixture::new().await;
    let logins = PeriodTables::new(fixture.account.clone(), "Logins", Period::Day).expect("tables");
    let noon = time("2026-02-15T12:00:00Z");
    for (row, expected) in [("1", 3), ("2", 1), ("3", 1)] {
        let (written, requests) = fixture.counted(logins.insert(noon, &DynamicEntity::new("Don", row))).await;
        written.expect("inserted");
        assert_eq!(requests, expected, "{row}");
    }
    let (again, requests) = fixture.counted(logins.insert(noon, &DynamicEntity::new("Don", "3"))).await;
    assert!(matches!(again, Err(Error::Client(error)) if error.is_conflict()));
    assert_eq!(requests, 1);
    let tomorrow = Period::Day.end(noon);
    logins.prepare(tomorrow).await.expect("prepared");
    let prepared = fixture.counted(logins.insert_or_replace(tomorrow, &DynamicEntity::new("Don", "1"))).await;
    assert_eq!(prepared.1, 1);
    // A table that was dropped is made again.
    logins.table(noon).delete_table().await.expect("deleted");
    logins.insert(noon, &DynamicEntity::new("Don", "4")).await.expect("inserted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t8_many_writers_may_be_first() {
    let fixture = Fixture::new().await;
    let logins = PeriodTables::new(fixture.account.clone(), "Logins", Period::Hour).expect("tables");
    let writers = (0..16).map(|writer| {
        let logins = logins.clone();
        tokio::spawn(async move {
            for hour in 0..4 {
                let at = time("2026-02-15T00:00:00Z").after(Duration::from_secs(3600 * hour));
                let login = DynamicEntity::new("Don", format!("{writer:02}"));
                logins.insert(at, &login).await.expect("inserted");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    let day = time("2026-02-15T00:00:00Z")..time("2026-02-16T00:00:00Z");
    let all: Vec<DynamicEntity> =
        logins.stream(day, |table| table.query().partition("Don")).try_collect().await.expect("read");
    assert_eq!(all.len(), 64);
}

#[tokio::test]
async fn t8_spans_read_their_tables_in_order_and_nothing_else() {
    let fixture = Fixture::new().await;
    let logins = PeriodTables::new(fixture.account.clone(), "Logins", Period::Day).expect("tables");
    // Tables that look alike.
    for name in ["LoginsArchive", "Logins", "Logins20260230", "Logins2026021500", "Logins202602", "Loginsx20260215"] {
        let table = fixture.table(name).await;
        table.insert(&DynamicEntity::new("Don", "stranger")).await.expect("inserted");
    }
    for day in [28, 10, 11, 13] {
        let at = time(&format!("2026-02-{day}T23:59:59.9999999Z"));
        logins.insert(at, &DynamicEntity::new("Don", format!("of day {day}"))).await.expect("inserted");
    }
    let rows = async |span| {
        let read = logins.stream(span, |table| table.query::<DynamicEntity>().partition("Don"));
        read.map_ok(|entity| entity.row_key).try_collect::<Vec<_>>().await.expect("read")
    };
    let march = time("2026-03-01T00:00:00Z");
    let whole = time("2026-01-01T00:00:00Z")..march;
    let (all, requests) = fixture.counted(rows(whole)).await;
    assert_eq!((all, requests), (["10", "11", "13", "28"].map(|day| format!("of day {day}")).to_vec(), 5));
    let some = rows(time("2026-02-11T12:00:00Z")..time("2026-02-13T00:00:00Z")).await;
    assert_eq!(some, ["of day 11"], "the end is not part of the span");
    let some = rows(time("2026-02-11T12:00:00Z")..time("2026-02-13T00:00:00.0000001Z")).await;
    assert_eq!(some, ["of day 11", "of day 13"]);
    assert!(rows(march..march).await.is_empty());
    assert!(rows(march..time("2026-01-01T00:00:00Z")).await.is_empty());

    // A table that goes while it is read is passed over.
    let reading = logins.stream(Timestamp::MIN..Timestamp::MAX, |table| table.query::<DynamicEntity>());
    let mut reading = std::pin::pin!(reading);
    assert_eq!(reading.next().await.expect("one").expect("read").row_key, "of day 10");
    logins.table(time("2026-02-13T00:00:00Z")).delete_table().await.expect("deleted");
    let rest: Vec<_> = reading.map_ok(|entity| entity.row_key).try_collect().await.expect("read");
    assert_eq!(rest, ["of day 11", "of day 28"]);
}

#[tokio::test]
async fn t8_only_tables_whose_period_is_over_are_dropped() {
    let fixture = Fixture::new().await;
    let others = ["LoginsArchive", "Logins20260230", "Logins2026021500", "Loginsx20200101", "Logins2020"];
    for name in others {
        fixture.table(name).await;
    }
    let logins = PeriodTables::new(fixture.account.clone(), "Logins", Period::Day).expect("tables");
    for day in 10..=14 {
        logins.prepare(time(&format!("2026-02-{day}T00:00:00Z"))).await.expect("prepared");
    }
    let (dropped, requests) = fixture.counted(logins.drop_before(time("2026-02-12T23:59:59Z"))).await;
    assert_eq!(
        (dropped.expect("dropped"), requests),
        (vec!["Logins20260210".to_owned(), "Logins20260211".to_owned()], 3)
    );
    assert_eq!(logins.drop_before(time("2026-02-13T00:00:00Z")).await.expect("dropped"), ["Logins20260212"]);
    assert!(logins.drop_before(time("2026-02-13T00:00:00Z")).await.expect("dropped").is_empty());
    let left: Vec<_> = fixture.account.tables().list(None).try_collect().await.expect("listed");
    let left: Vec<_> = left.iter().map(|item| item.name.as_str()).collect();
    let mut expected = [others.as_slice(), &["Logins20260213", "Logins20260214"]].concat();
    expected.sort_unstable();
    let mut left = left.clone();
    left.sort_unstable();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn t8_a_write_to_a_day_that_was_just_dropped_is_refused_as_the_service_does() {
    let server = larimar_embedded::Larimar::builder().strict(true).start().await.expect("a server");
    let account = larimar_client::Account::builder().connection_string(server.connection_string());
    let account = account.retry(larimar_client::RetryPolicy::none()).build().expect("an account");
    let logins = PeriodTables::new(account, "Logins", Period::Day).expect("tables");
    let day = time("2026-02-15T12:00:00Z");
    logins.insert(day, &DynamicEntity::new("Don", "1")).await.expect("inserted");
    assert_eq!(logins.drop_before(Period::Day.end(day)).await.expect("dropped"), ["Logins20260215"]);
    let late = logins.insert(day, &DynamicEntity::new("Don", "2")).await;
    assert!(matches!(&late, Err(Error::Client(error)) if error.code() == Some("TableBeingDeleted")), "{late:?}");
    let read = logins.stream(day..Period::Day.end(day), |table| table.query::<DynamicEntity>());
    assert!(read.try_collect::<Vec<_>>().await.expect("read").is_empty());
}
