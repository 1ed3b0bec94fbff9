//! Promises about one batch: conditions, atomicity, edits, and that what was put comes back.

use super::rows::{NOW, create, name, put, read, store, unbounded, write};
use larimar_engine::{Act, Beside, EditError, Engine, Expect, Flow, Key, KeyRange, Op, Reject, SpaceId, WriteError};
use larimar_model::Timestamp;

/// A row that was put is read back byte for byte, with the version the write returned.
pub async fn a_row_that_was_put_is_read_back_with_its_version(engine: &impl Engine) {
    let space = create(engine, "t").await;
    assert_eq!(read(engine, space, "p", "r").await, None);
    let version = store(engine, space, "p", "r", b"one").await;
    assert_eq!(read(engine, space, "p", "r").await, Some((version, b"one".to_vec())));
    assert_eq!(read(engine, space, "p", "R").await, None);
    assert_eq!(read(engine, space, "P", "r").await, None);
}

/// `Absent` holds where no row is, and fails with the version found where one is.
pub async fn absent_admits_only_a_missing_row(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let insert = |body| Op { row: "r", expect: Expect::Absent, act: Act::Put(body) };
    let version = write(engine, space, "p", insert(b"one"), NOW).await.expect("no row is there");
    let again = write(engine, space, "p", insert(b"two"), NOW).await;
    assert_eq!(again, Err(WriteError::Condition { op: 0, found: Some(version) }));
    assert_eq!(read(engine, space, "p", "r").await, Some((version, b"one".to_vec())));
}

/// `Present` holds where a row is, and fails with nothing found where none is.
pub async fn present_admits_only_an_existing_row(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let replace = Op { row: "r", expect: Expect::Present, act: Act::Put(b"two") };
    let missing = write(engine, space, "p", replace, NOW).await;
    assert_eq!(missing, Err(WriteError::Condition { op: 0, found: None }));
    assert_eq!(read(engine, space, "p", "r").await, None);
    store(engine, space, "p", "r", b"one").await;
    let version = write(engine, space, "p", replace, NOW).await.expect("the row is there");
    assert_eq!(read(engine, space, "p", "r").await, Some((version, b"two".to_vec())));
}

/// `Version` holds for that version alone: not for an older one, a neighbour, or a missing row.
pub async fn a_version_admits_only_that_version(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let if_match = |version| Op { row: "r", expect: Expect::Version(version), act: Act::Put(b"new") };
    let missing = write(engine, space, "p", if_match(NOW), NOW).await;
    assert_eq!(missing, Err(WriteError::Condition { op: 0, found: None }));
    let first = store(engine, space, "p", "r", b"one").await;
    let second = store(engine, space, "p", "r", b"two").await;
    for wrong in [first, Timestamp::from_ticks(second.ticks() + 1), Timestamp::from_ticks(second.ticks() - 1)] {
        if wrong == second {
            continue;
        }
        let refused = write(engine, space, "p", if_match(wrong), NOW).await;
        assert_eq!(refused, Err(WriteError::Condition { op: 0, found: Some(second) }));
    }
    assert_eq!(read(engine, space, "p", "r").await, Some((second, b"two".to_vec())));
    let third = write(engine, space, "p", if_match(second), NOW).await.expect("the version matches");
    assert_eq!(read(engine, space, "p", "r").await, Some((third, b"new".to_vec())));
}

/// A row that was removed and inserted again is another row for who holds the old version.
pub async fn a_row_inserted_again_does_not_match_its_old_version(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let old = store(engine, space, "p", "r", b"same").await;
    let remove = Op { row: "r", expect: Expect::Version(old), act: Act::Delete };
    write(engine, space, "p", remove, NOW).await.expect("the version matches");
    let new = store(engine, space, "p", "r", b"same").await;
    let refused = write(engine, space, "p", remove, NOW).await;
    assert_eq!(refused, Err(WriteError::Condition { op: 0, found: Some(new) }));
}

/// Delete removes the row; with `Any` a second one passes, with `Present` it does not.
pub async fn delete_removes_the_row_and_any_condition_lets_it_pass_twice(engine: &impl Engine) {
    let space = create(engine, "t").await;
    store(engine, space, "p", "r", b"one").await;
    store(engine, space, "p", "s", b"other").await;
    let delete = |expect| Op { row: "r", expect, act: Act::Delete };
    write(engine, space, "p", delete(Expect::Present), NOW).await.expect("the row is there");
    assert_eq!(read(engine, space, "p", "r").await, None);
    let again = write(engine, space, "p", delete(Expect::Present), NOW).await;
    assert_eq!(again, Err(WriteError::Condition { op: 0, found: None }));
    write(engine, space, "p", delete(Expect::Any), NOW).await.expect("nothing is asked of the row");
    assert_eq!(read(engine, space, "p", "r").await, None);
    assert!(read(engine, space, "p", "s").await.is_some());
}

/// Check asks for its condition and changes neither bytes nor version.
pub async fn check_changes_nothing(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let version = store(engine, space, "p", "r", b"one").await;
    let check = |row, expect| Op { row, expect, act: Act::Check };
    let ops = [check("r", Expect::Version(version)), check("s", Expect::Absent), put("t", b"two")];
    engine.apply(space, "p", &ops, NOW).await.expect("the conditions hold");
    assert_eq!(read(engine, space, "p", "r").await, Some((version, b"one".to_vec())));
    assert_eq!(read(engine, space, "p", "s").await, None);
    let ops = [put("u", b"three"), check("r", Expect::Absent)];
    let refused = engine.apply(space, "p", &ops, NOW).await;
    assert_eq!(refused, Err(WriteError::Condition { op: 1, found: Some(version) }));
    assert_eq!(read(engine, space, "p", "u").await, None);
}

/// Of several conditions that fail, the one with the lowest index is named.
pub async fn the_first_failing_condition_is_named(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let version = store(engine, space, "p", "c", b"one").await;
    let ops = [
        put("a", b"x"),
        Op { row: "b", expect: Expect::Absent, act: Act::Put(b"x") },
        Op { row: "c", expect: Expect::Absent, act: Act::Put(b"x") },
        Op { row: "d", expect: Expect::Present, act: Act::Delete },
    ];
    let refused = engine.apply(space, "p", &ops, NOW).await;
    assert_eq!(refused, Err(WriteError::Condition { op: 2, found: Some(version) }));
}

/// A batch whose last condition fails changes no row: nothing put, nothing removed.
pub async fn a_failed_condition_leaves_nothing_of_the_batch(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let kept = store(engine, space, "p", "kept", b"one").await;
    let removed = store(engine, space, "p", "removed", b"two").await;
    let ops = [
        put("new", b"x"),
        put("kept", b"changed"),
        Op { row: "removed", expect: Expect::Present, act: Act::Delete },
        Op { row: "missing", expect: Expect::Present, act: Act::Check },
    ];
    let refused = engine.apply(space, "p", &ops, NOW).await;
    assert_eq!(refused, Err(WriteError::Condition { op: 3, found: None }));
    assert_eq!(read(engine, space, "p", "new").await, None);
    assert_eq!(read(engine, space, "p", "kept").await, Some((kept, b"one".to_vec())));
    assert_eq!(read(engine, space, "p", "removed").await, Some((removed, b"two".to_vec())));
}

/// An edit is given the bytes that are there when it is applied, and its answer is stored.
pub async fn an_edit_sees_the_current_bytes(engine: &impl Engine) {
    let space = create(engine, "t").await;
    store(engine, space, "p", "r", b"a").await;
    let append = |old: Option<&[u8]>| Ok([old.unwrap_or_default(), b"b"].concat());
    for expected in [b"ab".as_slice(), b"abb", b"abbb"] {
        let op = Op { row: "r", expect: Expect::Any, act: Act::Edit(&append) };
        let version = write(engine, space, "p", op, NOW).await.expect("the edit agrees");
        assert_eq!(read(engine, space, "p", "r").await, Some((version, expected.to_vec())));
    }
}

/// An edit is given nothing where no row is, and may make the row.
pub async fn an_edit_sees_no_bytes_where_no_row_is(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let tell = |old: Option<&[u8]>| Ok(if old.is_none() { b"none".to_vec() } else { b"some".to_vec() });
    let op = Op { row: "r", expect: Expect::Any, act: Act::Edit(&tell) };
    write(engine, space, "p", op, NOW).await.expect("the edit agrees");
    assert_eq!(read(engine, space, "p", "r").await.map(|(_, body)| body), Some(b"none".to_vec()));
    // An empty body is a row all the same.
    store(engine, space, "p", "r", b"").await;
    write(engine, space, "p", op, NOW).await.expect("the edit agrees");
    assert_eq!(read(engine, space, "p", "r").await.map(|(_, body)| body), Some(b"some".to_vec()));
}

/// The condition of an edit is asked first.
pub async fn an_edit_runs_under_its_condition(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let edit = |_: Option<&[u8]>| Ok(b"edited".to_vec());
    let op = Op { row: "r", expect: Expect::Present, act: Act::Edit(&edit) };
    let missing = write(engine, space, "p", op, NOW).await;
    assert_eq!(missing, Err(WriteError::Condition { op: 0, found: None }));
    let version = store(engine, space, "p", "r", b"one").await;
    let stale = Op { expect: Expect::Version(NOW.after(std::time::Duration::from_secs(9))), ..op };
    let refused = write(engine, space, "p", stale, NOW).await;
    assert_eq!(refused, Err(WriteError::Condition { op: 0, found: Some(version) }));
    write(engine, space, "p", Op { expect: Expect::Version(version), ..op }, NOW).await.expect("the version matches");
    assert_eq!(read(engine, space, "p", "r").await.map(|(_, body)| body), Some(b"edited".to_vec()));
}

/// An edit that refuses takes the whole batch with it and its reason reaches the caller.
pub async fn a_refused_edit_names_its_reason_and_leaves_nothing(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let version = store(engine, space, "p", "r", b"one").await;
    let refuse = |_: Option<&[u8]>| Err(Reject::EntityExists);
    let ops = [put("new", b"x"), Op { row: "r", expect: Expect::Any, act: Act::Edit(&refuse) }, put("later", b"x")];
    let refused = engine.apply(space, "p", &ops, NOW).await;
    assert_eq!(refused, Err(WriteError::Refused { op: 1, reason: Reject::EntityExists }));
    assert_eq!(read(engine, space, "p", "r").await, Some((version, b"one".to_vec())));
    assert_eq!(read(engine, space, "p", "new").await, None);
    assert_eq!(read(engine, space, "p", "later").await, None);
}

/// An edit of one row returns the value that was computed from the bytes it replaced; one that is refused changes nothing.
pub async fn an_edit_of_a_row_returns_its_value(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let key = Key { space, partition: "p", row: "r" };
    let append = |old: Option<&[u8]>| match old {
        Some(b"full") => Err("full"),
        old => Ok(([old.unwrap_or_default(), b"l"].concat(), old.map(<[u8]>::len))),
    };
    assert_eq!(engine.edit(key, NOW, append).await, Ok(None));
    assert_eq!(engine.edit(key, NOW, append).await, Ok(Some(1)));
    let version = store(engine, space, "p", "r", b"ful").await;
    assert_eq!(engine.edit(key, NOW, append).await, Ok(Some(3)));
    let (edited, body) = read(engine, space, "p", "r").await.expect("a row");
    assert!(edited > version, "{edited} after {version}");
    assert_eq!(body, b"full");
    assert_eq!(engine.edit(key, NOW, append).await, Err(EditError::Refused("full")));
    assert_eq!(read(engine, space, "p", "r").await, Some((edited, body)));
    engine.drop_space(name("t")).await.expect("no fault");
    assert_eq!(engine.edit(key, NOW, append).await, Err(EditError::SpaceGone));
}

/// A hundred operations of every kind are applied together.
pub async fn a_batch_of_a_hundred_rows_is_applied_whole(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let names: Vec<String> = (0..100).map(|i| format!("{i:03}")).collect();
    for row in names.iter().step_by(2) {
        store(engine, space, "p", row, b"old").await;
    }
    let edit = |old: Option<&[u8]>| Ok([old.unwrap_or(b"-"), b"!"].concat());
    let ops: Vec<Op<'_>> = names
        .iter()
        .enumerate()
        .map(|(i, row)| match i % 4 {
            0 => Op { row, expect: Expect::Present, act: Act::Delete },
            1 => Op { row, expect: Expect::Absent, act: Act::Put(b"new") },
            2 => Op { row, expect: Expect::Present, act: Act::Edit(&edit) },
            _ => Op { row, expect: Expect::Absent, act: Act::Edit(&edit) },
        })
        .collect();
    let versions = engine.apply(space, "p", &ops, NOW).await.expect("every condition holds");
    assert_eq!(versions.len(), 100);
    for (i, row) in names.iter().enumerate() {
        let expected = [None, Some(b"new".to_vec()), Some(b"old!".to_vec()), Some(b"-!".to_vec())][i % 4].clone();
        let found = read(engine, space, "p", row).await;
        assert_eq!(found, expected.map(|body| (versions[i], body)), "row {row}");
    }
}

/// Bodies come back byte for byte: none, every byte value, and more than a mebibyte.
pub async fn bodies_of_any_size_and_bytes_come_back(engine: &impl Engine) {
    let space = create(engine, "t").await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..1_200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (row, body) in [("empty", vec![]), ("zero", vec![0]), ("every", every_byte), ("large", large)] {
        let version = store(engine, space, "p", row, &body).await;
        assert_eq!(read(engine, space, "p", row).await, Some((version, body)), "{row}");
    }
}

/// Rows of another partition are stored and removed with a batch, in its commit, and not at all if it fails.
pub async fn rows_beside_a_batch_are_written_with_it_or_not_at_all(engine: &impl Engine) {
    let space = create(engine, "beside").await;
    let beside = |row, body| Beside { partition: "", row, body };
    let there = async || rows_of(engine, space).await;
    let both = [beside("a", Some(&b"1"[..])), beside("b", Some(&b""[..]))];
    let versions = engine.apply_with(space, "p", &[put("a", b"own")], &both, NOW).await.expect("it is applied");
    assert_eq!(versions.len(), 1, "a version for each operation, and none for what is beside");
    assert_eq!(there().await, ["/a=1", "/b=", "p/a=own"]);
    let version = read(engine, space, "p", "a").await.expect("a row").0;
    assert_eq!(versions, [version]);
    // The condition fails: nothing is written.
    let refused = Op { row: "a", expect: Expect::Absent, act: Act::Put(b"other") };
    let changed = [beside("a", Some(&b"2"[..])), beside("b", None), beside("c", Some(&b"3"[..]))];
    let applied = engine.apply_with(space, "p", &[refused], &changed, NOW).await;
    assert_eq!(applied, Err(WriteError::Condition { op: 0, found: Some(version) }));
    assert_eq!(there().await, ["/a=1", "/b=", "p/a=own"]);
    // A batch may write nothing but what is beside, and may remove what is not there.
    let check = Op { row: "a", expect: Expect::Version(version), act: Act::Check };
    engine.apply_with(space, "p", &[check], &changed, NOW).await.expect("it is applied");
    assert_eq!(there().await, ["/a=2", "/c=3", "p/a=own"]);
    let check = Op { row: "none", expect: Expect::Absent, act: Act::Check };
    let gone = [beside("a", None), beside("b", None), beside("c", None)];
    engine.apply_with(space, "p", &[check], &gone, NOW).await.expect("it is applied");
    let own = Op { row: "a", expect: Expect::Version(version), act: Act::Delete };
    engine.apply_with(space, "p", &[own], &[beside("d", Some(&b"4"[..]))], NOW).await.expect("it is applied");
    assert_eq!(there().await, ["/d=4"]);
    assert!(engine.drop_space(name("beside")).await.expect("no fault"));
    let applied = engine.apply_with(space, "p", &[put("a", b"")], &both, NOW).await;
    assert_eq!(applied, Err(WriteError::SpaceGone));
}

async fn rows_of(engine: &impl Engine, space: SpaceId) -> Vec<String> {
    let (mut rows, all) = (Vec::new(), KeyRange::all());
    let scan = engine.scan(space, &all, unbounded(), |row| {
        rows.push(format!("{}/{}={}", row.partition, row.row, String::from_utf8_lossy(row.body)));
        Flow::Continue
    });
    assert_eq!(scan.await, Ok(None));
    rows
}
