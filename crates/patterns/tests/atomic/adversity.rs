//! T1, T9 and T10 when answers are lost on their way back, and when calls are given up in the middle.

use crate::atomic::fixture::{Fixture, time};
use crate::atomic::secondary_index::{Employee, audit, employee, indexed};
use crate::atomic::wide_entity::{answers, read};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use larimar_client::{
    Account, BoxFuture, DynamicEntity, Filter, HttpTransport, RetryPolicy, Transport, TransportError,
};
use larimar_patterns::compound_key::{CompoundKey, family};
use larimar_patterns::log_tail::LogTail;
use larimar_patterns::period_tables::PeriodTables;
use larimar_patterns::series::{Resolution, Series};
use larimar_patterns::spread_key::SpreadKey;
use larimar_patterns::wide_entity::WideTable;
use larimar_patterns::{Error, Period};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Carries all requests out, and loses the answer to every third one.
#[derive(Debug)]
struct Lossy {
    inner: HttpTransport,
    requests: AtomicU64,
}

impl Transport for Lossy {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let number = self.requests.fetch_add(1, Relaxed);
        Box::pin(async move {
            let answer = self.inner.send(request).await?;
            if number % 3 == 1 { Err(TransportError::lost("the answer was lost")) } else { Ok(answer) }
        })
    }
}

/// The account of a server, over a transport that loses answers.
fn lossy(fixture: &Fixture) -> Account {
    let transport = Lossy { inner: HttpTransport::new(), requests: AtomicU64::new(0) };
    let retry = RetryPolicy::exponential().retries_max(8).delay(Duration::from_millis(1));
    let account = Account::builder().connection_string(fixture.server.connection_string()).retry(retry);
    account.transport(Arc::new(transport)).build().expect("an account")
}

#[tokio::test]
async fn t1_lost_answers_neither_fail_nor_repeat_a_change() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(lossy(&fixture).table("Employees"));
    for id in 0..6 {
        employees.insert(&employee(&id.to_string(), "Hall", &format!("{id}@x"))).await.expect("inserted");
    }
    assert!(matches!(employees.insert(&employee("0", "Hall", "9@x")).await, Err(Error::Duplicate { .. })));
    for round in 1..=6 {
        let raise = |found: &mut Employee| {
            found.salary += 1;
            found.email = Some(format!("{round}@y"));
            found.last_name = format!("Hall{round}");
        };
        let raised = employees.update("Sales", "3", raise).await.expect("updated").expect("it is there");
        assert_eq!(raised.salary, 1000 + round, "once each time");
    }
    assert!(employees.delete("Sales", "5").await.expect("deleted"));
    assert_eq!(audit(&table).await, 5);
}

#[tokio::test]
async fn t9_t10_lost_answers_leave_what_was_written() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let account = lossy(&fixture);
    let wide = WideTable::new(account.table("Employees"));
    let mut version = wide.insert(&answers("1", 500, 0)).await.expect("inserted");
    for round in 1..=6 {
        version = wide.replace(&answers("1", 1 + round * 200, round as i32), &version).await.expect("replaced");
        assert_eq!(read(&wide, "1").await, Some(answers("1", 1 + round * 200, round as i32)));
    }
    assert!(wide.delete("Sales", "1").await.expect("deleted"));
    assert!(table.query::<DynamicEntity>().all().await.expect("read").is_empty());

    let series = Series::<i64>::new(account.table("Employees"), "Messages", Resolution::HoursOfDay).expect("a series");
    let day = time("2026-02-15T00:00:00Z");
    for hour in 0..24_u32 {
        let at = day.after(Duration::from_secs(3600) * hour);
        series.record("Sales", at, &i64::from(hour)).await.expect("recorded");
    }
    let values = series.read("Sales", day).await.expect("read").expect("a row").values;
    assert_eq!(values, (0..24).map(Some).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t1_t10_calls_that_are_given_up_leave_all_or_nothing() {
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let employees = indexed(table.clone());
    let wide = WideTable::new(fixture.table("Answers").await);
    employees.insert(&employee("1", "Hall", "1@x")).await.expect("inserted");
    wide.insert(&answers("1", 300, 0)).await.expect("inserted");
    for round in 0..60_u64 {
        let (employees, wide) = (employees.clone(), wide.clone());
        let task = tokio::spawn(async move {
            let change = |found: &mut Employee| found.email = Some(format!("{round}@x"));
            employees.update("Sales", "1", change).await.expect("updated");
            wide.insert_or_replace(&answers("1", 1 + (round as usize % 4) * 250, 1)).await.expect("written");
        });
        // Given up wherever it is by then; what it left has to be right each time.
        tokio::time::sleep(Duration::from_micros(round * 100)).await;
        task.abort();
        let _ = task.await;
    }
    assert_eq!(audit(&table).await, 1);
    let found = read(&wide, "1").await.expect("it is there");
    let whole = [251, 300, 1, 501, 751];
    assert!(whole.contains(&found.properties().len()), "all parts of one write: {}", found.properties().len());
}

/// Has queries answered one entity at a time, and lets a writer in before a page that is not the first.
#[derive(Debug)]
struct OneByOne {
    inner: HttpTransport,
    writer: WideTable,
    /// How many properties the writer writes, one time each.
    writes: Mutex<Vec<usize>>,
}

impl Transport for OneByOne {
    fn send(&self, mut request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let address = request.uri().to_string();
            if address.contains("()?") {
                *request.uri_mut() = format!("{address}&$top=1").parse().expect("an address");
                let write = self.writes.lock().expect("no panic before").pop_if(|_| address.contains("NextRowKey"));
                match write {
                    None => {}
                    Some(0) => assert!(self.writer.delete("Sales", "1").await.expect("deleted")),
                    Some(count) => drop(self.writer.insert_or_replace(&answers("1", count, 7)).await.expect("written")),
                }
            }
            self.inner.send(request).await
        })
    }
}

#[tokio::test]
async fn t10_a_write_between_two_pages_is_found_and_the_read_done_again() {
    let fixture = Fixture::new().await;
    let writer = WideTable::new(fixture.table("Employees").await);
    // The same size, more parts, fewer parts, only one, and none at all; and two writers in one read.
    for writes in [vec![600], vec![900], vec![300], vec![1], vec![0], vec![600, 300]] {
        writer.insert_or_replace(&answers("1", 600, 1)).await.expect("written");
        let (transport, last) = (HttpTransport::new(), writes[0]);
        let transport = OneByOne { inner: transport, writer: writer.clone(), writes: Mutex::new(writes.clone()) };
        let account = Account::builder().connection_string(fixture.server.connection_string());
        let account = account.transport(Arc::new(transport)).build().expect("an account");
        let found = read(&WideTable::new(account.table("Employees")), "1").await;
        assert_eq!(found, (last > 0).then(|| answers("1", last, 7)), "{writes:?}");
    }
}

#[tokio::test]
async fn futures_of_all_patterns_can_be_sent_to_another_thread() {
    fn sendable<T>(future: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
        future
    }
    let fixture = Fixture::new().await;
    let table = fixture.table("Employees").await;
    let key = CompoundKey::new(("1".to_owned(),));
    sendable(family::<DynamicEntity, DynamicEntity>(&table, "Sales", &key)).await.expect("read");
    let tail = LogTail::new(table.clone());
    sendable(tail.append(&DynamicEntity::new("Sales", ""))).await.expect("appended");
    sendable(tail.latest::<DynamicEntity>("Sales", 1)).await.expect("read");
    let spread = SpreadKey::new(2).expect("buckets");
    sendable(spread.get::<DynamicEntity>(&table, "x", "1", "1")).await.expect("read");
    sendable(spread.read::<DynamicEntity>(&table, "x", Filter::everything()).try_collect::<Vec<_>>())
        .await
        .expect("read");
    let logins = PeriodTables::new(fixture.account.clone(), "Logins", Period::Day).expect("tables");
    sendable(logins.drop_before(time("2026-02-15T00:00:00Z"))).await.expect("dropped");
    let day = time("2026-02-15T00:00:00Z")..time("2026-02-16T00:00:00Z");
    let logins = logins.stream(day, |table| table.query::<DynamicEntity>());
    sendable(logins.try_collect::<Vec<_>>()).await.expect("read");
}
