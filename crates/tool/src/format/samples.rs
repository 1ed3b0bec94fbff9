//! Random entities for the tests of the formats.

use larimar_client::{DynamicEntity, Guid, Timestamp, Value};
use proptest::prelude::*;

#[path = "../../../client/src/value/samples.rs"]
mod values;

pub(crate) use values::any_value;

/// Entities whose keys the service takes, with few names, so that one name has several types and is sometimes absent.
pub(crate) fn any_entities() -> impl Strategy<Value = Vec<DynamicEntity>> {
    let is_valid = |char: &char| !matches!(char, '/' | '\\' | '#' | '?') && !char.is_control();
    let key = prop_oneof![4 => any::<String>(), 1 => Just(String::new()), 1 => Just("=x".to_owned())]
        .prop_map(move |key| key.chars().filter(is_valid).collect::<String>());
    let properties = prop::collection::btree_map("[A-Da-c_é][A-C]?", any_value(), 0..6);
    let ticks = (530_000_000_000_000_000_u64..713_000_000_000_000_000).prop_map(Timestamp::from_ticks);
    let entity = (key.clone(), key, properties, ticks).prop_map(|(partition, row, properties, time)| {
        let mut entity = DynamicEntity::new(partition, row);
        entity.timestamp = Some(time);
        for (name, value) in properties {
            entity.set(name, value);
        }
        entity
    });
    prop::collection::vec(entity, 0..16)
}

/// Equal for equal values; NaN equals NaN and 0.0 does not equal -0.0.
pub(crate) fn debug(value: &Value) -> String {
    format!("{value:?}")
}

/// Keys and properties of entities, comparable as [`debug`] does. The time is left out: import does not read it.
pub(crate) fn comparable(entities: &[DynamicEntity]) -> Vec<String> {
    entities
        .iter()
        .map(|entity| {
            let properties: Vec<_> = entity.properties().map(|(name, value)| (name, debug(value))).collect();
            format!("{:?} {:?} {properties:?}", entity.partition_key, entity.row_key)
        })
        .collect()
}
