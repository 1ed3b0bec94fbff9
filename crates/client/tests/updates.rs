//! Changes of entities that others change too.

use crate::common::faults::{Fault, Meanwhile, faulty_table};
use crate::common::table;
use larimar_client::{DynamicEntity, Entity, EntityError, Error, IfMatch};
use std::borrow::Cow;

fn counter(count: i32) -> DynamicEntity {
    DynamicEntity::new("p", "r").with("Count", count)
}

fn increment(entity: &mut DynamicEntity) {
    let count: i32 = entity.get("Count").unwrap_or_default();
    entity.set("Count", count + 1);
}

#[tokio::test]
async fn c7_no_change_is_lost_among_many_writers() {
    let (_server, table) = table().await;
    table.insert(&counter(0)).await.expect("inserted");
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let table = table.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    let update = table.update("p", "r").attempts_max(1_000);
                    update.run(increment).await.expect("updated").expect("found");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    let stored: DynamicEntity = table.get("p", "r").await.expect("read").expect("found");
    assert_eq!(stored.get::<i32>("Count").expect("a number"), 80);
}

#[tokio::test]
async fn c7_the_written_entity_comes_back_with_its_etag_or_nothing_does() {
    let (server, table) = table().await;
    table.insert(&counter(1)).await.expect("inserted");
    let before = server.requests().table;
    let (entity, etag) = table.update_with_retry("p", "r", increment).await.expect("updated").expect("found");
    assert_eq!(server.requests().table - before, 2, "a read and a write");
    assert_eq!(entity.get::<i32>("Count").expect("a number"), 2);
    table.delete("p", "r", etag).await.expect("the ETag is that of the stored entity");
    assert!(table.update_with_retry("p", "r", increment).await.expect("asked").is_none());
}

#[tokio::test]
async fn an_update_may_be_refused_by_the_caller_and_never_moves_an_entity() {
    let (server, table) = table().await;
    table.insert(&counter(1)).await.expect("inserted");
    let before = server.requests().table;
    let refused = table.update("p", "r").try_run(|_: &mut DynamicEntity| Err(Error::Invalid("no".to_owned()))).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
    assert_eq!(server.requests().table - before, 1, "nothing was written");
    let moved = table.update_with_retry("p", "r", |entity: &mut DynamicEntity| entity.row_key = "s".to_owned()).await;
    assert!(matches!(moved, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn attempts_are_bounded() {
    let (_server, table, faults) = faulty_table().await;
    table.insert(&counter(1)).await.expect("inserted");
    let changed = || Fault::Answer(412, vec![]);
    faults.plan([Fault::Pass, changed(), Fault::Pass, changed(), Fault::Pass, changed(), Fault::Pass]);
    let error = table.update("p", "r").attempts_max(3).run(increment).await.expect_err("changed every time");
    assert!(error.is_changed());
    assert_eq!(faults.sent().len(), 6);
}

#[tokio::test]
async fn c10_a_change_whose_answer_was_lost_is_made_once() {
    let (_server, table, faults) = faulty_table().await;
    table.insert(&counter(1)).await.expect("inserted");
    faults.plan([Fault::Pass, Fault::LoseReply]);
    let (entity, etag) = table.update_with_retry("p", "r", increment).await.expect("updated").expect("found");
    assert_eq!(entity.get::<i32>("Count").expect("a number"), 2);
    let stored: DynamicEntity = table.get("p", "r").await.expect("read").expect("found");
    assert_eq!((stored.get::<i32>("Count").ok(), stored.etag), (Some(2), Some(etag)));

    // After another write it is unknown whether the change was made, so it is not made again.
    let other = table.clone();
    let meanwhile = Meanwhile::new(move || {
        let other = other.clone();
        async move {
            other.replace(&counter(100), IfMatch::Any).await.expect("replaced");
        }
    });
    faults.plan([Fault::Pass, Fault::LoseReplyAnd(meanwhile)]);
    let error = table.update_with_retry("p", "r", increment).await.expect_err("unknown");
    assert!(error.is_changed() && error.is_ambiguous(), "{error}");
    let stored: DynamicEntity = table.get("p", "r").await.expect("read").expect("found");
    assert_eq!(stored.get::<i32>("Count").ok(), Some(100));
}

/// A type that knows two properties of many.
struct Partial {
    count: i32,
    note: Option<String>,
}

impl Entity for Partial {
    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        let mut entity = counter(self.count);
        entity.put("Note", &self.note)?;
        Ok(Cow::Owned(entity))
    }

    fn from_dynamic(mut entity: DynamicEntity) -> Result<Self, EntityError> {
        Ok(Self { count: entity.take("Count")?, note: entity.take("Note")? })
    }

    fn columns() -> Option<Vec<Cow<'static, str>>> {
        Some(["PartitionKey", "RowKey", "Count", "Note"].map(Cow::Borrowed).to_vec())
    }
}

#[tokio::test]
async fn c7_what_a_type_does_not_know_is_kept_and_what_it_removes_is_gone() {
    let (_server, table) = table().await;
    table.insert(&counter(1).with("Note", "x").with("Other", "kept")).await.expect("inserted");
    let update = |partial: &mut Partial| {
        partial.count += 1;
        partial.note = None;
    };
    table.update_with_retry("p", "r", update).await.expect("updated").expect("found");
    let stored: DynamicEntity = table.get("p", "r").await.expect("read").expect("found");
    assert_eq!(stored.properties().map(|(name, _)| name).collect::<Vec<_>>(), ["Count", "Other"]);
    assert_eq!(stored.get::<i32>("Count").ok(), Some(2));
}
