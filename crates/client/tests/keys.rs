//! Keys of every kind that the service takes, through every way that a key is written: addresses, filters, transactions,
//! continuations.

use crate::common::table;
use larimar_client::{Continuation, DynamicEntity, ETag, Error, IfMatch, TransactionRefusal, keys};
use std::collections::BTreeSet;

/// Keys that mean something else somewhere on their way, if they are not escaped.
const ODD: [&str; 25] = [
    "",
    " ",
    "'",
    "''",
    "O''Neil",
    "%",
    "%25",
    "%2F",
    "%00",
    "a+b",
    "a&b=c",
    "$filter",
    "(x)",
    "',RowKey='",
    "\"",
    "{}",
    ",",
    ";",
    "..",
    "@odata.type",
    "é",
    "\u{1F600}",
    "\u{E000}",
    "\u{FFFD}",
    "eq null",
];

#[tokio::test]
async fn c1_entities_are_found_under_the_keys_they_were_written_under() {
    let (_server, table) = table().await;
    for key in ODD {
        let entity = DynamicEntity::new(key, key).with("Key", key);
        let etag = table.insert(&entity).await.unwrap_or_else(|error| panic!("{key:?}: {error}"));
        let read: DynamicEntity = table.get(key, key).await.expect("read").expect("found");
        assert_eq!((read.partition_key.as_str(), read.row_key.as_str(), read.etag.as_ref()), (key, key, Some(&etag)));
        let etag = table.replace(&entity, etag).await.expect("replaced");
        let mut transaction = table.transaction();
        transaction.merge(&entity, etag).expect("added");
        transaction.insert(&DynamicEntity::new(key, format!("{key}2"))).expect("added");
        transaction.submit().await.expect("both");
    }
    for key in ODD {
        let by_filter = table.query::<DynamicEntity>().partition(key).filter(keys::row_key().eq(key));
        assert_eq!(by_filter.all().await.expect("read").len(), 1, "{key:?}");
        let by_prefix = table.query::<DynamicEntity>().partition(key).filter(keys::row_key().starts_with(key));
        assert_eq!(by_prefix.all().await.expect("read").len(), 2, "{key:?}");
        table.delete(key, format!("{key}2").as_str(), IfMatch::Any).await.expect("deleted");
    }
}

#[tokio::test]
async fn c3_pages_go_on_after_any_key() {
    let (_server, table) = table().await;
    for key in ODD {
        for row in ["", "'%+"] {
            table.insert(&DynamicEntity::new(key, row)).await.expect("inserted");
        }
    }
    let (mut found, mut next) = (BTreeSet::new(), None);
    loop {
        let query = table.query::<DynamicEntity>().page_size(1);
        let page = match next {
            Some(kept) => query.start_at(kept),
            None => query,
        };
        let page = page.page().await.expect("a page");
        for entity in page.entities {
            assert!(found.insert((entity.partition_key, entity.row_key)), "each comes once");
        }
        let Some(continuation) = page.continuation else { break };
        next = Some(continuation.to_string().parse::<Continuation>().expect("a continuation"));
    }
    assert_eq!(found.len(), 2 * ODD.len());
}

#[tokio::test]
async fn m7_a_condition_that_says_nothing_is_refused() {
    let (server, table) = table().await;
    let entity = DynamicEntity::new("p", "r");
    let before = server.requests().table;
    // Left out of the request, it would make of a replace an upsert.
    for etag in ["", "a\nb", "ü"] {
        let error = table.replace(&entity, ETag::new(etag)).await.expect_err("no ETag");
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        let mut transaction = table.transaction();
        let error = transaction.delete("p", "r", ETag::new(etag)).expect_err("no ETag");
        assert!(matches!(error.reason, TransactionRefusal::Condition), "{error}");
    }
    assert_eq!(server.requests().table, before);
}

#[tokio::test]
async fn c2_a_filter_that_fits_into_no_address_is_refused_by_its_size() {
    let (server, table) = table().await;
    let before = server.requests().table;
    let names = (0..10_000).map(|number| number.to_string());
    let query = table.query::<DynamicEntity>().filter(keys::row_key().in_values(names));
    let error = query.all().await.expect_err("too long");
    assert!(matches!(&error, Error::Invalid(reason) if reason.contains("bytes")), "{error}");
    assert_eq!(server.requests().table, before);
}
