//! Tables: single writes, transactions, and tables made and dropped.

use super::rounds;
use larimar_testkit::http::{Batch, BatchReply, Client, entity, entity_path};
use larimar_testkit::{Dice, Launch};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const WRITERS: usize = 6;
const TABLE: &str = "crash";

/// Rows by key; the value is the number last written.
type Rows = BTreeMap<(String, String), u64>;

/// What one writer knows. It has one request under way at a time.
#[derive(Debug, Default)]
struct Ledger {
    /// What was acknowledged.
    rows: Rows,
    /// What the request under way changes: `None` removes the row.
    under_way: Vec<((String, String), Option<u64>)>,
    acknowledged: usize,
    transactions: usize,
}

impl Ledger {
    fn settle(&mut self) {
        apply(&mut self.rows, std::mem::take(&mut self.under_way));
        self.acknowledged += 1;
    }
}

fn apply(rows: &mut Rows, changes: Vec<((String, String), Option<u64>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(rows.insert(key, value)),
            None => drop(rows.remove(&key)),
        }
    }
}

/// Writes until the server is gone.
fn write(client: &Client, round: usize, writer: usize, dice: &mut Dice) -> Ledger {
    let mut ledger = Ledger::default();
    let partition = format!("{round:04}-{writer}");
    for number in 0..1_000_000u64 {
        let is_acknowledged = match dice.below(10) {
            0..=3 => insert(client, &mut ledger, &partition, number),
            4..=5 => replace(client, &mut ledger, &partition, number),
            6 => delete(client, &mut ledger, &partition, number, dice),
            _ => transact(client, &mut ledger, &partition, number, dice),
        };
        if !is_acknowledged {
            return ledger;
        }
        ledger.settle();
    }
    ledger
}

fn insert(client: &Client, ledger: &mut Ledger, partition: &str, number: u64) -> bool {
    let row = format!("single-{number}");
    ledger.under_way = vec![((partition.into(), row.clone()), Some(number))];
    let body = entity(partition, &row, &format!(r#""N":{number}"#));
    let reply = client.post(&format!("/{TABLE}"), body).header("Prefer", "return-no-content").try_send();
    reply.is_ok_and(|reply| expect(&reply, 204))
}

fn replace(client: &Client, ledger: &mut Ledger, partition: &str, number: u64) -> bool {
    ledger.under_way = vec![((partition.into(), "counter".into()), Some(number))];
    let request = client.put(&entity_path(TABLE, partition, "counter"), format!(r#"{{"N":{number}}}"#));
    request.try_send().is_ok_and(|reply| expect(&reply, 204))
}

fn delete(client: &Client, ledger: &mut Ledger, partition: &str, number: u64, dice: &mut Dice) -> bool {
    let singles: Vec<_> = ledger.rows.keys().filter(|(_, row)| row.starts_with("single-")).cloned().collect();
    if singles.is_empty() {
        return insert(client, ledger, partition, number);
    }
    let key = dice.pick(&singles).clone();
    ledger.under_way = vec![(key.clone(), None)];
    let reply = client.delete(&entity_path(TABLE, &key.0, &key.1)).try_send();
    reply.is_ok_and(|reply| expect(&reply, 204))
}

/// A transaction that inserts a few rows, replaces the newest's number, and sometimes removes an earlier one's rows.
fn transact(client: &Client, ledger: &mut Ledger, partition: &str, number: u64, dice: &mut Dice) -> bool {
    let mut batch = Batch::new();
    let mut changes = Vec::new();
    if dice.below(4) == 0 {
        let earlier: Vec<_> =
            ledger.rows.keys().filter(|(_, row)| row.starts_with("part-")).take(20).cloned().collect();
        for key in earlier {
            batch = batch.delete(client, TABLE, &key.0, &key.1, "*");
            changes.push((key, None));
        }
    }
    for part in 0..2 + dice.below(30) {
        let row = format!("part-{number}-{part}");
        batch = batch.insert(client, TABLE, partition, &row, &format!(r#""N":{number},"Fill":"{}""#, "x".repeat(200)));
        changes.push(((partition.into(), row), Some(number)));
    }
    batch = batch.upsert(client, TABLE, partition, "head", &format!(r#""N":{number}"#));
    changes.push(((partition.into(), "head".into()), Some(number)));
    let count = changes.len();
    ledger.under_way = changes;
    ledger.transactions += 1;
    let Ok(reply) = batch.request(client).try_send() else { return false };
    let reply = BatchReply::new(reply);
    assert_eq!(reply.statuses(), vec![204; count], "{}", reply.outer);
    true
}

#[track_caller]
fn expect(reply: &larimar_testkit::http::Response, status: u16) -> bool {
    assert_eq!(reply.status, status, "{reply}");
    true
}

/// All rows whose partition begins with a prefix.
fn read(client: &Client, prefix: &str) -> Rows {
    let filter = format!("PartitionKey ge '{prefix}' and PartitionKey lt '{prefix}~'");
    let (mut rows, mut token) = (Rows::new(), None::<(String, String)>);
    for _ in 0..10_000 {
        let mut request =
            client.get(&format!("/{TABLE}()")).query("$filter", &filter).query("$select", "PartitionKey,RowKey,N");
        if let Some((partition, row)) = &token {
            request = request.query("NextPartitionKey", partition).query("NextRowKey", row);
        }
        let reply = request.accept("application/json;odata=nometadata").send();
        reply.is_status(200);
        for found in reply.values() {
            let text = |name: &str| found[name].as_str().expect("a key").to_owned();
            rows.insert((text("PartitionKey"), text("RowKey")), found["N"].as_u64().expect("a number"));
        }
        let part = |name: &str| reply.header(name).map(str::to_owned);
        token = part("x-ms-continuation-NextPartitionKey").zip(part("x-ms-continuation-NextRowKey"));
        if token.is_none() {
            return rows;
        }
    }
    panic!("the pages do not end");
}

/// Creates tables and drops some of them until the server is gone. Returns those that must be there, and the one
/// that may be.
fn make_tables(client: &Client, round: usize) -> (BTreeSet<String>, Option<String>) {
    let mut tables = BTreeSet::new();
    for number in 0..100_000 {
        let name = format!("round{round}n{number}");
        let made = client.post("/Tables", format!(r#"{{"TableName":"{name}"}}"#)).try_send();
        if !made.is_ok_and(|reply| expect(&reply, 201)) {
            return (tables, Some(name));
        }
        if number % 3 != 0 {
            let dropped = client.delete(&format!("/Tables('{name}')")).try_send();
            if !dropped.is_ok_and(|reply| expect(&reply, 204)) {
                return (tables, Some(name));
            }
        } else {
            tables.insert(name);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    (tables, None)
}

fn check_tables(client: &Client, round: usize, expected: &BTreeSet<String>, unsure: Option<&String>) {
    let filter = format!("TableName ge 'round{round}n' and TableName lt 'round{round}o'");
    let mut found = BTreeSet::new();
    let mut next = None::<String>;
    for _ in 0..100 {
        let request = client.get("/Tables").query("$filter", &filter);
        let reply = next.iter().fold(request, |request, next| request.query("NextTableName", next)).send();
        found.extend(reply.column("TableName"));
        next = reply.header("x-ms-continuation-NextTableName").map(str::to_owned);
        if next.is_none() {
            break;
        }
    }
    if let Some(unsure) = unsure {
        found.remove(unsure);
    }
    assert_eq!(&found, expected, "tables of round {round}");
}

/// How the server ends.
#[derive(Clone, Copy)]
enum End {
    Kill,
    Stop,
}

/// One round: write, kill, start again, look. Returns how to go on, and what the round left behind.
fn play(launch: &Launch, round: usize, end: End, dice: &mut Dice) -> (Launch, Rows, usize, usize) {
    let server = launch.start();
    let client = server.client();
    if round == 0 {
        client.create_table(TABLE);
    }
    let delay = Duration::from_millis(30 + dice.below(700));
    let seeds: Vec<u64> = (0..WRITERS).map(|_| dice.next()).collect();
    let (launch, ledgers, (tables, unsure)) = std::thread::scope(|scope| {
        let writers: Vec<_> = seeds
            .iter()
            .enumerate()
            .map(|(writer, seed)| {
                let client = server.client();
                scope.spawn(move || write(&client, round, writer, &mut Dice::new(*seed)))
            })
            .collect();
        let table_client = server.client();
        let tables = scope.spawn(move || make_tables(&table_client, round));
        std::thread::sleep(delay);
        let launch = match end {
            End::Kill => server.kill(),
            End::Stop => {
                let (launch, status) = server.stop();
                assert!(status.success(), "{status}");
                launch
            }
        };
        let ledgers: Vec<Ledger> =
            writers.into_iter().map(|writer| writer.join().expect("the writer did not panic")).collect();
        (launch, ledgers, tables.join().expect("the maker of tables did not panic"))
    });
    let server = launch.start();
    let client = server.client();
    check_tables(&client, round, &tables, unsure.as_ref());
    let (mut settled, mut acknowledged, mut transactions) = (Rows::new(), 0, 0);
    for (writer, mut ledger) in ledgers.into_iter().enumerate() {
        let found = read(&client, &format!("{round:04}-{writer}"));
        acknowledged += ledger.acknowledged;
        transactions += ledger.transactions;
        if found != ledger.rows {
            // Then all of the request under way is there.
            let lost: Vec<_> = ledger.rows.iter().filter(|(key, value)| found.get(*key) != Some(*value)).collect();
            let under_way = ledger.under_way.clone();
            let lost = format!("{} rows differ: {:?}", lost.len(), &lost[..lost.len().min(5)]);
            apply(&mut ledger.rows, std::mem::take(&mut ledger.under_way));
            assert_eq!(found, ledger.rows, "round {round}, writer {writer}: {lost}; under way: {under_way:?}");
        }
        settled.extend(found);
    }
    drop(client);
    (server.kill(), settled, acknowledged, transactions)
}

fn play_rounds(rounds: usize, end: End, arguments: &[&str]) {
    let seed = Dice::seed("LARIMAR_CRASH_SEED");
    println!("{rounds} rounds, LARIMAR_CRASH_SEED={seed}");
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(env!("CARGO_BIN_EXE_larimar"), folder.path().join("data"));
    let mut launch = arguments.iter().fold(launch, |launch, argument| launch.argument(*argument));
    let (mut all, mut acknowledged, mut transactions) = (Rows::new(), 0, 0);
    for round in 0..rounds {
        let (next, rows, writes, of_them) = play(&launch, round, end, &mut dice);
        launch = next;
        all.extend(rows);
        acknowledged += writes;
        transactions += of_them;
    }
    assert!(acknowledged > rounds, "only {acknowledged} writes were acknowledged");
    let server = launch.start();
    let found = read(&server.client(), "");
    assert_eq!(found.len(), all.len(), "rows after all rounds");
    assert!(found == all, "rows of earlier rounds changed");
    println!("{acknowledged} acknowledged writes ({transactions} transactions begun), {} rows, none lost", all.len());
}

#[test]
fn b4_acknowledged_writes_survive_kill_and_transactions_are_whole() {
    play_rounds(rounds(), End::Kill, &[]);
}

#[test]
fn unsynced_writes_survive_the_end_of_the_process() {
    play_rounds(rounds().div_ceil(5), End::Kill, &["--durability", "async"]);
}

#[test]
fn a_server_that_is_asked_to_end_under_load_loses_nothing() {
    play_rounds(rounds().div_ceil(5), End::Stop, &[]);
}
