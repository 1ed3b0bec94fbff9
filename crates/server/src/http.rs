//! The pipeline of a request, the same for all services: address, caller, operation, its checks, its handler, the answer.
//!
//! What differs between the services is in their [`Protocol`]: `table/mod.rs`, `queue/mod.rs`, `blob/mod.rs`. What the
//! pipeline must know about an operation is declared in `wire` ([`Operation::facts`]).

mod authorize;

pub(crate) use authorize::{Authorized, authorize};

use crate::address::Address;
use crate::analytics::{Analytics, Exchange};
use crate::auth::{self, Policies};
use crate::body::{Pace, RequestBody};
use crate::call::{Call, Lookups};
use crate::cors;
use crate::error;
use crate::fault_log;
use crate::handler::Peer;
use crate::head::Head;
use crate::in_flight::{Held, Share, UNCOUNTED_BYTES};
use crate::reply::{Reply, ResponseBody};
use crate::spelling::{self, Spellings};
use crate::storage::Storage;
use crate::strict::{is_known_version, is_version, unknown_version};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, SERVER};
use hyper::{Request, Response, StatusCode};
use larimar_engine::Engine;
use larimar_model::Timestamp;
use larimar_wire::analytics::Authentication;
use larimar_wire::cors::CorsRule;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::operation::{BodyLimit, Endpoint, Facts, Format, Kind, Operation, Rate, UNKNOWN_OPERATION};
use larimar_wire::sas::Service;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument;

/// What differs between the services.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// The storage engine.
    type Engine: Engine;
    /// A request to the service, parsed except for its body.
    type Request: Operation + Send + Sync;
    /// Which service this is.
    const SERVICE: Service;
    /// The `Server` header.
    const SERVER: &'static str;
    /// The name of the preflight operation that browsers begin with.
    const PREFLIGHT: &'static str;

    fn storage(&self) -> &Storage<Self::Engine>;

    /// Parses a request except for its body.
    fn parse(head: &Head<'_>, address: &Address<'_>) -> Result<Self::Request, ErrorReply>;

    /// Runs an operation that has passed every check of the pipeline. Its body has been read, unless its facts say that
    /// the handler streams it.
    fn run(
        &self,
        call: &Call<'_, Self::Engine>,
        request: Authorized<'_, Self::Request>,
        body: &mut RequestBody,
    ) -> impl Future<Output = error::Result<Reply>> + Send;

    /// The response for an error, in a format that the client reads.
    fn error_reply(
        error: &ErrorReply,
        head: &Head<'_>,
        trace: &RequestTrace,
        request_id: &str,
        now: Timestamp,
    ) -> Reply;

    /// The value of `Preference-Applied`.
    fn preference(_request: &Self::Request) -> Option<&'static str> {
        None
    }

    /// Adds headers that every response of the service has.
    fn decorate(_reply: &mut Reply, _trace: &RequestTrace) {}
}

/// What is known about a request by the time it is answered.
#[derive(Debug)]
pub(crate) struct RequestTrace {
    /// The operation's name.
    operation: &'static str,
    /// How storage analytics classify it. `None`: by the method.
    kind: Option<Kind>,
    /// How the caller was authenticated. Credentials that do not hold count as none.
    authentication: Authentication,
    /// Whether the operation speaks XML where others of its service speak JSON.
    pub(crate) is_xml: bool,
    /// The preference of the client that is honoured.
    pub(crate) preference: Option<&'static str>,
    cors: Arc<[CorsRule]>,
    /// The account's part of the budget for bytes in flight.
    share: Option<Share>,
    /// The meter that observes the request, and where in the path the account ends.
    meter: Option<(usize, usize)>,
}

impl Default for RequestTrace {
    fn default() -> Self {
        Self {
            operation: UNKNOWN_OPERATION,
            kind: None,
            authentication: Authentication::Anonymous,
            is_xml: false,
            preference: None,
            cors: Arc::default(),
            share: None,
            meter: None,
        }
    }
}

impl RequestTrace {
    const fn note(&mut self, facts: &Facts<'_>) {
        self.operation = facts.name;
        self.kind = facts.kind;
    }
}

/// Answers one request.
pub(crate) async fn serve<P: Protocol>(protocol: &P, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
    let storage = protocol.storage();
    let started = Instant::now();
    let now = storage.clock.now();
    let request_id = storage.ids.next().to_string();
    let (mut parts, body) = request.into_parts();
    if let Some(spellings) = Spellings::of(&parts) {
        parts.extensions.insert(spellings);
    }
    let head = Head::new(&parts, peer, now);
    let span = tracing::debug_span!("request", id = %request_id, method = head.method, path = head.path);
    let mut trace = RequestTrace::default();
    let pace = Pace { silence_max: storage.settings.body_timeout, rate_min: storage.settings.client_rate_min };
    let mut body = RequestBody::new(body, head.content_length, pace);
    let result = counted_answer(protocol, &head, &mut body, &request_id, &mut trace).instrument(span.clone()).await;
    let result = result.map_err(|error| auth::refusal_of_strangers(error, P::SERVICE, &head));
    let is_reusable = body.finish().await;
    let _entered = span.entered();
    let code = result.as_ref().err().map(|error| error.code);
    let mut reply = result.unwrap_or_else(|error| {
        let reply = P::error_reply(&error, &head, &trace, &request_id, now);
        let reply = match error.code {
            ErrorCode::NoAuthenticationInformation => reply.with("www-authenticate", "SharedKey"),
            _ => reply,
        };
        reply.with("x-ms-error-code", error.code.as_str())
    });
    P::decorate(&mut reply, &trace);
    // Refusals for lack of room are counted; a line for each would make a flood of them worse. What else every request
    // may meet is logged once a minute; the client has the number of its own request.
    if reply.status >= 500 && code != Some(ErrorCode::ServerBusy) {
        log_unserved(&head, &trace, &request_id, reply.status);
    }
    tracing::debug!(operation = trace.operation, status = reply.status, elapsed = ?started.elapsed(), "answered");
    storage.metrics.request(trace.operation, reply.status, started.elapsed());
    let reply = if is_reusable { reply } else { reply.with("connection", "close") };
    let mut response = finish(reply, P::SERVER, &head, &request_id, &trace);
    if let Some((meter, account_end)) = trace.meter {
        let exchange = Exchange {
            head: &head,
            operation: trace.operation,
            kind: trace.kind.unwrap_or_else(|| Kind::of_method(head.method)),
            authentication: trace.authentication,
            path: &head.path[account_end..],
            request_id: &request_id,
            code,
            received_bytes: body.received_bytes(),
            started,
            waited: body.waited(),
        };
        exchange.end(&storage.analytics, meter, &mut response);
    }
    response
}

async fn answer<P: Protocol>(
    protocol: &P,
    head: &Head<'_>,
    body: &mut RequestBody,
    request_id: &str,
    trace: &mut RequestTrace,
    room: &Mutex<Option<Held>>,
) -> error::Result<Reply> {
    let storage = protocol.storage();
    let host = head.checked_host()?;
    let is_known = |label: &str| storage.is_known_host(label);
    let address = Address::parse(host, head.path, P::SERVICE, &storage.settings.host_suffixes, is_known);
    let served = storage.served(&address).ok_or_else(|| no_account(head, host, &address))?;
    let account = &served.account;
    // As it is configured: the host may have it in other case.
    let address = Address { account: &account.name, ..address };
    trace.meter = Some((Analytics::meter_number(served.place, P::SERVICE), head.path.len() - address.path.len()));
    let rules = cors::rules(storage, P::SERVICE, &account.name, head).await?;
    if head.method == "OPTIONS" {
        trace.operation = P::PREFLIGHT;
        return cors::preflight(&rules, head);
    }
    trace.cors = rules;
    let share = storage.in_flight.share(served.place);
    body.count(share.clone());
    trace.share = Some(share.clone());
    let admitted = match check_head(head, storage.strict.is_some()) {
        Ok(()) => auth::authenticate(storage, P::SERVICE, account, head, address.path, Policies::Recent).await,
        Err(error) => Err(error),
    };
    let caller = admitted.inspect_err(|_| {
        // The request is not run, but storage analytics log what was tried.
        if let Ok(request) = P::parse(head, &address) {
            trace.note(&request.facts());
        }
    })?;
    trace.authentication = caller.authentication();
    let base = head.base(host, address.prefix);
    let (service, address, base, lookups) = (P::SERVICE, &address, base.as_str(), &Lookups::default());
    let (share, now) = (&share, head.now);
    let call = Call { storage, service, head, address, base, caller, lookups, share, room, now, request_id };
    let request = P::parse(head, address)?;
    let facts = request.facts();
    trace.note(&facts);
    trace.is_xml = facts.format == Format::Xml;
    trace.preference = P::preference(&request);
    match perform(protocol, &call, &request, body).await {
        Err(_) if call.caller.is_doubtful() && body.is_repeatable() => {
            let caller = auth::authenticate(storage, P::SERVICE, account, head, address.path, Policies::Now).await?;
            let lookups = &Lookups::default();
            Box::pin(perform(protocol, &Call { caller, lookups, ..call }, &request, body)).await
        }
        done => done,
    }
}

/// Runs the operation of a request after its checks: endpoint, permission, rate, body.
async fn perform<P: Protocol>(
    protocol: &P,
    call: &Call<'_, P::Engine>,
    request: &P::Request,
    body: &mut RequestBody,
) -> error::Result<Reply> {
    let (body_limit, is_read_only, rate) = {
        let facts = request.facts();
        check_endpoint(facts.endpoint, call.address.is_secondary)?;
        (facts.body, facts.is_read_only(), facts.rate)
    };
    let authorized = authorize(&call.caller, request)?;
    match rate {
        Rate::Account => call.throttle(None, 1)?,
        Rate::Partition => {}
    }
    match body_limit {
        BodyLimit::None | BodyLimit::Streamed => {}
        BodyLimit::Bytes(bytes_max) => drop(body.read(bytes_max).await?),
        BodyLimit::Configured => drop(body.read(call.storage.settings.body_bytes_max).await?),
    }
    let done = match protocol.run(call, authorized, body).await {
        Err(error) if call.lookups.is_outdated(error.code(P::SERVICE)) && body.is_repeatable() => {
            call.lookups.repeat();
            Box::pin(protocol.run(call, authorized, body)).await
        }
        done => done,
    };
    // A batch decides for itself whether it was a read.
    done.map(|reply| Reply { is_read: is_read_only || reply.is_read, ..reply })
}

/// Refuses changes on the secondary, and stats anywhere else.
fn check_endpoint(endpoint: Endpoint, is_secondary: bool) -> Result<(), ErrorReply> {
    match (endpoint, is_secondary) {
        (Endpoint::Secondary, false) => Err(ErrorReply::new(ErrorCode::InvalidQueryParameterValue)),
        (Endpoint::Primary, true) => Err(ErrorReply::new(ErrorCode::InsufficientAccountPermissions)),
        (Endpoint::Primary, false) | (Endpoint::Secondary, true) | (Endpoint::Both, _) => Ok(()),
    }
}

/// The error for an address without an account that is served here, with the form of one that has it.
fn no_account(head: &Head<'_>, host: &str, address: &Address<'_>) -> ErrorReply {
    let cut = |text: &str| text.chars().take(SHOWN_CHARS_MAX).collect::<String>();
    let found = match address.account {
        "" => "The address names no account.".to_owned(),
        account => format!("There is no account '{}' on this server.", cut(account)),
    };
    let path = cut(head.path.trim_start_matches('/'));
    let separator = if path.is_empty() { "" } else { "/" };
    let form = format!("{}{separator}{path}", head.base(host, Some("{account}")));
    let message = match address.prefix {
        Some(_) => format!("{found} It comes first in the path: {form}"),
        None => found,
    };
    ErrorReply::with_message(ErrorCode::ResourceNotFound, message)
}

/// Answers a request, and counts the answer as bytes in flight until it is sent. A read that finds no room for its answer
/// waits for it and is then run again: meanwhile it holds neither the answer nor bytes of the budget.
async fn counted_answer<P: Protocol>(
    protocol: &P,
    head: &Head<'_>,
    body: &mut RequestBody,
    request_id: &str,
    trace: &mut RequestTrace,
) -> Result<Reply, ErrorReply> {
    let room = Mutex::new(None);
    let mut end = None;
    loop {
        let reply = answer(protocol, head, body, request_id, trace, &room).await;
        let reply = reply.map_err(|error| error.into_reply(P::SERVICE))?;
        let Some(share) = trace.share.clone().filter(|_| reply.stream.is_none()) else { return Ok(reply) };
        let bytes = match counted(reply, room.lock().take(), &share, body) {
            Ok(reply) => return Ok(reply),
            // A request that holds bytes must not wait for more.
            Err(_) if body.is_counted() => return Err(share.refused()),
            Err(bytes) => bytes,
        };
        // An answer that grows from run to run does not wait longer for that.
        let end = *end.get_or_insert_with(|| Instant::now() + share.wait_max());
        let held = share.take_within(bytes, end.saturating_duration_since(Instant::now())).await?;
        *room.lock() = Some(held);
    }
}

/// Counts the body of a response, with the room that was taken for it or with what its request held. The response to a
/// change is sent in any case. A read for which there is no room is dropped; the error is the number of bytes it needs.
fn counted(mut reply: Reply, room: Option<Held>, share: &Share, body: &mut RequestBody) -> Result<Reply, u64> {
    if reply.body.len() as u64 <= UNCOUNTED_BYTES {
        reply.held = None;
        return Ok(reply);
    }
    if reply.body.capacity() > reply.body.len() / 4 * 5 {
        reply.body.shrink_to_fit();
    }
    let bytes = reply.body.capacity() as u64;
    let held = room.or_else(|| reply.held.take());
    let held = if reply.is_read { held } else { held.or_else(|| body.take_held()) };
    let (held, has_room) = match held {
        Some(mut held) => {
            let has_room = held.try_resize(bytes);
            (Some(held), has_room)
        }
        None => {
            let held = share.try_take(bytes);
            let has_room = held.is_some();
            (held, has_room)
        }
    };
    if !has_room && reply.is_read {
        return Err(bytes);
    }
    reply.held = held;
    Ok(reply)
}

/// Refuses headers that cannot be read or repeat, and versions that do not exist; also in the part of a batch.
pub(crate) fn check_head(head: &Head<'_>, is_strict: bool) -> Result<(), ErrorReply> {
    if let Some(name) = head.unreadable() {
        return Err(match name.starts_with("x-ms-meta-") {
            true => ErrorReply::new(ErrorCode::InvalidMetadata),
            false => ErrorReply::of_header(ErrorCode::InvalidHeaderValue, name, ""),
        });
    }
    match head.repeated() {
        None => {}
        Some("authorization") => return Err(ErrorReply::new(ErrorCode::InvalidAuthenticationInfo)),
        Some(name) => return Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, name, "")),
    }
    match head.version_header {
        Some(version) if !is_version(version) => {
            Err(ErrorReply::of_header(ErrorCode::InvalidHeaderValue, "x-ms-version", version))
        }
        Some(version) if is_strict && !is_known_version(version) => Err(unknown_version(version)),
        _ => Ok(()),
    }
}

/// Logs a request that was not served, unless such a one was logged within the last minute.
fn log_unserved(head: &Head<'_>, trace: &RequestTrace, request_id: &str, status: u16) {
    let operation = match trace.operation {
        UNKNOWN_OPERATION => Cow::Owned(head.outline()),
        known => Cow::Borrowed(known),
    };
    let method = head.method;
    if let Some(left_out) = fault_log::admit(&format!("{method} {operation} {status}")) {
        tracing::warn!(id = %request_id, method, %operation, status, left_out, "could not serve");
    }
}

/// The response for an error of the Queue and Blob services.
pub(crate) fn storage_error_reply(error: &ErrorReply, request_id: &str, now: Timestamp) -> Reply {
    let mut body = Vec::with_capacity(512);
    error.write_storage_xml(&mut body, request_id, now);
    Reply { reason: Some(error.reason()), ..Reply::xml(error.status, body) }
}

/// Adds the headers that every answer has.
fn finish(
    reply: Reply,
    server: &'static str,
    head: &Head<'_>,
    request_id: &str,
    trace: &RequestTrace,
) -> Response<ResponseBody> {
    let mut headers = reply.headers;
    headers.insert(SERVER, HeaderValue::from_static(server));
    for (name, value) in [
        (HeaderName::from_static("x-ms-request-id"), Some(request_id)),
        (HeaderName::from_static("x-ms-version"), head.version_header),
        (HeaderName::from_static("x-ms-client-request-id"), head.client_request_id),
    ] {
        if let Some(Ok(value)) = value.map(HeaderValue::from_str) {
            headers.insert(name, value);
        }
    }
    cors::add_headers(&mut headers, &trace.cors, head);
    if head.method == "HEAD" && reply.status >= 300 {
        // The type would be that of a document which HEAD does not send; clients in C++ try to read it.
        headers.remove(CONTENT_TYPE);
    }
    let body = match reply.stream {
        _ if head.method == "HEAD" => ResponseBody::whole(Vec::new()),
        Some(stream) => ResponseBody::streamed(stream),
        None => ResponseBody::held(reply.body, reply.held),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    if !reply.spelled.is_empty() {
        response.extensions_mut().extend(spelling::extension(&reply.spelled));
    }
    if let Some(Ok(reason)) = reply.reason.map(ReasonPhrase::try_from) {
        response.extensions_mut().insert(reason);
    }
    response
}

/// Characters of a path that are repeated in an error.
const SHOWN_CHARS_MAX: usize = 100;
