//! The record of a store that is being filled before it is served: which tables are filled, and that it goes on.
//!
//! The record is written before the first of the tables is created and removed after the last row is stored, so a store
//! with a record is not complete. Each change of it is conditional on its version: of several servers over one database
//! only one fills the store, and one that lost its record to another finds out at its next change.

use crate::contract::{Act, Engine, Expect, Key, Op, SpaceId};
use crate::error::{Fault, ReadError, WriteError};
use larimar_model::{TableName, Timestamp};

/// The record of a filling that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedRecord {
    /// Which version of the record this is, for changes of it.
    pub version: Timestamp,
    /// The tables that are being filled, with their accounts. None: the store is claimed, and nothing was written yet.
    pub tables: Vec<(String, TableName)>,
}

/// Reads the record, if there is one.
///
/// # Errors
/// Faults of the engine.
pub async fn load_seed_record(engine: &impl Engine) -> Result<Option<SeedRecord>, Fault> {
    let key = Key { space: SpaceId::SYSTEM, partition: "", row: ROW };
    let found = engine.get(key, |row| row.map(|row| (row.version, row.body.to_vec()))).await;
    let found = found.map_err(|error| match error {
        ReadError::Fault(fault) => fault,
        ReadError::SpaceGone => Fault::Damaged("the system's space is not there".to_owned()),
    })?;
    let unknown = || Fault::Damaged(format!("the record {ROW} has an unknown format"));
    let read =
        |(version, body): (Timestamp, Vec<u8>)| Ok(SeedRecord { version, tables: decode(&body).ok_or_else(unknown)? });
    found.map(read).transpose()
}

/// Writes the record in the place of the one before it, or of none. Returns it, or `None` if another process changed it
/// meanwhile.
///
/// # Errors
/// Faults of the engine.
pub async fn store_seed_record(
    engine: &impl Engine,
    before: Option<&SeedRecord>,
    tables: Vec<(String, TableName)>,
    now: Timestamp,
) -> Result<Option<SeedRecord>, Fault> {
    let expect = before.map_or(Expect::Absent, |record| Expect::Version(record.version));
    let version = change(engine, expect, Act::Put(&encode(&tables)), now).await?;
    Ok(version.map(|version| SeedRecord { version, tables }))
}

/// Removes the record: the store is complete. `false` if another process changed it meanwhile.
///
/// # Errors
/// Faults of the engine.
pub async fn remove_seed_record(engine: &impl Engine, record: &SeedRecord, now: Timestamp) -> Result<bool, Fault> {
    Ok(change(engine, Expect::Version(record.version), Act::Delete, now).await?.is_some())
}

async fn change(
    engine: &impl Engine,
    expect: Expect,
    act: Act<'_>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Fault> {
    match engine.apply(SpaceId::SYSTEM, "", &[Op { row: ROW, expect, act }], now).await {
        Ok(versions) => Ok(versions.first().copied()),
        Err(WriteError::Condition { .. }) => Ok(None),
        Err(WriteError::Fault(fault)) => Err(fault),
        Err(other) => Err(Fault::Damaged(format!("a write to the record {ROW} was refused: {other}"))),
    }
}

/// A format byte, then a line `ACCOUNT/TABLE` for each table.
fn encode(tables: &[(String, TableName)]) -> Vec<u8> {
    let lines = tables.iter().map(|(account, table)| format!("{account}/{}\n", table.as_str()));
    std::iter::once(FORMAT).chain(lines.flat_map(String::into_bytes)).collect()
}

fn decode(body: &[u8]) -> Option<Vec<(String, TableName)>> {
    let (&FORMAT, lines) = body.split_first()? else { return None };
    let lines = std::str::from_utf8(lines).ok()?.lines();
    lines
        .map(|line| line.split_once('/').and_then(|(account, name)| Some((account.to_owned(), name.parse().ok()?))))
        .collect()
}

const ROW: &str = "seed";
const FORMAT: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryEngine;

    fn table(account: &str, name: &str) -> (String, TableName) {
        (account.to_owned(), name.parse().expect("a name"))
    }

    #[tokio::test]
    async fn a_record_changes_only_from_what_was_seen() {
        let engine = MemoryEngine::default();
        let now = Timestamp::from_ticks(1);
        let tables = || vec![table("one", "Orders"), table("two", "orders")];
        assert_eq!(load_seed_record(&engine).await, Ok(None));
        let store = async |before, tables| store_seed_record(&engine, before, tables, now).await.expect("no fault");
        let claimed = store(None, Vec::new()).await.expect("claimed");
        assert_eq!(store(None, tables()).await, None, "it is claimed");
        let filling = store(Some(&claimed), tables()).await.expect("ours");
        assert_eq!(load_seed_record(&engine).await, Ok(Some(filling.clone())));
        assert_eq!(store(Some(&claimed), Vec::new()).await, None, "another took it over");
        assert_eq!(remove_seed_record(&engine, &claimed, now).await, Ok(false));
        assert_eq!(remove_seed_record(&engine, &filling, now).await, Ok(true));
        assert_eq!(load_seed_record(&engine).await, Ok(None));
    }

    #[test]
    fn a_record_of_another_format_is_not_read() {
        assert_eq!(decode(&encode(&[])), Some(Vec::new()));
        assert_eq!(decode(&encode(&[table("one", "Orders")])), Some(vec![table("one", "Orders")]));
        for body in [&b""[..], b"\x02one/Orders\n", b"\x01one\n", b"\x01one/x\n", b"\x01\xff"] {
            assert_eq!(decode(body), None, "{body:?}");
        }
    }
}
