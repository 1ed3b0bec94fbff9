//! Ways to die: transports that stop a client at its k-th request, and a schedule that mixes the requests of many.
#![allow(dead_code, reason = "every test file takes what it needs")]

pub(crate) mod schedule;
pub(crate) mod table;

use bytes::Bytes;
use larimar_client::{Account, BoxFuture, HttpTransport, RetryPolicy, Transport, TransportError};
use larimar_embedded::Larimar;
use larimar_patterns::eventual::{Work, Worker};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) type Request = http::Request<Bytes>;
pub(crate) type Answer = Result<http::Response<Bytes>, TransportError>;

/// How a client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// Before its request is sent.
    BeforeSend,
    /// After its request was carried out, before the answer.
    AnswerLost,
    /// While its request is under way; it arrives much later ([`Mortal::deliver_late`]).
    UnderWay,
}

pub(crate) const DEATHS: [Death; 3] = [Death::BeforeSend, Death::AnswerLost, Death::UnderWay];

/// A transport that dies at a request, and lets nothing through from then on.
#[derive(Debug)]
pub(crate) struct Mortal {
    inner: HttpTransport,
    left: AtomicI64,
    death: Death,
    is_dead: AtomicBool,
    late: Mutex<Vec<Request>>,
}

impl Mortal {
    /// Lets this many requests through.
    pub(crate) fn after(requests: i64, death: Death) -> Arc<Self> {
        Arc::new(Self {
            inner: HttpTransport::default(),
            left: AtomicI64::new(requests),
            death,
            is_dead: AtomicBool::new(false),
            late: Mutex::new(Vec::new()),
        })
    }

    /// One that lives, to see how many requests there are to die at.
    pub(crate) fn never() -> Arc<Self> {
        Self::after(i64::MAX, Death::BeforeSend)
    }

    /// How many requests were sent by one that lives.
    pub(crate) fn sent(&self) -> i64 {
        i64::MAX - self.left.load(SeqCst)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(SeqCst)
    }

    /// Lets the request arrive that was under way.
    pub(crate) async fn deliver_late(&self) {
        let late = std::mem::take(&mut *self.late.lock().expect("no panic"));
        for request in late {
            self.inner.send(request).await.expect("the service answers");
        }
    }
}

impl Transport for Mortal {
    fn send(&self, request: Request) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let left = self.left.fetch_sub(1, SeqCst);
            if left > 0 {
                return self.inner.send(request).await;
            }
            if self.is_dead.swap(true, SeqCst) {
                return Err(TransportError::not_sent("dead"));
            }
            match self.death {
                Death::BeforeSend => {}
                Death::AnswerLost => drop(self.inner.send(request).await?),
                Death::UnderWay => self.late.lock().expect("no panic").push(request),
            }
            Err(TransportError::lost("died"))
        })
    }
}

/// The account with a transport; nothing is tried twice.
pub(crate) fn account(server: &Larimar, transport: Arc<dyn Transport>) -> Account {
    let builder = Account::builder().connection_string(server.connection_string());
    builder.transport(transport).retry(RetryPolicy::none()).build().expect("an account")
}

pub(crate) fn healthy(server: &Larimar) -> Account {
    Account::connect(&server.connection_string()).expect("an account")
}

/// Works until no message has been there for longer than any is hidden: visibilities of a second and graces of one.
pub(crate) async fn settle<W: Work>(worker: &Worker<W>) {
    let mut quiet = 0;
    for _ in 0..60 {
        let before = worker.stats().received;
        worker.drain().await.expect("the queue is read");
        quiet = if worker.stats().received == before { quiet + 1 } else { 0 };
        if quiet == 4 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(800)).await;
    }
    panic!("the queue does not come to rest: {:?}", worker.stats());
}

/// Small and fast random numbers, the same for the same seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// The seeds to try; `LARIMAR_TEST_SEEDS` sets how many, and `cargo xtask test --full` tries more.
pub(crate) fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("LARIMAR_TEST_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(12)
}
