//! Tokens for the entities of one table.

use super::{SasError, SasProtocol, SasToken, TablePermissions, Terms, check_field, terms};
use crate::{SharedKey, Timestamp};
use larimar_model::{TableName, utf16};
use larimar_wire::sas::{SasKind, TableSas as Fields};
use std::cmp::Ordering;
use std::net::IpAddr;

/// Builds a token for the entities of one table, or of a range of its keys.
///
/// A token for a table does not allow to create, delete or list tables.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it signs"]
pub struct TableSas {
    table: String,
    permissions: TablePermissions,
    first: Option<Bound>,
    last: Option<Bound>,
    terms: Terms,
}

/// One end of a range of keys.
#[derive(Clone, Debug)]
struct Bound {
    partition: String,
    row: Option<String>,
}

impl TableSas {
    /// A token for this table, which allows nothing yet.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            permissions: TablePermissions::NONE,
            first: None,
            last: None,
            terms: Terms::default(),
        }
    }

    /// What the token allows.
    pub const fn permissions(mut self, permissions: TablePermissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// The stored policy that completes the token: it gives what the token leaves out, and what it gives the token
    /// must leave out. Changing or removing the policy changes or revokes the token.
    pub fn policy(mut self, id: impl Into<String>) -> Self {
        self.terms.policy = Some(id.into());
        self
    }

    /// The token is for entities from this partition on.
    pub fn from_partition(mut self, partition: impl Into<String>) -> Self {
        self.first = Some(Bound { partition: partition.into(), row: None });
        self
    }

    /// The token is for entities from this key on.
    pub fn from_key(mut self, partition: impl Into<String>, row: impl Into<String>) -> Self {
        self.first = Some(Bound { partition: partition.into(), row: Some(row.into()) });
        self
    }

    /// The token is for entities up to this partition, which is included.
    pub fn to_partition(mut self, partition: impl Into<String>) -> Self {
        self.last = Some(Bound { partition: partition.into(), row: None });
        self
    }

    /// The token is for entities up to this key, which is included.
    pub fn to_key(mut self, partition: impl Into<String>, row: impl Into<String>) -> Self {
        self.last = Some(Bound { partition: partition.into(), row: Some(row.into()) });
        self
    }

    /// The token is for the entities of one partition.
    pub fn partition(self, partition: impl Into<String>) -> Self {
        let partition = partition.into();
        self.from_partition(partition.clone()).to_partition(partition)
    }

    terms!();

    /// Signs the token with a key of the account that has the table.
    ///
    /// # Errors
    /// A token that no service would honour, or not as it was meant.
    pub fn sign(&self, key: &SharedKey) -> Result<SasToken, SasError> {
        if self.table.parse::<TableName>().is_err() {
            return Err(SasError::Name);
        }
        let mut fields = self.terms.fields(VERSION, &self.permissions.to_string())?;
        let (start_partition, start_row) = first(self.first.as_ref())?;
        let (end_partition, end_row) = last(self.last.as_ref())?;
        check_order(start_partition.zip(end_partition), start_row.zip(end_row))?;
        for key in [start_partition, start_row, end_partition, end_row].into_iter().flatten() {
            check_field(key)?;
        }
        fields.kind = SasKind::Table(Fields {
            table: self.table.as_str().into(),
            policy_id: self.terms.policy_id(),
            start_partition: start_partition.map(Into::into),
            start_row: start_row.map(Into::into),
            end_partition: end_partition.map(Into::into),
            end_row: end_row.map(Into::into),
        });
        Ok(SasToken(fields.to_query(key.account(), key.key())))
    }
}

type Keys<'a> = (Option<&'a str>, Option<&'a str>);

/// The first key. An empty one bounds nothing and is left out, as tokens cannot say it.
fn first(bound: Option<&Bound>) -> Result<Keys<'_>, SasError> {
    let Some(Bound { partition, row }) = bound else { return Ok((None, None)) };
    let row = row.as_deref().filter(|row| !row.is_empty());
    match (partition.is_empty(), row) {
        (true, Some(_)) => Err(SasError::RowWithoutPartition),
        (true, None) => Ok((None, None)),
        (false, row) => Ok((Some(partition), row)),
    }
}

/// The last key. Left out, an empty one would bound nothing.
fn last(bound: Option<&Bound>) -> Result<Keys<'_>, SasError> {
    let Some(Bound { partition, row }) = bound else { return Ok((None, None)) };
    match row {
        _ if partition.is_empty() => Err(SasError::EmptyLastKey),
        Some(row) if row.is_empty() => Err(SasError::EmptyLastKey),
        row => Ok((Some(partition), row.as_deref())),
    }
}

fn check_order(partitions: Option<(&str, &str)>, rows: Option<(&str, &str)>) -> Result<(), SasError> {
    let Some((first, last)) = partitions else { return Ok(()) };
    let is_reversed = match utf16::compare(first, last) {
        Ordering::Less => false,
        Ordering::Equal => rows.is_some_and(|(first, last)| utf16::compare(first, last) == Ordering::Greater),
        Ordering::Greater => true,
    };
    if is_reversed { Err(SasError::KeysReversed) } else { Ok(()) }
}

/// The version whose rules the tokens follow: the one that the official clients for tables sign.
pub(super) const VERSION: &str = "2019-02-02";
