//! The table of states and actions, row by row, and what holds for any sequence of actions.

use super::*;
use proptest::prelude::*;

const A: LeaseId = LeaseId(Guid([0xA; 16]));
const B: LeaseId = LeaseId(Guid([0xB; 16]));
const X: LeaseId = LeaseId(Guid([0xF; 16]));

fn at(seconds: u64) -> Timestamp {
    Timestamp::EDM_MIN.after(Duration::from_secs(seconds))
}

/// Now is second 100: one lease for each state that A's lease can be in.
fn states() -> [(LeaseState, Lease); 5] {
    let duration = LeaseDuration::Seconds(30);
    [
        (LeaseState::Available, Lease::None),
        (LeaseState::Leased, Lease::Held { id: A, duration, until: Some(at(120)) }),
        (LeaseState::Breaking, Lease::Broken { id: A, until: at(110) }),
        (LeaseState::Broken, Lease::Broken { id: A, until: at(100) }),
        (LeaseState::Expired, Lease::Held { id: A, duration, until: Some(at(100)) }),
    ]
}

fn outcomes(action: LeaseAction) -> [Result<(LeaseState, Option<LeaseId>), LeaseReject>; 5] {
    states().map(|(_, lease)| {
        let (after, _) = lease.act(action, X, Moment::exactly(at(100)))?;
        Ok((after.view(at(100)).state, after.id()))
    })
}

#[test]
fn states_follow_the_time() {
    for (state, lease) in states() {
        assert_eq!(lease.view(at(100)).state, state);
    }
}

#[test]
fn acquire_takes_what_is_free() {
    use LeaseReject::{AlreadyPresent, BreakingAndCannotBeAcquired};
    let acquire = |proposed| LeaseAction::Acquire { duration: LeaseDuration::Seconds(15), proposed };
    let leased = |id| Ok((LeaseState::Leased, Some(id)));
    let (none, a, b) = (outcomes(acquire(None)), outcomes(acquire(Some(A))), outcomes(acquire(Some(B))));
    assert_eq!(none, [leased(X), Err(AlreadyPresent), Err(AlreadyPresent), leased(X), leased(X)]);
    assert_eq!(a, [leased(A), leased(A), Err(BreakingAndCannotBeAcquired), leased(A), leased(A)]);
    assert_eq!(b, [leased(B), Err(AlreadyPresent), Err(AlreadyPresent), leased(B), leased(B)]);
}

#[test]
fn renew_change_and_release_need_the_id() {
    use LeaseReject::{
        BreakingAndCannotBeChanged as Breaking, BrokenAndCannotBeRenewed as Broken,
        IdMismatchWithLeaseOperation as Mismatch, NotPresentWithLeaseOperation as NotPresent,
    };
    let leased = |id| Ok((LeaseState::Leased, Some(id)));
    let free = Ok((LeaseState::Available, None));
    let renewed = outcomes(LeaseAction::Renew { id: A });
    assert_eq!(renewed, [Err(Mismatch), leased(A), Err(Broken), Err(Broken), leased(A)]);
    let changed = outcomes(LeaseAction::Change { id: A, proposed: B });
    assert_eq!(changed, [Err(NotPresent), leased(B), Err(Breaking), Err(NotPresent), Err(NotPresent)]);
    let released = outcomes(LeaseAction::Release { id: A });
    assert_eq!(released, [Err(Mismatch), free, free, free, free]);
    for action in [LeaseAction::Renew { id: B }, LeaseAction::Release { id: B }] {
        assert_eq!(outcomes(action), [Err(Mismatch); 5], "{action:?}");
    }
}

#[test]
fn break_ends_a_lease_at_once_or_after_its_period() {
    let absent = Err(LeaseReject::NotPresentWithLeaseOperation);
    let in_state = |state| Ok((state, Some(A)));
    let (breaking, broken) = (in_state(LeaseState::Breaking), in_state(LeaseState::Broken));
    let period = |seconds| LeaseAction::Break { period: BreakPeriod::new(seconds).ok() };
    assert_eq!(outcomes(period(0)), [absent, broken, broken, broken, broken]);
    assert_eq!(outcomes(period(5)), [absent, breaking, breaking, broken, broken]);
    assert_eq!(outcomes(LeaseAction::Break { period: None }), [absent, breaking, breaking, broken, broken]);
    let left = |lease: Lease, seconds| {
        let (_, leased) = lease.act(period(seconds), X, Moment::exactly(at(100))).expect("it can be broken");
        leased.seconds_left
    };
    let [_, (_, leased), (_, breaking), ..] = states();
    assert_eq!(
        (left(leased, 60), left(leased, 7), left(breaking, 60), left(breaking, 3)),
        (Some(20), Some(7), Some(10), Some(3))
    );
    let infinite = Lease::Held { id: A, duration: LeaseDuration::Infinite, until: None };
    assert_eq!(left(infinite, 60), Some(60));
    let (ended, _) =
        infinite.act(LeaseAction::Break { period: None }, X, Moment::exactly(at(100))).expect("it can be broken");
    assert_eq!(ended.view(at(100)).state, LeaseState::Broken);
}

#[test]
fn writes_and_reads_name_a_lease_that_stands() {
    use LeaseReject::{IdMismatch, IdMissing, Lost, NotPresent};
    let writes = |given| states().map(|(_, lease)| lease.admit_write(given, at(100)));
    let reads = |given| states().map(|(_, lease)| lease.admit_read(given, at(100)));
    assert_eq!(writes(None), [Ok(()), Err(IdMissing), Err(IdMissing), Ok(()), Ok(())]);
    assert_eq!(writes(Some(A)), [Err(NotPresent), Ok(()), Ok(()), Err(Lost), Err(Lost)]);
    assert_eq!(writes(Some(B)), [Err(NotPresent), Err(IdMismatch), Err(IdMismatch), Err(IdMismatch), Err(IdMismatch)]);
    assert_eq!(reads(None), [Ok(()); 5]);
    assert_eq!(reads(Some(A)), writes(Some(A)));
    assert_eq!(reads(Some(B)), writes(Some(B)));
    let after = states().map(|(_, lease)| lease.after_write(at(100)).view(at(100)).state);
    let [free, leased, breaking] = [LeaseState::Available, LeaseState::Leased, LeaseState::Breaking];
    assert_eq!(after, [free, leased, breaking, free, free]);
}

fn actions() -> impl Strategy<Value = LeaseAction> {
    let id = prop_oneof![Just(A), Just(B)];
    let duration = prop_oneof![Just(LeaseDuration::Infinite), (15..=60_u8).prop_map(LeaseDuration::Seconds)];
    prop_oneof![
        (duration, proptest::option::of(id.clone()))
            .prop_map(|(duration, proposed)| LeaseAction::Acquire { duration, proposed }),
        id.clone().prop_map(|id| LeaseAction::Renew { id }),
        (id.clone(), id.clone()).prop_map(|(id, proposed)| LeaseAction::Change { id, proposed }),
        id.prop_map(|id| LeaseAction::Release { id }),
        proptest::option::of(0..=60_i64)
            .prop_map(|period| LeaseAction::Break { period: period.and_then(|period| BreakPeriod::new(period).ok()) }),
    ]
}

proptest! {
    #[test]
    fn a_lease_that_stands_is_taken_over_only_by_its_id(steps in proptest::collection::vec((actions(), 0..90_u64), 1..40)) {
        let (mut lease, mut time) = (Lease::None, 1000);
        for (action, wait) in steps {
            time += wait;
            let before = lease.view(at(time)).state;
            let owner = lease.id();
            let Ok((after, leased)) = lease.act(action, X, Moment::exactly(at(time))) else { continue };
            if let LeaseAction::Acquire { proposed, .. } = action && before == LeaseState::Leased {
                prop_assert_eq!(proposed, owner);
            }
            if leased.seconds_left.is_none() {
                prop_assert_eq!(leased.id, after.id());
            }
            // Who writes is the owner while the lease stands, and anybody after it.
            let locked = matches!(after.view(at(time)).state, LeaseState::Leased | LeaseState::Breaking);
            prop_assert_eq!(after.admit_write(None, at(time)).is_err(), locked);
            prop_assert_eq!(after.id().is_some_and(|id| after.admit_write(Some(id), at(time)).is_ok()), locked);
            let mut bytes = Vec::new();
            after.encode(&mut bytes);
            prop_assert_eq!(Lease::decode(&mut &bytes[..]), Some(after));
            lease = after;
        }
    }
}
