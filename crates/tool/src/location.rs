//! Where an export goes: standard output, a file, or an object of a store. Nothing appears under the final name before all
//! of it is there.

use crate::{Context, Error, Result};
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayloadMut};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use url::Url;

/// A place that can be written to.
#[derive(Clone, Debug)]
pub enum Location {
    /// Standard output.
    Stdout,
    /// A file, or a directory of them.
    File(PathBuf),
    /// An object, or what the names of several start with.
    Object {
        /// The bucket or container.
        store: Arc<dyn ObjectStore>,
        /// The name within it.
        path: ObjectPath,
        /// The address as it was given.
        url: String,
        /// Where its upload is counted.
        uploads: Uploads,
    },
}

/// The uploads to stores that are under way or being aborted. A store keeps the parts of an upload that is not.
#[derive(Clone, Debug, Default)]
pub struct Uploads(Arc<watch::Sender<usize>>);

impl Uploads {
    fn open(&self) -> OpenUpload {
        self.0.send_modify(|open| *open += 1);
        OpenUpload(self.clone())
    }

    /// Waits until every upload is finished or aborted, but not for a store that does not answer.
    pub async fn closed(&self) {
        let _ = tokio::time::timeout(ABORT_MAX, self.0.subscribe().wait_for(|open| *open == 0)).await;
    }
}

/// Counts an upload as long as it lives.
#[derive(Debug)]
struct OpenUpload(Uploads);

impl Drop for OpenUpload {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

impl Location {
    /// Reads `-`, `s3://bucket/name`, `az://container/name`, `gs://bucket/name` or a path. The credentials of stores are
    /// those in the environment (`AWS_…`, `AZURE_…`, `GOOGLE_…`).
    ///
    /// # Errors
    /// An address of an unknown store, or credentials that are missing.
    pub fn parse(text: &str, context: &Context) -> Result<Self> {
        if text == "-" {
            return Ok(Self::Stdout);
        }
        let Some((scheme, _)) = text.split_once("://") else { return Ok(Self::File(PathBuf::from(text))) };
        if holds_credentials(text) {
            return Err(Error::Usage(NO_CREDENTIALS.to_owned()));
        }
        if !matches!(scheme, "s3" | "az" | "gs") {
            let expected = "a path, - for standard output, or an address that starts with s3://, az:// or gs://";
            return Err(Error::Usage(format!("expected {expected}, found '{text}'")));
        }
        let refused = |error: &dyn std::fmt::Display| Error::Usage(format!("{text}: {error}"));
        let url = Url::parse(text).map_err(|error| refused(&error))?;
        let options = context.environment.iter().filter_map(|(name, value)| {
            let name = name.to_str()?.to_ascii_lowercase();
            let is_credential = ["aws_", "azure_", "google_"].iter().any(|prefix| name.starts_with(prefix));
            is_credential.then_some((name, value.to_str()?.to_owned()))
        });
        let (store, path) = object_store::parse_url_opts(&url, options).map_err(|error| refused(&error))?;
        let uploads = context.uploads.clone();
        Ok(Self::Object { store: Arc::from(store), path, url: text.to_owned(), uploads })
    }

    /// The place of one of several files under this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Stdout => Self::Stdout,
            Self::File(directory) => Self::File(directory.join(name)),
            Self::Object { store, path, url, uploads } => Self::Object {
                store: Arc::clone(store),
                path: path.clone().join(name),
                url: format!("{}/{name}", url.trim_end_matches('/')),
                uploads: uploads.clone(),
            },
        }
    }

    /// Starts to write.
    ///
    /// # Errors
    /// A directory that cannot be written to, or a store that cannot be reached.
    pub async fn create(&self) -> Result<Output> {
        match self {
            Self::Stdout => Ok(Output::Stdout),
            Self::File(path) => Output::file(path),
            Self::Object { store, path, url, uploads } => {
                let counted = uploads.open();
                let upload = store.put_multipart(path).await.map_err(|error| stored(url, &error))?;
                let buffer = PutPayloadMut::new();
                let parts = Some(Parts { upload, buffer, sending: JoinSet::new(), _counted: counted });
                Ok(Output::Object(Upload { parts, url: url.clone(), uploads: uploads.clone() }))
            }
        }
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::File(path) => path.display().fmt(f),
            Self::Object { url, .. } => f.write_str(url),
        }
    }
}

/// What is being written. Dropping it leaves nothing under the final name.
#[derive(Debug)]
pub enum Output {
    /// Standard output, and files that are not regular ones.
    Stdout,
    /// A device or a pipe.
    Special(File, PathBuf),
    /// A file beside the final one.
    File(NamedTempFile, PathBuf),
    /// Parts of an object.
    Object(Upload),
}

/// An object that is being written. Dropping it aborts the upload.
#[derive(Debug)]
pub struct Upload {
    /// None when it is finished.
    parts: Option<Parts>,
    url: String,
    uploads: Uploads,
}

impl Upload {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.parts().put(bytes).await.map_err(|error| stored(&self.url, &error))
    }

    async fn finish(&mut self) -> Result<()> {
        self.parts().finish().await.map_err(|error| stored(&self.url, &error))?;
        self.parts = None;
        Ok(())
    }

    async fn abort(self) {
        let uploads = self.uploads.clone();
        drop(self);
        uploads.closed().await;
    }

    fn parts(&mut self) -> &mut Parts {
        self.parts.as_mut().expect("nothing is written after the end")
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Without a runtime the process is about to end.
        if let (Some(parts), Ok(runtime)) = (self.parts.take(), Handle::try_current()) {
            runtime.spawn(parts.abort());
        }
    }
}

/// The parts of an object. `WriteMultipart` of the crate leaves them in the store if the last ones fail.
#[derive(Debug)]
struct Parts {
    upload: Box<dyn MultipartUpload>,
    /// The next part.
    buffer: PutPayloadMut,
    sending: JoinSet<object_store::Result<()>>,
    _counted: OpenUpload,
}

impl Parts {
    async fn put(&mut self, mut bytes: Bytes) -> object_store::Result<()> {
        while !bytes.is_empty() {
            let room = PART_BYTES - self.buffer.content_length();
            self.buffer.push(bytes.split_to(room.min(bytes.len())));
            if self.buffer.content_length() == PART_BYTES {
                self.wait(PARTS_MAX - 1).await?;
                self.send();
            }
        }
        Ok(())
    }

    async fn finish(&mut self) -> object_store::Result<()> {
        if !self.buffer.is_empty() {
            self.send();
        }
        self.wait(0).await?;
        self.upload.complete().await.map(drop)
    }

    fn send(&mut self) {
        let part = std::mem::take(&mut self.buffer);
        self.sending.spawn(self.upload.put_part(part.into()));
    }

    /// Waits until at most so many parts are under way.
    async fn wait(&mut self, max: usize) -> object_store::Result<()> {
        while self.sending.len() > max
            && let Some(sent) = self.sending.join_next().await
        {
            sent??;
        }
        Ok(())
    }

    async fn abort(mut self) {
        self.sending.shutdown().await;
        // The error that led here is the one to report.
        let _ = self.upload.abort().await;
    }
}

impl Output {
    fn file(path: &Path) -> Result<Self> {
        let failed = |error| Error::io(path.display(), error);
        let known = std::fs::metadata(path).ok();
        if known.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        if known.is_some_and(|known| !known.is_file()) {
            let file = File::options().write(true).open(path).map_err(failed)?;
            return Ok(Self::Special(file, path.to_owned()));
        }
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".larimar-export-").tempfile_in(directory).map_err(failed)?;
        Ok(Self::File(file, path.to_owned()))
    }

    /// Writes some bytes.
    ///
    /// # Errors
    /// What writing fails with.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        match self {
            Self::Stdout => std::io::stdout().write_all(&bytes).map_err(Error::output),
            Self::Special(file, path) => file.write_all(&bytes).map_err(|error| Error::io(path.display(), error)),
            Self::File(file, path) => file.write_all(&bytes).map_err(|error| Error::io(path.display(), error)),
            Self::Object(upload) => upload.write(bytes).await,
        }
    }

    /// Gives what was written its final name.
    ///
    /// # Errors
    /// What writing fails with.
    pub async fn finish(self) -> Result<()> {
        match self {
            Self::Stdout => std::io::stdout().flush().map_err(Error::output),
            Self::Special(..) => Ok(()),
            Self::File(file, path) => {
                let failed = |error| Error::io(path.display(), error);
                file.as_file().sync_all().map_err(failed)?;
                make_readable(file.as_file()).map_err(failed)?;
                file.persist(&path).map(drop).map_err(|error| failed(error.error))
            }
            Self::Object(mut upload) => {
                let finished = upload.finish().await;
                if finished.is_err() {
                    upload.abort().await;
                }
                finished
            }
        }
    }

    /// Removes what was written; a store would otherwise keep the parts.
    pub async fn abort(self) {
        if let Self::Object(upload) = self {
            upload.abort().await;
        }
    }
}

/// A temporary file is readable by its owner only; the final one as files usually are.
#[cfg(unix)]
fn make_readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_readable(_: &File) -> std::io::Result<()> {
    Ok(())
}

/// Whether an address has a user, a query or a fragment: addresses are printed and logged, and these may be secret.
#[must_use]
pub fn holds_credentials(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    rest.contains(['?', '#']) || rest.split('/').next().is_some_and(|host| host.contains('@'))
}

/// What is wrong with such an address.
pub const NO_CREDENTIALS: &str = "expected an address without user, password, `?` and `#`, such as s3://BUCKET/NAME: the \
                                  credentials of stores belong in the environment (AWS_…, AZURE_…, GOOGLE_…)";

fn stored(url: &str, error: &object_store::Error) -> Error {
    Error::Failed(format!("{url}: {error}"))
}

const PART_BYTES: usize = 8 * 1024 * 1024;
const PARTS_MAX: usize = 4;
/// How long the abort of an upload may take.
const ABORT_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn context(variables: &[(&str, &str)]) -> Context {
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Context::new(environment, Err("not in tests".to_owned()))
    }

    #[test]
    fn places_are_told_by_their_start() {
        let none = context(&[]);
        assert!(matches!(Location::parse("-", &none), Ok(Location::Stdout)));
        assert!(matches!(Location::parse("a/b.csv", &none), Ok(Location::File(_))));
        for url in ["http://x/y", "s4://x/y", "file:///x"] {
            assert!(matches!(Location::parse(url, &none), Err(Error::Usage(_))), "{url}");
        }
        for url in ["s3://K:sesame@b/x", "s3://sesame@b", "gs://b/x?secret=sesame", "az://b#sesame", "S3://K:sesame@b"]
        {
            let error = Location::parse(url, &none).expect_err(url).to_string();
            assert!(error.contains("environment") && !error.contains("sesame"), "{error}");
        }
        assert!(!holds_credentials("some@where/what?") && !holds_credentials("s3://bucket/some@where"));
        let aws = [("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        let location = Location::parse("s3://bucket/some/", &context(&aws)).expect("a location");
        assert_eq!(location.join("T.csv").to_string(), "s3://bucket/some/T.csv");
    }

    #[tokio::test]
    async fn a_file_has_its_name_only_when_it_is_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.csv");
        let entries = || std::fs::read_dir(directory.path()).expect("a directory").count();
        let mut output = Location::File(path.clone()).create().await.expect("an output");
        output.write(Bytes::from_static(b"half")).await.expect("written");
        assert!(!path.exists());
        drop(output);
        assert_eq!(entries(), 0);

        let mut output = Location::File(path.clone()).create().await.expect("an output");
        output.write(Bytes::from_static(b"whole")).await.expect("written");
        output.finish().await.expect("written");
        assert_eq!(std::fs::read(&path).expect("a file"), b"whole");
        assert_eq!(entries(), 1);
        assert!(Location::File(directory.path().join("no/x.csv")).create().await.is_err());
        assert!(Location::File(directory.path().to_owned()).create().await.is_err(), "before anything is read");
    }

    #[tokio::test]
    async fn an_object_has_its_name_only_when_it_is_whole() {
        let store: Arc<dyn ObjectStore> = Arc::new(object_store::memory::InMemory::new());
        let location = |name: &str| Location::Object {
            store: Arc::clone(&store),
            path: ObjectPath::from(name),
            url: name.into(),
            uploads: Uploads::default(),
        };
        for (name, is_finished) in [("dropped", false), ("finished", true)] {
            let mut output = location(name).create().await.expect("an output");
            for _ in 0..3 {
                output.write(Bytes::from(vec![7; PART_BYTES])).await.expect("written");
            }
            if is_finished {
                output.finish().await.expect("written");
            } else {
                output.abort().await;
            }
            let found = store.head(&ObjectPath::from(name)).await.map(|object| object.size);
            assert_eq!(found.ok(), is_finished.then_some(3 * PART_BYTES as u64));
        }
    }
}
