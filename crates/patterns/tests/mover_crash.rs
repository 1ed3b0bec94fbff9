//! T3: moves of entities, with submitters and workers that die at every request, and intents in any order.

use crate::harness::schedule::Gate;
use crate::harness::{self, DEATHS, Death, Mortal, Random, account, healthy, settle};
use larimar_client::{Account, BoxFuture, DynamicEntity, HttpTransport, IfMatch, Transport};
use larimar_embedded::Larimar;
use larimar_patterns::Error;
use larimar_patterns::eventual::{Place, Work, WorkError, Worker};
use larimar_patterns::mover::{MoveIntent, Mover};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn mover(account: &Account, queue: &str) -> Mover {
    Mover::new(account, queue).grace(SECOND)
}

fn worker(mover: Mover) -> Worker<Mover> {
    Worker::new(mover.queue().clone(), mover).visibility(SECOND).backoff(SECOND, SECOND).attempts_max(100)
}

/// An employee and where it is to go.
struct Case {
    from: Place,
    to: Place,
    queue: String,
    mover: Mover,
}

impl Case {
    async fn new(account: &Account, name: &str) -> Self {
        let (from, to) = (Place::new("Current", "Sales", name), Place::new("Archive", "Sales", name));
        let queue = format!("moves-{name}");
        let mover = mover(account, &queue);
        mover.create_if_missing().await.expect("queues");
        let employee = DynamicEntity::new("Sales", name).with("Name", "Don").with("Age", 34);
        account.table("Current").insert(&employee).await.expect("an employee");
        Self { from, to, queue, mover }
    }

    /// Submits the move, and takes its intent out of the queue.
    async fn submitted(&self, account: &Account) -> MoveIntent {
        self.mover.submit(&self.from, &self.to).await.expect("a submitted move");
        taken(account, &self.queue).await.pop().expect("an intent")
    }

    async fn live(&self, place: &Place) -> Option<DynamicEntity> {
        self.mover.get::<DynamicEntity>(place).await.expect("a read")
    }

    /// Whether it has left, and the copy does not know yet that it has arrived.
    async fn has_left(&self) -> bool {
        let target = self.live(&self.to).await.expect("the copy");
        self.live(&self.from).await.is_none() && target.value("_copied").is_some()
    }

    async fn assert_arrived(&self) {
        let target = self.live(&self.to).await.expect("it arrived");
        assert_eq!((target.get::<i32>("Age").expect("an age"), target.value("_copied")), (34, None));
    }

    /// Whether it was moved; it is at one place, whole.
    async fn was_moved(&self, what: &str) -> bool {
        let (source, target) = (self.live(&self.from).await, self.live(&self.to).await);
        let was_moved = target.is_some();
        let employee = match (source, target) {
            (Some(employee), None) | (None, Some(employee)) => employee,
            other => panic!("{what}: expected it at one place, found {other:?}"),
        };
        assert_eq!(employee.get::<String>("Name").expect("a name"), "Don", "{what}");
        assert_eq!(employee.get::<i32>("Age").expect("an age"), 34, "{what}");
        was_moved
    }
}

async fn tables(account: &Account) {
    for table in ["Current", "Archive"] {
        account.table(table).create_if_missing().await.expect("a table");
    }
}

/// The submitter dies at its k-th request: its move is made or not, and never half.
#[tokio::test]
async fn t3_a_submitter_that_dies_anywhere_leaves_the_entity_at_one_place() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account_ = healthy(&server);
    tables(&account_).await;
    let cases = (0..).take(7).flat_map(|k| DEATHS.map(|death| (k, death)));
    let outcomes = futures_util::future::join_all(cases.map(async |(k, death)| {
        let what = format!("{death:?} at request {k}");
        let case = Case::new(&account_, &format!("s{k}-{}", death as u8)).await;
        let mortal = Mortal::after(k, death);
        let result = mover(&account(&server, mortal.clone()), &case.queue).submit(&case.from, &case.to).await;
        let worker = worker(case.mover.clone());
        settle(&worker).await;
        let was_moved = case.was_moved(&what).await;
        if result.is_ok() {
            assert!(was_moved, "{what}: it was promised");
        }
        mortal.deliver_late().await;
        settle(&worker).await;
        let late = case.was_moved(&what).await;
        // An intent that comes late may still move it; nothing moves it back.
        assert!(late || !was_moved, "{what}, its request late");
        mortal.is_dead()
    }))
    .await;
    assert!(outcomes.iter().any(|is_dead| !is_dead), "more requests than deaths were tried");
    assert!(outcomes[0], "the first request is died at");
}

/// The worker dies at its k-th request: the next one finishes the move, and what comes late changes nothing.
#[tokio::test]
async fn t3_a_worker_that_dies_anywhere_is_replaced_by_another() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account_ = healthy(&server);
    tables(&account_).await;
    let case = Case::new(&account_, "calm").await;
    case.mover.submit(&case.from, &case.to).await.expect("a submitted move");
    let calm = Mortal::never();
    let living = worker(mover(&account(&server, calm.clone()), &case.queue)).visibility(60 * SECOND);
    living.drain().await.expect("drained");
    assert!(calm.sent() <= 16, "{} requests, and not all of them are died at", calm.sent());
    let cases = (0..).take(16).flat_map(|k| DEATHS.map(|death| (k, death)));
    futures_util::future::join_all(cases.map(async |(k, death)| {
        let what = format!("{death:?} at request {k}");
        let case = Case::new(&account_, &format!("w{k}-{}", death as u8)).await;
        case.mover.submit(&case.from, &case.to).await.expect("a submitted move");
        let mortal = Mortal::after(k, death);
        let _ = worker(mover(&account(&server, mortal.clone()), &case.queue)).drain().await;
        let worker = worker(case.mover.clone());
        settle(&worker).await;
        assert!(case.was_moved(&what).await, "{what}");
        // He comes back, and then the request arrives that was under way.
        case.mover.submit(&case.to, &case.from).await.expect("a submitted move");
        settle(&worker).await;
        assert!(!case.was_moved(&what).await, "{what}, moved back");
        mortal.deliver_late().await;
        settle(&worker).await;
        assert!(!case.was_moved(&what).await, "{what}, its request late");
    }))
    .await;
}

/// Moved away and back, with every intent carried out again afterwards: the last move holds.
#[tokio::test]
async fn t3_an_old_intent_that_comes_again_does_not_undo_a_later_one() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    let case = Case::new(&account, "again").await;
    let mut intents = Vec::new();
    for (from, to) in [(&case.from, &case.to), (&case.to, &case.from), (&case.from, &case.to), (&case.to, &case.from)] {
        case.mover.submit(from, to).await.expect("a submitted move");
        intents.extend(taken(&account, &case.queue).await);
        perform(&case.mover, intents.last().expect("an intent")).await.expect("a move");
        assert!(case.live(from).await.is_none() && case.live(to).await.is_some());
    }
    for intent in intents.iter().rev().chain(&intents) {
        perform(&case.mover, intent).await.expect("nothing to do");
    }
    assert!(!case.was_moved("moved back twice").await);
}

/// A change that is made while the entity is frozen arrives with it.
#[tokio::test]
async fn t3_a_change_on_the_way_is_carried_along() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    for changed_before in 0..3 {
        let case = Case::new(&account, &format!("change{changed_before}")).await;
        let intent = case.submitted(&account).await;
        for step in 0..case.mover.steps(&intent) {
            if step == changed_before {
                let change = DynamicEntity::new("Sales", &case.from.row).with("Phone", "555");
                account.table("Current").merge(&change, IfMatch::Any).await.expect("a change");
            }
            case.mover.perform(&intent, step).await.expect("a step");
        }
        let moved = case.live(&case.to).await.expect("it arrived");
        assert_eq!(moved.get::<String>("Phone").expect("a phone"), "555", "changed before step {changed_before}");
        assert!(case.was_moved("with a change").await);
    }
}

/// A transport that lets another client act before one of its requests.
struct Meddled<F> {
    inner: HttpTransport,
    left: AtomicI64,
    meddle: F,
}

impl<F> fmt::Debug for Meddled<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddled").finish_non_exhaustive()
    }
}

impl<F: Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static> Transport for Meddled<F> {
    fn send(&self, request: harness::Request) -> BoxFuture<'_, harness::Answer> {
        Box::pin(async move {
            if self.left.fetch_sub(1, SeqCst) == 0 {
                (self.meddle)().await;
            }
            self.inner.send(request).await
        })
    }
}

/// A writer that replaces the entity by a type of its own, which has no `_moving`, under the ETag that it read.
#[tokio::test]
async fn t3_a_writer_who_knows_nothing_of_moves_leaves_the_entity_at_one_place() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account_ = healthy(&server);
    tables(&account_).await;
    let mut ends = BTreeSet::new();
    for k in 0..12 {
        let case = Case::new(&account_, &format!("unaware{k}")).await;
        case.mover.submit(&case.from, &case.to).await.expect("a submitted move");
        let (table, row) = (account_.table("Current"), case.from.row.clone());
        let was_changed = Arc::new(AtomicBool::new(false));
        let changed = Arc::clone(&was_changed);
        let meddle = move || -> BoxFuture<'static, ()> {
            let (table, row, changed) = (table.clone(), row.clone(), Arc::clone(&changed));
            Box::pin(async move {
                let found = table.get::<DynamicEntity>("Sales", &row).await.expect("a read").expect("it is there");
                if larimar_patterns::mover::is_gone(&found) {
                    return;
                }
                let entity = DynamicEntity::new("Sales", &row).with("Name", "Don").with("Age", 34).with("Phone", "555");
                table.replace(&entity, found.etag.as_ref().expect("an ETag")).await.expect("a change");
                changed.store(true, SeqCst);
            })
        };
        let transport = Meddled { inner: HttpTransport::default(), left: AtomicI64::new(k), meddle };
        let worker = worker(mover(&account(&server, Arc::new(transport)), &case.queue)).visibility(60 * SECOND);
        let what = format!("changed before request {k}");
        assert_eq!(worker.drain().await.expect("drained").done, 1, "{what}");
        let was_moved = case.was_moved(&what).await;
        let end = case.live(if was_moved { &case.to } else { &case.from }).await.expect("it is there");
        let phone = end.get::<Option<String>>("Phone").expect("a text");
        assert_eq!(phone.is_some(), was_changed.load(SeqCst), "{what}: the change is kept");
        assert!(case.mover.submit(&case.from, &case.to).await.is_ok() || was_moved, "{what}: it can be moved again");
        ends.insert((was_moved, phone.is_some()));
    }
    assert_eq!(ends.len(), 3, "called off, moved with the change, moved before it: {ends:?}");
}

/// Two entities on their way to the same place: one arrives, and the other is not lost.
#[tokio::test]
async fn t3_two_moves_to_one_place_lose_nothing() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    for (number, order) in [[0, 1], [1, 0]].into_iter().enumerate() {
        let case = Case::new(&account, &format!("first{number}")).await;
        let second = Place::new("Current", "Sales", format!("second{number}"));
        let employee = DynamicEntity::new("Sales", &second.row).with("Name", "Jun");
        account.table("Current").insert(&employee).await.expect("an employee");
        let sources = [&case.from, &second];
        let mut intents = Vec::new();
        for source in sources {
            case.mover.submit(source, &case.to).await.expect("nothing is there yet");
            intents.extend(taken(&account, &case.queue).await);
        }
        perform(&case.mover, &intents[order[0]]).await.expect("the first one arrives");
        let refused = perform(&case.mover, &intents[order[1]]).await;
        assert!(matches!(refused, Err(WorkError::Poison(_))), "{refused:?}");
        assert!(case.live(sources[order[0]]).await.is_none());
        assert!(case.live(sources[order[1]]).await.is_some(), "it is where it was");
        // There is room again, and the intent comes back.
        account.table("Archive").delete("Sales", &case.to.row, IfMatch::Any).await.expect("a delete");
        perform(&case.mover, &intents[order[1]]).await.expect("the other arrives");
        assert!(case.live(sources[order[1]]).await.is_none());
        let name = case.live(&case.to).await.expect("it is there").get::<String>("Name").expect("a name");
        assert_eq!(name, ["Don", "Jun"][order[1]]);
    }
}

/// An entity that has not quite arrived is not moved on: the move on its way would take it for its own.
#[tokio::test]
async fn t3_what_is_arriving_is_not_moved_on() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    let case = Case::new(&account, "onward").await;
    let intent = case.submitted(&account).await;
    for step in [0, 1] {
        case.mover.perform(&intent, step).await.expect("a step");
    }
    let elsewhere = Place::new("Archive", "Marketing", "onward");
    assert!(matches!(case.mover.submit(&case.to, &elsewhere).await, Err(Error::Changed)));
    case.mover.perform(&intent, 2).await.expect("a step");
    case.mover.submit(&case.to, &elsewhere).await.expect("it has arrived");
    worker(case.mover.clone()).drain().await.expect("drained");
    perform(&case.mover, &intent).await.expect("nothing to do");
    assert!(case.live(&elsewhere).await.is_some());
    assert!(case.live(&case.from).await.is_none() && case.live(&case.to).await.is_none());
}

/// The worker dies when the source has left and before the copy knows that it has arrived: the tombstone waits for that, so
/// that nobody takes what comes to the source later for what has left it.
#[tokio::test]
async fn t3_a_tombstone_stays_until_the_entity_has_arrived() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account_ = healthy(&server);
    tables(&account_).await;
    let case = Case::new(&account_, "landing").await;
    let intent = case.submitted(&account_).await;
    for step in [0, 1] {
        case.mover.perform(&intent, step).await.expect("a step");
    }
    // It looks at both places, writes down that the tombstone is to go, and makes it.
    let dying = mover(&account(&server, Mortal::after(4, Death::BeforeSend)), &case.queue);
    assert!(dying.tombstones_for(Duration::ZERO).perform(&intent, 2).await.is_err());
    assert!(case.has_left().await, "as the test wants it");
    let forget = taken(&account_, &case.queue).await.pop().expect("the tombstone's intent");
    perform(&case.mover, &forget).await.expect("forgotten");
    account_.table("Current").insert(&DynamicEntity::new("Sales", "landing")).await.expect("a new employee");
    perform(&case.mover, &intent).await.expect("nothing to do");
    let source = case.live(&case.from).await;
    assert!(source.is_some(), "the new one stays");
    case.assert_arrived().await;
}

/// The same death, and another entity is moved to the source before the intent comes again: it is not what was to be moved.
#[tokio::test]
async fn t3_an_old_intent_leaves_alone_what_was_moved_to_its_source_since() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account_ = healthy(&server);
    tables(&account_).await;
    let case = Case::new(&account_, "left").await;
    let intent = case.submitted(&account_).await;
    let dying = mover(&account(&server, Mortal::after(9, Death::BeforeSend)), &case.queue);
    assert!(perform(&dying, &intent).await.is_err());
    assert!(case.has_left().await, "as the test wants it");
    let newcomer = Place::new("Current", "Sales", "newcomer");
    account_.table("Current").insert(&DynamicEntity::new("Sales", "newcomer")).await.expect("another employee");
    case.mover.submit(&newcomer, &case.from).await.expect("there is room");
    worker(case.mover.clone()).drain().await.expect("drained");
    perform(&case.mover, &intent).await.expect("nothing but to arrive");
    let source = case.live(&case.from).await;
    assert!(source.is_some_and(|source| source.value("Age").is_none()), "the newcomer stays");
    case.assert_arrived().await;
}

/// Another one came and went while a move was under way: it waits until the place is forgotten.
#[tokio::test]
async fn t3_a_move_waits_for_the_tombstone_of_a_later_one() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    let case = Case::new(&account, "early").await;
    let mover = case.mover.clone().tombstones_for(Duration::ZERO);
    let (late, elsewhere) = (Place::new("Current", "Sales", "late"), Place::new("Archive", "Sales", "elsewhere"));
    account.table("Current").insert(&DynamicEntity::new("Sales", "late")).await.expect("an employee");
    let submit = async |from: &Place, to: &Place| {
        mover.submit(from, to).await.expect("a submitted move");
        taken(&account, &case.queue).await.pop().expect("an intent")
    };
    let early = submit(&case.from, &case.to).await;
    let through = submit(&late, &case.to).await;
    perform(&mover, &through).await.expect("it arrives");
    let _ = taken(&account, &case.queue).await;
    let onward = submit(&case.to, &elsewhere).await;
    perform(&mover, &onward).await.expect("it goes on");
    let forget = taken(&account, &case.queue).await.pop().expect("the tombstone's intent");
    let waits = perform(&mover, &early).await;
    assert!(matches!(waits, Err(WorkError::Retry(_))), "{waits:?}");
    assert!(case.live(&case.from).await.is_some(), "it is where it was");
    perform(&mover, &forget).await.expect("forgotten");
    perform(&mover, &early).await.expect("it arrives");
    perform(&mover, &onward).await.expect("nothing to do");
    assert!(case.was_moved("after another").await);
    assert!(case.live(&elsewhere).await.is_some_and(|entity| entity.value("Age").is_none()));
}

#[tokio::test]
async fn t3_what_cannot_be_moved_is_refused_with_a_reason() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    let case = Case::new(&account, "refused").await;
    let nobody = Place::new("Current", "Sales", "nobody");
    assert!(matches!(case.mover.submit(&nobody, &case.to).await, Err(Error::NotFound)));
    assert!(matches!(case.mover.submit(&case.from, &case.from).await, Err(Error::Invalid(_))));
    account.table("Archive").insert(&DynamicEntity::new("Sales", "taken")).await.expect("an entity");
    let taken = Place::new("Archive", "Sales", "taken");
    assert!(matches!(case.mover.submit(&case.from, &taken).await, Err(Error::Exists)));
    case.mover.submit(&case.from, &case.to).await.expect("the first move");
    let elsewhere = Place::new("Archive", "Marketing", "refused");
    assert!(matches!(case.mover.submit(&case.from, &elsewhere).await, Err(Error::Changed)), "it is on its way");
    // The tombstone goes when its time is over.
    let brief = case.mover.clone().tombstones_for(SECOND);
    settle(&worker(brief)).await;
    let left = account.table("Current").get::<DynamicEntity>("Sales", "refused").await.expect("a read");
    assert_eq!(left, None);
    assert_eq!(case.mover.queue().backlog().await.expect("a count"), 0);
}

/// What the page says it costs.
#[tokio::test]
async fn t3_a_move_costs_five_requests_and_twelve_and_five_for_the_tombstone() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    let case = Case::new(&account, "cost").await;
    let requests = || server.requests().table + server.requests().queue;
    let before = requests();
    case.mover.submit(&case.from, &case.to).await.expect("a submitted move");
    assert_eq!(requests() - before, 5);
    let before = requests();
    // Renewals would count too.
    let worker = worker(case.mover.clone().tombstones_for(SECOND)).visibility(60 * SECOND);
    worker.drain().await.expect("drained");
    let mut cost = requests() - before;
    assert_eq!(cost, 12 + 1, "and one that finds the queue empty");
    while worker.stats().done < 2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let before = requests();
        worker.drain().await.expect("drained");
        cost = requests() - before;
    }
    assert_eq!(cost, 5 + 1, "and one that finds the queue empty");
}

/// Takes all visible intents out of a queue.
async fn taken(account: &Account, queue: &str) -> Vec<MoveIntent> {
    let queue = account.queue(queue);
    let mut intents = Vec::new();
    for message in queue.receive(32, Duration::from_secs(3600)).await.expect("messages") {
        let mut text: serde_json::Value = serde_json::from_str(&message.text).expect("JSON");
        intents.push(serde_json::from_value(text["intent"].take()).expect("an intent"));
    }
    intents
}

async fn perform(mover: &Mover, intent: &MoveIntent) -> Result<(), WorkError> {
    for step in 0..mover.steps(intent) {
        mover.perform(intent, step).await?;
    }
    Ok(())
}

type Running = tokio::task::JoinHandle<Result<(), WorkError>>;

/// Submitters and workers at the same time, their requests in a random order, some lost, some late, intents repeated:
/// every entity ends at one place, whole, and where the last promised move brought it.
#[tokio::test]
async fn t3_random_interleavings_end_at_one_place() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = healthy(&server);
    tables(&account).await;
    for seed in harness::seeds() {
        interleave(&server, &account, seed).await;
    }
}

async fn interleave(server: &Larimar, healthy: &Account, seed: u64) {
    let random = &mut Random::new(seed);
    let case = Case::new(healthy, &format!("mix{seed}")).await;
    let gate = Gate::default();
    // Intents are seen at once, before what they are about has begun.
    let mover = Mover::new(&account(server, Arc::new(gate.clone())), &case.queue).grace(Duration::ZERO);
    let (mut pending, mut working, mut submitters) = (Vec::new(), Vec::<(MoveIntent, Running)>::new(), 12);
    loop {
        let active = gate.all_waiting().await;
        pending.extend(taken(healthy, &case.queue).await);
        let mut still = Vec::new();
        for (intent, handle) in working {
            if !handle.is_finished() {
                still.push((intent, handle));
            } else if handle.await.expect("no panic").is_err() || random.chance(4) {
                // What failed is delivered again, and what succeeded now and then too.
                pending.push(intent);
            }
        }
        working = still;
        match random.below(64) {
            0..4 if submitters > 0 => {
                submitters -= 1;
                let (from, to) = match random.chance(2) {
                    true => (case.from.clone(), case.to.clone()),
                    false => (case.to.clone(), case.from.clone()),
                };
                let mover = mover.clone();
                drop(gate.spawn(random, async move { drop(mover.submit(&from, &to).await) }));
            }
            4..12 if !pending.is_empty() => {
                let intent = pending.swap_remove(random.below(pending.len()));
                let (mover, given) = (mover.clone(), intent.clone());
                working.push((intent, gate.spawn(random, async move { perform(&mover, &given).await })));
            }
            12 => drop(gate.deliver_late(random).await),
            _ if active > 0 => gate.release(random, 12, submitters == 0 && pending.is_empty()),
            _ if submitters == 0 && pending.is_empty() && working.is_empty() => break,
            _ => {}
        }
    }
    while gate.deliver_late(random).await {}
    // Whatever the late ones left is finished by intents that are still there: none are, so nothing may be left.
    for place in [&case.from, &case.to] {
        let found =
            healthy.table(&place.table).get::<DynamicEntity>(&place.partition, &place.row).await.expect("a read");
        let marks = |entity: &DynamicEntity| ["_moving", "_copied"].map(|mark| entity.value(mark).cloned());
        let marks = found.as_ref().map(marks).unwrap_or_default();
        assert_eq!(marks, [None, None], "seed {seed}: nothing is on its way for ever");
    }
    case.was_moved(&format!("seed {seed}")).await;
}
