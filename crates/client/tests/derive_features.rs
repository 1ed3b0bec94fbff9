//! Properties of the types of chrono, time and uuid: `cargo test -p larimar-client --all-features`.
#![cfg(all(feature = "derive", feature = "chrono", feature = "time", feature = "uuid"))]

use chrono::{DateTime, FixedOffset, TimeZone as _, Utc};
use larimar_client::{Entity, Guid, Timestamp, Value};
use proptest::prelude::*;
use std::time::SystemTime;
use time::OffsetDateTime;
use uuid::Uuid;

#[derive(Debug, PartialEq, Entity)]
struct Event {
    #[entity(partition_key)]
    id: Uuid,
    #[entity(row_key)]
    number: u64,
    #[entity(timestamp)]
    written_at: Option<DateTime<Utc>>,
    standard: SystemTime,
    chrono: DateTime<Utc>,
    time: Option<OffsetDateTime>,
    uuid: Option<Uuid>,
}

#[test]
fn the_types_of_other_crates_are_stored_as_the_services_own() {
    let noon: Timestamp = "2024-02-29T12:00:00.1234567Z".parse().expect("a time");
    let id = Uuid::from_bytes([0xA5; 16]);
    let event = Event {
        id,
        number: 1,
        written_at: Some(noon.into()),
        standard: noon.into(),
        chrono: noon.into(),
        time: Some(noon.into()),
        uuid: Some(id),
    };
    let entity = event.to_dynamic().expect("an entity").into_owned();
    assert_eq!(entity.timestamp, Some(noon));
    for name in ["Standard", "Chrono", "Time"] {
        assert_eq!(entity.value(name), Some(&Value::DateTime(noon)), "{name}");
    }
    assert_eq!(entity.value("Uuid"), Some(&Value::Guid(Guid::from_bytes([0xA5; 16]))));
    assert_eq!(Event::from_dynamic(entity).expect("an event"), event);
}

#[test]
fn filters_take_the_types_of_other_crates() {
    let noon: Timestamp = "2024-02-29T12:00:00Z".parse().expect("a time");
    let expected = |name: &str| format!("{name} ge datetime'2024-02-29T12:00:00Z'");
    assert_eq!(Event::chrono().ge(DateTime::<Utc>::from(noon)).as_str(), expected("Chrono"));
    assert_eq!(Event::time().ge(OffsetDateTime::from(noon)).as_str(), expected("Time"));
    assert_eq!(Event::standard().ge(SystemTime::from(noon)).as_str(), expected("Standard"));
    let elsewhere = FixedOffset::east_opt(3600).expect("an offset").with_ymd_and_hms(2024, 2, 29, 13, 0, 0).unwrap();
    assert_eq!(Event::written_at().ge(elsewhere).as_str(), expected("Timestamp"));
    let filter = Event::uuid().eq(Uuid::nil());
    assert_eq!(filter.as_str(), "Uuid eq guid'00000000-0000-0000-0000-000000000000'");
}

#[test]
fn times_that_the_service_does_not_store_are_refused() {
    let noon: Timestamp = "2024-02-29T12:00:00Z".parse().expect("a time");
    let event = |chrono: DateTime<Utc>| Event {
        id: Uuid::nil(),
        number: 1,
        written_at: None,
        standard: noon.into(),
        chrono,
        time: None,
        uuid: None,
    };
    for chrono in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        let event = event(chrono);
        let error = event.to_dynamic().expect_err("out of range");
        assert_eq!(error.to_string(), "property 'Chrono': expected a time from 1601-01-01 to 9999-12-31");
    }
}

proptest! {
    #[test]
    fn times_survive_every_conversion(ticks in 0..=Timestamp::MAX.ticks()) {
        let time = Timestamp::from_ticks(ticks);
        prop_assert_eq!(Timestamp::from(DateTime::<Utc>::from(time)), time);
        prop_assert_eq!(Timestamp::from(OffsetDateTime::from(time)), time);
        let (ours, theirs) = (time.to_string(), DateTime::<Utc>::from(time).to_rfc3339());
        prop_assert_eq!(&ours[..19], &theirs[..19]);
    }

    #[test]
    fn what_is_finer_than_a_tick_is_cut_off(seconds in -11_644_473_600i64..253_402_300_800, nanoseconds in 0..1_000_000_000u32) {
        let chrono = DateTime::from_timestamp(seconds, nanoseconds).expect("a time");
        let time = OffsetDateTime::from_unix_timestamp(seconds).expect("a time") + time::Duration::nanoseconds(nanoseconds.into());
        prop_assert_eq!(Timestamp::from(chrono), Timestamp::from(time));
        let back = DateTime::<Utc>::from(Timestamp::from(chrono));
        prop_assert_eq!((chrono - back).num_nanoseconds(), Some(i64::from(nanoseconds % 100)));
    }
}
