//! Appends: each is applied once, even if its answer is lost.

use super::{Blob, upload};
use crate::pipeline::Failed;
use crate::{Error, Result};
use bytes::Bytes;
use http::{HeaderName, Method};
use larimar_model::limits::APPEND_BYTES_MAX;

/// Where bytes are appended, and up to which size.
///
/// ```
/// use larimar_client::AppendOptions;
/// let options = AppendOptions::default().at(4096).max_size(1 << 20);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct AppendOptions {
    at: Option<u64>,
    max_size: Option<u64>,
    checks_md5: bool,
}

impl AppendOptions {
    /// Appends only if the blob has exactly this many bytes. A single writer knows how many it has written, and saves a
    /// request for each append by saying so.
    pub const fn at(mut self, offset: u64) -> Self {
        self.at = Some(offset);
        self
    }

    /// Appends only if the blob has no more than this many bytes afterwards.
    pub const fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// Sends the MD5 of the bytes, for the service to check. TLS makes that needless.
    pub const fn check_md5(mut self, checks: bool) -> Self {
        self.checks_md5 = checks;
        self
    }
}

impl Blob {
    /// Appends bytes, at most 100 MiB, to an append blob, and returns the offset at which they are now.
    ///
    /// Every request names the offset that it appends at, so that a retry cannot append twice: if the answer to an
    /// attempt was lost, the next one is refused, and the client looks whether its bytes are there. (Another writer
    /// that appended the very same bytes at the very same offset is then taken for this one.) Unless the options say
    /// the offset, the client asks for it first, and asks again as often as other writers are quicker, 32 times at
    /// most.
    ///
    /// # Errors
    /// A blob that does not exist, or is not an append blob; a blob that is not as the options want it
    /// ([`Error::is_changed`], with the [code](Error::code) `AppendPositionConditionNotMet` or
    /// `MaxBlobSizeConditionNotMet`); no bytes at all, or too many.
    pub async fn append(&self, bytes: impl Into<Bytes>, options: AppendOptions) -> Result<u64> {
        let bytes = bytes.into();
        if bytes.is_empty() || bytes.len() as u64 > APPEND_BYTES_MAX {
            return Err(Error::Invalid(format!("expected from 1 to {APPEND_BYTES_MAX} bytes to append")));
        }
        if let Some(offset) = options.at {
            return self.append_at(offset, bytes, &options).await;
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let offset = self.size().await?;
            match self.append_at(offset, bytes.clone(), &options).await {
                Err(error) if error.code() == Some(ELSEWHERE) && tries < TRIES_MAX => {}
                other => return other,
            }
        }
    }

    /// Ends the growth of an append blob, for good.
    ///
    /// # Errors
    /// A blob that does not exist, or is not an append blob.
    pub async fn seal(&self) -> Result<()> {
        Ok(self.send(self.call("AppendBlobSeal", Method::PUT).parameter("comp", "seal")).await.map(drop)?)
    }

    async fn append_at(&self, offset: u64, bytes: Bytes, options: &AppendOptions) -> Result<u64> {
        let call = self.call("AppendBlock", Method::PUT).parameter("comp", "appendblock");
        let mut call = call.header_text(APPEND_POSITION, &offset.to_string())?;
        if let Some(max_size) = options.max_size {
            call = call.header_text(MAX_SIZE, &max_size.to_string())?;
        }
        match self.send(upload::with_content(call, bytes.clone(), options.checks_md5)?).await {
            Ok(_) => Ok(offset),
            Err(Failed { error, after_ambiguous: true }) if error.is_conflict() => {
                let range = offset..offset.saturating_add(bytes.len() as u64);
                match self.part_after_write(range).await {
                    Ok(stored) if stored.bytes == bytes => Ok(offset),
                    // Another client has appended there, or none has: then the range does not exist.
                    Ok(_) => Err(error),
                    Err(refused) if refused.status() == Some(416) => Err(error),
                    Err(other) => Err(other.after_lost_answer()),
                }
            }
            Err(failed) => Err(failed.error),
        }
    }

    /// How many bytes the blob has. The read is about to be followed by a write, so an absent blob is an error here.
    async fn size(&self) -> Result<u64> {
        let reply = self.send(self.call("GetBlobProperties", Method::HEAD).changing()).await?;
        Ok(super::BlobProperties::read(&reply.headers)?.size)
    }
}

const APPEND_POSITION: HeaderName = HeaderName::from_static("x-ms-blob-condition-appendpos");
const MAX_SIZE: HeaderName = HeaderName::from_static("x-ms-blob-condition-maxsize");
/// The code of a refusal because the blob has another size.
const ELSEWHERE: &str = "AppendPositionConditionNotMet";
/// How often other writers may be quicker.
const TRIES_MAX: u32 = 32;
