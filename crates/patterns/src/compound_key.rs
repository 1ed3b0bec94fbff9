//! T6, compound keys: several values in one key, so that one range query returns an entity with all that belongs to it.
//!
//! A review of employee 123 in 2012 has the row key `000123_2012`, the employee the row key `000123`. They lie side by
//! side in the only index there is, so one request reads the employee with all reviews, or the reviews of some years.
//!
//! ```
//! use larimar_patterns::compound_key::{CompoundKey, Digits};
//!
//! type Employee = (Digits<6>,);
//! type Review = (Digits<6>, Digits<4>);
//! let employee = CompoundKey::<Employee>::new((Digits::new(123)?,));
//! let review = CompoundKey::<Review>::new((Digits::new(123)?, Digits::new(2012)?));
//! assert_eq!((employee.to_string().as_str(), review.to_string().as_str()), ("000123", "000123_2012"));
//!
//! let read: CompoundKey<Review> = "000123_2012".parse()?;
//! assert_eq!(read, review);
//! assert_eq!(employee.with_descendants().as_str(), "RowKey ge '000123' and RowKey lt '000123`'");
//! # Ok::<(), larimar_patterns::key_text::KeyError>(())
//! ```
//!
//! **Guarantees.** Keys sort as the tuples of their parts do, and different tuples have different keys, whichever text
//! is in them. (Texts sort as the service sorts them, by UTF-16 code units.) [`family`] reads an entity and its records
//! with one request for each page of 1,000; a page is a snapshot, several pages are not.

mod part;

pub use part::{Digits, KeyPart, KeyParts};

use crate::key_text::KeyError;
use crate::{Error, Result};
use larimar_client::{DynamicEntity, Entity, Filter, Table, keys};
use std::fmt;
use std::str::FromStr;

/// A key of several parts: a tuple of numbers, texts, times and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompoundKey<P>(P);

impl<P: KeyParts> CompoundKey<P> {
    /// The key of these parts.
    pub const fn new(parts: P) -> Self {
        Self(parts)
    }

    /// The parts.
    #[must_use]
    pub fn into_parts(self) -> P {
        self.0
    }

    /// The parts.
    #[must_use]
    pub const fn parts(&self) -> &P {
        &self.0
    }

    /// The filter for the row with this key and all rows whose key continues with further parts.
    #[must_use]
    pub fn with_descendants(&self) -> Filter {
        let key = self.to_string();
        let end = format!("{key}{}", after(P::END));
        keys::row_key().between(key, end)
    }

    /// The filter for the rows whose key continues with further parts.
    #[must_use]
    pub fn descendants(&self) -> Filter {
        keys::row_key().starts_with(format!("{self}{}", P::END))
    }

    /// The filter for the rows whose key starts with these parts and continues with one from `first` to `last`, both
    /// included; rows whose key continues further are included too.
    ///
    /// ```
    /// use larimar_patterns::compound_key::{CompoundKey, Digits};
    /// let employee = CompoundKey::new((Digits::<6>::new(123)?,));
    /// let years = employee.descendants_between(&Digits::<4>::new(2010)?, &Digits::<4>::new(2012)?);
    /// assert_eq!(years.as_str(), "RowKey ge '000123_2010' and RowKey lt '000123_2012`'");
    /// # Ok::<(), larimar_patterns::key_text::KeyError>(())
    /// ```
    #[must_use]
    pub fn descendants_between<T: KeyPart>(&self, first: &T, last: &T) -> Filter {
        let key = |part: &T| {
            let mut key = format!("{self}{}", P::END);
            part.write(&mut key);
            key
        };
        keys::row_key().between(key(first), format!("{}{}", key(last), after(T::END)))
    }
}

impl<P: KeyParts> fmt::Display for CompoundKey<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = String::new();
        self.0.write(&mut key);
        f.pad(&key)
    }
}

impl<P: KeyParts> FromStr for CompoundKey<P> {
    type Err = KeyError;

    fn from_str(key: &str) -> Result<Self, KeyError> {
        P::read(key).map(Self)
    }
}

impl<P: KeyParts> From<CompoundKey<P>> for String {
    fn from(key: CompoundKey<P>) -> Self {
        key.to_string()
    }
}

/// An entity and the records that belong to it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Family<H, R> {
    /// The entity that has the key itself, if it is there.
    pub head: Option<H>,
    /// The entities whose keys go on with further parts, by key.
    pub records: Vec<R>,
}

/// Reads the entity of a key and all records whose keys go on with further parts: one request for each page of 1,000.
///
/// What is encrypted is decrypted. That something is encrypted is not demanded here, since rows of two types are read
/// at once; where that matters, query each type by itself.
///
/// # Errors
/// A request that failed, or entities that are no `H` and `R`.
pub async fn family<H, R>(table: &Table, partition_key: &str, key: &CompoundKey<impl KeyParts>) -> Result<Family<H, R>>
where
    H: Entity + Send + 'static,
    R: Entity + Send + 'static,
{
    enum Member<H, R> {
        Head(H),
        Record(R),
    }
    let row_key = key.to_string();
    let rows = table.query::<DynamicEntity>().partition(partition_key).filter(key.with_descendants());
    let members = rows.resolve(move |row| {
        if row.row_key == row_key {
            H::from_dynamic(row).map(Member::Head)
        } else {
            R::from_dynamic(row).map(Member::Record)
        }
    });
    let mut family = Family { head: None, records: Vec::new() };
    for member in members.all().await.map_err(Error::from)? {
        match member {
            Member::Head(head) => family.head = Some(head),
            Member::Record(record) => family.records.push(record),
        }
    }
    Ok(family)
}

/// The sign that comes right after the one that ends a part.
const fn after(end: char) -> char {
    match end {
        '_' => '`',
        _ => '"',
    }
}
