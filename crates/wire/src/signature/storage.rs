//! Signatures of requests to the Blob and Queue services: they cover all `x-ms-*` headers, the content and
//! condition headers, and every parameter of the query.
//!
//! The text is built once for a request that is signed as it was sent. If that does not fit, other orders
//! of the headers and other spellings of path and query are tried, a bounded number of them.

use super::{
    AccountKey, Credentials, HASHED_BYTES_MAX, Scheme, SignatureError, check_date, check_signer, other_spellings,
};
use crate::request_head::RequestHead;
use crate::uri;
use larimar_model::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The headers that have a line of their own in the text to sign, in its order.
const LINES: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// The version since which a length of nothing is signed as an empty line.
const EMPTY_LENGTH: &str = "2015-02-21";
/// The version since which headers without a value are signed.
const EMPTY_HEADERS: &str = "2016-05-31";

const NEWEST: &str = "9999-12-31";

/// The signed headers of a request, in the order of the text to sign.
struct SignedHeaders<'h, 'a> {
    head: &'h RequestHead<'a>,
    /// The values of [`LINES`].
    lines: [Option<&'a str>; LINES.len()],
    /// All `x-ms-*` headers, their names in lower case.
    x_ms: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'h, 'a> SignedHeaders<'h, 'a> {
    /// Collects them. A signed header that is sent twice is refused, as either could be the signed one.
    fn of(head: &'h RequestHead<'a>) -> Result<Self, SignatureError> {
        let mut signed = Self { head, lines: [None; LINES.len()], x_ms: Vec::new() };
        for (name, value) in head.headers() {
            let value = value.trim();
            if let Some(at) = LINES.iter().position(|line| name.eq_ignore_ascii_case(line)) {
                if signed.lines[at].replace(value).is_some() {
                    return Err(SignatureError::HeaderTwice);
                }
            } else if name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("x-ms-")) {
                signed.x_ms.push((lower_case(name), value));
            }
        }
        signed.x_ms.sort_unstable();
        if signed.x_ms.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(SignatureError::HeaderTwice);
        }
        Ok(signed)
    }

    /// The text to sign with these spellings of headers, path and parameters.
    fn text(&self, scheme: Scheme, account: &str, headers: &str, path: &str, parameters: &str) -> String {
        let mut text = String::with_capacity(256 + headers.len() + path.len() + parameters.len());
        text.push_str(self.head.method);
        text.push('\n');
        let has_x_ms_date = self.head.header("x-ms-date").is_some();
        for (name, value) in LINES.iter().zip(self.lines) {
            let signed = scheme == Scheme::SharedKey || matches!(*name, "content-md5" | "content-type" | "date");
            if !signed {
                continue;
            }
            text.push_str(match (*name, value.unwrap_or("")) {
                ("date", _) if has_x_ms_date => "",
                ("content-length", "0") if version(self.head) >= EMPTY_LENGTH => "",
                (_, value) => value,
            });
            text.push('\n');
        }
        for part in [headers, "/", account, path, parameters] {
            text.push_str(part);
        }
        text
    }

    /// The lines of all `x-ms-*` headers.
    fn x_ms_lines(&self, order: HeaderOrder) -> String {
        let has_empty = version(self.head) >= EMPTY_HEADERS;
        let mut headers: Vec<(&str, Cow<'_, str>)> = self
            .x_ms
            .iter()
            .filter(|(_, value)| !value.is_empty() || has_empty)
            .map(|(name, value)| (&**name, Cow::Borrowed(*value)))
            .collect();
        match order {
            HeaderOrder::Bytes => {}
            HeaderOrder::WithoutHyphens => {
                headers
                    .sort_by_cached_key(|(name, _)| (name.replace('-', "").replace('_', "\u{1}"), (*name).to_owned()));
            }
            HeaderOrder::Unfolded => {
                for (_, value) in &mut headers {
                    *value = Cow::Owned(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
                }
            }
        }
        let mut text = String::new();
        for (name, value) in headers {
            for part in [name, ":", &value, "\n"] {
                text.push_str(part);
            }
        }
        text
    }
}

/// The parameters as the scheme signs them.
fn signed_parameters(query: &str, scheme: Scheme, plus: Plus) -> Result<String, SignatureError> {
    let decode = |raw| match plus {
        Plus::Space => uri::decode_query(raw),
        Plus::Plus => uri::decode_path(raw),
    };
    let mut text = String::new();
    if scheme == Scheme::SharedKeyLite {
        let mut pairs = uri::query_pairs(query).filter_map(Result::ok);
        if let Some(pair) = pairs.find(|pair| pair.name == "comp") {
            text.push_str("?comp=");
            text.push_str(pair.raw_value);
        }
        return Ok(text);
    }
    let mut parameters: BTreeMap<String, Vec<Cow<'_, str>>> = BTreeMap::new();
    for pair in uri::query_pairs(query) {
        let pair = pair.map_err(|_| SignatureError::Mismatch)?;
        let value = decode(pair.raw_value).map_err(|_| SignatureError::Mismatch)?;
        parameters.entry(pair.name.to_lowercase()).or_default().push(value);
    }
    for (name, mut values) in parameters {
        values.sort_unstable();
        for part in ["\n", &name, ":", &values.join(",")] {
            text.push_str(part);
        }
    }
    Ok(text)
}

/// `x-ms-date`, which takes precedence over `Date`.
fn date<'a>(head: &RequestHead<'a>) -> Option<&'a str> {
    head.header("x-ms-date").or_else(|| head.header("date"))
}

/// Only the parts of a batch come without a version: theirs is that of the batch, which no old client sends.
fn version<'a>(head: &RequestHead<'a>) -> &'a str {
    head.raw_header("x-ms-version").map_or(NEWEST, str::trim)
}

/// The ways that clients order and write the `x-ms-*` headers: by bytes, as the service's collation does
/// (which passes over hyphens), or with white space folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderOrder {
    Bytes,
    WithoutHyphens,
    Unfolded,
}

/// What a plus in a query is to the client that signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plus {
    Space,
    Plus,
}

pub(super) fn verify(
    credentials: &Credentials<'_>,
    account: &str,
    keys: &[AccountKey],
    head: &RequestHead<'_>,
    now: Timestamp,
) -> Result<(), SignatureError> {
    let signed = SignedHeaders::of(head)?;
    check_date(date(head).ok_or(SignatureError::DateMissing)?, now)?;
    let claimed = check_signer(credentials, account)?;
    let mut hashed = 0;
    let mut fits = |headers: &str, path: &str, parameters: &str| {
        let text = signed.text(credentials.scheme, account, headers, path, parameters);
        hashed += text.len() * keys.len();
        hashed <= HASHED_BYTES_MAX && keys.iter().any(|key| key.mac_of(&text).equals(&claimed))
    };
    let parameters = |plus| signed_parameters(head.query, credentials.scheme, plus);
    let (as_sent, spaces) = (signed.x_ms_lines(HeaderOrder::Bytes), parameters(Plus::Space)?);
    if fits(&as_sent, head.path, &spaces) {
        return Ok(());
    }
    let mut all_headers = vec![as_sent];
    for order in [HeaderOrder::WithoutHyphens, HeaderOrder::Unfolded] {
        push_new(&mut all_headers, signed.x_ms_lines(order));
    }
    let mut all_parameters = vec![spaces];
    push_new(&mut all_parameters, parameters(Plus::Plus)?);
    let mut paths = other_spellings(head.path, account);
    paths.push(head.path.to_owned());
    let fits_somehow = all_headers.iter().any(|headers| {
        all_parameters.iter().any(|parameters| paths.iter().any(|path| fits(headers, path, parameters)))
    });
    if fits_somehow { Ok(()) } else { Err(SignatureError::Mismatch) }
}

pub(super) fn string_to_sign(scheme: Scheme, account: &str, head: &RequestHead<'_>) -> Result<String, SignatureError> {
    let signed = SignedHeaders::of(head)?;
    let parameters = signed_parameters(head.query, scheme, Plus::Space)?;
    let headers = signed.x_ms_lines(HeaderOrder::Bytes);
    Ok(signed.text(scheme, account, &headers, head.path, &parameters))
}

fn lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

fn push_new(all: &mut Vec<String>, text: String) {
    if !all.contains(&text) {
        all.push(text);
    }
}

#[cfg(test)]
mod tests;
