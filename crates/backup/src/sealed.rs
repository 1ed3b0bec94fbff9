//! Small files of a place: a line of JSON, and a line with the SHA-256 of the first.

use crate::chunk::ChunkId;
use crate::error::BackupError;
use crate::place::Place;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The bytes of a file.
pub(crate) fn seal(value: &impl Serialize) -> Bytes {
    let mut text = serde_json::to_string(value).expect("a file of a place has no map with other keys than text");
    text.push('\n');
    let sum = ChunkId(Sha256::digest(text.as_bytes()).into());
    text.push_str(&format!("{sum}\n"));
    text.into()
}

/// Reads a file and checks it. One of a format above `format` is refused.
pub(crate) async fn read<T: DeserializeOwned>(place: &Place, file: &str, format: u32) -> Result<T, BackupError> {
    open(&place.get(file, FILE_BYTES_MAX).await?, &place.show(file), format)
}

/// Checks the bytes of a file; `what` is its name for messages.
pub(crate) fn open<T: DeserializeOwned>(bytes: &[u8], what: &str, format: u32) -> Result<T, BackupError> {
    let damaged = |reason: &str| BackupError::damaged(what, reason);
    let text = str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
    let (json, sum) = text.split_once('\n').ok_or_else(|| damaged("it ends early"))?;
    let found = ChunkId(Sha256::digest(&text.as_bytes()[..=json.len()]).into());
    if sum.strip_suffix('\n') != Some(found.to_string().as_str()) {
        return Err(damaged("its checksum is wrong"));
    }
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    match serde_json::from_str::<Format>(json) {
        Ok(Format { format: found }) if found > format => {
            Err(BackupError::Newer { what: what.to_owned(), format: found })
        }
        _ => serde_json::from_str(json).map_err(|error| damaged(&error.to_string())),
    }
}

/// An index of a billion chunks has fewer bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
