//! The headers that a blob is served with.

use super::properties::text;
use crate::Result;
use crate::pipeline::Call;
use http::{HeaderMap, HeaderName};

/// The headers that the service keeps with a blob and sends with its content.
///
/// ```
/// use larimar_client::{ContentHeaders, UploadOptions};
/// let mut headers = ContentHeaders::default();
/// headers.cache_control = Some("max-age=3600".to_owned());
/// let options = UploadOptions::default().content_headers(headers);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentHeaders {
    /// `Content-Type`, such as `text/plain`.
    pub content_type: Option<String>,
    /// `Content-Encoding`, such as `gzip`.
    pub content_encoding: Option<String>,
    /// `Content-Language`, such as `en`.
    pub content_language: Option<String>,
    /// `Content-Disposition`, such as `attachment`.
    pub content_disposition: Option<String>,
    /// `Cache-Control`, such as `no-cache`.
    pub cache_control: Option<String>,
    /// `Content-MD5`: the MD5 of the whole content in base64.
    pub content_md5: Option<String>,
}

impl ContentHeaders {
    /// Reads the headers of a response by their names in it.
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let own = |name: &str| text(headers, name).filter(|value| !value.is_empty()).map(str::to_owned);
        Self {
            content_type: own("content-type"),
            content_encoding: own("content-encoding"),
            content_language: own("content-language"),
            content_disposition: own("content-disposition"),
            cache_control: own("cache-control"),
            // A part of a blob comes with the MD5 of the whole under this name.
            content_md5: own("x-ms-blob-content-md5").or_else(|| own("content-md5")),
        }
    }

    /// Reads the properties of a blob in a list.
    pub(super) fn read_list(mut property: impl FnMut(&str) -> Option<String>) -> Self {
        let mut own = |name: &str| property(name).filter(|value| !value.is_empty());
        Self {
            content_type: own("Content-Type"),
            content_encoding: own("Content-Encoding"),
            content_language: own("Content-Language"),
            content_disposition: own("Content-Disposition"),
            cache_control: own("Cache-Control"),
            content_md5: own("Content-MD5"),
        }
    }

    pub(super) fn put_on(&self, mut call: Call) -> Result<Call> {
        for (name, value) in [
            (TYPE, &self.content_type),
            (ENCODING, &self.content_encoding),
            (LANGUAGE, &self.content_language),
            (DISPOSITION, &self.content_disposition),
            (CACHE_CONTROL, &self.cache_control),
            (MD5, &self.content_md5),
        ] {
            if let Some(value) = value {
                call = call.header_text(name, value)?;
            }
        }
        Ok(call)
    }
}

const TYPE: HeaderName = HeaderName::from_static("x-ms-blob-content-type");
const ENCODING: HeaderName = HeaderName::from_static("x-ms-blob-content-encoding");
const LANGUAGE: HeaderName = HeaderName::from_static("x-ms-blob-content-language");
const DISPOSITION: HeaderName = HeaderName::from_static("x-ms-blob-content-disposition");
const CACHE_CONTROL: HeaderName = HeaderName::from_static("x-ms-blob-cache-control");
const MD5: HeaderName = HeaderName::from_static("x-ms-blob-content-md5");
