//! Several futures driven at the same time in one task, without a runtime's help.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

/// Drives two futures to their ends.
pub(super) async fn join<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    poll_fn(|context| {
        if of_a.is_none() {
            of_a = ready(a.as_mut().poll(context));
        }
        if of_b.is_none() {
            of_b = ready(b.as_mut().poll(context));
        }
        match (of_a.take(), of_b.take()) {
            (Some(a), Some(b)) => Poll::Ready((a, b)),
            rest => {
                (of_a, of_b) = rest;
                Poll::Pending
            }
        }
    })
    .await
}

/// Drives a few futures to their ends.
pub(super) async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T> + Send>) -> Vec<T> {
    let mut pending: Vec<(Pin<Box<_>>, Option<T>)> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, output) in pending.iter_mut().filter(|(_, output)| output.is_none()) {
            *output = ready(future.as_mut().poll(context));
        }
        if pending.iter().all(|(_, output)| output.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
