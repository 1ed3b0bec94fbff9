//! Queries over a server of its own: what they return, and how many requests they take.

use crate::common::faults::{Fault, faulty_table};
use crate::common::table;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use larimar_client::{
    Account, BulkOperation, Column, Continuation, DynamicEntity, Entity, EntityError, Filter, Table, keys,
};
use std::borrow::Cow;

/// Five partitions of seven rows.
async fn fill(table: &Table) {
    for partition in 0..5 {
        for row in 0..7 {
            let entity = DynamicEntity::new(format!("p{partition}"), format!("r{row}")).with("Row", row);
            table.insert(&entity.with("Partition", partition).with("Text", "long")).await.expect("inserted");
        }
    }
}

fn keys_of(entities: &[DynamicEntity]) -> Vec<String> {
    entities.iter().map(|entity| format!("{}/{}", entity.partition_key, entity.row_key)).collect()
}

#[tokio::test]
async fn c3_a_stream_follows_pages_and_a_limit_is_a_total() {
    let (server, table) = table().await;
    fill(&table).await;
    let row: Column<i32> = Column::named("Row");
    for (page_size, limit, wanted, requests) in [
        (1000, None, 35, 1),
        (10, None, 35, 4),
        (35, None, 35, 1),
        (7, Some(20), 20, 3),
        (7, Some(21), 21, 3),
        (1000, Some(3), 3, 1),
        (2, Some(0), 0, 0),
    ] {
        let before = server.requests().table;
        let mut query = table.query::<DynamicEntity>().page_size(page_size);
        if let Some(limit) = limit {
            query = query.limit(limit);
        }
        let streamed: Vec<_> = query.clone().stream().try_collect().await.expect("streamed");
        assert_eq!(server.requests().table - before, requests, "{query:?}");
        assert_eq!(streamed.len(), wanted, "{query:?}");
        assert!(streamed.is_sorted_by_key(|entity| (entity.partition_key.clone(), entity.row_key.clone())));
        assert_eq!(query.all().await.expect("all"), streamed);
    }
    let filtered = table.query::<DynamicEntity>().partition("p3").filter(row.ge(2)).filter(row.lt(4));
    assert_eq!(keys_of(&filtered.all().await.expect("all")), ["p3/r2", "p3/r3"]);
    let narrow = table.query::<DynamicEntity>().filter(row.eq(1) | row.eq(2)).filter(Filter::raw("Partition eq 4"));
    assert_eq!(keys_of(&narrow.all().await.expect("all")), ["p4/r1", "p4/r2"]);
}

#[tokio::test]
async fn c3_no_page_is_fetched_that_is_not_needed() {
    let (server, table) = table().await;
    fill(&table).await;
    let before = server.requests().table;
    let mut stream = table.query::<DynamicEntity>().page_size(5).stream();
    assert_eq!(server.requests().table, before, "a stream is lazy");
    for _ in 0..5 {
        stream.next().await.expect("an entity").expect("read");
    }
    assert_eq!(server.requests().table - before, 1);
    stream.next().await.expect("an entity").expect("read");
    assert_eq!(server.requests().table - before, 2);
    drop(stream);
    assert_eq!(
        table.query::<DynamicEntity>().first().await.expect("first").map(|entity| entity.row_key).as_deref(),
        Some("r0")
    );
    assert_eq!(server.requests().table - before, 3);
    assert_eq!(table.query::<DynamicEntity>().partition("p9").first().await.expect("none"), None);
}

#[tokio::test]
async fn c3_a_query_goes_on_where_a_kept_token_says() {
    let (_server, table) = table().await;
    fill(&table).await;
    let query = table.query::<DynamicEntity>().page_size(4);
    let mut found = Vec::new();
    let mut kept: Option<String> = None;
    loop {
        // As another process would: all it has is the text.
        let query = match &kept {
            Some(json) => query.clone().start_at(serde_json::from_str::<Continuation>(json).expect("a token")),
            None => query.clone(),
        };
        let page = query.page().await.expect("a page");
        found.extend(page.entities);
        match page.continuation {
            Some(next) => kept = Some(serde_json::to_string(&next).expect("JSON")),
            None => break,
        }
    }
    assert_eq!(found, query.clone().all().await.expect("all"));

    // The page that a limit ends has the token of what is beyond.
    let pages: Vec<_> = query.clone().limit(6).pages().try_collect().await.expect("pages");
    assert_eq!(pages.iter().map(|page| page.entities.len()).collect::<Vec<_>>(), [4, 2]);
    let next = pages.into_iter().next_back().expect("two pages").continuation.expect("more to come");
    assert_eq!(query.start_at(next).all().await.expect("the rest"), found[6..]);
}

#[derive(Debug, PartialEq)]
struct JustRow(i32);

impl Entity for JustRow {
    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        Ok(Cow::Owned(DynamicEntity::default().with("Row", self.0)))
    }

    fn from_dynamic(mut entity: DynamicEntity) -> Result<Self, EntityError> {
        assert_eq!(entity.properties().len(), 1, "only the row was asked for: {entity:?}");
        Ok(Self(entity.take("Row")?))
    }

    fn columns() -> Option<Vec<Cow<'static, str>>> {
        Some(vec![Cow::Borrowed("Row")])
    }
}

#[tokio::test]
async fn c4_a_projection_is_made_by_the_service() {
    let (_server, table) = table().await;
    fill(&table).await;
    let rows = table.query::<DynamicEntity>().partition("p1").limit(2).project::<JustRow>();
    assert_eq!(rows.all().await.expect("rows"), [JustRow(0), JustRow(1)]);

    let some = table.query::<DynamicEntity>().partition("p1").select(["Text", "Missing", "RowKey"]).limit(1);
    let entity = some.first().await.expect("read").expect("found");
    assert_eq!((entity.partition_key.as_str(), entity.row_key.as_str()), ("p1", "r0"));
    assert_eq!(entity.get::<Option<String>>("Missing").expect("absent"), None);
    assert_eq!(entity.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["Text"]);
}

#[tokio::test]
async fn c6_a_resolver_makes_the_values_and_may_refuse() {
    let (_server, table) = table().await;
    fill(&table).await;
    let texts = table.query::<DynamicEntity>().partition("p2").limit(3).resolve(|entity| {
        let row: i32 = entity.get("Row")?;
        Ok(if row == 0 { "first".to_owned() } else { entity.row_key })
    });
    assert_eq!(texts.all().await.expect("texts"), ["first", "r1", "r2"]);

    let refused = table.query::<DynamicEntity>().filter(keys::row_key().eq("r0")).resolve(|e| e.get::<String>("Row"));
    let mut stream = refused.stream();
    let error = stream.next().await.expect("an error").expect_err("a number is not a text");
    assert!(matches!(error, larimar_client::Error::Entity(_)), "{error}");
    assert!(stream.next().await.is_none(), "the stream ends after an error");
}

#[tokio::test]
async fn a_query_of_no_table_is_refused() {
    let (server, _) = table().await;
    let account = larimar_client::Account::connect(&server.connection_string()).expect("an account");
    let error = account.table("Nothing").query::<DynamicEntity>().all().await.expect_err("no table");
    assert_eq!(error.code(), Some("TableNotFound"));
}

#[tokio::test]
async fn c3_pages_that_are_short_or_empty_are_followed_while_they_have_a_token() {
    let (_server, table, faults) = faulty_table().await;
    let one = r#"{"value":[{"PartitionKey":"p","RowKey":"1"}]}"#;
    let two = r#"{"value":[{"PartitionKey":"p","RowKey":"2"}]}"#;
    let none = r#"{"value":[]}"#;
    let token = vec![("x-ms-continuation-NextPartitionKey", "1!4!cA--"), ("x-ms-continuation-NextRowKey", "1!4!MQ--")];
    let partition_only = vec![("x-ms-continuation-NextPartitionKey", "1!4!cQ--")];
    let answers = || {
        [
            Fault::AnswerWith(200, token.clone(), none),
            Fault::AnswerWith(200, token.clone(), one),
            Fault::AnswerWith(200, partition_only.clone(), none),
            Fault::AnswerWith(200, vec![], two),
        ]
    };
    faults.plan(answers());
    let found = table.query::<DynamicEntity>().partition("p").all().await.expect("all");
    assert_eq!(keys_of(&found), ["p/1", "p/2"]);
    let sent = faults.sent();
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert!(!sent[0].contains("NextPartitionKey"));
    assert!(sent[1].ends_with("&NextPartitionKey=1%214%21cA--&NextRowKey=1%214%21MQ--"), "{}", sent[1]);
    assert!(sent[3].ends_with("&NextPartitionKey=1%214%21cQ--"), "an absent row is not sent: {}", sent[3]);
    assert!(sent.iter().all(|line| line.contains("$filter=PartitionKey%20eq%20%27p%27")), "{sent:?}");

    faults.plan(answers());
    assert!(table.query::<DynamicEntity>().first().await.expect("first").is_some());
    assert_eq!(faults.sent().len(), 2, "no page after the one that has it");

    // A token that cannot be sent back must not look like the end.
    faults.plan([Fault::AnswerWith(200, vec![("x-ms-continuation-NextPartitionKey", "p\u{fc}")], one)]);
    assert!(matches!(table.query::<DynamicEntity>().all().await, Err(larimar_client::Error::Answer(_))));
}

#[tokio::test]
async fn c9_queries_and_their_streams_can_be_sent_to_other_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let (_server, table) = table().await;
    fill(&table).await;
    let query = is_send(table.query::<DynamicEntity>());
    let task = tokio::spawn(query.clone().all());
    assert_eq!(task.await.expect("no panic").expect("all").len(), 35);
    drop((is_send(query.clone().stream()), is_send(query.clone().pages()), is_send(query.clone().page())));
    drop(is_send(table.query_partitions::<DynamicEntity>(["p"]).in_order().stream()));
    drop(is_send(table.bulk().submit([])));
    drop(is_send(table.transaction().submit()));
}

/// Asks a stream for everything, and then again.
async fn outlived<S: Stream + Unpin>(mut stream: S) -> usize {
    let mut count = 0;
    while stream.next().await.is_some() {
        count += 1;
    }
    for _ in 0..3 {
        assert!(stream.next().await.is_none(), "a stream that has ended stays so");
    }
    count
}

#[tokio::test]
async fn c9_streams_that_have_ended_may_be_asked_again() {
    let (server, table) = table().await;
    table.insert(&DynamicEntity::new("a", "1")).await.expect("inserted");
    let account = Account::connect(&server.connection_string()).expect("an account");
    // One ends after an entity, the other after an error.
    for table in [table, account.table("Nothing")] {
        let query = table.query::<DynamicEntity>();
        assert_eq!(outlived(query.clone().stream()).await, 1);
        assert_eq!(outlived(query.pages()).await, 1);
        // The partition before and the one after are empty.
        let parallel = table.query_partitions::<DynamicEntity>(["", "a", "b"]);
        assert_eq!(outlived(parallel.clone().stream()).await, 1);
        assert_eq!(outlived(parallel.in_order().stream()).await, 1);
        let operation = BulkOperation::insert_or_replace(&DynamicEntity::new("a", "1")).expect("an operation");
        assert_eq!(outlived(table.bulk().run(futures_util::stream::iter([operation]))).await, 1);
    }
    assert_eq!(outlived(account.tables().list(None)).await, 1);
}

#[tokio::test]
async fn d7_a_list_of_everything_is_asked_for_without_a_filter() {
    let (server, _table, faults) = faulty_table().await;
    let account = faults.account(&server).build().expect("an account");
    for filter in [None, Some(Filter::everything()), Some(Filter::raw(" "))] {
        let tables: Vec<_> = account.tables().list(filter).try_collect().await.expect("listed");
        assert_eq!(tables.len(), 1);
    }
    // What every entity passes speaks of its keys, which tables do not have.
    assert!(faults.sent().iter().all(|line| !line.contains("filter")), "{:?}", faults.sent());
}
