//! `larimar copy` as a process: killed at any moment and started again, nothing is twice and nothing is missing.

use crate::output::succeeded;
use crate::single_restore::larimar;
use larimar_client::{Account, BulkOperation, DynamicEntity, UploadOptions};
use larimar_testkit::http::Sas;
use larimar_testkit::{Launch, Server};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const EXE: &str = env!("CARGO_BIN_EXE_larimar");
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const ENTITIES: i32 = 4_000;
const MESSAGES: usize = 100;
const BLOBS: usize = 60;

pub(crate) fn connection_string(server: &Server) -> String {
    let url = |address: std::net::SocketAddr| format!("http://{address}/devstoreaccount1");
    format!(
        "AccountName=devstoreaccount1;AccountKey={KEY};TableEndpoint={};QueueEndpoint={};BlobEndpoint={}",
        url(server.table_address()),
        url(server.queue_address()),
        url(server.blob_address())
    )
}

/// The command, with the accounts in its environment.
fn command(folder: &Path, from: &str, to: &str) -> Command {
    let mut command = Command::new(EXE);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LARIMAR_") || name == "AZURITE_ACCOUNTS" {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("FROM_ACCOUNT", from).env("TO_ACCOUNT", to).stdin(Stdio::null());
    command.args(["copy", "FROM_ACCOUNT", "TO_ACCOUNT", "--messages", "receive", "--hide-for", "3"]);
    command
}

async fn fill(account: &Account) {
    let table = account.table("Employees");
    table.create().await.expect("created");
    let inserts = (0..ENTITIES).map(|number| {
        let entity = DynamicEntity::new(format!("{:02}", number % 40), format!("{number:06}")).with("Number", number);
        BulkOperation::insert(&entity).expect("an entity")
    });
    assert!(table.bulk().submit(inserts).await.is_success());
    let queue = account.queue("work");
    queue.create_if_missing().await.expect("created");
    for number in 0..MESSAGES {
        queue.put(format!("{number:04}")).await.expect("put");
    }
    let container = account.container("files");
    container.create_if_missing().await.expect("created");
    for number in 0..BLOBS {
        let content = vec![number as u8; if number == 0 { 20 << 20 } else { 1_000 * number }];
        container.blob(format!("{number:03}")).upload(content, UploadOptions::default()).await.expect("uploaded");
    }
}

/// Entities by key, texts of messages in order, and the bytes of blobs by name.
async fn seen(account: &Account) -> (BTreeMap<(String, String), i32>, Vec<String>, BTreeMap<String, Vec<u8>>) {
    let all = account.table("Employees").query::<DynamicEntity>().all().await.expect("read");
    let count = all.len();
    let entities: BTreeMap<_, _> = all
        .into_iter()
        .map(|entity| {
            let number = entity.get("Number").expect("a number");
            ((entity.partition_key, entity.row_key), number)
        })
        .collect();
    assert_eq!(entities.len(), count, "no key comes twice");
    let mut texts = Vec::new();
    loop {
        let messages = account.queue("work").receive(32, Duration::from_secs(300)).await.expect("received");
        if messages.is_empty() {
            break;
        }
        texts.extend(messages.into_iter().map(|message| message.text));
    }
    texts.sort();
    let mut blobs = BTreeMap::new();
    for number in 0..BLOBS {
        let name = format!("{number:03}");
        let blob = account.container("files").blob(name.as_str()).download().await.expect("read");
        blobs.insert(name, blob.expect("it is there").bytes.to_vec());
    }
    (entities, texts, blobs)
}

#[test]
fn a_copy_that_is_killed_half_way_and_run_again_has_nothing_twice_and_nothing_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let [from, to] = ["from", "to"].map(|name| Launch::new(EXE, folder.path().join(name)).start());
    let [source, target] = [&from, &to].map(connection_string);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let [from_account, to_account] = [&source, &target].map(|text| Account::connect(text).expect("an account"));
    runtime.block_on(fill(&from_account));

    // A little later each time, so that every part of the copy is interrupted.
    let mut kills = 0_u32;
    let mut time = Duration::from_millis(50);
    let said = loop {
        let child = command(folder.path(), &source, &target).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary runs");
        std::thread::sleep(time);
        time = time.mul_f64(1.3);
        if child.try_wait().expect("the child is ours").is_none() {
            child.kill().expect("SIGKILL is sent");
            kills += 1;
        }
        let output = child.wait_with_output().expect("the child is ours");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => break said,
            None => assert!(kills < 200, "it never ends: {said}"),
            Some(code) => panic!("exit code {code}: {said}"),
        }
    };
    assert!(kills >= 2, "{kills} kills are not half-way");
    assert!(said.contains("continuing the copy"), "{said}");
    assert!(!said.contains(KEY), "{said}");
    let (entities, texts, blobs) = runtime.block_on(seen(&to_account));
    assert_eq!(entities.len(), ENTITIES as usize);
    assert_eq!(texts, (0..MESSAGES).map(|number| format!("{number:04}")).collect::<Vec<_>>());
    assert_eq!(runtime.block_on(seen(&from_account)), (entities, texts, blobs), "the source has all of it still");
    let mut left = std::fs::read_dir(folder.path()).expect("listed").map(|entry| entry.expect("an entry").path());
    assert!(left.all(|path| path.is_dir()), "the copy leaves no file, only the servers have directories");
}

#[test]
fn a_restored_twin_is_overwritten_and_the_same_account_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let from = Launch::new(EXE, folder.path().join("from")).engine("local").start();
    let tables = from.client();
    tables.create_table("Employees");
    tables.insert("Employees", "p", "first", "");
    from.queues().request("PUT", "/jobs").send().is_status(201);
    let message = "<QueueMessage><MessageText>text</MessageText></QueueMessage>";
    from.queues().request("POST", "/jobs/messages").body(message).send().is_status(201);
    from.blobs().request("PUT", "/files?restype=container").send().is_status(201);
    let put = |path: &str| from.blobs().put(path, "text").header("x-ms-blob-type", "BlockBlob").send().is_status(201);
    put("/files/a");
    succeeded(larimar(&from, folder.path(), &["backup", "place", "--rate", "max"]));
    let restore = ["restore", "place", "--data", "twin"];
    succeeded(Command::new(EXE).args(restore).current_dir(folder.path()).output().expect("the binary runs"));
    let twin = Launch::new(EXE, folder.path().join("twin")).engine("local").start();
    tables.insert("Employees", "p", "second", "");
    put("/files/b");
    let copy = |to: &str| command(folder.path(), &connection_string(&from), to).arg("--overwrite").output();
    let output = copy(&connection_string(&from).replace("127.0.0.1", "localhost")).expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("FROM and TO are the same account"), "{said}");
    let output = copy(&connection_string(&from).replace("/devstoreaccount1", "/devstoreaccount1-secondary"));
    assert_eq!(output.expect("the binary runs").status.code(), Some(2));
    // Without the right to create a table at TO.
    let sas = Sas::account("sco", "rl").token();
    let to = format!("TableEndpoint=http://{}/devstoreaccount1;SharedAccessSignature={sas}", twin.table_address());
    let mut limited = command(folder.path(), &connection_string(&from), &to);
    let output = limited.args(["--overwrite", "--table", "Employees"]).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("or delete table 'Employees' at TO"), "{said}");
    assert_eq!(twin.client().get("/Employees()").send().column("RowKey"), ["first"]);
    succeeded(copy(&connection_string(&twin)).expect("the binary runs"));
    for server in [&from, &twin] {
        assert_eq!(server.client().get("/Employees()").send().column("RowKey"), ["first", "second"]);
        assert_eq!(server.client().get("/Tables").send().column("TableName"), ["Employees"]);
        assert_eq!(server.queues().get("/?comp=list").send().elements("Name"), ["jobs"]);
        assert_eq!(server.blobs().get("/?comp=list").send().elements("Name"), ["files"]);
    }
    assert_eq!(twin.blobs().get("/files/b").send().text(), "text");
}
