//! Writes one payload: up to one part is put at once, more is uploaded in parts as it arrives.

use super::Shared;
use super::location::write_fault;
use crate::record::{FileName, FrameEncoder, Header, RecordPosition, State, random_name};
use bytes::Bytes;
use larimar_engine::Fault;
use larimar_engine::blob::bytes::{ByteWriter, Extent, Owner};
use object_store::path::Path;
use object_store::{Error, MultipartUpload, ObjectStoreExt, PutPayload};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;

/// Writes one payload for [`super::ObjectBytes`].
#[derive(Debug)]
pub struct ObjectWriter {
    shared: Arc<Shared>,
    path: Path,
    encoder: FrameEncoder,
    /// The part that is being filled.
    buffer: Vec<u8>,
    parts: Parts,
}

impl ObjectWriter {
    pub(super) fn begin(shared: &Arc<Shared>, owner: Owner<'_>) -> Result<Self, Fault> {
        let header = Header::new(owner, None, State::Whole)
            .ok_or_else(|| Fault::Unavailable("the blob's name is too long to store".to_owned()))?;
        let position = RecordPosition { file: random_name(), offset: header.bytes() };
        let mut buffer = Vec::new();
        header.encode(position, &mut buffer);
        let path = shared.location.path(&position.file);
        let writing = Arc::new(Writing::begin(shared, position.file));
        let parts = Parts { upload: None, under_way: None, writing };
        Ok(Self { shared: Arc::clone(shared), path, encoder: FrameEncoder::new(position), buffer, parts })
    }

    /// Starts to upload a part, after the part before it is done: a writer holds at most two parts.
    async fn upload(&mut self, part: Vec<u8>) -> Result<(), Error> {
        self.parts.settle().await?;
        let upload = match &mut self.parts.upload {
            Some(upload) => upload,
            none => none.insert(self.shared.location.store.put_multipart(&self.path).await?),
        };
        self.parts.under_way = Some(tokio::spawn(upload.put_part(PutPayload::from(part))));
        Ok(())
    }

    async fn put(&mut self) -> Result<(), Error> {
        self.encoder.end(&mut self.buffer);
        let last = std::mem::take(&mut self.buffer);
        if self.parts.upload.is_none() {
            self.shared.location.store.put(&self.path, PutPayload::from(last)).await?;
            return Ok(());
        }
        if !last.is_empty() {
            self.upload(last).await?;
        }
        self.parts.settle().await?;
        if let Some(upload) = &mut self.parts.upload {
            upload.complete().await?;
        }
        self.parts.upload = None;
        Ok(())
    }
}

impl ByteWriter for ObjectWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), Fault> {
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            let room = PART_BYTES.saturating_sub(self.buffer.len()).max(1);
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.encoder.push(now, &mut self.buffer);
            if self.buffer.len() >= PART_BYTES {
                // Some stores require parts of equal size, except the last.
                let rest = self.buffer.split_off(PART_BYTES);
                let part = std::mem::replace(&mut self.buffer, rest);
                let uploaded = self.upload(part).await;
                uploaded.map_err(|error| write_fault(&self.path, &error))?;
            }
            bytes = later;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Extent, Fault> {
        self.put().await.map_err(|error| write_fault(&self.path, &error))?;
        self.shared.location.sync(&self.path).await?;
        let extent = self.encoder.extent();
        self.shared.figures.payloads_written.fetch_add(1, Ordering::Relaxed);
        self.shared.figures.bytes_written.fetch_add(extent.length, Ordering::Relaxed);
        Ok(extent)
    }
}

/// The upload in parts; aborted unless it is completed.
#[derive(Debug)]
struct Parts {
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: Option<JoinHandle<Result<(), Error>>>,
    /// Kept until the upload is aborted, which may take a while.
    writing: Arc<Writing>,
}

/// Marks an object as being written by this process.
#[derive(Debug)]
struct Writing {
    shared: Arc<Shared>,
    file: FileName,
}

impl Writing {
    fn begin(shared: &Arc<Shared>, file: FileName) -> Self {
        shared.writing.lock().insert(file);
        Self { shared: Arc::clone(shared), file }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.shared.writing.lock().remove(&self.file);
    }
}

impl Parts {
    /// Waits for the part that is being uploaded.
    async fn settle(&mut self) -> Result<(), Error> {
        match self.under_way.take() {
            Some(part) => part.await?,
            None => Ok(()),
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let under_way = self.under_way.take();
        if let Some(mut upload) = self.upload.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let writing = Arc::clone(&self.writing);
            runtime.spawn(async move {
                if let Some(part) = under_way {
                    part.abort();
                    let _ = part.await;
                }
                if let Err(error) = upload.abort().await {
                    tracing::warn!(%error, "an upload in parts could not be given up; the store may keep its parts");
                }
                drop(writing);
            });
        }
    }
}

/// The size of a part: the smallest that every store accepts.
pub(super) const PART_BYTES: usize = 5 << 20;
