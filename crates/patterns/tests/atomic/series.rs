//! T9: one value is one request, and writers of different hours never lose each other's.

use crate::atomic::fixture::{Fixture, any_time, time};
use larimar_client::{DynamicEntity, Table};
use larimar_patterns::Error;
use larimar_patterns::series::{Resolution, Series};
use proptest::prelude::*;
use std::time::Duration;

const RESOLUTIONS: [Resolution; 4] =
    [Resolution::MinutesOfHour, Resolution::HoursOfDay, Resolution::QuarterHoursOfDay, Resolution::DaysOfMonth];

fn messages(table: &Table) -> Series<i64> {
    Series::new(table.clone(), "Messages", Resolution::HoursOfDay).expect("a series")
}

#[tokio::test]
async fn t9_a_value_is_one_request_and_no_read() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Statistics").await;
    let messages = messages(&table);
    for (at, value) in [("2026-02-15T00:59:59Z", 17), ("2026-02-15T23:00:00Z", 21), ("2026-02-15T00:00:00Z", 18)] {
        let (written, requests) = fixture.counted(messages.record("Sales", time(at), &value)).await;
        written.expect("recorded");
        assert_eq!(requests, 1);
    }
    let (day, requests) = fixture.counted(messages.read("Sales", time("2026-02-15T12:00:00Z"))).await;
    let day = day.expect("read").expect("a row");
    assert_eq!((requests, day.values.len()), (1, 24));
    let recorded: Vec<_> = day.recorded().map(|(at, value)| (at.to_string(), *value)).collect();
    assert_eq!(recorded, [("2026-02-15T00:00:00Z".to_owned(), 18), ("2026-02-15T23:00:00Z".to_owned(), 21)]);
    assert_eq!(messages.read("Sales", time("2026-02-16T00:00:00Z")).await.expect("read"), None);
    assert_eq!(table.query::<DynamicEntity>().all().await.expect("read").len(), 1, "one row for the day");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t9_writers_of_all_slots_and_of_two_series_lose_nothing() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Statistics").await;
    let messages = messages(&table);
    let seconds = Series::<f64>::new(table.clone(), "Seconds", Resolution::QuarterHoursOfDay).expect("a series");
    let start = time("2026-02-15T00:00:00Z");
    let mut writers = Vec::new();
    for slot in 0..96_u32 {
        let (messages, seconds) = (messages.clone(), seconds.clone());
        writers.push(tokio::spawn(async move {
            let at = start.after(Duration::from_secs(900) * slot);
            seconds.record("Sales", at, &f64::from(slot)).await.expect("recorded");
            if slot % 4 == 0 {
                messages.record("Sales", at, &i64::from(slot)).await.expect("recorded");
            }
        }));
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
    let quarters = seconds.read("Sales", start).await.expect("read").expect("a row");
    assert_eq!(quarters.values, (0..96).map(|slot| Some(f64::from(slot))).collect::<Vec<_>>());
    let hours = messages.read("Sales", start).await.expect("read").expect("a row");
    assert_eq!(hours.values, (0..24).map(|hour| Some(hour * 4)).collect::<Vec<_>>());
}

#[tokio::test]
async fn t9_a_range_of_days_is_one_request() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Statistics").await;
    let messages = messages(&table);
    let start = time("2026-02-26T00:00:00Z");
    let hours: Vec<_> = (0..24 * 6).map(|hour| (start.after(Duration::from_secs(3600 * hour)), hour)).collect();
    let values: Vec<i64> = hours.iter().map(|(_, hour)| i64::try_from(*hour).expect("small")).collect();
    let all = hours.iter().zip(&values).map(|((at, _), value)| (*at, value));
    let (written, requests) = fixture.counted(messages.record_all("Sales", all)).await;
    written.expect("recorded");
    assert_eq!(requests, 6, "one for each day");
    // What others keep in the partition, before and after.
    for row in ["", "2026", "20270101"] {
        table.insert(&DynamicEntity::new("Sales", row)).await.expect("inserted");
    }
    let span = time("2026-02-27T15:00:00Z")..time("2026-03-03T00:00:00Z");
    let (days, requests) = fixture.counted(messages.range("Sales", span).all()).await;
    let days = days.expect("read");
    assert_eq!((days.len(), requests), (4, 1));
    assert_eq!(days[0].start, time("2026-02-27T00:00:00Z"));
    assert_eq!(days[3].recorded().last(), Some((time("2026-03-02T23:00:00Z"), &119)));
    let (none, _) = fixture.counted(messages.range("Sales", start..start).all()).await;
    assert!(none.expect("read").is_empty());
}

#[tokio::test]
async fn t9_what_is_no_value_is_refused_before_anything_is_written() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Statistics").await;
    for name in ["", "1x", "a b", &"x".repeat(253)] {
        let refused = Series::<i64>::new(table.clone(), name, Resolution::HoursOfDay);
        assert!(matches!(refused, Err(Error::Invalid(_))) || name.is_empty(), "{name}");
    }
    let optional = Series::<Option<i64>>::new(table.clone(), "x", Resolution::HoursOfDay).expect("a series");
    let start = time("2026-02-15T00:00:00Z");
    let (refused, requests) = fixture.counted(optional.record_all("Sales", [(start, &Some(1)), (start, &None)])).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert_eq!(requests, 0);
    // A value of another type is an error; it is not dropped.
    table.insert(&DynamicEntity::new("Sales", "20260215").with("Messages_03", "many")).await.expect("inserted");
    assert!(
        matches!(messages(&table).read("Sales", start).await, Err(Error::Entity(error)) if error.property() == "Messages_03")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn t9_any_time_reads_back_at_its_step(at in any_time()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let fixture = Fixture::new().await;
            let table = fixture.table("Statistics").await;
            for (number, resolution) in RESOLUTIONS.into_iter().enumerate() {
                let series = Series::<String>::new(table.clone(), format!("S{number}"), resolution).expect("a series");
                let partition = format!("{number}");
                series.record(&partition, at, &"x".to_owned()).await.expect("recorded");
                let row = series.read(&partition, at).await.expect("read").expect("a row");
                assert_eq!(row.values.len(), resolution.slots());
                let recorded: Vec<_> = row.recorded().collect();
                assert_eq!(recorded.len(), 1);
                assert!(recorded[0].0 <= at && at < recorded[0].0.after(resolution.step()));
            }
        });
    }
}
