//! The road of every call: signed, sent, and sent again where that is allowed.

mod request;

pub(crate) use request::printable;

use crate::credential::Credential;
use crate::error::{Error, ServiceError};
use crate::retry::{self, RetryPolicy};
use crate::service::{Endpoint, Service};
use crate::timestamp::system_time;
use crate::transport::Transport;
use crate::{Guid, random};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument as _;

/// Sends calls to one service of an account.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) service: Service,
    pub(crate) primary: Endpoint,
    pub(crate) secondary: Option<Endpoint>,
    pub(crate) credential: Credential,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeouts: Timeouts,
    pub(crate) user_agent: HeaderValue,
}

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// With all its retries.
    pub(crate) call: Duration,
    /// One attempt.
    pub(crate) attempt: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { call: Duration::from_secs(120), attempt: Duration::from_secs(30) }
    }
}

/// A request before it is signed.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The operation's name, for those who watch.
    pub(crate) name: &'static str,
    method: Method,
    /// Below the service's address, escaped, with a slash at its front.
    path: String,
    /// Escaped, without a question mark.
    query: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    /// How long the call may take, if it differs from the account's own.
    timeout: Option<Duration>,
    /// Whether something changes although the method is one of reads.
    changes: bool,
    /// Finds the refusal in an answer with a successful status.
    refusal: Option<fn(&Reply) -> Option<ServiceError>>,
}

/// A successful answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether an earlier attempt may have been carried out by the service too.
    pub(crate) after_ambiguous: bool,
}

/// A call that failed in the end.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: Error,
    /// Whether an earlier attempt may have been carried out by the service, so that the error may tell of its effect.
    pub(crate) after_ambiguous: bool,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

impl Call {
    pub(crate) fn new(name: &'static str, method: Method, path: impl Into<String>) -> Self {
        Self {
            name,
            method,
            path: path.into(),
            query: String::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: None,
            changes: false,
            refusal: None,
        }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// A header whose value is not known to be one; line feeds and the like are refused.
    pub(crate) fn header_text(mut self, name: HeaderName, value: &str) -> Result<Self, Error> {
        let value = printable(value)
            .ok_or_else(|| Error::Invalid(format!("expected printable ASCII as the value of '{name}'")))?;
        self.headers.push((name, value));
        Ok(self)
    }

    /// Adds a parameter; name and value are escaped here.
    pub(crate) fn parameter(mut self, name: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(name);
        self.query.push('=');
        larimar_wire::uri::encode(&mut self.query, value, larimar_wire::uri::is_unreserved);
        self
    }

    pub(crate) fn body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.headers.push((CONTENT_TYPE, HeaderValue::from_static(content_type)));
        self.body = body.into();
        self
    }

    pub(crate) const fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Marks the call as a write regardless of its method: it never goes to a secondary.
    pub(crate) const fn changing(mut self) -> Self {
        self.changes = true;
        self
    }

    /// Has answers looked into, since their status does not tell of every refusal.
    pub(crate) fn refused_by(mut self, refusal: fn(&Reply) -> Option<ServiceError>) -> Self {
        self.refusal = Some(refusal);
        self
    }

    fn is_read(&self) -> bool {
        !self.changes && (self.method == Method::GET || self.method == Method::HEAD)
    }

    /// Whether the request has a body, if only an empty one.
    fn has_body(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD | Method::DELETE)
    }
}

impl Pipeline {
    /// Sends a call until it is answered for good, the retries are used up, or the time is.
    pub(crate) async fn send(&self, call: Call) -> Result<Reply, Failed> {
        let id = Guid::of_request();
        let span = tracing::debug_span!(
            "larimar_client",
            service = self.service.name(),
            operation = call.name,
            request_id = %id,
            attempts = tracing::field::Empty,
            status = tracing::field::Empty,
        );
        // A limit that the clock cannot tell is none.
        let until = Instant::now() + call.timeout.unwrap_or(self.timeouts.call).min(CALL_MAX);
        let attempts = Attempts {
            pipeline: self,
            call,
            id,
            until,
            retries: 0,
            ambiguous: false,
            has_renewed_token: false,
            at_primary: None,
            span: span.clone(),
        };
        if span.is_disabled() {
            return attempts.run().await;
        }
        attempts.run().instrument(span).await
    }
}

/// A call on its way.
struct Attempts<'a> {
    pipeline: &'a Pipeline,
    call: Call,
    id: Guid,
    /// When the time of the call is up.
    until: Instant,
    retries: u32,
    /// Whether an attempt may have had an effect without our knowing.
    ambiguous: bool,
    has_renewed_token: bool,
    /// Why the primary gave no answer, while the secondary is asked.
    at_primary: Option<Error>,
    /// Not the current span, which is the caller's if this one is disabled.
    span: tracing::Span,
}

impl Attempts<'_> {
    async fn run(mut self) -> Result<Reply, Failed> {
        let pipeline = self.pipeline;
        loop {
            let secondary = pipeline.secondary.as_ref().filter(|_| self.goes_to_secondary());
            let endpoint = secondary.unwrap_or(&pipeline.primary);
            let (error, asked) = match self.attempt(endpoint).await {
                Ok(answer) => match self.judge(answer) {
                    Ok(reply) => return Ok(reply),
                    Err(refusal) => refusal,
                },
                Err(error) => (error, None),
            };
            let Some(wait) = self.wait(&error, asked, secondary.is_some()) else {
                return Err(self.failed(error, secondary.is_some()));
            };
            self.ambiguous |= error.is_ambiguous() && !self.call.is_read();
            self.retries += 1;
            tracing::debug!(%error, retry = self.retries, ?wait, "a request is sent again");
            if secondary.is_none() {
                self.at_primary = Some(error);
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// The end of a call that failed with this error.
    fn failed(self, error: Error, at_secondary: bool) -> Failed {
        // A secondary that does not answer, or does not have something yet, proves nothing: the answer of the primary
        // counts.
        let error = self.at_primary.filter(|_| at_secondary).unwrap_or(error);
        let error = if self.ambiguous { error.after_lost_answer() } else { error };
        Failed { error, after_ambiguous: self.ambiguous }
    }

    /// Whether this attempt goes to the secondary: every other one of a read, if the policy says so.
    fn goes_to_secondary(&self) -> bool {
        self.call.is_read() && self.retries % 2 == 1 && self.pipeline.retry.reads_secondary()
    }

    async fn attempt(&self, endpoint: &Endpoint) -> Result<http::Response<Bytes>, Error> {
        let limit = || self.left().min(self.pipeline.timeouts.attempt);
        let request = self.pipeline.request(&self.call, endpoint, self.id, limit()).await?;
        let limit = limit();
        match tokio::time::timeout(limit, self.pipeline.transport.send(request)).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::Timeout(limit)),
        }
    }

    /// How much of the call's time is left.
    fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Distinguishes a success from a refusal, which has the time that the service asks to wait.
    fn judge(&self, answer: http::Response<Bytes>) -> Result<Reply, (Error, Option<Duration>)> {
        let (head, body) = answer.into_parts();
        let status = head.status.as_u16();
        self.span.record("attempts", self.retries + 1);
        self.span.record("status", status);
        if head.status.is_success() || head.status == http::StatusCode::NOT_MODIFIED {
            let reply = Reply { status, headers: head.headers, body, after_ambiguous: self.ambiguous };
            return match self.call.refusal.and_then(|refusal| refusal(&reply)) {
                Some(refusal) => Err((refusal.into(), retry::retry_after(&reply.headers, system_time()))),
                None => Ok(reply),
            };
        }
        let asked = retry::retry_after(&head.headers, system_time());
        Err((ServiceError::read(status, &head.headers, &body).into(), asked))
    }

    /// How long to wait before the next attempt, if there is to be one.
    fn wait(&mut self, error: &Error, asked: Option<Duration>, at_secondary: bool) -> Option<Duration> {
        let may_pass = match error {
            // The secondary may not have what the primary has, and an account may have none to read from.
            Error::Service(_) if at_secondary => true,
            Error::Service(refusal) if refusal.status == 401 => return self.renew_token(),
            Error::Service(refusal) => retry::is_transient(refusal.status),
            Error::Transport(_) | Error::Timeout(_) => true,
            _ => false,
        };
        let wait = self.pipeline.retry.wait(self.retries, asked, random::fraction()).filter(|_| may_pass)?;
        // A retry that could not be answered in time is not worth a request.
        (wait < self.left()).then_some(wait)
    }

    /// A token may be revoked before it expires: it is worth one more attempt with another.
    fn renew_token(&mut self) -> Option<Duration> {
        match &self.pipeline.credential {
            Credential::Token(source) if !self.has_renewed_token => {
                self.has_renewed_token = true;
                source.forget();
                Some(Duration::ZERO)
            }
            _ => None,
        }
    }
}

/// Longer than any program runs, and within what clocks can tell.
const CALL_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
