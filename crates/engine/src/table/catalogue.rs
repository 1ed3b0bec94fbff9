//! Tables: creating, finding, listing and deleting them, and their access control lists.

use crate::contract::{Changed, Engine, Space, SpaceId, SpaceKind, SpaceName};
use crate::error::{EngineError, Fault, Reject};
use larimar_model::TableName;

/// A table that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The number of the space that holds its entities.
    pub id: SpaceId,
    /// Its name as its creator spelled it.
    pub name: String,
    /// Its access control list as the protocol writes it; empty when none was set.
    pub acl: String,
}

/// Creates a table.
///
/// # Errors
/// `Reject::TableExists` if the name is taken.
pub async fn create_table(engine: &impl Engine, account: &str, name: &TableName) -> Result<SpaceId, EngineError> {
    let folded = name.to_folded();
    let created = engine.create_space(space_name(account, &folded), &encode_meta(name.as_str(), "")).await?;
    created.ok_or(EngineError::Reject(Reject::TableExists))
}

/// Finds a table to work with its entities. Its list may be a moment old ([`Spaces::recent_space`](crate::Spaces::recent_space)).
///
/// # Errors
/// `Reject::TableNotFound` if no table has the name.
pub async fn find_table(engine: &impl Engine, account: &str, name: &TableName) -> Result<Table, EngineError> {
    let folded = name.to_folded();
    table_of(engine.recent_space(space_name(account, &folded)).await?)
}

/// Reads a table's name and list as they are now.
///
/// # Errors
/// `Reject::TableNotFound` if no table has the name.
pub async fn read_table(engine: &impl Engine, account: &str, name: &TableName) -> Result<Table, EngineError> {
    let folded = name.to_folded();
    table_of(engine.space(space_name(account, &folded)).await?)
}

fn table_of(space: Option<Space>) -> Result<Table, EngineError> {
    let space = space.ok_or(Reject::TableNotFound)?;
    let (name, acl) = decode_meta(&space.meta)?;
    Ok(Table { id: space.id, name: name.to_owned(), acl: acl.to_owned() })
}

/// Lists tables from a folded name on, at most `max`, each with its folded name. Tables of storage analytics are not
/// listed; one has to know their names.
///
/// # Errors
/// Faults of the engine.
pub async fn list_tables(
    engine: &impl Engine,
    account: &str,
    from: &str,
    max: usize,
) -> Result<Vec<(String, Table)>, Fault> {
    let spaces = engine.list_spaces(space_name(account, from.max(AFTER_SYSTEM)), max).await?;
    spaces
        .into_iter()
        .map(|(folded, space)| {
            let (name, acl) = decode_meta(&space.meta)?;
            Ok((folded, Table { id: space.id, name: name.to_owned(), acl: acl.to_owned() }))
        })
        .collect()
}

/// Deletes a table with all its entities, however many.
///
/// # Errors
/// `Reject::TableNotFound` if no table has the name.
pub async fn delete_table(engine: &impl Engine, account: &str, name: &TableName) -> Result<(), EngineError> {
    let folded = name.to_folded();
    let is_found = engine.drop_space(space_name(account, &folded)).await?;
    if is_found { Ok(()) } else { Err(Reject::TableNotFound.into()) }
}

/// Replaces a table's access control list.
///
/// # Errors
/// `Reject::TableNotFound` if no table has the name.
pub async fn set_acl(engine: &impl Engine, account: &str, name: &TableName, acl: &str) -> Result<(), EngineError> {
    let folded = name.to_folded();
    for _ in 0..CHANGE_ATTEMPTS {
        let space = engine.recent_space(space_name(account, &folded)).await?.ok_or(Reject::TableNotFound)?;
        let (name, _) = decode_meta(&space.meta)?;
        match engine.change_space(space_name(account, &folded), &space.meta, &encode_meta(name, acl)).await? {
            Changed::Yes => return Ok(()),
            Changed::Missing => return Err(Reject::TableNotFound.into()),
            Changed::Other => {}
        }
    }
    Err(Fault::Unavailable("a table's list changes all the time".to_owned()).into())
}

const fn space_name<'a>(account: &'a str, folded: &'a str) -> SpaceName<'a> {
    SpaceName { account, kind: SpaceKind::Table, name: folded }
}

/// The meta bytes of a table: a format byte, the length of the name, the name, the access control list.
/// The meta bytes of a copy of a table that has another name.
///
/// # Errors
/// Bytes that cannot be read.
pub fn meta_renamed(meta: &[u8], name: &TableName) -> Result<Vec<u8>, Fault> {
    decode_meta(meta).map(|(_, acl)| encode_meta(name.as_str(), acl))
}

fn encode_meta(name: &str, acl: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("a table name has at most 64 characters");
    [&[META_FORMAT, length], name.as_bytes(), acl.as_bytes()].concat()
}

fn decode_meta(meta: &[u8]) -> Result<(&str, &str), Fault> {
    let parts = || {
        let [META_FORMAT, length, rest @ ..] = meta else { return None };
        std::str::from_utf8(rest).ok()?.split_at_checked(usize::from(*length))
    };
    parts().ok_or_else(|| Fault::Damaged("a table's description has an unknown format".to_owned()))
}

/// Names of system tables begin with a dollar sign, all others with a letter behind this.
const AFTER_SYSTEM: &str = "%";
const META_FORMAT: u8 = 1;
/// Attempts before answering `ServerBusy`.
const CHANGE_ATTEMPTS: usize = 32;
