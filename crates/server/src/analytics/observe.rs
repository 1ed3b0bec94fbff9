//! The end of a request, as analytics see it: what is counted and what is logged of it.

use super::log_buffer::BufferedEntry;
use super::{Analytics, COUNT, log_switch};
use crate::http::Arrival;
use crate::reply::ResponseBody;
use hyper::Response;
use hyper::header::HeaderMap;
use larimar_model::Timestamp;
use larimar_wire::analytics::{Authentication, LogEntry, Outcome, Sample, mask_signatures_in, write_condition};
use larimar_wire::error_code::ErrorCode;
use larimar_wire::operation::Kind;
use larimar_wire::request_head::{RequestHead, is_version};
use larimar_wire::sas::Service;
use larimar_wire::uri::decode_path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A request and what is known of it when its answer is ready to be sent.
pub(crate) struct Exchange<'a> {
    pub(crate) arrival: Arrival<'a>,
    pub(crate) operation: &'static str,
    pub(crate) kind: Kind,
    /// Who sent it, as far as that was proved.
    pub(crate) authentication: Authentication,
    /// The path below the account, still escaped.
    pub(crate) path: &'a str,
    /// What it failed with, if it did.
    pub(crate) code: Option<ErrorCode>,
    /// The bytes of its body that were read.
    pub(crate) received_bytes: u64,
    pub(crate) started: Instant,
    /// How long it took the body to arrive.
    pub(crate) waited: Duration,
}

/// What is left to do when the last byte of the answer is sent.
struct ObservedRequest {
    meter: usize,
    operation: &'static str,
    sample: Sample,
    entry: Option<Box<LogEntry>>,
    start: Timestamp,
}

impl Exchange<'_> {
    /// Observes the request, at once or, if its answer is made while it is sent, at the end of that.
    pub(crate) fn end(&self, analytics: &Arc<Analytics>, meter: usize, response: &mut Response<ResponseBody>) {
        let switches = analytics.meter(meter).switches.load(Relaxed);
        if switches == 0 {
            return;
        }
        let elapsed = self.started.elapsed();
        let status = response.status().as_u16();
        let head_bytes = response_head_bytes(response.headers());
        let sample = Sample {
            authentication: self.authentication,
            outcome: Outcome::of(status, self.code),
            ingress: request_head_bytes(self.arrival.head) + self.received_bytes,
            egress: head_bytes,
            end_to_end: elapsed,
            server: elapsed.saturating_sub(self.waited),
        };
        let is_logged =
            switches & log_switch(self.kind) != 0 && sample.outcome.is_logged(sample.authentication, status);
        let entry = is_logged.then(|| Box::new(self.entry(analytics, meter, &sample, response)));
        let observed = ObservedRequest { meter, operation: self.operation, sample, entry, start: self.arrival.now };
        let body = response.body_mut();
        let bytes = body.bytes();
        if body.is_streamed() {
            let (analytics, started) = (Arc::clone(analytics), self.started);
            body.on_end(move |left| observed.finish(&analytics, bytes - left, left == 0, started.elapsed()));
        } else {
            observed.finish(analytics, bytes, true, elapsed);
        }
    }

    fn entry(
        &self,
        analytics: &Analytics,
        meter: usize,
        sample: &Sample,
        response: &Response<ResponseBody>,
    ) -> LogEntry {
        let (head, meter) = (self.arrival.head, analytics.meter(meter));
        let text = |name: &str| mask_signatures_in(head.raw_header(name).unwrap_or_default());
        let answered = |name: &str| {
            let value = response.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let version = head.version().filter(|version| is_version(version));
        let entry = LogEntry {
            start: self.arrival.now,
            operation: self.operation,
            kind: self.kind,
            authentication: sample.authentication,
            outcome: sample.outcome,
            code: self.code,
            status: response.status().as_u16(),
            end_to_end: sample.end_to_end,
            server: sample.server,
            url: self.url(),
            object_key: self.object_key(&meter.account, meter.service),
            request_id: self.arrival.request_id.to_owned(),
            peer: self.arrival.peer.address,
            version: version.unwrap_or_default().into_owned(),
            request_header_bytes: sample.ingress - self.received_bytes,
            request_bytes: self.received_bytes,
            response_header_bytes: sample.egress,
            response_bytes: 0,
            content_length: head.number_header("content-length").ok().flatten().unwrap_or_default(),
            request_md5: head.raw_header("content-md5").map_or_else(|| text("x-ms-blob-content-md5"), str::to_owned),
            server_md5: answered("content-md5"),
            etag: answered("etag"),
            last_modified: answered("last-modified"),
            conditions: self.conditions(),
            user_agent: text("user-agent"),
            referrer: text("referer"),
            client_request_id: mask_signatures_in(head.client_request_id().unwrap_or_default()),
            copy_source: text("x-ms-copy-source"),
        };
        entry.bounded()
    }

    fn url(&self) -> String {
        let head = self.arrival.head;
        let scheme = if self.arrival.peer.is_tls { "https" } else { "http" };
        let mut url = format!("{scheme}://{}{}", head.host().unwrap_or_default(), head.path);
        if !head.query.is_empty() {
            url.push('?');
            url.push_str(head.query);
        }
        mask_signatures_in(&url)
    }

    /// Names the account also where the path does not, and of an entity the table.
    fn object_key(&self, account: &str, service: Service) -> String {
        let path = decode_path(self.path).unwrap_or(self.path.into());
        let path = path.trim_matches('/');
        let path = match service {
            Service::Table => path.split('(').next().unwrap_or_default(),
            Service::Blob | Service::Queue => path,
        };
        let slash = if path.is_empty() { "" } else { "/" };
        format!("/{account}{slash}{path}")
    }

    fn conditions(&self) -> String {
        let mut conditions = String::new();
        for name in ["If-Modified-Since", "If-Unmodified-Since", "If-Match", "If-None-Match"] {
            if let Some(value) = self.arrival.head.raw_header(name) {
                write_condition(&mut conditions, name, value);
            }
        }
        conditions
    }
}

impl ObservedRequest {
    /// Counts and logs a request of whose answer this much was sent.
    fn finish(mut self, analytics: &Analytics, sent_bytes: u64, is_whole: bool, end_to_end: Duration) {
        self.sample.egress += sent_bytes;
        self.sample.end_to_end = end_to_end;
        if !is_whole {
            self.sample.outcome = Outcome::NetworkError;
        }
        let meter = analytics.meter(self.meter);
        let ended = self.start.after(end_to_end);
        if meter.switches.load(Relaxed) & COUNT != 0 && !meter.counters.count(ended, self.operation, &self.sample) {
            analytics.metrics.analytics_dropped(1);
        }
        let Some(mut entry) = self.entry else { return };
        (entry.response_bytes, entry.end_to_end, entry.outcome) = (sent_bytes, end_to_end, self.sample.outcome);
        if entry.outcome.is_logged(entry.authentication, entry.status) {
            let pushed = meter.log.push(BufferedEntry { ended, entry: *entry });
            analytics.metrics.analytics_dropped(pushed.dropped as u64);
            if pushed.is_due {
                analytics.wake.notify_one();
            }
        }
    }
}

fn request_head_bytes(head: &RequestHead<'_>) -> u64 {
    let line = head.method.len() + head.path.len() + head.query.len() + REQUEST_LINE_BYTES;
    (line + head.header_bytes()) as u64
}

fn response_head_bytes(headers: &HeaderMap) -> u64 {
    // A colon and a space between name and value, and the end of the line.
    let headers: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    (RESPONSE_LINE_BYTES + headers) as u64
}

/// Two spaces, the version, the end of the line, the empty line after the headers.
const REQUEST_LINE_BYTES: usize = 2 + 8 + 2 + 2;
/// The version, the status, two spaces, about two words for it, the end of the line, the empty line.
const RESPONSE_LINE_BYTES: usize = 8 + 3 + 2 + 10 + 2 + 2;
