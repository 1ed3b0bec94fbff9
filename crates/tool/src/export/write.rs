//! Pages of entities to bytes of a file.

use super::CsvArgs;
use super::spool::CsvSpool;
use crate::format::FormatError;
use crate::format::json_lines::write_line;
use crate::format::parquet::{RowGroup, Spool};
use crate::location::Output;
use crate::progress::Progress;
use crate::ranges;
use crate::{Error, Result};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use larimar_client::DynamicEntity;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};

/// The pages of a table, for several tasks that take them.
#[derive(Clone)]
pub(super) struct Pages {
    pages: Arc<tokio::sync::Mutex<ranges::Pages>>,
    progress: Arc<Progress>,
}

impl Pages {
    pub(super) fn new(pages: ranges::Pages, progress: Progress) -> Self {
        Self { pages: Arc::new(tokio::sync::Mutex::new(pages)), progress: Arc::new(progress) }
    }

    async fn next(&self) -> Result<Option<Vec<DynamicEntity>>> {
        let page = self.pages.lock().await.try_next().await?;
        if let Some(page) = &page {
            self.progress.add(page.len() as u64);
        }
        Ok(page)
    }

    pub(super) fn rows(&self) -> u64 {
        self.progress.count()
    }
}

pub(super) async fn json_lines(pages: &Pages, output: &mut Output) -> Result<()> {
    while let Some(page) = pages.next().await? {
        let mut lines = Vec::with_capacity(256 * page.len());
        page.iter().for_each(|entity| write_line(&mut lines, entity));
        output.write(lines.into()).await?;
    }
    Ok(())
}

pub(super) async fn csv(pages: &Pages, options: CsvArgs, output: &mut Output) -> Result<()> {
    let mut spool = CsvSpool::new(!options.no_types, options.formula_safe);
    while let Some(page) = pages.next().await? {
        page.iter().try_for_each(|entity| spool.push(entity)).map_err(|error| Error::io("temporary file", error))?;
    }
    write_blocking(output, |out| Ok(spool.finish(out)?)).await
}

pub(super) async fn parquet(pages: &Pages, workers: usize, output: &mut Output) -> Result<()> {
    let spool = Arc::new(Mutex::new(Spool::new().map_err(failed)?));
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        tasks.spawn(gather(pages.clone(), Arc::clone(&spool)));
    }
    while let Some(task) = tasks.join_next().await {
        task.map_err(|panic| Error::Failed(panic.to_string()))??;
    }
    let spool = Arc::into_inner(spool).and_then(|spool| spool.into_inner().ok());
    let spool = spool.ok_or_else(|| Error::Failed("a row group was not encoded".to_owned()))?;
    write_blocking(output, |out| spool.finish(out)).await
}

/// Gathers row groups until there are no more pages.
async fn gather(pages: Pages, spool: Arc<Mutex<Spool>>) -> Result<()> {
    let mut group = RowGroup::default();
    loop {
        let page = pages.next().await?;
        let is_last = page.is_none();
        page.iter().flatten().for_each(|entity| group.push(entity));
        if group.is_full() || is_last && group.rows() > 0 {
            let full = std::mem::take(&mut group);
            let spool = Arc::clone(&spool);
            let stored = spawn_blocking(move || {
                let encoded = full.encode()?;
                let mut spool = spool.lock().map_err(|_| FormatError::File("a row group was lost".to_owned()))?;
                spool.push(encoded)
            });
            stored.await.map_err(|panic| Error::Failed(panic.to_string()))?.map_err(failed)?;
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Runs a writer that blocks, and passes on what it writes.
async fn write_blocking(
    output: &mut Output,
    write: impl FnOnce(&mut ChannelWriter) -> Result<(), FormatError> + Send + 'static,
) -> Result<()> {
    let (sender, mut receiver) = mpsc::channel(4);
    let writer = spawn_blocking(move || {
        let mut out = ChannelWriter { buffer: Vec::with_capacity(CHUNK_BYTES), sender };
        write(&mut out)?;
        out.flush()?;
        Ok(())
    });
    while let Some(bytes) = receiver.recv().await {
        output.write(bytes).await?;
    }
    writer.await.map_err(|panic| Error::Failed(panic.to_string()))?.map_err(failed)
}

/// Gathers small writes and sends them to a task.
struct ChannelWriter {
    buffer: Vec<u8>,
    sender: mpsc::Sender<Bytes>,
}

impl Write for ChannelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        self.sender.blocking_send(full.into()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

pub(crate) fn failed(error: FormatError) -> Error {
    match error {
        FormatError::Io(source) => Error::io("temporary file", source),
        other => Error::Failed(other.to_string()),
    }
}

const CHUNK_BYTES: usize = 256 * 1024;
