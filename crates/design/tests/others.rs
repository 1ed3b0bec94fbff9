//! Ten examples outside the guide: what an engineer would demand of the first design.

use crate::shape::{Proposed, example};
use larimar_design::{Consistency, Kind, Pattern, Period, Role};

/// The first design has no waste, no hot partition and no frequent scan.
fn sound(name: &str) -> Proposed {
    let proposed = example(name);
    let design = &proposed.proposal.designs[0];
    assert!(design.partition_entities_per_second <= 2000.0, "{name}: {}", design.partition_entities_per_second);
    assert!(design.requests_per_second <= 20_000.0, "{name}: {}", design.requests_per_second);
    for (query, described) in design.queries.iter().zip(&proposed.description.queries) {
        assert!(!query.is_wasteful && !query.is_scan(), "{name}: {query:?}");
        if described.rate.0 >= 1.0 {
            assert!(query.access.requests <= 2.0, "{name}: {query:?}");
            assert!(query.access.rows <= 2.0 * query.access.returned + 10.0, "{name}: {query:?}");
        }
    }
    for write in design.writes.iter().filter(|write| write.is_transaction_possible.is_some()) {
        assert_eq!(write.is_transaction_possible, Some(true), "{name}: {write:?}");
    }
    proposed
}

#[test]
fn telemetry_is_by_sensor_and_old_readings_go_with_their_table() {
    let proposed = sound("telemetry");
    let design = &proposed.proposal.designs[0];
    assert!(proposed.has_primary(design, &["Sensor"], &["-Time"]));
    assert_eq!(design.layout.tables, Some(Period::Day));
    assert_eq!(design.queries[1].access.rows, 1.0, "the latest reading is the first row");
}

#[test]
fn chat_shows_the_latest_first_and_finds_each_message() {
    let proposed = sound("chat");
    let design = &proposed.proposal.designs[0];
    assert_eq!(proposed.partition(&design.layout.structures[0]), ["Room"]);
    assert!(design.uses(Pattern::T7));
    assert_eq!(design.queries[0].access.rows, 50.0);
    assert_eq!(design.queries[1].access.kind, Kind::Point);
    assert!(design.writes.iter().all(|write| write.consistency != Consistency::Eventual));
}

#[test]
fn orders_and_their_lines_are_written_in_one_transaction() {
    let proposed = sound("orders");
    for design in &proposed.proposal.designs {
        assert_eq!(design.writes[0].is_transaction_possible, Some(true));
        assert!(design.queries[2].access.requests <= 2.0, "an order is found by its number: {:?}", design.queries[2]);
    }
}

#[test]
fn audit_records_are_by_tenant_with_two_orders() {
    let proposed = sound("audit-log");
    let design = &proposed.proposal.designs[0];
    assert_eq!(proposed.partition(&design.layout.structures[0]), ["Tenant"]);
    assert!(design.queries.iter().all(|query| query.access.kind == Kind::Range), "{:?}", design.queries);
    proposed.find("with a table for each month", |it| it.layout.tables == Some(Period::Month));
}

#[test]
fn users_of_tenants_sign_in_by_a_copy_elsewhere() {
    let proposed = sound("saas-users");
    let design = &proposed.proposal.designs[0];
    assert!(proposed.has_primary(design, &["Tenant"], &["UserId"]));
    assert!(proposed.has(design, Role::OtherCopy, &["Email"], &[]));
    assert!(proposed.has(design, Role::Copy, &["Tenant"], &["Name"]));
    let settings = &design.writes[1];
    assert_eq!((settings.requests, settings.rows), (1.0, 1.0), "the copies do not have the settings");
}

#[test]
fn a_leaderboard_is_in_the_order_of_points() {
    let proposed = sound("leaderboard");
    let design = &proposed.proposal.designs[0];
    assert!(proposed.has(design, Role::Copy, &["Game"], &["-Points"]));
    assert_eq!(design.queries[0].access.rows, 10.0);
    assert_eq!(design.writes[0].consistency, Consistency::Transaction);
}

#[test]
fn a_session_is_a_point_in_a_partition_of_its_own() {
    let proposed = sound("sessions");
    let design = &proposed.proposal.designs[0];
    assert!(proposed.has_primary(design, &["SessionId"], &[]));
    assert_eq!((design.queries[0].access.kind, design.queries[0].access.requests), (Kind::Point, 1.0));
}

#[test]
fn a_catalogue_has_small_copies_for_its_lists() {
    let proposed = sound("catalogue");
    let design = &proposed.proposal.designs[0];
    assert!(proposed.has_primary(design, &["Sku"], &[]));
    assert!(proposed.has(design, Role::OtherCopy, &["Category"], &["Price"]));
    assert!(proposed.has(design, Role::OtherCopy, &["Brand"], &[]));
    let tables: Vec<&str> = design.structures.iter().map(|it| it.table.as_str()).collect();
    assert_eq!(tables, ["Product", "ProductByCategory", "ProductByBrand"]);
    let copies = design.structures[1..].iter();
    assert!(copies.clone().all(|it| it.stores.as_ref().is_some_and(|stores| !stores.contains(&"Text".to_owned()))));
}

#[test]
fn followers_are_stored_from_both_sides() {
    let proposed = sound("followers");
    let design = &proposed.proposal.designs[0];
    let sides = [["Follower"], ["Followed"]];
    let found: Vec<Vec<String>> = design.layout.structures.iter().map(|it| proposed.partition(it)).collect();
    assert!(sides.iter().all(|side| found.iter().any(|it| it == side)), "{found:?}");
}

#[test]
fn waiting_jobs_are_in_the_order_of_priority() {
    let proposed = sound("jobs");
    let design = &proposed.proposal.designs[0];
    assert_eq!(design.queries[0].access.kind, Kind::Point);
    assert_eq!(design.queries[1].access.rows, 10.0);
    assert!(!design.queries[1].access.is_sorted_by_client);
}
