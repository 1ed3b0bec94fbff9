//! The built server as a process: started on free ports, killed, stopped with SIGTERM, started again.
//!
//! The process is what a user runs, so tests see what users see. It ends with the fixture. With
//! `LARIMAR_TEST_ENGINE=postgres` in the environment every server runs on PostgreSQL, in a schema of its own, so one
//! suite serves for both engines.

use crate::http::Client;
use crate::postgres::Cluster;
use larimar_wire::sas::Service;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// How long the server may take to start, or to end.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Names the engine that servers run on when a test does not say.
const ENGINE_VARIABLE: &str = "LARIMAR_TEST_ENGINE";

/// What to start. Started again, it finds its data again.
#[derive(Clone, Debug)]
pub struct Launch {
    exe: PathBuf,
    data: PathBuf,
    engine: Option<String>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    launch: Launch,
    child: Child,
    table: Option<SocketAddr>,
    queue: Option<SocketAddr>,
    blob: Option<SocketAddr>,
    admin: SocketAddr,
    output: Arc<Mutex<String>>,
}

impl Launch {
    /// The executable on a data folder, or on PostgreSQL if `LARIMAR_TEST_ENGINE` says so. Tests of the binary have it
    /// as `env!("CARGO_BIN_EXE_larimar")`.
    ///
    /// # Panics
    /// If `LARIMAR_TEST_ENGINE` names an engine that there is not.
    #[must_use]
    pub fn new(exe: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        let engine = match std::env::var(ENGINE_VARIABLE).as_deref() {
            Err(_) | Ok("") => None,
            Ok("postgres") => Some(Cluster::shared().fresh_url()),
            Ok(other) => panic!("{ENGINE_VARIABLE} is {other:?}; it may be \"postgres\""),
        };
        Self { exe: exe.into(), data: data.into(), engine, arguments: Vec::new(), environment: Vec::new() }
    }

    /// Runs the server on the database of this URL.
    #[must_use]
    pub fn engine(mut self, url: impl Into<String>) -> Self {
        self.engine = Some(url.into());
        self
    }

    /// Adds an argument of `serve`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The data folder.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The URL of the database, if the server is to run on one.
    #[must_use]
    pub fn database(&self) -> Option<&str> {
        self.engine.as_deref().filter(|engine| engine.contains("://"))
    }

    /// The runtime directory of the server's user.
    #[must_use]
    pub fn runtime_directory(&self) -> PathBuf {
        self.data.with_extension("runtime")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.exe);
        command.args(["serve", "--host", "127.0.0.1", "--data-dir"]).arg(&self.data);
        for port in ["--table-port", "--queue-port", "--blob-port", "--admin-port"] {
            command.args([port, "0"]);
        }
        if let Some(engine) = &self.engine {
            command.args(["--engine", engine]);
        }
        if self.database().is_some() {
            // The database has no place for the bytes of blobs; all servers of a test share a folder.
            let store = format!("file://{}", self.data.with_extension("blobs").display());
            command.args(["--blob-store", &store]);
        }
        // Where servers without a data directory write their admin tokens.
        command.env("XDG_RUNTIME_DIR", self.runtime_directory());
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the server and waits until it has printed its addresses.
    ///
    /// # Panics
    /// If it does not start, with its output.
    #[must_use]
    pub fn start(&self) -> Server {
        match self.try_start() {
            Ok(server) => server,
            Err(said) => panic!("the server did not start:\n{said}"),
        }
    }

    /// Starts the server, or returns its output if it ended instead.
    ///
    /// # Errors
    /// What the server wrote before it ended.
    pub fn try_start(&self) -> Result<Server, String> {
        let mut child = self.command().spawn().unwrap_or_else(|error| panic!("{}: {error}", self.exe.display()));
        let output = Arc::new(Mutex::new(String::new()));
        let (tell, lines) = mpsc::channel();
        let streams: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().expect("stdout is piped")),
            Box::new(child.stderr.take().expect("stderr is piped")),
        ];
        for stream in streams {
            let (output, tell) = (Arc::clone(&output), tell.clone());
            // Ends when the process does, since the pipe then closes.
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = writeln!(output.lock().expect("no panic while locked"), "{line}");
                    let _ = tell.send(line);
                }
            });
        }
        drop(tell);
        let (mut table, mut queue, mut blob, mut admin) = (None, None, None, None);
        let until = Instant::now() + WAIT_MAX;
        while let Ok(line) = lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            table = table.or_else(|| address_after(&line, "table"));
            queue = queue.or_else(|| address_after(&line, "queue"));
            blob = blob.or_else(|| address_after(&line, "blob"));
            admin = admin.or_else(|| address_after(&line, "admin"));
            // The address of the admin endpoint is printed last.
            if let Some(admin) = admin {
                return Ok(Server { launch: self.clone(), child, table, queue, blob, admin, output });
            }
        }
        let _ = child.kill();
        let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let said = output.lock().expect("no panic while locked").clone();
        Err(format!("{said}\n({status})"))
    }
}

impl Server {
    /// A client of the development account's tables.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.table_address())
    }

    /// A client of the development account's queues.
    #[must_use]
    pub fn queues(&self) -> Client {
        Client::of_service(self.queue_address(), Service::Queue)
    }

    /// A client of the development account's blobs.
    #[must_use]
    pub fn blobs(&self) -> Client {
        Client::of_service(self.blob_address(), Service::Blob)
    }

    /// Where the Table service listens.
    #[must_use]
    pub fn table_address(&self) -> SocketAddr {
        self.table.expect("tables are served")
    }

    /// Where the Queue service listens.
    #[must_use]
    pub fn queue_address(&self) -> SocketAddr {
        self.queue.expect("queues are served")
    }

    /// Where the Blob service listens.
    #[must_use]
    pub fn blob_address(&self) -> SocketAddr {
        self.blob.expect("blobs are served")
    }

    /// Where health and metrics are.
    #[must_use]
    pub const fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// The data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.launch.data.clone()
    }

    /// The runtime directory of the server's user.
    #[must_use]
    pub fn runtime_directory(&self) -> PathBuf {
        self.launch.runtime_directory()
    }

    /// The process's number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All that the server wrote so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.lock().expect("no panic while locked").clone()
    }

    /// Whether the process still runs.
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child is ours").is_none()
    }

    /// Kills the process, as `kill -9` does, and returns how to start it again.
    pub fn kill(mut self) -> Launch {
        self.child.kill().expect("the child is ours");
        self.child.wait().expect("the child is ours");
        self.launch.clone()
    }

    /// Sends SIGTERM and waits until the process has ended.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn stop(mut self) -> (Launch, ExitStatus) {
        self.ask_to_stop();
        let until = Instant::now() + WAIT_MAX;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                return (self.launch.clone(), status);
            }
            assert!(Instant::now() < until, "the server does not end:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends SIGTERM and does not wait.
    pub fn ask_to_stop(&self) {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill did not run");
    }
}

/// A running server on a directory of its own, which is removed with it.
#[derive(Debug)]
pub struct TemporaryServer {
    server: Server,
    _folder: tempfile::TempDir,
}

impl TemporaryServer {
    /// Starts the executable with these further arguments of `serve`.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start(exe: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let launch = Launch::new(exe, folder.path().join("data"));
        let launch = arguments.iter().fold(launch, |launch, argument| launch.argument(*argument));
        Self { server: launch.start(), _folder: folder }
    }
}

impl std::ops::Deref for TemporaryServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address of the URL in the line about this service.
fn address_after(line: &str, service: &str) -> Option<SocketAddr> {
    let folded = line.to_ascii_lowercase();
    let rest = folded.trim_start().strip_prefix(service)?.strip_prefix(" endpoint")?;
    let (_, rest) = rest.split_once("://")?;
    let end = rest.find(|c: char| c == '/' || c.is_whitespace()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}
