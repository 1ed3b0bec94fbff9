//! Which requests are sent together, and which are put back, as cases on a kind of request without a database.

use super::*;
use crate::connection::Connection;
use crate::gather::Limits;
use crate::kept_connection::Keep;

/// Requests for a table of cases: writes that share a group if they are of the same kind.
struct Writes;

#[derive(Debug)]
struct Write {
    kind: char,
    turn: u64,
    bytes: usize,
    met_lock: bool,
}

impl RequestKind for Writes {
    type Request = Write;
    type Answer = ();

    const LIMITS: Limits = Limits {
        name: "writes",
        running_freely: usize::MAX,
        enough: 1,
        group_max: 3,
        group_bytes_max: 100,
        waiting_max: 10,
        waiting_bytes_max: 1000,
    };
    const KEEP: Keep = Keep::WhileIdle;

    fn bytes(write: &Write) -> usize {
        write.bytes
    }

    fn writes(_: &Write) -> usize {
        1
    }

    fn turn(write: &Write) -> Option<u64> {
        Some(write.turn)
    }

    fn met_lock(write: &Write) -> bool {
        write.met_lock
    }

    fn shares_group(first: &Write, next: &Write) -> bool {
        first.kind == next.kind
    }

    fn retry(_: &Failure) -> Retry {
        Retry::No
    }

    async fn send(_: &Connection, group: &[&Write]) -> Result<Vec<()>, Failure> {
        Ok(group.iter().map(|_| ()).collect())
    }
}

type Answer = oneshot::Receiver<Result<(), Failure>>;

fn state() -> State<Writes> {
    State::new(2)
}

/// Lets requests wait, each a kind and a turn, and returns where their answers come.
fn push(state: &mut State<Writes>, requests: &[(char, u64)]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for (kind, turn) in requests {
        let (reply, answer) = oneshot::channel();
        let request = Write { kind: *kind, turn: *turn, bytes: 10, met_lock: false };
        state.push_back(Waiting { request, turn: Some(*turn), since: Instant::now(), failed_attempts: 0, reply });
        answers.push(answer);
    }
    answers
}

fn names<'a>(requests: impl IntoIterator<Item = &'a Waiting<Writes>>) -> String {
    let name = |one: &Waiting<Writes>| format!("{}{}", one.request.kind, one.request.turn);
    requests.into_iter().map(name).collect::<Vec<_>>().join(" ")
}

fn locked() -> Failure {
    Failure::Locked("another session has the row".to_owned())
}

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_group_has_requests_of_one_kind_in_their_order_up_to_its_limit() {
    let mut state = state();
    let _answers = push(&mut state, &[('a', 1), ('b', 2), ('a', 3), ('a', 4), ('a', 5)]);
    let (group, is_alone) = state.take();
    assert_eq!((names(&group).as_str(), is_alone), ("a1 a3 a4", false));
    assert_eq!((names(&state.waiting).as_str(), state.bytes), ("b2 a5", 20));
}

#[test]
fn a_group_takes_no_further_request_once_it_has_its_bytes() {
    let mut state = state();
    let _answers = push(&mut state, &[('a', 1), ('a', 2), ('a', 3)]);
    state.waiting[1].request.bytes = 100;
    state.bytes = 120;
    assert_eq!(names(&state.take().0), "a1 a2");
    assert_eq!((names(&state.waiting).as_str(), state.bytes), ("a3", 10));
}

#[test]
fn requests_of_one_turn_are_sent_one_after_the_other_and_never_overtake() {
    let mut state = state();
    let _answers = push(&mut state, &[('a', 1), ('b', 2), ('a', 2), ('a', 1), ('a', 3)]);
    let (first, _) = state.take();
    assert_eq!(names(&first), "a1 a3", "b2 comes before a2, and 1 is busy");
    let (second, _) = state.take();
    assert_eq!(names(&second), "b2");
    assert!(!state.is_due(), "both turns are busy");
    state.release(&second, true);
    assert_eq!(names(&state.take().0), "a2");
    state.release(&first, true);
    assert_eq!(names(&state.take().0), "a1");
    assert_eq!(state.bytes, 0);
}

#[test]
fn a_group_that_met_a_lock_is_sent_request_by_request_on_some_workers_only() {
    let mut state = state();
    let _answers = push(&mut state, &[('a', 1), ('a', 2), ('a', 3), ('a', 4)]);
    let (group, _) = state.take();
    state.release(&group, false);
    assert!(state.settle(group, Outcome::Failed(locked(), Retry::Alone), LONG).is_empty());
    assert_eq!((names(&state.waiting).as_str(), state.bytes), ("a1 a2 a3 a4", 40));
    let (alone, is_alone) = state.take();
    assert_eq!((names(&alone).as_str(), is_alone), ("a1", true));
    state.alone = 1;
    assert_eq!(names(&state.take().0), "a4", "no other request that met a lock is sent beside it");
    state.alone = 0;
    state.release(&alone, true);
    assert!(!state.locked.contains(&1) && state.locked.contains(&2), "a request that succeeded is not locked");
}

#[test]
fn a_request_that_is_locked_for_long_goes_behind_the_others_and_is_answered_in_the_end() {
    let mut state = state();
    let mut answers = push(&mut state, &[('a', 1), ('a', 2)]);
    state.locked.insert(1);
    let (alone, _) = state.take();
    state.release(&alone, false);
    assert!(state.settle(alone, Outcome::Failed(locked(), Retry::Alone), LONG).is_empty());
    assert_eq!(names(&state.waiting), "a2 a1");
    let (_, (alone, _)) = (state.take(), state.take());
    for (reply, answer) in state.settle(alone, Outcome::Failed(locked(), Retry::Alone), Duration::ZERO) {
        reply.send(answer).expect("the caller waits");
    }
    assert!(matches!(answers[0].try_recv(), Ok(Err(Failure::Locked(_)))));
    assert!(state.waiting.is_empty());
}

#[test]
fn requests_are_sent_again_in_their_order_until_their_attempts_are_used_up() {
    let mut state = state();
    let _answers = push(&mut state, &[('a', 1), ('a', 2)]);
    let again = |failure| Outcome::Failed(failure, Retry::Again { attempts_max: 2 });
    for (failure, left) in [
        (Failure::Again(String::new()), 2),
        (Failure::Unknown("says nothing about the request".to_owned()), 2),
        (Failure::Again(String::new()), 0),
    ] {
        let (group, _) = state.take();
        assert_eq!(names(&group), "a1 a2");
        state.release(&group, false);
        let replies = state.settle(group, again(failure), LONG);
        assert_eq!((state.waiting.len(), replies.len()), (left, 2 - left));
    }
    assert_eq!(state.bytes, 0);
}

#[test]
fn a_group_that_is_due_is_never_empty() {
    let mut state = state();
    let _answers = push(&mut state, &[('a', 1), ('a', 1), ('a', 2)]);
    state.waiting[0].request.met_lock = true;
    state.alone = state.alone_max;
    assert_eq!(names(&state.take().0), "a2", "1 waits for a worker, so the next of its turn waits, too");
    // A worker would ask and take in a loop without end.
    assert!(!state.is_due() && !state.has_ready());
    state.alone = 0;
    assert!(state.is_due());
    assert_eq!(names(&state.take().0), "a1");
}
