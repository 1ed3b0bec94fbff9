//! A server inside a test: over HTTP it keeps what it is given, beside others, and leaves nothing behind.

use larimar_embedded::{Larimar, StartError};
use larimar_testkit::http::{Client, entity_path};
use larimar_wire::sas::Service;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

fn address(endpoint: &str) -> SocketAddr {
    let authority = endpoint.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    authority.and_then(|authority| authority.parse().ok()).expect("an endpoint with address and port")
}

fn tables(server: &Larimar) -> Client {
    Client::new(address(&server.table_endpoint())).of_account(server.account(), server.key())
}

fn queues(server: &Larimar) -> Client {
    Client::of_service(address(&server.queue_endpoint()), Service::Queue)
}

fn blobs(server: &Larimar) -> Client {
    Client::of_service(address(&server.blob_endpoint()), Service::Blob)
}

/// The clients of the test kit block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("no panic")
}

#[tokio::test]
async fn what_is_written_is_read_back_from_all_services() {
    let server = Larimar::ephemeral().await.expect("starts");
    let (tables, queues, blobs) = (tables(&server), queues(&server), blobs(&server));
    blocking(move || {
        tables.create_table("people");
        let etag = tables.insert("people", "sales", "1", r#""name":"Ada""#);
        let reply = tables.get(&entity_path("people", "sales", "1")).send();
        assert_eq!((reply.status, reply.header("ETag")), (200, Some(etag.as_str())), "{reply}");
        assert!(reply.text().contains("Ada"), "{reply}");

        assert_eq!(queues.request("PUT", "/jobs").send().status, 201);
        let message = "<QueueMessage><MessageText>hello</MessageText></QueueMessage>";
        assert_eq!(queues.request("POST", "/jobs/messages").body(message).send().status, 201);
        let reply = queues.get("/jobs/messages").send();
        assert!(reply.status == 200 && reply.text().contains("hello"), "{reply}");

        assert_eq!(blobs.request("PUT", "/logs?restype=container").send().status, 201);
        let put = blobs.request("PUT", "/logs/today").header("x-ms-blob-type", "BlockBlob").body("a line");
        assert_eq!(put.send().status, 201);
        let reply = blobs.get("/logs/today").send();
        assert_eq!((reply.status, reply.text()), (200, "a line"), "{reply}");
    })
    .await;
    let requests = server.requests();
    assert_eq!((requests.table, requests.queue, requests.blob, requests.total()), (3, 3, 3, 9));
}

#[tokio::test]
async fn servers_run_side_by_side_and_share_nothing() {
    let (one, other) = tokio::try_join!(Larimar::ephemeral(), Larimar::ephemeral()).expect("both start");
    let endpoints = [&one, &other].map(|server| {
        [server.table_endpoint(), server.queue_endpoint(), server.blob_endpoint()].map(|endpoint| address(&endpoint))
    });
    let mut ports: Vec<u16> = endpoints.iter().flatten().map(SocketAddr::port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 6);

    let (a, b) = (tables(&one), tables(&other));
    blocking(move || {
        a.create_table("people");
        a.insert("people", "sales", "1", "");
        assert_eq!(b.get(&entity_path("people", "sales", "1")).send().status, 404);
        b.create_table("people");
    })
    .await;
    assert_eq!((one.requests().table, other.requests().table), (2, 2));
}

/// Waits, within bounds, until the port can be bound: what a dropped server leaves is closed by its runtime.
async fn is_freed(address: SocketAddr) -> bool {
    for _ in 0..500 {
        if TcpListener::bind(address).is_ok() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn a_dropped_server_frees_its_ports_and_closes_its_connections() {
    let server = Larimar::ephemeral().await.expect("starts");
    let addresses = [server.table_endpoint(), server.queue_endpoint(), server.blob_endpoint()].map(|e| address(&e));
    for address in addresses {
        assert!(TcpListener::bind(address).is_err(), "{address} is taken");
    }
    let idle = TcpStream::connect(addresses[0]).expect("listens");
    let client = tables(&server);
    blocking(move || client.create_table("people")).await;
    drop(server);
    blocking(move || {
        idle.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
        let ended = std::io::Read::read(&mut &idle, &mut [0; 1]);
        assert!(matches!(ended, Ok(0)) || ended.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset));
    })
    .await;
    for address in addresses {
        assert!(is_freed(address).await, "{address} is still taken");
    }
}

#[tokio::test]
async fn a_stopped_server_is_gone_when_stop_returns() {
    let server = Larimar::ephemeral().await.expect("starts");
    let (addresses, client) = ([server.table_endpoint(), server.blob_endpoint()].map(|e| address(&e)), tables(&server));
    blocking(move || client.create_table("people")).await;
    server.stop().await;
    for address in addresses {
        assert!(TcpStream::connect(address).is_err(), "{address} still listens");
    }
}

#[tokio::test]
async fn an_account_of_ones_own_is_served_in_place_of_the_development_account() {
    let server = Larimar::builder().account("contoso", "c2VjcmV0").start().await.expect("starts");
    let string = server.connection_string();
    assert!(string.contains("AccountName=contoso;AccountKey=c2VjcmV0;"), "{string}");
    assert!(string.contains(&format!("TableEndpoint={};", server.table_endpoint())), "{string}");
    assert!(!format!("{server:?} {:?}", Larimar::builder().account("contoso", "c2VjcmV0")).contains("c2VjcmV0"));
    let (ours, development) = (tables(&server), Client::new(address(&server.table_endpoint())));
    blocking(move || {
        ours.create_table("people");
        assert_eq!(development.get("/Tables").send().status, 404);
    })
    .await;
}

#[tokio::test]
async fn accounts_that_cannot_be_served_are_refused() {
    for name in ["", "with space", "a/b", &"a".repeat(64)] {
        let refused = Larimar::builder().account(name, "c2VjcmV0").start().await;
        assert!(matches!(refused, Err(StartError::AccountName(refused)) if refused == name), "{name:?}");
    }
    for key in ["", "not base64!"] {
        let refused = Larimar::builder().account("contoso", key).start().await;
        assert!(matches!(refused, Err(StartError::AccountKey)), "{key:?}");
    }
}

#[tokio::test]
async fn a_strict_server_keeps_deleted_names_busy() {
    for (strict, status) in [(true, 409), (false, 201)] {
        let server = Larimar::builder().strict(strict).start().await.expect("starts");
        let client = tables(&server);
        blocking(move || {
            client.create_table("people");
            assert_eq!(client.delete("/Tables('people')").send().status, 204);
            let again = client.post("/Tables", r#"{"TableName":"people"}"#).send();
            assert_eq!(again.status, status, "{again}");
        })
        .await;
    }
}
