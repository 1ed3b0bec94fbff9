//! Who may use the admin endpoint.

use super::{EXE, RESET, launch, send, signature, token};
use larimar_testkit::http::{ACCOUNT, KEY};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const CONFIGURED: &str = "a-token-that-was-configured";

#[test]
fn every_path_needs_the_token_or_the_key_of_an_account() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--allow-reset").start();
    let address = server.admin_address();
    let bearer = format!("Bearer {}", token(&server));
    for (method, target, open, known) in [
        ("GET", "/health", 200, 200),
        ("GET", "/ready", 200, 200),
        ("GET", "/metrics", 200, 200),
        ("POST", "/metrics", 405, 405),
        ("GET", "/", 200, 200),
        ("GET", "/none", 401, 404),
        ("GET", RESET, 401, 405),
        ("PUT", RESET, 401, 405),
        ("POST", "/reset", 401, 400),
        ("POST", "/reset?account=none", 401, 404),
        ("POST", RESET, 401, 200),
    ] {
        assert_eq!(send(address, method, target, &[]).status, open, "{method} {target}");
        for wrong in ["Bearer wrong", "Bearer", "SharedKey devstoreaccount1:x", "x"] {
            let reply = send(address, method, target, &[("authorization", wrong)]);
            assert_eq!(reply.status, open, "{method} {target} {wrong}");
        }
        let reply = send(address, method, target, &[("authorization", &bearer)]);
        assert_eq!(reply.status, known, "{method} {target}: {}", reply.text());
        assert_eq!(reply.header("allow").is_some(), known == 405, "{method} {target}");
    }
    let signed = signature("POST", RESET, ACCOUNT, KEY);
    let headers = signed.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(send(address, "POST", RESET, &headers).status, 200);
    assert_eq!(send(address, "POST", "/reset?account=other", &headers).status, 401);
    let with_body = [("authorization", bearer.as_str()), ("content-length", "4")];
    assert_eq!(send(address, "POST", RESET, &with_body).status, 400);
    for secret in [bearer.trim_start_matches("Bearer "), KEY] {
        let told = server.output();
        let log = told.split_once("admin endpoint").map_or(&*told, |(_, log)| log);
        assert!(!log.contains(secret), "{told}");
        assert!(!send(address, "GET", "/metrics", &[]).text().contains(secret));
    }
}

#[test]
fn web_pages_cannot_reach_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--allow-reset").argument("--admin-names=admin.test").start();
    let (address, port) = (server.admin_address(), server.admin_address().port());
    let bearer = format!("Bearer {}", token(&server));
    let own = format!("http://{address}");
    for (host, origin, expected) in [
        (format!("127.0.0.1:{port}"), None, 200),
        (format!("localhost:{port}"), None, 200),
        ("admin.test".to_owned(), None, 200),
        ("admin.test".to_owned(), Some("http://admin.test"), 200),
        (address.to_string(), Some(own.as_str()), 200),
        (address.to_string(), Some("http://evil.test"), 403),
        (address.to_string(), Some("http://localhost:3000"), 403),
        (address.to_string(), Some("null"), 403),
        (format!("evil.test:{port}"), None, 403),
        (format!("evil.test:{port}"), Some("http://evil.test"), 403),
    ] {
        let mut headers = vec![("host", host.as_str()), ("authorization", bearer.as_str())];
        headers.extend(origin.map(|origin| ("origin", origin)));
        assert_eq!(send(address, "POST", RESET, &headers).status, expected, "{host} {origin:?}");
    }
    // What a form or a preflight of another page sends.
    let form = [("content-type", "application/x-www-form-urlencoded"), ("content-length", "0")];
    assert_eq!(send(address, "POST", RESET, &form).status, 401);
    let preflight = [("origin", "http://evil.test"), ("access-control-request-method", "POST")];
    let reply = send(address, "OPTIONS", RESET, &preflight);
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None));
}

#[test]
fn the_token_is_in_a_file_of_its_owner_and_stays_the_same() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).start();
    if launch(&folder).database().is_some() {
        return;
    }
    let file = server.data().join("admin-token");
    let text = token(&server);
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(!server.output().contains(&text) && server.output().contains("admin-token"), "{}", server.output());
    let again = server.kill();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    let server = again.start();
    assert_eq!(token(&server), text);
    assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    let (again, _) = server.stop();
    std::fs::write(&file, "short").expect("a file");
    let told = again.try_start().expect_err("no token");
    assert!(told.contains("admin-token: expected an admin token") && !told.contains("short"), "{told}");
}

#[test]
fn a_server_in_memory_has_its_token_in_a_file_for_its_time() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = launch(&folder).argument("--durability=memory").start();
    let directory = server.runtime_directory().join("larimar");
    let file = directory.join(format!("admin-token-{}", server.admin_address().port()));
    let mode = |path: &std::path::Path| path.metadata().expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&file)), (0o700, 0o600));
    let bearer = format!("Bearer {}", token(&server));
    assert_eq!(send(server.admin_address(), "GET", "/none", &[("authorization", &bearer)]).status, 404);
    server.stop();
    assert!(!file.exists());
}

#[test]
fn a_configured_token_is_never_shown() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{CONFIGURED}\n")).expect("a file");
    let by_file = launch(&folder).argument(format!("--admin-token-file={}", file.display()));
    for launch in [by_file, launch(&folder).environment("LARIMAR_ADMIN_TOKEN", CONFIGURED)] {
        let server = launch.start();
        let bearer = format!("Bearer {CONFIGURED}");
        assert_eq!(send(server.admin_address(), "GET", "/none", &[("authorization", &bearer)]).status, 404);
        assert!(!server.output().contains(CONFIGURED), "{}", server.output());
        assert!(!server.data().join("admin-token").exists());
    }
    let run = |arguments: &[&str], token: &str| {
        let mut command = Command::new(EXE);
        let output = command.current_dir(folder.path()).args(arguments).env("LARIMAR_ADMIN_TOKEN", token).output();
        let output = output.expect("the binary runs");
        let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), told)
    };
    let (code, told) = run(&["config"], CONFIGURED);
    assert!(code == Some(0) && told.contains("admin_token: set and not shown") && !told.contains(CONFIGURED), "{told}");
    let (code, told) = run(&["config"], "tooshort");
    assert!(code == Some(2) && told.contains("16 to 256") && !told.contains("tooshort"), "{told}");
    let (code, told) = run(&["config", "--admin-token=x"], CONFIGURED);
    assert!(code == Some(2) && told.contains("--admin-token"), "{told}");
    let (code, told) = run(&["serve", "--admin-token-file=none"], "");
    assert!(code == Some(2) && told.contains("admin_token_file") && told.contains("no such file"), "{told}");
}

#[test]
fn with_a_certificate_it_speaks_tls() {
    let folder = tempfile::tempdir().expect("a directory");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let launch = launch(&folder).argument(format!("--tls-certificate={}", certificate.display()));
    let server = launch.argument(format!("--tls-key={}", key.display())).argument("--allow-reset").start();
    assert!(server.output().contains(&format!("https://{}", server.admin_address())), "{}", server.output());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let bearer = token(&server);
    for (request, expected) in [
        ("GET /health HTTP/1.1".to_owned(), "200"),
        (format!("POST {RESET} HTTP/1.1\r\nauthorization: Bearer {bearer}\r\norigin: https://localhost"), "200"),
        (format!("POST {RESET} HTTP/1.1\r\nauthorization: Bearer {bearer}\r\norigin: http://localhost"), "403"),
    ] {
        let name = ServerName::try_from("localhost").expect("a name");
        let socket = TcpStream::connect(server.admin_address()).expect("the server accepts");
        socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        let client = ClientConnection::new(Arc::clone(&config), name).expect("a client");
        let mut stream = StreamOwned::new(client, socket);
        let request = format!("{request}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer and an orderly end");
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
    }
}
