//! The Rust crates of the service (azure_data_tables, azure_storage_queues and azure_storage_blobs 0.21) against a running
//! server: entities, a transaction, pages of a query, messages, and the three kinds of blobs.
//!
//! The endpoints, the account and the key come from the environment. Any difference is a panic.

use azure_core::StatusCode;
use azure_data_tables::clients::TableServiceClientBuilder;
use azure_storage::{prelude::*, CloudLocation};
use azure_storage_blobs::prelude::*;
use azure_storage_queues::QueueServiceClientBuilder;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

type Result<T> = azure_core::Result<T>;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Person {
    #[serde(rename = "PartitionKey")]
    department: String,
    #[serde(rename = "RowKey")]
    id: String,
    name: String,
    age: i32,
}

fn person(id: usize) -> Person {
    Person {
        department: "sales & more".into(),
        id: format!("{id:04}"),
        name: format!("Grüße 世界 {id}"),
        age: id as i32,
    }
}

fn location(service: &str) -> (CloudLocation, StorageCredentials) {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let account = variable("LARIMAR_ACCOUNT");
    let uri = variable(&format!("LARIMAR_{service}_ENDPOINT"));
    (
        CloudLocation::Custom { account: account.clone(), uri },
        StorageCredentials::access_key(account, variable("LARIMAR_KEY")),
    )
}

fn unique(prefix: &str) -> String {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    format!("{prefix}{}", time.as_nanos())
}

async fn tables() -> Result<()> {
    let (place, credentials) = location("TABLE");
    let service = TableServiceClientBuilder::with_location(place, credentials).build();
    let name = unique("rust");
    let table = service.table_client(&name);
    table.create().await?;
    for id in 0..3 {
        table.insert::<_, Person>(person(id))?.await?;
    }
    let partition = table.partition_key_client("sales & more");
    let mut transaction = partition.transaction().delete("0000", None)?;
    for id in 3..60 {
        transaction = transaction.insert(person(id))?;
    }
    let done = transaction.await?;
    assert_eq!(done.operation_responses.len(), 58);
    assert!(done
        .operation_responses
        .iter()
        .all(|one| one.status_code == StatusCode::NoContent || one.status_code == StatusCode::Created));

    let entity = partition.entity_client("0001");
    let found = entity.get::<Person>().await?;
    assert_eq!(found.entity, person(1));
    let changed = Person { age: 100, ..person(1) };
    entity.update(&changed, found.etag.clone().into())?.await?;
    assert!(entity.update(&changed, found.etag.into())?.await.is_err(), "the etag is old");
    assert_eq!(entity.get::<Person>().await?.entity, changed);

    let mut ids = Vec::new();
    let mut pages = table.query().filter("age lt 50").top(7).into_stream::<Person>();
    while let Some(page) = pages.next().await {
        ids.extend(page?.entities.into_iter().map(|person| person.id));
    }
    let wanted: Vec<String> = (2..50).map(|id| person(id).id).collect();
    assert_eq!(ids, wanted, "every entity once and in order");
    let missing = partition.entity_client("0000").get::<Person>().await.expect_err("it was deleted");
    assert_eq!(missing.as_http_error().map(|error| error.status()), Some(StatusCode::NotFound));
    table.delete().await?;
    Ok(())
}

async fn queues() -> Result<()> {
    let (place, credentials) = location("QUEUE");
    let queue = QueueServiceClientBuilder::with_location(place, credentials).build().queue_client(unique("rust"));
    queue.create().await?;
    for text in ["first, Grüße 世界", "second"] {
        queue.put_message(text).await?;
    }
    let peeked = queue.peek_messages().number_of_messages(32).await?;
    let texts: Vec<&str> = peeked.messages.iter().map(|message| message.message_text.as_str()).collect();
    assert_eq!(texts, ["first, Grüße 世界", "second"]);
    let claimed =
        queue.get_messages().number_of_messages(1).visibility_timeout(Duration::from_secs(600)).await?.messages;
    assert_eq!((claimed.len(), claimed[0].dequeue_count), (1, 1));
    let updated = queue.pop_receipt_client(claimed[0].pop_receipt()).update("changed", Duration::from_secs(0)).await?;
    assert!(!updated.pop_receipt.is_empty());
    let mut left = Vec::new();
    for message in
        queue.get_messages().number_of_messages(32).visibility_timeout(Duration::from_secs(600)).await?.messages
    {
        left.push(message.message_text.clone());
        queue.pop_receipt_client(message).delete().await?;
    }
    left.sort();
    assert_eq!(left, ["changed", "second"]);
    assert!(queue.peek_messages().await?.messages.is_empty());
    queue.delete().await?;
    Ok(())
}

async fn content(blob: &BlobClient) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut pieces = blob.get().chunk_size(1_000_000u64).into_stream();
    while let Some(piece) = pieces.next().await {
        bytes.extend(piece?.data.collect().await?);
    }
    Ok(bytes)
}

async fn blobs() -> Result<()> {
    let (place, credentials) = location("BLOB");
    let container = ClientBuilder::with_location(place, credentials).container_client(unique("rust"));
    container.create().await?;
    let large: Vec<u8> = (0..5_000_017u32).flat_map(|n| n.to_le_bytes()).step_by(3).collect();
    let block = container.blob_client("folder/large.bin");
    let mut list = BlockList::default();
    for (number, piece) in large.chunks(2_000_000).enumerate() {
        let id = format!("block-{number:04}");
        block.put_block(id.clone(), piece.to_vec()).await?;
        list.blocks.push(BlobBlockType::new_uncommitted(id));
    }
    block.put_block_list(list).content_type("application/x-test").await?;
    assert_eq!(content(&block).await?, large);
    let properties = block.get_properties().await?.blob.properties;
    assert_eq!(
        (properties.content_length, properties.content_type.as_str()),
        (large.len() as u64, "application/x-test")
    );

    let small = container.blob_client("small");
    small.put_block_blob("first").await?;
    let snapshot = small.snapshot().await?.snapshot;
    small.put_block_blob("second").await?;
    assert_eq!(content(&small).await?, b"second");
    let old = small.get().blob_versioning(snapshot).into_stream().next().await.expect("a piece")?;
    assert_eq!(old.data.collect().await?, "first");
    let lease = small.acquire_lease(Duration::from_secs(60)).await?;
    assert!(small.put_block_blob("no").await.is_err(), "the blob is leased");
    small.blob_lease_client(lease.lease_id).release().await?;

    let page = container.blob_client("disk");
    page.put_page_blob(4096).await?;
    page.put_page(BA512Range::new(512, 1535)?, vec![7; 1024]).await?;
    let mut wanted = vec![0; 4096];
    wanted[512..1536].fill(7);
    assert_eq!(content(&page).await?, wanted);
    let append = container.blob_client("log");
    append.put_append_blob().await?;
    append.append_block("one,").await?;
    append.append_block("two").await?;
    assert_eq!(content(&append).await?, b"one,two");

    let mut names = Vec::new();
    let mut pages = container.list_blobs().max_results(std::num::NonZeroU32::new(2).expect("not 0")).into_stream();
    while let Some(page) = pages.next().await {
        names.extend(page?.blobs.blobs().map(|blob| blob.name.clone()));
    }
    assert_eq!(names, ["disk", "folder/large.bin", "log", "small"]);
    container.delete().await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    tables().await?;
    queues().await?;
    blobs().await?;
    println!("result: azure_data_tables, azure_storage_queues, azure_storage_blobs 0.21.0: entities, messages and blobs of all kinds");
    Ok(())
}
