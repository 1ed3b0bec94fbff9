//! Several servers over one database, and clients of each.

use larimar_testkit::history::{Load, Targets, Totals, Versions};
use larimar_testkit::http::Client;
use larimar_testkit::{Dice, Launch, Server};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) const SERVERS: usize = 3;
const CLIENTS: usize = 6;
/// The table that loads use.
pub(crate) const TABLE: &str = "history";
/// How long something may take that another server or the database is to bring about.
pub(crate) const EVENTUALLY: Duration = Duration::from_secs(60);

/// How many fleets run at a time, however many tests do: each server opens up to 32 connections, the cluster has 300.
const FLEETS_MAX: usize = 3;

/// Servers that share a database.
pub(crate) struct Fleet {
    servers: Vec<Server>,
    targets: Arc<Targets>,
    _folder: tempfile::TempDir,
    _berth: Berth,
}

/// The right to run a fleet.
struct Berth;

static BERTHS: (Mutex<usize>, Condvar) = (Mutex::new(FLEETS_MAX), Condvar::new());

impl Berth {
    fn take() -> Self {
        let free = BERTHS.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = BERTHS.1.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Self
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        *BERTHS.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        BERTHS.1.notify_one();
    }
}

impl Fleet {
    /// Starts the servers at once on an empty database.
    pub(crate) fn start(url: &str) -> Self {
        Self::start_each(&[url; SERVERS].map(str::to_owned), &[])
    }

    /// Starts a server for each of these ways to the database, with these further arguments.
    pub(crate) fn start_each(urls: &[String], arguments: &[&str]) -> Self {
        let berth = Berth::take();
        let folder = tempfile::tempdir().expect("a folder");
        let start = |(number, url): (usize, &String)| {
            let data = folder.path().join(format!("data{number}"));
            let launch = Launch::new(env!("CARGO_BIN_EXE_larimar"), data).engine(url);
            arguments.iter().fold(launch, |launch, argument| launch.argument(*argument)).start()
        };
        // At the same time, since they all find that the tables are to be made.
        let servers: Vec<Server> = std::thread::scope(|scope| {
            let threads: Vec<_> = urls.iter().enumerate().map(|one| scope.spawn(move || start(one))).collect();
            threads.into_iter().map(|thread| thread.join().expect("the server starts")).collect()
        });
        let targets = Targets::new(servers.iter().map(Server::table_address));
        Self { servers, targets, _folder: folder, _berth: berth }
    }

    /// A client of one of the servers.
    pub(crate) fn client(&self, number: usize) -> Client {
        self.servers[number % self.servers.len()].client()
    }

    /// A client of the queues of one of the servers.
    pub(crate) fn queues(&self, number: usize) -> Client {
        self.servers[number % self.servers.len()].queues()
    }

    /// A client of the blobs of one of the servers.
    pub(crate) fn blobs(&self, number: usize) -> Client {
        self.servers[number % self.servers.len()].blobs()
    }

    /// A client of each server.
    pub(crate) fn clients(&self) -> Vec<Client> {
        self.servers.iter().map(Server::client).collect()
    }

    /// Kills a server and starts it again.
    pub(crate) fn kill(&mut self, number: usize) {
        let server = self.servers.remove(number);
        self.servers.insert(number, server.kill().start());
        self.targets.set(number, self.servers[number].table_address());
    }

    /// Starts clients on a new table.
    pub(crate) fn load(&self, seed: u64) -> Load {
        self.client(0).create_table(TABLE);
        Load::start(&self.targets, TABLE, Versions::RiseUntilDeleted, CLIENTS, seed)
    }

    /// Shows what the servers wrote, when a test has failed.
    fn print(&self) {
        for (number, server) in self.servers.iter().enumerate() {
            let output = server.output();
            let lines: Vec<&str> = output.lines().filter(|line| !line.contains("warning of the database")).collect();
            let last = lines[lines.len().saturating_sub(25)..].join("\n");
            println!("--- server {number}\n{last}");
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print();
        }
    }
}

/// How many rounds a load takes.
pub(crate) fn rounds() -> u64 {
    std::env::var("LARIMAR_ROUNDS").ok().map_or(3, |text| text.parse().expect("LARIMAR_ROUNDS is a number"))
}

/// The seed of a run, printed so that the run can be repeated.
pub(crate) fn seed() -> u64 {
    let seed = Dice::seed("LARIMAR_TEST_SEED");
    println!("LARIMAR_TEST_SEED={seed}");
    seed
}

/// Prints what a load did, and checks that it did something.
pub(crate) fn report(totals: &Totals) {
    println!("{totals:?}");
    assert!(totals.done > 0 && totals.refused > 0, "clients were served and met each other: {totals:?}");
    assert!(totals.longest < Duration::from_secs(30), "a client had to wait for long: {totals:?}");
}

/// Runs work for several clients at once, spread over the servers, and returns their results.
pub(crate) fn together<R: Send>(fleet: &Fleet, clients: usize, work: impl Fn(&Client, usize) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (client, work) = (fleet.client(number), &work);
                scope.spawn(move || work(&client, number))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Waits for something that is to come about by itself.
#[track_caller]
pub(crate) fn eventually(what: &str, within: Duration, is_so: impl Fn() -> bool) {
    let until = Instant::now() + within;
    while !is_so() {
        assert!(Instant::now() < until, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
