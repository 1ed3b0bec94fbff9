//! The way of a request through the server: address, caller, operation, body, handler, answer.

use crate::address::Address;
use crate::auth::Credentials;
use crate::body::RequestBody;
use crate::cors;
use crate::handler::{Handler, Peer};
use crate::head::Head;
use crate::reply::Reply;
use crate::service::{Call, TableService};
use crate::settings::Settings;
use crate::strict::{is_known_version, is_version};
use crate::table;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, HeaderName, HeaderValue, SERVER, X_CONTENT_TYPE_OPTIONS};
use hyper::{Request, Response, StatusCode};
use larimar_engine::Engine;
use larimar_model::Timestamp;
use larimar_wire::cors::CorsRule;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::table::{TableOperation, TableRequest};
use std::time::Instant;
use tracing::Instrument;

impl<E: Engine> Handler for TableService<E> {
    async fn handle(&self, request: Request<Incoming>, peer: Peer) -> Response<Full<Bytes>> {
        let started = Instant::now();
        let now = self.clock.now();
        let request_id = self.ids.next().to_string();
        let (parts, body) = request.into_parts();
        let head = Head::new(&parts, peer, now);
        let span = tracing::debug_span!("request", id = %request_id, method = head.method, path = head.path);
        let mut seen = Seen::default();
        let Settings { body_bytes_max, body_timeout, .. } = self.settings;
        let mut body = RequestBody::new(body, head.content_length, body_bytes_max, body_timeout);
        let result = self.answer(&head, &mut body, &request_id, &mut seen).instrument(span.clone()).await;
        // A client that still sends would miss an answer on a connection that closes.
        let is_reusable = body.finish().await;
        let _entered = span.entered();
        let reply = result.unwrap_or_else(|error| error_reply(&error, &head, &seen, &request_id, now));
        if reply.status >= 500 {
            tracing::warn!(id = %request_id, operation = seen.operation, status = reply.status, "could not serve");
        }
        tracing::debug!(operation = seen.operation, status = reply.status, elapsed = ?started.elapsed(), "answered");
        self.metrics.request(seen.operation, reply.status, started.elapsed());
        let reply = if is_reusable { reply } else { reply.with("connection", "close") };
        finish(reply, &head, &request_id, &seen)
    }
}

/// What is known of a request by the time it is answered, or fails.
#[derive(Debug)]
struct Seen {
    operation: &'static str,
    is_xml: bool,
    preference: Option<&'static str>,
    cors: Vec<CorsRule>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { operation: "Unknown", is_xml: false, preference: None, cors: Vec::new() }
    }
}

impl<E: Engine> TableService<E> {
    async fn answer(
        &self,
        head: &Head<'_>,
        body: &mut RequestBody,
        request_id: &str,
        seen: &mut Seen,
    ) -> Result<Reply, ErrorReply> {
        let host = head.host.ok_or_else(|| ErrorReply::new(ErrorCode::HostInformationNotPresent))?;
        let address =
            Address::parse(host, head.path, &self.settings.host_suffixes, |name| self.account(name).is_some());
        let account = self.account(address.account).ok_or_else(|| ErrorReply::new(ErrorCode::ResourceNotFound))?;
        let rules = cors::rules(&*self.engine, &account.name, head).await?;
        if head.method == "OPTIONS" {
            seen.operation = "PreflightTableRequest";
            return cors::preflight(&rules, head);
        }
        seen.cors = rules;
        self.check_version(head)?;
        let credentials = Credentials {
            authorization: head.authorization,
            query: head.query,
            signed: head.signed(),
            version: head.version(),
            peer: head.peer.address.ip(),
            is_tls: head.peer.is_tls,
            now: head.now,
        };
        let caller = self.authenticate(account, &credentials).await?;
        let request = TableRequest::parse(&account.name, head.method, address.path, head.query, &head.table_headers())?;
        seen.learn(&request);
        check_endpoint(&request.operation, address.is_secondary)?;
        let body = body.read().await?;
        let base = head.base(host, address.prefix);
        let call = Call { service: self, address: &address, base: &base, caller, now: head.now, request_id };
        // The lookup of a shared engine may be a moment old: its table was dropped and made anew by another server, or
        // will be found gone by a second one.
        let again = E::IS_SHARED.then(|| request.clone());
        let reply = match (table::run(&call, request, head, &body).await, again) {
            (Err(error), Some(request)) if error.code == ErrorCode::TableNotFound => {
                Box::pin(table::run(&call, request, head, &body)).await?
            }
            (result, _) => result?,
        };
        Ok(seen.decorate(reply))
    }

    fn check_version(&self, head: &Head<'_>) -> Result<(), ErrorReply> {
        match head.version_header {
            Some(version) if !is_version(version) || self.strict.is_some() && !is_known_version(version) => {
                Err(ErrorReply::new(ErrorCode::InvalidHeaderValue))
            }
            _ => Ok(()),
        }
    }
}

impl Seen {
    fn learn(&mut self, request: &TableRequest) {
        self.operation = request.operation.name();
        self.is_xml = is_xml(&request.operation);
        if matches!(request.operation, TableOperation::InsertEntity(_) | TableOperation::CreateTable) {
            self.preference = request.prefer.map(larimar_wire::table::Prefer::name);
        }
    }

    /// Adds the header that a success and a failure share.
    fn decorate(&self, reply: Reply) -> Reply {
        match self.preference {
            Some(preference) => reply.with("preference-applied", preference),
            None => reply,
        }
    }
}

const fn is_xml(operation: &TableOperation) -> bool {
    matches!(
        operation,
        TableOperation::GetTableAcl(_)
            | TableOperation::SetTableAcl(_)
            | TableOperation::GetServiceProperties
            | TableOperation::SetServiceProperties
            | TableOperation::GetServiceStats
    )
}

/// The secondary is there to be read, and the only one that tells its stats.
fn check_endpoint(operation: &TableOperation, is_secondary: bool) -> Result<(), ErrorReply> {
    let is_read = matches!(
        operation,
        TableOperation::QueryTables(_)
            | TableOperation::GetTable(_)
            | TableOperation::GetTableAcl(_)
            | TableOperation::QueryEntities(..)
            | TableOperation::GetEntity(..)
            | TableOperation::GetServiceProperties
            | TableOperation::GetServiceStats
    );
    match operation {
        TableOperation::GetServiceStats if !is_secondary => Err(ErrorReply::new(ErrorCode::InvalidQueryParameterValue)),
        _ if is_secondary && !is_read => Err(ErrorReply::new(ErrorCode::InsufficientAccountPermissions)),
        _ => Ok(()),
    }
}

/// The answer that tells an error, in the form the client can read.
fn error_reply(error: &ErrorReply, head: &Head<'_>, seen: &Seen, request_id: &str, now: Timestamp) -> Reply {
    let mut body = Vec::with_capacity(512);
    let wants_json = head.accept.is_some_and(|accept| accept.contains("json"));
    let is_plain = head.accept.is_none_or(|accept| accept.contains("*/*"));
    let reply = if wants_json || is_plain && !seen.is_xml {
        error.write_json(&mut body, request_id, now);
        Reply::json(error.status, larimar_wire::table::MetadataLevel::Minimal, body)
    } else {
        error.write_xml(&mut body, request_id, now);
        Reply::xml(error.status, body)
    };
    let reply = match error.code {
        ErrorCode::NoAuthenticationInformation => reply.with("www-authenticate", "SharedKey"),
        _ => reply,
    };
    seen.decorate(reply.with("x-ms-error-code", error.code.as_str()))
}

/// Adds the headers that every answer has.
fn finish(reply: Reply, head: &Head<'_>, request_id: &str, seen: &Seen) -> Response<Full<Bytes>> {
    let mut headers = reply.headers;
    headers.insert(SERVER, HeaderValue::from_static("Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"));
    // Recorded: what speaks XML has neither.
    if !seen.is_xml {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    for (name, value) in [
        (HeaderName::from_static("x-ms-request-id"), Some(request_id)),
        (HeaderName::from_static("x-ms-version"), head.version_header),
        (HeaderName::from_static("x-ms-client-request-id"), head.client_request_id),
    ] {
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    cors::add_headers(&mut headers, &seen.cors, head);
    let body = if head.method == "HEAD" { Bytes::new() } else { Bytes::from(reply.body) };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    response
}
