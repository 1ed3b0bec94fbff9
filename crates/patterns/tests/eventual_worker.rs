//! T3: the engine itself: renewal, loss, back-off, poison, progress, several workers and the stop.

use crate::harness::{self, Death, Mortal, account, healthy};
use larimar_client::{BoxFuture, HttpTransport, Transport};
use larimar_embedded::Larimar;
use larimar_patterns::Error;
use larimar_patterns::eventual::{Event, Observer, Work, WorkError, WorkQueue, Worker};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

const SECOND: Duration = Duration::from_secs(1);

/// Work that a test looks into: what was performed, and what is to go wrong.
#[derive(Clone, Default)]
struct Script {
    performed: Arc<Mutex<Vec<(String, usize)>>>,
    /// How often a step fails before it succeeds.
    failures: Arc<Mutex<BTreeMap<(String, usize), u32>>>,
    steps: usize,
    takes: Duration,
}

impl Script {
    fn new(steps: usize) -> Self {
        Self { steps, ..Self::default() }
    }

    fn failing(self, intent: &str, step: usize, times: u32) -> Self {
        self.failures.lock().expect("no panic").insert((intent.to_owned(), step), times);
        self
    }

    fn performed(&self) -> Vec<(String, usize)> {
        let mut performed = self.performed.lock().expect("no panic").clone();
        performed.sort();
        performed
    }
}

impl Work for Script {
    type Intent = String;

    fn steps(&self, _: &String) -> usize {
        self.steps
    }

    async fn perform(&self, intent: &String, step: usize) -> Result<(), WorkError> {
        tokio::time::sleep(self.takes).await;
        let key = (intent.clone(), step);
        let left = match self.failures.lock().expect("no panic").get_mut(&key) {
            None => 0,
            Some(left) => {
                let before = *left;
                *left = if before == u32::MAX { before } else { before.saturating_sub(1) };
                before
            }
        };
        assert!(left == 0 || intent != "panics", "as the test asked");
        match left {
            0 => {}
            u32::MAX => return Err(WorkError::poison("it will never do")),
            _ => return Err(WorkError::retry("not yet")),
        }
        self.performed.lock().expect("no panic").push(key);
        Ok(())
    }
}

async fn queue(server: &Larimar) -> WorkQueue<String> {
    let queue = WorkQueue::new(&healthy(server), "work");
    queue.create_if_missing().await.expect("queues");
    queue
}

/// A worker that keeps its messages for longer than a slow machine needs: what is counted comes once.
fn worker(queue: &WorkQueue<String>, script: &Script) -> Worker<Script> {
    Worker::new(queue.clone(), script.clone()).visibility(30 * SECOND).backoff(Duration::ZERO, Duration::ZERO)
}

#[tokio::test]
async fn t3_a_submitted_intent_is_done_and_counted() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (queue, script) = (queue(&server).await, Script::new(2));
    for name in ["a", "b", "c"] {
        queue.submit(&name.to_owned()).await.expect("durable");
    }
    let stats = worker(&queue, &script).drain().await.expect("drained");
    assert_eq!((stats.received, stats.done, stats.failed, stats.poisoned, stats.lost), (3, 3, 0, 0, 0));
    let all = ["a", "b", "c"].iter().flat_map(|name| [0, 1].map(|step| ((*name).to_owned(), step)));
    assert_eq!(script.performed(), all.collect::<Vec<_>>());
    assert_eq!(queue.backlog().await.expect("a count"), 0);
}

#[tokio::test]
async fn t3_a_failed_step_is_tried_again_from_the_start_or_from_the_saved_progress() {
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    for saves in [false, true] {
        let script = Script::new(3).failing("a", 2, 2);
        queue.submit(&"a".to_owned()).await.expect("durable");
        let stats = worker(&queue, &script).save_progress(saves).drain().await.expect("drained");
        assert_eq!((stats.done, stats.failed), (1, 2));
        let first = script.performed().iter().filter(|(_, step)| *step == 0).count();
        assert_eq!(first, if saves { 1 } else { 3 }, "the first step, with saved progress: {saves}");
    }
}

#[tokio::test]
async fn t3_poison_goes_aside_with_its_reason_and_comes_back_when_asked() {
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    let script = Script::new(1).failing("slow", 0, 3).failing("never", 0, u32::MAX).failing("panics", 0, 9);
    for name in ["never", "slow", "panics", "good"] {
        queue.submit(&name.to_owned()).await.expect("durable");
    }
    healthy(&server).queue("work").put("not ours").await.expect("a message");
    let worker = worker(&queue, &script).attempts_max(3);
    let stats = worker.drain().await.expect("drained");
    assert_eq!((stats.done, stats.poisoned), (1, 4), "{stats:?}");
    assert_eq!(queue.backlog().await.expect("a count"), 0);
    let mut poisoned = queue.poisoned(32).await.expect("a look");
    poisoned.sort_by(|a, b| a.intent.cmp(&b.intent));
    let reported = poisoned.iter().map(|p| (p.intent.as_deref(), p.error.as_str())).collect::<Vec<_>>();
    assert_eq!(reported[0].0, None);
    assert_eq!(poisoned[0].text, "not ours");
    assert_eq!(
        reported[1..],
        [(Some("never"), "it will never do"), (Some("panics"), "the step panicked"), (Some("slow"), "not yet")]
    );
    assert_eq!(queue.redrive(100).await.expect("brought back"), 3);
    worker.drain().await.expect("drained");
    assert_eq!(script.performed(), [("good".to_owned(), 0), ("slow".to_owned(), 0)], "its fourth attempt succeeds");
    assert_eq!(queue.poison_backlog().await.expect("a count"), 3);
}

/// A worker that dies with a message again and again does not keep it for ever.
#[tokio::test]
async fn t3_a_message_whose_workers_die_is_poison_in_the_end() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (queue, script) = (queue(&server).await, Script::new(1));
    queue.submit(&"a".to_owned()).await.expect("durable");
    for _ in 0..2 {
        let raw = healthy(&server).queue("work");
        while raw.receive(1, SECOND).await.expect("a read").is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    tokio::time::sleep(SECOND + Duration::from_millis(200)).await;
    let stats = worker(&queue, &script).attempts_max(2).drain().await.expect("drained");
    assert_eq!((stats.poisoned, script.performed().len()), (1, 0));
    assert!(queue.poisoned(1).await.expect("a look")[0].error.contains("delivered 3 times"));
}

/// Between the put into the poison queue and the delete, or anywhere else: a message is in one of the queues.
#[tokio::test]
async fn t3_a_worker_that_dies_while_it_poisons_loses_nothing() {
    let server = Larimar::ephemeral().await.expect("a server");
    for k in 0..4 {
        for death in [Death::BeforeSend, Death::AnswerLost] {
            let name = format!("poison-{k}-{}", death as u8);
            let sound = WorkQueue::<String>::new(&healthy(&server), &name);
            sound.create_if_missing().await.expect("queues");
            sound.submit(&"never".to_owned()).await.expect("durable");
            let script = Script::new(1).failing("never", 0, u32::MAX);
            let dying = WorkQueue::new(&account(&server, Mortal::after(k, death)), &name);
            let _ = worker(&dying, &script).drain().await;
            assert_kept(&sound, &format!("{death:?} at request {k}")).await;
        }
    }
}

/// The intent is to be carried out, or aside; it may be both.
async fn assert_kept(queue: &WorkQueue<String>, what: &str) {
    let (waiting, aside) = (queue.backlog().await.expect("a count"), queue.poison_backlog().await.expect("one"));
    assert!(waiting + aside >= 1, "{what}: {waiting} and {aside}");
}

#[tokio::test]
async fn t3_a_long_step_keeps_its_message() {
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    let script = Script { takes: 6 * SECOND, ..Script::new(1) };
    queue.submit(&"long".to_owned()).await.expect("durable");
    let first = worker(&queue, &script).visibility(4 * SECOND);
    let second = worker(&queue, &script);
    let other = async {
        while first.stats().received == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for _ in 0..50 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            second.drain().await.expect("drained");
        }
    };
    let (stats, ()) = tokio::join!(first.drain(), other);
    let stats = stats.expect("drained");
    assert_eq!((stats.done, stats.lost), (1, 0));
    assert!(stats.renewed >= 2, "{stats:?}");
    assert_eq!(second.stats().received, 0, "nobody else saw it");
    assert_eq!(script.performed().len(), 1);
}

/// A worker whose message was taken stops and acknowledges nothing.
#[tokio::test]
async fn t3_a_worker_that_lost_its_message_drops_its_work() {
    struct Thief(WorkQueue<String>, Notify);
    impl Observer for Thief {
        fn observe(&self, event: &Event<'_>) {
            if matches!(event, Event::Received { .. }) {
                self.1.notify_one();
            }
        }
    }
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    let script = Script { takes: Duration::from_secs(60), ..Script::new(1) };
    let mut submitted = queue.submit(&"a".to_owned()).await.expect("durable");
    let thief = Arc::new(Thief(queue.clone(), Notify::new()));
    let worker = worker(&queue, &script).visibility(SECOND).observer(thief.clone());
    let steal = async {
        thief.1.notified().await;
        // The receipt of the submitter is stale, so its reveal does nothing; the message is gone by force.
        thief.0.reveal(&mut submitted).await.expect("no harm");
        healthy(&server).queue("work").clear().await.expect("cleared");
    };
    let (stats, ()) = tokio::join!(worker.drain(), steal);
    let stats = stats.expect("drained");
    assert_eq!((stats.lost, stats.done, stats.failed, stats.queue_failures), (1, 0, 0, 0), "at once");
    assert!(script.performed().is_empty(), "its step was dropped in the middle");
}

#[tokio::test]
async fn t3_several_workers_share_the_work_and_stop_when_told() {
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    let script = Script { takes: Duration::from_millis(5), ..Script::new(2) };
    let stop = Arc::new(tokio::sync::Semaphore::new(0));
    let workers = (0..4).map(|_| {
        let worker = worker(&queue, &script).concurrency(5);
        let (worker, stop) = (worker.idle(Duration::from_millis(5), Duration::from_secs(5)), Arc::clone(&stop));
        tokio::spawn(async move { worker.run(async { drop(stop.acquire().await) }).await })
    });
    let workers = workers.collect::<Vec<_>>();
    for number in 0..100 {
        queue.submit(&format!("{number:03}")).await.expect("durable");
    }
    while queue.backlog().await.expect("a count") > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.close();
    let mut done = 0;
    for worker in workers {
        done += worker.await.expect("it ends").done;
    }
    assert_eq!(done, 100);
    let all = (0..100).flat_map(|number| [0, 1].map(|step| (format!("{number:03}"), step)));
    assert_eq!(script.performed(), all.collect::<Vec<_>>(), "each once, because no worker crashed");
}

/// What is being worked on when the stop comes is finished.
#[tokio::test]
async fn t3_a_stop_lets_running_work_finish() {
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    let script = Script { takes: Duration::from_millis(300), ..Script::new(1) };
    queue.submit(&"a".to_owned()).await.expect("durable");
    let worker = worker(&queue, &script);
    let stop = async {
        while worker.stats().received == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert_eq!(worker.run(stop).await.done, 1);
}

#[tokio::test]
async fn t3_an_intent_that_is_too_large_is_refused_before_anything_is_done() {
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    let refused = queue.submit(&"x".repeat(64 * 1024)).await;
    assert!(matches!(refused, Err(Error::IntentTooLarge { .. })));
    queue.submit(&"ü\"<&\u{10FFFD}".repeat(4000)).await.expect("what fits as JSON fits");
    assert_eq!(worker(&queue, &Script::new(1)).drain().await.expect("drained").done, 1);
}

/// JSON has characters that XML has not.
#[tokio::test]
async fn t3_an_intent_may_hold_any_text() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (queue, script) = (queue(&server).await, Script::new(1).failing("\u{FFFF}\u{0}\u{FFFE} \u{1}\\", 0, u32::MAX));
    let texts = ["\u{FFFF}\u{0}\u{FFFE} \u{1}\\", "\\uffff", " \r\n\t]]>&amp;"].map(str::to_owned);
    for text in &texts {
        queue.submit(text).await.expect("durable");
    }
    worker(&queue, &script).drain().await.expect("drained");
    let mut performed = script.performed().into_iter().map(|(text, _)| text).collect::<Vec<_>>();
    performed.sort();
    assert_eq!(performed, [texts[2].clone(), texts[1].clone()]);
    assert_eq!(queue.poisoned(1).await.expect("a look")[0].intent.as_ref(), Some(&texts[0]));
}

/// Messages of others in the poison queue do not hide the intents behind them.
#[tokio::test]
async fn t3_a_redrive_finds_intents_behind_other_messages() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (queue, script) = (queue(&server).await, Script::new(1).failing("a", 0, u32::MAX));
    for _ in 0..40 {
        healthy(&server).queue("work").put("not ours").await.expect("a message");
    }
    let worker = worker(&queue, &script);
    assert_eq!(worker.drain().await.expect("drained").poisoned, 40);
    queue.submit(&"a".to_owned()).await.expect("durable");
    assert_eq!(worker.drain().await.expect("drained").poisoned, 41);
    assert_eq!(queue.redrive(100).await.expect("brought back"), 1);
    assert_eq!((queue.backlog().await.expect("a count"), queue.poison_backlog().await.expect("a count")), (1, 40));
}

/// Between the put and the delete, or anywhere else: a message is in one of the queues.
#[tokio::test]
async fn t3_a_redrive_that_dies_loses_nothing() {
    let server = Larimar::ephemeral().await.expect("a server");
    for k in 0..5 {
        for death in [Death::BeforeSend, Death::AnswerLost] {
            let name = format!("redrive-{k}-{}", death as u8);
            let sound = WorkQueue::<String>::new(&healthy(&server), &name);
            sound.create_if_missing().await.expect("queues");
            sound.submit(&"never".to_owned()).await.expect("durable");
            let script = Script::new(1).failing("never", 0, u32::MAX);
            worker(&sound, &script).drain().await.expect("drained");
            let _ = WorkQueue::<String>::new(&account(&server, Mortal::after(k, death)), &name).redrive(1).await;
            assert_kept(&sound, &format!("{death:?} at request {k}")).await;
        }
    }
}

/// The default TTL of messages is a week.
#[tokio::test]
async fn t3_intents_never_expire() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (queue, script) = (queue(&server).await, Script::new(1).failing("never", 0, u32::MAX));
    let expiry = async |name: &str| {
        let messages = healthy(&server).queue(name).peek(1).await.expect("a look");
        messages.into_iter().map(|message| message.expires_on).collect::<Vec<_>>()
    };
    queue.submit(&"never".to_owned()).await.expect("durable");
    assert_eq!(expiry("work").await, [None]);
    worker(&queue, &script).drain().await.expect("drained");
    assert_eq!(expiry("work-poison").await, [None]);
    assert_eq!(queue.redrive(1).await.expect("brought back"), 1);
    assert_eq!(expiry("work").await, [None]);
}

/// Carries out whatever is put into the queue before the one who put it hears of it.
struct AtOnce(HttpTransport, Worker<Script>);

impl std::fmt::Debug for AtOnce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AtOnce").field(&self.1).finish()
    }
}

impl Transport for AtOnce {
    fn send(&self, request: harness::Request) -> BoxFuture<'_, harness::Answer> {
        Box::pin(async move {
            let is_put =
                request.method() == "POST" && request.uri().path().rsplit('/').take(2).eq(["messages", "work"]);
            let answer = self.0.send(request).await;
            if is_put {
                self.1.drain().await.expect("drained");
            }
            answer
        })
    }
}

/// A redrive ends though workers poison as fast as it brings back.
#[tokio::test]
async fn t3_a_redrive_brings_a_message_back_once() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (queue, script) = (queue(&server).await, Script::new(1).failing("a", 0, u32::MAX));
    queue.submit(&"a".to_owned()).await.expect("durable");
    worker(&queue, &script).drain().await.expect("drained");
    let at_once = Arc::new(AtOnce(HttpTransport::default(), worker(&queue, &script)));
    let driven = WorkQueue::<String>::new(&account(&server, at_once), "work");
    assert_eq!(driven.redrive(50).await.expect("brought back"), 1);
    assert_eq!(queue.poison_backlog().await.expect("a count"), 1);
}

/// Work that panics where no future is there yet.
struct Rash;

impl Work for Rash {
    type Intent = String;

    fn steps(&self, intent: &String) -> usize {
        assert!(intent != "steps", "as the test asked");
        1
    }

    fn perform(&self, intent: &String, _: usize) -> impl Future<Output = Result<(), WorkError>> + Send {
        assert!(intent != "perform", "as the test asked");
        std::future::ready(Ok(()))
    }
}

#[tokio::test]
async fn t3_a_panic_outside_of_the_future_is_a_failure_too() {
    let server = Larimar::ephemeral().await.expect("a server");
    let queue = queue(&server).await;
    for name in ["steps", "perform", "good"] {
        queue.submit(&name.to_owned()).await.expect("durable");
    }
    let worker = Worker::new(queue, Rash).attempts_max(2).backoff(Duration::ZERO, Duration::ZERO);
    let stats = worker.drain().await.expect("drained");
    assert_eq!((stats.done, stats.failed, stats.poisoned), (1, 2, 2));
}
