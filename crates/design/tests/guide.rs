//! For every worked example of the table design guide, the guide's recommendation is among the designs.

use crate::shape::{changed, example};
use larimar_design::{Consistency, Kind, Pattern, Period, Placement, Rate, Role};

#[test]
fn r1_employees_are_in_the_partition_of_their_department() {
    let proposed = example("employees");
    let design = proposed.find("of the guide", |it| {
        proposed.has_primary(it, &["Department"], &["EmployeeId"]) && it.layout.placements == [Placement::Together]
    });
    assert!(design.uses(Pattern::R1));
    assert_eq!(design.queries[0].access.kind, Kind::Point);
    assert_eq!(design.queries[1].access.requests, 3.0, "2,500 employees in pages of 1,000");
    assert_eq!(design.writes[0].is_transaction_possible, Some(true));
    assert_eq!(design.writes[0].consistency, Consistency::Transaction);
}

#[test]
fn t1_a_look_up_by_another_unique_value_is_a_copy_in_the_partition() {
    let proposed = example("email");
    let design = proposed.find("of the guide", |it| {
        proposed.has_primary(it, &["Department"], &["EmployeeId"])
            && proposed.has(it, Role::Copy, &["Department"], &["Email"])
    });
    let kinds: Vec<Kind> = design.queries.iter().map(|query| query.access.kind).collect();
    assert_eq!(kinds, [Kind::Point, Kind::Point, Kind::Range]);
    assert!(design.writes.iter().all(|write| write.consistency == Consistency::Transaction));
    assert_eq!(design.structures[1].row_key, "email_{Email}");
    assert_eq!(design.structures[0].example_row_key, "employeeid_000223");
}

#[test]
fn t2_copies_are_in_other_partitions_if_one_cannot_serve_all_requests() {
    let proposed = example("email-busy");
    let design = proposed.find("of the guide", |it| {
        proposed.has_primary(it, &["Department"], &["EmployeeId"])
            && proposed.has(it, Role::OtherCopy, &["Department"], &["Email"])
    });
    assert!(design.partition_entities_per_second <= 2000.0, "{}", design.partition_entities_per_second);
    assert!(design.queries[..2].iter().all(|query| query.access.kind == Kind::Point));
    assert!(design.uses(Pattern::T3), "the copies follow eventually");
    assert!(proposed.proposal.designs.iter().all(|it| !it.uses(Pattern::T1)), "T1 would be too hot");
}

#[test]
fn t4_a_value_that_many_share_has_a_list_of_keys() {
    let proposed = example("last-name");
    let design = proposed.find("of the guide", |it| proposed.has(it, Role::List, &["Department"], &["LastName"]));
    let by_name = &design.queries[1].access;
    assert_eq!(
        (by_name.kind, by_name.requests, by_name.rows),
        (Kind::Points, 6.0, 6.0),
        "the list, then five employees"
    );
    assert_eq!(design.writes[0].consistency, Consistency::Transaction);
    assert_eq!(design.writes[1].rows, 1.0, "new notes do not change the list");
    // Option 3 of the guide: over the whole organisation the list is in another partition.
    let proposed = changed("last-name", |it| it.queries[1].equals = vec!["LastName".to_owned()]);
    let design = proposed.find("with lists elsewhere", |it| proposed.has(it, Role::OtherList, &["LastName"], &[]));
    assert!(design.uses(Pattern::T3));
}

#[test]
fn t5_what_is_always_shown_together_is_one_entity() {
    let proposed = example("manager");
    let design = proposed.find("of the guide", |it| it.layout.placements == [Placement::Inside]);
    let query = &design.queries[0].access;
    assert_eq!((query.kind, query.requests, query.rows), (Kind::Point, 1.0, 1.0));
    assert_eq!(design.writes[0].is_transaction_possible, Some(true));
}

#[test]
fn t6_an_entity_with_its_yearly_records_is_one_range() {
    let proposed = example("reviews");
    let design = proposed.find("of the guide", |it| {
        proposed.has_primary(it, &["Department"], &["EmployeeId"]) && it.layout.placements == [Placement::Together]
    });
    assert!(design.uses(Pattern::T6));
    let (with, alone) = (&design.queries[0].access, &design.queries[1].access);
    assert_eq!((with.kind, with.requests, with.rows), (Kind::Range, 1.0, 11.0));
    assert_eq!((alone.kind, alone.rows), (Kind::Point, 1.0));
    assert_eq!(design.writes[1].is_transaction_possible, Some(true));
}

#[test]
fn t7_the_latest_entities_come_first() {
    let proposed = example("expense-claims");
    let design = proposed.find("of the guide", |it| proposed.has_primary(it, &["EmployeeId"], &["-Submitted"]));
    assert!(design.uses(Pattern::T7));
    let query = &design.queries[0].access;
    assert_eq!((query.rows, query.requests, query.is_sorted_by_client), (10.0, 1.0, false));
}

#[test]
fn t8_old_entities_go_with_their_table() {
    let proposed = example("logins");
    let design = proposed.find("of the guide", |it| {
        it.layout.tables == Some(Period::Day) && proposed.has_primary(it, &["User"], &["Time"])
    });
    let expiry = design.writes.last().expect("expiry");
    assert_eq!((expiry.name.as_str(), expiry.rows), ("expiry", 0.0));
    assert!(expiry.requests < 1e-5, "one request for a million entities");
    assert_eq!(design.queries[0].access.requests, 1.0);
}

#[test]
fn t9_a_day_of_values_is_one_entity() {
    let proposed = example("messages-per-hour");
    let design = proposed.find("of the guide", |it| {
        it.layout.packed == Some(Period::Day) && proposed.has_primary(it, &["EmployeeId"], &["day of Hour"])
    });
    let query = &design.queries[0].access;
    assert_eq!((query.rows, query.requests, query.returned), (1.0, 1.0, 24.0));
    assert_eq!((design.writes[0].requests, design.writes[0].rows), (1.0, 1.0), "Merge, without a read");
}

#[test]
fn t10_more_than_252_properties_are_several_entities() {
    let proposed = example("daily-counts");
    let design = proposed.find("of the guide", |it| it.uses(Pattern::T10));
    let query = &design.queries[0].access;
    assert_eq!((query.kind, query.rows, query.requests), (Kind::Points, 2.0, 2.0));
    assert_eq!((design.writes[0].requests, design.writes[0].rows), (1.0, 1.0), "one of them changes");
}

#[test]
fn t11_a_large_value_is_in_a_blob() {
    let proposed = example("photos");
    let design = proposed
        .find("of the guide", |it| it.uses(Pattern::T11) && proposed.has_primary(it, &["Department"], &["EmployeeId"]));
    assert_eq!(design.queries[0].access.requests, 2.0, "the entity and its blob");
    assert_eq!(design.queries[1].access.requests, 1.0, "a list without photos");
    assert_eq!(design.writes[0].consistency, Consistency::Eventual);
}

#[test]
fn t12_inserts_are_spread_by_a_compound_partition_key() {
    let proposed = example("access-log");
    let design = proposed.find("of the guide", |it| proposed.has_primary(it, &["Department", "EmployeeId"], &["Time"]));
    assert!(design.partition_entities_per_second < 100.0);
    for design in &proposed.proposal.designs {
        assert!(!design.warnings.iter().any(|warning| warning.contains("append-only")), "{:?}", design.warnings);
    }
}

#[test]
fn t12_an_append_only_key_is_named() {
    // So few inserts that a key that begins with the time would do: then it is shown, with the warning.
    let proposed = changed("logins", |it| {
        it.queries[0].equals.clear();
        it.queries[0].rate = Rate(0.001);
        it.writes[0].rate = Rate(1.0);
    });
    let design = proposed.find("by time", |it| {
        let first = proposed.partition(&it.layout.structures[0]).swap_remove(0);
        ["Time", "hour of Time", "day of Time"].contains(&first.as_str()) && !it.uses(Pattern::T13)
    });
    assert!(design.warnings.iter().any(|it| it.contains("T12") && it.contains("append-only")), "{:?}", design.warnings);
}

#[test]
fn t13_log_data_is_in_blobs() {
    let proposed = example("log-data");
    let design = proposed.find("of the guide", |it| it.uses(Pattern::T13));
    assert_eq!(design.queries[0].access.kind, Kind::Blobs);
    assert!(design.requests_per_second < 10.0, "5,000 records a second in blocks of a mebibyte");
    // A table is shown beside it, spread over buckets.
    let table = proposed.find("in a table", |it| !it.uses(Pattern::T13));
    assert!(table.partition_entities_per_second <= 2000.0);
    assert!(table.uses(Pattern::T12));
}
