//! Insights over the engine in memory: storing, reporting, ageing, bounds.

use super::rows::Resolution;
use super::*;
use larimar_engine::{Clock, MemoryEngine};
use larimar_model::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What a value takes besides its own size. Implemented beside the tests of each type.
pub(super) trait HeapBytes {
    fn heap_bytes(&self) -> usize;
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn start() -> Timestamp {
    Timestamp::parse("2026-11-16T06:00:30Z").expect("a time")
}

/// The insights of a server that writes the rows of this number, if there are so many.
async fn server(engine: &MemoryEngine, number: u8) -> Insights {
    let insights = Insights::new([number; HashKey::BYTES]);
    insights.prepare(engine, start()).await;
    insights
}

fn get(insights: &Insights, table: &str, partition: &str, row: &str) {
    insights.observe("one", table, |figures, key| {
        figures.operation(OperationKind::Get, Outcome::Done, SECOND);
        figures.get(key, partition, row, Outcome::Done);
    });
}

async fn asked(
    insights: &Insights,
    engine: &MemoryEngine,
    table: Option<&str>,
    span: Duration,
    now: Timestamp,
) -> Value {
    let query =
        ReportQuery { account: "one".to_owned(), table: table.map(str::to_owned), since: Some(now.before(span)) };
    json(report(insights, engine, &query, now).await.expect("no fault"))
}

/// A report as clients read it.
fn json(report: larimar_advisor::Report) -> Value {
    serde_json::to_value(report).expect("JSON")
}

fn requests(report: &Value) -> Vec<(&str, u64)> {
    let tables = report["tables"].as_array().expect("a list");
    tables
        .iter()
        .map(|table| (table["table"].as_str().expect("a name"), table["requests"].as_u64().expect("a number")))
        .collect()
}

#[tokio::test]
async fn figures_of_memory_rows_and_servers_are_summed() {
    let engine = MemoryEngine::new();
    let (one, other) = (server(&engine, 3).await, server(&engine, 4).await);
    let same_number = server(&engine, 3 + rows::NUMBERS).await;
    for insights in [&one, &other, &same_number] {
        for row in 0..10 {
            get(insights, "t", "p", &row.to_string());
        }
    }
    let now = start();
    one.store(&engine, now, now).await;
    other.store(&engine, now, now).await;
    same_number.store(&engine, now, now).await;
    get(&one, "u", "p", "r");
    for span in [MINUTE, 7 * 24 * 60 * MINUTE] {
        let report = asked(&one, &engine, None, span, now).await;
        assert_eq!(requests(&report), [("t", 30), ("u", 1)], "{span:?}");
    }
    let report = asked(&one, &engine, Some("T"), MINUTE, now).await;
    assert_eq!(requests(&report), [("t", 30)]);
    let table = &report["tables"][0];
    let p50 = table["operations"][0]["p50Micros"].as_u64().expect("a number");
    assert!(p50.abs_diff(1_000_000) <= 1_000_000 / 8, "{p50}");
    let partition = &table["partitions"][0];
    assert_eq!((partition["partition"].as_str(), partition["reads"].as_u64()), (Some("p"), Some(30)));
    let rows = partition["rowsSeen"].as_u64().expect("a number");
    assert!((8..=12).contains(&rows), "the same ten rows on each server, about: {rows}");
    assert_eq!(table["followed"]["gets"].as_u64(), Some(27));
    let heat: u64 = table["heat"][0]["reads"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum();
    assert_eq!(heat, 30);
}

#[tokio::test]
async fn nothing_is_written_while_nothing_happens_and_old_rows_go() {
    let engine = MemoryEngine::new();
    let insights = server(&engine, 0).await;
    let now = start();
    insights.store(&engine, now, now).await;
    assert_eq!(stored(&engine).await, Vec::<String>::new());
    get(&insights, "t", "p", "r");
    insights.store(&engine, now, now).await;
    let rows = stored(&engine).await;
    assert_eq!(rows, ["insights/h/000001794808800/one/0", "insights/m/000001794808800/one/0"]);
    rows::remove_old(&engine, now.after(59 * MINUTE)).await.expect("no fault");
    assert_eq!(stored(&engine).await.len(), 2);
    rows::remove_old(&engine, now.after(62 * MINUTE)).await.expect("no fault");
    assert_eq!(stored(&engine).await, rows[..1]);
    let week = Resolution::Hour.retention();
    rows::remove_old(&engine, now.after(week)).await.expect("no fault");
    assert_eq!(requests(&asked(&insights, &engine, None, week, now.after(week - MINUTE)).await), [("t", 1)]);
    rows::remove_old(&engine, now.after(week + 61 * MINUTE)).await.expect("no fault");
    assert_eq!(stored(&engine).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_is_erased_is_gone_from_memory_and_rows_of_that_account_alone() {
    let engine = MemoryEngine::new();
    let insights = server(&engine, 0).await;
    let now = start();
    for account in ["one", "one2"] {
        let observe =
            |figures: &mut TableFigures, _: HashKey| figures.operation(OperationKind::Get, Outcome::Done, SECOND);
        insights.observe(account, "t", observe);
        insights.store(&engine, now, now).await;
        insights.observe(account, "t", observe);
    }
    insights.erase(&engine, "one", now).await.expect("no fault");
    assert_eq!(requests(&asked(&insights, &engine, None, MINUTE, now).await), []);
    let other = ReportQuery { account: "one2".to_owned(), table: None, since: None };
    assert_eq!(requests(&json(report(&insights, &engine, &other, now).await.expect("no fault"))), [("t", 2)]);
}

#[tokio::test]
async fn figures_of_one_table_stay_exact_while_others_are_made_up() {
    let insights = server(&MemoryEngine::new(), 0).await;
    for number in 0..3000 {
        let text = format!("{number:0400}");
        get(&insights, &format!("table{number}"), &text, &text);
        get(&insights, "victim", "p", "r");
    }
    let sum = insights.take().remove("one").expect("figures");
    let ranked = sum.tables.ranked();
    assert_eq!(ranked.len(), TABLES_MAX);
    assert_eq!((ranked[0].1.key.as_str(), ranked[0].1.value.requests()), ("victim", 3000));
    assert_eq!(ranked.iter().map(|(_, table)| table.value.requests()).sum::<u64>() + sum.other_requests, 6000);
}

async fn stored(engine: &MemoryEngine) -> Vec<String> {
    use larimar_engine::{Budget, Flow, KeyRange, Rows as _, SpaceId};
    let mut rows = Vec::new();
    let budget = Budget { rows_max: 1000, deadline: std::time::Instant::now() + MINUTE };
    let all = KeyRange::all();
    let scan = engine.scan(SpaceId::SYSTEM, &all, budget, |row| {
        rows.push(row.row.to_owned());
        Flow::Continue
    });
    assert_eq!(scan.await, Ok(None));
    rows.retain(|row| row != "insights-key");
    rows
}

/// A clock that a test sets.
struct Hand(parking_lot::Mutex<Timestamp>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

/// A server in memory, its clock, and what stores its insights.
async fn storage() -> (Arc<Hand>, Arc<crate::Storage<MemoryEngine>>, InsightsWriter<MemoryEngine>) {
    let hand = Arc::new(Hand(parking_lot::Mutex::new(start())));
    let (clock, settings) = (Arc::clone(&hand) as Arc<dyn Clock>, crate::Settings::default());
    let storage = crate::Storage::new(Arc::new(MemoryEngine::new()), clock, settings, Arc::default());
    let writer = InsightsWriter::new(Arc::clone(&storage));
    writer.prepare().await;
    (hand, storage, writer)
}

#[tokio::test]
async fn a_minute_is_stored_when_it_is_over() {
    let (hand, storage, mut writer) = storage().await;
    get(storage.insights.as_ref().expect("they are on"), "t", "p", "r");
    writer.tick().await;
    assert_eq!(stored(&storage.engine).await.len(), 0, "the minute has not ended");
    *hand.0.lock() = start().after(31 * SECOND);
    writer.tick().await;
    let minute = Resolution::Minute.slot(start()).start;
    assert!(stored(&storage.engine).await.iter().any(|row| row.contains(&format!("m/{minute:015}/one"))));
    *hand.0.lock() = start().after(91 * SECOND);
    writer.tick().await;
    assert_eq!(stored(&storage.engine).await.len(), 2, "nothing happened in the second minute");
}

/// The bound of the disk in `docs/insights.md`: so many rows of one number, each with its bytes at most.
#[tokio::test]
async fn rows_of_an_account_are_bounded() {
    let (hand, storage, mut writer) = storage().await;
    let insights = storage.insights.as_ref().expect("they are on");
    let (mut minutes_max, mut hours_max) = (0, 0);
    for minute in 0..10_400 {
        *hand.0.lock() = start().after(minute * MINUTE);
        if minute < 130 || minute % 60 == 0 || minute > 10_300 {
            get(insights, "t", "p", "r");
        }
        writer.tick().await;
        if minute % 60 == 9 {
            let rows = stored(&storage.engine).await;
            minutes_max = minutes_max.max(rows.iter().filter(|row| row.starts_with("insights/m/")).count());
            hours_max = hours_max.max(rows.iter().filter(|row| row.starts_with("insights/h/")).count());
        }
    }
    assert!((60..=72).contains(&minutes_max), "{minutes_max}");
    assert!((168..=170).contains(&hours_max), "{hours_max}");
    let disk_bytes_max = (72 + 170) * rows::ROW_BYTES_MAX * usize::from(rows::NUMBERS);
    assert!(disk_bytes_max <= 61 << 20, "{disk_bytes_max}");
    // Memory: the tables of all shards, and what waits.
    const { assert!(SHARDS_MAX * TABLES_OF_SHARD * (192 << 10) <= 48 << 20) };
    // Rows of the account are gone a week after its last request, whichever server wrote them.
    *hand.0.lock() = start().after(10_400 * MINUTE + Resolution::Hour.retention() + 2 * 60 * MINUTE);
    rows::remove_old(&*storage.engine, storage.clock.now()).await.expect("no fault");
    assert_eq!(stored(&storage.engine).await, Vec::<String>::new());
}

#[tokio::test]
async fn accounts_share_the_tables_of_a_shard() {
    let insights = server(&MemoryEngine::new(), 0).await;
    for accounts in [1, 2, 5, 32, 1000] {
        insights.set_accounts(accounts);
        for account in 0..accounts {
            for table in 0..40 {
                let observe = |figures: &mut TableFigures, _: HashKey| {
                    figures.operation(OperationKind::Get, Outcome::Done, SECOND);
                };
                insights.observe(&account.to_string(), &format!("t{table}"), observe);
            }
        }
        for shard in &insights.shards {
            let tables: usize = shard.0.lock().accounts.values().map(|figures| figures.tables.ranked().len()).sum();
            assert!(tables <= TABLES_OF_SHARD, "{tables} tables of {accounts} accounts");
        }
        assert!(insights.take().len() >= accounts.min(TABLES_OF_SHARD / TABLES_MIN));
    }
}

#[tokio::test]
async fn nothing_is_observed_before_the_key_is_known_and_all_servers_have_the_same() {
    let engine = MemoryEngine::new();
    let early = Insights::new([1; HashKey::BYTES]);
    get(&early, "t", "p", "r");
    assert!(early.take().is_empty());
    let servers = [server(&engine, 1).await, server(&engine, 2).await];
    for insights in &servers {
        assert!(insights.shards.iter().all(|shard| shard.0.lock().key == Some(HashKey([1; HashKey::BYTES]))));
    }
}

#[tokio::test]
async fn servers_that_restart_all_the_time_make_no_more_rows_and_lose_no_request() {
    let engine = MemoryEngine::new();
    let now = start();
    for number in 0..40 {
        let insights = server(&engine, number).await;
        get(&insights, "t", "p", &number.to_string());
        insights.store(&engine, now, now).await;
    }
    assert_eq!(stored(&engine).await.len(), 2 * usize::from(rows::NUMBERS));
    assert_eq!(requests(&asked(&server(&engine, 0).await, &engine, None, MINUTE, now).await), [("t", 40)]);
}

/// The clock jumps: by a day ahead, back again, and back by a day. Requests count for the time that the clock showed.
#[tokio::test]
async fn no_request_is_lost_when_the_clock_jumps() {
    let (hand, storage, mut writer) = storage().await;
    let insights = storage.insights.as_ref().expect("they are on");
    let day = 24 * 60 * MINUTE;
    let times = [start(), start().after(day), start().after(MINUTE), start().before(day), start().after(2 * MINUTE)];
    for time in times {
        *hand.0.lock() = time;
        writer.tick().await;
        get(insights, "t", "p", "r");
    }
    let week = Resolution::Hour.retention();
    let shown = asked(insights, &storage.engine, None, week, start().after(day + MINUTE)).await;
    assert_eq!(requests(&shown), [("t", 5)]);
    let shown = asked(insights, &storage.engine, None, MINUTE, start().after(2 * MINUTE)).await;
    assert!(requests(&shown).iter().all(|(_, requests)| *requests <= 5), "{shown}");
}

/// Requests, the storing of minutes and reports at the same time: every report has what was counted before it, and the
/// last one has all.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn reports_are_right_while_requests_are_counted_and_stored() {
    const REQUESTS: u64 = 3000;
    let engine = Arc::new(MemoryEngine::new());
    let insights = Arc::new(server(&engine, 0).await);
    let counted = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let clients: Vec<_> = (0..3_u64)
        .map(|client| {
            let (insights, counted) = (Arc::clone(&insights), Arc::clone(&counted));
            tokio::task::spawn_blocking(move || {
                for number in 0..REQUESTS {
                    get(&insights, "t", &format!("p{client}"), &number.to_string());
                    counted.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    while !clients.iter().all(tokio::task::JoinHandle::is_finished) {
        insights.store(&*engine, start(), start()).await;
        let before = counted.load(Relaxed);
        let shown = asked(&insights, &engine, None, MINUTE, start()).await;
        let sum: u64 = requests(&shown).iter().map(|(_, requests)| *requests).sum();
        assert!((before..=3 * REQUESTS).contains(&sum), "{sum} of {before}");
    }
    let shown = asked(&insights, &engine, Some("t"), MINUTE, start()).await;
    assert_eq!(requests(&shown), [("t", 3 * REQUESTS)]);
    for partition in shown["tables"][0]["partitions"].as_array().expect("a list") {
        assert_eq!(partition["reads"].as_u64(), Some(REQUESTS), "{partition}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_erased_during_traffic_does_not_come_back() {
    let engine = Arc::new(MemoryEngine::new());
    let insights = Arc::new(server(&engine, 0).await);
    for round in 0..20_u64 {
        let client = {
            let insights = Arc::clone(&insights);
            tokio::task::spawn_blocking(move || (0..200).for_each(|_| get(&insights, &format!("t{round}"), "p", "r")))
        };
        insights.store(&*engine, start(), start()).await;
        insights.erase(&*engine, "one", start()).await.expect("no fault");
        client.await.expect("no panic");
        let shown = asked(&insights, &engine, None, MINUTE, start()).await;
        let shown = requests(&shown);
        let of_others: Vec<_> = shown.iter().filter(|(table, _)| *table != format!("t{round}")).collect();
        assert!(of_others.is_empty(), "requests from before the removal: {of_others:?}");
        assert!(shown.iter().all(|(_, requests)| *requests <= 200), "{shown:?}");
    }
}
