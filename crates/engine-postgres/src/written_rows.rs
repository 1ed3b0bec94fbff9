//! Rows that a write stored, found by its token. After a broken connection they show that the write took effect.

use crate::connection::Connection;
use crate::failure::Failure;
use crate::statements::entities::ConfirmRows;
use larimar_model::Timestamp;
use rustc_hash::FxHashMap;

/// A row that a write was to store.
#[derive(Clone, Copy)]
pub(crate) struct WrittenRow<'a> {
    pub(crate) pk: &'a [u8],
    pub(crate) rk: &'a [u8],
    pub(crate) token: i64,
}

/// The versions of those rows that have the token of their write. About the others nothing is known: the write did not
/// take effect, or the row was overwritten since.
pub(crate) async fn find(
    connection: &Connection,
    rows: &[Option<WrittenRow<'_>>],
) -> Result<Vec<Option<Timestamp>>, Failure> {
    let asked = || rows.iter().flatten();
    let pks: Vec<&[u8]> = asked().map(|row| row.pk).collect();
    let rks: Vec<&[u8]> = asked().map(|row| row.rk).collect();
    let tokens: Vec<i64> = asked().map(|row| row.token).collect();
    let mut found = FxHashMap::default();
    if !pks.is_empty() {
        // The rows of a transaction share its token, and may have different versions.
        for (token, rk, version) in connection.query(&ConfirmRows { pks, rks, tokens }).await? {
            found.insert((token, rk), Timestamp::from_ticks(version.cast_unsigned()));
        }
    }
    let version = |row: &WrittenRow<'_>| found.get(&(row.token, row.rk.to_vec())).copied();
    Ok(rows.iter().map(|row| row.as_ref().and_then(version)).collect())
}
