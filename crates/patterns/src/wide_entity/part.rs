//! The parts of a wide entity: how it is cut up and put together again.

use super::WideVersion;
use crate::compound_key::{CompoundKey, Digits};
use crate::stored::Raw;
use crate::{Error, Result};
use larimar_client::{DynamicEntity, ETag, Entity, EntityError, Filter, Guid, PropertyError};
use std::borrow::Cow;

/// One physical entity of a wide one. What the wide type encrypts, its parts encrypt.
pub(super) type Part<E> = Raw<E>;

/// What the first part says of all.
pub(super) struct Head(pub(super) WideVersion);

impl Entity for Head {
    fn to_dynamic(&self) -> Result<Cow<'_, DynamicEntity>, EntityError> {
        Err(EntityError::new(PARTS, PropertyError::invalid("only ever read")))
    }

    fn from_dynamic(mut entity: DynamicEntity) -> Result<Self, EntityError> {
        let parts = entity.take::<u8>(PARTS)?.into();
        Ok(Self(WideVersion { etag: etag(&entity)?, parts }))
    }

    fn columns() -> Option<Vec<Cow<'static, str>>> {
        Some(vec![PARTS.into()])
    }
}

/// What the parts that were read make.
pub(super) enum Parts {
    None,
    Whole(WideVersion, Box<DynamicEntity>),
    /// Some are of another version, or not there.
    Torn,
}

/// Cuts an entity into parts that are small enough, at least one.
pub(super) fn split<E>(mut whole: DynamicEntity) -> Result<Vec<Part<E>>> {
    if [VERSION, PARTS].iter().any(|reserved| whole.value(reserved).is_some()) {
        return Err(Error::Invalid(format!("expected no property '{VERSION}' or '{PARTS}': the parts have them")));
    }
    let properties = whole.take_properties();
    // What is left of the entity knows which properties were encrypted when it was read.
    let part = |number| {
        let mut part = whole.clone();
        part.row_key = row_key(&whole.row_key, number)?;
        Ok::<_, Error>(part)
    };
    let mut parts = vec![part(0)?];
    // What the service counts for the keys and for the two properties of each part is small beside the margin.
    let (mut count, mut bytes) = (0, 0);
    for (name, value) in properties {
        let size = 8 + 2 * name.encode_utf16().count() + value.size();
        if count == PROPERTIES_MAX || (count > 0 && bytes + size > BYTES_MAX) {
            (count, bytes) = (0, 0);
            parts.push(part(parts.len())?);
        }
        (count, bytes) = (count + 1, bytes + size);
        if let Some(last) = parts.last_mut() {
            last.set(name, value);
        }
    }
    let version = Guid::random();
    let number = i32::try_from(parts.len()).unwrap_or(i32::MAX);
    let stamped = parts.into_iter().map(|part| Part::new(part.with(VERSION, version).with(PARTS, number)));
    Ok(stamped.collect())
}

/// Puts the parts together again, which come in order.
pub(super) fn assemble<E>(parts: Vec<Part<E>>, row_key: &str) -> Result<Parts> {
    let count = parts.len();
    let mut whole: Option<(Guid, WideVersion, DynamicEntity)> = None;
    for (number, Part { 0: mut part, .. }) in parts.into_iter().enumerate() {
        let (version, stated) = (part.take::<Guid>(VERSION)?, part.take::<u8>(PARTS)?);
        let is_next = part.row_key == self::row_key(row_key, number)?;
        if !is_next || usize::from(stated) != count || whole.as_ref().is_some_and(|(first, ..)| *first != version) {
            return Ok(Parts::Torn);
        }
        if let Some((.., whole)) = &mut whole {
            whole.fill_from(part, |_| true);
        } else {
            row_key.clone_into(&mut part.row_key);
            whole = Some((version, WideVersion { etag: etag(&part)?, parts: count }, part));
        }
    }
    Ok(whole.map_or(Parts::None, |(_, version, entity)| Parts::Whole(version, Box::new(entity))))
}

/// The row key of a part.
pub(super) fn row_key(row_key: &str, number: usize) -> Result<String> {
    // More than a transaction takes are refused when they are written.
    let number = Digits::<2>::new(number as u64)?;
    Ok(CompoundKey::new((row_key.to_owned(), number)).to_string())
}

/// The filter for all parts of an entity.
pub(super) fn all_of(row_key: &str) -> Filter {
    CompoundKey::new((row_key.to_owned(),)).descendants()
}

fn etag(entity: &DynamicEntity) -> Result<ETag, EntityError> {
    entity.etag.clone().ok_or_else(|| EntityError::new("odata.etag", PropertyError::Missing))
}

const VERSION: &str = "WideVersion";
const PARTS: &str = "WideParts";

/// Of 252, those that are left after ours and those that encryption adds, rounded.
const PROPERTIES_MAX: usize = 240;

/// Of 1 MiB, what is left after keys, our properties and those that encryption adds.
const BYTES_MAX: usize = 960 * 1024;
