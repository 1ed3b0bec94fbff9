//! A server that archives its commits is written to, backed up, killed and started again. A restore to a moment has
//! everything that was acknowledged before it, and nothing that began after it: etags, whole transactions, bytes of blobs.
//!
//! `LARIMAR_ROUNDS` sets the number of rounds, `LARIMAR_TEST_SEED` repeats a run's choices:
//!
//! ```sh
//! LARIMAR_ROUNDS=200 cargo test -p larimar --test suite moments:: -- --nocapture
//! ```

mod network;
#[path = "../../../bytes/tests/stores/s3.rs"]
pub(crate) mod s3;
mod writers;

use larimar_engine::{Clock as _, SystemClock};
use larimar_model::Timestamp;
use larimar_testkit::http::Client;
use larimar_testkit::{Dice, Launch, Server};
use network::Network;
use s3::BUCKET;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use writers::{CONTAINER, Kind, TABLE, View, Writer, listed};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// What a writer did.
struct Ledger {
    writer: Writer,
    steps: Vec<Step>,
    /// When the request began that has no answer.
    under_way: Option<Timestamp>,
}

/// A change, and what clients see after it.
struct Step {
    began: Timestamp,
    acknowledged: Timestamp,
    after: View,
}

impl Ledger {
    fn new(kind: Kind, name: String) -> Self {
        let start = Timestamp::from_ticks(0);
        let steps = vec![Step { began: start, acknowledged: start, after: View::new() }];
        Self { writer: Writer { kind, name }, steps, under_way: None }
    }

    fn last(&self) -> &View {
        &self.steps.last().expect("a first step").after
    }

    /// Writes until the flag is set or the server is gone.
    fn write(&mut self, client: &Client, is_over: &AtomicBool, mut dice: Dice) {
        while !is_over.load(SeqCst) {
            let began = SystemClock.now();
            match self.writer.step(client, self.last(), &mut dice) {
                Ok(after) => self.steps.push(Step { began, acknowledged: SystemClock.now(), after }),
                Err(_) => return self.under_way = Some(began),
            }
            std::thread::sleep(Duration::from_millis(dice.below(12)));
        }
    }

    /// After a restart, the request under way has left its change or nothing.
    fn settle(&mut self, server: &Server) {
        let seen = self.writer.seen(&self.writer.client(server));
        match self.under_way.take() {
            None => assert!(seen == listed(self.writer.kind, self.last()), "{:?}: a write was lost", self.writer),
            // It may be there, or not.
            Some(_) if seen == listed(self.writer.kind, self.last()) => {}
            Some(began) => self.steps.push(Step { began, acknowledged: SystemClock.now(), after: seen }),
        }
    }

    /// Compares with a server that was restored to a moment.
    fn check(&self, server: &Server, moment: Timestamp) {
        let client = self.writer.client(server);
        let certain = self.steps.iter().rposition(|step| step.acknowledged <= moment).expect("the first step");
        // The request that was under way may be in it.
        let possible = self.steps[certain..].iter().enumerate();
        let possible = possible.filter(|(number, step)| *number == 0 || step.began <= moment);
        let seen = self.writer.seen(&client);
        let found = possible.map(|(_, step)| &step.after).find(|view| listed(self.writer.kind, view) == seen);
        let Some(found) = found else {
            let (shown, expected) = (shown(&seen), shown(&self.steps[certain].after));
            panic!("{:?} at {moment}, step {certain}:\n{shown}\nexpected:\n{expected}", self.writer);
        };
        if self.writer.kind == Kind::Queue {
            self.writer.use_receipts(&client, found);
        }
    }
}

fn shown(view: &View) -> String {
    let lines = view.iter().map(|(name, item)| format!("  {name} {} {} bytes\n", item.tag, item.content.len()));
    lines.collect()
}

/// A time to restore to.
struct Moment {
    time: Timestamp,
    /// Whether it is so near to the kill that the archive may have a gap there.
    is_near_kill: bool,
}

impl Moment {
    fn now(is_near_kill: bool) -> Self {
        Self { time: SystemClock.now(), is_near_kill }
    }
}

fn pause(dice: &mut Dice, milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds / 2 + dice.below(milliseconds)));
}

/// Runs all writers while something happens.
fn load<T>(server: Server, ledgers: &mut [Ledger], dice: &mut Dice, happens: impl FnOnce(Server, &mut Dice) -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for ledger in ledgers {
            let (client, dice, is_over) = (ledger.writer.client(&server), Dice::new(dice.next()), &is_over);
            scope.spawn(move || ledger.write(&client, is_over, dice));
        }
        let happened = happens(server, dice);
        is_over.store(true, SeqCst);
        happened
    })
}

/// Where backups and the archive go.
struct Archive<'a> {
    place: &'a str,
    variables: &'a [(&'static str, String)],
    /// What is between the server and the place.
    network: Option<&'a Network>,
}

impl Archive<'_> {
    fn launch(&self, data: &Path) -> Launch {
        let launch = Launch::new(EXE, data).engine("local").argument("--analytics-flush").argument("1h");
        let launch = launch.argument("--archive").argument(self.place);
        self.variables.iter().fold(launch, |launch, (name, value)| launch.environment(name, value))
    }

    fn larimar(&self, arguments: &[&str]) -> Output {
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        Command::new(EXE).args(arguments).envs(variables).output().expect("the binary runs")
    }

    fn back_up(&self, server: &Server) {
        let (data, port) = (server.data().display().to_string(), server.admin_address().port().to_string());
        let output = self.larimar(&["backup", self.place, "--rate", "max", "--data-dir", &data, "--admin-port", &port]);
        // Over a network that fails it may end in an error.
        let is_backed_up = output.status.success() || self.network.is_some();
        assert!(is_backed_up, "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// One round in a folder; returns how many moments were restored.
    fn play(&self, folder: &Path, dice: &mut Dice) -> usize {
        let server = self.launch(&folder.join("data")).start();
        server.client().create_table(TABLE);
        server.blobs().request("PUT", &format!("/{CONTAINER}?restype=container")).send().is_status(201);
        let queue = |server: &Server, name: &str| {
            server.queues().request("PUT", &format!("/{name}")).send().is_status(201);
            Ledger::new(Kind::Queue, name.to_owned())
        };
        let mut ledgers = vec![queue(&server, "jobs"), Ledger::new(Kind::Table, "p".to_owned())];
        ledgers.extend(["a", "b"].map(|name| Ledger::new(Kind::Blob, name.to_owned())));
        ledgers.push(Ledger::new(Kind::Table, "q".to_owned()));
        wait_for(&server, "larimar_archive_restorable 1");
        let mut moments = Vec::new();
        let launch = load(server, &mut ledgers, dice, |server, dice| {
            pause(dice, 300);
            moments.push(Moment::now(false));
            pause(dice, 200);
            self.back_up(&server);
            pause(dice, 300);
            moments.push(Moment::now(false));
            // The spool has it long before the kill.
            std::thread::sleep(Duration::from_millis(800));
            if dice.below(2) == 0 {
                moments.push(Moment::now(true));
                pause(dice, 20);
            }
            server.kill()
        });
        if moments.len() == 2 {
            moments.push(Moment::now(true));
        }
        let server = launch.start();
        for ledger in &mut ledgers {
            ledger.settle(&server);
        }
        wait_for(&server, "larimar_archive_restorable 1");
        let mut others = vec![queue(&server, "more-jobs")];
        others.extend(ledgers.extract_if(.., |ledger| ledger.writer.kind != Kind::Queue));
        let server = load(server, &mut others, dice, |server, dice| {
            pause(dice, 300);
            moments.push(Moment::now(false));
            pause(dice, 200);
            server
        });
        ledgers.append(&mut others);
        ledgers.iter_mut().for_each(|ledger| ledger.settle(&server));
        if let Some(network) = self.network {
            network.calm();
        }
        wait_for(&server, "larimar_archive_spool_bytes 0");
        server.kill();
        let verified = self.larimar(&["backup", "verify", self.place]);
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
        self.restore_all(folder, &moments, &ledgers)
    }

    /// Restores to all moments at once; returns how many could be restored.
    fn restore_all(&self, folder: &Path, moments: &[Moment], ledgers: &[Ledger]) -> usize {
        std::thread::scope(|scope| {
            let restores = moments.iter().enumerate().map(|(number, moment)| {
                let data = folder.join(format!("restored{number}"));
                scope.spawn(move || self.restored_alike(&data, moment, ledgers))
            });
            let restores: Vec<_> = restores.collect();
            restores.into_iter().filter_map(|restore| restore.join().expect("alike").then_some(())).count()
        })
    }

    /// Restores to a moment and compares; `false` if the moment is in a gap that a kill has left.
    fn restored_alike(&self, data: &Path, moment: &Moment, ledgers: &[Ledger]) -> bool {
        let (path, time) = (data.display().to_string(), moment.time.to_string());
        let output = self.larimar(&["restore", self.place, "--data", &path, "--to-time", &time]);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let is_gap = said.contains("in a gap of the archive") && said.contains("were in the spool");
            assert!(moment.is_near_kill && is_gap, "{said}");
            return false;
        }
        let server = Launch::new(EXE, data).engine("local").start();
        ledgers.iter().for_each(|ledger| ledger.check(&server, moment.time));
        server.kill();
        true
    }
}

fn wait_for(server: &Server, line: &str) {
    let admin = Client::new(server.admin_address()).anonymous();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let metrics = admin.request("GET", "").target("/metrics").send();
        if metrics.text().lines().any(|found| found == line) {
            return;
        }
        assert!(Instant::now() < deadline, "no {line}: {}\n{}", metrics.text(), server.output());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Plays rounds, each with its own folder and seed; so many unless the environment says otherwise.
fn play_rounds(usual: usize, mut play: impl FnMut(&Path, &mut Dice) -> usize) {
    let rounds = std::env::var("LARIMAR_ROUNDS").map_or(usual, |text| text.parse().expect("a number of rounds"));
    let seed = Dice::seed("LARIMAR_TEST_SEED");
    println!("{rounds} rounds, LARIMAR_TEST_SEED={seed}");
    let (mut dice, mut restored, mut removals) = (Dice::new(seed), 0, Vec::new());
    for round in 0..rounds {
        let (folder, seed) = (larimar_testkit::memory_directory(), dice.next());
        let began = Instant::now();
        let moments = play(folder.path(), &mut Dice::new(seed));
        println!("round {round}: {moments} moments restored in {:.1} s", began.elapsed().as_secs_f64());
        restored += moments;
        // Removing thousands of synced files takes seconds on some disks.
        removals.push(std::thread::spawn(|| drop(folder)));
    }
    removals.into_iter().for_each(|removal| removal.join().expect("removed"));
    assert!(restored >= 3 * rounds, "{restored} moments in {rounds} rounds");
}

#[test]
fn restores_have_what_was_acknowledged_before_the_moment_and_nothing_later() {
    play_rounds(2, |folder, dice| {
        let place = folder.join("place").display().to_string();
        Archive { place: &place, variables: &[], network: None }.play(folder, dice)
    });
}

#[test]
fn restores_are_as_exact_from_an_object_store_behind_a_network_that_fails() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    // A round takes half a minute, most of it pauses after failures.
    play_rounds(1, |folder, dice| {
        let network = Network::start(&runtime, &folder.join("s3"), dice.next());
        let (place, variables) = (format!("s3://{BUCKET}/larimar"), network.variables());
        std::thread::scope(|scope| {
            scope.spawn(|| network.disturb());
            let _calm = network.calm_at_the_end();
            Archive { place: &place, variables: &variables, network: Some(&network) }.play(folder, dice)
        })
    });
}
