//! Streams the body of a request into the byte store, and checks its length and checksums.

use super::BlobCall;
use crate::body::RequestBody;
use crate::error::Result;
use crate::yielding;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Extent};
use larimar_engine::blob::{BlobRef, Hold};
use larimar_wire::blob::BodyChecks;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use md5::{Digest as _, Md5};

/// Bytes that were written to the byte store.
#[derive(Debug)]
pub(super) struct Received {
    /// Where they are; `None` if there are none.
    pub(super) extent: Option<Extent>,
    pub(super) sums: Checksums,
    /// Keeps them from being reclaimed until the operation has ended.
    pub(super) hold: Hold,
}

/// The checksums of a body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checksums {
    pub(super) md5: Option<[u8; 16]>,
    pub(super) crc64: u64,
}

/// Computes checksums piece by piece.
pub(super) struct ChecksumBuilder {
    md5: Option<Md5>,
    crc64: crc64fast_nvme::Digest,
}

impl ChecksumBuilder {
    pub(super) fn new(with_md5: bool) -> Self {
        Self { md5: with_md5.then(Md5::new), crc64: crc64fast_nvme::Digest::new() }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.crc64.write(bytes);
    }

    pub(super) fn finish(self) -> Checksums {
        Checksums { md5: self.md5.map(|md5| md5.finalize().into()), crc64: self.crc64.sum64() }
    }
}

impl Checksums {
    /// Compares with the checksums in the request.
    pub(super) fn check(&self, checks: &BodyChecks) -> std::result::Result<(), ErrorReply> {
        self.check_against(checks.md5, checks.crc64)
    }

    /// Compares with these checksums, as far as they are given. The error contains both values (recorded).
    pub(super) fn check_against(
        &self,
        md5: Option<[u8; 16]>,
        crc64: Option<[u8; 8]>,
    ) -> std::result::Result<(), ErrorReply> {
        if let Some(md5) = md5.filter(|md5| self.md5 != Some(*md5)) {
            return Err(ErrorReply::new(ErrorCode::Md5Mismatch)
                .with_detail("UserSpecifiedMd5", &STANDARD.encode(md5))
                .with_detail("ServerCalculatedMd5", &STANDARD.encode(self.md5.unwrap_or_default())));
        }
        if let Some(crc64) = crc64.filter(|crc64| *crc64 != self.crc64.to_le_bytes()) {
            return Err(ErrorReply::new(ErrorCode::Crc64Mismatch)
                .with_detail("UserSpecifiedCrc", &STANDARD.encode(crc64))
                .with_detail("ServerCalculatedCrc", &self.crc64_text()));
        }
        Ok(())
    }

    /// The value of the CRC-64 header: base64 of the eight bytes in little-endian order (recorded).
    pub(super) fn crc64_text(&self) -> String {
        STANDARD.encode(self.crc64.to_le_bytes())
    }
}

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    /// Streams the body into the byte store for a blob. Nothing is visible yet, and nothing is kept if a check fails.
    pub(super) async fn receive(
        &self,
        at: BlobRef<'_>,
        body: &mut RequestBody,
        checks: &BodyChecks,
        with_md5: bool,
    ) -> Result<Received> {
        let hold = self.blobs.hold(at);
        let mut sums = ChecksumBuilder::new(with_md5 || checks.md5.is_some() || !self.has_crc64());
        if checks.length == 0 {
            let sums = sums.finish();
            sums.check(checks)?;
            return Ok(Received { extent: None, sums, hold });
        }
        let buffered = self.blobs.bytes().writer_bytes(Some(checks.length)) + checks.length.min(PIECE_BYTES);
        let mut writer = self.blobs.begin(at, Some(checks.length)).await?;
        while let Some(piece) = body.upload_piece(checks.length, buffered).await? {
            sums.add(&piece);
            writer.write(piece).await?;
        }
        let sums = sums.finish();
        if body.received_bytes() != checks.length {
            return Err(ErrorCode::InvalidInput.into());
        }
        sums.check(checks)?;
        let extent = writer.finish().await?;
        body.release();
        Ok(Received { extent: Some(extent), sums, hold })
    }

    /// The body that the pipeline has read, after its checksums were compared.
    pub(super) async fn checked_body(
        &self,
        checks: &BodyChecks,
        body: &RequestBody,
    ) -> Result<(bytes::Bytes, Checksums)> {
        let bytes = body.whole();
        let range_with_checksum = bytes.clone();
        let sums = yielding::run(bytes.len(), move || {
            let mut sums = ChecksumBuilder::new(true);
            sums.add(&range_with_checksum);
            Ok(sums.finish())
        });
        let sums = sums.await?;
        sums.check(checks)?;
        Ok((bytes, sums))
    }
}

/// Memory for a body besides the store's buffers: what a connection reads at once.
const PIECE_BYTES: u64 = 128 << 10;
