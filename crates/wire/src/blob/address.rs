//! The path of a request to the Blob service: the service, a container or a blob.

use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::request_head::{RequestHead, name_error};
use crate::sas::Resource;
use crate::uri::decode_path;
use larimar_model::blob::{BlobName, BlobNameError, ContainerName};

/// What a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobAddress {
    /// The service.
    Service,
    /// A container.
    Container(ContainerName),
    /// A blob, or one of its snapshots.
    Blob(ContainerName, BlobName),
}

impl BlobAddress {
    /// Parses the raw path of a request below the account. A single name is a container if `restype` says so, otherwise a blob in the root
    /// container.
    ///
    /// # Errors
    /// Names that containers and blobs cannot have.
    pub fn of(head: &RequestHead<'_>, path: &str) -> Result<Self, ErrorReply> {
        let is_container = matches!(head.parameter("restype").as_deref(), Some("container" | "account"));
        Self::parse(path, is_container)
    }

    /// Parses a raw path below the account; `is_container`: a single name is a container.
    ///
    /// # Errors
    /// Names that containers and blobs cannot have.
    pub fn parse(path: &str, is_container: bool) -> Result<Self, ErrorReply> {
        let path = path.trim_start_matches('/');
        if path.is_empty() {
            return Ok(Self::Service);
        }
        let (container, blob) = path.split_once('/').unwrap_or((path, ""));
        match (container, blob) {
            (name, "") if is_container => Ok(Self::Container(container_name(name)?)),
            // Only `restype` addresses a container: a trailing slash must not decide what is deleted.
            (_, "") if path.ends_with('/') => Err(ErrorReply::new(ErrorCode::InvalidUri)),
            (name, "") => Self::blob(ContainerName::root(), name),
            (container, blob) => Self::blob(container_name(container)?, blob),
        }
    }

    fn blob(container: ContainerName, raw: &str) -> Result<Self, ErrorReply> {
        let name = blob_name(raw)?;
        // Names in the root container have no slash: the part before it would be the name of a container.
        match container == ContainerName::root() && name.as_str().contains('/') {
            true => Err(ErrorReply::new(ErrorCode::InvalidUri)),
            false => Ok(Self::Blob(container, name)),
        }
    }

    /// The resource that a signature in the request is for; `snapshot` is the parameter of that name.
    #[must_use]
    pub fn resource<'a>(&'a self, snapshot: Option<&'a str>) -> Resource<'a> {
        match self {
            Self::Service => Resource::Blob { container: None, blob: None, snapshot: None },
            Self::Container(container) => {
                Resource::Blob { container: Some(container.as_str()), blob: None, snapshot: None }
            }
            Self::Blob(container, blob) => {
                Resource::Blob { container: Some(container.as_str()), blob: Some(blob.as_str()), snapshot }
            }
        }
    }
}

fn container_name(raw: &str) -> Result<ContainerName, ErrorReply> {
    decode(raw)?.parse().map_err(name_error)
}

fn blob_name(raw: &str) -> Result<BlobName, ErrorReply> {
    // The service treats a backslash as a slash (tests of Microsoft's clients).
    decode(raw)?.replace('\\', "/").parse().map_err(|error| match error {
        BlobNameError::Length => {
            let message = "The specified resource name length is not within the permissible limits.";
            ErrorReply::with_message(ErrorCode::OutOfRangeInput, message)
        }
        BlobNameError::Segments => ErrorReply::new(ErrorCode::InvalidResourceName),
    })
}

fn decode(raw: &str) -> Result<String, ErrorReply> {
    decode_path(raw).map(std::borrow::Cow::into_owned).map_err(|_| ErrorReply::new(ErrorCode::InvalidUri))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn container(name: &str) -> ContainerName {
        name.parse().expect("a name")
    }

    fn blob(container_name: &str, name: &str) -> BlobAddress {
        BlobAddress::Blob(container(container_name), name.parse().expect("a name"))
    }

    #[test]
    fn x2_paths_address_the_service_containers_and_blobs() {
        for (path, is_container, expected) in [
            ("", false, BlobAddress::Service),
            ("/", true, BlobAddress::Service),
            ("/abc", true, BlobAddress::Container(container("abc"))),
            ("/abc/", true, BlobAddress::Container(container("abc"))),
            ("/$logs", true, BlobAddress::Container(container("$logs"))),
            ("/%24root", true, BlobAddress::Container(container("$root"))),
            ("/abc", false, blob("$root", "abc")),
            ("/a%20b", false, blob("$root", "a b")),
            ("/abc/x", false, blob("abc", "x")),
            ("//abc/x", true, blob("abc", "x")),
            ("/abc/x/y%2Fz//", false, blob("abc", "x/y/z//")),
            ("/abc/a+b%2B%E6%97%A5", false, blob("abc", "a+b+日")),
            ("/abc/a%5Cb/c", false, blob("abc", "a/b/c")),
            ("/$root/a", false, blob("$root", "a")),
        ] {
            assert_eq!(BlobAddress::parse(path, is_container), Ok(expected), "{path}");
        }
        for (path, is_container, code) in [
            ("/Abc/x", false, ErrorCode::InvalidResourceName),
            ("/ab", true, ErrorCode::OutOfRangeInput),
            ("/abc/", false, ErrorCode::InvalidUri),
            ("/abc/%zz", false, ErrorCode::InvalidUri),
            ("/$root/a/b", false, ErrorCode::InvalidUri),
            ("/%24root/a%5Cb", false, ErrorCode::InvalidUri),
            ("/a%5Cb", false, ErrorCode::InvalidUri),
            ("/abc/%ff", false, ErrorCode::InvalidUri),
            (&format!("/abc/{}", "b".repeat(1025)), false, ErrorCode::OutOfRangeInput),
            (&format!("/abc/{}", "b/".repeat(254)), false, ErrorCode::InvalidResourceName),
        ] {
            assert_eq!(BlobAddress::parse(path, is_container).map_err(|error| error.code), Err(code), "{path}");
        }
    }

    #[test]
    fn tokens_are_for_what_is_addressed() {
        let address = blob("abc", "x");
        let expected = Resource::Blob { container: Some("abc"), blob: Some("x"), snapshot: Some("s") };
        assert_eq!(address.resource(Some("s")), expected);
    }

    proptest! {
        #[test]
        fn any_name_is_addressed_by_its_escaped_path(name in "[^\u{0}\\\\]{1,40}") {
            let mut path = "/abc/".to_owned();
            crate::uri::encode(&mut path, &name, crate::uri::is_unreserved);
            prop_assert_eq!(BlobAddress::parse(&path, false), Ok(blob("abc", &name)));
        }
    }
}
