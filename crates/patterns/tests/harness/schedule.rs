//! A schedule: the requests of several clients in a random order, some lost, some late.
//!
//! Clients wait at a gate with every request. When all of them wait, one is chosen and goes on to its next request or
//! its end, so that a seed stands for one interleaving. Some fall asleep after a few requests and go on when most others
//! are done: what goes wrong with stale knowledge goes wrong with them.

use super::{Answer, Random, Request};
use larimar_client::{BoxFuture, HttpTransport, Transport, TransportError};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, oneshot};

/// What becomes of a request at the gate.
#[derive(Debug)]
enum Fate {
    Pass,
    NotSent,
    AnswerLost,
    Late,
}

tokio::task_local! {
    /// After how many requests a client falls asleep.
    static AWAKE_FOR: AtomicUsize;
}

#[derive(Debug)]
struct Waiting {
    is_asleep: bool,
    fate: oneshot::Sender<Fate>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    active: usize,
    late: Vec<Request>,
}

/// The gate that all requests of the clients of a schedule go through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    inner: Arc<HttpTransport>,
    state: Arc<Mutex<State>>,
    moved: Arc<Notify>,
}

impl Gate {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// Runs something whose requests go through the gate.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        random: &mut Random,
        actor: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.state().active += 1;
        let gate = self.clone();
        let awake_for = if random.chance(3) { random.below(8) } else { usize::MAX };
        tokio::spawn(AWAKE_FOR.scope(awake_for.into(), async move {
            // Also if it panics; the thread that joins it gets the panic.
            let _end = End(gate);
            actor.await
        }))
    }

    /// How many clients are not at their end.
    pub(crate) async fn all_waiting(&self) -> usize {
        loop {
            {
                let state = self.state();
                if state.waiting.len() == state.active {
                    return state.active;
                }
            }
            self.moved.notified().await;
        }
    }

    /// Lets one of the waiting requests go its way: one of those who sleep only now and then, or when nobody else is
    /// there and nothing else will come.
    pub(crate) fn release(&self, random: &mut Random, faults_one_in: usize, is_late: bool) {
        let mut state = self.state();
        let wakes = random.chance(200) || is_late && state.waiting.iter().all(|waiting| waiting.is_asleep);
        let may_go = |waiting: &Waiting| wakes || !waiting.is_asleep;
        let able = (0..state.waiting.len()).filter(|index| may_go(&state.waiting[*index])).collect::<Vec<_>>();
        if able.is_empty() {
            return;
        }
        let chosen = state.waiting.swap_remove(able[random.below(able.len())]).fate;
        let fate = match random.chance(faults_one_in) {
            true => match random.below(3) {
                0 => Fate::NotSent,
                1 => Fate::AnswerLost,
                _ => Fate::Late,
            },
            false => Fate::Pass,
        };
        let _ = chosen.send(fate);
    }

    /// Delivers one of the requests that are late, if there is one.
    pub(crate) async fn deliver_late(&self, random: &mut Random) -> bool {
        let request = {
            let mut state = self.state();
            match state.late.len() {
                0 => return false,
                count => state.late.swap_remove(random.below(count)),
            }
        };
        self.inner.send(request).await.expect("the service answers");
        true
    }
}

impl Transport for Gate {
    fn send(&self, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let (sender, fate) = oneshot::channel();
            let awake = |left: &AtomicUsize| left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
            let is_asleep = !AWAKE_FOR.try_with(awake).unwrap_or(true);
            self.state().waiting.push(Waiting { is_asleep, fate: sender });
            self.moved.notify_one();
            match fate.await.expect("the schedule goes on") {
                Fate::Pass => return self.inner.send(request).await,
                Fate::NotSent => {}
                Fate::AnswerLost => drop(self.inner.send(request).await?),
                Fate::Late => self.state().late.push(request),
            }
            Err(TransportError::lost("the network failed"))
        })
    }
}

/// Reports the end of an actor to the gate.
struct End(Gate);

impl Drop for End {
    fn drop(&mut self) {
        self.0.state().active -= 1;
        self.0.moved.notify_one();
    }
}
