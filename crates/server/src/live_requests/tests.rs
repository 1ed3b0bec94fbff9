//! Watchers that are slow, many, or gone.

use super::*;
use crate::access_log::Accessed;
use futures_util::StreamExt;
use larimar_model::Timestamp;
use larimar_wire::analytics::Authentication;
use larimar_wire::request_head::RequestHead;
use std::pin::pin;

const NONE: [(&str, &hyper::header::HeaderValue); 0] = [];
const END: End = End { sent_bytes: 12, is_complete: true, elapsed: Duration::from_micros(1500) };
const ALL: [Service; 3] = [Service::Table, Service::Queue, Service::Blob];

fn line(account: Option<&str>, service: Service, path: &str) -> AccessLine {
    let head = RequestHead::new("GET", path, "sig=secret", NONE);
    AccessLine::new(Accessed {
        head: &head,
        peer: "10.1.2.3:4567".parse().expect("an address"),
        now: Timestamp::parse("2026-01-02T03:04:05.5Z").expect("a time"),
        request_id: "id",
        service,
        account: account.map(str::to_owned),
        path,
        operation: "GetBlob",
        authentication: Authentication::Sas,
        status: 206,
        code: None,
        received_bytes: 7,
    })
}

fn taken(watch: &Watch) -> String {
    String::from_utf8(watch.take().expect("a watch that goes on")).expect("text")
}

#[test]
fn a_watcher_sees_its_account_and_its_services_alone() {
    let live = Arc::new(LiveRequests::default());
    assert!(!live.is_watched());
    let (all, blobs) = (live.watch("shop", &ALL), live.watch("shop", &[Service::Blob]));
    let (all, blobs) = (all.expect("a watch"), blobs.expect("a watch"));
    assert!(live.is_watched());
    live.show(&line(Some("shop"), Service::Blob, "/box/a"), END);
    live.show(&line(Some("shop"), Service::Table, "/people(PartitionKey='secret')"), END);
    live.show(&line(Some("other"), Service::Blob, "/box/of-others"), END);
    live.show(&line(None, Service::Blob, "/nobody/s"), END);
    let (seen, of_blobs) = (taken(&all), taken(&blobs));
    assert_eq!((seen.lines().count(), of_blobs.lines().count()), (2, 1), "{seen}{of_blobs}");
    assert!(of_blobs.contains("/box/a") && seen.contains("\"/people\"") && !seen.contains("secret"), "{seen}");
    assert_eq!(taken(&all), "", "each line is sent once");
    drop((all, blobs));
    assert!(!live.is_watched());
}

#[test]
fn lines_beyond_the_rate_and_the_buffer_are_counted_in_their_place() {
    let live = Arc::new(LiveRequests::default());
    let watch = live.watch("shop", &ALL).expect("a watch");
    let short = line(Some("shop"), Service::Blob, "/b");
    let count = LINES_PER_SECOND_MAX + 500;
    // The clock goes on meanwhile, so some of them may belong to a second.
    for _ in 0..count {
        live.show(&short, END);
    }
    let text = taken(&watch);
    let (lost, shown): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with("{\"lost\":"));
    let number = |line: &&str| line.trim_start_matches("{\"lost\":").trim_end_matches('}').parse::<usize>().ok();
    let lost: usize = lost.iter().map(|line| number(line).expect("a number")).sum();
    assert_eq!(lost + shown.len(), count as usize);
    assert!(text.len() < PENDING_BYTES_MAX + 100, "{} bytes", text.len());
    let long = line(Some("shop"), Service::Blob, &format!("/{}", "x".repeat(1500)));
    for _ in 0..1_000 {
        live.show(&long, END);
    }
    let text = taken(&watch);
    assert!(text.len() < PENDING_BYTES_MAX + 100 && text.contains("{\"lost\":"), "{} bytes", text.len());
}

#[test]
fn a_second_has_room_for_a_number_of_lines() {
    let live = Arc::new(LiveRequests::default());
    let _watch = live.watch("shop", &ALL).expect("a watch");
    let mut state = live.state.lock();
    let watcher = state.watchers.values_mut().next().expect("a watcher");
    let began = watcher.second.0;
    let admitted = (0..3 * LINES_PER_SECOND_MAX).filter(|_| watcher.admits(began)).count();
    assert_eq!(admitted, LINES_PER_SECOND_MAX as usize);
    assert!(watcher.admits(began + Duration::from_secs(1)), "the next second has room again");
}

#[test]
fn there_are_so_many_watchers_and_no_more() {
    let live = Arc::new(LiveRequests::default());
    let watches: Vec<_> = (0..WATCHERS_MAX).map(|_| live.watch("shop", &ALL).expect("a watch")).collect();
    assert!(live.watch("shop", &ALL).is_none());
    drop(watches);
    let watch = live.watch("shop", &ALL).expect("there is room again");
    live.close();
    assert!(live.watch("shop", &ALL).is_none() && watch.take().is_none());
}

#[tokio::test]
async fn a_quiet_stream_has_heartbeats_and_an_end() {
    let live = Arc::new(LiveRequests::default());
    let watch = live.watch("shop", &ALL).expect("a watch");
    let (all, between) = (Duration::from_millis(50), Duration::from_millis(5));
    let pieces: Vec<_> = watch.into_lines_of(all, between).map(|piece| piece.expect("a piece")).collect().await;
    assert!(pieces.len() > 1 && pieces.iter().all(|piece| *piece == HEARTBEAT), "{pieces:?}");
    assert!(!live.is_watched());
}

#[tokio::test]
async fn a_stream_ends_when_the_server_does() {
    let live = Arc::new(LiveRequests::default());
    let mut lines = pin!(live.watch("shop", &ALL).expect("a watch").into_lines());
    assert_eq!(lines.next().await.expect("a piece").expect("a piece"), HEARTBEAT);
    let closing = async {
        live.show(&line(Some("shop"), Service::Blob, "/b"), END);
        tokio::task::yield_now().await;
        live.close();
    };
    let (text, ()) = tokio::join!(lines.next(), closing);
    assert!(text.expect("a piece").expect("a piece").starts_with(b"{"));
    assert!(lines.next().await.is_none());
}
