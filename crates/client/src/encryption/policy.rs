//! What is encrypted and with which keys: entities are sealed before they are written and opened after they are read.

use super::cipher::{Cipher, OVERHEAD_BYTES, Place};
use super::metadata::Metadata;
use super::{ContentKey, EncryptionError, HashKey, KeyRing, METADATA, Mark, Marks};
use crate::{DynamicEntity, EncryptedProperty, Value};
use std::collections::BTreeMap;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// What is encrypted, and with which keys.
///
/// ```
/// use larimar_client::encryption::{Encryption, HashKey, KeyRing, LocalKey};
/// # let (key, hash_key) = ([1; 32], [2; 32]);
/// let encryption = Encryption::new(KeyRing::new(LocalKey::new("2025", key)))
///     .choose(|_partition, _row, property| property == "Email")
///     .with_hash_key(HashKey::new(hash_key));
/// ```
pub struct Encryption {
    keys: KeyRing,
    resolver: Option<Box<Resolver>>,
    hash_key: Option<HashKey>,
    accepts_plain: bool,
}

type Resolver = dyn Fn(&str, &str, &str) -> bool + Send + Sync;

impl Encryption {
    /// Encrypts the properties that types mark, with these keys.
    #[must_use]
    pub const fn new(keys: KeyRing) -> Self {
        Self { keys, resolver: None, hash_key: None, accepts_plain: false }
    }

    /// Encrypts also the properties for which this function of partition key, row key and property name says so,
    /// those of [`DynamicEntity`] among them. They have to be text.
    #[must_use]
    pub fn choose(mut self, resolver: impl Fn(&str, &str, &str) -> bool + Send + Sync + 'static) -> Self {
        self.resolver = Some(Box::new(resolver));
        self
    }

    /// The key of companion hashes.
    #[must_use]
    pub fn with_hash_key(mut self, key: HashKey) -> Self {
        self.hash_key = Some(key);
        self
    }

    /// Reads also properties that are to be encrypted but are not, as before encryption was introduced. While this
    /// is set, anyone who can write to the table can replace encrypted text by plain text.
    #[must_use]
    pub const fn accept_plain(mut self) -> Self {
        self.accepts_plain = true;
        self
    }

    /// The keys.
    #[must_use]
    pub const fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// What the companion of an encrypted property holds if the property has this value: filter by it to find
    /// entities by an encrypted value.
    ///
    /// # Errors
    /// There is no hash key.
    pub fn lookup_hash(&self, table: &str, property: &str, value: &str) -> Result<Vec<u8>, EncryptionError> {
        Ok(self.hash(table, property, value)?.to_vec())
    }

    /// Moves an entity to the current key, as [`Table::rewrap_all`](crate::Table::rewrap_all) does with all.
    ///
    /// Returns what to merge into it, which is the metadata alone, or nothing if there is nothing to do. The entity is
    /// one that was read as it is stored, through a table without encryption; merge under the condition that it still
    /// has its ETag.
    ///
    /// # Errors
    /// Metadata that is not genuine, or a key that does not exist or does not work.
    pub async fn rewrap(&self, table: &str, stored: &DynamicEntity) -> Result<Option<DynamicEntity>, EncryptionError> {
        let metadata = match stored.value(METADATA) {
            Some(value) => read_metadata(value)?,
            None if stored.marks.0.is_empty() => return Ok(None),
            None => return Err(EncryptionError::MetadataMissing),
        };
        let key = self.content_key(&metadata, place(table, stored)).await?;
        if metadata.key_id == self.keys.current_id() {
            return Ok(None);
        }
        let wrapped = self.keys.wrap(&key).await?;
        let metadata = Metadata::new(wrapped, metadata.properties, &Cipher::new(&key, place(table, stored)));
        let mut patch = DynamicEntity::new(&*stored.partition_key, &*stored.row_key);
        patch.etag.clone_from(&stored.etag);
        patch.set(METADATA, metadata_value(&metadata)?);
        Ok(Some(patch))
    }

    /// Encrypts what is to be encrypted of an entity that is about to be written whole. On an error it is as it was.
    pub(crate) async fn seal(&self, table: &str, entity: &mut DynamicEntity) -> Result<(), EncryptionError> {
        if entity.value(METADATA).is_some() {
            return Err(EncryptionError::NameTaken { property: METADATA.to_owned() });
        }
        let chosen = self.chosen(entity);
        // Marked properties may all be absent: there is metadata then, too, so that they cannot be added or removed.
        if chosen.is_empty() && entity.marks.0.is_empty() {
            return Ok(());
        }
        let key = ContentKey::random();
        let wrapped = self.keys.wrap(&key).await?;
        let cipher = Cipher::new(&key, place(table, entity));
        let mut sealed = BTreeMap::new();
        for property in &chosen {
            let text = text_of(entity, &property.name)?;
            sealed.insert(property.name.clone(), Value::Binary(cipher.encrypt(&property.name, text)));
            let Some(companion) = &property.hashed_as else { continue };
            let hash = Value::Binary(self.hash(table, &property.name, text)?.to_vec());
            if entity.value(companion).is_some() || sealed.insert(companion.clone(), hash).is_some() {
                return Err(EncryptionError::NameTaken { property: companion.clone() });
            }
        }
        let metadata = metadata_value(&Metadata::new(wrapped, chosen, &cipher))?;
        sealed.insert(METADATA.to_owned(), metadata);
        for (name, value) in sealed {
            entity.set(name, value);
        }
        entity.marks = Marks::default();
        Ok(())
    }

    /// Decrypts an entity that was read. `selected` are the columns that were asked for, if not all were. On an error
    /// the entity is as it was.
    pub(crate) async fn open(
        &self,
        table: &str,
        entity: &mut DynamicEntity,
        marked: &[EncryptedProperty],
        selected: Option<&[&str]>,
    ) -> Result<(), EncryptionError> {
        let Some(value) = entity.value(METADATA) else {
            let has_metadata = selected.is_none_or(|columns| columns.contains(&METADATA));
            if marked.iter().any(|mark| !mark.is_of_variant) && has_metadata && !self.accepts_plain {
                return Err(EncryptionError::MetadataMissing);
            }
            return self.check_none_plain(entity, marked, &[]);
        };
        let metadata = read_metadata(value)?;
        let key = self.content_key(&metadata, place(table, entity)).await?;
        self.check_none_plain(entity, marked, &metadata.properties)?;
        let mut opened = BTreeMap::new();
        for property in &metadata.properties {
            let is_expected = |name: &str| selected.is_none_or(|columns| columns.contains(&name));
            let cipher = Cipher::new(&key, place(table, entity));
            let text = match binary(entity, &property.name)? {
                Some(stored) => Some(cipher.decrypt(&property.name, stored).ok_or_else(|| tampered(&property.name))?),
                None if is_expected(&property.name) => {
                    return Err(EncryptionError::Missing { property: property.name.clone() });
                }
                None => None,
            };
            if let Some(companion) = &property.hashed_as {
                match binary(entity, companion)? {
                    Some(stored) => self.check_hash(table, property, text.as_deref(), stored)?,
                    None if is_expected(companion) => {
                        return Err(EncryptionError::Missing { property: companion.clone() });
                    }
                    None => {}
                }
            }
            opened.extend(text.map(|text| (property.name.clone(), text)));
        }
        entity.remove(METADATA);
        for companion in metadata.properties.iter().filter_map(|property| property.hashed_as.as_deref()) {
            // A caller that asked for it by name gets it.
            if selected.is_none_or(|columns| !columns.contains(&companion)) {
                entity.remove(companion);
            }
        }
        for (name, text) in opened {
            entity.set(name, text);
        }
        entity.marks = Marks(metadata.properties);
        Ok(())
    }

    /// Adds what is needed to decrypt to the columns that are asked for, unless none of them can be encrypted.
    pub(crate) fn columns_with_metadata<C: AsRef<str> + From<&'static str>>(columns: &mut Vec<C>) {
        let is_plain = |column: &C| matches!(column.as_ref(), "PartitionKey" | "RowKey" | "Timestamp");
        if columns.iter().all(is_plain) {
            return;
        }
        for needed in ["PartitionKey", "RowKey", METADATA] {
            if !columns.iter().any(|column| column.as_ref() == needed) {
                columns.push(needed.into());
            }
        }
    }

    /// The properties of an entity that are to be encrypted: those that are marked, and those that the resolver
    /// chooses.
    fn chosen(&self, entity: &DynamicEntity) -> Vec<Mark> {
        let mut chosen = BTreeMap::new();
        for (name, _) in entity.properties().filter(|(name, _)| self.resolves(entity, name)) {
            chosen.insert(name.to_owned(), None);
        }
        for mark in entity.marks.0.iter().filter(|mark| entity.value(&mark.name).is_some()) {
            chosen.insert(mark.name.clone(), mark.hashed_as.clone());
        }
        chosen.into_iter().map(|(name, hashed_as)| Mark { name, hashed_as }).collect()
    }

    fn resolves(&self, entity: &DynamicEntity, property: &str) -> bool {
        let resolver = self.resolver.as_ref();
        resolver.is_some_and(|resolver| resolver(&entity.partition_key, &entity.row_key, property))
    }

    /// Refuses properties that are to be encrypted but are not among the `encrypted` ones.
    fn check_none_plain(
        &self,
        entity: &DynamicEntity,
        marked: &[EncryptedProperty],
        encrypted: &[Mark],
    ) -> Result<(), EncryptionError> {
        if self.accepts_plain {
            return Ok(());
        }
        let is_marked = |name: &str| marked.iter().any(|property| property.name == name);
        let is_encrypted =
            |name: &str| encrypted.iter().any(|mark| mark.name == name || mark.hashed_as.as_deref() == Some(name));
        let plain = entity
            .properties()
            .map(|(name, _)| name)
            .find(|name| *name != METADATA && !is_encrypted(name) && (is_marked(name) || self.resolves(entity, name)));
        plain.map_or(Ok(()), |property| Err(EncryptionError::Plain { property: property.to_owned() }))
    }

    /// The content key of an entity, which also says that the metadata is genuine.
    async fn content_key(&self, metadata: &Metadata, place: Place<'_>) -> Result<ContentKey, EncryptionError> {
        let key = self.keys.unwrap(&metadata.key_id, &metadata.wrapped).await?;
        if metadata.is_genuine(&Cipher::new(&key, place)) { Ok(key) } else { Err(EncryptionError::MetadataTampered) }
    }

    fn hash(&self, table: &str, property: &str, value: &str) -> Result<[u8; 32], EncryptionError> {
        let key = self.hash_key.as_ref();
        let key = key.ok_or_else(|| EncryptionError::NoHashKey { property: property.to_owned() })?;
        Ok(key.hash(table, property, value))
    }

    /// Compares a companion with the value that it is the hash of, if there is one and a key to hash it with.
    fn check_hash(
        &self,
        table: &str,
        property: &Mark,
        text: Option<&str>,
        stored: &[u8],
    ) -> Result<(), EncryptionError> {
        let (Some(text), Some(key)) = (text, &self.hash_key) else { return Ok(()) };
        let is_equal = key.hash(table, &property.name, text).ct_eq(stored);
        if is_equal.into() { Ok(()) } else { Err(tampered(property.hashed_as.as_deref().unwrap_or_default())) }
    }
}

impl fmt::Debug for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encryption").field("keys", &self.keys).finish_non_exhaustive()
    }
}

fn place<'a>(table: &'a str, entity: &'a DynamicEntity) -> Place<'a> {
    Place { table, partition_key: &entity.partition_key, row_key: &entity.row_key }
}

fn read_metadata(value: &Value) -> Result<Metadata, EncryptionError> {
    match value {
        Value::String(text) => Metadata::parse(text),
        _ => Err(EncryptionError::Metadata("expected text")),
    }
}

fn metadata_value(metadata: &Metadata) -> Result<Value, EncryptionError> {
    let text = metadata.to_text();
    if text.encode_utf16().count() > PROPERTY_BYTES_MAX / 2 {
        return Err(EncryptionError::TooLarge { property: METADATA.to_owned() });
    }
    Ok(Value::String(text))
}

/// The text of a property that is to be encrypted.
fn text_of<'a>(entity: &'a DynamicEntity, property: &str) -> Result<&'a str, EncryptionError> {
    let text = match entity.value(property) {
        Some(Value::String(text)) => text,
        other => {
            let found = other.map_or("nothing", Value::type_name);
            return Err(EncryptionError::NotText { property: property.to_owned(), found });
        }
    };
    if text.len() > PROPERTY_BYTES_MAX - OVERHEAD_BYTES {
        return Err(EncryptionError::TooLarge { property: property.to_owned() });
    }
    Ok(text)
}

/// The bytes of a property that encryption has set, if it is there.
fn binary<'a>(entity: &'a DynamicEntity, property: &str) -> Result<Option<&'a [u8]>, EncryptionError> {
    match entity.value(property) {
        Some(Value::Binary(bytes)) => Ok(Some(bytes)),
        Some(_) => Err(tampered(property)),
        None => Ok(None),
    }
}

fn tampered(property: &str) -> EncryptionError {
    EncryptionError::Tampered { property: property.to_owned() }
}

/// Bytes of a Binary property, and of text in UTF-16 (service: data model).
const PROPERTY_BYTES_MAX: usize = 64 * 1024;
