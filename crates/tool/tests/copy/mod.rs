//! `larimar copy` between servers: what arrives, what is refused, and what happens to a source that is in use.

mod azurite;
mod interrupted;
mod values;

use clap::Command;
use futures_util::TryStreamExt as _;
use larimar_client::sas::{ContainerPermissions, QueuePermissions, TablePermissions};
use larimar_client::{
    Account, AppendOptions, BlobItem, BulkOperation, ContainerAccess, ContentHeaders, DynamicEntity, ETag, Guid,
    ListOptions, PublicAccess, StoredPolicy, Timestamp, UploadOptions,
};
use larimar_embedded::Larimar;
use larimar_tool::{Context, Error};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

async fn server() -> (Larimar, Account) {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = Account::connect(&server.connection_string()).expect("an account");
    (server, account)
}

/// Runs the command as the binary would.
async fn copy(folder: &Path, from: &str, to: &str, more: &[&str]) -> Result<(), Error> {
    let state = folder.join("state.json").display().to_string();
    let arguments = [&["larimar", "copy", from, to, "--state", &state], more].concat();
    let matches = larimar_tool::add_commands(Command::new("larimar")).try_get_matches_from(arguments);
    let context = Context::new(BTreeMap::new(), Err("not in tests".to_owned()));
    larimar_tool::run(matches.expect("arguments"), context).await
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect()
}

/// Tables of every type and of keys that need care.
async fn fill_tables(account: &Account) {
    let time: Timestamp = "2021-06-08T02:05:09.1234567Z".parse().expect("a time");
    let types = account.table("Types");
    types.create().await.expect("created");
    let policy = StoredPolicy::new("readers").permissions(TablePermissions::READ).starts(time).expires(time);
    types.set_policies(&[policy]).await.expect("set");
    let every = DynamicEntity::new("every", "type")
        .with("String", "ü 😀 \"<&>\"\r\n")
        .with("Empty", "")
        .with("Int32", i32::MIN)
        .with("Int64", i64::MAX)
        .with("Double", 0.1)
        .with("Whole", 2.0)
        .with("Big", f64::MAX)
        .with("NaN", f64::NAN)
        .with("Infinite", f64::NEG_INFINITY)
        .with("Boolean", true)
        .with("DateTime", time)
        .with("Guid", Guid::random())
        .with("Binary", vec![0_u8, 255, 10]);
    types.insert(&every).await.expect("inserted");
    for (partition, row) in [("", ""), ("O'Neil", "a b+c%20"), ("ü", "日本"), ("😀", "\u{FFFD}"), ("~", "{}|^`")] {
        types.insert(&DynamicEntity::new(partition, row).with("n", 1)).await.expect("inserted");
    }
    let many = account.table("Many");
    many.create().await.expect("created");
    let entities = (0..3_000).map(|number| {
        let entity = DynamicEntity::new(format!("p{:02}", number % 20), format!("{number:06}")).with("n", number);
        BulkOperation::insert(&entity).expect("an entity")
    });
    assert!(many.bulk().submit(entities).await.is_success());
    account.table("Empty").create().await.expect("created");
}

async fn fill_queue(account: &Account, messages: usize) {
    let queue = account.queue("work");
    queue.create_if_missing().await.expect("created");
    queue.set_metadata(&pairs(&[("owner", "Don <&>")])).await.expect("set");
    let time: Timestamp = "2031-06-08T02:05:09Z".parse().expect("a time");
    let policy = StoredPolicy::new("put").permissions(QueuePermissions::ADD).starts(time).expires(time);
    queue.set_policies(&[policy]).await.expect("set");
    for number in 0..messages {
        queue.put(text(number)).await.expect("put");
    }
}

/// White space and markup have to arrive as they are.
fn text(number: usize) -> String {
    format!(" {number:04}\n<&>ü😀\t")
}

async fn fill_blobs(account: &Account) {
    let container = account.container("files");
    container.create_if_missing().await.expect("created");
    container.set_metadata(&pairs(&[("owner", "Don")])).await.expect("set");
    let time: Timestamp = "2031-06-08T02:05:09Z".parse().expect("a time");
    let letters = ContainerPermissions::READ | ContainerPermissions::LIST;
    let policies = vec![StoredPolicy::new("readers").permissions(letters).starts(time).expires(time)];
    container.set_access(&ContainerAccess::new(PublicAccess::Blob, policies)).await.expect("set");
    let mut headers = ContentHeaders::default();
    headers.content_type = Some("text/plain".to_owned());
    headers.content_encoding = Some("identity".to_owned());
    headers.content_language = Some("en".to_owned());
    headers.content_disposition = Some("inline".to_owned());
    headers.cache_control = Some("max-age=60".to_owned());
    let options = UploadOptions::default().content_headers(headers).metadata([("n", "1")]).tags([("project", "a b")]);
    container.blob("a/small ü+%.txt").upload("first", options.clone()).await.expect("uploaded");
    container.blob("empty").upload("", UploadOptions::default()).await.expect("uploaded");
    container.blob("large").upload(content((17 << 20) + 3), options.clone()).await.expect("uploaded");
    let blocks = container.blob("without md5");
    blocks.put_block("YQ==", "block").await.expect("sent");
    blocks.commit_blocks(["YQ=="], &UploadOptions::default()).await.expect("committed");
    let log = container.blob("log");
    log.create_append(options.clone()).await.expect("created");
    log.append(content(5 << 20), AppendOptions::default()).await.expect("appended");
    let disk = container.blob("disk");
    disk.create_page(64 << 20, 7, &options).await.expect("created");
    for (offset, length) in [(512, 1024), (4 << 20, 4 << 20), (63 << 20, 512)] {
        disk.write_pages(offset, content(length)).await.expect("written");
    }
    account.container("none").create_if_missing().await.expect("created");
}

/// Everything that is to be the same on both sides.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    entities: Vec<String>,
    table_policies: Vec<String>,
    blobs: Vec<(BlobItem, bytes::Bytes)>,
    containers: Vec<String>,
    queues: Vec<String>,
}

async fn seen(account: &Account) -> Seen {
    let mut seen = Seen::default();
    let tables: Vec<_> = account.tables().list(None).try_collect().await.expect("listed");
    for table in tables {
        let table = account.table(table.name);
        seen.table_policies.push(format!("{} {:?}", table.name(), table.policies().await.expect("read")));
        let all = table.query::<DynamicEntity>().all().await.expect("read");
        seen.entities.extend(all.into_iter().map(|mut entity| {
            (entity.timestamp, entity.etag) = (None, None);
            format!("{} {entity:?}", table.name())
        }));
    }
    seen.entities.sort();
    let containers: Vec<_> = account.blobs().list("").try_collect().await.expect("listed");
    for container in containers {
        let container = account.container(container.name);
        let (metadata, access) = (container.metadata().await.expect("read"), container.access().await.expect("read"));
        seen.containers.push(format!("{} {metadata:?} {access:?}", container.name()));
        let page = container.list_pages(ListOptions::default().tags(true)).try_next().await.expect("listed");
        for mut item in page.expect("a page").blobs {
            let bytes = container.blob(item.name.as_str()).download().await.expect("read").expect("it is there").bytes;
            item.etag = ETag::new("");
            item.last_modified = Timestamp::MIN;
            seen.blobs.push((item, bytes));
        }
    }
    let queues: Vec<_> = account.queues().list("").try_collect().await.expect("listed");
    for queue in queues {
        let queue = account.queue(queue.name);
        let (metadata, policies) = (queue.metadata().await.expect("read"), queue.policies().await.expect("read"));
        seen.queues.push(format!("{} {metadata:?} {policies:?}", queue.name()));
    }
    seen
}

/// The texts of a queue, in order of their number. The messages are gone afterwards.
async fn drained(account: &Account) -> Vec<String> {
    let queue = account.queue("work");
    let mut texts = Vec::new();
    loop {
        let messages = queue.receive(32, Duration::from_secs(60)).await.expect("received");
        if messages.is_empty() {
            texts.sort();
            return texts;
        }
        for message in messages {
            queue.delete(&message).await.expect("deleted");
            texts.push(message.text);
        }
    }
}

#[tokio::test]
async fn everything_arrives_as_it_was() {
    let ((from, source), (to, target)) = (server().await, server().await);
    fill_tables(&source).await;
    fill_queue(&source, 20).await;
    fill_blobs(&source).await;
    let folder = tempfile::tempdir().expect("a folder");
    let before = seen(&source).await;
    copy(folder.path(), &from.connection_string(), &to.connection_string(), &[]).await.expect("copied");
    assert_eq!(seen(&target).await, before);
    assert_eq!(seen(&source).await, before, "the source is as it was");
    let texts: Vec<_> = (0..20).map(text).collect();
    assert_eq!(drained(&target).await, texts);
    let left = source.queue("work").peek(32).await.expect("peeked");
    assert!(left.len() == 20 && left.iter().all(|message| message.dequeue_count == 0), "nobody noticed");
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0, "no state is left");
}

#[tokio::test]
async fn a_destination_with_content_is_refused_unless_it_may_be_deleted() {
    let ((from, source), (to, target)) = (server().await, server().await);
    for (account, row) in [(&source, "new"), (&target, "old")] {
        account.table("Employees").create().await.expect("created");
        account.table("Employees").insert(&DynamicEntity::new("p", row)).await.expect("inserted");
    }
    source.queue("work").create_if_missing().await.expect("created");
    target.queue("work").create_if_missing().await.expect("created");
    let (from, to) = (from.connection_string(), to.connection_string());
    let folder = tempfile::tempdir().expect("a folder");
    let error = copy(folder.path(), &from, &to, &[]).await.expect_err("refused");
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("'Employees'") && !error.to_string().contains("work"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0, "nothing was begun");
    assert_eq!(target.table("Employees").query::<DynamicEntity>().all().await.expect("read").len(), 1);
    copy(folder.path(), &from, &to, &["--overwrite"]).await.expect("copied");
    let rows = target.table("Employees").query::<DynamicEntity>().all().await.expect("read");
    assert_eq!(rows.iter().map(|entity| entity.row_key.as_str()).collect::<Vec<_>>(), ["new"]);
}

#[tokio::test]
async fn an_account_is_not_copied_onto_itself_under_another_address() {
    let (from, account) = server().await;
    account.table("Employees").create().await.expect("created");
    account.table("Employees").insert(&DynamicEntity::new("p", "r")).await.expect("inserted");
    account.queue("work").create_if_missing().await.expect("created");
    account.queue("work").put("text").await.expect("put");
    account.container("photos").create_if_missing().await.expect("created");
    fill_blobs(&account).await;
    let before = seen(&account).await;
    let (from, folder) = (from.connection_string(), tempfile::tempdir().expect("a folder"));
    let to = from.replace("127.0.0.1", "localhost");
    assert_ne!(from, to);
    for only in ["tables", "queues", "blobs"] {
        let error = copy(folder.path(), &from, &to, &["--overwrite", "--only", only]).await.expect_err("refused");
        assert!(error.to_string().contains("FROM and TO are the same account"), "{only}: {error}");
    }
    assert_eq!(seen(&account).await, before);
}

#[tokio::test]
async fn a_queue_that_a_peek_does_not_show_whole_is_received_only_on_request() {
    let ((from, source), (to, target)) = (server().await, server().await);
    fill_queue(&source, 100).await;
    let (from, to) = (from.connection_string(), to.connection_string());
    let folder = tempfile::tempdir().expect("a folder");
    let error = copy(folder.path(), &from, &to, &["--only", "queues"]).await.expect_err("refused");
    assert!(error.exit_code() == 2 && error.to_string().contains("--messages receive"), "{error}");
    assert!(target.queues().list("").try_next().await.expect("listed").is_none(), "nothing was begun");
    let receive = ["--only", "queues", "--messages", "receive"];
    copy(folder.path(), &from, &to, &receive).await.expect("copied");
    let texts: Vec<_> = (0..100).map(text).collect();
    assert_eq!(drained(&target).await, texts);
    let given_back = source.queue("work").peek(32).await.expect("peeked");
    assert!(given_back.len() == 32 && given_back.iter().all(|message| message.dequeue_count == 1));
    assert_eq!(drained(&source).await, texts, "they were given back");
    let (metadata, copied) = (source.queue("work").metadata().await, target.queue("work").metadata().await);
    assert_eq!(copied.expect("read"), metadata.expect("read"));
}

#[tokio::test]
async fn hidden_messages_are_reported_and_expiry_is_kept() {
    let ((from, source), (to, target)) = (server().await, server().await);
    fill_queue(&source, 3).await;
    let queue = source.queue("work");
    queue.receive(1, Duration::from_secs(600)).await.expect("received");
    let (from, to) = (from.connection_string(), to.connection_string());
    let folder = tempfile::tempdir().expect("a folder");
    let error = copy(folder.path(), &from, &to, &["--queue", "work"]).await.expect_err("not complete");
    assert!(error.exit_code() == 1 && error.to_string().contains("1 messages were hidden"), "{error}");
    let (left, copied) = (queue.peek(32).await.expect("peeked"), target.queue("work").peek(32).await.expect("peeked"));
    assert_eq!((left.len(), copied.len()), (2, 2));
    let expiry = |time: Option<Timestamp>| time.expect("a time").ticks() / 10_000_000;
    assert!(expiry(left[0].expires_on).abs_diff(expiry(copied[0].expires_on)) <= 2);
}

#[tokio::test]
async fn what_was_not_selected_stays_behind() {
    let ((from, source), (to, target)) = (server().await, server().await);
    for table in ["First", "Second"] {
        source.table(table).create().await.expect("created");
    }
    source.queue("work").create_if_missing().await.expect("created");
    let (from, to) = (from.connection_string(), to.connection_string());
    let folder = tempfile::tempdir().expect("a folder");
    copy(folder.path(), &from, &to, &["--dry-run"]).await.expect("shown");
    copy(folder.path(), &from, &to, &["--table", "First"]).await.expect("copied");
    let tables: Vec<_> = target.tables().list(None).try_collect().await.expect("listed");
    assert_eq!(tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>(), ["First"]);
    assert!(target.queues().list("").try_next().await.expect("listed").is_none());
    let error = copy(folder.path(), &from, &to, &["--table", "Third"]).await.expect_err("there is none");
    assert_eq!(error.exit_code(), 3, "{error}");
}

#[tokio::test]
async fn wrong_keys_missing_servers_and_wrong_names_are_told_apart() {
    let ((from, source), (to, target)) = (server().await, server().await);
    for account in [&source, &target] {
        account.table("Employees").create().await.expect("created");
    }
    let (from, to) = (from.connection_string(), to.connection_string());
    let folder = tempfile::tempdir().expect("a folder");
    let key = from.split("AccountKey=").nth(1).and_then(|rest| rest.split(';').next()).expect("a key").to_owned();
    let wrong = from.replace(&key, "c2VjcmV0");
    for (from, to, code) in [
        (wrong.as_str(), to.as_str(), 4),
        (&to, &wrong, 4),
        (&from, &from, 2),
        (&from, "NO_SUCH_VARIABLE", 2),
        (&from, "@/no/such/file", 1),
    ] {
        let error = copy(folder.path(), from, to, &[]).await.expect_err("refused");
        assert_eq!(error.exit_code(), code, "{error}");
        assert!(!error.to_string().contains(&key) && !error.to_string().contains("c2VjcmV0"), "{error}");
    }
    let gone = Larimar::ephemeral().await.expect("a server");
    let nowhere = gone.connection_string();
    drop(gone);
    let error = copy(folder.path(), &from, &nowhere, &[]).await.expect_err("nothing listens");
    assert!(error.exit_code() == 1 && error.to_string().contains("no server listens"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0, "nothing was begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_changes_meanwhile_is_copied_as_it_was_at_some_moment() {
    let ((from, source), (to, target)) = (server().await, server().await);
    fill_tables(&source).await;
    source.container("files").create_if_missing().await.expect("created");
    let names: Vec<_> = (0..40).map(|number| format!("{number:02}")).collect();
    for name in &names {
        source.container("files").blob(name.as_str()).upload("0", UploadOptions::default()).await.expect("uploaded");
    }
    let writer = tokio::spawn({
        let source = source.clone();
        async move {
            for round in 1.. {
                for number in (0..3_000).step_by(97) {
                    let key = (format!("p{:02}", number % 20), format!("{number:06}"));
                    let entity = DynamicEntity::new(key.0, key.1).with("n", number).with("round", round);
                    source.table("Many").insert_or_replace(&entity).await.expect("written");
                }
                for name in &names {
                    let blob = source.container("files").blob(name.as_str());
                    blob.upload(round.to_string(), UploadOptions::default()).await.expect("uploaded");
                }
            }
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    copy(folder.path(), &from.connection_string(), &to.connection_string(), &[]).await.expect("copied and verified");
    writer.abort();
    let all = target.table("Many").query::<DynamicEntity>().all().await.expect("read");
    assert_eq!(all.len(), 3_000, "every entity, whether it changed or not");
    let blobs: Vec<_> = target.container("files").list("").try_collect().await.expect("listed");
    assert_eq!(blobs.len(), 40);
}
