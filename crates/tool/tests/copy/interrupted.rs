//! Copies that end at any moment and are continued: nothing twice, nothing missing.

use super::{copy, drained, fill_blobs, fill_queue, fill_tables, seen, server, text};
use larimar_client::Queue;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Interrupts a copy again and again, a little later each time, until it comes to its end.
async fn until_done(folder: &Path, from: &str, to: &str, more: &[&str]) -> u32 {
    let mut interruptions = 0;
    let mut time = Duration::from_millis(10);
    loop {
        time = time.mul_f64(1.2);
        match tokio::time::timeout(time, copy(folder, from, to, more)).await {
            Ok(outcome) => {
                outcome.expect("copied and verified");
                return interruptions;
            }
            Err(_) => interruptions += 1,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_continues_where_it_was_interrupted() {
    let ((from, source), (to, target)) = (server().await, server().await);
    fill_tables(&source).await;
    fill_queue(&source, 100).await;
    fill_blobs(&source).await;
    let before = seen(&source).await;
    let folder = tempfile::tempdir().expect("a folder");
    let more = ["--messages", "receive", "--hide-for", "3", "--parallel", "2"];
    let times = until_done(folder.path(), &from.connection_string(), &to.connection_string(), &more).await;
    assert!(times > 5, "{times} interruptions");
    assert_eq!(seen(&target).await, before);
    let texts: Vec<_> = (0..100).map(text).collect();
    assert_eq!(drained(&target).await, texts, "each message once");
    assert_eq!(drained(&source).await, texts, "each message was given back");
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0, "no state is left");
}

#[tokio::test]
async fn a_queue_that_others_write_to_is_not_cleared() {
    let ((from, source), (to, target)) = (server().await, server().await);
    fill_queue(&source, 20).await;
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (from.connection_string(), to.connection_string());
    interrupted_while_putting(folder.path(), &from, &to).await;
    let state = std::fs::read_to_string(folder.path().join("state.json")).expect("a state");
    assert!(!state.contains("AccountKey") && !state.contains("SharedKey"), "no credentials: {state}");
    let key = from.split("AccountKey=").nth(1).and_then(|rest| rest.split(';').next()).expect("a key");
    for entry in std::fs::read_dir(folder.path()).expect("listed").map(|entry| entry.expect("an entry")) {
        let text = std::fs::read_to_string(entry.path()).expect("text");
        assert!(!text.contains(key), "{:?}", entry.path());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = entry.metadata().expect("metadata").permissions().mode();
            assert_eq!(mode & 0o077, 0, "only its owner reads {:?}", entry.path());
        }
    }
    for _ in 0..29 {
        target.queue("work").put("of others").await.expect("put");
    }
    let error = copy(folder.path(), &from, &to, &["--only", "queues"]).await.expect_err("it would lose messages");
    assert!(error.to_string().contains("others"), "{error}");
    assert!(target.queue("work").approximate_count().await.expect("a number") >= 29);
}

/// Starts copies of the queues until one is interrupted while it puts messages.
async fn interrupted_while_putting(folder: &Path, from: &str, to: &str) {
    let mut waited = Duration::from_millis(5);
    while !std::fs::read_to_string(folder.join("state.json")).is_ok_and(|state| state.contains("putting")) {
        let _ = tokio::time::timeout(waited, copy(folder, from, to, &["--only", "queues"])).await;
        waited += Duration::from_millis(1);
        assert!(waited < Duration::from_millis(500), "the copy was never interrupted at the right moment");
    }
}

/// A way to the server on which messages of an interrupted copy arrive late: right after the queue is cleared, once.
async fn late_messages(queue: Queue, server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let late = std::sync::Arc::new(std::sync::Mutex::new(Some(queue)));
        while let Ok((client, _)) = listener.accept().await {
            let upstream = TcpStream::connect(&server).await.expect("the server accepts");
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = upstream.into_split();
            let late = std::sync::Arc::clone(&late);
            let (cleared, mut clearing) = tokio::sync::mpsc::unbounded_channel();
            tokio::spawn(async move {
                let mut bytes = vec![0; 1 << 16];
                while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
                    if bytes.starts_with(b"DELETE ") {
                        cleared.send(()).expect("the other direction is open");
                    }
                    to_server.write_all(&bytes[..count]).await.expect("the server reads");
                }
            });
            tokio::spawn(async move {
                let mut bytes = vec![0; 1 << 16];
                while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
                    let queue = if clearing.try_recv().is_ok() { late.lock().expect("no panic").take() } else { None };
                    if let Some(queue) = queue {
                        for number in 0..8 {
                            queue.put(text(number)).await.expect("put");
                        }
                    }
                    if to_client.write_all(&bytes[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address.to_string()
}

#[tokio::test]
async fn messages_that_an_interrupted_copy_sent_may_arrive_after_the_next_one_has_begun() {
    let ((from, source), (to, target)) = (server().await, server().await);
    fill_queue(&source, 20).await;
    let folder = tempfile::tempdir().expect("a folder");
    let from = from.connection_string();
    let real = to.connection_string();
    let address =
        real.split("QueueEndpoint=http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an endpoint");
    let to = real.replace(address, &late_messages(target.queue("work"), address.to_owned()).await);
    interrupted_while_putting(folder.path(), &from, &to).await;
    copy(folder.path(), &from, &to, &["--only", "queues"]).await.expect("copied and verified");
    assert_eq!(drained(&target).await, (0..20).map(text).collect::<Vec<_>>(), "each message once");
}
