//! Every value and every key that the service stores, through a copy.

use super::{copy, seen, server};
use larimar_client::{BulkOperation, DynamicEntity, Guid, Timestamp, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;

#[path = "../../../client/src/value/samples.rs"]
mod samples;

/// Keys may hold anything but slashes, number signs, question marks and control characters.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z0-9]{0,4}",
        2 => "['\"& +%~.{}|^`=;,:@!$()*<>\\[\\]-]{1,6}",
        2 => "[éЖ日\u{D7FF}\u{E000}\u{FFFD}😀]{1,4}",
        1 => Just(String::new()),
    ]
}

fn entities() -> impl Strategy<Value = Vec<DynamicEntity>> {
    let properties = prop::collection::btree_map("[A-Za-z_][A-Za-z0-9_é]{0,8}", samples::any_value(), 0..6);
    prop::collection::btree_map((key(), key()), properties, 0..20).prop_map(|all| {
        all.into_iter()
            .map(|((partition, row), properties): (_, BTreeMap<String, Value>)| {
                let mut entity = DynamicEntity::new(partition, row);
                for (name, value) in properties {
                    // These names are the service's own.
                    if !["PartitionKey", "RowKey", "Timestamp"].contains(&name.as_str()) {
                        entity.set(name, value);
                    }
                }
                entity
            })
            .collect()
    })
}

#[test]
fn every_value_and_key_arrives() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut runner = TestRunner::new(Config { cases: 12, failure_persistence: None, ..Config::default() });
    runner
        .run(&entities(), |entities| {
            runtime.block_on(async {
                let ((from, source), (to, target)) = (server().await, server().await);
                source.table("Values").create().await.expect("created");
                let inserts = entities.iter().map(|entity| BulkOperation::insert(entity).expect("an entity"));
                source.table("Values").bulk().submit(inserts).await.into_result().expect("inserted");
                let folder = tempfile::tempdir().expect("a folder");
                let more = ["--only", "tables", "--parallel", "3"];
                copy(folder.path(), &from.connection_string(), &to.connection_string(), &more).await.expect("copied");
                let copied = seen(&target).await.entities;
                assert_eq!(copied.len(), entities.len());
                assert_eq!(copied, seen(&source).await.entities);
            });
            Ok(())
        })
        .expect("every case");
}
