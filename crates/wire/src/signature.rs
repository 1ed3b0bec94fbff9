//! Shared Key and Shared Key Lite: the signature of a request by one of the account's keys.
//!
//! The server parses the `Authorization` header here and has [`verify`] check the request; a client makes the header with
//! [`sign`]. What is signed depends on the service: `signature/table.rs`, and `signature/storage.rs` for queues and blobs.
//! The current time is an argument.

mod key;
mod storage;
mod table;

pub use key::{AccountKey, AccountKeyError, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, Mac};

use crate::error_body::{AUTHENTICATION_DETAIL, ErrorReply};
use crate::error_code::ErrorCode;
use crate::request_head::RequestHead;
use crate::uri;
use larimar_model::{Service, Timestamp};
use std::time::{Duration, UNIX_EPOCH};

/// How much a request's date may differ from the server's clock, either way (service: authorize with
/// Shared Key).
pub const SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// The two ways to sign a request with an account key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Verb, content headers, date and resource.
    SharedKey,
    /// Date and resource; to the Blob and Queue services also verb, content and `x-ms-*` headers.
    SharedKeyLite,
}

impl Scheme {
    /// The scheme's name in the header.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SharedKey => "SharedKey",
            Self::SharedKeyLite => "SharedKeyLite",
        }
    }
}

/// A parsed `Authorization` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorization<'a> {
    /// A signature by an account key.
    Signed(Credentials<'a>),
    /// A bearer token.
    Bearer(&'a str),
}

/// What a Shared Key header claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// How it was signed.
    pub scheme: Scheme,
    /// The account whose key signed it.
    pub account: &'a str,
    /// The signature in base64, not yet decoded.
    pub signature: &'a str,
}

/// An `Authorization` header of another form: 400 `InvalidAuthenticationInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 'SharedKey account:signature', 'SharedKeyLite account:signature' or 'Bearer token'")]
pub struct AuthorizationError;

impl AuthorizationError {
    /// The code to answer with.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        ErrorCode::InvalidAuthenticationInfo
    }
}

impl From<AuthorizationError> for ErrorReply {
    fn from(error: AuthorizationError) -> Self {
        Self::new(error.code())
    }
}

impl<'a> Authorization<'a> {
    /// Reads the header's value.
    ///
    /// # Errors
    /// Anything but the three known forms.
    pub fn parse(header: &'a str) -> Result<Self, AuthorizationError> {
        let (scheme, rest) = header.trim().split_once(' ').ok_or(AuthorizationError)?;
        let rest = rest.trim_start();
        let scheme = match scheme {
            _ if scheme.eq_ignore_ascii_case("SharedKey") => Scheme::SharedKey,
            _ if scheme.eq_ignore_ascii_case("SharedKeyLite") => Scheme::SharedKeyLite,
            _ if scheme.eq_ignore_ascii_case("Bearer") && !rest.is_empty() => return Ok(Self::Bearer(rest)),
            _ => return Err(AuthorizationError),
        };
        let (account, signature) = rest.split_once(':').ok_or(AuthorizationError)?;
        if account.is_empty() || signature.is_empty() {
            return Err(AuthorizationError);
        }
        Ok(Self::Signed(Credentials { scheme, account, signature }))
    }
}

/// Why a signed request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Neither `x-ms-date` nor `Date`.
    #[error("expected a date header")]
    DateMissing,
    /// The date header cannot be read.
    #[error("expected a date such as 'Fri, 06 May 2022 00:31:05 GMT'")]
    DateInvalid,
    /// The date is more than 15 minutes off.
    #[error("expected a date within 15 minutes of the server's clock")]
    DateSkewed,
    /// The header names another account than the request addresses.
    #[error("expected a signature by a key of the addressed account")]
    Account,
    /// The signature fits none of the keys.
    #[error("expected a signature that one of the account's keys makes")]
    Mismatch,
    /// A signed header is there twice.
    #[error("expected each signed header once")]
    HeaderTwice,
}

impl SignatureError {
    /// The code to answer with.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::DateMissing | Self::DateInvalid | Self::DateSkewed | Self::Account | Self::Mismatch => {
                ErrorCode::AuthenticationFailed
            }
            Self::HeaderTwice => ErrorCode::InvalidHeaderValue,
        }
    }
}

impl From<SignatureError> for ErrorReply {
    fn from(error: SignatureError) -> Self {
        Self::new(error.code()).with_detail(AUTHENTICATION_DETAIL, &error.to_string())
    }
}

/// Checks that one of the account's keys signed this request, and lately.
///
/// # Errors
/// The first check that fails, date before signature.
pub fn verify(
    service: Service,
    credentials: &Credentials<'_>,
    account: &str,
    keys: &[AccountKey],
    head: &RequestHead<'_>,
    now: Timestamp,
) -> Result<(), SignatureError> {
    match service {
        Service::Table => table::verify(credentials, account, keys, head, now),
        Service::Queue | Service::Blob => storage::verify(credentials, account, keys, head, now),
    }
}

/// The value of the `Authorization` header for this request.
///
/// # Errors
/// A query that cannot be decoded, or a signed header that is sent twice.
pub fn sign(
    service: Service,
    scheme: Scheme,
    account: &str,
    key: &AccountKey,
    head: &RequestHead<'_>,
) -> Result<String, SignatureError> {
    let mac = match service {
        Service::Table => table::mac(key, scheme, account, head, head.path),
        Service::Queue | Service::Blob => key.mac_of(&storage::string_to_sign(scheme, account, head)?),
    };
    Ok([scheme.as_str(), " ", account, ":", &mac.to_base64()].concat())
}

/// The text whose MAC is the signature.
///
/// # Errors
/// A query that cannot be decoded, or a signed header that is sent twice.
pub fn string_to_sign(
    service: Service,
    scheme: Scheme,
    account: &str,
    head: &RequestHead<'_>,
) -> Result<String, SignatureError> {
    match service {
        Service::Table => Ok(table::string_to_sign(scheme, account, head)),
        Service::Queue | Service::Blob => storage::string_to_sign(scheme, account, head),
    }
}

/// The HTTP form of a point in time, for `x-ms-date`.
#[must_use]
pub fn http_date(time: Timestamp) -> String {
    if time == Timestamp::EDM_MIN {
        // The service's time of what was never changed; the library has no dates before 1970.
        return "Mon, 01 Jan 1601 00:00:00 GMT".to_owned();
    }
    // HTTP has no dates after the year 9999.
    httpdate::fmt_http_date(UNIX_EPOCH + time.min(Timestamp::MAX).to_unix())
}

/// The claimed signature, if it claims to be by a key of this account.
fn check_signer(credentials: &Credentials<'_>, account: &str) -> Result<Mac, SignatureError> {
    if credentials.account != account {
        return Err(SignatureError::Account);
    }
    Mac::from_base64(credentials.signature).ok_or(SignatureError::Mismatch)
}

fn check_date(date: &str, now: Timestamp) -> Result<(), SignatureError> {
    let date = httpdate::parse_http_date(date.trim()).map_err(|_| SignatureError::DateInvalid)?;
    let date = date.duration_since(UNIX_EPOCH).map_err(|_| SignatureError::DateSkewed)?;
    if date.abs_diff(now.to_unix()) > SKEW_MAX { Err(SignatureError::DateSkewed) } else { Ok(()) }
}

/// Bytes of texts that are hashed to find out how a request was signed. Requests of usual length stay far below, whatever
/// the spelling; the head of a longer one is only tried in as many spellings as this allows.
const HASHED_BYTES_MAX: usize = 1 << 20;

/// Other spellings of the same path that clients may have signed: HTTP stacks and proxies between them
/// and us decode or escape some characters, above all the quotes around keys. Requests to the secondary
/// are signed with the primary's name by some clients and as sent by others.
fn other_spellings(path: &str, account: &str) -> Vec<String> {
    let mut spellings: Vec<String> = Vec::new();
    let mut add = |spelling: Option<String>| {
        if let Some(spelling) = spelling.filter(|spelling| spelling != path)
            && !spellings.contains(&spelling)
        {
            spellings.push(spelling);
        }
    };
    let primary = primary_path(path, account);
    for path in std::iter::once(path).chain(primary.as_deref()) {
        add(Some(path.to_owned()));
        add(uri::respell_path(path, uri::is_path_char));
        // Some stacks leave an escaped plus alone, since it would read as a space elsewhere.
        add(uri::respell_path(path, |byte| byte != b'+' && uri::is_path_char(byte)));
        add(uri::respell_path(path, uri::is_unreserved));
        add(Some(path.replace("%27", "'")));
        add(Some(path.replace('\'', "%27")));
    }
    spellings
}

/// `/account-secondary/...` with the primary's name.
fn primary_path(path: &str, account: &str) -> Option<String> {
    let rest = path.strip_prefix('/')?.strip_prefix(account)?.strip_prefix("-secondary")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("/{account}{rest}"))
}

#[cfg(test)]
mod tests;
