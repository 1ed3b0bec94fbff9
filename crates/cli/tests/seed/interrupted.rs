//! A filling that is killed is never taken for complete.

use super::{EXE, folder, has_logged, launch, lines, tables, write};
use larimar_testkit::http::{self, Response};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Takes seconds in a build without optimisation.
const ROWS: usize = 15_000;
const LIMIT: Duration = Duration::from_secs(60);

/// A server that is being filled, with the addresses of its table service and its admin endpoint.
struct Filling {
    child: Child,
    table: SocketAddr,
    admin: SocketAddr,
}

impl Filling {
    fn start(folder: &TempDir) -> Self {
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let [table, admin] = sockets.map(|socket| socket.local_addr().expect("an address"));
        let mut command = Command::new(EXE);
        command.args(["serve", "--engine=local", "--queue=false", "--blob=false", "--log-level=warn"]);
        command.arg(format!("--data-dir={}", folder.path().join("data").display()));
        command.arg(format!("--seed={}", folder.path().join("files").display()));
        command.args([format!("--table-port={}", table.port()), format!("--admin-port={}", admin.port())]);
        let child = command.stdout(Stdio::null()).spawn().expect("a process");
        Self { child, table, admin }
    }

    fn ask(&self, target: &str) -> Option<Response> {
        let request = format!("GET {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.admin);
        // As the page of the console sends it.
        http::exchange(self.admin, format!("{request}x-larimar-console: 1\r\n\r\n").as_bytes()).ok()
    }

    /// Waits until rows are being written.
    fn wait(&mut self) {
        let started = Instant::now();
        loop {
            assert!(self.child.try_wait().expect("a process").is_none(), "it ended");
            assert!(started.elapsed() < LIMIT, "it is not filled");
            let is_filling =
                |answer: Response| answer.status == 503 && answer.text().contains("the store is being filled");
            let has_commits = || self.ask("/metrics").is_some_and(|answer| commits(answer.text()) > 10);
            if self.ask("/ready").is_some_and(is_filling) && has_commits() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("a process");
    }
}

/// How many commits the store has made.
fn commits(metrics: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix("larimar_commit_writes_count "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn a_filling_that_was_killed_is_repeated_at_the_next_start() {
    let folder = folder();
    write(&folder, "Before.jsonl", lines(10));
    write(&folder, "Orders.jsonl", lines(ROWS));
    for _ in 0..2 {
        let mut filling = Filling::start(&folder);
        filling.wait();
        filling.kill();
        // Also without the seed it is not taken for complete.
        let without = larimar_testkit::Launch::new(EXE, folder.path().join("data")).engine("local");
        let said = without.try_start().map(|_| ()).expect_err("refused");
        assert!(said.contains("holds only a part"), "{said}");
        let data = folder.path().join("data");
        let migrate = Command::new(EXE)
            .arg("migrate")
            .arg("--from")
            .arg(&data)
            .arg("--to")
            .arg(folder.path().join("copy"))
            .output();
        let said = String::from_utf8_lossy(&migrate.expect("the binary runs").stderr).into_owned();
        assert!(said.contains("holds only a part") && said.contains("nothing was copied"), "{said}");
    }
    let server = launch(&folder).engine("local").start();
    let found = tables(&server);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["Before", "Orders"]);
    assert_eq!((found["Before"].len(), found["Orders"].len()), (10, ROWS));
    let numbers = found["Orders"].iter().map(|row| row["Number"].as_u64());
    assert!(numbers.eq((0..ROWS as u64).map(Some)), "every row as it is in the file");
    let server = server.kill().start();
    has_logged(&server, "the store is not empty");
}

#[test]
fn no_client_is_answered_before_the_store_is_filled() {
    let folder = folder();
    write(&folder, "Orders.jsonl", lines(ROWS));
    let mut filling = Filling::start(&folder);
    filling.wait();
    for (target, status) in
        [("/health", 200), ("/", 200), ("/console.json", 503), ("/table/devstoreaccount1/Tables?sig=x", 503)]
    {
        assert_eq!(filling.ask(target).expect("an answer").status, status, "{target}");
    }
    let mut client = TcpStream::connect(filling.table).expect("the connection waits");
    client.write_all(b"GET /devstoreaccount1/Tables HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("a request");
    client.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    let error = client.read(&mut [0]).expect_err("no answer yet");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
    // It is answered when the store is filled.
    client.set_read_timeout(Some(LIMIT)).expect("a timeout");
    assert_eq!(client.read(&mut [0]).expect("an answer"), 1);
    assert_eq!(filling.ask("/ready").expect("an answer").status, 200);
    filling.kill();
}

/// A signal ends the filling, as it ends a server.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_filling() {
    let folder = folder();
    write(&folder, "Orders.jsonl", lines(ROWS));
    let mut filling = Filling::start(&folder);
    filling.wait();
    let status = Command::new("kill").args(["-TERM", &filling.child.id().to_string()]).status().expect("a shell");
    assert!(status.success());
    assert_eq!(filling.child.wait().expect("a process").code(), Some(130));
}
