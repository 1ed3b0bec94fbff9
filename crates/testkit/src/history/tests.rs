//! Histories made by hand, good and bad; each bad one is caught by its name.

use super::entity::{self, Action, Outcome, Row};
use super::{Condition, History, Kind, Refusal, Span, Version, Versions, partition};
use std::collections::BTreeMap;
use {Action::*, Condition::*};

/// Calls on one entity: `(begin, end, what was asked, what was answered)`.
type Exchange = (u64, u64, Action, Outcome);

const ABSENT: Outcome = Outcome::Refused(Refusal::NotFound);
const EXISTS: Outcome = Outcome::Refused(Refusal::Exists);
const CHANGED: Outcome = Outcome::Refused(Refusal::ConditionFailed);

fn ok(version: Version) -> Outcome {
    Outcome::Written(version)
}

fn saw(put: u64, version: Version) -> Outcome {
    Outcome::Found(Row { put: Some(put), merged: None, version })
}

fn merged(put: Option<u64>, merged: u64, version: Version) -> Outcome {
    Outcome::Found(Row { put, merged: Some(merged), version })
}

fn kinds(exchanges: &[Exchange]) -> Vec<Kind> {
    kinds_of(Versions::Rise, exchanges)
}

fn kinds_of(versions: Versions, exchanges: &[Exchange]) -> Vec<Kind> {
    let history = History::new(versions);
    for (client, (begin, end, action, outcome)) in exchanges.iter().enumerate() {
        let span = Span { client, begin: *begin, end: *end };
        history.entity("e", entity::Call { span, action: *action, outcome: *outcome });
    }
    history.violations().iter().map(|violation| violation.kind).collect()
}

#[track_caller]
fn is_good(exchanges: &[Exchange]) {
    assert_eq!(kinds(exchanges), []);
}

#[track_caller]
fn is_bad(exchanges: &[Exchange], kind: Kind) {
    let found = kinds(exchanges);
    assert!(found.contains(&kind), "expected {kind:?}, found {found:?}");
}

#[test]
fn calls_one_after_the_other_are_good() {
    is_good(&[]);
    is_good(&[
        (0, 1, Read, ABSENT),
        (2, 3, Put(1, Absent), ok(10)),
        (4, 5, Put(2, Absent), EXISTS),
        (6, 7, Read, saw(1, 10)),
        (8, 9, Put(3, Version(10)), ok(11)),
        (10, 11, Put(4, Version(10)), CHANGED),
        (12, 13, Merge(5, Any), ok(12)),
        (14, 15, Read, merged(Some(3), 5, 12)),
        (16, 17, Put(6, Any), ok(13)),
        (18, 19, Read, saw(6, 13)),
        (20, 21, Delete(Version(12)), CHANGED),
        (22, 23, Delete(Version(13)), Outcome::Removed),
        (24, 25, Delete(Present), ABSENT),
        (26, 27, Merge(7, Present), ABSENT),
        (28, 29, Merge(8, Any), ok(14)),
        (30, 31, Read, merged(None, 8, 14)),
    ]);
}

#[test]
fn calls_at_once_may_come_in_any_order() {
    // The read overlaps both writes; it may see none, one or the other.
    for seen in [ABSENT, saw(1, 10), saw(2, 11)] {
        is_good(&[(0, 10, Put(1, Any), ok(10)), (1, 9, Put(2, Any), ok(11)), (2, 8, Read, seen)]);
    }
    // One of two inserts wins, whichever began first.
    is_good(&[(0, 5, Put(1, Absent), EXISTS), (1, 4, Put(2, Absent), ok(10)), (6, 7, Read, saw(2, 10))]);
    // The refusal of the first insert needs the delete to come later.
    is_good(&[
        (0, 1, Put(1, Any), ok(10)),
        (2, 8, Delete(Present), Outcome::Removed),
        (3, 7, Put(2, Absent), EXISTS),
        (4, 6, Read, ABSENT),
        (9, 10, Read, ABSENT),
    ]);
}

#[test]
fn a_call_without_an_answer_happens_late_or_never() {
    let lost = |seen| [(0, 1, Put(1, Any), ok(10)), (2, 3, Put(2, Any), Outcome::Unknown), (4, 5, Read, seen)];
    is_good(&lost(saw(1, 10)));
    is_good(&lost(saw(2, 11)));
    // Late: first the old row is seen, and then the new one.
    is_good(&[
        (0, 1, Put(1, Any), ok(10)),
        (2, 3, Put(2, Any), Outcome::Unknown),
        (4, 5, Read, saw(1, 10)),
        (6, 7, Read, saw(2, 12)),
    ]);
    // No read saw the row that an unanswered insert made, but a delete removed it.
    is_good(&[
        (0, 1, Put(1, Absent), Outcome::Unknown),
        (2, 3, Delete(Present), Outcome::Removed),
        (4, 5, Read, ABSENT),
    ]);
    // An unanswered delete explains why the row is gone.
    is_good(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Delete(Present), Outcome::Unknown), (4, 5, Read, ABSENT)]);
    // Not before it began, though.
    is_bad(&[(0, 1, Read, saw(2, 11)), (2, 3, Put(2, Any), Outcome::Unknown)], Kind::Phantom);
    // Nor twice: after the row it made was replaced it does not come back.
    is_bad(
        &[
            (0, 1, Put(2, Any), Outcome::Unknown),
            (2, 3, Read, saw(2, 11)),
            (4, 5, Put(3, Any), ok(12)),
            (6, 7, Read, saw(2, 11)),
        ],
        Kind::StaleRead,
    );
}

#[test]
fn a_lost_update_is_caught() {
    is_bad(
        &[(0, 1, Put(1, Any), ok(10)), (2, 5, Put(2, Version(10)), ok(11)), (3, 6, Put(3, Version(10)), ok(12))],
        Kind::LostUpdate,
    );
    is_bad(
        &[
            (0, 1, Put(1, Any), ok(10)),
            (2, 5, Merge(2, Version(10)), ok(11)),
            (3, 6, Delete(Version(10)), Outcome::Removed),
        ],
        Kind::LostUpdate,
    );
}

#[test]
fn a_stale_read_after_an_acknowledged_write_is_caught() {
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Put(2, Any), ok(11)), (4, 5, Read, saw(1, 10))], Kind::StaleRead);
}

#[test]
fn reads_that_go_back_in_time_are_caught() {
    // The write is not acknowledged yet, but one read saw it, and a later one does not.
    is_bad(
        &[
            (0, 1, Put(1, Any), ok(10)),
            (2, 20, Put(2, Any), ok(11)),
            (3, 4, Read, saw(2, 11)),
            (5, 6, Read, saw(1, 10)),
        ],
        Kind::NotLinearizable,
    );
}

#[test]
fn a_write_applied_twice_is_caught() {
    is_bad(
        &[(0, 1, Put(1, Any), ok(10)), (2, 3, Read, saw(1, 10)), (4, 5, Put(2, Any), ok(11)), (6, 7, Read, saw(1, 12))],
        Kind::AppliedTwice,
    );
    is_bad(
        &[(0, 1, Put(1, Any), Outcome::Unknown), (2, 3, Read, saw(1, 10)), (4, 5, Read, saw(1, 11))],
        Kind::AppliedTwice,
    );
}

#[test]
fn a_resurrected_delete_is_caught() {
    is_bad(
        &[(0, 1, Put(1, Any), ok(10)), (2, 3, Delete(Present), Outcome::Removed), (4, 5, Read, saw(1, 10))],
        Kind::Resurrected,
    );
    // The write was not acknowledged, but it was seen before the delete.
    is_bad(
        &[
            (0, 1, Put(1, Any), Outcome::Unknown),
            (2, 3, Read, saw(1, 10)),
            (4, 5, Delete(Present), Outcome::Removed),
            (6, 7, Read, saw(1, 10)),
        ],
        Kind::Resurrected,
    );
}

#[test]
fn a_lost_write_is_caught() {
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Read, ABSENT)], Kind::LostWrite);
    is_bad(
        &[
            (0, 1, Put(1, Any), ok(10)),
            (2, 3, Delete(Present), Outcome::Removed),
            (4, 5, Merge(2, Any), ok(11)),
            (6, 7, Read, ABSENT),
        ],
        Kind::LostWrite,
    );
}

#[test]
fn a_version_given_twice_is_caught() {
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Put(2, Any), ok(10))], Kind::VersionReused);
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Put(2, Any), ok(9))], Kind::VersionReused);
    // The same after the row was gone for a while.
    is_bad(
        &[(0, 1, Put(1, Any), ok(10)), (2, 3, Delete(Present), Outcome::Removed), (4, 5, Put(2, Any), ok(9))],
        Kind::VersionReused,
    );
}

#[test]
fn a_store_may_promise_rising_versions_until_a_row_is_deleted() {
    let reborn = |reused| {
        [
            (0, 1, Put(1, Any), ok(10)),
            (2, 3, Delete(Present), Outcome::Removed),
            (4, 5, Put(2, Any), ok(reused)),
            (6, 7, Read, saw(2, reused)),
        ]
    };
    assert_eq!(kinds_of(Versions::RiseUntilDeleted, &reborn(9)), []);
    assert!(kinds_of(Versions::RiseUntilDeleted, &reborn(10)).contains(&Kind::VersionReused));
    // Without a delete in between there is no excuse.
    let lower = [(0, 1, Put(1, Any), ok(10)), (2, 3, Put(2, Any), ok(9)), (4, 5, Delete(Present), Outcome::Removed)];
    assert_eq!(kinds_of(Versions::RiseUntilDeleted, &lower), [Kind::VersionReused]);
    let stale = [(0, 1, Put(1, Any), ok(9)), (2, 3, Put(2, Any), ok(10)), (4, 5, Read, saw(1, 9))];
    assert_eq!(kinds_of(Versions::RiseUntilDeleted, &stale), [Kind::StaleRead]);
}

#[test]
fn values_that_nobody_wrote_are_caught() {
    is_bad(&[(0, 1, Read, saw(1, 10))], Kind::Phantom);
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Put(2, Absent), EXISTS), (4, 5, Read, saw(2, 11))], Kind::Phantom);
}

#[test]
fn a_merge_that_lost_its_row_is_caught() {
    is_bad(
        &[(0, 1, Put(1, Any), ok(10)), (2, 3, Merge(2, Any), ok(11)), (4, 5, Read, merged(None, 2, 11))],
        Kind::NotLinearizable,
    );
    is_bad(
        &[
            (0, 1, Merge(1, Any), ok(10)),
            (2, 3, Put(2, Any), ok(11)),
            (4, 5, Put(3, Any), ok(12)),
            (6, 7, Merge(4, Any), ok(13)),
            (8, 9, Read, merged(Some(2), 4, 13)),
        ],
        Kind::NotLinearizable,
    );
}

#[test]
fn refusals_without_a_reason_are_caught() {
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Put(2, Version(10)), CHANGED)], Kind::NotLinearizable);
    is_bad(&[(0, 1, Put(1, Absent), EXISTS)], Kind::NotLinearizable);
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Delete(Present), ABSENT)], Kind::NotLinearizable);
    // The wrong reason is none: the row is gone, so its version cannot differ.
    is_bad(&[(0, 1, Put(1, Version(10)), CHANGED)], Kind::NotLinearizable);
    // A delete that was retried after it had worked, and then found nothing.
    is_bad(&[(0, 1, Put(1, Any), ok(10)), (2, 3, Delete(Present), ABSENT), (4, 5, Read, ABSENT)], Kind::LostWrite);
}

#[test]
fn a_history_too_wide_to_check_says_so() {
    // Dozens of unanswered writes of every kind, and an answer that none of them explains.
    let mut exchanges = vec![(0, 1, Put(1000, Any), ok(10))];
    for number in 0..40u64 {
        let action = match number % 3 {
            0 => Put(number, Any),
            1 => Merge(number, Any),
            _ => Delete(Present),
        };
        exchanges.push((2 + 2 * number, 3 + 2 * number, action, Outcome::Unknown));
    }
    exchanges.push((200, 201, Put(2000, Version(10)), EXISTS));
    is_bad(&exchanges, Kind::Undecided);
}

#[test]
fn a_long_history_is_checked_quickly() {
    let mut exchanges = Vec::new();
    for number in 0..2000u64 {
        let (at, version) = (number * 10, 10 + number);
        // Each call overlaps the next few.
        exchanges.push((at, at + 25, Put(number, Any), ok(version)));
        exchanges.push((at + 2, at + 9, Read, if number == 0 { ABSENT } else { saw(number - 1, version - 1) }));
    }
    is_good(&exchanges);
}

/// Calls on one partition.
fn transactions(exchanges: &[(u64, u64, partition::Action, partition::Outcome)]) -> Vec<Kind> {
    let history = History::default();
    for (client, (begin, end, action, outcome)) in exchanges.iter().enumerate() {
        let span = Span { client, begin: *begin, end: *end };
        history.partition("p", partition::Call { span, action: action.clone(), outcome: outcome.clone() });
    }
    history.violations().iter().map(|violation| violation.kind).collect()
}

fn write(value: u64, rows: &[usize], condition: Condition) -> partition::Action {
    let write = |row: &usize| partition::Write { row: *row, condition, is_delete: false };
    partition::Action::Transact(value, rows.iter().map(write).collect())
}

fn remove(value: u64, rows: &[usize]) -> partition::Action {
    let write = |row: &usize| partition::Write { row: *row, condition: Present, is_delete: true };
    partition::Action::Transact(value, rows.iter().map(write).collect())
}

fn done(versions: &[u64]) -> partition::Outcome {
    partition::Outcome::Done(versions.iter().map(|version| (*version > 0).then_some(*version)).collect())
}

fn holds(rows: &[(usize, u64, u64)]) -> partition::Outcome {
    partition::Outcome::Found(rows.iter().map(|(row, value, version)| (*row, (*value, *version))).collect())
}

/// A page of all rows.
fn look() -> partition::Action {
    look_at(&[0, 1, 2, 3])
}

fn look_at(rows: &[usize]) -> partition::Action {
    partition::Action::Read(rows.iter().copied().collect())
}

#[test]
fn whole_transactions_are_good() {
    let refused = partition::Outcome::Refused(1, Refusal::Exists);
    let good = transactions(&[
        (0, 1, look(), partition::Outcome::Found(BTreeMap::new())),
        (2, 3, write(1, &[0, 1, 2], Absent), done(&[10, 10, 10])),
        (4, 9, write(2, &[1, 2], Any), done(&[11, 11])),
        (5, 6, look(), holds(&[(0, 1, 10), (1, 1, 10), (2, 1, 10)])),
        (7, 8, look(), holds(&[(0, 1, 10), (1, 2, 11), (2, 2, 11)])),
        (10, 11, write(3, &[3, 2], Absent), refused),
        (12, 13, remove(4, &[1, 0]), done(&[0, 0])),
        (14, 15, look(), holds(&[(2, 2, 11)])),
        (16, 17, write(5, &[2], Version(11)), done(&[12])),
        (18, 19, write(6, &[0, 2], Any), partition::Outcome::Unknown),
        (20, 21, look(), holds(&[(2, 5, 12)])),
        (22, 23, look(), holds(&[(0, 6, 13), (2, 6, 13)])),
    ]);
    assert_eq!(good, []);
}

#[test]
fn a_half_transaction_is_caught() {
    let torn = [
        (0, 1, write(1, &[0, 1], Any), done(&[10, 10])),
        (2, 9, write(2, &[1, 0], Any), done(&[11, 11])),
        (3, 4, look(), holds(&[(0, 2, 11), (1, 1, 10)])),
    ];
    assert_eq!(transactions(&torn), [Kind::HalfTransaction]);
    // Also of one that was not acknowledged, and of one that made the rows.
    let made = [(0, 1, write(1, &[0, 1], Absent), partition::Outcome::Unknown), (2, 3, look(), holds(&[(1, 1, 10)]))];
    assert_eq!(transactions(&made), [Kind::HalfTransaction]);
    // A delete that removed one of its rows.
    let removed = [
        (0, 1, write(1, &[0, 1], Any), done(&[10, 10])),
        (2, 9, remove(2, &[0, 1]), partition::Outcome::Unknown),
        (3, 4, look(), holds(&[(1, 1, 10)])),
    ];
    assert_eq!(transactions(&removed), [Kind::HalfTransaction]);
    // Rows of three transactions that cross each other in no possible order.
    let crossed = [
        (0, 9, write(1, &[0, 1], Any), done(&[10, 10])),
        (0, 9, write(2, &[1, 2], Any), done(&[11, 11])),
        (0, 9, write(3, &[2, 0], Any), done(&[12, 12])),
        (10, 11, look(), holds(&[(0, 1, 10), (1, 2, 11), (2, 3, 12)])),
    ];
    assert_eq!(transactions(&crossed), [Kind::NotLinearizable]);
}

#[test]
fn a_lost_transaction_is_caught() {
    let lost = [(0, 1, write(1, &[0, 1], Any), done(&[10, 10])), (2, 3, look(), holds(&[]))];
    assert_eq!(transactions(&lost), [Kind::LostWrite]);
    let stale = [
        (0, 1, write(1, &[0, 1], Any), done(&[10, 10])),
        (2, 3, write(2, &[0, 1], Any), done(&[11, 11])),
        (4, 5, look(), holds(&[(0, 1, 10), (1, 1, 10)])),
    ];
    assert_eq!(transactions(&stale), [Kind::NotLinearizable]);
}

#[test]
fn transactions_applied_twice_or_with_used_versions_are_caught() {
    let twice = [
        (0, 1, write(1, &[0], Any), partition::Outcome::Unknown),
        (2, 3, look(), holds(&[(0, 1, 10)])),
        (4, 5, look(), holds(&[(0, 1, 11)])),
    ];
    assert_eq!(transactions(&twice), [Kind::AppliedTwice]);
    let reused = [(0, 1, write(1, &[0], Any), done(&[10])), (2, 3, write(2, &[0], Any), done(&[10]))];
    assert_eq!(transactions(&reused), [Kind::VersionReused]);
    // An update that two transactions both won.
    let lost = [
        (0, 1, write(1, &[0, 1], Any), done(&[10, 10])),
        (2, 5, write(2, &[0], Version(10)), done(&[11])),
        (3, 6, write(3, &[0, 1], Version(10)), done(&[12, 12])),
    ];
    assert_eq!(transactions(&lost), [Kind::NotLinearizable]);
    // The wrong operation is blamed.
    let blamed = [
        (0, 1, write(1, &[0], Any), done(&[10])),
        (2, 3, write(2, &[1, 0], Absent), partition::Outcome::Refused(0, Refusal::Exists)),
    ];
    assert_eq!(transactions(&blamed), [Kind::NotLinearizable]);
}

#[test]
fn a_page_shows_the_rows_it_asked_for_at_one_moment() {
    let (first, second) = (write(1, &[0, 1], Any), write(2, &[2, 3], Any));
    let good = [
        (0, 1, first.clone(), done(&[10, 10])),
        (2, 3, look_at(&[1]), holds(&[(1, 1, 10)])),
        (4, 5, look_at(&[2, 3]), holds(&[])),
        (6, 7, second.clone(), done(&[11, 11])),
        (8, 9, look_at(&[0, 3]), holds(&[(0, 1, 10), (3, 2, 11)])),
    ];
    assert_eq!(transactions(&good), []);
    // Rows of a later transaction without those of an earlier one, though each alone could be so.
    let torn = |seen: &[(usize, u64, u64)]| {
        transactions(&[
            (0, 9, look_at(&[0, 3]), holds(seen)),
            (1, 2, first.clone(), done(&[10, 10])),
            (3, 4, second.clone(), done(&[11, 11])),
        ])
    };
    assert_eq!(torn(&[]), []);
    assert_eq!(torn(&[(0, 1, 10)]), []);
    assert_eq!(torn(&[(3, 2, 11)]), [Kind::NotLinearizable]);
    // Half of a transaction, in the rows that were asked for.
    let replaced = |seen: &[(usize, u64, u64)]| {
        transactions(&[
            (0, 1, first.clone(), done(&[10, 10])),
            (2, 9, write(3, &[0, 1, 2], Any), done(&[12, 12, 12])),
            (3, 8, look_at(&[0, 1]), holds(seen)),
        ])
    };
    assert_eq!(replaced(&[(0, 1, 10), (1, 1, 10)]), []);
    assert_eq!(replaced(&[(0, 3, 12), (1, 3, 12)]), []);
    assert_eq!(replaced(&[(0, 1, 10), (1, 3, 12)]), [Kind::HalfTransaction]);
    // An acknowledged row that is not on a page that asked for it.
    assert_eq!(transactions(&[good[0].clone(), (2, 3, look_at(&[1, 2]), holds(&[]))]), [Kind::LostWrite]);
}
