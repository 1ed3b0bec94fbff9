//! A transport that loses, delays or answers requests on purpose, and remembers what was sent.

use bytes::Bytes;
use http::{Request, Response};
use larimar_client::{
    Account, AccountBuilder, BoxFuture, HttpTransport, RetryPolicy, Table, Transport, TransportError,
};
use larimar_embedded::Larimar;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing unusual.
    Pass,
    /// It is carried out, and its answer is lost.
    LoseReply,
    /// It is carried out, then this is done, and its answer is lost.
    LoseReplyAnd(Meanwhile),
    /// It never leaves.
    NotSent,
    /// It is not carried out, and this status with these headers is the answer.
    Answer(u16, Vec<(&'static str, &'static str)>),
    /// The same, with a body.
    AnswerWith(u16, Vec<(&'static str, &'static str)>, &'static str),
    /// It is carried out twice, and the second answer comes back.
    Double,
    /// No answer ever comes, and it is not carried out.
    Hang,
}

/// Something that is done while a request is under way.
#[derive(Clone)]
pub struct Meanwhile(Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>);

impl Meanwhile {
    pub fn new<F: Future<Output = ()> + Send + 'static>(action: impl Fn() -> F + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || Box::pin(action())))
    }
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

/// A transport over HTTP with faults.
#[derive(Debug)]
pub struct Faults {
    inner: HttpTransport,
    plan: Mutex<VecDeque<Fault>>,
    sent: Mutex<Vec<String>>,
}

impl Faults {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { inner: HttpTransport::new(), plan: Mutex::default(), sent: Mutex::default() })
    }

    /// What happens to the next requests, one after the other; those after them pass.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.plan.lock().expect("no panic") = faults.into_iter().collect();
        self.sent.lock().expect("no panic").clear();
    }

    /// Method and path of the requests since the last plan was made.
    pub fn sent(&self) -> Vec<String> {
        self.sent.lock().expect("no panic").clone()
    }

    /// An account that sends through this, and waits next to nothing before it tries again.
    pub fn account(self: &Arc<Self>, server: &Larimar) -> AccountBuilder {
        let retry = RetryPolicy::exponential().delay(Duration::from_millis(1));
        Account::builder()
            .connection_string(server.connection_string())
            .retry(retry)
            .transport(Arc::clone(self) as Arc<dyn Transport>)
    }
}

impl Transport for Faults {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let fault = self.plan.lock().expect("no panic").pop_front().unwrap_or(Fault::Pass);
        let line = format!("{} {}", request.method(), request.uri());
        self.sent.lock().expect("no panic").push(line);
        Box::pin(async move {
            match fault {
                Fault::Pass => self.inner.send(request).await,
                Fault::LoseReply => {
                    self.inner.send(request).await?;
                    Err(TransportError::lost("the answer is lost"))
                }
                Fault::LoseReplyAnd(meanwhile) => {
                    self.inner.send(request).await?;
                    (meanwhile.0)().await;
                    Err(TransportError::lost("the answer is lost"))
                }
                Fault::NotSent => Err(TransportError::not_sent("nothing left")),
                Fault::Answer(status, headers) => Ok(answer(status, headers, "")),
                Fault::AnswerWith(status, headers, body) => Ok(answer(status, headers, body)),
                Fault::Double => {
                    self.inner.send(request.clone()).await?;
                    self.inner.send(request).await
                }
                Fault::Hang => std::future::pending().await,
            }
        })
    }
}

fn answer(status: u16, headers: Vec<(&'static str, &'static str)>, body: &'static str) -> Response<Bytes> {
    let answer = Response::builder().status(status);
    let answer = headers.into_iter().fold(answer, |answer, (name, value)| answer.header(name, value));
    answer.body(Bytes::from_static(body.as_bytes())).expect("an answer")
}

/// A server of its own, an empty table on it, and the transport that its requests go through.
pub async fn faulty_table() -> (Larimar, Table, Arc<Faults>) {
    let server = Larimar::ephemeral().await.expect("a server");
    let faults = Faults::new();
    let account = faults.account(&server).build().expect("an account");
    let table = account.table("Employees");
    table.create().await.expect("created");
    faults.plan([]);
    (server, table, faults)
}
