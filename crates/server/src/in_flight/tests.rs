//! The budget by itself: what is granted, in which order, and that nothing is lost.

use super::*;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const LONG: Duration = Duration::from_secs(60);

/// Polls a future once.
fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn used(budget: &InFlight) -> (u64, usize) {
    let figures = budget.figures();
    (figures.used_bytes, figures.waiting)
}

#[tokio::test]
async fn those_who_wait_are_served_in_order_and_never_beyond_the_limit() {
    let budget = InFlight::new(100, 1, LONG);
    let share = budget.share(0);
    let first = share.take(60).await.expect("free");
    let mut second = pin!(share.take(50));
    let mut third = pin!(share.take(10));
    assert!(poll(second.as_mut()).is_pending());
    assert!(poll(third.as_mut()).is_pending(), "one that came later does not overtake");
    assert_eq!(used(&budget), (60, 2));
    drop(first);
    let Poll::Ready(Ok(second)) = poll(second.as_mut()) else { panic!("it is free now") };
    let Poll::Ready(Ok(third)) = poll(third.as_mut()) else { panic!("it is free now") };
    assert_eq!(used(&budget), (60, 0));
    drop((second, third));
    assert_eq!((used(&budget), budget.figures().peak_bytes), ((0, 0), 60));
}

#[tokio::test]
async fn one_that_gives_up_leaves_nothing_behind() {
    let budget = InFlight::new(100, 1, LONG);
    let share = budget.share(0);
    let first = share.take(100).await.expect("free");
    {
        let mut waiting = pin!(share.take(50));
        assert!(poll(waiting.as_mut()).is_pending());
        assert_eq!(used(&budget), (100, 1));
    }
    assert_eq!(used(&budget), (100, 0));
    {
        let mut waiting = pin!(share.take(50));
        assert!(poll(waiting.as_mut()).is_pending());
        // Granted, but nobody comes for it.
        drop(first);
        assert_eq!(used(&budget), (50, 0));
    }
    assert_eq!(used(&budget), (0, 0));
}

#[tokio::test]
async fn a_wait_is_bounded_and_then_the_server_is_busy() {
    let budget = InFlight::new(100, 1, Duration::from_millis(20));
    let share = budget.share(0);
    let held = share.take(100).await.expect("free");
    let refused = share.take(1).await.expect_err("there is nothing left");
    assert_eq!((refused.code, refused.status), (ErrorCode::ServerBusy, 503));
    assert_eq!((used(&budget), budget.figures().refused_total), ((100, 0), 1));
    drop(held);
    assert!(share.take(1000).await.is_ok(), "what never fits is counted as far as it does");
}

#[tokio::test]
async fn an_account_leaves_something_to_the_others() {
    let budget = InFlight::new(100, 3, LONG);
    let (greedy, modest) = (budget.share(0), budget.share(2));
    let held = greedy.take(75).await.expect("free");
    assert!(greedy.try_take(1).is_none());
    let mut more = pin!(greedy.take(5));
    assert!(poll(more.as_mut()).is_pending());
    let others = modest.take(25).await.expect("the rest is theirs");
    let mut waiting = pin!(modest.take(5));
    assert!(poll(waiting.as_mut()).is_pending());
    drop(others);
    assert!(matches!(poll(waiting.as_mut()), Poll::Ready(Ok(_))));
    assert!(poll(more.as_mut()).is_pending(), "the account has its share");
    drop(held);
    assert!(matches!(poll(more.as_mut()), Poll::Ready(Ok(_))));
}

#[tokio::test]
async fn growth_succeeds_at_once_or_fails() {
    let budget = InFlight::new(100, 1, LONG);
    let share = budget.share(0);
    let (mut one, other) = (share.take(40).await.expect("free"), share.take(40).await.expect("free"));
    assert!(!one.try_resize(61) && one.bytes() == 40);
    assert!(one.try_resize(60));
    let mut waiting = pin!(share.take(10));
    assert!(poll(waiting.as_mut()).is_pending());
    assert!(one.try_resize(50), "less always works, and serves those who wait");
    assert!(matches!(poll(waiting.as_mut()), Poll::Ready(Ok(_))));
    drop(other);
    assert_eq!(budget.figures().peak_bytes, 100);
}

#[tokio::test]
async fn answers_get_smaller_before_anybody_is_refused() {
    let budget = InFlight::new(64 << 20, 1, LONG);
    let share = budget.share(0);
    let mut rooms = Vec::new();
    let mut sizes = Vec::new();
    // Pages that nobody reads.
    for _ in 0..200 {
        let mut room = ResponseRoom::new(&share);
        let size = (0..4096).map(|kib| kib << 10).take_while(|bytes| room.allows(*bytes)).last().unwrap_or_default();
        sizes.push(size);
        rooms.push(room);
        let figures = budget.figures();
        assert!(figures.used_bytes <= figures.limit_bytes);
    }
    assert_eq!(sizes[0], 4095 << 10);
    assert!(sizes.is_sorted_by(|one, next| one >= next), "{sizes:?}");
    assert_eq!(sizes[199], 8 << 10);
    assert!(share.try_take(8 << 20).is_some(), "others are served");
    drop(rooms);
    assert_eq!(used(&budget), (0, 0));
}

#[tokio::test]
async fn what_is_large_leaves_room_for_what_is_small() {
    let budget = InFlight::new(16 << 20, 1, LONG);
    let share = budget.share(0);
    let large: Vec<Held> = std::iter::from_fn(|| share.try_take(640 << 10)).collect();
    assert!(used(&budget).0 <= 14 << 20 && large.len() > 20);
    let mut waiting = std::pin::pin!(share.take(640 << 10));
    assert!(poll(waiting.as_mut()).is_pending());
    assert!(poll(std::pin::pin!(share.take(64 << 10))).is_ready(), "it does not wait behind a large one");
    let small: Vec<Held> = std::iter::from_fn(|| share.try_take(64 << 10)).take(32).collect();
    assert_eq!(small.len(), 32);
    let piece = share.take_piece(1 << 20, None).await.expect("small pieces are not counted");
    assert_eq!(piece.bytes(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_stay_within_the_limit_and_all_are_served() {
    let budget = InFlight::new(1000, 4, LONG);
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let share = budget.share(number % 4);
            tokio::spawn(async move {
                for step in 0..200 {
                    let mut held = share.take(1 + (number as u64 * 37 + step * 91) % 700).await.expect("in time");
                    let _ = held.try_resize(held.bytes() + 50);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let figures = budget.figures();
    assert_eq!((figures.used_bytes, figures.waiting, figures.refused_total), (0, 0, 0));
    assert!(figures.peak_bytes <= 1000, "{figures:?}");
}

#[tokio::test]
async fn a_large_need_that_waits_neither_blocks_small_ones_nor_starves() {
    let budget = InFlight::new(16 << 20, 1, LONG);
    let share = budget.share(0);
    let large = share.take(14 << 20).await.expect("free");
    let small: Vec<Held> = std::iter::from_fn(|| share.try_take(64 << 10)).collect();
    assert_eq!(small.len(), 32, "the last eighth");
    // Nothing is left, so both wait, the large one before the small one.
    let mut first = pin!(share.take(1 << 20));
    let mut second = pin!(share.take(64 << 10));
    assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
    drop(small);
    assert!(matches!(poll(second.as_mut()), Poll::Ready(Ok(_))), "it is small and there is room for it");
    assert!(poll(first.as_mut()).is_pending());
    // However many small ones come while it waits, what is freed is for the large one.
    drop(large);
    let Poll::Ready(Ok(first)) = poll(first.as_mut()) else { panic!("it is free now") };
    let large = share.take(13 << 20).await.expect("free");
    let mut next = pin!(share.take(1 << 20));
    assert!(poll(next.as_mut()).is_pending());
    let small: Vec<Held> = std::iter::from_fn(|| share.try_take(64 << 10)).collect();
    assert_eq!(small.len(), 32, "their own eighth, and nothing of what the large one waits for");
    drop(first);
    assert!(matches!(poll(next.as_mut()), Poll::Ready(Ok(_))));
    drop((large, small));
}

#[tokio::test]
async fn a_large_need_keeps_its_turn_among_other_accounts() {
    let budget = InFlight::new(16 << 20, 2, LONG);
    let (one, other) = (budget.share(0), budget.share(1));
    let held = one.take(6 << 20).await.expect("free");
    let rest: Vec<Held> = std::iter::from_fn(|| other.try_take(1 << 20)).collect();
    assert_eq!(rest.len(), 8);
    let mut large = pin!(one.take(4 << 20));
    let mut less = pin!(other.take(1 << 20));
    assert!(poll(large.as_mut()).is_pending() && poll(less.as_mut()).is_pending());
    let mut rest = rest.into_iter();
    for _ in 0..3 {
        drop(rest.next());
        assert!(poll(large.as_mut()).is_pending());
        assert!(poll(less.as_mut()).is_pending(), "it does not pass what waits for its turn");
    }
    drop(rest.next());
    assert!(matches!(poll(large.as_mut()), Poll::Ready(Ok(_))));
    assert!(matches!(poll(less.as_mut()), Poll::Ready(Ok(_))), "the large one was given back at once");
    drop(held);
}

/// A body that waits for its client, of which nothing came for so long.
fn wait(body: &mut Arriving, quiet: Duration) {
    let since = Instant::now().checked_sub(quiet).expect("the machine has run for some seconds");
    assert!(poll(pin!(body.during(since, std::future::pending::<()>()))).is_pending());
}

#[tokio::test]
async fn a_body_holds_what_has_arrived_and_stalled_ones_give_way() {
    let budget = InFlight::new(16 << 20, 1, LONG);
    let share = budget.share(0);
    let mut bodies = Vec::new();
    for _ in 0..200 {
        // 4 MiB are declared, and hardly anything was sent.
        bodies.push(share.begin_body(16 << 10, 8 << 20).await.expect("there is room"));
    }
    assert_eq!(used(&budget), (200 * (16 << 10), 0));
    assert_eq!(bodies.drain(2..).count(), 198);
    for body in &bodies {
        body.grow(6 << 20).expect("there is room");
    }
    assert!(poll(pin!(share.take(8 << 20))).is_pending(), "those that are worked on keep what they have");
    wait(&mut bodies[0], Duration::from_millis(10));
    wait(&mut bodies[1], Duration::from_secs(5));
    assert!(matches!(poll(pin!(share.take(8 << 20))), Poll::Ready(Ok(_))), "the one that stands still gives way");
    assert_eq!(used(&budget), (6 << 20, 0));
    assert!(bodies[0].during(Instant::now(), async {}).await.is_some());
    assert!(bodies[1].during(Instant::now(), async {}).await.is_none(), "it is refused");
    assert_eq!(bodies[1].grow(7 << 20).expect_err("it is refused").code, ErrorCode::ServerBusy);
    drop(bodies);
    assert_eq!(used(&budget), (0, 0));
}

#[tokio::test]
async fn the_oldest_body_gets_on() {
    let budget = InFlight::new(16 << 20, 2, LONG);
    let (share, other) = (budget.share(0), budget.share(1));
    let mut bodies = Vec::new();
    for _ in 0..3 {
        bodies.push(share.begin_body(3 << 20, 3 << 20).await.expect("there is room"));
    }
    let mut theirs = other.begin_body(4 << 20, 4 << 20).await.expect("there is room");
    wait(&mut theirs, Duration::ZERO);
    for body in &mut bodies[1..] {
        wait(body, Duration::ZERO);
    }
    bodies[0].grow(5 << 20).expect("a younger one gives way");
    assert!(bodies[1].during(Instant::now(), async {}).await.is_some());
    assert!(bodies[2].during(Instant::now(), async {}).await.is_none(), "the youngest");
    assert!(theirs.during(Instant::now(), async {}).await.is_some(), "another account has its own part");
    assert!(bodies[1].grow(10 << 20).is_err(), "the older one does not give way to the younger");
    // A request that has arrived whole comes before those that are being received.
    wait(&mut bodies[1], Duration::ZERO);
    let held = bodies.remove(0).into_held().expect("it has its place");
    assert_eq!(held.bytes(), 5 << 20);
    assert!(share.take_now(3 << 20).is_ok());
    drop((held, bodies, theirs));
    assert_eq!(used(&budget), (0, 0));
}
