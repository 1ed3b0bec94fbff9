//! The properties of an entity that are to be encrypted. They are marked even where the client is built without
//! encryption, so that nothing of them is ever sent as plain text.

use crate::EncryptedProperty;
use crate::encryption_error::EncryptionError;

/// The property that holds an entity's wrapped content key and the list of its encrypted properties.
pub(crate) const METADATA: &str = "_ClientEncryptionMetadata1";

/// The properties of an entity that are to be encrypted when it is written: those that its type names, and those that
/// were decrypted when it was read. Two entities are equal no matter how they are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(pub(crate) Vec<Mark>);

/// A property that is to be encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) hashed_as: Option<String>,
}

impl Marks {
    /// Marks the properties that a type names.
    pub(crate) fn add(&mut self, properties: &[EncryptedProperty]) {
        for EncryptedProperty { name, hashed_as, .. } in properties {
            self.0.retain(|mark| mark.name != *name);
            self.0.push(Mark { name: (*name).to_owned(), hashed_as: hashed_as.map(str::to_owned) });
        }
    }

    /// Marks what others mark too. A property that only they hash keeps its hash.
    pub(crate) fn extend(&mut self, others: Self) {
        for mark in others.0 {
            match self.0.iter_mut().find(|known| known.name == mark.name) {
                Some(known) => known.hashed_as = known.hashed_as.take().or(mark.hashed_as),
                None => self.0.push(mark),
            }
        }
    }

    /// Refuses to write an entity as it is if some of it is to be encrypted.
    pub(crate) fn check_plain(&self) -> Result<(), EncryptionError> {
        match self.0.first() {
            None => Ok(()),
            Some(mark) => Err(EncryptionError::NotConfigured { property: mark.name.clone() }),
        }
    }
}

impl PartialEq for Marks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
