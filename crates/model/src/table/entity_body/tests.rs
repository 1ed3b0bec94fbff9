//! Tests of the stored form.

use super::*;
use crate::{Entity, PartitionKey, RowKey, Value};
use proptest::prelude::*;

fn key() -> EntityKey {
    EntityKey { partition: PartitionKey::new("p").expect("a key"), row: RowKey::new("r").expect("a key") }
}

fn built(properties: &[(String, Value)]) -> Vec<u8> {
    let mut body = BodyBuilder::new();
    for (name, value) in properties {
        body.push(name, value.as_ref()).expect("a valid property");
    }
    body.into_bytes()
}

#[test]
fn d3_252_properties_are_kept_and_one_more_is_refused() {
    let mut body = BodyBuilder::new();
    for i in 0..252 {
        body.push(&format!("p{i}"), ValueRef::Int32(i)).expect("within the limit");
    }
    assert_eq!(body.push("more", ValueRef::Int32(0)), Err(BodyError::TooManyProperties));
}

#[test]
fn a_name_is_taken_once() {
    let mut body = BodyBuilder::new();
    body.push("etag", ValueRef::Boolean(true)).expect("new");
    body.push("ETag", ValueRef::Boolean(true)).expect("names differ by case");
    assert_eq!(body.push("etag", ValueRef::Boolean(true)), Err(BodyError::Duplicate("etag".to_owned())));
}

#[test]
fn d5_an_entity_of_one_mebibyte_is_kept_and_one_byte_more_is_refused() {
    let full = vec![0u8; limits::BINARY_BYTES_MAX];
    let names: Vec<String> = (0..16).map(|i| format!("b{i:02}")).collect();
    let entity = |last: usize| {
        let mut body = BodyBuilder::new();
        for name in &names[..15] {
            body.push(name, ValueRef::Binary(&full)).expect("within the limit");
        }
        body.push(&names[15], ValueRef::Binary(&full[..last])).expect("within the limit");
        Entity::new(key(), body)
    };
    let overhead = entity(0).expect("small enough").body().size(&key());
    let last = limits::ENTITY_BYTES_MAX - overhead;
    let exact = entity(last).expect("exactly at the limit");
    assert_eq!(exact.body().size(&key()), limits::ENTITY_BYTES_MAX);
    assert_eq!(entity(last + 1), Err(BodyError::TooLarge));
}

#[test]
fn m3_merge_keeps_properties_it_does_not_name() {
    let old = built(&[("a".into(), Value::Int32(1)), ("b".into(), Value::Int32(2))]);
    let new = built(&[("c".into(), Value::Int32(4)), ("b".into(), Value::String("3".into()))]);
    let merged = EntityBody(&old).merged(EntityBody(&new), &key()).expect("small");
    let names: Vec<_> = EntityBody(&merged).properties().map(|(n, v)| (n, v.to_value())).collect();
    assert_eq!(names, [("a", Value::Int32(1)), ("b", Value::String("3".into())), ("c", Value::Int32(4))]);
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(Value::String),
        any::<i32>().prop_map(Value::Int32),
        any::<i64>().prop_map(Value::Int64),
        prop::num::f64::NORMAL.prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        (Timestamp::EDM_MIN.ticks()..=Timestamp::MAX.ticks()).prop_map(|t| Value::DateTime(Timestamp::from_ticks(t))),
        any::<[u8; 16]>().prop_map(|b| Value::Guid(Guid(b))),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Binary),
    ]
}

proptest! {
    #[test]
    fn what_is_built_is_read_back(properties in prop::collection::btree_map("[a-z_][a-z0-9]{0,9}", value(), 0..20)) {
        let properties: Vec<_> = properties.into_iter().collect();
        let bytes = built(&properties);
        let body = EntityBody::parse(&bytes).expect("a whole body");
        let read: Vec<_> = body.properties().map(|(n, v)| (n.to_owned(), v.to_value())).collect();
        prop_assert_eq!(&read, &properties);
        for (name, value) in &properties {
            prop_assert_eq!(body.get(name).map(ValueRef::to_value), Some(value.clone()));
        }
        prop_assert_eq!(body.get("Missing"), None);
    }

    #[test]
    fn any_bytes_are_read_or_called_damaged(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(body) = EntityBody::parse(&bytes) {
            body.properties().for_each(drop);
        }
    }

    #[test]
    fn a_cut_body_is_damaged(properties in prop::collection::btree_map("[a-z]{1,5}", value(), 1..5), cut: prop::sample::Index) {
        let bytes = built(&properties.into_iter().collect::<Vec<_>>());
        let ends: Vec<usize> = {
            let mut all = EntityBody(&bytes).properties();
            let mut ends = vec![1];
            while all.next().is_some() {
                ends.push(bytes.len() - all.rest.len());
            }
            ends
        };
        let at = cut.index(bytes.len());
        prop_assert_eq!(EntityBody::parse(&bytes[..at]).is_ok(), ends.contains(&at));
    }
}
