//! Where lists are kept: in blobs or in entities. Both are read with a version and written only if it is unchanged.

use super::list::List;
use crate::eventual::slot::{OF_PARTITION, OF_ROW, is_overtaken};
use crate::key_text;
use crate::{Error, Result};
use futures_util::StreamExt as _;
use larimar_client::{
    BlobCondition, Container, Continuation, DynamicEntity, ETag, ListOptions, Table, UploadOptions, keys,
};

#[derive(Clone, Debug)]
pub(super) enum Store {
    Blobs(Container),
    Entities { table: Table, buckets: u32 },
}

/// A list with what it is of.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) partition: String,
    pub(super) value: String,
    pub(super) list: List,
}

/// Which list: of an index, of the primaries of a partition, of a value, and which part of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address<'a> {
    pub(super) index: &'a str,
    pub(super) partition: &'a str,
    pub(super) value: &'a str,
}

impl Address<'_> {
    fn blob(&self) -> String {
        let (partition, value) = (key_text::segment(self.partition), key_text::segment(self.value));
        format!("{}/{partition}/{value}.json", self.index)
    }

    fn entity_partition(&self) -> String {
        format!("{}_{}", self.index, self.partition)
    }

    fn row_prefix(&self) -> String {
        format!("{}!", key_text::escape(self.value))
    }

    fn row(&self, bucket: u32) -> String {
        format!("{}{bucket:04}", self.row_prefix())
    }

    /// Checks that the list can have a place.
    pub(super) fn check(&self, store: &Store) -> Result<()> {
        match store {
            Store::Blobs(_) if self.blob().chars().count() > BLOB_NAME_MAX => {
                Err(Error::Invalid(format!("the value '{}' is too long for the name of a blob", self.value)))
            }
            Store::Blobs(_) => Ok(()),
            Store::Entities { .. } => {
                key_text::check(&self.entity_partition())?;
                Ok(key_text::check(&self.row(0))?)
            }
        }
    }
}

impl Store {
    /// The part of a list that a key belongs to, with its version, if it is there.
    pub(super) async fn read(&self, address: Address<'_>, key: &str) -> Result<Option<(List, ETag)>> {
        match self {
            Self::Blobs(container) => match container.blob(address.blob()).download().await? {
                Some(found) => Ok(Some((List::parse(&found.bytes)?, found.etag))),
                None => Ok(None),
            },
            Self::Entities { table, buckets } => {
                let row = address.row(bucket(key, *buckets));
                let found = table.get::<DynamicEntity>(&address.entity_partition(), &row).await?;
                let Some(mut found) = found else { return Ok(None) };
                let etag = found.etag.take().ok_or(Error::Answer("an entity without an ETag"))?;
                Ok(Some((unpack(&found)?, etag)))
            }
        }
    }

    /// Writes that part if it is as it was read, or removes it if nothing is left in it; returns whether it was.
    pub(super) async fn write(
        &self,
        address: Address<'_>,
        key: &str,
        list: &List,
        read: Option<&ETag>,
    ) -> Result<bool> {
        let written = match self {
            Self::Blobs(container) => {
                let blob = container.blob(address.blob());
                let bytes = list.to_bytes();
                check_size(address.value, bytes.len(), BLOB_BYTES_MAX)?;
                match read {
                    Some(etag) if list.is_empty() => blob.delete(etag).await,
                    read => {
                        let condition = read.map_or(BlobCondition::Missing, BlobCondition::from);
                        let options = UploadOptions::default().content_type("application/json");
                        blob.upload(bytes, options.condition(condition)).await.map(drop)
                    }
                }
            }
            Self::Entities { table, buckets } => {
                let entity = pack(&address, address.row(bucket(key, *buckets)), list)?;
                match read {
                    Some(etag) if list.is_empty() => table.delete(&entity.partition_key, &entity.row_key, etag).await,
                    Some(etag) => table.replace(&entity, etag).await.map(drop),
                    None => table.insert(&entity).await.map(drop),
                }
            }
        };
        Ok(!is_overtaken(written)?)
    }

    /// All parts of a list.
    pub(super) async fn read_all(&self, address: Address<'_>) -> Result<Vec<List>> {
        match self {
            Self::Blobs(_) => Ok(self.read(address, "").await?.map(|(list, _)| list).into_iter().collect()),
            Self::Entities { table, .. } => {
                let query = table.query::<DynamicEntity>().partition(address.entity_partition());
                let found = query.filter(keys::row_key().starts_with(address.row_prefix())).all().await?;
                found.iter().map(unpack).collect()
            }
        }
    }

    /// A page of all lists of an index.
    pub(super) async fn scan(&self, index: &str, from: Option<String>) -> Result<(Vec<Stored>, Option<String>)> {
        match self {
            Self::Blobs(container) => {
                let prefix = format!("{index}/");
                let mut options = ListOptions::default().prefix(&prefix);
                if let Some(marker) = from {
                    options = options.start_at(marker);
                }
                let mut pages = Box::pin(container.list_pages(options));
                let page = pages.next().await.transpose()?.unwrap_or_default();
                let mut lists = Vec::new();
                for item in page.blobs {
                    let name = item.name.strip_prefix(&prefix).and_then(|name| name.strip_suffix(".json"));
                    let Some((partition, value)) = name.and_then(|name| name.split_once('/')) else { continue };
                    let texts = (key_text::from_segment(partition), key_text::from_segment(value));
                    let (Some(partition), Some(value)) = texts else { continue };
                    let Some(found) = container.blob(&item.name).download().await? else { continue };
                    lists.push(Stored { partition, value, list: List::parse(&found.bytes)? });
                }
                Ok((lists, page.marker))
            }
            Self::Entities { table, .. } => {
                let mut query = table.query::<DynamicEntity>();
                if let Some(from) = from {
                    let from: Continuation = serde_json::from_str(&from).map_err(Error::Intent)?;
                    query = query.start_at(from);
                }
                let page = query.page().await?;
                let next = page.continuation.as_ref().map(serde_json::to_string).transpose().map_err(Error::Intent)?;
                let mut lists = Vec::new();
                for entity in page.entities {
                    if entity.get::<Option<String>>(LIST)?.as_deref() == Some(index) {
                        let (partition, value) = (entity.get(OF_PARTITION)?, entity.get(VALUE)?);
                        lists.push(Stored { partition, value, list: unpack(&entity)? });
                    }
                }
                Ok((lists, next))
            }
        }
    }
}

/// A part of a list as an entity: its JSON over as many properties as it takes.
fn pack(address: &Address<'_>, row: String, list: &List) -> Result<DynamicEntity> {
    let bytes = list.to_bytes();
    check_size(address.value, bytes.len(), CHUNK_BYTES * CHUNKS_MAX)?;
    // The row of a primary is named to tell that this is none.
    let mut entity = DynamicEntity::new(address.entity_partition(), row)
        .with(LIST, address.index)
        .with(OF_PARTITION, address.partition)
        .with(OF_ROW, "")
        .with(VALUE, address.value);
    for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        entity.set(format!("Keys{number:02}"), chunk);
    }
    Ok(entity)
}

fn unpack(entity: &DynamicEntity) -> Result<List> {
    let mut bytes = Vec::new();
    for number in 0..CHUNKS_MAX {
        let Some(chunk) = entity.get::<Option<Vec<u8>>>(&format!("Keys{number:02}"))? else { break };
        bytes.extend(chunk);
    }
    List::parse(&bytes)
}

fn check_size(value: &str, bytes: usize, bytes_max: usize) -> Result<()> {
    match bytes > bytes_max {
        true => Err(Error::ListFull { value: value.to_owned(), bytes, bytes_max }),
        false => Ok(()),
    }
}

/// Which part of a list a key is in; FNV-1a, for it must be the same in every process and version.
fn bucket(key: &str, buckets: u32) -> u32 {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    u32::try_from((hash >> 32) % u64::from(buckets.max(1))).unwrap_or(0)
}

/// The index that a list is of.
const LIST: &str = "_list";
/// The value that a list is of.
const VALUE: &str = "_value";
/// A property holds 64 KiB, an entity 1 MiB of which some is for names and keys.
const CHUNK_BYTES: usize = 64 * 1024;
const CHUNKS_MAX: usize = 15;
/// As much as one likes to send for every change of a list.
const BLOB_BYTES_MAX: usize = 8 << 20;
const BLOB_NAME_MAX: usize = 1024;
