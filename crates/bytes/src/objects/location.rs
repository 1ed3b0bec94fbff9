//! The store that a URL names, the keys in it, and the conversion of its errors.
//!
//! Keys are `<prefix>/<first byte>/<name>`, in hexadecimal digits, so that they spread over a store's partitions.

use crate::record::{FileName, file_name};
use larimar_engine::Fault;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutPayload, RetryConfig};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use url::Url;

/// An opened store, and the prefix of our objects.
#[derive(Debug)]
pub(super) struct Location {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    /// The directory, if the store is one: we have to sync it.
    pub(super) folder: Option<PathBuf>,
}

impl Location {
    /// Opens the store of a URL; options are in its query and in `options`.
    pub(super) fn open(text: &str, options: &[(String, String)]) -> Result<Self, Fault> {
        let wrong = |why: String| Fault::Unavailable(format!("blob store {}: {why}", without_query(text)));
        let mut url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        url.set_query(None);
        let (scheme, prefix) = ObjectStoreScheme::parse(&url).map_err(|error| wrong(error.to_string()))?;
        let options = Options { query, options };
        let mut folder = None;
        let mut prefix = prefix;
        let store: Result<Arc<dyn ObjectStore>, Error> = match scheme {
            ObjectStoreScheme::Local => {
                let path = url.to_file_path().map_err(|()| wrong("expected a folder".to_owned()))?;
                prefix = Path::default();
                folder = Some(path.clone());
                open_folder(path)
            }
            ObjectStoreScheme::AmazonS3 => {
                let builder = AmazonS3Builder::new().with_url(url.as_str()).with_retry(retries());
                let set = |builder: AmazonS3Builder, key, value: String| builder.with_config(key, value);
                options.apply("aws_", builder, set).and_then(|builder| Ok(Arc::new(builder.build()?) as _))
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let builder = MicrosoftAzureBuilder::new().with_url(url.as_str()).with_retry(retries());
                let set = |builder: MicrosoftAzureBuilder, key, value: String| builder.with_config(key, value);
                options.apply("azure_", builder, set).and_then(|builder| Ok(Arc::new(builder.build()?) as _))
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                let builder = GoogleCloudStorageBuilder::new().with_url(url.as_str()).with_retry(retries());
                let set = |builder: GoogleCloudStorageBuilder, key, value: String| builder.with_config(key, value);
                options.apply("google_", builder, set).and_then(|builder| Ok(Arc::new(builder.build()?) as _))
            }
            _ => return Err(wrong("expected s3://, az://, gs:// or file://".to_owned())),
        };
        Ok(Self { store: store.map_err(|error| wrong(error.to_string()))?, prefix, folder })
    }

    pub(super) fn path(&self, file: &FileName) -> Path {
        let name = file_name(file);
        self.prefix.clone().join(&name[..2]).join(name)
    }

    /// Makes an uploaded object durable. Only a directory needs it: other stores acknowledge durable objects.
    pub(super) async fn sync(&self, path: &Path) -> Result<(), Fault> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let file = folder.join(path.as_ref());
        let synced = tokio::task::spawn_blocking(move || {
            File::open(&file)?.sync_all()?;
            // The object's directory may be new, too.
            file.ancestors().skip(1).take(2).try_for_each(|folder| File::open(folder)?.sync_all())
        });
        let synced = synced.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        synced.map_err(|error| Fault::Unavailable(format!("blob object {path}: {error}")))
    }

    /// The time of the store's own clock, which also dates the objects: the time of a marker object that is written for
    /// it.
    pub(super) async fn now(&self) -> Result<SystemTime, Fault> {
        let mark = self.prefix.clone().join(CLOCK);
        let marked = async {
            self.store.put(&mark, PutPayload::from_static(b"larimar")).await?;
            self.store.head(&mark).await
        };
        let marked = marked.await.map_err(|error| write_fault(&mark, &error))?;
        Ok(marked.last_modified.into())
    }

    /// Converts an error for an object that should exist.
    pub(super) fn read_fault(&self, path: &Path, error: &Error) -> Fault {
        match error {
            Error::NotFound { .. } => self.damaged(path, "it is missing"),
            _ => write_fault(path, error),
        }
    }

    pub(super) fn damaged(&self, path: &Path, what: &str) -> Fault {
        Fault::Damaged(format!("blob object {path} in {}: {what}", self.store))
    }
}

pub(super) fn write_fault(path: &Path, error: &Error) -> Fault {
    Fault::Unavailable(format!("blob object {path}: {error}"))
}

fn open_folder(path: PathBuf) -> Result<Arc<dyn ObjectStore>, Error> {
    let made = std::fs::create_dir_all(&path);
    made.map_err(|source| Error::Generic { store: "folder", source: Box::new(source) })?;
    Ok(Arc::new(LocalFileSystem::new_with_prefix(path)?))
}

/// The options of the URL's query and of the environment.
struct Options<'a> {
    query: Vec<(String, String)>,
    options: &'a [(String, String)],
}

impl Options<'_> {
    /// Passes the options to a builder. Unknown options of the environment are ignored; unknown options of the URL are
    /// refused.
    fn apply<B, K: std::str::FromStr<Err = Error>>(
        &self,
        prefix: &str,
        mut builder: B,
        set: impl Fn(B, K, String) -> B,
    ) -> Result<B, Error> {
        for (key, value) in self.options {
            let key = key.to_ascii_lowercase();
            if key.starts_with(prefix)
                && let Ok(key) = key.parse()
            {
                builder = set(builder, key, value.clone());
            }
        }
        for (key, value) in &self.query {
            builder = set(builder, key.to_ascii_lowercase().parse()?, value.clone());
        }
        Ok(builder)
    }
}

/// The marker object for the store's time. No payload has such a name.
pub(super) const CLOCK: &str = "clock";

/// Retries for some seconds, because a client waits for the request.
fn retries() -> RetryConfig {
    RetryConfig { max_retries: 4, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() }
}

/// A URL without its options, which may contain secrets.
fn without_query(text: &str) -> &str {
    text.split_once('?').map_or(text, |(url, _)| url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Location::open(url, &[]).expect_err("it is refused").to_string()
    }

    #[test]
    fn what_is_no_store_is_refused_without_telling_secrets() {
        assert!(refused("nothing").contains("relative URL"), "{}", refused("nothing"));
        assert!(refused("ftp://host/x?secret=abc").contains("ftp://host/x:"), "{}", refused("ftp://host/x?secret=abc"));
        assert!(!refused("ftp://host/x?secret=abc").contains("abc"));
        assert!(refused("s3://bucket/x?regoin=a").contains("regoin"), "{}", refused("s3://bucket/x?regoin=a"));
    }

    #[test]
    fn keys_spread_below_the_prefix() {
        let url = "s3://bucket/a/b?region=x&access_key_id=y&secret_access_key=z";
        let location = Location::open(url, &[]).expect("it opens");
        assert_eq!(location.path(&[0xAB; 16]).as_ref(), format!("a/b/ab/{}", "ab".repeat(16)));
    }
}
