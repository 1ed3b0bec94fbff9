//! `/design` and `/design/trial`: the key designer for the console's page.
//!
//! The designer is a pure function of `larimar-design`; here it gets a bounded body, a thread that is not one of the
//! runtime's, and a bound on how many run at a time. It sees nothing of the store.

mod request;

use super::access::AdminCaller;
use super::{AdminService, FILLING, JSON, Page, access, not_allowed, page, refused, text};
use crate::body::{Pace, RequestBody};
use crate::handler::Peer;
use crate::head;
use crate::in_flight::{Share, UNCOUNTED_BYTES};
use crate::reply::ResponseBody;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use larimar_engine::Engine;
use request::{Refused, design, trial};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::{task, time};

/// Runs the designer, a few at a time.
#[derive(Debug)]
pub(super) struct Designer {
    places: Arc<Semaphore>,
}

impl Default for Designer {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(RUNNING_MAX)) }
    }
}

/// Whether a path is one of the designer's.
pub(super) fn is_design(path: &str) -> bool {
    matches!(path, DESIGN | TRIAL)
}

impl<E: Engine> AdminService<E> {
    /// Answers a request of the designer.
    pub(super) async fn answer_design(&self, request: Request<Incoming>, peer: Peer) -> Page {
        let (parts, body) = request.into_parts();
        let storage = &self.storage;
        let head = head::collect(&parts, None);
        let pace = Pace { silence_max: storage.settings.body_timeout, rate_min: storage.settings.client_rate_min };
        let mut body = RequestBody::new(body, head.number_header("content-length").unwrap_or(None), pace);
        let mut page = match access::check(storage, &self.settings, &parts, peer) {
            Err(refusal) => refused(refusal),
            Ok(_) if parts.method != Method::POST => not_allowed("POST"),
            Ok(_) if self.is_filling.load(Ordering::Relaxed) => text(StatusCode::SERVICE_UNAVAILABLE, FILLING),
            Ok(caller) => self.run_designer(&caller, &parts, &mut body).await,
        };
        if !body.finish().await {
            page.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        page
    }

    async fn run_designer(&self, caller: &AdminCaller, parts: &Parts, body: &mut RequestBody) -> Page {
        let account = match caller {
            AdminCaller::Operator => None,
            AdminCaller::Owner(account) | AdminCaller::Guest(account, _) => self.storage.account(account),
        };
        let share = self.storage.in_flight.share(account.map_or(0, |served| served.place));
        body.count(share.clone());
        let bytes = match body.read(BODY_BYTES_MAX).await {
            Ok(bytes) => bytes,
            Err(error) => {
                let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
                return text(status, format!("{}\n", error.message));
            }
        };
        let is_trial = parts.uri.path() == TRIAL;
        let place = time::timeout(WAIT_MAX, Arc::clone(&self.designer.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else { return busy(BUSY) };
        // The place is given up when the work ends, also if nobody waits for it any more.
        let work = task::spawn_blocking(move || {
            let done = if is_trial { trial(&bytes) } else { design(&bytes) };
            drop(place);
            done
        });
        match time::timeout(WORK_MAX, work).await {
            Ok(Ok(Ok(json))) => counted(json, &share),
            Ok(Ok(Err(Refused { message, line }))) => {
                let json = serde_json::json!({ "error": message, "line": line });
                page(StatusCode::BAD_REQUEST, JSON, format!("{json}\n"))
            }
            Ok(Err(panic)) => {
                tracing::error!(%panic, "the designer ended in a defect");
                text(StatusCode::INTERNAL_SERVER_ERROR, "the designer ended in a defect of the server\n")
            }
            Err(_) => busy(TOO_LONG),
        }
    }
}

/// The answer, counted as bytes in flight until it is sent.
fn counted(json: Vec<u8>, share: &Share) -> Page {
    let held = share.try_take(json.len() as u64);
    if held.is_none() && json.len() as u64 > UNCOUNTED_BYTES {
        return busy(NO_ROOM);
    }
    let mut page = page(StatusCode::OK, JSON, "");
    *page.body_mut() = ResponseBody::held(json, held);
    page
}

fn busy(reason: &'static str) -> Page {
    let mut page = text(StatusCode::SERVICE_UNAVAILABLE, reason);
    page.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    page
}

const DESIGN: &str = "/design";
const TRIAL: &str = "/design/trial";

/// Bytes of a request.
const BODY_BYTES_MAX: usize = 256 << 10;

/// Designs and trials that are computed at a time, and how long a request waits for its turn.
const RUNNING_MAX: usize = 1;
const WAIT_MAX: Duration = Duration::from_secs(2);

/// How long a request waits for its answer. The search is bounded by its steps, which take a part of a second.
const WORK_MAX: Duration = Duration::from_secs(10);

const BUSY: &str = "the designer works for others: try again in a moment\n";
const TOO_LONG: &str = "the designer took too long\n";
const NO_ROOM: &str = "the server has no room for the answer at the moment: try again, or with fewer entities\n";
