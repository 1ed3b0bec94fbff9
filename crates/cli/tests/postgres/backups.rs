//! Backups while other servers write: payloads that they discard are kept, and a backup that ends, however, holds nothing.

use larimar_testkit::postgres::Cluster;
use larimar_testkit::{Launch, Server};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// Two servers over one database, which remove the payloads of deleted blobs at once.
struct Pair {
    folder: tempfile::TempDir,
    cluster: Cluster,
    servers: [Server; 2],
}

impl Pair {
    fn start() -> Self {
        let (folder, cluster) = (tempfile::tempdir().expect("a folder"), Cluster::start());
        let store = format!("--blob-store=file://{}", folder.path().join("blobs").display());
        let servers = ["one", "two"].map(|name| {
            let launch = Launch::new(EXE, folder.path().join(name)).engine(cluster.url());
            launch.argument(&store).argument("--blob-grace=0").argument("--analytics-flush=1h").start()
        });
        Self { folder, cluster, servers }
    }

    /// `larimar backup` for one of the servers.
    fn backup(&self, server: usize, arguments: &[&str]) -> Command {
        let server = &self.servers[server];
        let mut command = Command::new(EXE);
        command.arg("backup").args(arguments).args(["--engine", self.cluster.url()]);
        command.arg("--admin-port").arg(server.admin_address().port().to_string());
        command.env("XDG_RUNTIME_DIR", server.runtime_directory()).current_dir(self.folder.path());
        command
    }

    /// The payloads in the store.
    fn payloads(&self) -> usize {
        let mut folders: Vec<PathBuf> = vec![self.folder.path().join("blobs")];
        let mut count = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    // The store has a file of its own, too.
                    _ => count += usize::from(entry.file_name().len() == 32),
                }
            }
        }
        count
    }

    /// Sessions of backups.
    fn sessions(&self) -> String {
        self.cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'larimar backup'")
    }

    fn put_blob(&self, name: &str, bytes: Vec<u8>) {
        let blobs = self.servers[0].blobs();
        let request = blobs.request("PUT", &format!("/photos/{name}"));
        request.header("x-ms-blob-type", "BlockBlob").body(bytes).send().is_status(201);
    }

    /// A table, and a container with large blobs: a slow backup reads them for seconds.
    fn fill(&self) {
        self.servers[0].client().create_table("orders");
        self.servers[0].client().insert("orders", "p", "1", r#""Text":"first""#);
        self.servers[0].blobs().request("PUT", "/photos?restype=container").send().is_status(201);
        for number in 0..4 {
            self.put_blob(&format!("large{number}"), vec![number; 1 << 20]);
        }
        self.put_blob("zlast", b"last".to_vec());
    }

    /// Starts a slow backup on the first server, and waits until it reads.
    fn start_slowly(&self) -> Child {
        let child = self
            .backup(0, &["place", "--rate", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let chunks = self.folder.path().join("place/chunks");
        wait("chunk", || chunks.read_dir().is_ok_and(|mut entries| entries.next().is_some()));
        child
    }
}

#[track_caller]
fn wait(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < deadline, "no {what} within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn what_other_servers_delete_during_a_backup_is_in_it() {
    let pair = Pair::start();
    pair.fill();
    assert_eq!(pair.payloads(), 5);
    let mut child = pair.start_slowly();
    let other = &pair.servers[1];
    other.client().insert("orders", "p", "2", "");
    other.client().delete("/orders(PartitionKey='p',RowKey='1')").header("If-Match", "*").send().is_status(204);
    other.blobs().delete("/photos/zlast").send().is_status(202);
    pair.put_blob("large2", b"replaced".to_vec());
    other.blobs().request("DELETE", "/photos?restype=container").send().is_status(202);
    let said = pair.backup(1, &["elsewhere"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("another backup of this database is running"), "{said}");
    // Longer than the servers take to remove what they may remove.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!((pair.payloads(), pair.sessions().as_str()), (6, "1"));
    assert!(child.wait().expect("an end").success());
    assert_eq!(pair.sessions(), "0");
    wait("room", || pair.payloads() == 0);

    let restored = pair.folder.path().join("restored");
    let mut restore = Command::new(EXE);
    restore.args(["restore", "place", "--data"]).arg(&restored).current_dir(pair.folder.path());
    succeeded(restore.output().expect("the binary runs"));
    let server = Launch::new(EXE, restored).engine("local").start();
    let rows = server.client().get("/orders").send().column("RowKey");
    assert_eq!(rows, ["1"], "as it was when the backup began");
    for number in 0..4_u8 {
        assert_eq!(server.blobs().get(&format!("/photos/large{number}")).send().body, vec![number; 1 << 20]);
    }
    assert_eq!(server.blobs().get("/photos/zlast").send().body, b"last");
}

#[test]
fn a_backup_that_is_cancelled_or_whose_server_is_killed_holds_nothing() {
    let mut pair = Pair::start();
    pair.fill();
    let mut child = pair.start_slowly();
    pair.servers[1].blobs().delete("/photos/zlast").send().is_status(202);
    assert!(succeeded(pair.backup(0, &["cancel"]).output().expect("the binary runs")).starts_with("cancelled: "));
    assert!(!child.wait().expect("an end").success());
    wait("end of the session", || pair.sessions() == "0");
    wait("room", || pair.payloads() == 4);

    let mut child = pair.start_slowly();
    wait("session", || pair.sessions() == "1");
    pair.servers[1].blobs().delete("/photos/large3").send().is_status(202);
    let [killed, other] = pair.servers;
    let launch = killed.kill();
    pair.servers = [launch.start(), other];
    assert!(!child.wait().expect("an end").success());
    wait("end of the session", || pair.sessions() == "0");
    wait("room", || pair.payloads() == 3);
    succeeded(pair.backup(1, &["place", "--rate", "max"]).output().expect("the binary runs"));
    let verified = Command::new(EXE).args(["backup", "verify", "place"]).current_dir(pair.folder.path()).output();
    let verified = succeeded(verified.expect("the binary runs"));
    assert!(verified.contains("whole") && verified.contains("3 payloads"), "{verified}");
}

#[test]
fn a_backup_whose_session_ends_begins_again() {
    let pair = Pair::start();
    pair.fill();
    let mut child = pair.start_slowly();
    pair.cluster
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'larimar backup'");
    // Only the second snapshot has it.
    pair.servers[1].client().insert("orders", "p", "2", "");
    assert!(child.wait().expect("an end").success());
    assert!(pair.servers[0].output().contains("the backup begins again with another snapshot"));
    let mut restore = Command::new(EXE);
    restore.args(["restore", "place", "--data", "restored"]).current_dir(pair.folder.path());
    succeeded(restore.output().expect("the binary runs"));
    let server = Launch::new(EXE, pair.folder.path().join("restored")).engine("local").start();
    assert_eq!(server.client().get("/orders").send().column("RowKey"), ["1", "2"]);
}
