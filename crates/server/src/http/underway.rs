//! A request while it is answered, and its line in the access log and for those who watch requests.
//!
//! A request that ends before its answer, as its client disconnected or its handler panicked, has a line too.

use super::{Arrival, RequestTrace};
use crate::access_log::{AccessLine, AccessLog, Accessed, End};
use crate::analytics::Analytics;
use crate::body::RequestBody;
use crate::live_requests::LiveRequests;
use crate::reply::ResponseBody;
use hyper::Response;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::sas::Service;
use std::sync::Arc;
use std::time::Instant;

/// A request that is being answered.
pub(super) struct Underway<'a> {
    pub(super) arrival: Arrival<'a>,
    pub(super) service: Service,
    pub(super) started: Instant,
    pub(super) body: RequestBody,
    pub(super) trace: RequestTrace,
    pub(super) analytics: &'a Analytics,
    /// The access log, if there is one, until the request has its line.
    pub(super) log: Option<&'a Arc<AccessLog>>,
    /// Those who watch requests, if anybody does, until they have seen this one.
    pub(super) live: Option<&'a Arc<LiveRequests>>,
}

impl Underway<'_> {
    /// Logs the request with its answer: at once or, if the answer is made while it is sent, at the end of that.
    pub(super) fn log(&mut self, code: Option<ErrorCode>, response: &mut Response<ResponseBody>) {
        let Some(readers) = self.readers() else { return };
        let line = self.line(response.status().as_u16(), code);
        let started = self.started;
        let body = response.body_mut();
        let bytes = body.bytes();
        let end = move |left| End { sent_bytes: bytes - left, is_complete: left == 0, elapsed: started.elapsed() };
        if body.is_streamed() {
            body.on_end(move |left| readers.take(&line, end(left)));
        } else {
            readers.take(&line, end(0));
        }
    }

    /// What takes the line of this request, once.
    fn readers(&mut self) -> Option<Readers> {
        match (self.log.take(), self.live.take()) {
            (None, None) => None,
            (log, live) => Some(Readers { log: log.cloned(), live: live.cloned() }),
        }
    }

    fn line(&self, status: u16, code: Option<ErrorCode>) -> AccessLine {
        let Arrival { head, peer, now, request_id } = self.arrival;
        let (account, path) = match self.trace.meter {
            Some((meter, account_end)) => (Some(self.analytics.account(meter)), &head.path[account_end..]),
            None => (None, head.path),
        };
        AccessLine::new(Accessed {
            head,
            peer: peer.address,
            now,
            request_id,
            service: self.service,
            account,
            path,
            operation: self.trace.operation,
            authentication: self.trace.authentication,
            status,
            code,
            received_bytes: self.body.received_bytes(),
        })
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let Some(readers) = self.readers() else { return };
        let status = if std::thread::panicking() { 500 } else { CLIENT_CLOSED_REQUEST };
        let end = End { sent_bytes: 0, is_complete: false, elapsed: self.started.elapsed() };
        readers.take(&self.line(status, None), end);
    }
}

/// What takes the line of a request.
struct Readers {
    log: Option<Arc<AccessLog>>,
    live: Option<Arc<LiveRequests>>,
}

impl Readers {
    fn take(&self, line: &AccessLine, end: End) {
        if let Some(log) = &self.log {
            log.write(line, end);
        }
        if let Some(live) = &self.live {
            live.show(line, end);
        }
    }
}

/// The status in the log of a request whose client disconnected before there was an answer. No client ever gets it; other
/// servers use the same number.
const CLIENT_CLOSED_REQUEST: u16 = 499;
