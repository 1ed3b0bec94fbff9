//! T13: logs in blobs: names, flushes, readers by time, writers that die and writers side by side.

use crate::harness::{self, Death, Mortal, Random, account, healthy};
use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use larimar_client::{Account, BlobItem, Container, Timestamp};
use larimar_embedded::Larimar;
use larimar_patterns::Error;
use larimar_patterns::blob_log::{BlobLogReader, BlobLogWriter, LogRecord};
use std::time::Duration;

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

async fn logs(account: &Account) -> Container {
    let container = account.container("logs");
    container.create_if_missing().await.expect("a container");
    container
}

async fn blobs(container: &Container) -> Vec<BlobItem> {
    container.list("").try_collect().await.expect("a list")
}

fn texts(records: &[LogRecord]) -> Vec<&str> {
    records.iter().map(|record| record.text.as_str()).collect()
}

#[tokio::test]
async fn t13_blobs_are_named_and_described_as_the_guide_says() {
    let server = Larimar::ephemeral().await.expect("a server");
    let logs = logs(&healthy(&server)).await;
    let log = BlobLogWriter::new(&logs, "orders").expect("a log");
    for at in ["2014-07-31T18:05:00Z", "2014-07-31T18:01:00.5Z", "2014-07-31T19:00:00Z"] {
        log.append_at(time(at), &format!("first\nof {at}")).await.expect("appended");
    }
    assert_eq!(server.requests().blob, 1, "nothing is written but the container");
    log.flush().await.expect("flushed");
    assert_eq!((server.requests().blob, log.pending_bytes()), (5, 0), "a list and a blob for each folder");
    log.append_at(time("2014-07-31T18:59:59.9999999Z"), "second").await.expect("appended");
    log.flush().await.expect("flushed");
    log.flush().await.expect("nothing to do");
    let blobs = blobs(&logs).await;
    let listed = blobs
        .iter()
        .map(|blob| (blob.name.as_str(), blob.metadata["starttime"].as_str(), blob.metadata["endtime"].as_str()));
    assert_eq!(
        listed.collect::<Vec<_>>(),
        [
            ("orders/2014/07/31/1800/000001.log", "2014-07-31T18:01:00.5Z", "2014-07-31T18:05:00Z"),
            ("orders/2014/07/31/1800/000002.log", "2014-07-31T18:59:59.9999999Z", "2014-07-31T18:59:59.9999999Z"),
            ("orders/2014/07/31/1900/000001.log", "2014-07-31T19:00:00Z", "2014-07-31T19:00:00Z"),
        ]
    );
    for wrong in ["", "/x", "x/"] {
        assert!(matches!(BlobLogWriter::new(&logs, wrong), Err(Error::Invalid(_))));
    }
}

#[tokio::test]
async fn t13_a_range_is_read_in_order_with_few_requests() {
    let server = Larimar::ephemeral().await.expect("a server");
    let logs = logs(&healthy(&server)).await;
    let log = BlobLogWriter::new(&logs, "orders").expect("a log");
    let other = BlobLogWriter::new(&logs, "orders-of-others").expect("a log");
    let start = time("2014-07-31T22:30:00Z");
    // Every ten minutes for six hours, the later half first.
    let at = |number: u64| start.after(Duration::from_secs(600 * number));
    for number in (18..36).chain(0..18) {
        log.append_at(at(number), &format!("{number}")).await.expect("appended");
        other.append_at(at(number), "other").await.expect("appended");
        if number % 5 == 0 {
            log.flush().await.expect("flushed");
        }
    }
    log.flush().await.expect("flushed");
    other.flush().await.expect("flushed");
    let reader = BlobLogReader::new(&logs, "orders");
    let all = reader.all(at(0), at(100)).await.expect("records");
    assert_eq!(texts(&all), (0..36).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(all.is_sorted());
    let before = server.requests().blob;
    let some = reader.all(at(20), at(22)).await.expect("records");
    assert_eq!(texts(&some), ["20", "21", "22"]);
    let cost = server.requests().blob - before;
    assert!(cost <= 4, "a list and the blobs of two hours: {cost}");
    let before = server.requests().blob;
    assert!(reader.all(at(1000), at(1001)).await.expect("records").is_empty());
    assert_eq!(server.requests().blob - before, 1);
    assert!(reader.all(at(5), at(4)).await.expect("records").is_empty());
}

#[tokio::test]
async fn t13_records_are_flushed_by_size_and_by_age() {
    let server = Larimar::ephemeral().await.expect("a server");
    let logs = logs(&healthy(&server)).await;
    let log = BlobLogWriter::new(&logs, "sized").expect("a log").flush_bytes(200);
    for number in 0..50 {
        log.append(&format!("record {number:03}")).await.expect("appended");
    }
    assert!(blobs(&logs).await.len() >= 8);
    assert!(log.pending_bytes() < 200);
    let aged = BlobLogWriter::new(&logs, "aged").expect("a log").flush_age(Duration::from_millis(50));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let reader = BlobLogReader::new(&logs, "aged");
    let far = || (Timestamp::now().before(Duration::from_secs(60)), Timestamp::now().after(Duration::from_secs(60)));
    let watch = async {
        aged.append("one").await.expect("appended");
        while reader.all(far().0, far().1).await.expect("records").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        aged.append("two").await.expect("appended");
        stop.send(()).expect("it runs");
    };
    let (run, ()) = tokio::join!(aged.run(async { drop(stopped.await) }), watch);
    run.expect("the last flush");
    assert_eq!(texts(&reader.all(far().0, far().1).await.expect("records")), ["one", "two"]);
}

/// A flush that dies at each request, and is made again: every record is there once.
#[tokio::test]
async fn t13_a_flush_that_fails_anywhere_is_made_good_and_writes_nothing_twice() {
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    logs(&sound).await;
    for k in 0..6 {
        for death in [Death::BeforeSend, Death::AnswerLost] {
            let name = format!("log-{k}-{}", death as u8);
            // Requests fail at the k-th and again at once; then the service is there again.
            let flaky = account(&server, Flaky::at(k, death));
            let log = BlobLogWriter::new(&flaky.container("logs"), &name).expect("a log");
            let start = time("2014-07-31T18:00:00Z");
            for number in 0..6 {
                log.append_at(start.after(Duration::from_secs(1500 * number)), &number.to_string())
                    .await
                    .expect("appended");
            }
            let mut failures = 0;
            while log.flush().await.is_err() {
                failures += 1;
                assert!(failures < 10);
            }
            let reader = BlobLogReader::new(&sound.container("logs"), &name);
            let records = reader.all(start, start.after(Duration::from_secs(86_400))).await.expect("records");
            assert_eq!(texts(&records), ["0", "1", "2", "3", "4", "5"], "{death:?} at request {k}");
        }
    }
}

#[tokio::test]
async fn t13_writers_side_by_side_share_a_log() {
    let server = Larimar::ephemeral().await.expect("a server");
    let sound = healthy(&server);
    let logs = logs(&sound).await;
    let start = time("2014-07-31T18:00:00Z");
    join_all((0..4).map(async |writer: u64| {
        let random = &mut Random::new(writer);
        let log = BlobLogWriter::new(&logs, "shared").expect("a log").folder_minutes(15);
        for number in 0..40 {
            let at = start.after(Duration::from_secs(random.below(3600) as u64));
            log.append_at(at, &format!("{writer}-{number}")).await.expect("appended");
            if random.chance(5) {
                log.flush().await.expect("flushed");
            }
        }
        log.flush().await.expect("flushed");
    }))
    .await;
    let reader = BlobLogReader::new(&logs, "shared").folder_minutes(15);
    let records = reader.all(start, start.after(Duration::from_secs(3600))).await.expect("records");
    assert_eq!(records.len(), 160);
    assert!(records.windows(2).all(|pair| pair[0].time <= pair[1].time), "in order");
    let mut all = texts(&records);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 160, "each once");
}

/// While the service takes nothing, memory is bounded; what was taken in is written later.
#[tokio::test]
async fn t13_a_service_that_is_away_does_not_fill_the_memory() {
    let server = Larimar::ephemeral().await.expect("a server");
    logs(&healthy(&server)).await;
    let dead = account(&server, Mortal::after(0, Death::BeforeSend));
    let log = BlobLogWriter::new(&dead.container("logs"), "away").expect("a log").flush_bytes(50).memory_bytes_max(500);
    let mut full = 0;
    for number in 0..100 {
        match log.append(&format!("record {number}")).await {
            Err(Error::LogFull { .. }) => full += 1,
            Ok(()) | Err(Error::Client(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(full > 50 && log.pending_bytes() <= 600, "{full} refused, {} kept", log.pending_bytes());
}

/// Fails one request, and is well again.
#[derive(Debug)]
struct Flaky(std::sync::atomic::AtomicI64, Death, larimar_client::HttpTransport);

impl Flaky {
    fn at(request: i64, death: Death) -> std::sync::Arc<Self> {
        std::sync::Arc::new(Self(request.into(), death, larimar_client::HttpTransport::default()))
    }
}

impl larimar_client::Transport for Flaky {
    fn send(&self, request: harness::Request) -> larimar_client::BoxFuture<'_, harness::Answer> {
        Box::pin(async move {
            if self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst) != 0 {
                return self.2.send(request).await;
            }
            if self.1 == Death::AnswerLost {
                drop(self.2.send(request).await?);
            }
            Err(larimar_client::TransportError::lost("as the test asked"))
        })
    }
}
