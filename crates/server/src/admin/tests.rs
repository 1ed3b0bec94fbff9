//! The pages, asked directly and over a socket, with an engine that can fail.

use super::*;
use crate::listener::{Listener, ListenerSettings};
use http_body_util::BodyExt;
use larimar_engine::{Fault, MemoryEngine, MemorySnapshot, Reads, Rows as _, Statistics};
use larimar_testkit::engine::layer::{Layer, Layered};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// An engine that is ready or not, as told.
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

async fn ask(service: &AdminService<Layered<Moody>>, method: &Method, path: &str) -> (u16, String) {
    let response = service.answer(method, path);
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body in memory").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

#[tokio::test]
async fn health_is_about_the_process_and_ready_about_the_engine() {
    let engine = Arc::new(Layered::<Moody>::default());
    let service = AdminService::new(Arc::clone(&engine), Arc::new(Metrics::default()));
    assert_eq!(ask(&service, &Method::GET, "/health").await, (200, "ok\n".into()));
    assert_eq!(ask(&service, &Method::GET, "/ready").await, (200, "ready\n".into()));
    engine.0.is_full.store(true, Relaxed);
    assert_eq!(ask(&service, &Method::GET, "/health").await.0, 200);
    let (status, text) = ask(&service, &Method::GET, "/ready").await;
    assert_eq!(status, 503);
    assert!(text.contains("the disk is full"), "{text}");
    engine.0.is_full.store(false, Relaxed);
    assert_eq!(ask(&service, &Method::GET, "/ready").await.0, 200);
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let service = AdminService::new(Arc::new(Layered::<Moody>::default()), Arc::new(Metrics::default()));
    for (method, path, expected) in [
        (Method::GET, "/", 404),
        (Method::GET, "/healthy", 404),
        (Method::POST, "/", 404),
        (Method::POST, "/ready", 405),
    ] {
        assert_eq!(ask(&service, &method, path).await.0, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn metrics_are_served_over_a_socket() {
    let metrics = Arc::new(Metrics::default());
    metrics.request("GetEntity", 200, Duration::from_millis(1));
    let service = Arc::new(AdminService::new(Arc::new(Layered::<Moody>::default()), Arc::clone(&metrics)));
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
