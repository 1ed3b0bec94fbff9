//! The metadata property: the wrapped content key and the list of encrypted properties, as JSON, with a proof by the
//! content key that both belong to the entity.
//!
//! There is one spelling of a given metadata, and no other is read, so that no byte of it can change unseen.

use super::cipher::{Cipher, Framed};
use super::key::WrappedKey;
use super::{EncryptionError, Mark};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// What is stored beside the encrypted properties of an entity.
pub(super) struct Metadata {
    pub(super) key_id: String,
    pub(super) wrapped: WrappedKey,
    pub(super) properties: Vec<Mark>,
    proof: Vec<u8>,
}

impl Metadata {
    /// The metadata of an entity, proven by its content key.
    pub(super) fn new((key_id, wrapped): (String, WrappedKey), properties: Vec<Mark>, cipher: &Cipher<'_>) -> Self {
        let mut metadata = Self { key_id, wrapped, properties, proof: Vec::new() };
        metadata.proof = cipher.sign(&metadata.statement());
        metadata
    }

    /// Reads a stored text.
    pub(super) fn parse(text: &str) -> Result<Self, EncryptionError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(EncryptionError::Metadata("expected less than 64 KiB"));
        }
        let json: Json<'_> =
            serde_json::from_str(text).map_err(|_| EncryptionError::Metadata("expected JSON of its fields"))?;
        if json.version != VERSION || json.algorithm != ALGORITHM {
            return Err(EncryptionError::Metadata("expected version 1 and the algorithm A256GCM"));
        }
        let bytes = |text: &str| {
            STANDARD.decode(text).map_err(|_| EncryptionError::Metadata("expected keys and proofs in base64"))
        };
        let metadata = Self {
            wrapped: WrappedKey::new(json.key.algorithm, bytes(&json.key.wrapped)?),
            proof: bytes(&json.proof)?,
            properties: json.properties.into_iter().map(Mark::from).collect(),
            key_id: json.key.id,
        };
        if metadata.to_text() != text {
            return Err(EncryptionError::Metadata("expected its one spelling"));
        }
        Ok(metadata)
    }

    /// The text to store.
    pub(super) fn to_text(&self) -> String {
        let properties = self.properties.iter().map(JsonProperty::from).collect();
        let key = JsonKey {
            id: self.key_id.clone(),
            algorithm: self.wrapped.algorithm.clone(),
            wrapped: STANDARD.encode(&self.wrapped.bytes),
        };
        let json =
            Json { version: VERSION, algorithm: ALGORITHM, key, properties, proof: STANDARD.encode(&self.proof) };
        serde_json::to_string(&json).expect("texts and numbers are JSON")
    }

    /// Whether the content key says that this is the entity's metadata.
    pub(super) fn is_genuine(&self, cipher: &Cipher<'_>) -> bool {
        cipher.verify(&self.statement(), &self.proof)
    }

    fn statement(&self) -> Framed {
        let mut frame = Framed::new(ALGORITHM);
        frame.add(self.key_id.as_bytes());
        frame.add(self.wrapped.algorithm.as_bytes());
        frame.add(&self.wrapped.bytes);
        for property in &self.properties {
            frame.add(property.name.as_bytes());
            // An empty name is not a property's name; it means none.
            frame.add(property.hashed_as.as_deref().unwrap_or_default().as_bytes());
        }
        frame
    }
}

/// Whether metadata has room for a wrapped key and its id.
pub(super) fn fits(id: &str, wrapped: &WrappedKey) -> bool {
    id.len() <= KEY_BYTES_MAX && wrapped.algorithm.len() <= KEY_BYTES_MAX && wrapped.bytes.len() <= KEY_BYTES_MAX
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json<'a> {
    version: u32,
    algorithm: &'a str,
    key: JsonKey,
    properties: Vec<JsonProperty>,
    proof: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonKey {
    id: String,
    algorithm: String,
    wrapped: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonProperty {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    hashed_as: Option<String>,
}

impl From<&Mark> for JsonProperty {
    fn from(property: &Mark) -> Self {
        Self { name: property.name.clone(), hashed_as: property.hashed_as.clone() }
    }
}

impl From<JsonProperty> for Mark {
    fn from(property: JsonProperty) -> Self {
        Self { name: property.name, hashed_as: property.hashed_as.filter(|name| !name.is_empty()) }
    }
}

const VERSION: u32 = 1;
const ALGORITHM: &str = "A256GCM";
/// A text property holds 64 KiB in UTF-16, which is at most this much in UTF-8.
const TEXT_BYTES_MAX: usize = 3 * 32 * 1024;
/// Keys of vaults have long ids, and RSA wraps into up to 512 bytes.
const KEY_BYTES_MAX: usize = 4096;
