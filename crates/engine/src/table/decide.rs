//! The rules of writes: what each kind of write requires of the stored row, what it stores, and the rejection when the
//! row does not fit. Pure; single writes and transactions share it.

use crate::contract::Expect;
use crate::error::Reject;
use larimar_model::table::Write;
use larimar_model::{Entity, EntityBody, IfMatch, Timestamp};

/// What a write requires of the stored row.
pub(super) const fn expectation(write: &Write) -> Expect {
    match write {
        Write::Insert(_) => Expect::Absent,
        Write::Replace(_, None) | Write::Merge(_, None) => Expect::Any,
        Write::Replace(_, Some(if_match)) | Write::Merge(_, Some(if_match)) | Write::Delete(_, if_match) => {
            match if_match {
                IfMatch::Any => Expect::Present,
                IfMatch::Version(version) => Expect::Version(*version),
                // No row ever has this version.
                IfMatch::Foreign => Expect::Version(Timestamp::from_ticks(0)),
            }
        }
    }
}

/// The rejection returned when a write's condition fails.
#[must_use]
pub(super) const fn refusal(found: Option<Timestamp>, expect: Expect) -> Reject {
    match (expect, found) {
        (Expect::Absent, _) => Reject::EntityExists,
        (_, None) => Reject::EntityNotFound,
        (_, Some(_)) => Reject::ConditionNotMet,
    }
}

/// The body that a merge stores over the one that is there.
pub(super) fn merged(current: Option<&[u8]>, changes: &Entity) -> Result<Vec<u8>, Reject> {
    match current {
        Some(current) => Ok(EntityBody::from_trusted(current).merged(changes.body(), &changes.key)?),
        None => Ok(changes.body().as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larimar_model::{EntityKey, PartitionKey, RowKey};

    const V1: Timestamp = Timestamp::from_ticks(1);
    const V2: Timestamp = Timestamp::from_ticks(2);

    fn key() -> EntityKey {
        EntityKey { partition: PartitionKey::new("p").expect("a key"), row: RowKey::new("r").expect("a key") }
    }

    fn entity() -> Entity {
        Entity::from_properties(key(), []).expect("an entity")
    }

    fn outcome(write: &Write, found: Option<Timestamp>) -> Result<(), Reject> {
        let expect = expectation(write);
        if expect.admits(found) { Ok(()) } else { Err(refusal(found, expect)) }
    }

    #[test]
    fn m1_to_m7_each_write_meets_an_absent_and_a_present_row() {
        use Reject::{ConditionNotMet, EntityExists, EntityNotFound};
        let (any, same, stale) = (Some(IfMatch::Any), Some(IfMatch::Version(V1)), Some(IfMatch::Version(V2)));
        let foreign = Some(IfMatch::Foreign);
        for (write, absent, present) in [
            (Write::Insert(entity()), Ok(()), Err(EntityExists)),
            (Write::Replace(entity(), None), Ok(()), Ok(())),
            (Write::Merge(entity(), None), Ok(()), Ok(())),
            (Write::Replace(entity(), any), Err(EntityNotFound), Ok(())),
            (Write::Merge(entity(), any), Err(EntityNotFound), Ok(())),
            (Write::Delete(key(), IfMatch::Any), Err(EntityNotFound), Ok(())),
            (Write::Replace(entity(), same), Err(EntityNotFound), Ok(())),
            (Write::Merge(entity(), same), Err(EntityNotFound), Ok(())),
            (Write::Replace(entity(), stale), Err(EntityNotFound), Err(ConditionNotMet)),
            (Write::Merge(entity(), foreign), Err(EntityNotFound), Err(ConditionNotMet)),
            (Write::Delete(key(), IfMatch::Version(V2)), Err(EntityNotFound), Err(ConditionNotMet)),
            (Write::Delete(key(), IfMatch::Version(V1)), Err(EntityNotFound), Ok(())),
        ] {
            assert_eq!(outcome(&write, None), absent, "{write:?} on nothing");
            assert_eq!(outcome(&write, Some(V1)), present, "{write:?} on a row");
        }
    }
}
