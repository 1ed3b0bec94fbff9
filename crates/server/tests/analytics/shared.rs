//! Several servers over an engine that they share: what one of them receives, the others use.

use crate::analytics::fixture::{Fixture, logging_part, set_properties};
use larimar_engine::MemoryEngine;
use std::time::Duration;

#[test]
fn x3_what_one_server_is_told_the_others_do_seconds_later() {
    let fixture = Fixture::<MemoryEngine>::over_engine();
    let (one, mut other) = (fixture.server(), fixture.server());
    set_properties(&one.client, &logging_part("1.0", [false, true, false], None));
    other.client.create_table("early");
    other.after(Duration::from_secs(5));
    other.client.create_table("late");
    other.flush();
    let logs = fixture.logs().expect("a container");
    let [log] = logs.as_slice() else { panic!("{logs:?}") };
    let operations: Vec<String> = log.lines().into_iter().map(|fields| fields[2].clone()).collect();
    assert_eq!(operations, ["CreateTable"]);
    // And that it is over.
    set_properties(&one.client, &logging_part("1.0", [false; 3], None));
    other.after(Duration::from_secs(5));
    other.client.create_table("unseen");
    other.flush();
    assert_eq!(fixture.logs().expect("a container").len(), 1);
}
