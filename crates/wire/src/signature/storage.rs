//! Signatures of requests to the Blob and Queue services: they cover all `x-ms-*` headers, the content and
//! condition headers, and every parameter of the query.
//!
//! The text is built once for a request that is signed as it was sent. If that does not fit, other orders
//! of the headers and other spellings of path and query are tried, a bounded number of them.

use super::{
    AccountKey, Credentials, HASHED_BYTES_MAX, Scheme, SignatureError, check_date, check_signer, other_spellings,
};
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

/// The parts of a request to the Blob or Queue service that a signature covers, as they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageRequest<'a> {
    method: &'a str,
    path: &'a str,
    query: &'a str,
    lines: [Option<&'a str>; LINES.len()],
    x_ms: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> StorageRequest<'a> {
    /// Gathers what is signed. `path` is that of the request line, still escaped, `query` comes without its
    /// question mark, names of `headers` are in any case.
    ///
    /// # Errors
    /// A signed header that comes twice, which would leave open which one was signed.
    pub fn new(
        method: &'a str,
        path: &'a str,
        query: &'a str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, SignatureError> {
        let mut request = Self { method, path, query, lines: [None; LINES.len()], x_ms: Vec::new() };
        for (name, value) in headers {
            let value = value.trim();
            if let Some(at) = LINES.iter().position(|line| name.eq_ignore_ascii_case(line)) {
                if request.lines[at].replace(value).is_some() {
                    return Err(SignatureError::HeaderTwice);
                }
            } else if name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("x-ms-")) {
                request.x_ms.push((lower_case(name), value));
            }
        }
        request.x_ms.sort_unstable();
        if request.x_ms.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(SignatureError::HeaderTwice);
        }
        Ok(request)
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        let at = self.x_ms.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(self.x_ms[at].1)
    }

    fn line(&self, name: &str) -> &'a str {
        LINES.iter().position(|line| *line == name).and_then(|at| self.lines[at]).unwrap_or("")
    }

    /// `x-ms-date`, which wins over `Date`.
    fn date(&self) -> Option<&'a str> {
        self.header("x-ms-date")
            .filter(|date| !date.is_empty())
            .or_else(|| Some(self.line("date")))
            .filter(|date| !date.is_empty())
    }

    /// Only the parts of a batch come without a version: theirs is that of the batch, which no old client sends.
    fn version(&self) -> &'a str {
        self.header("x-ms-version").unwrap_or(NEWEST)
    }

    /// The text to sign with these spellings of headers, path and parameters.
    fn text(&self, scheme: Scheme, account: &str, headers: &str, path: &str, parameters: &str) -> String {
        let mut text = String::with_capacity(256 + headers.len() + path.len() + parameters.len());
        text.push_str(self.method);
        text.push('\n');
        let has_x_ms_date = self.header("x-ms-date").is_some_and(|date| !date.is_empty());
        for (name, value) in LINES.iter().zip(self.lines) {
            let signed = scheme == Scheme::SharedKey || matches!(*name, "content-md5" | "content-type" | "date");
            if !signed {
                continue;
            }
            text.push_str(match (*name, value.unwrap_or("")) {
                ("date", _) if has_x_ms_date => "",
                ("content-length", "0") if self.version() >= EMPTY_LENGTH => "",
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
    fn headers(&self, order: HeaderOrder) -> String {
        let mut headers: Vec<(&str, Cow<'_, str>)> = self
            .x_ms
            .iter()
            .filter(|(_, value)| !value.is_empty() || self.version() >= EMPTY_HEADERS)
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

    /// The parameters as the scheme signs them.
    fn parameters(&self, scheme: Scheme, plus: Plus) -> Result<String, SignatureError> {
        let decode = |raw: &'a str| match plus {
            Plus::Space => uri::decode_query(raw),
            Plus::Plus => uri::decode_path(raw),
        };
        let mut text = String::new();
        if scheme == Scheme::SharedKeyLite {
            let mut pairs = uri::query_pairs(self.query).filter_map(Result::ok);
            if let Some(pair) = pairs.find(|pair| pair.name == "comp") {
                text.push_str("?comp=");
                text.push_str(pair.raw_value);
            }
            return Ok(text);
        }
        let mut parameters: BTreeMap<String, Vec<Cow<'a, str>>> = BTreeMap::new();
        for pair in uri::query_pairs(self.query) {
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

/// Checks that one of the account's keys signed this request to the Blob or Queue service, and lately.
///
/// # Errors
/// The first check that fails, date before signature.
pub fn verify_storage(
    credentials: &Credentials<'_>,
    account: &str,
    keys: &[AccountKey],
    request: &StorageRequest<'_>,
    now: Timestamp,
) -> Result<(), SignatureError> {
    check_date(request.date().ok_or(SignatureError::DateMissing)?, now)?;
    let claimed = check_signer(credentials, account)?;
    let mut hashed = 0;
    let mut fits = |headers: &str, path: &str, parameters: &str| {
        let text = request.text(credentials.scheme, account, headers, path, parameters);
        hashed += text.len() * keys.len();
        hashed <= HASHED_BYTES_MAX && keys.iter().any(|key| key.mac_of(&text).equals(&claimed))
    };
    let headers = request.headers(HeaderOrder::Bytes);
    let parameters = request.parameters(credentials.scheme, Plus::Space)?;
    if fits(&headers, request.path, &parameters) {
        return Ok(());
    }
    let mut all_headers = vec![headers];
    for order in [HeaderOrder::WithoutHyphens, HeaderOrder::Unfolded] {
        push_new(&mut all_headers, request.headers(order));
    }
    let mut all_parameters = vec![parameters];
    push_new(&mut all_parameters, request.parameters(credentials.scheme, Plus::Plus)?);
    let mut paths = other_spellings(request.path, account);
    paths.push(request.path.to_owned());
    let fits_somehow = all_headers.iter().any(|headers| {
        all_parameters.iter().any(|parameters| paths.iter().any(|path| fits(headers, path, parameters)))
    });
    if fits_somehow { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// The value of the `Authorization` header for this request to the Blob or Queue service.
///
/// # Errors
/// A query that cannot be decoded.
pub fn sign_storage(
    scheme: Scheme,
    account: &str,
    key: &AccountKey,
    request: &StorageRequest<'_>,
) -> Result<String, SignatureError> {
    let signature = key.mac_of(&storage_string_to_sign(scheme, account, request)?).to_base64();
    Ok(format!("{} {account}:{signature}", scheme.as_str()))
}

/// The text whose MAC is the signature of a request to the Blob or Queue service.
///
/// # Errors
/// A query that cannot be decoded.
pub fn storage_string_to_sign(
    scheme: Scheme,
    account: &str,
    request: &StorageRequest<'_>,
) -> Result<String, SignatureError> {
    let parameters = request.parameters(scheme, Plus::Space)?;
    Ok(request.text(scheme, account, &request.headers(HeaderOrder::Bytes), request.path, &parameters))
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
