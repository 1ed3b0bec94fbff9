//! The binary as users run it: what it prints, what it refuses, and how it ends.

use larimar_testkit::http::{self, entity};
use larimar_testkit::{Launch, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn launch(folder: &TempDir) -> Launch {
    Launch::new(EXE, folder.path().join("data"))
}

/// Runs a command to its end in a folder, with nothing of ours in the environment but this.
fn run(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(EXE);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LARIMAR_") || name == "AZURITE_ACCOUNTS" {
            command.env_remove(name);
        }
    }
    let command = command.current_dir(folder).args(arguments).envs(environment.iter().copied());
    command.output().expect("the binary runs")
}

fn admin_page(server: &Server, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    let reply = http::exchange(server.admin_address(), request.as_bytes()).expect("an answer");
    (reply.status, reply.text().to_owned())
}

#[test]
fn a_server_serves_tells_and_ends_cleanly_with_its_data_kept() {
    let folder = folder();
    let server = launch(&folder).start();
    let table = server.table_address();
    let text = server.output();
    assert!(text.contains(&format!("http://{table}/devstoreaccount1")), "{text}");
    assert!(text.contains("AccountName=devstoreaccount1;"), "{text}");
    assert!(text.contains(&folder.path().join("data").display().to_string()), "{text}");
    let client = server.client();
    client.create_table("kept");
    client.insert("kept", "p", "r", "");
    assert_eq!(admin_page(&server, "/health"), (200, "ok\n".to_owned()));
    assert_eq!(admin_page(&server, "/ready").0, 200);
    let (_, metrics) = admin_page(&server, "/metrics");
    assert!(metrics.contains("larimar_requests_total{operation=\"InsertEntity\",status=\"201\"} 1\n"), "{metrics}");
    assert!(metrics.contains("larimar_open_connections 1\n"), "{metrics}");
    let commits = metrics.lines().find_map(|line| line.strip_prefix("larimar_commit_writes_count "));
    assert!(commits.and_then(|count| count.parse::<u64>().ok()).is_some_and(|count| count >= 1), "{metrics}");
    let (again, status) = server.stop();
    assert_eq!(status.code(), Some(0));
    let server = again.start();
    server.client().get(&http::entity_path("kept", "p", "r")).send().is_status(200);
}

#[test]
fn a_request_in_flight_finishes_after_the_signal() {
    let folder = folder();
    let mut server = launch(&folder).start();
    let client = server.client();
    client.create_table("late");
    let request = client.post("/late", entity("p", "r", "")).header("Expect", "100-continue").to_bytes();
    let (head, body) = split(&request);
    let mut stream = connect(server.table_address());
    stream.write_all(head).expect("the head is sent");
    // The server asks for the body: the request is in the handler.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).expect("an interim answer");
    assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.ask_to_stop();
    wait_until_refused(server.table_address());
    stream.write_all(body).expect("the body is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer and the end");
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    line_of(&server, |line| line.ends_with("shut down"));
    wait_for_end(&mut server);
    let server = launch(&folder).start();
    server.client().get(&http::entity_path("late", "p", "r")).send().is_status(200);
}

#[test]
fn accounts_of_the_environment_replace_the_development_account() {
    let folder = folder();
    let accounts = "alpha:YWxwaGE=:YWxwaGEy;beta:YmV0YQ==";
    let server = launch(&folder).environment("AZURITE_ACCOUNTS", accounts).start();
    let client = server.client();
    for (account, key) in [("alpha", "YWxwaGE="), ("alpha", "YWxwaGEy"), ("beta", "YmV0YQ==")] {
        client.of_account(account, key).get("/Tables").send().is_status(200);
    }
    client.of_account("alpha", "YmV0YQ==").get("/Tables").send().is_status(403);
    assert_ne!(client.get("/Tables").send().status, 200, "the development account is not there");
    let text = server.output();
    assert!(!text.contains("YWxwaGE"), "{text}");
}

#[test]
fn log_lines_can_be_json_and_carry_the_request_id() {
    let folder = folder();
    let launch = launch(&folder).argument("--log-format=json").argument("--log-level=debug");
    let server = launch.start();
    let reply = server.client().get("/Tables").send();
    let id = reply.header("x-ms-request-id").expect("a request id").to_owned();
    let line = line_of(&server, |line| line.starts_with('{') && line.contains(&id));
    assert!(line.ends_with('}') && line.contains("\"level\":"), "{line}");
}

/// The reader of the log may be gone, or its disk full.
#[cfg(target_os = "linux")]
#[test]
fn a_server_goes_on_without_its_log() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let script = folder.path().join("quiet");
    std::fs::write(&script, format!("#!/bin/sh\nexec {EXE} \"$@\" 2>/dev/full\n")).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).expect("rights");
    let program = script.to_str().expect("text");
    let server = Launch::new(program, folder.path().join("data")).argument("--log-level").argument("debug").start();
    for number in 0..3 {
        server.client().create_table(&format!("people{number}"));
    }
    server.client().get("/Tables").send().is_status(200);
}

#[test]
fn the_log_line_of_a_request_that_is_not_implemented_names_method_and_operation() {
    let folder = folder();
    let server = launch(&folder).start();
    let blobs = server.blobs();
    blobs.put("/box?restype=container", "").send().is_status(201);
    blobs.put("/box/a", "x").header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    blobs.post("/box/a?comp=query", "<QueryRequest/>").send().is_status(501);
    let line = line_of(&server, |line| line.contains("could not serve"));
    assert!(line.contains("POST") && line.contains("query") && !line.contains("Unknown"), "{line}");
}

/// Standard error may be a pipe that is open but not read. Requests do not wait for it.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_is_not_read_does_not_stall_requests() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let (pipe, script) = (folder.path().join("log"), folder.path().join("unread"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    // Open for both, so that neither side waits for the other.
    let mut log = std::fs::OpenOptions::new().read(true).write(true).open(&pipe).expect("a pipe");
    std::fs::write(&script, format!("#!/bin/sh\nexec {EXE} \"$@\" 2>{}\n", pipe.display())).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).expect("rights");
    let program = script.to_str().expect("text");
    let server = Launch::new(program, folder.path().join("data")).argument("--log-level").argument("debug").start();
    let client = server.client();
    // Each line of the log has the path. 64 KiB fit into the pipe, and 1 MiB waits in the server.
    let long = format!("/{}", "y".repeat(20_000));
    for _ in 0..100 {
        client.get(&long).send().is_status(400);
        client.get("/Tables").send().is_status(200);
    }
    // Once it is read again, the server says how many lines are missing.
    let mut text = String::new();
    let mut bytes = vec![0; 1 << 16];
    while !text.contains("log lines were dropped because standard error was not read") {
        let count = log.read(&mut bytes).expect("the log");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(text.contains("lines=") && text.len() < 4 << 20, "{} bytes", text.len());
    // Nor does the end of the server wait for it.
    for _ in 0..100 {
        client.get(&long).send().is_status(400);
    }
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn wrong_settings_are_refused_before_anything_happens() {
    let folder = folder();
    let file = |text: &str| std::fs::write(folder.path().join("larimar.toml"), text).expect("a file");
    let refused = |arguments: &[&str], environment: &[(&str, &str)], expected: &str| {
        let output = run(folder.path(), arguments, environment);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{expected:?} in {said:?}");
        assert!(!folder.path().join("larimar-data").exists(), "no data folder for {expected:?}");
    };
    refused(&["--table-port", "x"], &[], "setting table_port (flag --table-port): expected a port number");
    refused(&["serve"], &[("LARIMAR_DURABILITY", "fast")], "setting durability (environment LARIMAR_DURABILITY)");
    refused(&[], &[("AZURITE_ACCOUNTS", "one")], "setting accounts (environment AZURITE_ACCOUNTS)");
    refused(&["--config", "none.toml"], &[], "cannot read the configuration file none.toml: ");
    refused(&["--tls-certificate=no.pem", "--tls-key=no.pem"], &[], "tls_certificate: cannot read no.pem");
    refused(&["--no-such-flag"], &[], "--no-such-flag");
    file("strickt = true");
    refused(&[], &[], "setting strickt (file larimar.toml): there is no such setting");
}

#[test]
fn config_prints_the_effective_settings_without_secrets() {
    let folder = folder();
    std::fs::write(folder.path().join("larimar.toml"), "strict = true\naccounts = 'one:c2VjcmV0'").expect("a file");
    let output = run(folder.path(), &["config", "--table-port", "5"], &[("LARIMAR_QUEUE_PORT", "6")]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0));
    for line in [
        "strict = true # file larimar.toml",
        "table_port = 5 # flag --table-port",
        "queue_port = 6 # environment LARIMAR_QUEUE_PORT",
        "blob_port = 10000 # default",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(
        text.contains("\n# accounts: one with a key (file larimar.toml)\n") && !text.contains("c2VjcmV0"),
        "{text}"
    );
    let version = run(folder.path(), &["--version"], &[]);
    assert_eq!(String::from_utf8_lossy(&version.stdout), format!("larimar {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_port_in_use_and_a_folder_in_use_are_told() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("a bound socket").port().to_string();
    let output = run(folder.path(), &["--table-port", &port, "--admin=false"], &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&port) && said.contains("table_port"), "{said}");
    assert!(!folder.path().join("larimar-data").exists(), "the store is not touched");

    let first = launch(&folder).start();
    let said = launch(&folder).try_start().expect_err("the folder is in use");
    assert!(said.contains("another process uses") && said.contains("data_dir"), "{said}");
    first.client().get("/Tables").send().is_status(200);
}

/// The line of a server's output that has a property, once it is there.
fn line_of(server: &Server, has: impl Fn(&str) -> bool) -> String {
    for _ in 0..6000 {
        if let Some(line) = server.output().lines().find(|line| has(line)) {
            return line.to_owned();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no such line in\n{}", server.output());
}

fn wait_for_end(server: &mut Server) {
    for _ in 0..6000 {
        if !server.is_running() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the server does not end:\n{}", server.output());
}

fn wait_until_refused(address: SocketAddr) {
    for _ in 0..6000 {
        if TcpStream::connect(address).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the server still accepts connections");
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    stream
}

/// The head and the body of a request.
fn split(request: &[u8]) -> (&[u8], &[u8]) {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n").expect("a request has a head");
    request.split_at(end + 4)
}

#[test]
fn connections_that_never_ask_do_not_keep_the_server_from_ending() {
    let folder = folder();
    let server = launch(&folder).start();
    let silent = connect(server.table_address());
    let mut half = connect(server.table_address());
    half.write_all(b"GET /devstoreaccount1/Tables HTTP/1.1\r\nhost: x\r\n\r\n").expect("a request");
    half.shutdown(Shutdown::Write).expect("half of the connection closes");
    let mut first_line = String::new();
    BufReader::new(&half).read_line(&mut first_line).expect("an answer");
    assert!(first_line.starts_with("HTTP/1.1 401 "), "{first_line}");
    let (_, status) = server.stop();
    assert_eq!(status.code(), Some(0));
    drop(silent);
}

/// Runs the binary with few descriptors.
#[cfg(unix)]
fn frugal(folder: &TempDir) -> Launch {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.path().join("frugal");
    std::fs::write(&script, format!("#!/bin/sh\nulimit -n 96\nexec '{EXE}' \"$@\"\n")).expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
    Launch::new(script, folder.path().join("data"))
}

#[cfg(unix)]
#[test]
fn more_clients_than_descriptors_are_all_served() {
    let folder = folder();
    let server = frugal(&folder).start();
    let client = server.client();
    client.create_table("crowded");
    let mut crowd = Vec::new();
    for number in 0..150 {
        let mut stream = connect(server.table_address());
        let request = client.post("/crowded", entity("p", &number.to_string(), "")).to_bytes();
        stream.write_all(&request).expect("a request");
        let reply = http::read_response(&stream, true).expect("an answer");
        reply.is_status(201);
        crowd.push(stream);
    }
}

#[test]
fn a_database_that_does_not_answer_ends_the_start_and_its_password_is_not_told() {
    let folder = folder();
    // A port without a listener.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("a bound socket");
    drop(silent);
    let url = format!("postgres://larimar:sesame@{address}/larimar");
    let ports = ["--table-port=0", "--queue-port=0", "--blob-port=0", "--admin=false"];
    let output = run(folder.path(), &[&["--engine", &url], &ports[..]].concat(), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let shown = format!("cannot open postgres://larimar:***@{address}/larimar, as the setting engine says");
    assert!(said.contains(&shown) && !said.contains("sesame"), "{said}");
    assert!(output.stdout.is_empty(), "no banner");
    assert!(!folder.path().join("larimar-data").exists(), "no data folder");

    let output = run(folder.path(), &["config", "--engine", &url], &[("LARIMAR_DATABASE_PASSWORD", "sesame")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("engine = \"postgres://larimar@{address}/larimar\" # flag --engine")), "{text}");
    assert!(!text.contains("sesame"), "{text}");
}

#[test]
fn a_database_is_not_for_repair() {
    let folder = folder();
    let output = run(folder.path(), &["repair"], &[("LARIMAR_ENGINE", "postgres://larimar:sesame@db/larimar")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("setting engine (environment LARIMAR_ENGINE): expected local for this command"), "{said}");
    assert!(!said.contains("sesame"), "{said}");
}

#[test]
fn a_damaged_journal_is_told_and_repaired() {
    let folder = folder();
    let data = folder.path().join("data");
    let server = launch(&folder).start();
    let client = server.client();
    client.create_table("mended");
    client.insert("mended", "p", "first", "");
    client.insert("mended", "p", "lastmark", "");
    let again = server.kill();
    let path = damage(&data, b"lastmark");

    let said = again.try_start().expect_err("the journal is damaged");
    assert!(said.contains("larimar repair"), "{said}");
    let output = run(folder.path(), &["repair", "--data-dir", "data"], &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("cut at the damage") && said.contains(&path), "{said}");

    let server = again.start();
    server.client().get(&http::entity_path("mended", "p", "first")).send().is_status(200);
    server.client().get(&http::entity_path("mended", "p", "lastmark")).send().is_status(404);
    let output = run(folder.path(), &["repair", "--data-dir", "data"], &[]);
    assert_eq!(output.status.code(), Some(1), "a folder in use is left alone");
    let output = run(folder.path(), &["repair", "--data-dir", "elsewhere"], &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no directory elsewhere"));
}

/// Flips a bit in the last place where a store's files hold these bytes; the name of that file.
fn damage(data: &Path, mark: &[u8]) -> String {
    for entry in std::fs::read_dir(data.join("store")).expect("a store") {
        let path = entry.expect("an entry").path();
        let Ok(mut bytes) = std::fs::read(&path) else { continue };
        if let Some(place) = bytes.windows(mark.len()).rposition(|window| window == mark) {
            bytes[place] ^= 1;
            std::fs::write(&path, bytes).expect("the file is ours");
            return path.file_name().expect("a file").to_string_lossy().into_owned();
        }
    }
    panic!("no file of the store holds the mark");
}
