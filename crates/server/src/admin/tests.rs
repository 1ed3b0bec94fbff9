//! Admin requests, sent directly and over a socket, to an engine that can fail.

use super::*;
use crate::listener::{Listener, ListenerSettings};
use crate::{Account, Metrics, Settings};
use http_body_util::BodyExt;
use larimar_engine::{Clock, Fault, MemoryEngine, MemorySnapshot, Reads, Rows as _, Statistics, SystemClock};
use larimar_testkit::engine::layer::{Layer, Layered};
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use larimar_wire::signature::{AccountKey, DEVELOPMENT_KEY, Scheme, http_date, sign};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An engine that is ready or not, as set.
#[derive(Default)]
struct Moody {
    inner: MemoryEngine,
    is_full: AtomicBool,
}

impl Layer for Moody {
    type Below = MemoryEngine;
    type Snapshot = MemorySnapshot;

    fn below(&self) -> &MemoryEngine {
        &self.inner
    }

    async fn snapshot(&self, reads: Reads, deadline: Instant) -> Result<MemorySnapshot, Fault> {
        self.inner.snapshot(reads, deadline).await
    }

    fn statistics(&self) -> Statistics {
        Statistics { store_bytes: 77, ..Statistics::default() }
    }

    fn ready(&self) -> Result<(), Fault> {
        if self.is_full.load(Relaxed) { Err(Fault::Unavailable("the disk is full".into())) } else { Ok(()) }
    }
}

const TOKEN: &str = "the-token-of-these-tests";
const KEY: &str = "c2VjcmV0IG9uZQ==";
const OTHER_KEY: &str = "c2VjcmV0IHR3bw==";
const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 40_000);
const ELSEWHERE: ([u8; 4], u16) = ([10, 0, 0, 9], 40_000);

fn service(engine: Arc<Layered<Moody>>) -> AdminService<Layered<Moody>> {
    let account = |name: &str, key| {
        let keys = vec![AccountKey::from_base64(key).expect("a key")];
        Account { name: name.to_owned(), keys }
    };
    let accounts = vec![account("one", KEY), account("two", OTHER_KEY), account("known", DEVELOPMENT_KEY)];
    let settings = Settings { accounts, ..Settings::default() };
    let storage = Storage::new(engine, Arc::new(SystemClock), settings, Arc::new(Metrics::default()));
    let admin = AdminSettings {
        token: Some(AdminToken::new(TOKEN).expect("a token")),
        allow_reset: true,
        ..AdminSettings::new(SocketAddr::from(([127, 0, 0, 1], 10003)))
    };
    AdminService::new(storage, admin)
}

fn request(method: &Method, target: &str, authorization: Option<&str>) -> Parts {
    let request = Request::builder().method(method).uri(target).header("host", "localhost:10003");
    let request = match authorization {
        Some(authorization) => request.header("authorization", authorization),
        None => request,
    };
    request.body(()).expect("a request").into_parts().0
}

/// A request that this key of this account signs.
fn signed(method: &Method, target: &str, account: &str, key: &str) -> Parts {
    let mut parts = request(method, target, None);
    let date = http_date(SystemClock.now());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = [("x-ms-date", date.as_str())];
    let signed = RequestHead::new(method.as_str(), path, query, headers);
    let key = AccountKey::from_base64(key).expect("a key");
    let header = sign(Service::Blob, Scheme::SharedKey, account, &key, &signed).expect("a signature");
    parts.headers.insert("x-ms-date", date.parse().expect("a header"));
    parts.headers.insert("authorization", header.parse().expect("a header"));
    parts
}

async fn send(service: &AdminService<Layered<Moody>>, parts: &Parts, peer: ([u8; 4], u16)) -> (u16, String, Page) {
    let peer = Peer::new(SocketAddr::from(peer), false);
    let mut response = service.answer(parts, false, peer).await;
    let body = std::mem::replace(response.body_mut(), ResponseBody::whole(Bytes::new()));
    let body = body.collect().await.expect("a body in memory").to_bytes();
    (response.status().as_u16(), String::from_utf8(body.to_vec()).expect("text"), response)
}

async fn ask(service: &AdminService<Layered<Moody>>, method: &Method, path: &str) -> (u16, String) {
    let (status, text, _) = send(service, &request(method, path, None), LOOPBACK).await;
    (status, text)
}

#[tokio::test]
async fn health_is_about_the_process_and_ready_about_the_engine() {
    let engine = Arc::new(Layered::<Moody>::default());
    let service = service(Arc::clone(&engine));
    assert_eq!(ask(&service, &Method::GET, "/health").await, (200, "ok\n".into()));
    assert_eq!(ask(&service, &Method::GET, "/ready").await, (200, "ready\n".into()));
    engine.0.is_full.store(true, Relaxed);
    assert_eq!(ask(&service, &Method::GET, "/health").await.0, 200);
    let (status, text) = ask(&service, &Method::GET, "/ready").await;
    assert_eq!(status, 503);
    assert!(text.contains("the disk is full"), "{text}");
    assert!(ask(&service, &Method::GET, "/metrics").await.1.contains("\nlarimar_ready 0\n"));
    engine.0.is_full.store(false, Relaxed);
    assert_eq!(ask(&service, &Method::GET, "/ready").await.0, 200);
    assert!(ask(&service, &Method::GET, "/metrics").await.1.contains("\nlarimar_ready 1\n"));
}

#[tokio::test]
async fn only_the_open_pages_answer_without_credentials_and_no_other_path_shows_that_it_exists() {
    let service = service(Arc::default());
    for (method, path, expected) in [
        (Method::HEAD, "/health", 200),
        (Method::POST, "/ready", 405),
        (Method::GET, "/", 401),
        (Method::GET, "/healthy", 401),
        (Method::GET, "/health/", 401),
        (Method::POST, "/", 401),
        (Method::GET, "/reset", 401),
        (Method::POST, "/reset", 401),
        (Method::OPTIONS, "/reset", 401),
    ] {
        let (status, text, page) = send(&service, &request(&method, path, None), LOOPBACK).await;
        assert_eq!(status, expected, "{method} {path}");
        if expected == 401 {
            assert_eq!(page.headers()["www-authenticate"], "Bearer, SharedKey");
            assert_eq!(text, send(&service, &request(&Method::GET, "/none", None), LOOPBACK).await.1, "{path}");
        }
    }
}

#[tokio::test]
async fn wrong_credentials_are_refused_like_none() {
    let service = service(Arc::default());
    for wrong in [
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer the-token-of-these-test",
        "Bearer the-token-of-these-tests2",
        "Basic dGhlLXRva2VuLW9mLXRoZXNlLXRlc3Rz",
        "the-token-of-these-tests",
        "SharedKey one:",
        "SharedKey one:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "SharedKey none:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ] {
        let parts = request(&Method::POST, "/reset?account=one", Some(wrong));
        assert_eq!(send(&service, &parts, LOOPBACK).await.0, 401, "{wrong}");
    }
    let mut twice = request(&Method::POST, "/reset?account=one", Some(&format!("Bearer {TOKEN}")));
    twice.headers.append("authorization", "Bearer x".parse().expect("a header"));
    assert_eq!(send(&service, &twice, LOOPBACK).await.0, 401);
    for (account, key) in [("one", OTHER_KEY), ("two", KEY), ("none", KEY)] {
        let parts = signed(&Method::POST, "/reset?account=one", account, key);
        assert_eq!(send(&service, &parts, LOOPBACK).await.0, 401, "{account}");
    }
    // The query is signed, too.
    let mut parts = signed(&Method::POST, "/reset?account=one", "one", KEY);
    parts.uri = "/reset?account=one&account=one".parse().expect("a target");
    assert_eq!(send(&service, &parts, LOOPBACK).await.0, 401);
    let settings = AdminSettings { token: None, ..service.settings.clone() };
    let without_token = AdminService::new(Arc::clone(&service.storage), settings);
    let parts = request(&Method::POST, "/reset?account=one", Some(&format!("Bearer {TOKEN}")));
    assert_eq!(send(&without_token, &parts, LOOPBACK).await.0, 401);
}

#[tokio::test]
async fn while_the_store_is_filled_nothing_is_changed_and_the_server_is_not_ready() {
    let is_filling = Arc::new(AtomicBool::new(true));
    let service = service(Arc::default()).with_filling(Arc::clone(&is_filling));
    let bearer = format!("Bearer {TOKEN}");
    let reset = request(&Method::POST, "/reset?account=one", Some(&bearer));
    let ask = async |target| send(&service, &request(&Method::GET, target, None), LOOPBACK).await;
    assert_eq!((ask("/health").await.0, ask("/metrics").await.0), (200, 200));
    let (status, reason, _) = ask("/ready").await;
    assert!(status == 503 && reason.contains("being filled"), "{reason}");
    assert_eq!(send(&service, &reset, LOOPBACK).await.0, 503);
    assert_eq!(send(&service, &request(&Method::POST, "/reset?account=one", None), LOOPBACK).await.0, 401);
    is_filling.store(false, Relaxed);
    assert_eq!((ask("/ready").await.0, send(&service, &reset, LOOPBACK).await.0), (200, 200));
}

#[tokio::test]
async fn a_reset_is_answered_after_its_accounts_are_filled_again() {
    let filled: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
    let accounts = Arc::clone(&filled);
    let service = service(Arc::default()).with_refill(Box::new(move |names| {
        let is_broken = names.contains(&"two".to_owned());
        accounts.lock().extend(names);
        Box::pin(async move { if is_broken { Err("line 7".to_owned()) } else { Ok(()) } })
    }));
    let bearer = format!("Bearer {TOKEN}");
    let reset = |target| request(&Method::POST, target, Some(&bearer));
    assert_eq!(send(&service, &reset("/reset?account=one"), LOOPBACK).await.0, 200);
    assert_eq!(*filled.lock(), ["one"]);
    let (status, reason, _) = send(&service, &reset("/reset?account=two"), LOOPBACK).await;
    assert!(status == 503 && reason.contains("line 7; send the request again"), "{reason}");
    assert_eq!(send(&service, &reset("/reset?account=none"), LOOPBACK).await.0, 404);
    assert_eq!(*filled.lock(), ["one", "two"], "only what was emptied");
}

#[tokio::test]
async fn the_token_reaches_all_accounts_and_a_key_its_own() {
    let service = service(Arc::default());
    let bearer = format!("Bearer {TOKEN}");
    for (method, target, expected) in [
        (Method::POST, "/reset?account=one", 200),
        (Method::POST, "/reset?account=one&account=two", 200),
        (Method::POST, "/reset?account=none", 404),
        (Method::POST, "/reset?account=one&account=none", 404),
        (Method::POST, "/reset", 400),
        (Method::GET, "/reset?account=one", 405),
        (Method::DELETE, "/reset?account=one", 405),
        (Method::GET, "/", 404),
        (Method::POST, "/reset/", 404),
    ] {
        let (status, text, page) = send(&service, &request(&method, target, Some(&bearer)), LOOPBACK).await;
        assert_eq!(status, expected, "{method} {target}: {text}");
        if expected == 405 {
            assert_eq!(page.headers()["allow"], "POST");
        }
    }
    for (target, expected) in [
        ("/reset?account=one", 200),
        ("/reset?account=two", 404),
        ("/reset?account=one&account=two", 404),
        ("/reset?account=none", 404),
    ] {
        let parts = signed(&Method::POST, target, "one", KEY);
        assert_eq!(send(&service, &parts, LOOPBACK).await.0, expected, "{target}");
        assert_eq!(send(&service, &parts, ELSEWHERE).await.0, expected, "{target}");
    }
}

#[tokio::test]
async fn the_well_known_key_counts_on_this_machine_only() {
    let mut service = service(Arc::default());
    let parts = signed(&Method::POST, "/reset?account=known", "known", DEVELOPMENT_KEY);
    assert_eq!(send(&service, &parts, LOOPBACK).await.0, 200);
    assert_eq!(send(&service, &parts, ELSEWHERE).await.0, 401);
    service.settings.allow_well_known_key = true;
    assert_eq!(send(&service, &parts, ELSEWHERE).await.0, 200);
}

#[tokio::test]
async fn a_reset_that_is_not_allowed_is_refused_to_those_who_may_ask() {
    let mut service = service(Arc::default());
    service.settings.allow_reset = false;
    let target = "/reset?account=one";
    let parts = request(&Method::POST, target, Some(&format!("Bearer {TOKEN}")));
    let (status, text, _) = send(&service, &parts, LOOPBACK).await;
    assert_eq!(status, 403);
    assert!(text.contains("--allow-reset"), "{text}");
    assert_eq!(send(&service, &request(&Method::POST, target, None), LOOPBACK).await.0, 401);
}

#[tokio::test]
async fn web_pages_are_refused_before_their_credentials_are_read() {
    let service = service(Arc::default());
    for (name, value) in [("host", "evil.example:10003"), ("origin", "http://evil.example"), ("origin", "null")] {
        let mut parts = request(&Method::POST, "/reset?account=one", Some(&format!("Bearer {TOKEN}")));
        parts.headers.insert(name, value.parse().expect("a header"));
        assert_eq!(send(&service, &parts, LOOPBACK).await.0, 403, "{name}: {value}");
    }
}

#[tokio::test]
async fn a_body_is_refused_and_not_read() {
    let service = service(Arc::default());
    let parts = request(&Method::POST, "/reset?account=one", Some(&format!("Bearer {TOKEN}")));
    let peer = Peer::new(SocketAddr::from(LOOPBACK), false);
    assert_eq!(service.answer(&parts, true, peer).await.status().as_u16(), 400);
}

#[tokio::test]
async fn metrics_are_served_over_a_socket() {
    let service = Arc::new(service(Arc::default()));
    let metrics = Arc::clone(&service.storage.metrics);
    metrics.request("GetEntity", 200, Duration::from_millis(1));
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = socket.local_addr().expect("a bound socket");
    let listener = Listener::new(service, Arc::clone(&metrics), ListenerSettings::default());
    let served = tokio::spawn(listener.serve(socket, std::future::pending()));
    let mut client = TcpStream::connect(address).await.expect("the listener accepts");
    client.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.expect("a request");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("\nlarimar_requests_total{operation=\"GetEntity\",status=\"200\"} 1\n"), "{answer}");
    assert!(answer.contains("\nlarimar_store_bytes 77\n"), "{answer}");
    assert!(answer.contains("\nlarimar_open_connections 1\n"), "{answer}");
    served.abort();
}
