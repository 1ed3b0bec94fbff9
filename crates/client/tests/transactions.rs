//! Transactions over a server of its own: all or nothing, refused early, and right after lost answers.

use crate::common::faults::{Fault, faulty_table};
use crate::common::table;
use larimar_client::{DynamicEntity, ETag, Error, IfMatch, TransactionRefusal as Refusal, Value};

fn entity(row: impl Into<String>) -> DynamicEntity {
    DynamicEntity::new("p", row)
}

#[tokio::test]
async fn c5_all_operations_take_place_in_one_request() {
    let (server, table) = table().await;
    let old = table.insert(&entity("replaced").with("A", 1).with("B", 1)).await.expect("inserted");
    table.insert(&entity("merged").with("A", 1).with("B", 1)).await.expect("inserted");
    table.insert(&entity("deleted")).await.expect("inserted");
    let before = server.requests().table;
    let mut transaction = table.transaction();
    transaction.insert(&entity("O'Neil +%ü").with("Text", "a\r\n--changeset_\r\nb\u{1F600}")).expect("added");
    transaction.replace(&entity("replaced").with("A", 2), &old).expect("added");
    transaction.merge(&entity("merged").with("A", 2), IfMatch::Any).expect("added");
    transaction.delete("p", "deleted", IfMatch::Any).expect("added");
    transaction.insert_or_replace(&entity("upserted").with("A", 3)).expect("added");
    transaction.insert_or_merge(&entity("upmerged").with("A", 4)).expect("added");
    assert_eq!((transaction.len(), transaction.partition_key()), (6, Some("p")));
    let etags = transaction.submit().await.expect("submitted");
    assert_eq!(server.requests().table - before, 1);

    let rows = ["O'Neil +%ü", "replaced", "merged", "deleted", "upserted", "upmerged"];
    for (row, etag) in rows.into_iter().zip(&etags) {
        let stored = table.get::<DynamicEntity>("p", row).await.expect("read");
        assert_eq!(stored.and_then(|stored| stored.etag), *etag, "{row}");
    }
    let read: DynamicEntity = table.get("p", "replaced").await.expect("read").expect("found");
    assert_eq!(read.properties().collect::<Vec<_>>(), [("A", &Value::Int32(2))]);
    let read: DynamicEntity = table.get("p", "merged").await.expect("read").expect("found");
    assert_eq!(read.properties().collect::<Vec<_>>(), [("A", &Value::Int32(2)), ("B", &Value::Int32(1))]);
    let read: DynamicEntity = table.get("p", rows[0]).await.expect("read").expect("found");
    assert_eq!(read.get::<String>("Text").expect("a text"), "a\r\n--changeset_\r\nb\u{1F600}");
}

#[tokio::test]
async fn c5_nothing_takes_place_if_one_operation_fails_and_its_index_is_told() {
    let (_server, table) = table().await;
    let old = table.insert(&entity("there")).await.expect("inserted");
    table.replace(&entity("there").with("A", 1), IfMatch::Any).await.expect("replaced");
    let mut conflict = table.transaction();
    conflict
        .insert(&entity("1"))
        .and_then(|t| t.insert(&entity("2")))
        .and_then(|t| t.insert(&entity("there")))
        .expect("added");
    let mut changed = table.transaction();
    changed.insert(&entity("1")).and_then(|t| t.replace(&entity("there"), &old)).expect("added");
    let mut missing = table.transaction();
    missing.delete("p", "missing", IfMatch::Any).and_then(|t| t.insert(&entity("1"))).expect("added");
    let mut single = table.transaction();
    single.merge(&entity("missing"), IfMatch::Any).expect("added");
    for (transaction, status, operation) in [(conflict, 409, 2), (changed, 412, 1), (missing, 404, 0), (single, 404, 0)]
    {
        let error = transaction.submit().await.expect_err("refused");
        assert_eq!((error.status(), error.operation()), (Some(status), Some(operation)), "{error}");
        assert!(error.request_id().is_some(), "{error:?}");
        assert!(!error.service().expect("a refusal").message.starts_with(char::is_numeric), "{error}");
        assert_eq!(table.query::<DynamicEntity>().all().await.expect("all").len(), 1, "nothing took place");
    }
}

#[tokio::test]
async fn an_empty_transaction_sends_nothing() {
    let (server, table) = table().await;
    let before = server.requests().table;
    assert_eq!(table.transaction().submit().await.expect("nothing to do"), []);
    assert_eq!(server.requests().table, before);
}

#[tokio::test]
async fn d5_what_the_service_would_refuse_is_refused_when_it_is_added() {
    let (server, table) = table().await;
    let mut transaction = table.transaction();
    transaction.insert(&entity("first")).expect("added");
    let many = (0..253).fold(entity("many"), |entity, n| entity.with(format!("P{n}"), n));
    let large = (0..17).fold(entity("large"), |entity, n| entity.with(format!("P{n}"), vec![0_u8; 64 * 1024]));
    type Expected = fn(&Refusal) -> bool;
    let expectations: [(DynamicEntity, Expected); 11] = [
        (DynamicEntity::new("q", "1"), |r| matches!(r, Refusal::OtherPartition { .. })),
        (entity("first"), |r| matches!(r, Refusal::EntityTwice { .. })),
        (many, |r| matches!(r, Refusal::TooManyProperties { count: 253 })),
        (large, |r| matches!(r, Refusal::EntityTooLarge { bytes } if *bytes > 1 << 20)),
        (entity("a").with("T", "x".repeat(32 * 1024 + 1)), |r| matches!(r, Refusal::PropertyTooLarge { .. })),
        (entity("a").with("B", vec![0_u8; 64 * 1024 + 1]), |r| matches!(r, Refusal::PropertyTooLarge { .. })),
        (entity("a").with("a-b", 1), |r| matches!(r, Refusal::PropertyName { .. })),
        (entity("a").with("n".repeat(256), 1), |r| matches!(r, Refusal::PropertyName { .. })),
        (entity("a").with("RowKey", "b"), |r| matches!(r, Refusal::Entity(error) if error.property() == "RowKey")),
        (entity("k".repeat(513)), |r| matches!(r, Refusal::KeyTooLong { key: "RowKey" })),
        (entity("a/b"), |r| matches!(r, Refusal::KeyForbidden { key: "RowKey" })),
    ];
    for (entity, expected) in expectations {
        let error = transaction.insert_or_replace(&entity).expect_err("refused");
        assert_eq!(error.operation, 1, "{error}");
        assert!(expected(&error.reason), "{error:?}");
        assert_eq!(Error::from(error).operation(), Some(1));
        assert_eq!(transaction.len(), 1, "what is refused leaves no trace");
    }
    let error = transaction.delete("p", "x", ETag::new("a\r\nb")).expect_err("no ETag");
    assert!(matches!(error.reason, Refusal::Condition), "{error}");
    let empty =
        table.transaction().insert(&DynamicEntity::new("p\n", "r")).expect_err("a control character").to_string();
    assert!(empty.contains("PartitionKey"), "{empty}");
    assert_eq!(server.requests().table, 1, "only the table was created");
    transaction.submit().await.expect("what remains is good");
}

#[tokio::test]
async fn d5_a_hundred_operations_and_four_mebibytes_are_taken_and_no_more() {
    let (_server, table) = table().await;
    let mut transaction = table.transaction();
    for row in 0..100 {
        transaction.insert(&entity(row.to_string())).expect("added");
    }
    let error = transaction.insert(&entity("100")).expect_err("one too many");
    assert!(matches!(error.reason, Refusal::TooManyOperations), "{error}");
    assert_eq!(error.operation, 100);
    assert_eq!(transaction.submit().await.expect("submitted").len(), 100);

    let mut transaction = table.transaction();
    // Base64 makes four bytes of three, so 45 times 64 KiB fit and the 48th is beyond.
    let blob = |row: usize| DynamicEntity::new("large", row.to_string()).with("Blob", vec![7_u8; 64 * 1024]);
    let refused = (0..100).find_map(|row| transaction.insert(&blob(row)).err()).expect("too large at some point");
    assert!(matches!(refused.reason, Refusal::TooLarge { bytes } if bytes > 4 << 20), "{refused}");
    assert_eq!((refused.operation, transaction.len()), (47, 47));
    // Filled to the last byte, it is taken by the server, which counts for itself.
    let filler = |length: usize| {
        let text = "x".repeat(30_000);
        DynamicEntity::new("large", "rest").with("A", text.as_str()).with("B", text).with("C", "x".repeat(length))
    };
    let mut probe = transaction.clone();
    probe.insert(&filler(0)).expect("added");
    let longest = (4 << 20) - probe.size();
    assert!(longest < 32 * 1024, "{longest}");
    assert!(transaction.insert(&filler(longest + 1)).is_err(), "a byte too many");
    transaction.insert(&filler(longest)).expect("added");
    assert_eq!(transaction.size(), 4 << 20);
    assert_eq!(transaction.submit().await.expect("submitted").len(), 48);
}

#[tokio::test]
async fn c10_a_transaction_whose_answer_was_lost_is_found_done() {
    let (_server, table, faults) = faulty_table().await;
    let old = table.insert(&entity("replaced").with("A", 1)).await.expect("inserted");
    table.insert(&entity("deleted")).await.expect("inserted");
    let mut transaction = table.transaction();
    transaction.insert(&entity("new").with("A", 1)).expect("added");
    transaction.replace(&entity("replaced").with("A", 2), &old).expect("added");
    transaction.delete("p", "deleted", IfMatch::Any).expect("added");
    faults.plan([Fault::LoseReply]);
    let etags = transaction.submit().await.expect("no false conflict");
    let sent = faults.sent();
    assert_eq!(sent.iter().filter(|line| line.starts_with("POST")).count(), 2, "{sent:?}");
    for (row, etag) in ["new", "replaced", "deleted"].into_iter().zip(etags) {
        let stored = table.get::<DynamicEntity>("p", row).await.expect("read");
        assert_eq!(stored.and_then(|stored| stored.etag), etag, "{row}");
    }

    // What someone else wrote is a conflict all the same, after a lost answer too.
    let mut transaction = table.transaction();
    transaction.insert(&entity("other")).and_then(|t| t.insert(&entity("new").with("A", 2))).expect("added");
    faults.plan([Fault::LoseReply]);
    let error = transaction.submit().await.expect_err("a true conflict");
    assert_eq!((error.is_conflict(), error.operation()), (true, Some(1)));
    assert_eq!(table.get::<DynamicEntity>("p", "other").await.expect("read"), None);
}

#[tokio::test]
async fn c10_a_transaction_that_meets_a_busy_service_is_sent_again() {
    let (_server, table, faults) = faulty_table().await;
    let mut transaction = table.transaction();
    transaction.insert(&entity("1")).expect("added");
    faults.plan([Fault::Answer(503, vec![]), Fault::NotSent]);
    assert_eq!(transaction.submit().await.expect("submitted").len(), 1);
    assert_eq!(faults.sent().len(), 3);
    // The same transaction once more meets what it did itself.
    assert!(transaction.submit().await.expect_err("it is there").is_conflict());
}

#[tokio::test]
async fn c10_a_transaction_is_sent_again_if_an_operation_meets_a_busy_service() {
    let (_server, table, faults) = faulty_table().await;
    let mut transaction = table.transaction();
    transaction.insert(&entity("1")).expect("added");
    let content_type = vec![("content-type", "multipart/mixed; boundary=batchresponse_1")];
    let busy = "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n--changesetresponse_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n{\"odata.error\":{\"code\":\"ServerBusy\",\"message\":{\"lang\":\"en-US\",\"value\":\"0:The server is busy.\"}}}\r\n--changesetresponse_1--\r\n--batchresponse_1--\r\n";
    faults.plan([Fault::AnswerWith(202, content_type, busy)]);
    assert_eq!(transaction.submit().await.expect("submitted").len(), 1);
    assert_eq!(faults.sent().len(), 2);
}

#[tokio::test]
async fn c5_an_operation_is_named_by_a_refusal_of_the_whole_request_too() {
    let (_server, table, faults) = faulty_table().await;
    let mut transaction = table.transaction();
    transaction.insert(&entity("1")).and_then(|t| t.insert(&entity("2"))).expect("added");
    // Cosmos DB answers so.
    let body = r#"{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-us","value":"1:The specified entity already exists.\n"}}}"#;
    faults.plan([Fault::AnswerWith(409, vec![], body)]);
    let error = transaction.submit().await.expect_err("refused");
    assert_eq!((error.is_conflict(), error.operation()), (true, Some(1)), "{error}");
}
