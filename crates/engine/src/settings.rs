//! Small named values that the server stores for an account, such as its service properties.

use crate::contract::{Act, Engine, Expect, Key, Op, SpaceId};
use crate::error::{EditError, Fault, ReadError, WriteError};
use larimar_model::Timestamp;

/// Reads a value.
///
/// # Errors
/// Faults of the engine.
pub async fn load_setting(engine: &impl Engine, account: &str, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let key = Key { space: SpaceId::SYSTEM, partition: account, row: name };
    engine.get(key, |row| row.map(|row| row.body.to_vec())).await.map_err(|error| match error {
        ReadError::Fault(fault) => fault,
        ReadError::SpaceGone => Fault::Damaged("the system's space is not there".to_owned()),
    })
}

/// Stores a value.
///
/// # Errors
/// Faults of the engine.
pub async fn store_setting(
    engine: &impl Engine,
    account: &str,
    name: &str,
    value: &[u8],
    now: Timestamp,
) -> Result<(), Fault> {
    let op = Op { row: name, expect: Expect::Any, act: Act::Put(value) };
    match engine.apply(SpaceId::SYSTEM, account, &[op], now).await {
        Ok(_) => Ok(()),
        Err(WriteError::Fault(fault)) => Err(fault),
        Err(other) => Err(Fault::Damaged(format!("an unconditional write was refused: {other}"))),
    }
}

/// Changes a value, whole: of concurrent changes each sees the one before it. `edit` gives the new value, or refuses.
///
/// # Errors
/// Faults of the engine. The inner error is what `edit` refused with.
pub async fn edit_setting<R: Send>(
    engine: &impl Engine,
    account: &str,
    name: &str,
    now: Timestamp,
    edit: impl Fn(Option<&[u8]>) -> Result<Vec<u8>, R> + Send + Sync,
) -> Result<Result<(), R>, Fault> {
    let key = Key { space: SpaceId::SYSTEM, partition: account, row: name };
    match engine.edit(key, now, |stored| Ok((edit(stored)?, ()))).await {
        Ok(()) => Ok(Ok(())),
        Err(EditError::Refused(refusal)) => Ok(Err(refusal)),
        Err(EditError::Fault(fault)) => Err(fault),
        Err(EditError::SpaceGone) => Err(Fault::Damaged("the system's space is not there".to_owned())),
    }
}
