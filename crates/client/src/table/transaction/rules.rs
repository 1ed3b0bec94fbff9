//! The rules of an entity by itself, as `larimar_model` has them, in the words of this crate's errors.

use super::TransactionRefusal;
use crate::DynamicEntity;
use crate::pipeline::printable;
use crate::table::write::{Write, WriteKind};
use larimar_model::{
    BodyBuilder, BodyError, Entity, EntityKey, KeyError, PartitionKey, PropertyError, RowKey, is_system_property,
};

/// Refuses a write that no service takes.
pub(super) fn check(write: &Write) -> Result<(), TransactionRefusal> {
    if write.if_match().is_some_and(|condition| condition.is_empty() || printable(condition).is_none()) {
        return Err(TransactionRefusal::Condition);
    }
    let entity = &write.entity;
    let key = EntityKey {
        partition: PartitionKey::new(entity.partition_key.as_str()).map_err(|error| key(error, "PartitionKey"))?,
        row: RowKey::new(entity.row_key.as_str()).map_err(|error| self::key(error, "RowKey"))?,
    };
    if matches!(write.kind, WriteKind::Delete(_)) {
        return Ok(());
    }
    let mut body = BodyBuilder::new();
    for (name, value) in entity.properties() {
        if is_system_property(name) {
            return Err(TransactionRefusal::PropertyName { property: name.to_owned() });
        }
        body.push(name, value.as_model()).map_err(|error| refusal(&error, entity, name))?;
    }
    Entity::new(key, body).map(drop).map_err(|error| refusal(&error, entity, ""))
}

fn key(error: KeyError, key: &'static str) -> TransactionRefusal {
    match error {
        KeyError::TooLong => TransactionRefusal::KeyTooLong { key },
        KeyError::Forbidden => TransactionRefusal::KeyForbidden { key },
    }
}

fn refusal(error: &BodyError, entity: &DynamicEntity, property: &str) -> TransactionRefusal {
    let property = property.to_owned();
    match error {
        BodyError::Property(PropertyError::NameTooLong | PropertyError::NameInvalid) | BodyError::Duplicate(_) => {
            TransactionRefusal::PropertyName { property }
        }
        BodyError::Property(PropertyError::ValueTooLarge) => TransactionRefusal::PropertyTooLarge { property },
        BodyError::TooManyProperties => TransactionRefusal::TooManyProperties { count: entity.properties().len() },
        BodyError::TooLarge => TransactionRefusal::EntityTooLarge { bytes: entity.size() },
        BodyError::Property(PropertyError::OutOfRange { .. }) | BodyError::Damaged => {
            TransactionRefusal::Invalid(error.to_string())
        }
    }
}
