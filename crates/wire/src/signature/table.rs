//! Signatures of requests to the Table service: they cover the date, the path and `comp`, and with Shared Key also the
//! method, `Content-MD5` and `Content-Type`.
//!
//! Nothing is allocated for a request that is signed as it was sent; other spellings of its path are tried only if that
//! fails.

use super::{
    AccountKey, Credentials, HASHED_BYTES_MAX, Mac, Scheme, SignatureError, check_date, check_signer, other_spellings,
};
use crate::request_head::RequestHead;
use larimar_model::Timestamp;

pub(super) fn verify(
    credentials: &Credentials<'_>,
    account: &str,
    keys: &[AccountKey],
    head: &RequestHead<'_>,
    now: Timestamp,
) -> Result<(), SignatureError> {
    check_date(date(head).ok_or(SignatureError::DateMissing)?, now)?;
    let claimed = check_signer(credentials, account)?;
    let mut hashed = 0;
    let others = ["content-md5", "content-type"].map(|name| head.raw_header(name).map_or(0, str::len));
    let others: usize = others.iter().sum();
    let mut fits = |path: &str| {
        hashed += (path.len() + others) * keys.len();
        hashed <= HASHED_BYTES_MAX
            && keys.iter().any(|key| mac(key, credentials.scheme, account, head, path).equals(&claimed))
    };
    if fits(head.path) || other_spellings(head.path, account).iter().any(|path| fits(path)) {
        return Ok(());
    }
    Err(SignatureError::Mismatch)
}

pub(super) fn string_to_sign(scheme: Scheme, account: &str, head: &RequestHead<'_>) -> String {
    let mut text = String::new();
    pieces(scheme, account, head, head.path, |piece| text.push_str(piece));
    text
}

pub(super) fn mac(key: &AccountKey, scheme: Scheme, account: &str, head: &RequestHead<'_>, path: &str) -> Mac {
    key.mac(|mac| pieces(scheme, account, head, path, |piece| mac(piece.as_bytes())))
}

/// Passes the pieces of the text to sign to `piece`, with `path` in place of the request's own.
fn pieces(scheme: Scheme, account: &str, head: &RequestHead<'_>, path: &str, mut piece: impl FnMut(&str)) {
    if scheme == Scheme::SharedKey {
        let header = |name| head.raw_header(name).unwrap_or("");
        for line in [head.method, header("content-md5"), header("content-type")] {
            piece(line);
            piece("\n");
        }
    }
    for part in [date(head).unwrap_or(""), "\n/", account, path] {
        piece(part);
    }
    if let Some(comp) = head.raw_parameter("comp") {
        piece("?comp=");
        piece(comp);
    }
}

/// `x-ms-date`, which takes precedence over `Date`.
fn date<'a>(head: &RequestHead<'a>) -> Option<&'a str> {
    head.raw_header("x-ms-date").filter(|date| !date.is_empty()).or_else(|| head.raw_header("date"))
}
