//! One write on an entity, as a request of its own or as a part of a transaction.

use super::address::{entity_path, table_path};
use super::json;
use crate::{DynamicEntity, IfMatch, Value};
use http::Method;

/// The kinds of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Insert,
    Replace(IfMatch),
    Merge(IfMatch),
    InsertOrReplace,
    InsertOrMerge,
    Delete(IfMatch),
}

/// A write with its entity; a delete has only the keys of it.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) kind: WriteKind,
    pub(crate) entity: DynamicEntity,
}

impl Write {
    pub(crate) const fn name(&self) -> &'static str {
        match self.kind {
            WriteKind::Insert => "InsertEntity",
            WriteKind::Replace(_) => "UpdateEntity",
            WriteKind::Merge(_) => "MergeEntity",
            WriteKind::InsertOrReplace => "InsertOrReplaceEntity",
            WriteKind::InsertOrMerge => "InsertOrMergeEntity",
            WriteKind::Delete(_) => "DeleteEntity",
        }
    }

    pub(crate) const fn method(&self) -> Method {
        match self.kind {
            WriteKind::Insert => Method::POST,
            WriteKind::Replace(_) | WriteKind::InsertOrReplace => Method::PUT,
            WriteKind::Merge(_) | WriteKind::InsertOrMerge => Method::PATCH,
            WriteKind::Delete(_) => Method::DELETE,
        }
    }

    /// The path below the service's address.
    pub(crate) fn path(&self, table: &str) -> String {
        match self.kind {
            WriteKind::Insert => table_path(table),
            _ => entity_path(table, &self.entity.partition_key, &self.entity.row_key),
        }
    }

    pub(crate) fn if_match(&self) -> Option<&str> {
        match &self.kind {
            WriteKind::Replace(condition) | WriteKind::Merge(condition) | WriteKind::Delete(condition) => {
                Some(condition.as_str())
            }
            WriteKind::Insert | WriteKind::InsertOrReplace | WriteKind::InsertOrMerge => None,
        }
    }

    /// The entity as JSON; a delete has no body.
    pub(crate) fn body(&self) -> Option<Vec<u8>> {
        if matches!(self.kind, WriteKind::Delete(_)) {
            return None;
        }
        let mut body = Vec::with_capacity(256);
        json::write_entity(&mut body, &self.entity);
        Some(body)
    }

    /// Whether what is stored is what this write would have left, so that a write whose answer was lost took place.
    pub(crate) fn is_done(&self, stored: Option<&DynamicEntity>) -> bool {
        match (&self.kind, stored) {
            (WriteKind::Delete(_), stored) => stored.is_none(),
            (_, None) => false,
            (WriteKind::Insert | WriteKind::Replace(_) | WriteKind::InsertOrReplace, Some(stored)) => {
                stored.properties().len() == self.entity.properties().len() && self.is_within(stored)
            }
            (WriteKind::Merge(_) | WriteKind::InsertOrMerge, Some(stored)) => self.is_within(stored),
        }
    }

    fn is_within(&self, stored: &DynamicEntity) -> bool {
        self.entity.properties().all(|(name, value)| stored.value(name).is_some_and(|found| is_same(found, value)))
    }
}

/// Equality of values as they are stored: NaN is NaN.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left == right || left.is_nan() && right.is_nan(),
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c10_a_lost_write_is_told_by_what_is_stored() {
        let entity = DynamicEntity::new("p", "r").with("A", 1).with("N", f64::NAN);
        let wider = entity.clone().with("B", 2);
        let other = DynamicEntity::new("p", "r").with("A", 2).with("N", f64::NAN);
        for (kind, same, with_more) in [
            (WriteKind::Insert, true, false),
            (WriteKind::Replace(IfMatch::Any), true, false),
            (WriteKind::Merge(IfMatch::Any), true, true),
            (WriteKind::Delete(IfMatch::Any), false, false),
        ] {
            let write = Write { kind, entity: entity.clone() };
            let outcome = [Some(&entity), Some(&wider), Some(&other)].map(|stored| write.is_done(stored));
            assert_eq!(outcome, [same, with_more, false], "{write:?}");
            assert_eq!(write.is_done(None), matches!(write.kind, WriteKind::Delete(_)));
        }
    }
}
