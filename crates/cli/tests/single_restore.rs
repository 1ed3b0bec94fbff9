//! `larimar restore --into-server` as an operator runs it: exact, hidden until it is whole, refused, killed.

use crate::migrate::ACL;
use crate::migrate::every_kind::{delete, fill_blobs, fill_queues, seen};
use crate::output::{refused, succeeded};
use larimar_testkit::http::{Client, entity_path};
use larimar_testkit::{Launch, Server};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
/// The development account with its key, as the setting `accounts` has it.
pub(crate) const DEVELOPMENT: &str =
    "devstoreaccount1:Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const KEY: &str = "c2luZ2xlLXJlc3RvcmUtdGVzdHMtb25seQ==";

fn launch(data: &Path) -> Launch {
    let accounts = format!("{DEVELOPMENT};other:{KEY}");
    let launch = Launch::new(EXE, data).engine("local").environment("LARIMAR_ACCOUNTS", &accounts);
    // The tables of metrics appear at the end.
    launch.argument("--analytics-flush").argument("1h")
}

/// `larimar` with these arguments, for this server.
pub(crate) fn larimar(server: &Server, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(EXE);
    command.args(arguments).arg("--data-dir").arg(server.data());
    command.arg("--admin-port").arg(server.admin_address().port().to_string());
    command.env("XDG_RUNTIME_DIR", server.runtime_directory());
    command.current_dir(folder).output().expect("the binary runs")
}

fn fill_table(client: &Client, table: &str) {
    client.create_table(table);
    for row in 0..30 {
        client.insert(table, "p", &format!("{row:02}"), r#""Text":"some text""#);
    }
    client.request("PUT", &format!("/{table}?comp=acl")).xml(ACL).send().is_status(204);
}

/// The entities of a table with etags and Timestamps, and its access control list.
fn seen_table(client: &Client, table: &str) -> String {
    let rows = client.get(&format!("/{table}()")).header("Accept", "application/json;odata=fullmetadata").send();
    rows.is_status(200);
    let rows = rows.text().replace(&client.base(), "").replace("devstoreaccount1", "ACCOUNT");
    let rows = rows.replace(table, "TABLE").replace("other", "ACCOUNT");
    rows + client.get(&format!("/{table}?comp=acl")).send().text()
}

/// Everything that a store can have, backed up to `place`.
fn backed_up(server: &Server, folder: &Path) {
    succeeded(larimar(server, folder, &["backup", "place", "--rate", "max"]));
}

/// Deletes the table, the queue and the container that are restored.
fn delete_restored(server: &Server) {
    server.client().delete("/Tables('Orders')").send().is_status(204);
    server.queues().request("DELETE", "/jobs").send().is_status(204);
    server.blobs().request("DELETE", "/photos?restype=container").send().is_status(202);
}

#[test]
fn single_spaces_come_back_exactly_under_their_own_and_other_names() {
    let folder = larimar_testkit::memory_directory();
    let (path, server) = (folder.path(), launch(&folder.path().join("data")).start());
    fill_table(&server.client(), "Orders");
    fill_table(&server.client(), "Ordered");
    let claimed = fill_queues(&server.queues());
    fill_blobs(&server.blobs());
    let (table, expected) = (seen_table(&server.client(), "Orders"), seen(&server));
    backed_up(&server, path);
    delete_restored(&server);
    let again = ["restore", "place", "table:orders", "queue:jobs", "container:photos", "--into-server"];
    let account = ["--account", "devstoreaccount1"];
    let printed = succeeded(larimar(&server, path, &[&again[..], &account].concat()));
    assert!(
        printed.starts_with("done: restore from ") && printed.contains("container devstoreaccount1/photos"),
        "{printed}"
    );
    assert_eq!(succeeded(larimar(&server, path, &["restore", "status"])), printed);
    assert_eq!(seen_table(&server.client(), "Orders"), table);
    assert_eq!(seen(&server), expected);
    // A consumer goes on with its receipt, a writer with its uncommitted block.
    delete(&server, &claimed);
    let list = "<BlockList><Uncommitted>CCCC</Uncommitted></BlockList>";
    server.blobs().request("PUT", "/photos/blocks?comp=blocklist").xml(list).send().is_status(201);
    assert_eq!(server.blobs().get("/photos/blocks").send().text(), "not committed");
    // Beside it, in another account, and writable.
    let others =
        ["restore", "place", "table:Orders=OrdersBefore", "container:photos=old", "queue:jobs", "--into-server"];
    succeeded(larimar(&server, path, &[&others[..], &account, &["--to-account", "other", "--rate", "max"]].concat()));
    let of_other = |client: Client| client.of_account("other", KEY);
    let tables = of_other(server.client());
    assert_eq!(seen_table(&tables, "OrdersBefore"), table);
    assert!(tables.get("/Tables").send().text().contains("\"OrdersBefore\""));
    tables.insert("OrdersBefore", "p", "new", r#""Text":"t""#);
    assert!(server.client().get(&entity_path("Orders", "p", "new")).send().status == 404);
    let found = of_other(server.blobs()).get("/?comp=blobs&where=colour%3D'red'").send();
    assert!(found.text().contains("<Name>plain</Name>"), "{}", found.text());
    assert!(of_other(server.queues()).get("/jobs/messages?peekonly=true").send().text().contains("two"));
    // It is all there after a restart, and the store is sound.
    let (launch, status) = server.stop();
    assert_eq!(status.code(), Some(0));
    let server = launch.start();
    assert_eq!(seen_table(&server.client(), "Orders"), table);
    assert_eq!(of_other(server.blobs()).get("/old/large").send().body, vec![7; 3 << 20]);
    server.stop();
}

#[test]
fn leases_do_not_come_back() {
    let folder = larimar_testkit::memory_directory();
    let server = launch(&folder.path().join("data")).start();
    let blobs = server.blobs();
    let put = |path: &str| blobs.request("PUT", path);
    let lease = |path: &str| {
        put(path).header("x-ms-lease-action", "acquire").header("x-ms-lease-duration", "-1").send().is_status(201);
    };
    put("/held?restype=container").send().is_status(201);
    put("/held/blob").header("x-ms-blob-type", "BlockBlob").body("text").send().is_status(201);
    lease("/held?restype=container&comp=lease");
    lease("/held/blob?comp=lease");
    let etag = |path: &str| blobs.get(path).send().header("ETag").expect("an etag").to_owned();
    backed_up(&server, folder.path());
    let line = ["restore", "place", "container:held=free", "--into-server", "--account", "devstoreaccount1"];
    succeeded(larimar(&server, folder.path(), &line));
    assert_eq!(etag("/free/blob"), etag("/held/blob"));
    assert_eq!(etag("/free?restype=container"), etag("/held?restype=container"));
    assert_eq!(blobs.request("DELETE", "/held/blob").send().status, 412);
    blobs.request("DELETE", "/free/blob").send().is_status(202);
    assert_eq!(blobs.request("DELETE", "/held?restype=container").send().status, 412);
    blobs.request("DELETE", "/free?restype=container").send().is_status(202);
}

#[test]
fn what_cannot_be_restored_is_refused_with_the_reason() {
    let folder = larimar_testkit::memory_directory();
    let (path, server) = (folder.path(), launch(&folder.path().join("data")).start());
    fill_table(&server.client(), "Orders");
    backed_up(&server, path);
    server.client().create_table("Later");
    for (arguments, reason) in [
        (&["table:Orders"][..], "table devstoreaccount1/orders exists"),
        (&["table:Orders=later"], "table devstoreaccount1/later exists"),
        (&["table:Order=New"], "has no table devstoreaccount1/order: it has orders; nothing was changed"),
        (&["queue:jobs"], "has no queue devstoreaccount1/jobs: it has no queue of that account"),
        (&["table:Orders=1x"], "table \"1x\""),
        (&["queue:jobs=No"], "queue \"No\""),
        (&["table:Orders=New", "table:Orders=nEW"], "is the name of two of them"),
        (
            &["table:Orders=New", "--to-account", "none"],
            "not an account of this server, which has devstoreaccount1, other",
        ),
        (&["table:Orders=New", "--generation", "1"], "there is no generation 1"),
    ] {
        let line = [&["restore", "place", "--into-server", "--account", "devstoreaccount1"], arguments].concat();
        let said = refused(larimar(&server, path, &line));
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
    let said = refused(larimar(&server, path, &["restore", "place", "table:Orders=New", "--into-server"]));
    assert!(said.contains("several accounts"), "{said}");
    let said =
        refused(larimar(&server, path, &["restore", "none", "table:abc", "--into-server", "--account", "other"]));
    assert!(said.contains("there is no backup in"), "{said}");
    assert_eq!(server.client().get("/Tables").send().text().matches("TableName").count(), 2, "nothing was created");
    let admin = Client::new(server.admin_address()).anonymous();
    for method in ["GET", "POST", "DELETE"] {
        assert_eq!(admin.request(method, "").target("/restore?from=/tmp/other&table=t").send().status, 401, "{method}");
    }
    assert!(refused(larimar(&server, path, &["restore", "cancel"])).contains("no restore is running"));
}

#[test]
fn an_encrypted_backup_is_restored_with_the_key_of_the_server() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path();
    let key = Command::new(EXE).args(["backup", "key", "key"]).current_dir(path).output();
    succeeded(key.expect("the binary runs"));
    let with_key = |data: &str| {
        launch(&path.join(data)).argument("--backup-key-file").argument(path.join("key").display().to_string())
    };
    let server = with_key("data").start();
    fill_table(&server.client(), "Orders");
    fill_queues(&server.queues());
    fill_blobs(&server.blobs());
    let (table, expected) = (seen_table(&server.client(), "Orders"), seen(&server));
    backed_up(&server, path);
    delete_restored(&server);
    let line = ["restore", "place", "table:Orders", "queue:jobs", "container:photos", "--into-server"];
    let line = [&line[..], &["--account", "devstoreaccount1"]].concat();
    succeeded(larimar(&server, path, &line));
    assert_eq!(seen_table(&server.client(), "Orders"), table);
    assert_eq!(seen(&server), expected);
    server.stop();
    // A server without the key reads nothing of it.
    let other = launch(&path.join("other")).start();
    let said = refused(larimar(&other, path, &line));
    assert!(said.contains("place is encrypted"), "{said}");
    assert_eq!(other.client().get("/Tables").send().text().matches("TableName").count(), 0);
}

/// A server with a container of 4 MB in a backup, which is being restored slowly as `copy`.
fn slow_restore(folder: &Path) -> (Server, std::process::Child) {
    let server = launch(&folder.join("data")).start();
    let blobs = server.blobs();
    blobs.request("PUT", "/photos?restype=container").send().is_status(201);
    for number in 0..40_u8 {
        let bytes: Vec<u8> =
            (0..100_000_u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8 ^ number).collect();
        let put = blobs.request("PUT", &format!("/photos/{number}")).header("x-ms-blob-type", "BlockBlob");
        put.body(bytes).send().is_status(201);
    }
    backed_up(&server, folder);
    let mut command = Command::new(EXE);
    command.args(["restore", "place", "container:photos=copy", "--into-server", "--account", "devstoreaccount1"]);
    command.args(["--rate", "1", "--data-dir"]).arg(server.data());
    command.arg("--admin-port").arg(server.admin_address().port().to_string()).current_dir(folder);
    let child =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().expect("a process");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !succeeded(larimar(&server, folder, &["restore", "status"])).contains(" payloads of blobs (")
        || is_at_start(&server, folder)
    {
        assert!(Instant::now() < deadline, "no progress within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    (server, child)
}

fn is_at_start(server: &Server, folder: &Path) -> bool {
    let status = succeeded(larimar(server, folder, &["restore", "status"]));
    !status.starts_with("running") || status.contains(" 0 payloads")
}

fn containers(server: &Server) -> Vec<String> {
    let listed = server.blobs().get("/?comp=list").send().text().to_owned();
    listed.split("<Name>").skip(1).map(|rest| rest.split('<').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn nothing_half_is_seen_of_a_restore_that_is_cancelled_or_whose_name_is_taken() {
    let folder = larimar_testkit::memory_directory();
    let (server, child) = slow_restore(folder.path());
    assert_eq!(containers(&server), ["photos"]);
    assert_eq!(server.blobs().get("/copy/1").send().status, 404);
    // A backup that is taken meanwhile, and another restore.
    backed_up(&server, folder.path());
    let second = ["restore", "place", "container:photos=two", "--into-server", "--account", "devstoreaccount1"];
    assert!(refused(larimar(&server, folder.path(), &second)).contains("is running"));
    let printed = succeeded(larimar(&server, folder.path(), &["restore", "cancel"]));
    assert!(printed.starts_with("cancelled: "), "{printed}");
    let said = child.wait_with_output().expect("an end");
    assert!(String::from_utf8_lossy(&said.stderr).contains("cancelled; nothing was restored"));
    assert_eq!(containers(&server), ["photos"]);
    // The name is created while the restore runs: it is refused, and what was created stays.
    let begin = ["--rate", "4"];
    let line = ["restore", "place", "container:photos=copy", "--into-server", "--account", "devstoreaccount1"];
    std::thread::scope(|scope| {
        let running = scope.spawn(|| larimar(&server, folder.path(), &[&line[..], &begin].concat()));
        while is_at_start(&server, folder.path()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.blobs().request("PUT", "/copy?restype=container").send().is_status(201);
        let said = refused(running.join().expect("an end"));
        assert!(
            said.contains("container devstoreaccount1/copy exists") && said.contains("nothing was restored"),
            "{said}"
        );
    });
    assert!(!server.blobs().get("/copy?restype=container&comp=list").send().text().contains("<Blob>"));
    // A backup with an unfinished restore in it can be restored; its server does not show it either.
    let new: PathBuf = folder.path().join("new");
    let restored = Command::new(EXE).args(["restore", "place", "--data"]).arg(&new).current_dir(folder.path()).output();
    succeeded(restored.expect("the binary runs"));
    let copy = launch(&new).start();
    assert_eq!(containers(&copy), ["photos"]);
    copy.stop();
    server.stop();
}

#[test]
fn a_server_that_is_killed_leaves_nothing_half_and_can_restore_again() {
    let folder = larimar_testkit::memory_directory();
    let (server, child) = slow_restore(folder.path());
    let server = server.kill().start();
    assert!(!child.wait_with_output().expect("an end").status.success());
    assert_eq!(containers(&server), ["photos"]);
    let line = ["restore", "place", "container:photos=copy", "--into-server", "--account", "devstoreaccount1"];
    succeeded(larimar(&server, folder.path(), &[&line[..], &["--rate", "max"]].concat()));
    assert_eq!(containers(&server), ["copy", "photos"]);
    for number in [0, 27, 39] {
        let get = |container: &str| server.blobs().get(&format!("/{container}/{number}")).send().body;
        assert_eq!(get("copy"), get("photos"));
    }
    let (launch, _) = server.stop();
    // Neither does a migration copy what was left.
    let to = folder.path().join("to");
    let mut migrate = Command::new(EXE);
    migrate.args(["migrate", "--from"]).arg(launch.data()).arg("--to").arg(&to);
    let printed = succeeded(migrate.output().expect("the binary runs"));
    assert!(!printed.contains("unfinished"), "{printed}");
}

#[cfg(feature = "test-postgres")]
#[test]
fn a_server_over_postgresql_restores_from_a_backup_of_the_embedded_engine() {
    use larimar_testkit::postgres::Cluster;
    let folder = larimar_testkit::memory_directory();
    let (path, source) = (folder.path(), launch(&folder.path().join("data")).start());
    fill_table(&source.client(), "Orders");
    let claimed = fill_queues(&source.queues());
    fill_blobs(&source.blobs());
    let (table, mut expected) = (seen_table(&source.client(), "Orders"), seen(&source));
    backed_up(&source, path);
    source.stop();
    let server = launch(&path.join("unused")).engine(Cluster::shared().fresh_url()).start();
    let line = ["restore", "place", "table:Orders", "queue:jobs", "queue:empty", "container:photos", "container:bare"];
    succeeded(larimar(&server, path, &[&line[..], &["--into-server", "--account", "devstoreaccount1"]].concat()));
    assert_eq!(seen_table(&server.client(), "Orders"), table);
    let mut found = seen(&server);
    // Of the containers' list only the lease differs.
    for seen in [&mut expected, &mut found] {
        seen.retain(|seen| !seen.contains("<Containers>"));
    }
    assert_eq!(found, expected);
    delete(&server, &claimed);
    server.stop();
}
