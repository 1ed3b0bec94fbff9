//! SIGHUP: accounts, keys, certificates and the log level are read again; a mistake leaves the old ones in place.

#![cfg(unix)]

use larimar_testkit::http::{self, entity, entity_path};
use larimar_testkit::{Launch, Server};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const RELOADED: &str = "accounts, certificates and log level are reloaded";
const KEPT: &str = "the settings are not reloaded and the old ones stay";

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill did not run");
}

/// Waits for something; how long that takes does not matter.
fn eventually(server: &Server, what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}:\n{}", server.output());
}

/// Sends SIGHUP and waits until the server says this once more.
fn reload(server: &Server, said: &str) {
    let count = || server.output().matches(said).count();
    let before = count();
    signal(server.pid(), "HUP");
    eventually(server, said, || count() > before);
}

fn launch(folder: &Path) -> Launch {
    let path = folder.join("larimar.toml");
    Launch::new(EXE, folder.join("data")).argument("--config").argument(path.to_str().expect("text"))
}

fn write_settings(folder: &Path, text: &str) {
    std::fs::write(folder.join("larimar.toml"), text).expect("a file");
}

#[test]
fn accounts_and_keys_are_reloaded_and_requests_in_flight_finish() {
    let folder = tempfile::tempdir().expect("a folder");
    write_settings(folder.path(), "accounts = 'one:b25lIG9uZQ==;two:dHdvIHR3bw=='");
    let server = launch(folder.path()).start();
    let one = server.client().of_account("one", "b25lIG9uZQ==");
    let two = server.client().of_account("two", "dHdvIHR3bw==");
    two.create_table("late");
    one.get("/Tables").send().is_status(200);
    // A request of an account that is removed while its body is on the way.
    let request = two.post("/late", entity("p", "r", "")).header("Expect", "100-continue").to_bytes();
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let mut stream = TcpStream::connect(server.table_address()).expect("the server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream.write_all(&request[..end]).expect("the head is sent");
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).expect("an interim answer");

    write_settings(folder.path(), "idle_timeout = '60s'\naccounts = 'one:b25lIHR3bw==;three:dGhyZWU='");
    reload(&server, RELOADED);
    assert!(server.output().contains("need a restart"), "{}", server.output());
    one.get("/Tables").send().is_status(403);
    server.client().of_account("one", "b25lIHR3bw==").get("/Tables").send().is_status(200);
    let three = server.client().of_account("three", "dGhyZWU=");
    three.create_table("new");
    assert_ne!(two.get("/Tables").send().status, 200, "a removed account");
    stream.write_all(&request[end..]).expect("the body is sent");
    http::read_response(&stream, true).expect("an answer").is_status(201);

    // An account that comes back finds its data.
    write_settings(folder.path(), "accounts = 'two:dHdvIHR3bw=='");
    reload(&server, RELOADED);
    two.get(&entity_path("late", "p", "r")).send().is_status(200);
    assert_ne!(three.get("/Tables").send().status, 200, "a removed account");
}

#[test]
fn a_mistake_leaves_the_old_settings_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    write_settings(folder.path(), "accounts = 'one:b25lIG9uZQ=='");
    let server = launch(folder.path()).start();
    let one = server.client().of_account("one", "b25lIG9uZQ==");
    for (text, reason) in [
        ("accounts = 'one:b25lIG9uZQ==;two:%'", "account 2: \"two\": key is not Base64"),
        ("acounts = 'two:b25lIG9uZQ=='", "did you mean accounts?"),
        ("log_level = 'loud'\naccounts = 'two:b25lIG9uZQ=='", "setting log_level"),
        ("accounts = ", "expected TOML"),
        // A file that is being written: the account with the public key must not appear.
        ("", "there were accounts at the start, and now there is none"),
        (&"# long\n".repeat(200_000), "it is longer than 1 MiB"),
    ] {
        write_settings(folder.path(), text);
        reload(&server, KEPT);
        assert!(server.output().contains(reason), "{reason} in {}", server.output());
        one.get("/Tables").send().is_status(200);
    }
    std::fs::remove_file(folder.path().join("larimar.toml")).expect("the file is ours");
    reload(&server, KEPT);
    one.get("/Tables").send().is_status(200);
}

/// The process is stopped by a pipe in the place of its configuration file, before it has read any setting.
#[test]
fn a_hangup_right_after_the_start_does_not_end_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("larimar.toml");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
    let waiting = launch(folder.path());
    let started = std::thread::spawn(move || waiting.start());
    // Opens once the server reads.
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&path).expect("a pipe");
    let pid = reader_of(&path);
    std::fs::remove_file(&path).expect("the pipe is ours");
    write_settings(folder.path(), "accounts = 'one:b25lIG9uZQ=='");
    signal(pid, "HUP");
    pipe.write_all(b"accounts = 'one:b25lIG9uZQ=='").expect("the server reads");
    drop(pipe);
    let server = started.join().expect("it starts");
    server.client().of_account("one", "b25lIG9uZQ==").get("/Tables").send().is_status(200);
    eventually(&server, RELOADED, || server.output().contains(RELOADED));
}

/// The process whose command line names a file.
fn reader_of(path: &Path) -> u32 {
    let name = path.to_str().expect("text");
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let mut readers = numbers.filter(|pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == name.as_bytes())
    });
    readers.next().expect("a process")
}

#[test]
fn the_log_level_is_reloaded() {
    let folder = tempfile::tempdir().expect("a folder");
    write_settings(folder.path(), "log_level = 'info'");
    let server = launch(folder.path()).start();
    server.client().get("/Tables").send().is_status(200);
    write_settings(folder.path(), "log_level = 'info,larimar_server=debug'");
    reload(&server, RELOADED);
    let id = server.client().get("/Tables").send().header("x-ms-request-id").expect("a request id").to_owned();
    eventually(&server, "a line of the request", || server.output().contains(&id));
}

/// The certificate that a server presents to a new connection.
fn presented(address: SocketAddr, roots: &RootCertStore) -> Option<CertificateDer<'static>> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut socket = TcpStream::connect(address).expect("the server accepts");
    while client.is_handshaking() {
        client.complete_io(&mut socket).expect("a handshake");
    }
    client.peer_certificates().and_then(|chain| chain.first()).cloned().map(CertificateDer::into_owned)
}

#[test]
fn certificates_are_reloaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let pairs = [(); 2].map(|()| rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate"));
    let write = |number: usize| {
        std::fs::write(folder.path().join("cert.pem"), pairs[number].cert.pem()).expect("a file");
        std::fs::write(folder.path().join("key.pem"), pairs[number].signing_key.serialize_pem()).expect("a file");
    };
    let mut roots = RootCertStore::empty();
    for pair in &pairs {
        roots.add(pair.cert.der().clone()).expect("a root");
    }
    write(0);
    write_settings(folder.path(), "tls_certificate = 'cert.pem'\ntls_key = 'key.pem'");
    let server = launch(folder.path()).start();
    assert_eq!(presented(server.table_address(), &roots).as_ref(), Some(pairs[0].cert.der()));
    write(1);
    reload(&server, RELOADED);
    for address in [server.table_address(), server.queue_address(), server.blob_address()] {
        assert_eq!(presented(address, &roots).as_ref(), Some(pairs[1].cert.der()));
    }
    std::fs::write(folder.path().join("key.pem"), pairs[0].signing_key.serialize_pem()).expect("a file");
    reload(&server, KEPT);
    assert!(server.output().contains("tls_key"), "{}", server.output());
    assert_eq!(presented(server.table_address(), &roots).as_ref(), Some(pairs[1].cert.der()));
}

/// A database that accepts connections but does not answer delays the start of a server, but not its shutdown.
#[test]
fn an_interrupt_ends_a_start_and_a_migration_that_wait_for_the_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("postgres://larimar@{}/larimar?sslmode=disable", silent.local_addr().expect("an address"));
    let ports = ["--table-port=0", "--queue-port=0", "--blob-port=0", "--admin=false"];
    let migrate = ["migrate", "--from", &url, "--to", "here"];
    for (arguments, name) in [
        ([&["--engine", url.as_str()], &ports[..]].concat(), "INT"),
        ([&["--engine", url.as_str()], &ports[..]].concat(), "TERM"),
        (migrate.to_vec(), "INT"),
    ] {
        let mut command = Command::new(EXE);
        command.args(arguments).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary runs");
        let connection = silent.accept().expect("the server asks the database");
        signal(child.id(), name);
        let ended = (0..6000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(5));
            child.try_wait().expect("the child is ours")
        });
        if ended.is_none() {
            child.kill().expect("the child is ours");
        }
        assert_eq!(ended.and_then(|status| status.code()), Some(130), "SIG{name}");
        drop(connection);
    }
}
