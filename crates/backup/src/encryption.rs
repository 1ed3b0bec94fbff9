//! Encryption of a place's files with a key file (decision 47).
//!
//! ```text
//! "LARENC1\n" salt:32 AES-256-GCM(content) tag:16
//! ```
//!
//! Each file has a key of its own, derived from the key file and the file's random salt, so a nonce never repeats, however
//! many files there are. The file's name is authenticated with it: a file under another name is refused.

use crate::chunk::ChunkId;
use aes_gcm::aead::generic_array::GenericArray;
use aes_gcm::{AeadInPlace, Aes256Gcm, KeyInit};
use hmac::{Hmac, Mac};
use rustix::fs::{Mode, OFlags};
use sha2::Sha256;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The key of a key file. No text made of it shows it.
#[derive(Clone)]
pub struct Key([u8; 32]);

/// Why a key file is not used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It holds something else, which is not shown.
    #[error("it holds something else (not shown)")]
    NotAKey,
    /// Others could read the key.
    #[error("others can read it (mode {0:04o}): run chmod 600 on it")]
    Open(u32),
}

/// The keys of a place, derived from one key file.
pub(crate) struct Keys {
    names: [u8; 32],
    files: [u8; 32],
    check: [u8; 32],
}

impl Key {
    /// Reads a key file: 32 bytes, or 64 hexadecimal digits and perhaps a newline. Its group may read it if root owns it.
    ///
    /// # Errors
    /// A file that cannot be read, is not a key file, or that others can read.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        // A pipe in its place does not block.
        let file = File::from(
            rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
                .map_err(std::io::Error::from)?,
        );
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(KeyFileError::NotAKey);
        }
        let mode = found.mode() & 0o777;
        let allowed = if found.uid() == 0 { 0o740 } else { 0o700 };
        if mode & !allowed != 0 {
            return Err(KeyFileError::Open(mode));
        }
        let mut bytes = Vec::with_capacity(FILE_BYTES_MAX);
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        Self::parse(&bytes).ok_or(KeyFileError::NotAKey)
    }

    /// Makes a key file that its owner alone can read.
    ///
    /// # Errors
    /// A file that exists or cannot be written.
    pub fn create(path: &Path) -> Result<(), KeyFileError> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let write = file.write_all(format!("{}\n", ChunkId(random())).as_bytes()).and_then(|()| file.sync_all());
        write.inspect_err(|_| {
            // The error that led here is the one to report.
            let _ = std::fs::remove_file(path);
        })?;
        Ok(())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        if let Ok(key) = bytes.try_into() {
            return Some(Self(key));
        }
        let text = str::from_utf8(bytes).ok()?;
        text.trim_end_matches(['\r', '\n']).parse().ok().map(|ChunkId(key)| Self(key))
    }

    pub(crate) fn keys(&self) -> Keys {
        let root = mac(b"larimar backup", &[&self.0]);
        let derived = |purpose: &[u8]| expand(&root, purpose);
        Keys { names: derived(b"names"), files: derived(b"files"), check: derived(b"check") }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(not shown)")
    }
}

impl Keys {
    /// What the mark of a place has, so that another key is refused at once.
    pub(crate) fn check(&self) -> ChunkId {
        ChunkId(self.check)
    }

    /// The name that a chunk has in the place: one that does not show whether a known content is there.
    pub(crate) fn chunk(&self, id: ChunkId) -> ChunkId {
        ChunkId(mac(&self.names, &[&id.0]))
    }

    /// Encrypts the content of a file.
    pub(crate) fn seal(&self, name: &str, content: &[u8]) -> Vec<u8> {
        let salt = random();
        let mut bytes = Vec::with_capacity(content.len() + OVERHEAD as usize);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&salt);
        bytes.extend_from_slice(content);
        let sealed = self.cipher(&salt).encrypt_in_place_detached(
            &NONCE.into(),
            &associated(name),
            &mut bytes[MAGIC.len() + SALT_BYTES..],
        );
        bytes.extend_from_slice(&sealed.expect("a file has fewer bytes than the cipher's limit of 64 GiB"));
        bytes
    }

    /// Decrypts a file; `None` if it is not what was stored under this name.
    pub(crate) fn open(&self, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let (salt, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<SALT_BYTES>()?;
        let (content, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
        let mut content = content.to_vec();
        let cipher = self.cipher(salt);
        cipher.decrypt_in_place_detached(&NONCE.into(), &associated(name), &mut content, &(*tag).into()).ok()?;
        Some(content)
    }

    fn cipher(&self, salt: &[u8; SALT_BYTES]) -> Aes256Gcm {
        Aes256Gcm::new(&GenericArray::from(mac(&self.files, &[salt])))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(not shown)")
    }
}

#[expect(clippy::disallowed_methods, reason = "the one source of this crate's random bytes")]
fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

fn associated(name: &str) -> Vec<u8> {
    [MAGIC, name.as_bytes()].concat()
}

/// HMAC-SHA256, which is also the first step of HKDF (RFC 5869): `mac(salt, key)`.
fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The second step of HKDF, for 32 bytes.
fn expand(root: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    mac(root, &[purpose, &[1]])
}

/// What an encrypted file has more than its content.
pub(crate) const OVERHEAD: u64 = (MAGIC.len() + SALT_BYTES + TAG_BYTES) as u64;
const MAGIC: &[u8] = b"LARENC1\n";
const SALT_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
/// Each key encrypts one file, so the nonce can be the same.
const NONCE: [u8; 12] = [0; 12];
/// 64 digits and an end of line.
const FILE_BYTES_MAX: usize = 66;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_derived_as_rfc_5869_says() {
        // Test case 1 of appendix A.1, of which the first 32 bytes are compared.
        let salt: Vec<u8> = (0..=0x0c).collect();
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let root = mac(&salt, &[&[0x0b; 22]]);
        assert_eq!(ChunkId(root).to_string(), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
        let okm = expand(&root, &info);
        assert_eq!(ChunkId(okm).to_string(), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
    }

    #[test]
    fn a_file_is_read_only_whole_under_its_name_and_with_its_key() {
        let (keys, other) = (Key([1; 32]).keys(), Key([2; 32]).keys());
        let sealed = keys.seal("a", b"content");
        assert_eq!(sealed.len() as u64, 7 + OVERHEAD);
        assert_ne!(keys.seal("a", b"content"), sealed);
        assert_eq!(keys.open("a", &sealed).as_deref(), Some(&b"content"[..]));
        assert_eq!((keys.open("b", &sealed), other.open("a", &sealed)), (None, None));
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 4;
            assert_eq!(keys.open("a", &flipped), None, "a flipped bit at {at}");
            assert_eq!(keys.open("a", &sealed[..at]), None, "cut to {at}");
        }
        let id = ChunkId([7; 32]);
        assert_eq!(keys.chunk(id), Key([1; 32]).keys().chunk(id));
        assert!(keys.chunk(id) != id && keys.chunk(id) != other.chunk(id) && keys.check() != other.check());
    }

    #[test]
    fn a_key_file_is_made_once_and_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("key");
        Key::create(&file).expect("a key");
        let text = std::fs::read_to_string(&file).expect("a file");
        assert_eq!((text.len(), file.metadata().expect("a file").mode() & 0o777), (65, 0o600));
        assert!(Key::create(&file).is_err(), "it is never replaced");
        let key = Key::read(&file).expect("a key");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), text);
        assert!(!format!("{key:?} {:?}", key.keys()).contains(&text[..4]));
        let hex: ChunkId = text.trim_end().parse().expect("hexadecimal digits");
        std::fs::write(&file, hex.0).expect("a file");
        assert_eq!(Key::read(&file).expect("a key").0, key.0);
        for wrong in [&b""[..], &[7; 31], &[b'a'; 63], &[b'x'; 64], &[b'a'; 70]] {
            std::fs::write(&file, wrong).expect("a file");
            assert!(matches!(Key::read(&file), Err(KeyFileError::NotAKey)), "{wrong:?}");
        }
        std::fs::write(&file, [7; 32]).expect("a file");
        for open in [0o604, 0o602, 0o666] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(open)).expect("a file");
            assert!(matches!(Key::read(&file), Err(KeyFileError::Open(mode)) if mode == open), "{open:o}");
        }
        assert!(matches!(Key::read(folder.path()), Err(KeyFileError::NotAKey)));
    }
}
