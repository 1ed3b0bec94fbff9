//! The admin endpoint of a local server: where its token is, and requests to it.
//!
//! A server with a data directory keeps its token in that directory. Other servers, in memory or over a database, write it
//! to a file per port in the runtime directory of their user, and remove the file when they end. Both are readable by
//! their owner alone. The binary writes these files; commands find them here.

use bytes::Bytes;
use larimar_client::{HttpTransport, Transport as _, TransportError};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The name of the token's file in the data directory.
pub const TOKEN_FILE: &str = "admin-token";

/// The directory for the tokens of servers without a data directory. `variable` reads the environment. None on systems
/// without owners of files; tokens have to be configured there.
#[must_use]
pub fn runtime_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    #[cfg(unix)]
    {
        let user = rustix::process::geteuid().as_raw();
        let shared = || named("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")).join(format!("larimar-{user}"));
        Some(named("XDG_RUNTIME_DIR").map_or_else(shared, |directory| directory.join("larimar")))
    }
    #[cfg(not(unix))]
    {
        let _ = named;
        None
    }
}

/// The file with the token of the server whose admin endpoint has this port.
#[must_use]
pub fn runtime_file(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!("admin-token-{port}"))
}

/// Whether only this user can read and change what is in a directory.
///
/// # Errors
/// A directory that cannot be looked at.
pub fn is_private(directory: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        // A link may have been made by another user.
        let found = directory.symlink_metadata()?;
        Ok(found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0)
    }
    #[cfg(not(unix))]
    {
        directory.symlink_metadata().map(|found| found.is_dir())
    }
}

/// Finds the token of the local server at this port: that of its runtime file, else that of the data directory.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn find_token(runtime: Option<&Path>, data_dir: &Path, port: u16) -> io::Result<Option<String>> {
    if let Some(directory) = runtime.filter(|directory| is_private(directory).unwrap_or(false))
        && let Some(token) = read_token(&runtime_file(directory, port))?
    {
        return Ok(Some(token));
    }
    read_token(&data_dir.join(TOKEN_FILE))
}

/// Reads a file with a token; none if there is no such file. A newline at its end does not count.
///
/// # Errors
/// A file that is there and cannot be read, or is too long for a token.
pub fn read_token(file: &Path) -> io::Result<Option<String>> {
    let opened = match std::fs::File::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    opened.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > TOKEN_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "expected a token, found more than 1 KiB"));
    }
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// The admin endpoint of a server, for the holder of its token.
pub struct AdminEndpoint {
    /// Such as `http://127.0.0.1:10003`, without a slash at the end.
    url: String,
    token: String,
    transport: HttpTransport,
}

/// The answer to an admin request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The body: JSON, or a line that says why the request was refused.
    pub text: String,
}

impl AdminEndpoint {
    /// The endpoint at this address, such as `http://127.0.0.1:10003`.
    #[must_use]
    pub fn new(url: impl Into<String>, token: impl Into<String>) -> Self {
        Self { url: url.into(), token: token.into(), transport: HttpTransport::new() }
    }

    /// The same for a server that shows the first certificate of this PEM file, which may be self-signed and for any name.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn with_certificate(self, file: &Path) -> io::Result<Self> {
        Ok(Self { transport: HttpTransport::trusting_server(std::fs::read(file)?), ..self })
    }

    /// Sends a POST request to a path with its query, such as `/reset?account=NAME`. The server answers when it is done.
    ///
    /// # Errors
    /// No answer, or an address or token that cannot be sent.
    pub async fn post(&self, path: &str) -> Result<AdminAnswer, TransportError> {
        self.send(http::Method::POST, path).await
    }

    /// Sends a GET request to a path.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub async fn get(&self, path: &str) -> Result<AdminAnswer, TransportError> {
        self.send(http::Method::GET, path).await
    }

    /// Sends a DELETE request to a path.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub async fn delete(&self, path: &str) -> Result<AdminAnswer, TransportError> {
        self.send(http::Method::DELETE, path).await
    }

    async fn send(&self, method: http::Method, path: &str) -> Result<AdminAnswer, TransportError> {
        let address: http::Uri = format!("{}{path}", self.url).parse().map_err(TransportError::not_sent)?;
        let host = address.authority().map_or_else(String::new, |authority| authority.as_str().to_owned());
        let request = http::Request::builder()
            .method(method)
            .uri(address)
            .header("host", host)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-length", "0")
            .body(Bytes::new())
            .map_err(|_| TransportError::not_sent("expected a token of printable ASCII"))?;
        let answer = self.transport.send(request).await?;
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        Ok(AdminAnswer { status: answer.status().as_u16(), text })
    }
}

/// The token is a secret, also in a log line.
impl fmt::Debug for AdminEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminEndpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

const TOKEN_BYTES_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_token_of_the_port_comes_before_that_of_the_data_directory() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a directory");
        let (runtime, data) = (folder.path().join("runtime"), folder.path().join("data"));
        let set_mode =
            |mode| std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(mode)).expect("a mode");
        for directory in [&runtime, &data] {
            std::fs::create_dir(directory).expect("a directory");
        }
        set_mode(0o700);
        let find = || find_token(Some(&runtime), &data, 10003).expect("readable files");
        assert_eq!(find(), None);
        std::fs::write(data.join(TOKEN_FILE), "of the data\n").expect("a file");
        assert_eq!(find().as_deref(), Some("of the data"));
        std::fs::write(runtime_file(&runtime, 10003), "of the port").expect("a file");
        std::fs::write(runtime_file(&runtime, 10004), "of another").expect("a file");
        assert_eq!(find().as_deref(), Some("of the port"));
        // Another user may have written what is in there.
        set_mode(0o777);
        assert_eq!(find().as_deref(), Some("of the data"));
        std::fs::write(data.join(TOKEN_FILE), "x".repeat(2000)).expect("a file");
        assert!(find_token(None, &data, 10003).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn the_runtime_directory_is_that_of_the_session_or_one_of_the_user() {
        let directory = |name: &'static str, value: &'static str| {
            runtime_directory(move |asked| (asked == name).then(|| value.into())).expect("a directory")
        };
        assert_eq!(directory("XDG_RUNTIME_DIR", "/run/user/1"), Path::new("/run/user/1/larimar"));
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(directory("XDG_RUNTIME_DIR", ""), PathBuf::from(format!("/tmp/larimar-{user}")));
        assert_eq!(directory("TMPDIR", "/var/tmp"), PathBuf::from(format!("/var/tmp/larimar-{user}")));
    }
}
