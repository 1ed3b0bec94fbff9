//! Hourly and minute metrics, read as any client reads them.

use crate::analytics::fixture::{Fixture, metrics_part};
use larimar_testkit::http::{Batch, entity_path};
use larimar_wire::analytics::Period;
use serde_json::Value;
use std::time::Duration;

const FLUSH: Duration = Duration::from_secs(300);
const HOURS: &str = "$MetricsHourPrimaryTransactionsTable";
const MINUTES: &str = "$MetricsMinutePrimaryTransactionsTable";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The row of an operation.
fn row<'v>(rows: &'v [Value], operation: &str) -> &'v Value {
    let key = format!("user;{operation}");
    rows.iter().find(|row| row["RowKey"] == key.as_str()).unwrap_or_else(|| panic!("no row {key} in {rows:?}"))
}

/// Int64 comes as text.
fn count(row: &Value, column: &str) -> u64 {
    row[column].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {column} in {row}"))
}

#[test]
fn x3_a_fresh_account_counts_by_the_hour_and_operation() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    let start = fixture.now();
    server.client.create_table("people");
    server.client.insert("people", "p", "r", "");
    server.client.get(&entity_path("people", "p", "r")).send().is_status(200);
    server.client.get(&entity_path("people", "p", "missing")).send().is_status(404);
    server.client.anonymous().get("/people()").send().is_status(401);
    let wrong = server.client.get("/people()").unsigned().header("authorization", "SharedKey devstoreaccount1:AAAA");
    wrong.send().is_status(403);
    // Nothing is written before its time.
    server.after(FLUSH - Duration::from_secs(1));
    assert!(!fixture.has_table(HOURS));
    server.after(Duration::from_secs(1));
    let rows = server.rows(HOURS, Period::Hour, start);
    let all = row(&rows, "All");
    for (column, expected) in [
        ("TotalRequests", 6),
        ("TotalBillableRequests", 4),
        ("Success", 3),
        ("ClientOtherError", 1),
        // A key that does not hold proves nothing about its sender.
        ("AuthorizationError", 0),
        ("AnonymousAuthorizationError", 2),
        ("SASSuccess", 0),
    ] {
        assert_eq!(count(all, column), expected, "{column} of {all}");
    }
    assert!(count(all, "TotalIngress") > 600 && count(all, "TotalEgress") > 600, "{all}");
    assert_eq!((all["Availability"].as_f64(), all["PercentSuccess"].as_f64()), (Some(100.0), Some(50.0)), "{all}");
    assert!(all["AverageE2ELatency"].as_f64() >= all["AverageServerLatency"].as_f64(), "{all}");
    let of = |operation, column| count(row(&rows, operation), column);
    assert_eq!((of("CreateTable", "Success"), of("InsertEntity", "Success")), (1, 1));
    assert_eq!((of("QueryEntity", "TotalRequests"), of("QueryEntity", "ClientOtherError")), (2, 1));
    // Also what was refused at the door has a name.
    assert_eq!((of("QueryEntities", "TotalRequests"), of("QueryEntities", "AnonymousAuthorizationError")), (2, 2));
}

#[test]
fn x3_every_service_has_its_table_and_idle_hours_have_a_row() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.queues.put("/jobs", "").send().is_status(201);
    server.after(FLUSH);
    let now = fixture.now();
    for service in ["Blob", "Queue", "Table"] {
        let table = format!("$MetricsHourPrimaryTransactions{service}");
        let rows = server.rows(&table, Period::Hour, now);
        assert_eq!(row(&rows, "All")["Availability"].as_f64(), Some(100.0), "{service}: {rows:?}");
    }
}

#[test]
fn x3_sums_grow_in_place_and_those_of_several_servers_are_one() {
    let fixture = Fixture::new();
    let (mut one, mut other) = (fixture.server(), fixture.server());
    let start = fixture.now();
    one.client.create_table("people");
    one.after(FLUSH);
    for number in 0..5 {
        other.client.insert("people", "p", &number.to_string(), "");
    }
    let (of_first, of_second) = (Period::Hour.start(start), Period::Hour.start(fixture.now()));
    other.after(FLUSH);
    one.client.insert("people", "p", "last", "");
    one.flush();
    let inserts = |server: &crate::analytics::fixture::Server<'_>, hour| {
        let rows = server.rows(HOURS, Period::Hour, hour);
        let of =
            |name| rows.iter().filter(|row| row["RowKey"] == name).map(|row| count(row, "TotalRequests")).sum::<u64>();
        (of("user;InsertEntity"), of("user;CreateTable"))
    };
    // The hour may have ended meanwhile.
    let mut hours = vec![of_first, of_second, Period::Hour.start(fixture.now())];
    hours.dedup();
    let all: (u64, u64) = hours.iter().map(|hour| inserts(&one, *hour)).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert_eq!(all, (6, 1));
}

#[test]
fn x3_minutes_are_counted_when_switched_on_and_told_when_over() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&metrics_part("MinuteMetrics", true, None));
    server.tick();
    let first = fixture.now();
    server.client.create_table("people");
    server.after(Duration::from_secs(59));
    assert!(!fixture.has_table(MINUTES));
    server.after(Duration::from_secs(1));
    let rows = server.rows(MINUTES, Period::Minute, first);
    assert_eq!(count(row(&rows, "CreateTable"), "Success"), 1);
    // The second minute has the read above, the third has nothing.
    let second = fixture.now();
    server.after(Duration::from_secs(60));
    let third = fixture.now();
    server.after(Duration::from_secs(60));
    let rows = server.rows(MINUTES, Period::Minute, second);
    assert_eq!(count(row(&rows, "QueryEntities"), "TotalRequests"), 1, "{rows:?}");
    let rows = server.rows(MINUTES, Period::Minute, third);
    assert_eq!(count(row(&rows, "All"), "TotalRequests"), 0);
    assert_eq!(rows.len(), 1);
}

#[test]
fn x3_nothing_is_counted_when_switched_off() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    server.set_properties(&metrics_part("HourMetrics", false, None));
    server.client.create_table("people");
    server.after(FLUSH);
    server.flush();
    assert!(!fixture.has_table(HOURS));
    // The other services have their own switch.
    server.client.get("/$MetricsHourPrimaryTransactionsQueue()").send().is_status(200);
}

#[test]
fn x3_tables_of_metrics_are_hidden_and_their_owner_may_only_read_and_clear_them() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    let client = &server.client;
    client.create_table("people");
    server.after(FLUSH);
    let client = &server.client;
    assert_eq!(client.get("/Tables").send().column("TableName"), ["people"]);
    assert_eq!(client.get("/Tables").query("$top", "1").send().column("TableName"), ["people"]);
    client.get(&format!("/Tables('{HOURS}')")).send().is_status(200);
    client.get(&format!("/{}()", HOURS.replace('$', "%24"))).send().is_status(200);
    client.get("/$MetricsTransactionsTable()").send().is_status(200);
    client.post("/Tables", r#"{"TableName":"$MetricsOther"}"#).send().is_error(400, "InvalidResourceName");
    client.delete(&format!("/Tables('{HOURS}')")).send().is_error(403, "AuthorizationFailure");
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    client.post(&format!("/{HOURS}"), entity).send().is_error(403, "AuthorizationFailure");
    let path = entity_path(HOURS, "p", "r");
    client.put(&path, "{}").send().is_error(403, "AuthorizationFailure");
    client.merge(&path, "{}").if_match("*").send().is_error(403, "AuthorizationFailure");
    let batch = Batch::new().insert(client, HOURS, "p", "r", "").send(client);
    assert_eq!(batch.statuses(), [403]);
    let acl = "<SignedIdentifiers></SignedIdentifiers>";
    client.put(&format!("/{HOURS}?comp=acl"), acl).send().is_error(403, "AuthorizationFailure");
    let rows = client.get(&format!("/{HOURS}()")).send().values();
    assert!(!rows.is_empty());
    for row in &rows {
        let text = |column: &str| row[column].as_str().expect("a key").to_owned();
        let path = entity_path(HOURS, &text("PartitionKey"), &text("RowKey"));
        client.delete(&path).if_match("*").send().is_status(204);
    }
    assert!(client.get(&format!("/{HOURS}()")).send().values().is_empty());
}

#[test]
fn x3_metrics_are_kept_as_long_as_wished_for() {
    let fixture = Fixture::new();
    let mut server = fixture.server();
    let hours = metrics_part("HourMetrics", true, Some(2));
    server.set_properties(&format!("{hours}{}", metrics_part("MinuteMetrics", true, None)));
    server.tick();
    let start = fixture.now();
    server.client.create_table("people");
    server.after(FLUSH);
    let rows = |server: &crate::analytics::fixture::Server<'_>| {
        // Signatures have a date, so the clock has to be about right while the client reads.
        let later = fixture.now();
        fixture.clock.set(start);
        let of_hour = server.rows(HOURS, Period::Hour, start).len();
        let of_minute = server.rows(MINUTES, Period::Minute, start).len();
        fixture.clock.set(later);
        (of_hour > 0, of_minute > 0)
    };
    fixture.clock.set(Period::Hour.start(start).after(2 * DAY));
    server.tick();
    assert_eq!(rows(&server), (true, true));
    fixture.clock.set(Period::Hour.start(start).after(2 * DAY + Duration::from_secs(3600)));
    server.tick();
    assert_eq!(rows(&server), (false, true));
}
