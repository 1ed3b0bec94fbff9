//! Workers take intents from a queue and carry them out.
//!
//! What happens to a single message is in `attempt.rs`.

use super::observe::{self, Counters};
use super::queue::HIDDEN_MAX;
use super::{Event, Observer, Work, WorkQueue, WorkerStats};
use futures_util::future::{self, BoxFuture, Either};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use larimar_client::Message;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Takes intents from a queue and carries them out, several at a time. Any number of workers may share a queue.
///
/// A worker has no state of its own: it may be dropped or killed at any moment.
pub struct Worker<W: Work> {
    pub(super) queue: WorkQueue<W::Intent>,
    pub(super) work: W,
    pub(super) visibility: Duration,
    pub(super) attempts_max: u32,
    pub(super) backoff: (Duration, Duration),
    pub(super) saves_progress: bool,
    concurrency: usize,
    idle: (Duration, Duration),
    counters: Counters,
    observers: Vec<Arc<dyn Observer>>,
}

impl<W: Work> Worker<W> {
    /// A worker on this queue.
    #[must_use]
    pub fn new(queue: WorkQueue<W::Intent>, work: W) -> Self {
        Self {
            queue,
            work,
            visibility: Duration::from_secs(30),
            attempts_max: 10,
            backoff: (Duration::from_secs(1), Duration::from_secs(300)),
            saves_progress: false,
            concurrency: 16,
            idle: (Duration::from_millis(100), Duration::from_secs(5)),
            counters: Counters::default(),
            observers: Vec::new(),
        }
    }

    /// The visibility timeout of a message without a renewal (default: 30 seconds; minimum: one). A message whose
    /// worker crashed becomes visible again after this time.
    #[must_use]
    pub fn visibility(mut self, visibility: Duration) -> Self {
        self.visibility = visibility.clamp(Duration::from_secs(1), HIDDEN_MAX);
        self
    }

    /// How many intents are worked on at a time (default: 16). They share the task that runs the worker.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.max(1);
        self
    }

    /// After how many deliveries a message goes to the poison queue (default: 10). Deliveries to workers that crashed
    /// count too.
    #[must_use]
    pub fn attempts_max(mut self, attempts_max: u32) -> Self {
        self.attempts_max = attempts_max.max(1);
        self
    }

    /// After how long a failed intent comes back (default: a second), doubled with every delivery, up to five
    /// minutes. The queue counts whole seconds.
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = (first, longest.max(first).min(HIDDEN_MAX));
        self
    }

    /// How long the worker waits before it looks again into an empty queue (default: 100 ms), doubled as long as it
    /// stays empty, up to five seconds.
    #[must_use]
    pub fn idle(mut self, first: Duration, longest: Duration) -> Self {
        self.idle = (first, longest.max(first));
        self
    }

    /// Whether to write the number of finished steps into the message after each, so that the next delivery begins
    /// there. It costs a request a step and pays where steps take long; it is off by default.
    ///
    /// Intents that are under way when a program is updated must then find the same steps at the same numbers.
    #[must_use]
    pub const fn save_progress(mut self, saves_progress: bool) -> Self {
        self.saves_progress = saves_progress;
        self
    }

    /// Reports every event to an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// What the worker has done since it was made.
    #[must_use]
    pub fn stats(&self) -> WorkerStats {
        self.counters.stats()
    }

    /// What the worker does with intents.
    #[must_use]
    pub const fn work(&self) -> &W {
        &self.work
    }

    /// Works until `shutdown` completes; then it takes no more messages, finishes those it has and returns.
    ///
    /// Failures are reported to the observers and do not end the worker. Dropping the future stops at once, which is
    /// safe: the messages come back.
    pub async fn run(&self, shutdown: impl Future<Output = ()>) -> WorkerStats {
        let mut shutdown = pin!(shutdown);
        let stop = Notify::new();
        let mut running: FuturesUnordered<BoxFuture<'_, Ended>> = FuturesUnordered::new();
        let (mut is_stopping, mut handled, mut wait) = (false, 0, Duration::ZERO);
        let mut is_fetching = false;
        loop {
            if !is_stopping && !is_fetching && handled < self.concurrency {
                running.push(Box::pin(self.fetch(self.concurrency - handled, wait, &stop)));
                is_fetching = true;
            }
            let ended = match is_stopping {
                true => running.next().await,
                false => match future::select(&mut shutdown, running.next()).await {
                    Either::Left(_) => {
                        is_stopping = true;
                        // The one fetch that waits is woken; one that begins to wait finds the permit.
                        stop.notify_one();
                        continue;
                    }
                    Either::Right((ended, _)) => ended,
                },
            };
            match ended {
                None => return self.stats(),
                Some(Ended::Handled) => handled -= 1,
                Some(Ended::Fetched(messages)) => {
                    is_fetching = false;
                    wait = self.next_wait(wait, messages.is_empty());
                    handled += messages.len();
                    for message in messages {
                        running.push(Box::pin(self.handle_one(message)));
                    }
                }
            }
        }
    }

    /// Works until the queue shows no more messages; those that are hidden are not waited for.
    ///
    /// # Errors
    /// The queue cannot be read.
    pub async fn drain(&self) -> crate::Result<WorkerStats> {
        loop {
            let messages = self.queue.queue.receive(self.concurrency.min(32), self.visibility).await?;
            if messages.is_empty() {
                return Ok(self.stats());
            }
            future::join_all(messages.into_iter().map(|message| self.handle(message))).await;
        }
    }

    /// Waits, unless it is time to stop, and receives. A fetch is never dropped half-way, so that what it received is
    /// handled and not lost for the time of its visibility.
    async fn fetch(&self, count: usize, wait: Duration, stop: &Notify) -> Ended {
        if !wait.is_zero() {
            let (sleep, stopped) = (pin!(tokio::time::sleep(wait)), pin!(stop.notified()));
            if matches!(future::select(sleep, stopped).await, Either::Right(_)) {
                return Ended::Fetched(Vec::new());
            }
        }
        match self.queue.queue.receive(count.min(32), self.visibility).await {
            Ok(messages) => Ended::Fetched(messages),
            Err(error) => {
                self.report(&Event::QueueFailed { error: &error });
                Ended::Fetched(Vec::new())
            }
        }
    }

    async fn handle_one(&self, message: Message) -> Ended {
        self.handle(message).await;
        Ended::Handled
    }

    fn next_wait(&self, last: Duration, is_empty: bool) -> Duration {
        match is_empty {
            true => (last * 2).clamp(self.idle.0, self.idle.1),
            false => Duration::ZERO,
        }
    }

    pub(super) fn report(&self, event: &Event<'_>) {
        observe::trace(self.queue.name(), event);
        self.counters.observe(event);
        for observer in &self.observers {
            observer.observe(event);
        }
    }
}

/// A finished part of the work.
enum Ended {
    Fetched(Vec<Message>),
    Handled,
}

impl<W: Work> std::fmt::Debug for Worker<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { queue, visibility, concurrency, .. } = self;
        f.debug_struct("Worker")
            .field("queue", queue)
            .field("visibility", visibility)
            .field("concurrency", concurrency)
            .finish_non_exhaustive()
    }
}
