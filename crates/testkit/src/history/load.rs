//! Random clients over HTTP that record their calls and the answers.
//!
//! Each has one call under way at a time, on a server of its choice. A few entities and partitions are in use at any
//! moment, so that clients meet; one with many calls, or with several that got no clear answer, gives way to a new
//! one, which keeps the search small. At the end everything is read once more and the whole history is checked.

mod partitions;

use super::{Condition, History, Refusal, Span, Version, Versions, entity};
use crate::Dice;
use crate::http::{Client, Request, Response, entity as entity_json, entity_path};
use larimar_model::{ETag, IfMatch, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Entities in use at a time, and pairs of partitions for transactions.
const ENTITIES: usize = 4;
const PARTITIONS: usize = 2;
/// When a place gives way to a new one.
const CALLS_MAX: u64 = 150;
const UNKNOWN_MAX: u64 = 4;
/// How long a client waits when there is no answer or no server.
const PAUSE: Duration = Duration::from_millis(20);
/// How long the servers may take to answer again at the end.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// Where the servers are. One that was started again has another address.
#[derive(Debug, Default)]
pub struct Targets(Mutex<Vec<SocketAddr>>);

/// Clients at work.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What a load did.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Calls with an answer: done or found.
    pub done: u64,
    /// Calls that were refused for their condition.
    pub refused: u64,
    /// Calls without a clear answer.
    pub unknown: u64,
    /// The longest that a client waited for an answer.
    pub longest: Duration,
}

#[derive(Debug)]
struct Shared {
    targets: Arc<Targets>,
    table: String,
    history: History,
    is_stopping: AtomicBool,
    entities: Mutex<Vec<Slot>>,
    partitions: Mutex<Vec<Slot>>,
    done: AtomicU64,
    refused: AtomicU64,
    unknown: AtomicU64,
    longest: Mutex<Duration>,
}

/// A place in use.
#[derive(Debug)]
struct Slot {
    name: String,
    generation: u64,
    calls: u64,
    unknown: u64,
}

/// One client.
struct Worker {
    number: usize,
    shared: Arc<Shared>,
    dice: Dice,
    clients: Vec<Client>,
    /// The versions that this client saw last: of an entity, or of the rows of a partition.
    seen: HashMap<String, BTreeMap<usize, Version>>,
}

/// What came of a request.
enum Answer {
    Reply(Response),
    /// The server may have seen the request.
    Broken,
    /// The request was never sent.
    Unsent,
}

impl Targets {
    /// These servers.
    #[must_use]
    pub fn new(servers: impl IntoIterator<Item = SocketAddr>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(servers.into_iter().collect())))
    }

    /// Says where a server is now.
    pub fn set(&self, number: usize, address: SocketAddr) {
        self.0.lock().expect("no panic while locked")[number] = address;
    }

    fn get(&self, number: usize) -> SocketAddr {
        let servers = self.0.lock().expect("no panic while locked");
        servers[number % servers.len()]
    }

    fn len(&self) -> usize {
        self.0.lock().expect("no panic while locked").len()
    }
}

impl Load {
    /// Starts so many clients on a table that is there and empty.
    #[must_use]
    pub fn start(targets: &Arc<Targets>, table: &str, versions: Versions, clients: usize, seed: u64) -> Self {
        let slots = |kind: &str, count: usize| (0..count).map(|slot| Slot::new(format!("{kind}{slot}"), 0)).collect();
        let shared = Arc::new(Shared {
            targets: Arc::clone(targets),
            table: table.to_owned(),
            history: History::new(versions),
            is_stopping: AtomicBool::new(false),
            entities: Mutex::new(slots("e", ENTITIES)),
            partitions: Mutex::new(slots("t", PARTITIONS)),
            done: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            longest: Mutex::default(),
        });
        partitions::fill(&shared);
        let start = |number: usize| {
            let mut worker = Worker::new(number, &shared, seed);
            std::thread::spawn(move || worker.run())
        };
        Self { threads: (0..clients).map(start).collect(), shared }
    }

    /// How many calls were answered so far.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.shared.done.load(SeqCst)
    }

    /// How many calls were left without a clear answer so far.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.shared.unknown.load(SeqCst)
    }

    /// Waits until so many further calls were answered.
    ///
    /// # Panics
    /// If that takes too long.
    #[track_caller]
    pub fn wait_for(&self, calls: u64) {
        let goal = self.done() + calls;
        let (mut done, mut until) = (self.done(), Instant::now() + RECOVERY_MAX);
        while self.done() < goal {
            if self.done() > done {
                (done, until) = (self.done(), Instant::now() + RECOVERY_MAX);
            }
            let is_gone = self.threads.iter().any(JoinHandle::is_finished);
            assert!(!is_gone, "a client ended early; what it says stands above");
            assert!(Instant::now() < until, "the servers do not answer: {} of {goal} calls", self.done());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the load, reads everything once more and checks the history.
    ///
    /// # Panics
    /// If the history has anything wrong, or the servers do not answer any more.
    #[track_caller]
    pub fn finish(mut self) -> Totals {
        self.shared.is_stopping.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            thread.join().expect("no client panics");
        }
        let mut reader = Worker::new(usize::MAX / 2, &self.shared, 0);
        let (entities, partitions) = self.shared.history.places();
        for name in &entities {
            reader.insist(name, |reader, server| reader.read_entity(server, name));
        }
        for name in &partitions {
            reader.insist(name, |reader, server| reader.read_pair(server, name));
        }
        self.shared.history.check();
        Totals {
            done: self.done(),
            refused: self.shared.refused.load(SeqCst),
            unknown: self.unknown(),
            longest: *self.shared.longest.lock().expect("no panic while locked"),
        }
    }
}

impl Slot {
    const fn new(name: String, generation: u64) -> Self {
        Self { name, generation, calls: 0, unknown: 0 }
    }

    fn count(&mut self, is_unknown: bool) {
        self.calls += 1;
        self.unknown += u64::from(is_unknown);
        if self.calls >= CALLS_MAX || self.unknown >= UNKNOWN_MAX {
            let stem = self.name.split('-').next().unwrap_or_default();
            *self = Self::new(format!("{stem}-{}", self.generation + 1), self.generation + 1);
        }
    }
}

impl Worker {
    fn new(number: usize, shared: &Arc<Shared>, seed: u64) -> Self {
        let clients = (0..shared.targets.len()).map(|server| Client::new(shared.targets.get(server))).collect();
        let dice = Dice::new(seed.wrapping_add(number as u64).wrapping_mul(0x9E37_79B9));
        Self { number, shared: Arc::clone(shared), dice, clients, seen: HashMap::new() }
    }

    fn run(&mut self) {
        while !self.shared.is_stopping.load(SeqCst) {
            let server = self.dice.below(self.clients.len() as u64) as usize;
            let is_transaction = self.dice.below(4) == 0;
            let shared = Arc::clone(&self.shared);
            let slots = if is_transaction { &shared.partitions } else { &shared.entities };
            let number = self.dice.below(slots.lock().expect("no panic while locked").len() as u64) as usize;
            let name = slots.lock().expect("no panic while locked")[number].name.clone();
            let is_known =
                if is_transaction { self.play_partition(server, &name) } else { self.play_entity(server, &name) };
            let slot = &mut slots.lock().expect("no panic while locked")[number];
            // Another client may have moved on meanwhile.
            if slot.name == name {
                slot.count(!is_known);
            }
            if !is_known {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Reads until there is an answer.
    fn insist(&mut self, name: &str, read: impl Fn(&mut Self, usize) -> bool) {
        let until = Instant::now() + RECOVERY_MAX;
        for attempt in 0..10_000 {
            let server = (attempt + name.len()) % self.clients.len();
            if read(self, server) {
                return;
            }
            assert!(Instant::now() < until, "{name} cannot be read");
            std::thread::sleep(PAUSE);
        }
    }

    fn client(&mut self, server: usize) -> &Client {
        let address = self.shared.targets.get(server);
        if self.clients[server].address() != address {
            self.clients[server] = Client::new(address);
        }
        &self.clients[server]
    }

    /// Sends a request, and says when it was under way.
    fn send(&mut self, server: usize, request: impl FnOnce(&Client) -> Request<'_>) -> (Span, Answer) {
        let shared = Arc::clone(&self.shared);
        let number = self.number;
        let client = self.client(server);
        let request = request(client);
        let start = Instant::now();
        let begin = shared.history.step();
        let answer = match request.try_send() {
            Ok(reply) if reply.status < 500 => Answer::Reply(reply),
            Ok(_) => Answer::Broken,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Answer::Unsent,
            Err(_) => Answer::Broken,
        };
        let end = shared.history.step();
        let mut longest = shared.longest.lock().expect("no panic while locked");
        *longest = longest.max(start.elapsed());
        (Span { client: number, begin, end }, answer)
    }

    fn count(&self, is_done: bool, is_unknown: bool) {
        let counter = match (is_done, is_unknown) {
            (true, _) => &self.shared.done,
            (_, true) => &self.shared.unknown,
            _ => &self.shared.refused,
        };
        counter.fetch_add(1, SeqCst);
    }
}

/// Calls on entities. Each says whether it had a clear answer.
impl Worker {
    fn play_entity(&mut self, server: usize, name: &str) -> bool {
        use entity::Action::{Delete, Merge, Put};
        let choice = self.dice.below(100);
        if choice < 20 || (choice >= 70 && !self.seen.contains_key(name)) {
            return self.read_entity(server, name);
        }
        let value = self.shared.history.value();
        let seen = Condition::Version(self.seen.get(name).map_or(0, |rows| rows[&0]));
        let action = match choice {
            20..35 => Put(value, Condition::Absent),
            35..48 => Put(value, Condition::Any),
            48..52 => Put(value, Condition::Present),
            52..60 => Merge(value, Condition::Any),
            60..64 => Merge(value, Condition::Present),
            64..70 => Delete(Condition::Present),
            70..86 => Put(value, seen),
            86..95 => Merge(value, seen),
            _ => Delete(seen),
        };
        self.write_entity(server, name, action)
    }

    fn write_entity(&mut self, server: usize, name: &str, action: entity::Action) -> bool {
        use entity::{Action, Outcome};
        let (table, path) = (format!("/{}", self.shared.table), entity_path(&self.shared.table, "e", name));
        let (span, answer) = self.send(server, |client| match action {
            Action::Put(value, Condition::Absent) => {
                let body = entity_json("e", name, &format!(r#""Put":{value}"#));
                client.post(&table, body).header("Prefer", "return-no-content")
            }
            Action::Put(value, condition) => conditional(client.put(&path, format!(r#"{{"Put":{value}}}"#)), condition),
            Action::Merge(value, condition) => {
                conditional(client.merge(&path, format!(r#"{{"Merged":{value}}}"#)), condition)
            }
            Action::Delete(condition) => conditional(client.request("DELETE", &path), condition),
            Action::Read => unreachable!("reads do not come here"),
        });
        let outcome = match answer {
            Answer::Unsent => return false,
            Answer::Broken => Outcome::Unknown,
            Answer::Reply(reply) => match (reply.status, action) {
                (204, Action::Delete(_)) => Outcome::Removed,
                (204, _) => Outcome::Written(version(reply.header("ETag").expect("a write has an etag"))),
                _ => Outcome::Refused(refusal(&reply)),
            },
        };
        if let Outcome::Written(version) = outcome {
            self.seen.insert(name.to_owned(), BTreeMap::from([(0, version)]));
        }
        self.count(matches!(outcome, Outcome::Written(_) | Outcome::Removed), outcome == Outcome::Unknown);
        self.shared.history.entity(name, entity::Call { span, action, outcome });
        outcome != Outcome::Unknown
    }

    fn read_entity(&mut self, server: usize, name: &str) -> bool {
        use entity::{Action, Outcome, Row};
        let path = entity_path(&self.shared.table, "e", name);
        let (span, answer) = self.send(server, |client| client.get(&path));
        let Answer::Reply(reply) = answer else {
            self.count(false, true);
            return false;
        };
        let outcome = if reply.status == 200 {
            let (members, version) = (reply.json(), version(reply.header("ETag").expect("an entity has an etag")));
            self.seen.insert(name.to_owned(), BTreeMap::from([(0, version)]));
            Outcome::Found(Row { put: members["Put"].as_u64(), merged: members["Merged"].as_u64(), version })
        } else {
            Outcome::Refused(refusal(&reply))
        };
        self.count(true, false);
        self.shared.history.entity(name, entity::Call { span, action: Action::Read, outcome });
        true
    }
}

fn conditional<'c>(request: Request<'c>, condition: Condition) -> Request<'c> {
    match if_match(condition) {
        Some(etag) => request.if_match(&etag),
        None => request,
    }
}

fn if_match(condition: Condition) -> Option<String> {
    match condition {
        Condition::Any | Condition::Absent => None,
        Condition::Present => Some("*".to_owned()),
        Condition::Version(version) => Some(ETag(Timestamp::from_ticks(version)).to_string()),
    }
}

fn version(etag: &str) -> Version {
    match IfMatch::parse(etag) {
        Ok(IfMatch::Version(version)) => version.ticks(),
        other => panic!("{etag}: {other:?}"),
    }
}

/// A refusal that an entity's state can explain. The table is there all the time, so its absence is none.
#[track_caller]
fn refusal(reply: &Response) -> Refusal {
    match (reply.status, reply.code().as_str()) {
        (404, "ResourceNotFound") => Refusal::NotFound,
        (409, "EntityAlreadyExists") => Refusal::Exists,
        (412, "UpdateConditionNotSatisfied") => Refusal::ConditionFailed,
        _ => panic!("nothing explains this answer: {reply}"),
    }
}
