//! Where an export goes: standard output, a file, or an object of a store. Nothing appears under the final name before all
//! of it is there.

use crate::endpoint::Environment;
use crate::{Error, Result};
use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt as _, WriteMultipart};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
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
    },
}

impl Location {
    /// Reads `-`, `s3://bucket/name`, `az://container/name`, `gs://bucket/name` or a path. The credentials of stores are
    /// those in the environment (`AWS_…`, `AZURE_…`, `GOOGLE_…`).
    ///
    /// # Errors
    /// An address of an unknown store, or credentials that are missing.
    pub fn parse(text: &str, environment: &Environment) -> Result<Self> {
        if text == "-" {
            return Ok(Self::Stdout);
        }
        let Some((scheme, _)) = text.split_once("://") else { return Ok(Self::File(PathBuf::from(text))) };
        if !matches!(scheme, "s3" | "az" | "gs") {
            let expected = "a path, - for standard output, or an address that starts with s3://, az:// or gs://";
            return Err(Error::Usage(format!("expected {expected}, found '{text}'")));
        }
        let refused = |error: &dyn std::fmt::Display| Error::Usage(format!("{text}: {error}"));
        let url = Url::parse(text).map_err(|error| refused(&error))?;
        let options = environment.iter().filter_map(|(name, value)| {
            let name = name.to_str()?.to_ascii_lowercase();
            let is_credential = ["aws_", "azure_", "google_"].iter().any(|prefix| name.starts_with(prefix));
            is_credential.then_some((name, value.to_str()?.to_owned()))
        });
        let (store, path) = object_store::parse_url_opts(&url, options).map_err(|error| refused(&error))?;
        Ok(Self::Object { store: Arc::from(store), path, url: text.to_owned() })
    }

    /// The place of one of several files under this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Stdout => Self::Stdout,
            Self::File(directory) => Self::File(directory.join(name)),
            Self::Object { store, path, url } => Self::Object {
                store: Arc::clone(store),
                path: path.clone().join(name),
                url: format!("{}/{name}", url.trim_end_matches('/')),
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
            Self::Object { store, path, url } => {
                let upload = store.put_multipart(path).await.map_err(|error| stored(url, &error))?;
                Ok(Output::Object { upload: WriteMultipart::new_with_chunk_size(upload, PART_BYTES), url: url.clone() })
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
    Object {
        /// The parts that were sent.
        upload: WriteMultipart,
        /// The address.
        url: String,
    },
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
            Self::Object { upload, url } => {
                upload.wait_for_capacity(PARTS_MAX).await.map_err(|error| stored(url, &error))?;
                upload.put(bytes);
                Ok(())
            }
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
            Self::Object { upload, url } => upload.finish().await.map(drop).map_err(|error| stored(&url, &error)),
        }
    }

    /// Removes what was written; a store would otherwise keep the parts.
    pub async fn abort(self) {
        if let Self::Object { upload, .. } = self {
            // The error that led here is the one to report.
            let _ = upload.abort().await;
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

fn stored(url: &str, error: &object_store::Error) -> Error {
    Error::Failed(format!("{url}: {error}"))
}

const PART_BYTES: usize = 8 * 1024 * 1024;
const PARTS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_by_their_start() {
        let none = Environment::new();
        assert!(matches!(Location::parse("-", &none), Ok(Location::Stdout)));
        assert!(matches!(Location::parse("a/b.csv", &none), Ok(Location::File(_))));
        for url in ["http://x/y", "s4://x/y", "file:///x"] {
            assert!(matches!(Location::parse(url, &none), Err(Error::Usage(_))), "{url}");
        }
        let environment = [("AWS_REGION", "eu-west-1"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
        let environment = environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let location = Location::parse("s3://bucket/some/", &environment).expect("a location");
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
        let location =
            |name: &str| Location::Object { store: Arc::clone(&store), path: ObjectPath::from(name), url: name.into() };
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
