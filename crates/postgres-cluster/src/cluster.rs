//! A cluster that a test starts, stops, pauses and starts again. It is removed when the value is dropped.

use crate::database::{Database, in_schema};
use crate::home::{Home, output_of};
use crate::{Binaries, SHARED_VARIABLE, USER};
use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// A running cluster. It dereferences to a [`Database`]. It is removed with its directory when dropped, and also when
/// the process is killed.
#[derive(Debug)]
pub struct Cluster {
    database: Database,
    pub(crate) home: Home,
    authority: Authority,
    paused: AtomicBool,
}

/// What a cluster has besides the defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Certificate and key in PEM; connections without TLS are then refused.
    pub tls: Option<(&'a str, &'a str)>,
    /// The superuser's password; without one, all users of this machine are trusted.
    pub password: Option<&'a str>,
    /// Settings by name, as in `postgresql.conf`.
    pub settings: &'a [(&'a str, &'a str)],
}

/// How a cluster is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Like a crash: connections are cut, and the next start recovers from the log.
    Immediate,
    /// Transactions are rolled back and connections closed; then everything is written to disk.
    Fast,
}

/// The user and password part of a URL.
#[derive(Clone, Debug)]
pub(crate) struct Authority(String);

impl Cluster {
    /// The cluster that all tests of this process share; it is removed at the end of the process. If
    /// `LARIMAR_TEST_POSTGRES` is the URL of a running cluster, that one is used.
    ///
    /// # Panics
    /// If there is none and it does not start.
    #[must_use]
    pub fn shared() -> &'static Database {
        static SHARED: OnceLock<Shared> = OnceLock::new();
        match SHARED.get_or_init(Shared::find) {
            Shared::Running(database) => database,
            Shared::Ours(cluster) => cluster,
        }
    }

    /// Starts a cluster.
    ///
    /// # Panics
    /// If it does not start, with PostgreSQL's error.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&Options::default())
    }

    /// Starts a cluster with TLS, a password, or settings.
    ///
    /// # Panics
    /// If it does not start, with PostgreSQL's error.
    #[must_use]
    pub fn start_with(options: &Options<'_>) -> Self {
        let started = find_binaries().and_then(|binaries| Self::try_start(&binaries, options));
        started.unwrap_or_else(|said| panic!("the cluster did not start: {said}"))
    }

    /// Starts a cluster with these programs.
    ///
    /// # Errors
    /// PostgreSQL's error if it does not start.
    pub fn try_start(binaries: &Binaries, options: &Options<'_>) -> Result<Self, String> {
        let mut home = Home::create(binaries)?;
        home.initialise(options)?;
        home.start_somewhere()?;
        Ok(Self::new(home, Authority::new(options.password)))
    }

    fn new(home: Home, authority: Authority) -> Self {
        let url = format!("postgres://{}@127.0.0.1:{}/postgres", authority.0, home.port);
        let database = Database::new(url, home.binaries.clone());
        Self { database, home, authority, paused: AtomicBool::new(false) }
    }

    /// Another cluster with the same user and password, from a directory that is ready to start.
    pub(crate) fn sibling(&self, home: Home) -> Self {
        Self::new(home, self.authority.clone())
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.home.port
    }

    /// One URL for several clusters, a primary and its standbys: clients use the one that accepts writes.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn urls(clusters: &[&Self]) -> String {
        let authority = &clusters.first().expect("at least one cluster").authority.0;
        let hosts: Vec<String> = clusters.iter().map(|cluster| format!("127.0.0.1:{}", cluster.port())).collect();
        format!("postgres://{authority}@{}/postgres?target_session_attrs=read-write", hosts.join(","))
    }

    /// [`Self::urls`] with a new, empty schema, created on the first.
    ///
    /// # Panics
    /// If there are none, or the first does not answer.
    #[must_use]
    pub fn fresh_urls(clusters: &[&Self]) -> String {
        let urls = Self::urls(clusters);
        in_schema(&urls, &clusters.first().expect("at least one cluster").fresh_schema())
    }

    /// Stops the cluster and waits until it has stopped; its files and its port stay.
    ///
    /// # Panics
    /// If it does not stop.
    pub fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Immediate => "immediate",
            Stop::Fast => "fast",
        };
        self.control(&["stop", "--wait", "--silent", "--mode", mode]);
    }

    /// Starts a stopped cluster on its port, and waits until it accepts connections.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_again(&self) {
        self.home.start().unwrap_or_else(|said| panic!("the cluster did not start again: {said}"));
    }

    /// Stops the cluster in an orderly way and starts it again.
    ///
    /// # Panics
    /// If it does not stop or start.
    pub fn restart(&self) {
        self.stop(Stop::Fast);
        self.start_again();
    }

    /// Runs a shell script as the user of the cluster and returns what it prints. PostgreSQL's programs are on the search path,
    /// and variables name this cluster.
    ///
    /// # Panics
    /// If it fails, with its error output.
    pub fn shell(&self, script: &str) -> String {
        let mut shell = self.home.shell();
        shell.args(["-e", "-u", "-c", script]).env("PGHOST", "127.0.0.1").env("PGPORT", self.port().to_string());
        shell.env("PGUSER", USER).env("PGDATABASE", "postgres").env("PGDATA", self.home.data());
        output_of(&mut shell).unwrap_or_else(|said| panic!("{script}\n{said}"))
    }

    /// Suspends every process of the cluster, like a machine that hangs: connections stay open and nothing is answered.
    /// Needs `/proc`.
    ///
    /// # Panics
    /// If the cluster is stopped.
    pub fn pause(&self) {
        self.paused.store(true, Ordering::Relaxed);
        let postmaster = self.home.postmaster().expect("the cluster runs");
        signal("STOP", &[postmaster]);
        // Their parent is suspended, so there will be no more of them.
        signal("STOP", &children_of(postmaster));
    }

    /// Resumes a paused cluster.
    ///
    /// # Panics
    /// If the cluster is stopped.
    pub fn resume(&self) {
        let postmaster = self.home.postmaster().expect("the cluster runs");
        signal("CONT", &children_of(postmaster));
        signal("CONT", &[postmaster]);
        self.paused.store(false, Ordering::Relaxed);
    }

    /// `pg_ctl` that must succeed.
    pub(crate) fn control(&self, arguments: &[&str]) {
        self.home.control(arguments, None).unwrap_or_else(|said| panic!("{said}"));
    }
}

impl std::ops::Deref for Cluster {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Suspended processes would not end, and the others would wait for them.
        if self.paused.load(Ordering::Relaxed) && self.home.postmaster().is_some() {
            self.resume();
        }
    }
}

/// The cluster that the tests of a process share.
#[derive(Debug)]
enum Shared {
    Running(Database),
    Ours(Cluster),
}

impl Shared {
    fn find() -> Self {
        let Some(url) = env::var(SHARED_VARIABLE).ok().filter(|url| !url.is_empty()) else {
            return Self::Ours(Cluster::start());
        };
        let binaries = find_binaries().unwrap_or_else(|why| panic!("{why}"));
        Self::Running(Database::new(url, binaries))
    }
}

fn find_binaries() -> Result<Binaries, String> {
    Binaries::find().ok_or_else(|| "there is no PostgreSQL 15 or newer on this machine".to_owned())
}

impl Authority {
    fn new(password: Option<&str>) -> Self {
        Self(password.map_or_else(|| USER.to_owned(), |password| format!("{USER}:{}", escaped(password))))
    }
}

/// Percent-encodes everything but letters and digits, for a URL.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(escape).collect()
}

fn children_of(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Sends a signal. Processes that have ended are ignored.
fn signal(name: &str, pids: &[u32]) {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    // The shell has `kill` built in; the program `kill` is not on every machine.
    let script = format!("kill -{name} {}", pids.join(" "));
    let _ = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_escaped_in_a_url() {
        assert_eq!(Authority::new(None).0, "larimar");
        assert_eq!(Authority::new(Some("p@ss:1")).0, "larimar:p%40ss%3A1");
    }
}
