//! Encrypted connections, with a certificate made for the test.

use super::*;
use crate::tls::TlsCertificate;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// What a server presents and what a client trusts.
fn both_sides() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (TlsCertificate::load(&certificate, &key).expect("a usable pair").config(), Arc::new(client))
}

async fn connect(fixture: &Fixture, client: &Arc<ClientConfig>) -> TlsStream<TcpStream> {
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::clone(client));
    within(connector.connect(name, fixture.connect().await)).await.expect("a handshake")
}

#[tokio::test]
async fn encrypted_requests_are_answered() {
    let (server, client) = both_sides();
    let fixture = Fixture::start_with(ListenerSettings::default(), Some(server)).await;
    let mut stream = connect(&fixture, &client).await;
    for _ in 0..3 {
        assert_eq!(ask(&mut stream, "MERGE", "/method").await, "MERGE tls=true");
    }
    send(&mut stream, "GET /wait HTTP/1.1\r\nhost: x\r\n\r\n").await;
    within(fixture.probe.entered.notified()).await;
    let probe = Arc::clone(&fixture.probe);
    let stopping = tokio::spawn(fixture.stop());
    probe.release.notify_one();
    assert_eq!(receive(&mut stream).await.1, "waited");
    assert_eq!(within(stopping).await.expect("the listener ends"), Stopped { connections_cut: 0 });
}

#[tokio::test]
async fn a_handshake_that_does_not_come_ends_the_connection() {
    let (server, _) = both_sides();
    let fixture = Fixture::start_with(quick(), Some(server)).await;
    let mut silent = fixture.connect().await;
    assert_eq!(receive_all(&mut silent).await, "");
}

#[tokio::test]
async fn a_handshake_that_drips_ends_the_connection() {
    let (server, _) = both_sides();
    let fixture = Fixture::start_with(quick(), Some(server)).await;
    let (mut reader, mut writer) = fixture.connect().await.into_split();
    let drip = tokio::spawn(async move {
        // The start of a record of 16 KiB, which never ends.
        let mut sent = writer.write_all(&[0x16, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc]).await;
        while sent.is_ok() {
            time::sleep(Duration::from_millis(20)).await;
            sent = writer.write_all(&[0]).await;
        }
    });
    let mut answer = Vec::new();
    let _ = within(reader.read_to_end(&mut answer)).await;
    drop(reader);
    within(drip).await.expect("the writer notices the end");
}

#[tokio::test]
async fn plain_text_on_an_encrypted_port_is_refused_and_others_go_on() {
    let (server, client) = both_sides();
    let fixture = Fixture::start_with(ListenerSettings::default(), Some(server)).await;
    let mut plain = fixture.connect().await;
    send(&mut plain, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut answer = Vec::new();
    let _ = within(plain.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP/"), "not an answer in plain text");
    assert_eq!(ask(&mut connect(&fixture, &client).await, "GET", "/").await, "hello");
}

#[tokio::test]
async fn a_pending_handshake_does_not_delay_the_end() {
    let (server, _) = both_sides();
    let fixture = Fixture::start_with(ListenerSettings::default(), Some(server)).await;
    let mut silent = fixture.connect().await;
    while fixture.metrics.connections_open() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.stop().await, Stopped { connections_cut: 0 });
    assert_eq!(receive_all(&mut silent).await, "");
}
