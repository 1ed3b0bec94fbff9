//! An eventual table under a schedule: writers and workers at the same time, faults, late requests, repeated intents.

use super::schedule::Gate;
use super::{DEATHS, Mortal, Random, account, healthy, settle};
use futures_util::future::join_all;
use larimar_client::{Account, BoxFuture, ETag};
use larimar_embedded::Larimar;
use larimar_patterns::eventual::{Work, WorkError, Worker};
use larimar_patterns::eventual_table::{EventualTable, TableIntent};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// A worker that comes back soon, and never gives up.
pub(crate) fn worker(table: &EventualTable) -> Worker<EventualTable> {
    table.worker().visibility(SECOND).backoff(SECOND, SECOND).attempts_max(100)
}

/// A worker that keeps its messages for longer than a slow machine needs: what is counted comes once.
pub(crate) fn patient(table: &EventualTable) -> Worker<EventualTable> {
    worker(table).visibility(60 * SECOND)
}

/// Lets a writer and the worker after it die at each of their requests in turn, in every way. Others finish what they left.
/// `compare` holds the end to what it must be, by the table's name and whether the write was promised, and once more when
/// the request has arrived that was under way.
pub(crate) async fn die_everywhere(
    server: &Larimar,
    requests: i64,
    make: impl Fn(&Account, &str) -> EventualTable,
    prepare: impl AsyncFn(&EventualTable),
    write: impl AsyncFn(&EventualTable) -> larimar_patterns::Result<ETag>,
    compare: impl AsyncFn(&str, bool, &str),
) {
    let sound = healthy(server);
    let start = async |name: &str| {
        let table = make(&sound, name);
        table.create_if_missing().await.expect("tables");
        prepare(&table).await;
        worker(&table).drain().await.expect("drained");
        table
    };
    start("Calm").await;
    let calm = Mortal::never();
    let living = make(&account(server, calm.clone()), "Calm");
    write(&living).await.expect("a write");
    patient(&living).concurrency(1).drain().await.expect("drained");
    assert!(calm.sent() <= requests, "{} requests, and not all of them are died at", calm.sent());
    let cases = (0..requests).flat_map(|k| DEATHS.map(|death| (k, death)));
    join_all(cases.map(async |(k, death)| {
        let (name, what) = (format!("K{k}x{}", death as u8), format!("{death:?} at request {k}"));
        let table = start(&name).await;
        let mortal = Mortal::after(k, death);
        let dying = make(&account(server, mortal.clone()), &name);
        let is_written = write(&dying).await.is_ok();
        let _ = worker(&dying).concurrency(1).drain().await;
        let worker = worker(&table);
        settle(&worker).await;
        compare(&name, is_written, &what).await;
        mortal.deliver_late().await;
        settle(&worker).await;
        compare(&name, is_written, &format!("{what}, its request late")).await;
    }))
    .await;
}

type Running = tokio::task::JoinHandle<Result<(), WorkError>>;

/// Runs `writes` writes that `write` starts, in an interleaving that the seed stands for, until all intents are done and
/// nothing is late any more.
pub(crate) async fn interleave<T: Clone>(
    server: &Larimar,
    seed: u64,
    queue: &str,
    make: impl Fn(&Account) -> (EventualTable, T),
    mut writes: usize,
    write: impl Fn(&T, &EventualTable, &mut Random) -> BoxFuture<'static, ()>,
) {
    let random = &mut Random::new(seed);
    let healthy = healthy(server);
    make(&healthy).0.create_if_missing().await.expect("a table");
    let gate = Gate::default();
    let (table, handle) = make(&account(server, Arc::new(gate.clone())));
    let (mut pending, mut working) = (Vec::new(), Vec::<(TableIntent, Running)>::new());
    let mut writers = Vec::new();
    loop {
        let active = gate.all_waiting().await;
        pending.extend(taken(&healthy, queue).await);
        let mut still = Vec::new();
        for (intent, running) in working {
            if !running.is_finished() {
                still.push((intent, running));
            } else if running.await.expect("no panic").is_err() || random.chance(4) {
                // What failed is delivered again, and what succeeded now and then too.
                pending.push(intent);
            }
        }
        working = still;
        match random.below(64) {
            0..6 if writes > 0 => {
                writes -= 1;
                let actor = write(&handle, &table, random);
                writers.push(gate.spawn(random, actor));
            }
            6..14 if !pending.is_empty() => {
                let intent = pending.swap_remove(random.below(pending.len()));
                let (table, given) = (table.clone(), intent.clone());
                working.push((intent, gate.spawn(random, async move { table.perform(&given, 0).await })));
            }
            14 => drop(gate.deliver_late(random).await),
            _ if active > 0 => gate.release(random, 14, writes == 0 && pending.is_empty()),
            // What is late may be an intent, which is then to be carried out like others.
            _ if writes == 0 && pending.is_empty() && working.is_empty() && !gate.deliver_late(random).await => break,
            _ => {}
        }
    }
    for writer in writers {
        writer.await.expect("no panic");
    }
    assert!(taken(&healthy, queue).await.is_empty(), "all intents are done");
}

/// Takes all visible intents out of a queue.
pub(crate) async fn taken(account: &Account, queue: &str) -> Vec<TableIntent> {
    let mut intents = Vec::new();
    for message in account.queue(queue).receive(32, Duration::from_secs(3600)).await.expect("messages") {
        let mut text: serde_json::Value = serde_json::from_str(&message.text).expect("JSON");
        intents.push(serde_json::from_value(text["intent"].take()).expect("an intent"));
    }
    intents
}
