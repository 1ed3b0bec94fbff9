//! What the Rust client costs: the same operations on the same server through `larimar-client` and as raw requests, in
//! turns.
//!
//! Both run on this program's one thread over as many connections. The raw side (`workload.rs`) writes prepared bytes
//! and looks for the keys in the answer; the client's side builds entities, reads every property and could retry, as an
//! application would have it.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_client::{Account, DynamicEntity, Table, Value};

use crate::dataset::{CATEGORIES, Dataset, Key, Random, TABLE, WIDE_ROWS, write_words};
use crate::http::Connection;
use crate::measure::{Load, Measurement, Outcome, Work, load, measure, measure_work};
use crate::processes;
use crate::request::Requests;
use crate::settings::Settings;
use crate::sign::{ACCOUNT, KEY, Signer};
use crate::target::{Server, Target};
use crate::workload::{SPREAD_PARTITIONS, Store, Worker, Workload};

pub(crate) mod gets;
pub(crate) mod report;

/// The workloads that both sides know.
pub(crate) const WORKLOADS: [Workload; 3] = [Workload::PointGet, Workload::InsertHot, Workload::InsertSpread];

/// Longest wait for background work that a load left over.
const SETTLE_MAX: Duration = Duration::from_secs(15);

/// One workload in one setting, both ways.
pub(crate) struct Pair {
    pub(crate) workload: Workload,
    pub(crate) connections: u64,
    pub(crate) raw: Side,
    pub(crate) client: Side,
}

/// What one way came to.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) measured: Measurement,
    /// Processor time of this program meanwhile.
    pub(crate) own_cpu: Duration,
}

impl Pair {
    /// The client's rate as a share of the raw one, if both can be relied on.
    pub(crate) fn share(&self) -> Option<f64> {
        let reliable = |side: &Side| side.measured.errors == 0 && side.measured.latencies.total() > 0;
        let (raw, client) = (&self.raw, &self.client);
        (reliable(raw) && reliable(client)).then(|| client.measured.rate() / raw.measured.rate())
    }
}

/// Runs everything that the settings ask for.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for &preload in &settings.preloads {
        let bench = Bench::prepare(settings, preload).await?;
        for &workload in settings.workloads.iter().filter(|workload| WORKLOADS.contains(workload)) {
            for &connections in &settings.connections {
                let pair = bench.take_turns(settings, workload, connections).await?;
                report::print_pair(&pair);
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}

/// A loaded server and both ways to it.
struct Bench {
    server: Server,
    signer: Rc<Signer>,
    store: Rc<Store>,
    table: Table,
}

impl Bench {
    /// Starts a server, loads its data and makes sure that both sides speak of the same entities.
    async fn prepare(settings: &Settings, preload: u64) -> anyhow::Result<Self> {
        let signer = Rc::new(Signer::development()?);
        let server = Server::start(Target::Larimar, &settings.paths, &signer, 0).await?;
        let endpoint = format!("http://127.0.0.1:{}/{ACCOUNT}", server.port);
        let account = Account::builder().table_endpoint(endpoint).shared_key(ACCOUNT, KEY).no_proxy().build()?;
        let table = account.table(TABLE);
        table.create().await?;

        let dataset = Dataset::new(preload);
        let store = Rc::new(Store::new(dataset));
        let (transactions, longest) = (dataset.transactions(), settings.run_max);
        let done = load(server.port, &signer, &store, Load::Dataset, transactions, longest).await?;
        ensure!(done == transactions, "loading took too long");
        let requests = Requests::new(Rc::clone(&signer), server.port);
        let connection = Connection::open(server.port).await?;
        Worker::new(connection, requests, Rc::clone(&store), 0).walk().await.context("walking over what was loaded")?;

        let mut key = Key::default();
        key.set_narrow(7);
        let mut found = get(&table, &key).await?;
        let mut built = entity(&key, WIDE_ROWS + 7);
        ensure!(found.take_properties() == built.take_properties(), "the client's entities are not the raw ones");
        Ok(Self { server, signer, store, table })
    }

    /// Both ways in several alternating turns.
    async fn take_turns(&self, settings: &Settings, workload: Workload, connections: u64) -> anyhow::Result<Pair> {
        let mut pair = Pair { workload, connections, raw: Side::default(), client: Side::default() };
        for round in 0..settings.rounds {
            // Every other round goes backwards, so that a machine that slows down treats both alike.
            for raw_first in [round % 2 == 0, round % 2 != 0] {
                self.server.settle(SETTLE_MAX).await?;
                let side = if raw_first { &mut pair.raw } else { &mut pair.client };
                let (start, own) = (Instant::now(), processes::own_time(std::process::id())?);
                let server = self.server.processor_time()?;
                let mut measured = match raw_first {
                    true => self.raw(settings, workload, connections).await,
                    false => self.client(settings, workload, connections).await,
                };
                // The warm-up took its time as well; the counted part gets its share.
                let share = (measured.elapsed.as_secs_f64() / start.elapsed().as_secs_f64()).clamp(0.0, 1.0);
                measured.server_cpu = self.server.processor_time()?.saturating_sub(server).mul_f64(share);
                side.own_cpu += processes::own_time(std::process::id())?.saturating_sub(own).mul_f64(share);
                side.measured.merge(measured);
            }
        }
        Ok(pair)
    }

    async fn raw(&self, settings: &Settings, workload: Workload, connections: u64) -> Measurement {
        measure(self.server.port, &self.signer, &self.store, workload, connections, settings.window).await
    }

    async fn client(&self, settings: &Settings, workload: Workload, connections: u64) -> Measurement {
        let (table, store, port) = (self.table.clone(), Rc::clone(&self.store), self.server.port);
        // The client opens connections of its own; the one that comes with a worker is closed at once.
        measure_work(port, connections, settings.window, move |index, _connection| ClientWork {
            table: table.clone(),
            store: Rc::clone(&store),
            random: Random::new(index << 32 | u64::from(port)),
            key: Key::default(),
            workload,
        })
        .await
    }
}

/// A task of an application that uses the client, with others that share its connections.
struct ClientWork {
    table: Table,
    store: Rc<Store>,
    random: Random,
    key: Key,
    workload: Workload,
}

impl Work for ClientWork {
    async fn operate(&mut self) -> anyhow::Result<Outcome> {
        match self.workload {
            Workload::PointGet => {
                self.key.set_narrow(self.random.below(self.store.dataset.narrow_rows()));
                let found = get(&self.table, &self.key).await?;
                ensure!(found.value("Note").is_some(), "an entity without its last property");
            }
            Workload::InsertHot => {
                let row = self.store.take_row();
                self.key.set("hot", 0, row);
                self.table.insert(&entity(&self.key, row)).await?;
            }
            Workload::InsertSpread => {
                let row = self.store.take_row();
                self.key.set("s", self.random.below(SPREAD_PARTITIONS), row);
                self.table.insert(&entity(&self.key, row)).await?;
            }
            other => anyhow::bail!("the client's side has no {}", other.title()),
        }
        Ok(Outcome::Done)
    }

    fn reconnect(&mut self, _: Connection) {}
}

async fn get(table: &Table, key: &Key) -> anyhow::Result<DynamicEntity> {
    table.get(&key.partition, &key.row).await?.context("a loaded entity is missing")
}

/// The entity that `dataset::write_entity` writes, as an application holds it.
fn entity(key: &Key, number: u64) -> DynamicEntity {
    let noise = Random::new(number).next();
    let (month, day) = (noise % 12 + 1, noise % 28 + 1);
    let created = format!("2024-{month:02}-{day:02}T12:34:56.789Z");
    let reference = format!("{:08x}-9d3c-4f6a-8e21-{:012x}", noise >> 32, noise & 0xffff_ffff_ffff);
    let mut note = Vec::with_capacity(128);
    write_words(&mut note, noise);
    DynamicEntity::new(key.partition.as_str(), key.row.as_str())
        .with("Category", format!("c{:02}", number % CATEGORIES))
        .with("Name", format!("Customer {number}"))
        .with("Email", format!("customer.{noise:016x}@mail.example.com"))
        .with("Age", (noise % 90) as i32)
        .with("Score", (noise % 1000) as f64 + 0.5)
        .with("Active", noise & 1 == 0)
        .with("Balance", (noise >> 1) as i64)
        .with("Created", Value::DateTime(created.parse().expect("a time")))
        .with("Reference", Value::Guid(reference.parse().expect("a GUID")))
        .with("Digest", Value::Binary(STANDARD.decode(format!("{noise:016x}{number:016x}")).expect("base64")))
        .with("Note", String::from_utf8(note).expect("words"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_has_the_properties_of_the_raw_one() {
        let mut key = Key::default();
        key.set_narrow(123_456);
        let mut raw = Vec::new();
        crate::dataset::write_entity(&mut raw, &key, 123_456);
        let raw = String::from_utf8(raw).expect("text");
        let built = entity(&key, 123_456);
        for (name, value) in built.properties() {
            assert!(raw.contains(&format!("\"{name}\":")), "{name}");
            if let Value::String(text) = value {
                assert!(raw.contains(&format!("\"{name}\":\"{text}\"")), "{name}");
            }
        }
        assert_eq!(raw.matches("\":").count(), built.properties().len() + 2 + raw.matches("@odata.type").count());
    }

    #[test]
    fn a_share_needs_both_sides() {
        let side = |operations: u64, errors: u64| {
            let mut side = Side::default();
            (0..operations).for_each(|_| side.measured.latencies.record(Duration::from_micros(100)));
            side.measured.elapsed = Duration::from_secs(1);
            side.measured.errors = errors;
            side
        };
        let share = |raw: Side, client: Side| {
            Pair { workload: Workload::PointGet, connections: 1, raw, client }
                .share()
                .map(|share| (share * 100.0) as u64)
        };
        assert_eq!(share(side(100, 0), side(90, 0)), Some(90));
        assert_eq!(share(side(100, 0), side(90, 1)), None);
        assert_eq!(share(side(0, 0), side(90, 0)), None);
    }
}
