//! Settings that change how the service is reached, from the file to the wire.

use larimar_testkit::Launch;
use larimar_testkit::http;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// A server whose settings come from a file.
fn launch(folder: &TempDir, text: &str) -> Launch {
    let path = folder.path().join("settings.toml");
    std::fs::write(&path, format!("durability = 'memory'\n{text}")).expect("a file");
    let path = path.to_str().expect("text").to_owned();
    Launch::new(EXE, folder.path().join("data")).argument("--config").argument(path)
}

#[test]
fn an_account_can_be_a_host_below_a_configured_domain() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = launch(&folder, "host_suffixes = ['tables.test']").start();
    let ask = |host: &str| {
        let request = format!("GET /Tables HTTP/1.1\r\nhost: {host}\r\naccept: application/json\r\n\r\n");
        http::exchange(server.table_address(), request.as_bytes()).expect("an answer")
    };
    // Found, and asked for credentials.
    ask("devstoreaccount1.tables.test").is_error(401, "NoAuthenticationInformation");
    ask("devstoreaccount1.tables.test:10002").is_error(401, "NoAuthenticationInformation");
    ask("devstoreaccount1.other.test").is_status(404);
    assert!(!folder.path().join("data").exists(), "memory writes no file");
}

#[test]
fn in_host_style_all_services_share_a_port() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address");
    let port = free.port().to_string();
    let suffixes = "host_suffixes = ['blob.larimar.test', 'queue.larimar.test', 'table.larimar.test']";
    let ports = ["--table-port", "--queue-port", "--blob-port"].map(|flag| format!("{flag}={port}"));
    let launch = ports.iter().fold(launch(&folder, suffixes), |launch, port| launch.argument(port));
    let server = launch.start();
    let banner = server.output();
    for service in ["blob", "queue", "table"] {
        let endpoint = format!("{service} endpoint");
        let host = format!("http://devstoreaccount1.{service}.larimar.test:{port}");
        let lines: Vec<_> = banner.lines().filter(|line| line.contains(&endpoint)).collect();
        assert!(lines.len() == 1 && lines[0].ends_with(&host), "{banner}");
    }
    let ask = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nx-ms-version: 2021-06-08\r\n\r\n");
        http::exchange(free, request.as_bytes()).expect("an answer")
    };
    for (host, path, server) in [
        ("devstoreaccount1.table.larimar.test", "/Tables", "Windows-Azure-Table"),
        ("devstoreaccount1.queue.larimar.test", "/?comp=list", "Windows-Azure-Queue"),
        ("devstoreaccount1.blob.larimar.test", "/?comp=list", "Windows-Azure-Blob"),
    ] {
        let reply = ask(&format!("{host}:{port}"), path);
        assert!(reply.header("server").is_some_and(|name| name.starts_with(server)), "{reply}");
    }
    // Below another domain the host selects the service too, if it names an account.
    ask("devstoreaccount1.blob.other.test", "/?comp=list").is_error(401, "NoAuthenticationInformation");
    for host in ["127.0.0.1", "devstoreaccount1.larimar.test", "nobody.blob.evil.test", "nobody.table.evil.test"] {
        let reply = ask(host, "/devstoreaccount1/Tables");
        reply.is_error(400, "InvalidUri");
        assert!(reply.text().contains("ACCOUNT.blob."), "{reply}");
    }
}

/// Host names have no case, so clients send them in lower case.
#[test]
fn an_account_in_capitals_is_reached_by_its_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = "b3RoZXIga2V5IG9mIG1vcmUgYnl0ZXMgdGhhbiBzaXh0ZWVu";
    let suffixes = "host_suffixes = ['blob.larimar.test', 'table.larimar.test']";
    let server = launch(&folder, suffixes).environment("LARIMAR_ACCOUNTS", &format!("MyShop:{key}")).start();
    let (tables, blobs) = (server.client().of_account("MyShop", key), server.blobs().of_account("MyShop", key));
    tables.create_table("tab");
    blobs.put("/box?restype=container", "").send().is_status(201);
    blobs.put("/box/a", "x").header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    for name in ["myshop", "MyShop", "MYSHOP"] {
        for suffix in ["table.larimar.test", "table.elsewhere.test", "TABLE.Larimar.Test:10002"] {
            let host = format!("{name}.{suffix}");
            let list = tables.get("/Tables").target("/Tables").header("Host", host.as_str()).send();
            assert_eq!(list.column("TableName"), ["tab"], "the same data as in path style: {host}");
        }
        let host = format!("{name}.blob.larimar.test");
        let copy = blobs.put(&format!("/box/{name}"), "").target(&format!("/box/{name}")).header("Host", host.as_str());
        copy.header("x-ms-copy-source", format!("http://{host}/box/a")).send().is_status(202);
        blobs.get(&format!("/box/{name}")).send().is_status(200);
    }
    let secondary = tables.get("/Tables").target("/Tables").header("Host", "MYSHOP-SECONDARY.table.larimar.test");
    assert_eq!(secondary.send().column("TableName"), ["tab"]);
    let other = tables.get("/Tables").target("/Tables").header("Host", "myshops.table.larimar.test");
    other.send().is_error(404, "ResourceNotFound");
}

#[test]
fn strict_mode_refuses_versions_that_nobody_knows() {
    let folder = tempfile::tempdir().expect("a folder");
    let ask = |text: &str| {
        let server = launch(&folder, text).start();
        server.client().get("/Tables").header("x-ms-version", "2099-01-01").send()
    };
    ask("").is_status(200);
    ask("strict = true").is_error(400, "InvalidHeaderValue");
}

#[test]
fn limits_of_the_file_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = launch(&folder, "page_entities_max = 2\nbody_bytes_max = '64KiB'").start();
    let client = server.client();
    client.create_table("small");
    for row in ["1", "2", "3"] {
        client.insert("small", "p", row, "");
    }
    let page = client.get("/small()").send();
    assert_eq!(page.values().len(), 2, "{page}");
    let long = http::entity("p", "4", &format!("\"Text\":\"{}\"", "x".repeat(70_000)));
    client.post("/small", long).send().is_error(413, "RequestBodyTooLarge");
}

#[test]
fn with_a_certificate_the_service_speaks_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let text = format!("tls_certificate = {certificate:?}\ntls_key = {key:?}");
    let server = launch(&folder, &text).start();
    let banner = server.output();
    assert!(banner.contains(&format!("https://{}/devstoreaccount1", server.table_address())), "{banner}");

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let socket = TcpStream::connect(server.table_address()).expect("the server accepts");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a client"), socket);
    stream.write_all(&server.client().get("/Tables").header("Connection", "close").to_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer and an orderly end");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// The password of a database comes from a file, the environment or the URL, and a wrong one ends the start.
#[cfg(feature = "test-postgres")]
#[test]
fn the_password_of_a_database_comes_from_a_file_the_environment_or_the_url() {
    use larimar_testkit::postgres::{Cluster, Options};
    let cluster = Cluster::start_with(&Options { password: Some("open/sesame?"), ..Options::default() });
    let place = format!("127.0.0.1:{}/postgres", cluster.port());
    let url = format!("postgres://larimar@{place}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "open/sesame?\n").expect("a file");
    let on = |url: &str, text: &str| launch(&folder, text).engine(url);
    let by_file = format!("database_password_file = {file:?}");
    for launch in [
        on(&url, &by_file),
        on(&url, "").environment("LARIMAR_DATABASE_PASSWORD", "open/sesame?"),
        on(&url, "database_password = 'open/sesame?'"),
        on(&format!("postgres://larimar:open%2Fsesame%3F@{place}"), ""),
        on(&format!("postgres://larimar:wrong@{place}"), &by_file),
    ] {
        let server = launch.start();
        server.client().get("/Tables").send().is_status(200);
        let printed = server.output();
        assert!(printed.contains(&place) && !printed.contains("sesame"), "{printed}");
    }
    assert!(!folder.path().join("data").exists(), "a server on a database makes no data folder");
    let printed = on(&url, "database_password = 'wrong guess'").try_start().expect_err("another password");
    assert!(
        printed.contains("as the setting engine says") && printed.contains("password authentication failed"),
        "{printed}"
    );
    assert!(!printed.contains("wrong guess"), "{printed}");
}
