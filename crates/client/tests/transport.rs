//! The transport: TLS, proxies, connections that are kept, closed, given up and lost.

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response};
use larimar_client::{
    Account, AccountBuilder, AccountError, DynamicEntity, Error, HttpTransport, RetryPolicy, Transport as _,
    TransportError,
};
use larimar_embedded::Larimar;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Reads up to the end of a request's head.
async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("a head is text")
}

fn get(address: SocketAddr) -> Request<Bytes> {
    Request::get(format!("http://{address}/")).body(Bytes::new()).expect("a request")
}

async fn write_ok(stream: &mut TcpStream, body: &str) {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.expect("written");
}

// TLS

/// Listens with TLS and hands what comes on to a server without; returns its port and certificate.
async fn tls_before(server: SocketAddr) -> (u16, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions of the provider")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], made.signing_key.serialize_der().try_into().expect("a key"))
        .expect("a certificate and its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, address) = listen().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // A client that does not trust the certificate goes away.
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut upstream = TcpStream::connect(server).await.expect("the server");
                let _ = copy_bidirectional(&mut stream, &mut upstream).await;
            });
        }
    });
    (address.port(), made.cert.pem())
}

fn table_address(server: &Larimar) -> SocketAddr {
    let endpoint = server.table_endpoint();
    let address = endpoint.trim_start_matches("http://").split('/').next().expect("an address");
    address.parse().expect("an address")
}

/// The server's account at another address, without retries.
fn account_at(server: &Larimar, scheme_and_host: &str) -> AccountBuilder {
    let account = server.account();
    Account::builder()
        .table_endpoint(format!("{scheme_and_host}/{account}"))
        .shared_key(account, server.key())
        .retry(RetryPolicy::none())
}

/// Makes a table with an entity and reads it.
async fn uses_a_table(account: &Account) -> Result<(), Error> {
    let table = account.table("Employees");
    table.create_if_missing().await?;
    table.insert_or_replace(&DynamicEntity::new("p", "r").with("A", 1)).await?;
    let read: Option<DynamicEntity> = table.get("p", "r").await?;
    assert_eq!(read.expect("found").get::<i32>("A").expect("a number"), 1);
    Ok(())
}

fn assert_not_sent(outcome: Result<(), Error>) {
    match outcome {
        Err(Error::Transport(error)) => assert!(!error.may_have_been_sent(), "{error}"),
        other => panic!("expected that the request is not sent: {other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_that_was_added_is_trusted_and_no_other() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (port, certificate) = tls_before(table_address(&server)).await;
    let trusting = account_at(&server, &format!("https://localhost:{port}")).root_certificates(certificate.clone());
    uses_a_table(&trusting.build().expect("an account")).await.expect("it works");
    let before = server.requests().table;
    let wary = account_at(&server, &format!("https://localhost:{port}")).build().expect("an account");
    assert_not_sent(uses_a_table(&wary).await);
    let by_number = account_at(&server, &format!("https://127.0.0.1:{port}")).root_certificates(certificate);
    assert_not_sent(uses_a_table(&by_number.build().expect("an account")).await);
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate").cert.pem();
    let by_another = account_at(&server, &format!("https://127.0.0.1:{port}")).server_certificate(other);
    assert_not_sent(uses_a_table(&by_another.build().expect("an account")).await);
    let plain = account_at(&server, &format!("https://{}", table_address(&server))).build().expect("an account");
    assert_not_sent(uses_a_table(&plain).await);
    assert_eq!(server.requests().table, before);
}

/// The certificate is for `localhost`, and nobody trusts whoever signed it.
#[tokio::test]
async fn a_server_is_known_by_its_own_certificate_under_any_name() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (port, certificate) = tls_before(table_address(&server)).await;
    let known = account_at(&server, &format!("https://127.0.0.1:{port}")).server_certificate(certificate);
    uses_a_table(&known.build().expect("an account")).await.expect("it works");
}

#[test]
fn settings_that_would_be_passed_over_are_refused() {
    let account = || Account::builder().connection_string("UseDevelopmentStorage=true");
    assert_eq!(account().proxy("socks5://proxy:1080").build().expect_err("no such proxies"), AccountError::Proxy);
    assert_eq!(account().user_agent("ünïversal").build().expect_err("not ASCII"), AccountError::UserAgent);
    let refused = account().root_certificates("no certificate").build().expect_err("nothing to trust");
    assert!(matches!(refused, AccountError::Certificates(_)), "{refused}");
    let refused = account().server_certificate("no certificate").build().expect_err("nothing to trust");
    assert!(matches!(refused, AccountError::Certificates(_)), "{refused}");
}

// Proxies

/// A proxy that requires a password; it sends the first line of each request to the test.
async fn proxy() -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let (listener, address) = listen().await;
    let (sender, first_lines) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(hand_on(stream, sender.clone()));
        }
    });
    (address, first_lines)
}

async fn hand_on(mut stream: TcpStream, sender: mpsc::UnboundedSender<String>) {
    let head = read_head(&mut stream).await;
    let Some((line, rest)) = head.split_once("\r\n") else { return };
    let _ = sender.send(line.to_owned());
    let secret = base64::engine::general_purpose::STANDARD.encode("user:p@ss");
    let authorization = format!("proxy-authorization: Basic {secret}\r\n");
    let Some(at) = rest.to_ascii_lowercase().find(&authorization.to_ascii_lowercase()) else {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(refusal).await.expect("written");
        return;
    };
    let mut words = line.split(' ');
    let (method, target) = (words.next().expect("a method"), words.next().expect("a target"));
    if method == "CONNECT" {
        let mut upstream = TcpStream::connect(target).await.expect("the server");
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.expect("written");
        let _ = copy_bidirectional(&mut stream, &mut upstream).await;
        return;
    }
    let target: http::Uri = target.parse().expect("an absolute address");
    let mut upstream = TcpStream::connect(target.authority().expect("a server").as_str()).await.expect("the server");
    let path = target.path_and_query().expect("a path");
    let rest = [&rest[..at], &rest[at + authorization.len()..]].concat();
    let head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{rest}");
    upstream.write_all(head.as_bytes()).await.expect("written");
    let _ = copy_bidirectional(&mut stream, &mut upstream).await;
}

#[tokio::test]
async fn a_proxy_is_given_whole_addresses_and_its_password() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (proxy, mut first_lines) = proxy().await;
    let account = account_at(&server, &format!("http://{}", table_address(&server)));
    let account = account.proxy(format!("http://user:p%40ss@{proxy}")).build().expect("an account");
    uses_a_table(&account).await.expect("it works");
    let first = first_lines.recv().await.expect("a request came by");
    assert_eq!(first, format!("POST {}/Tables HTTP/1.1", server.table_endpoint()));
    assert!(first_lines.recv().await.expect("a second one").starts_with("PUT http://"));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_of() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (proxy, _told) = proxy().await;
    let (port, certificate) = tls_before(table_address(&server)).await;
    let plain = account_at(&server, &format!("http://{}", table_address(&server))).proxy(format!("http://{proxy}"));
    let error = uses_a_table(&plain.build().expect("an account")).await.expect_err("no password");
    assert_eq!(error.status(), Some(407));
    let tls = account_at(&server, &format!("https://localhost:{port}")).root_certificates(certificate);
    let tls = tls.proxy(format!("http://user:wrong@{proxy}"));
    assert_not_sent(uses_a_table(&tls.build().expect("an account")).await);
    assert_eq!(server.requests().table, 0);
}

#[tokio::test]
async fn a_proxy_hands_encrypted_connections_through() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (proxy, mut first_lines) = proxy().await;
    let (port, certificate) = tls_before(table_address(&server)).await;
    let account = account_at(&server, &format!("https://localhost:{port}")).root_certificates(certificate);
    let account = account.proxy(format!("user:p%40ss@{proxy}")).build().expect("an account");
    uses_a_table(&account).await.expect("it works");
    assert_eq!(first_lines.recv().await.expect("a tunnel"), format!("CONNECT localhost:{port} HTTP/1.1"));
    assert_eq!(first_lines.try_recv(), Err(mpsc::error::TryRecvError::Empty), "one connection is enough");
}

// Connections

/// Hands connections on to a server and counts them.
async fn counted_before(server: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let (listener, address) = listen().await;
    let count = Arc::new(AtomicUsize::new(0));
    let accepted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            accepted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut upstream = TcpStream::connect(server).await.expect("the server");
                let _ = copy_bidirectional(&mut stream, &mut upstream).await;
            });
        }
    });
    (address, count)
}

#[tokio::test]
async fn one_connection_serves_requests_one_after_another() {
    let server = Larimar::ephemeral().await.expect("a server");
    let (address, count) = counted_before(table_address(&server)).await;
    let account = account_at(&server, &format!("http://{address}")).build().expect("an account");
    for _ in 0..20 {
        uses_a_table(&account).await.expect("it works");
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
    let at_once = (0..8).map(|_| {
        let table = account.clone().table("Employees");
        async move { table.get::<DynamicEntity>("p", "r").await.expect("read") }
    });
    futures_util::future::join_all(at_once).await;
    let now = count.load(Ordering::Relaxed);
    assert!((1..=8).contains(&now), "{now}");
    uses_a_table(&account).await.expect("it works");
    assert_eq!(count.load(Ordering::Relaxed), now, "those are kept");
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_replaced() {
    let (listener, address) = listen().await;
    let (closed, mut is_closed) = mpsc::unbounded_channel();
    let serving = tokio::spawn(async move {
        for n in 0..3 {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            read_head(&mut stream).await;
            write_ok(&mut stream, &n.to_string()).await;
            drop(stream);
            closed.send(()).expect("the test waits");
        }
    });
    let transport = HttpTransport::new();
    for n in 0..3 {
        let answer = transport.send(get(address)).await.expect("a new connection is made");
        assert_eq!(answer.body(), &n.to_string());
        is_closed.recv().await.expect("the server closed it");
        // Lets the runtime hear of it.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    serving.await.expect("three connections");
}

#[tokio::test]
async fn an_answer_that_says_so_ends_its_connection() {
    let (listener, address) = listen().await;
    let serving = tokio::spawn(async move {
        let mut streams = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            read_head(&mut stream).await;
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na")
                .await
                .expect("sent");
            // Still open on this side.
            streams.push(stream);
        }
    });
    let transport = HttpTransport::new();
    for _ in 0..2 {
        assert_eq!(transport.send(get(address)).await.expect("an answer").body(), "a");
    }
    serving.await.expect("two connections");
}

/// Answers the first connection with a part of an answer and waits until the client closes it; then serves one more.
async fn stalling(part: &'static str) -> (SocketAddr, oneshot::Receiver<()>, tokio::task::JoinHandle<()>) {
    let (listener, address) = listen().await;
    let (sender, has_stalled) = oneshot::channel();
    let serving = tokio::spawn(async move {
        let (mut first, _) = listener.accept().await.expect("a connection");
        read_head(&mut first).await;
        first.write_all(part.as_bytes()).await.expect("written");
        sender.send(()).expect("the test waits");
        // It is reset if the client has not read all of the part.
        let read = first.read(&mut [0]).await;
        assert!(matches!(read, Ok(0) | Err(_)), "the client closes");
        let (mut second, _) = listener.accept().await.expect("another connection");
        read_head(&mut second).await;
        write_ok(&mut second, "second").await;
    });
    (address, has_stalled, serving)
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_connection_and_harms_no_other() {
    for part in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nfirst "] {
        let (address, has_stalled, serving) = stalling(part).await;
        let transport = HttpTransport::new();
        {
            let mut given_up = transport.send(get(address));
            tokio::select! {
                answer = &mut given_up => panic!("there is no answer: {answer:?}"),
                stalled = has_stalled => stalled.expect("the server has the request"),
            }
        }
        assert_eq!(transport.send(get(address)).await.expect("an answer").body(), "second", "after {part:?}");
        serving.await.expect("both connections went as they should");
    }
}

#[tokio::test]
async fn a_request_without_an_answer_may_have_been_carried_out() {
    async fn outcome(transport: &HttpTransport, address: SocketAddr) -> Result<Response<Bytes>, TransportError> {
        transport.send(get(address)).await
    }
    let (listener, address) = listen().await;
    let serving = tokio::spawn(async move {
        for part in ["", "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nfirst ", "no HTTP\r\n\r\n"] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            read_head(&mut stream).await;
            stream.write_all(part.as_bytes()).await.expect("written");
        }
    });
    let transport = HttpTransport::new();
    for _ in 0..3 {
        let error = outcome(&transport, address).await.expect_err("the server went away");
        assert!(error.may_have_been_sent(), "{error}");
    }
    serving.await.expect("three connections");
    let error = outcome(&transport, address).await.expect_err("there is no listener any more");
    assert!(!error.may_have_been_sent(), "{error}");
    let odd = Request::get("ftp://localhost/").body(Bytes::new()).expect("a request");
    assert!(!transport.send(odd).await.expect_err("no such scheme").may_have_been_sent());
}

/// Answers with a head and then bytes without end, as long as the client takes them. Returns how many it took.
async fn endless(head: &'static str, piece: &'static [u8]) -> (SocketAddr, tokio::task::JoinHandle<usize>) {
    let (listener, address) = listen().await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        read_head(&mut stream).await;
        stream.write_all(head.as_bytes()).await.expect("written");
        let mut sent = 0;
        while sent < 256 << 20 && stream.write_all(piece).await.is_ok() {
            sent += piece.len();
        }
        sent
    });
    (address, serving)
}

#[tokio::test]
async fn a_hostile_server_cannot_make_the_client_read_a_long_error() {
    const HEADERS: &str = "x-ms-error-code: AccountIsDisabled\r\n";
    let piece: &'static [u8] = vec![b'['; 64 << 10].leak();
    let chunk: &'static [u8] = [b"10000\r\n", piece, b"\r\n"].concat().leak();
    for (framing, piece) in
        [("Content-Length: 536870912\r\n", piece), ("Transfer-Encoding: chunked\r\n", chunk), ("", piece)]
    {
        let head = format!("HTTP/1.1 403 Forbidden\r\n{HEADERS}{framing}\r\n").leak();
        let (address, serving) = endless(head, piece).await;
        let account = Account::builder().shared_key("account", "a2V5").retry(RetryPolicy::none());
        let account = account.table_endpoint(format!("http://{address}/account")).build().expect("an account");
        let error = uses_a_table(&account).await.expect_err("the server refuses");
        assert_eq!((error.status(), error.code()), (Some(403), Some("AccountIsDisabled")), "{framing}");
        // What the sockets hold, and the little that was read.
        let sent = serving.await.expect("the client has closed the connection");
        assert!(sent < 64 << 20, "{framing}: {sent} bytes");
    }
}
