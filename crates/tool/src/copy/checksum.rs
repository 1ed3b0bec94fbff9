//! Number and checksum of items, the same whatever order they come in. Both sides of a copy are compared by it.

use larimar_client::{BlobItem, BlobKind, DynamicEntity, Value};
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many items there are, and the sum of their digests.
///
/// A sum does not depend on the order, so ranges can be read in parallel and a copy can be resumed. The digest is MD5:
/// it finds damage and mistakes, and it is no protection against an adversary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checksum {
    pub(super) count: u64,
    sum: Sum,
}

/// Written as hexadecimal text: numbers of 128 bits are beyond what most readers of JSON know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Sum(u128);

impl Checksum {
    pub(super) const fn add(&mut self, digest: u128) {
        self.merge(Self { count: 1, sum: Sum(digest) });
    }

    pub(super) const fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum.0 = self.sum.0.wrapping_add(other.sum.0);
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with checksum {}", self.count, String::from(self.sum))
    }
}

impl From<Sum> for String {
    fn from(sum: Sum) -> Self {
        format!("{:032x}", sum.0)
    }
}

impl TryFrom<String> for Sum {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u128::from_str_radix(&text, 16).map(Self)
    }
}

/// The digest of an entity: keys, names, types and values. Its time and ETag are the service's own and do not count.
pub(super) fn entity(entity: &DynamicEntity) -> u128 {
    let mut digest = Fields::default();
    digest.text(&entity.partition_key).text(&entity.row_key);
    for (name, value) in entity.properties() {
        digest.text(name).text(value.type_name());
        match value {
            Value::String(text) => digest.text(text),
            Value::Int32(number) => digest.bytes(&number.to_le_bytes()),
            Value::Int64(number) => digest.bytes(&number.to_le_bytes()),
            // There are many bit patterns that mean NaN, and the protocol has one word for all.
            Value::Double(number) if number.is_nan() => digest.bytes(b"NaN"),
            Value::Double(number) => digest.bytes(&number.to_bits().to_le_bytes()),
            Value::Boolean(truth) => digest.bytes(&[u8::from(*truth)]),
            Value::DateTime(time) => digest.bytes(&time.ticks().to_le_bytes()),
            Value::Guid(guid) => digest.bytes(guid.as_bytes()),
            Value::Binary(bytes) => digest.bytes(bytes),
        };
    }
    digest.finish()
}

/// The digest of a piece of content at this offset.
pub(super) fn piece(offset: u64, bytes: &[u8]) -> u128 {
    let mut digest = Fields::default();
    digest.bytes(&offset.to_le_bytes()).bytes(bytes);
    digest.finish()
}

/// The digest of a blob with this content.
///
/// The MD5 that a service keeps is left out, since services differ in when they compute one, and the content counts
/// itself.
pub(super) fn blob(item: &BlobItem, content: Checksum) -> u128 {
    let mut digest = Fields::default();
    digest.text(&item.name).text(kind(item.kind)).bytes(&item.size.to_le_bytes());
    let headers = &item.content_headers;
    digest.text(headers.content_type.as_deref().unwrap_or("application/octet-stream"));
    let others =
        [&headers.content_encoding, &headers.content_language, &headers.content_disposition, &headers.cache_control];
    for header in others {
        digest.text(header.as_deref().unwrap_or_default());
    }
    for pairs in [&item.metadata, &item.tags] {
        digest.bytes(&pairs.len().to_le_bytes());
        for (name, value) in pairs {
            digest.text(name).text(value);
        }
    }
    digest.bytes(&item.sequence_number.to_le_bytes()).bytes(&[u8::from(item.is_sealed)]);
    digest.bytes(&content.sum.0.to_le_bytes());
    digest.finish()
}

/// The digest of some text.
pub(super) fn text(text: &str) -> u128 {
    let mut digest = Fields::default();
    digest.text(text);
    digest.finish()
}

const fn kind(kind: BlobKind) -> &'static str {
    match kind {
        BlobKind::Block => "block",
        BlobKind::Append => "append",
        BlobKind::Page => "page",
        _ => "other",
    }
}

/// Fields one after the other, each with its length, so that no two lists of fields have the same bytes.
#[derive(Default)]
struct Fields(Md5);

impl Fields {
    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn finish(self) -> u128 {
        u128::from_le_bytes(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entities: &[DynamicEntity]) -> Checksum {
        let mut sum = Checksum::default();
        entities.iter().for_each(|one| sum.add(entity(one)));
        sum
    }

    #[test]
    fn the_order_does_not_count_but_everything_else_does() {
        let first = DynamicEntity::new("a", "bc").with("n", 1);
        let second = DynamicEntity::new("ab", "c").with("n", 1);
        let both = of(&[first.clone(), second.clone()]);
        assert_eq!(both, of(&[second.clone(), first.clone()]));
        for other in [
            DynamicEntity::new("a", "bc").with("n", 1_i64),
            DynamicEntity::new("a", "bc").with("n", 2),
            DynamicEntity::new("a", "bc").with("N", 1),
            DynamicEntity::new("a", "bc").with("n", 1).with("m", 1),
            DynamicEntity::new("a", "bc"),
            second.clone(),
        ] {
            assert_ne!(of(&[other.clone(), second.clone()]), both, "{other:?}");
        }
        assert_ne!(of(&[first.clone(), first]), Checksum::default(), "nothing cancels itself out");
    }

    #[test]
    fn zero_and_negative_zero_differ_and_one_nan_is_like_another() {
        let double = |number: f64| entity(&DynamicEntity::new("a", "b").with("d", number));
        assert_ne!(double(0.0), double(-0.0));
        assert_eq!(double(f64::NAN), double(f64::from_bits(f64::NAN.to_bits() ^ 1)));
    }

    #[test]
    fn a_checksum_survives_a_file() {
        let sum = of(&[DynamicEntity::new("a", "b")]);
        let json = serde_json::to_string(&sum).expect("JSON");
        assert_eq!(serde_json::from_str::<Checksum>(&json).expect("a checksum"), sum);
        assert!(serde_json::from_str::<Checksum>("{\"count\":1,\"sum\":\"no\"}").is_err());
    }
}
