//! `larimar blob get` and `put`, part by part: a blob need not fit into memory.

use super::split;
use crate::endpoint::{Context, EndpointArgs, Service};
use crate::progress::Progress;
use crate::{Error, Result};
use bytes::Bytes;
use clap::Args;
use larimar_client::{Blob, Guid, UploadOptions};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Get {
    /// Blob to read: CONTAINER/NAME
    #[arg(value_name = "PATH")]
    path: String,
    /// File to write, or - for standard output [default: the last part of the blob's name, here]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl Get {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let (container, name) = blob_name(&self.path)?;
        let account = self.endpoint.connect(context, Service::Blob).await?;
        let blob = account.container(container).blob(name);
        let Some(properties) = blob.properties().await? else {
            return Err(Error::NotFound(format!("there is no blob '{}'", self.path)));
        };
        let progress = Progress::bytes(Some(properties.size));
        let file = match self.file {
            Some(file) => file,
            None => PathBuf::from(file_name(name)?),
        };
        if file.as_os_str() == "-" {
            let mut out = std::io::stdout();
            let write = |bytes: &[u8]| out.write_all(bytes).and_then(|()| out.flush()).map_err(Error::output);
            return download(&blob, properties.size, &progress, write).await;
        }
        // The file has its name when it is complete, so that a part is not taken for the whole.
        let partial = partial_path(&file);
        let mut out = File::create_new(&partial).map_err(|error| Error::io(partial.display(), error))?;
        let remove = Removed(Some(partial.clone()));
        let write = |bytes: &[u8]| out.write_all(bytes).map_err(|error| Error::io(partial.display(), error));
        download(&blob, properties.size, &progress, write).await?;
        std::fs::rename(&partial, &file).map_err(|error| Error::io(file.display(), error))?;
        remove.keep();
        Ok(())
    }
}

/// Hands over the blob part by part. A blob that changes meanwhile is an error: the parts would be of two.
async fn download(
    blob: &Blob,
    size: u64,
    progress: &Progress,
    mut write: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut etag = None;
    let mut start = 0;
    while start < size {
        let end = size.min(start + PART_BYTES as u64);
        let changed = || Error::Failed("the blob was changed or deleted while it was read".to_owned());
        let part = blob.download_range(start..end).await?.ok_or_else(changed)?;
        if *etag.get_or_insert_with(|| part.etag.clone()) != part.etag || part.blob_size != size {
            return Err(changed());
        }
        write(&part.bytes)?;
        progress.add(part.bytes.len() as u64);
        start = end;
    }
    write(&[])
}

#[derive(Args)]
pub(crate) struct Put {
    /// Blob to make: CONTAINER/NAME; the container must exist unless --create is given
    #[arg(value_name = "PATH")]
    path: String,
    /// File to read, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Create the container if it does not exist
    #[arg(long)]
    create: bool,
    /// Content type of the blob
    #[arg(long, value_name = "TYPE", default_value = "application/octet-stream")]
    content_type: String,
    #[command(flatten)]
    endpoint: EndpointArgs,
}

impl Put {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let (container, name) = blob_name(&self.path)?;
        let account = self.endpoint.connect(context, Service::Blob).await?;
        let is_stdin = self.file.as_os_str() == "-";
        let (mut source, size): (Box<dyn Read + Send>, Option<u64>) = match is_stdin {
            true => (Box::new(std::io::stdin()), None),
            false => {
                let refused = |error| Error::io(self.file.display(), error);
                let file = File::open(&self.file).map_err(refused)?;
                let size = file.metadata().map_err(refused)?.len();
                (Box::new(file), Some(size))
            }
        };
        let container = account.container(container);
        if self.create {
            container.create_if_missing().await?;
        }
        let blob = container.blob(name);
        let progress = Progress::bytes(size);
        let options = UploadOptions::default().content_type(self.content_type.as_str());
        let what = self.file.display().to_string();
        let mut read = || read_part(&mut source).map_err(|error| Error::io(&what, error));
        let first = read()?;
        if first.len() < PART_BYTES {
            return Ok(blob.upload(first, options).await.map(drop)?);
        }
        let (upload, mut ids) = (Guid::random(), Vec::new());
        let mut part = first;
        while !part.is_empty() {
            // Ids of one length, in base64: the letters of a GUID and digits are that already.
            let id = format!("{}{:08}", upload.to_string().replace('-', ""), ids.len());
            let length = part.len() as u64;
            blob.put_block(&id, part).await?;
            progress.add(length);
            ids.push(id);
            part = read()?;
        }
        Ok(blob.commit_blocks(&ids, &options).await.map(drop)?)
    }
}

/// The next part of the source; shorter than the others at its end, or empty.
fn read_part(source: &mut impl Read) -> std::io::Result<Bytes> {
    let mut part = Vec::new();
    source.take(PART_BYTES as u64).read_to_end(&mut part)?;
    Ok(part.into())
}

fn blob_name(path: &str) -> Result<(&str, &str)> {
    match split(path) {
        (container, name) if !container.is_empty() && !name.is_empty() => Ok((container, name)),
        _ => Err(Error::Usage(format!("expected CONTAINER/NAME, found '{path}'"))),
    }
}

/// The name of the file for a blob: it must not lead to another directory.
fn file_name(name: &str) -> Result<&str> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    match Path::new(last).file_name() {
        Some(file) if file == last => Ok(last),
        _ => Err(Error::Usage(format!("'{name}' does not end with the name of a file, so give one"))),
    }
}

/// A name of this process, so that no file of the user's has it.
fn partial_path(file: &Path) -> PathBuf {
    let mut partial = file.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    partial.into()
}

/// Removes a file that is not complete, also when the command is interrupted.
struct Removed(Option<PathBuf>);

impl Removed {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Nothing can be done about it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Bytes of one request.
const PART_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_container_and_a_name() {
        assert_eq!(blob_name("photos/2026/a.jpg").expect("a blob"), ("photos", "2026/a.jpg"));
        for path in ["photos", "photos/", "/a.jpg", ""] {
            assert_eq!(blob_name(path).expect_err("refused").exit_code(), 2, "{path}");
        }
    }

    #[test]
    fn a_file_is_never_written_elsewhere() {
        for (name, file) in [("2026/a.jpg", Some("a.jpg")), ("a", Some("a")), ("a/..", None), ("a/", None), (".", None)]
        {
            assert_eq!(file_name(name).ok(), file, "{name}");
        }
        assert_eq!(file_name("..\\..\\evil").ok(), Some("evil"));
    }
}
