//! The pipeline of a request, the same for all services: address, caller, operation, its checks, its handler, the answer.
//!
//! What differs between the services is in their [`Protocol`]: `table/mod.rs`, `queue/mod.rs`, `blob/mod.rs`. What the
//! pipeline must know about an operation is declared in `wire` ([`Operation::facts`]).

mod answer;
mod authorize;
mod underway;

pub(crate) use answer::storage_error_reply;
pub(crate) use authorize::{Authorized, Declared, authorize};

use crate::address::{Address, base_url};
use crate::analytics::{Analytics, Exchange};
use crate::auth::{self, Authenticator, Caller, Policies};
use crate::body::{Pace, RequestBody};
use crate::call::{Call, Lookups, Runs};
use crate::cors;
use crate::error;
use crate::fault_log;
use crate::handler::{Entrance, Peer};
use crate::head;
use crate::in_flight::Share;
use crate::reply::{Reply, ResponseBody};
use crate::spelling::Spellings;
use crate::storage::Storage;
use crate::strict::{is_known_version, unknown_version};
use hyper::body::Incoming;
use hyper::{Request, Response};
use larimar_engine::Engine;
use larimar_model::Timestamp;
use larimar_wire::analytics::Authentication;
use larimar_wire::cors::CorsRule;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::operation::{BodyLimit, Endpoint, Facts, Format, Kind, Operation, Rate, UNKNOWN_OPERATION};
use larimar_wire::request_head::RequestHead;
use larimar_wire::sas::Service;
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument;
use underway::Underway;

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
    fn parse(head: &RequestHead<'_>, address: &Address<'_>) -> Result<Self::Request, ErrorReply>;

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
        head: &RequestHead<'_>,
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

/// A request as it arrived, without its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) head: &'a RequestHead<'a>,
    pub(crate) peer: Peer,
    pub(crate) now: Timestamp,
    /// The number that the response has in `x-ms-request-id`.
    pub(crate) request_id: &'a str,
}

/// Answers one request.
pub(crate) async fn serve<P: Protocol>(protocol: &P, request: Request<Incoming>, peer: Peer) -> Response<ResponseBody> {
    let storage = protocol.storage();
    let started = Instant::now();
    let now = storage.clock.now();
    let request_id = storage.ids.next().to_string();
    let (parts, body) = request.into_parts();
    let spellings = Spellings::of(&parts);
    let head = &head::collect(&parts, spellings.as_ref());
    let span = tracing::debug_span!("request", id = %request_id, method = head.method, path = head.path);
    let pace = Pace { silence_max: storage.settings.body_timeout, rate_min: storage.settings.client_rate_min };
    let body = RequestBody::new(body, head.number_header("content-length").unwrap_or(None), pace);
    let arrival = Arrival { head, peer, now, request_id: &request_id };
    let (trace, analytics, log) = (RequestTrace::default(), &*storage.analytics, storage.access_log.as_ref());
    let live = storage.live.is_watched().then_some(&storage.live);
    let mut underway = Underway { arrival, service: P::SERVICE, started, body, trace, analytics, log, live };
    let Underway { body, trace, .. } = &mut underway;
    let result = counted_answer(protocol, arrival, body, trace).instrument(span.clone()).await;
    let result = result.map_err(|error| auth::refusal_of_strangers(error, P::SERVICE, head));
    let is_reusable = body.finish().await;
    let _entered = span.entered();
    let code = result.as_ref().err().map(|error| error.code);
    let mut reply = result.unwrap_or_else(|error| {
        let reply = P::error_reply(&error, head, trace, &request_id, now);
        let reply = match error.code {
            ErrorCode::NoAuthenticationInformation => reply.with("www-authenticate", "SharedKey"),
            _ => reply,
        };
        reply.with("x-ms-error-code", error.code.as_str())
    });
    P::decorate(&mut reply, trace);
    // Refusals for lack of room are counted; a line for each would make a flood of them worse. What else every request
    // may meet is logged once a minute; the client has the number of its own request.
    if reply.status >= 500 && code != Some(ErrorCode::ServerBusy) {
        log_unserved(head, trace, &request_id, reply.status);
    }
    tracing::debug!(operation = trace.operation, status = reply.status, elapsed = ?started.elapsed(), "answered");
    storage.metrics.request(trace.operation, reply.status, started.elapsed());
    let reply = if is_reusable { reply } else { reply.with("connection", "close") };
    let mut response = answer::finish(reply, P::SERVER, head, &request_id, trace);
    let place = trace.meter.map(|(meter, _)| Analytics::place(meter));
    let (status, received, sent) = (response.status().as_u16(), body.received_bytes(), response.body().bytes());
    storage.metrics.traffic(P::SERVICE, place, status, received, sent);
    if let Some((meter, account_end)) = trace.meter {
        let exchange = Exchange {
            arrival,
            operation: trace.operation,
            kind: trace.kind.unwrap_or_else(|| Kind::of_method(head.method)),
            authentication: trace.authentication,
            path: &head.path[account_end..],
            code,
            received_bytes: body.received_bytes(),
            started,
            waited: body.waited(),
        };
        exchange.end(&storage.analytics, meter, &mut response);
    }
    underway.log(code, &mut response);
    response
}

async fn answer<P: Protocol>(
    protocol: &P,
    arrival: Arrival<'_>,
    body: &mut RequestBody,
    trace: &mut RequestTrace,
    runs: &Runs,
) -> error::Result<Reply> {
    let Arrival { head, peer, now, request_id } = arrival;
    let (storage, service) = (protocol.storage(), P::SERVICE);
    let host = head.checked_host()?;
    let is_known = |label: &str| storage.is_known_host(label);
    let address = Address::parse(host, head.path, service, &storage.settings.host_suffixes, is_known);
    let served = storage.served(&address).ok_or_else(|| no_account(&arrival, host, &address))?;
    let account = &served.account;
    // As it is configured: the host may have it in other case.
    let address = Address { account: &account.name, ..address };
    trace.meter = Some((Analytics::meter_number(served.place, service), head.path.len() - address.path.len()));
    let rules = cors::rules(storage, service, &account.name, head).await?;
    if head.method == "OPTIONS" {
        trace.operation = P::PREFLIGHT;
        return cors::preflight(&rules, head);
    }
    trace.cors = rules;
    let share = storage.in_flight.share(served.place);
    body.count(share.clone());
    trace.share = Some(share.clone());
    let authenticator = Authenticator { storage, service, account, head, path: address.path, peer, now };
    let admitted = match check_head(head, storage.strict.is_some()) {
        Ok(()) => authenticator.caller(Policies::Recent).await,
        Err(error) => Err(error),
    };
    let caller = admitted.inspect_err(|_| {
        // The request is not run, but storage analytics log what was tried.
        if let Ok(request) = P::parse(head, &address) {
            trace.note(&request.facts());
        }
    })?;
    trace.authentication = caller.authentication();
    if matches!((&caller, peer.entrance), (Caller::Anonymous, Entrance::Console { .. })) {
        return Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation).into());
    }
    let base = base_url(peer.is_tls, host, address.prefix);
    let (address, base, lookups, share) = (&address, base.as_str(), &Lookups::default(), &share);
    let call = Call { storage, service, head, peer, address, base, caller, lookups, share, runs, now, request_id };
    let request = P::parse(head, address)?;
    trace.preference = P::preference(&request);
    let request = Declared::new(&request);
    trace.note(request.facts());
    trace.is_xml = request.facts().format == Format::Xml;
    match perform(protocol, &call, &request, body).await {
        Err(_) if call.caller.is_doubtful() && body.is_repeatable() => {
            let caller = authenticator.caller(Policies::Now).await?;
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
    request: &Declared<'_, P::Request>,
    body: &mut RequestBody,
) -> error::Result<Reply> {
    let facts = request.facts();
    check_endpoint(facts.endpoint, call.address.is_secondary)?;
    let authorized = authorize(&call.caller, request)?;
    match facts.rate {
        Rate::Account => call.throttle(None, 1)?,
        Rate::Partition => {}
    }
    match facts.body {
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
    done.map(|reply| Reply { is_read: facts.is_read_only() || reply.is_read, ..reply })
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
fn no_account(arrival: &Arrival<'_>, host: &str, address: &Address<'_>) -> ErrorReply {
    let cut = |text: &str| text.chars().take(SHOWN_CHARS_MAX).collect::<String>();
    let found = match address.account {
        "" => "The address names no account.".to_owned(),
        account => format!("There is no account '{}' on this server.", cut(account)),
    };
    let path = cut(arrival.head.path.trim_start_matches('/'));
    let separator = if path.is_empty() { "" } else { "/" };
    let form = format!("{}{separator}{path}", base_url(arrival.peer.is_tls, host, Some("{account}")));
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
    arrival: Arrival<'_>,
    body: &mut RequestBody,
    trace: &mut RequestTrace,
) -> Result<Reply, ErrorReply> {
    let runs = Runs::default();
    let mut end = None;
    loop {
        let reply = answer(protocol, arrival, body, trace, &runs).await;
        let reply = reply.map_err(|error| error.into_reply(P::SERVICE))?;
        let Some(share) = trace.share.clone().filter(|_| reply.stream.is_none()) else { return Ok(reply) };
        let bytes = match answer::counted(reply, runs.room.lock().take(), &share, body) {
            Ok(reply) => return Ok(reply),
            // A request that holds bytes must not wait for more.
            Err(_) if body.is_counted() => return Err(share.refused()),
            Err(bytes) => bytes,
        };
        // An answer that grows from run to run does not wait longer for that.
        let end = *end.get_or_insert_with(|| Instant::now() + share.wait_max());
        let held = share.take_within(bytes, end.saturating_duration_since(Instant::now())).await?;
        *runs.room.lock() = Some(held);
    }
}

/// Refuses headers that cannot be read or repeat, and versions that do not exist; also in the part of a batch.
pub(crate) fn check_head(head: &RequestHead<'_>, is_strict: bool) -> Result<(), ErrorReply> {
    head.check()?;
    match head.raw_header("x-ms-version") {
        Some(version) if is_strict && !is_known_version(version) => Err(unknown_version(version)),
        _ => Ok(()),
    }
}

/// Logs a request that was not served, unless such a one was logged within the last minute.
fn log_unserved(head: &RequestHead<'_>, trace: &RequestTrace, request_id: &str, status: u16) {
    let operation = match trace.operation {
        UNKNOWN_OPERATION => Cow::Owned(head::outline(head.query)),
        known => Cow::Borrowed(known),
    };
    let method = head.method;
    if let Some(left_out) = fault_log::admit(&format!("{method} {operation} {status}")) {
        tracing::warn!(id = %request_id, method, %operation, status, left_out, "could not serve");
    }
}

/// Characters of a path that are repeated in an error.
const SHOWN_CHARS_MAX: usize = 100;
