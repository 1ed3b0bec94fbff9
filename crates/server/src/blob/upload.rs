//! Takes the body of a request into the store of bytes while it arrives, and checks it on the way.

use super::BlobCall;
use crate::body::RequestBody;
use crate::error;
use crate::turns;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use larimar_engine::Engine;
use larimar_engine::blob::bytes::{ByteStore, ByteWriter, Extent};
use larimar_engine::blob::{BlobRef, Hold};
use larimar_wire::blob::BodyChecks;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use md5::{Digest as _, Md5};

/// Bytes that arrived and are in the store.
#[derive(Debug)]
pub(super) struct Received {
    /// Where they are; nowhere if there are none.
    pub(super) extent: Option<Extent>,
    pub(super) sums: Sums,
    /// Keeps them from being swept until the operation that they are for has ended.
    pub(super) hold: Hold,
}

/// The checksums of bytes that passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) md5: Option<[u8; 16]>,
    pub(super) crc64: u64,
}

/// Adds up bytes as they pass.
pub(super) struct Summing {
    md5: Option<Md5>,
    crc64: crc64fast_nvme::Digest,
}

impl Summing {
    pub(super) fn new(with_md5: bool) -> Self {
        Self { md5: with_md5.then(Md5::new), crc64: crc64fast_nvme::Digest::new() }
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        self.crc64.write(bytes);
    }

    pub(super) fn finish(self) -> Sums {
        Sums { md5: self.md5.map(|md5| md5.finalize().into()), crc64: self.crc64.sum64() }
    }
}

impl Sums {
    /// Checks the sums against those that the request told.
    pub(super) fn check(&self, checks: &BodyChecks) -> Result<(), ErrorReply> {
        self.check_against(checks.md5, checks.crc64)
    }

    /// Checks the sums against these, where there are any. The error tells both sides (recorded).
    pub(super) fn check_against(&self, md5: Option<[u8; 16]>, crc64: Option<[u8; 8]>) -> Result<(), ErrorReply> {
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

    /// The header with the CRC-64: base64 of eight bytes, the lowest first (recorded).
    pub(super) fn crc64_text(&self) -> String {
        STANDARD.encode(self.crc64.to_le_bytes())
    }
}

impl<E: Engine, B: ByteStore> BlobCall<'_, E, B> {
    /// Takes the body into the store for a blob. Nothing of it is visible, and nothing stays if it is not what it says.
    pub(super) async fn receive(
        &self,
        at: BlobRef<'_>,
        body: &mut RequestBody,
        checks: &BodyChecks,
        with_md5: bool,
    ) -> Result<Received, ErrorReply> {
        let hold = self.blobs.hold(at);
        let mut sums = Summing::new(with_md5 || checks.md5.is_some() || !self.knows_crc64());
        if checks.length == 0 {
            let sums = sums.finish();
            sums.check(checks)?;
            return Ok(Received { extent: None, sums, hold });
        }
        let failed = |fault| error::fault(&fault);
        let buffered = self.blobs.bytes().writer_bytes(Some(checks.length)) + checks.length.min(PIECE_BYTES);
        let mut writer = self.blobs.begin(at, Some(checks.length)).await.map_err(failed)?;
        while let Some(piece) = body.upload_piece(checks.length, buffered).await? {
            sums.add(&piece);
            writer.write(piece).await.map_err(failed)?;
        }
        let sums = sums.finish();
        if body.received_bytes() != checks.length {
            return Err(ErrorReply::new(ErrorCode::InvalidInput));
        }
        sums.check(checks)?;
        let extent = writer.finish().await.map_err(failed)?;
        body.release();
        Ok(Received { extent: Some(extent), sums, hold })
    }

    /// The body that the pipeline has read, checked.
    pub(super) async fn checked_body(
        &self,
        checks: &BodyChecks,
        body: &RequestBody,
    ) -> Result<(bytes::Bytes, Sums), ErrorReply> {
        let bytes = body.whole();
        let summed = bytes.clone();
        let sums = turns::run(bytes.len(), move || {
            let mut sums = Summing::new(true);
            sums.add(&summed);
            Ok(sums.finish())
        });
        let sums = sums.await?;
        sums.check(checks)?;
        Ok((bytes, sums))
    }
}

/// What of a body is on its way to the store besides the store's own buffers: what a connection reads at once.
const PIECE_BYTES: u64 = 128 << 10;
