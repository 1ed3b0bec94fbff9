//! `larimar backup` and `larimar restore` as an operator runs them: beside requests, killed, damaged, refused.

use crate::output::{refused, succeeded};
use larimar_testkit::http::Client;
use larimar_testkit::{Launch, Server};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");

/// A running server, and places for its backups and restores.
struct Fixture {
    folder: tempfile::TempDir,
    server: Server,
}

impl Fixture {
    fn start() -> Self {
        Self::start_with(|launch, _| launch)
    }

    /// A server with other arguments, and the fixture's directory to put files in.
    fn start_with(change: impl FnOnce(Launch, &Path) -> Launch) -> Self {
        let folder = larimar_testkit::memory_directory();
        let launch = change(Launch::new(EXE, folder.path().join("data")).engine("local"), folder.path());
        // The tables of metrics appear at the end, so that a test knows what the store holds.
        let server = launch.argument("--analytics-flush").argument("1h").start();
        Self { folder, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `larimar backup` with these arguments, for this server.
    fn backup(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(EXE);
        command.arg("backup").args(arguments).arg("--data-dir").arg(self.path("data"));
        command.arg("--admin-port").arg(self.server.admin_address().port().to_string());
        command.current_dir(self.folder.path());
        command
    }

    fn restore(&self, arguments: &[&str]) -> Output {
        run(Command::new(EXE).arg("restore").args(arguments).current_dir(self.folder.path()))
    }

    fn metrics(&self) -> String {
        let admin = Client::new(self.server.admin_address()).anonymous();
        admin.request("GET", "").target("/metrics").send().text().to_owned()
    }

    /// Waits until the server has begun to send chunks.
    fn wait_for_chunks(&self, place: &str) {
        let chunks = self.path(place).join("chunks");
        wait("chunks", || chunks.read_dir().is_ok_and(|mut entries| entries.next().is_some()));
    }

    fn generations(&self, place: &str) -> usize {
        self.path(place).join("generations").read_dir().map_or(0, Iterator::count)
    }

    /// Restores a backup, stops the server and compares: everything that was filled is in both directories, alike.
    fn restored_alike(self) -> tempfile::TempDir {
        let printed = succeeded(self.restore(&["place", "--data", "new"]));
        assert!(printed.contains("into new: 3 tables, queues and containers"), "{printed}");
        let (_, status) = self.server.stop();
        assert_eq!(status.code(), Some(0));
        let (from, to) = (self.folder.path().join("new"), self.folder.path().join("data"));
        let mut command = Command::new(EXE);
        command.args(["migrate", "--verify-only", "--from"]).arg(from).arg("--to").arg(to);
        let compared = succeeded(run(&mut command));
        for part in ["devstoreaccount1/orders", "devstoreaccount1/jobs", "devstoreaccount1/photos", "alike"] {
            assert!(compared.contains(part), "{part}: {compared}");
        }
        self.folder
    }
}

fn run(command: &mut Command) -> Output {
    command.output().expect("the binary runs")
}

#[track_caller]
fn wait(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < deadline, "no {what} within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(mut child: Child) {
    child.kill().expect("a process");
    child.wait().expect("an end");
}

/// A table, a queue with a message, and a container with a small and a large blob.
fn fill(server: &Server) {
    let tables = server.client();
    tables.create_table("orders");
    for number in 0..20 {
        tables.insert("orders", "p", &format!("{number:03}"), r#""Text":"some text""#);
    }
    server.queues().request("PUT", "/jobs").send().is_status(201);
    let message = "<QueueMessage><MessageText>first</MessageText></QueueMessage>";
    server.queues().request("POST", "/jobs/messages").body(message).send().is_status(201);
    server.blobs().request("PUT", "/photos?restype=container").send().is_status(201);
    put_blob(server, "small", 1000);
    put_blob(server, "large", 6 << 20);
}

fn put_blob(server: &Server, name: &str, bytes: usize) {
    let blobs = server.blobs();
    let request = blobs.request("PUT", &format!("/photos/{name}")).header("x-ms-blob-type", "BlockBlob");
    let mut state = bytes as u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    request.body(noise.take(bytes).collect::<Vec<u8>>()).send().is_status(201);
}

#[test]
fn a_running_server_is_backed_up_verified_and_restored() {
    let fixture = Fixture::start();
    fill(&fixture.server);
    let nothing = succeeded(run(&mut fixture.backup(&["status"])));
    assert_eq!(nothing, "no backup since the server started\n");
    let printed = succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    assert!(printed.starts_with("done: backup to ") && printed.contains("2 payloads of blobs (6.0 MiB)"), "{printed}");
    assert_eq!(succeeded(run(&mut fixture.backup(&["status"]))), printed);
    let metrics = fixture.metrics();
    for line in ["larimar_backup_running 0\n", "larimar_backup_failed 0\n", "larimar_backup_last_success_seconds 1"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    // A second one sends only what is new.
    let printed = succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    let sent = printed.lines().find_map(|line| line.strip_prefix("sent: ")).expect("a line");
    assert!(sent.ends_with(" bytes"), "less than a MiB: {sent}");
    let verified = succeeded(run(&mut fixture.backup(&["verify", "place"])));
    assert_eq!(verified.matches(": whole; 3 tables, queues and containers").count(), fixture.generations("place"));
    let folder = fixture.restored_alike();
    // It is not restored into again, and is served.
    let mut again = Command::new(EXE);
    again.args(["restore", "place", "--data", "new"]).current_dir(folder.path());
    let said = refused(run(&mut again));
    assert!(said.contains("new is not empty"), "{said}");
    let copy = Launch::new(EXE, folder.path().join("new")).engine("local").start();
    assert_eq!(copy.blobs().get("/photos/large").send().body.len(), 6 << 20);
    assert!(copy.queues().get("/jobs/messages?peekonly=true").send().text().contains("first"));
    let (_, status) = copy.stop();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_backup_goes_on_without_its_command_and_can_be_cancelled() {
    let fixture = Fixture::start();
    fill(&fixture.server);
    let child = fixture.backup(&["place", "--rate", "1"]).stdout(Stdio::null()).spawn().expect("the binary runs");
    fixture.wait_for_chunks("place");
    kill(child);
    let status = succeeded(run(&mut fixture.backup(&["status"])));
    assert!(status.starts_with("running: backup to "), "{status}");
    assert!(fixture.metrics().contains("larimar_backup_running 1\n"));
    let said = refused(run(&mut fixture.backup(&["elsewhere"])));
    assert!(said.contains("409") && said.contains("is running"), "{said}");
    let status = succeeded(run(&mut fixture.backup(&["cancel"])));
    assert!(status.starts_with("cancelled: "), "{status}");
    assert!(refused(run(&mut fixture.backup(&["cancel"]))).contains("no backup is running"));
    // It is not a backup, and the next one uses what it left.
    assert!(refused(fixture.restore(&["place", "--data", "new"])).contains("there is no backup in place"));
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    fixture.restored_alike();
}

#[test]
fn a_server_that_is_killed_leaves_no_half_backup() {
    let mut fixture = Fixture::start();
    fill(&fixture.server);
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    put_blob(&fixture.server, "another", 5 << 20);
    let child = fixture.backup(&["place", "--rate", "1"]).stderr(Stdio::piped()).spawn().expect("the binary runs");
    wait("backup", || fixture.metrics().contains("larimar_backup_running 1\n"));
    std::thread::sleep(Duration::from_millis(300));
    let launch = fixture.server.kill();
    let said = refused(child.wait_with_output().expect("an end"));
    assert!(said.contains("the backup was interrupted"), "{said}");
    fixture.server = launch.start();
    assert_eq!(fixture.generations("place"), 1);
    succeeded(run(&mut fixture.backup(&["verify", "place"])));
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    assert_eq!(fixture.generations("place"), 2);
    assert_eq!(fixture.path("place/unfinished").read_dir().expect("a directory").count(), 0);
    fixture.restored_alike();
}

#[test]
fn a_restore_that_is_killed_leaves_no_data_directory() {
    let fixture = Fixture::start();
    fill(&fixture.server);
    for number in 0..40 {
        put_blob(&fixture.server, &format!("more {number}").replace(' ', "-"), 300_000 + number);
    }
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    let mut command = Command::new(EXE);
    command.args(["restore", "place", "--data", "new"]).current_dir(fixture.folder.path());
    let child = command.stdout(Stdio::null()).spawn().expect("the binary runs");
    wait("mark", || fixture.path("new/restore.unfinished").exists());
    kill(child);
    if !fixture.path("new/restore.unfinished").exists() {
        panic!("the restore was too fast for this test");
    }
    let said = Launch::new(EXE, fixture.path("new")).engine("local").try_start().expect_err("a refusal");
    assert!(said.contains("a restore into this directory was not finished"), "{said}");
    for command in [&["repair"][..], &["repair", "--reset-clock"], &["compact"]] {
        let said = refused(run(Command::new(EXE).args(command).arg("--data-dir").arg(fixture.path("new"))));
        assert!(said.contains("was not finished") || said.contains("no store"), "{command:?}: {said}");
    }
    assert!(fixture.path("new/restore.unfinished").exists(), "nothing was changed");
    fixture.restored_alike();
}

#[test]
fn a_damaged_backup_is_named_and_refused() {
    let fixture = Fixture::start();
    fill(&fixture.server);
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    let largest = chunks(&fixture.path("place/chunks")).into_iter().max_by_key(|(bytes, _)| *bytes).expect("a chunk").1;
    let mut bytes = std::fs::read(&largest).expect("a chunk");
    let place = bytes.len() / 2;
    bytes[place] ^= 0x10;
    std::fs::write(&largest, &bytes).expect("a chunk");
    let name = largest.file_name().expect("a name").to_str().expect("text");
    let said = refused(run(&mut fixture.backup(&["verify", "place"])));
    assert!(said.contains(name) && said.contains("1 of 1 generations"), "{said}");
    let said = refused(fixture.restore(&["place", "--data", "new"]));
    assert!(said.contains(name) && said.contains("not restored"), "{said}");
    std::fs::remove_file(&largest).expect("a chunk");
    let said = refused(fixture.restore(&["place", "--data", "new"]));
    assert!(said.contains(name) && said.contains("missing"), "{said}");
    // The next backup brings it back.
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    fixture.restored_alike();
}

/// The chunks of a place, with their sizes.
fn chunks(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = |folder: &Path| folder.read_dir().expect("a directory").map(|entry| entry.expect("an entry").path());
    let files = entries(folder).flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    files.map(|file| (file.metadata().expect("a file").len(), file)).collect()
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let fixture = Fixture::start();
    fill(&fixture.server);
    std::fs::create_dir(fixture.path("full")).expect("a directory");
    std::fs::write(fixture.path("full/file"), "text").expect("a file");
    for (arguments, reason) in [
        (&["full"][..], "neither empty nor a place of Larimar's backups"),
        (&["data/backups"], "is in the data directory"),
        (&["full/../data/backups"], "is in the data directory"),
        (&["missing/../data/backups"], "cannot resolve missing/../data/backups"),
        (&["-"], "expected a directory"),
        (&["http://somewhere/else"], "larimar: TO: expected a directory, or an address that starts with s3://"),
        (&["verify", "full"], "there is no backup in full"),
        (&["verify", "none"], "there is no backup in none"),
        (&["place", "--rate", "0"], "expected max, or MiB a second"),
    ] {
        let said = refused(run(&mut fixture.backup(arguments)));
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
    assert!(!fixture.path("data/backups").exists());
    let status = succeeded(run(&mut fixture.backup(&["status"])));
    assert!(status.starts_with("failed: ") && status.contains("error: "), "{status}");
    let said = refused(fixture.restore(&["none", "--data", "new"]));
    assert!(said.contains("there is no backup in none") && !fixture.path("new").exists(), "{said}");
    // A directory outside of it that is named by a way through it.
    succeeded(run(&mut fixture.backup(&["data/../place", "--rate", "max"])));
    // What no restore has made is kept.
    std::fs::create_dir_all(fixture.path("kept/photos")).expect("a directory");
    std::fs::write(fixture.path("kept/restore.unfinished"), "").expect("a file");
    let said = refused(fixture.restore(&["place", "--data", "kept"]));
    assert!(said.contains("kept is not empty") && fixture.path("kept/photos").exists(), "{said}");
    let said = refused(fixture.restore(&["place", "--data", "new", "--generation", "1"]));
    assert!(said.contains("there is no generation 1") && !fixture.path("new").exists(), "{said}");
    // Only the holder of the token can start one.
    let admin = Client::new(fixture.server.admin_address()).anonymous();
    for method in ["GET", "POST", "DELETE"] {
        assert_eq!(admin.request(method, "").target("/backup?to=/tmp/other").send().status, 401, "{method}");
    }
    let (launch, _) = fixture.server.stop();
    let mut command = Command::new(EXE);
    command.args(["backup", "status", "--admin-port", "1", "--data-dir"]).arg(launch.data());
    assert!(refused(run(&mut command)).contains("did not answer"));
}

#[test]
fn a_server_with_a_key_file_encrypts_and_the_key_shows_nowhere() {
    let make = |folder: &Path| succeeded(run(Command::new(EXE).args(["backup", "key", "key"]).current_dir(folder)));
    let fixture = Fixture::start_with(|launch, folder| {
        assert!(make(folder).contains("keep a copy"));
        launch.argument("--backup-key-file").argument(folder.join("key").to_str().expect("text"))
    });
    let key = std::fs::read_to_string(fixture.path("key")).expect("a key file");
    let said = refused(run(&mut fixture.backup(&["key", "key"])));
    assert!(said.contains("cannot make the key file key"), "{said}");
    fill(&fixture.server);
    let mut shown = succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    shown += &succeeded(run(&mut fixture.backup(&["status"])));
    shown += &fixture.metrics();
    for (arguments, reason) in [
        (&["verify", "place"][..], "place is encrypted: give the key file"),
        (&["verify", "place", "--key-file", "none"], "No such file"),
        (&["verify", "place", "--key-file", "data/admin-token"], "not shown"),
        (&["verify", "plain", "--key-file", "key"], "there is no backup in plain"),
    ] {
        let said = refused(run(&mut fixture.backup(arguments)));
        assert!(said.contains(reason), "{arguments:?}: {said}");
        shown += &said;
    }
    shown += &succeeded(run(&mut fixture.backup(&["verify", "place", "--key-file", "key"])));
    let mut config = Command::new(EXE);
    shown += &succeeded(run(config.arg("config").arg("--backup-key-file").arg(fixture.path("key"))));
    assert!(refused(fixture.restore(&["place", "--data", "new"])).contains("place is encrypted"));
    assert!(!fixture.path("new").exists());
    shown += &succeeded(fixture.restore(&["place", "--data", "new", "--key-file", "key"]));
    assert!(!shown.contains(key.trim_end()), "{shown}");
    let (launch, _) = fixture.server.stop();
    let server = launch.argument("--backup-key-file").argument("none").try_start().expect_err("a refusal");
    assert!(server.contains("setting backup_key_file") && server.contains("No such file"), "{server}");
}

#[test]
fn a_key_that_only_the_command_has_leads_to_no_plain_backup() {
    let fixture = Fixture::start();
    succeeded(run(&mut fixture.backup(&["key", "key"])));
    let said = refused(run(&mut fixture.backup(&["place", "--backup-key-file", "key"])));
    assert!(said.contains("start the server with it") && !fixture.path("place").exists(), "{said}");
}

#[test]
fn old_backups_are_removed_by_commands_and_by_the_server() {
    let fixture = Fixture::start_with(|launch, _| launch.argument("--backup-keep-count").argument("3"));
    fill(&fixture.server);
    for (round, kept) in [(0, 1), (1, 2), (2, 3), (3, 3)] {
        put_blob(&fixture.server, "changing", 300_000 + round);
        let printed = succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
        assert!(printed.contains(if round == 3 { "removed: 1 backups" } else { "removed: 0 backups" }), "{printed}");
        assert_eq!(fixture.generations("place"), kept);
    }
    assert!(fixture.metrics().contains("larimar_backup_removal_failed 0\n"));
    let said = refused(run(&mut fixture.backup(&["prune", "place"])));
    assert!(said.contains("nothing says which backups to keep"), "{said}");
    let said = refused(run(&mut fixture.backup(&["remove", "place", "--generation", "a\x1b[31m"])));
    assert!(said.contains(r"there is no generation a\u{1b}[31m") && !said.contains('\x1b'), "{said}");
    let shown = succeeded(run(&mut fixture.backup(&["prune", "place", "--keep-count", "1", "--dry-run"])));
    assert!(shown.contains("would be removed: 2 backups") && fixture.generations("place") == 3, "{shown}");
    let files = chunks(&fixture.path("place/chunks")).len();
    let oldest = shown.split(':').next().expect("a name");
    succeeded(run(&mut fixture.backup(&["remove", "place", "--generation", oldest])));
    succeeded(run(&mut fixture.backup(&["prune", "place", "--keep-time", "1h", "--keep-count", "1"])));
    assert_eq!(fixture.generations("place"), 2, "both are younger than an hour");
    let printed = succeeded(run(&mut fixture.backup(&["prune", "place", "--keep-count", "1"])));
    assert!(printed.contains("removed: 1 backups") && fixture.generations("place") == 1, "{printed}");
    assert!(chunks(&fixture.path("place/chunks")).len() + 2 <= files);
    succeeded(run(&mut fixture.backup(&["verify", "place"])));
    fixture.restored_alike();
}

#[test]
fn a_reader_that_is_gone_is_not_an_error_and_a_full_disk_is() {
    let fixture = Fixture::start();
    let commands: [&[&str]; 6] = [
        &["place", "--rate", "max"],
        &["list", "place"],
        &["verify", "place"],
        &["prune", "place", "--keep-count", "1"],
        &["status"],
        &["key", "key"],
    ];
    for arguments in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let closed = fixture.backup(arguments).stdout(writer).output().expect("a command");
        assert_eq!((closed.status.code(), String::from_utf8_lossy(&closed.stderr).as_ref()), (Some(0), ""));
    }
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
    let full = fixture.backup(&["list", "place"]).stdout(full).output().expect("a command");
    let said = String::from_utf8_lossy(&full.stderr);
    assert!(full.status.code() == Some(1) && said.starts_with("larimar: standard output: "), "{said}");
}

#[test]
fn addresses_with_secrets_and_data_in_the_place_are_refused() {
    let fixture = Fixture::start();
    for place in ["s3://K:sesame@bucket/x", "az://container?sig=sesame", "S3://K:sesame@bucket"] {
        for arguments in [&[place][..], &["list", place], &["verify", place]] {
            let said = refused(run(&mut fixture.backup(arguments)));
            assert!(said.contains("environment") && !said.contains("sesame"), "{said}");
        }
    }
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    for data in ["place/chunks/new", "place/new", "other/../place/new"] {
        std::fs::create_dir_all(fixture.path("other")).expect("a directory");
        let said = refused(fixture.restore(&["place", "--data", data]));
        assert!(said.contains("the place of the backup") && !fixture.path(data).exists(), "{data}: {said}");
    }
}

#[test]
fn pipes_and_directories_in_the_place_of_files_hang_nothing() {
    let fixture = Fixture::start();
    fill(&fixture.server);
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().is_ok_and(|status| status.success()));
    let chunk = chunks(&fixture.path("place/chunks")).pop().expect("a chunk").1;
    std::fs::remove_file(&chunk).expect("a chunk");
    pipe(&chunk);
    let said = refused(run(&mut fixture.backup(&["verify", "place"])));
    assert!(
        said.contains("it is not a regular file")
            && said.contains(chunk.file_name().and_then(|name| name.to_str()).expect("text")),
        "{said}"
    );
    pipe(&fixture.path("place/chunks/pipe"));
    pipe(&fixture.path("place/generations/20261116T170102.5000000Z-7"));
    // The next backup replaces the chunk.
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    let said = refused(run(&mut fixture.backup(&["verify", "place"])));
    assert!(said.contains("1 of 3 generations") && said.contains("20261116T170102.5000000Z-7"), "{said}");
    std::fs::create_dir(fixture.path("place/unfinished/directory")).expect("a directory");
    succeeded(run(&mut fixture.backup(&["place", "--rate", "max"])));
    let lock = fixture.path("place/lock");
    std::fs::remove_file(&lock).expect("a lock");
    pipe(&lock);
    let said = refused(run(&mut fixture.backup(&["place", "--rate", "max"])));
    assert!(said.contains("place/lock"), "{said}");
    // Nor is a backup put into the data of another server.
    let other = Launch::new(EXE, fixture.path("other")).engine("local").start();
    let (_, status) = other.stop();
    assert_eq!(status.code(), Some(0));
    let said = refused(run(&mut fixture.backup(&["other/blobs/backups"])));
    assert!(
        said.contains("the data directory of another server") && !fixture.path("other/blobs/backups").exists(),
        "{said}"
    );
}
