//! AES-256-GCM under an entity's content key, with the entity's name bound into everything.

use super::key::ContentKey;
use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use zeroize::Zeroize;

/// Encrypts and decrypts what belongs to one entity.
pub(super) struct Cipher<'a> {
    cipher: Aes256Gcm,
    place: Place<'a>,
}

/// Where an entity is stored.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) table: &'a str,
    pub(super) partition_key: &'a str,
    pub(super) row_key: &'a str,
}

impl<'a> Cipher<'a> {
    pub(super) fn new(key: &ContentKey, place: Place<'a>) -> Self {
        Self { cipher: Aes256Gcm::new(key.as_bytes().into()), place }
    }

    /// The value of a property as it is stored: nonce, ciphertext, tag.
    pub(super) fn encrypt(&self, property: &str, text: &str) -> Vec<u8> {
        self.seal(text.as_bytes(), &self.property(property))
    }

    /// The text of a stored property, if it is genuine and of this property of this entity.
    pub(super) fn decrypt(&self, property: &str, stored: &[u8]) -> Option<String> {
        let text = String::from_utf8(self.open(stored, &self.property(property))?);
        text.map_err(|error| error.into_bytes().zeroize()).ok()
    }

    /// A proof that this text about the entity comes from a holder of the content key.
    pub(super) fn sign(&self, statement: &Framed) -> Vec<u8> {
        self.seal(&[], &self.statement(statement))
    }

    /// Whether such a proof is genuine.
    pub(super) fn verify(&self, statement: &Framed, proof: &[u8]) -> bool {
        self.open(proof, &self.statement(statement)).is_some_and(|text| text.is_empty())
    }

    fn seal(&self, msg: &[u8], aad: &Framed) -> Vec<u8> {
        // A content key is used for one write of one entity, which is far too few random nonces for two to be equal.
        let nonce: [u8; NONCE_BYTES] = crate::random::bytes();
        let payload = Payload { msg, aad: aad.as_bytes() };
        let sealed = self.cipher.encrypt(Nonce::from_slice(&nonce), payload);
        [&nonce[..], &sealed.expect("the text is far shorter than GCM allows")].concat()
    }

    fn open(&self, stored: &[u8], aad: &Framed) -> Option<Vec<u8>> {
        let (nonce, msg) = stored.split_at_checked(NONCE_BYTES)?;
        self.cipher.decrypt(Nonce::from_slice(nonce), Payload { msg, aad: aad.as_bytes() }).ok()
    }

    fn property(&self, name: &str) -> Framed {
        let mut frame = self.place.frame("larimar encrypted property 1");
        frame.add(name.as_bytes());
        frame
    }

    fn statement(&self, statement: &Framed) -> Framed {
        let mut frame = self.place.frame("larimar encryption metadata 1");
        frame.add(statement.as_bytes());
        frame
    }
}

impl Place<'_> {
    fn frame(&self, purpose: &str) -> Framed {
        let mut frame = Framed::new(purpose);
        // Names of tables compare without case, and a reader may spell them otherwise than the writer.
        frame.add(self.table.to_ascii_lowercase().as_bytes());
        frame.add(self.partition_key.as_bytes());
        frame.add(self.row_key.as_bytes());
        frame
    }
}

/// A sequence of fields as bytes, each behind its length, so that two sequences never share their bytes.
pub(super) struct Framed(Vec<u8>);

impl Framed {
    /// The fields of this purpose, none yet.
    pub(super) fn new(purpose: &str) -> Self {
        let mut framed = Self(Vec::with_capacity(256));
        framed.add(purpose.as_bytes());
        framed
    }

    pub(super) fn add(&mut self, field: &[u8]) {
        self.0.extend_from_slice(&(field.len() as u64).to_le_bytes());
        self.0.extend_from_slice(field);
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

const NONCE_BYTES: usize = 12;
/// What a property grows by: a nonce and a tag.
pub(super) const OVERHEAD_BYTES: usize = NONCE_BYTES + 16;
