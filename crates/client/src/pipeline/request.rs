//! A call as a request to one endpoint: its headers, its address, and the proof of who sends it.

use super::{Call, Pipeline};
use crate::credential::{Credential, TokenSource};
use crate::error::Error;
use crate::service::{Endpoint, Service};
use crate::{Guid, Timestamp};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use larimar_wire::request_head::RequestHead;
use larimar_wire::signature::{self, Scheme};
use std::cell::RefCell;
use std::time::Duration;

impl Pipeline {
    /// The request to this endpoint, signed. A token for it is waited for no longer than `token_wait_max`.
    pub(super) async fn request(
        &self,
        call: &Call,
        endpoint: &Endpoint,
        id: Guid,
        token_wait_max: Duration,
    ) -> Result<Request<Bytes>, Error> {
        let mut headers = HeaderMap::with_capacity(call.headers.len() + ADDED_HEADERS_MAX);
        for (name, value) in &call.headers {
            // The last one of a name counts.
            headers.insert(name, value.clone());
        }
        headers.insert(X_MS_DATE, date(Timestamp::now()));
        headers.insert(X_MS_VERSION, HeaderValue::from_static(self.api_version()));
        headers.insert(CLIENT_REQUEST_ID, ascii(&id.to_string()));
        headers.insert(USER_AGENT, self.user_agent.clone());
        if call.has_body() {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(call.body.len()));
        }
        if self.service == Service::Table {
            headers.insert(DATA_SERVICE_VERSION, HeaderValue::from_static("3.0"));
            headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json;odata=minimalmetadata"));
        }
        let mut target = [endpoint.path(), call.path.as_str(), "?", call.query.as_str()].concat();
        let path = &target[..target.len() - call.query.len() - 1];
        match &self.credential {
            Credential::SharedKey(key) => {
                let signed = self.signature(call, path, &headers, key.account(), key.key())?;
                let unknown = || Error::Credential("expected the name of an account in printable ASCII".into());
                headers.insert(AUTHORIZATION, printable(&signed).ok_or_else(unknown)?);
            }
            Credential::Sas(sas) => {
                if !call.query.is_empty() {
                    target.push('&');
                }
                target.push_str(&sas.0);
            }
            Credential::Token(source) => {
                headers.insert(AUTHORIZATION, bearer(source, endpoint, token_wait_max).await?);
            }
            Credential::Anonymous => {}
        }
        headers.insert(HOST, endpoint.host().clone());
        if target.ends_with('?') {
            target.pop();
        }
        let mut request = Request::new(call.body.clone());
        *request.method_mut() = call.method.clone();
        let bytes = target.len();
        *request.uri_mut() = endpoint.address(target).map_err(|_| no_address(call, bytes))?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The version of the protocol that is spoken.
    const fn api_version(&self) -> &'static str {
        match (self.service, &self.credential) {
            // The first in which the Table service takes tokens.
            (Service::Table, Credential::Token(_)) => "2020-12-06",
            (Service::Table, _) => "2019-02-02",
            (Service::Queue | Service::Blob, _) => "2024-11-04",
        }
    }

    fn signature(
        &self,
        call: &Call,
        path: &str,
        headers: &HeaderMap,
        account: &str,
        key: &signature::AccountKey,
    ) -> Result<String, Error> {
        let pairs = headers.iter().map(|(name, value)| (name.as_str(), value));
        let head = RequestHead::new(call.method.as_str(), path, &call.query, pairs);
        signature::sign(self.service, Scheme::SharedKey, account, key, &head)
            .map_err(|error| Error::Invalid(format!("the request cannot be signed: {error}")))
    }
}

/// The header's value that a token makes.
async fn bearer(source: &TokenSource, endpoint: &Endpoint, wait_max: Duration) -> Result<HeaderValue, Error> {
    // A token is a secret that an open line would give away.
    if !endpoint.is_encrypted() {
        return Err(Error::Credential("a token is sent only to an address with https".into()));
    }
    let scope = if endpoint.is_cosmos() { COSMOS_SCOPE } else { STORAGE_SCOPE };
    let token = tokio::time::timeout(wait_max, source.token(scope)).await;
    let token = token.map_err(|_| Error::Credential("the provider gave no token in time".into()))?;
    let token = token.map_err(Error::Credential)?;
    let unfit = || Error::Credential("expected a token of printable ASCII".into());
    let mut value = printable(&format!("Bearer {token}")).ok_or_else(unfit)?;
    value.set_sensitive(true);
    Ok(value)
}

/// A header's value of printable ASCII. Others have no spelling that all services and signatures agree on.
pub(crate) fn printable(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok().filter(|value| value.to_str().is_ok())
}

/// The error for a request that cannot be addressed: filters may be long, and signatures of the caller's malformed.
fn no_address(call: &Call, bytes: usize) -> Error {
    let Call { name, path, .. } = call;
    let path: String = path.chars().take(128).collect();
    Error::Invalid(format!("{name} of '{path}' has an address of {bytes} bytes, which is too long or malformed"))
}

/// A time as the header `x-ms-date` has it. It is the same for a whole second, so each thread keeps the last.
fn date(time: Timestamp) -> HeaderValue {
    thread_local!(static LAST: RefCell<(u64, HeaderValue)> = const { RefCell::new((0, HeaderValue::from_static(""))) });
    let second = time.ticks() / TICKS_PER_SECOND;
    LAST.with_borrow_mut(|(last, date)| {
        if *last != second {
            (*last, *date) = (second, ascii(&signature::http_date(time.inner())));
        }
        date.clone()
    })
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("dates and ids are printable ASCII")
}

const TICKS_PER_SECOND: u64 = 10_000_000;
/// Headers that every request gets at most, besides its own.
const ADDED_HEADERS_MAX: usize = 9;
const X_MS_DATE: HeaderName = HeaderName::from_static("x-ms-date");
const X_MS_VERSION: HeaderName = HeaderName::from_static("x-ms-version");
const CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
const DATA_SERVICE_VERSION: HeaderName = HeaderName::from_static("dataserviceversion");
const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";
const COSMOS_SCOPE: &str = "https://cosmos.azure.com/.default";
