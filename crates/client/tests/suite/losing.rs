//! A transport that loses an answer on purpose, after the server carried the request out.

use bytes::Bytes;
use http::{Request, Response};
use larimar_client::{Account, BoxFuture, HttpTransport, RetryPolicy, Transport, TransportError};
use larimar_embedded::Larimar;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Which request is the victim: the first of which this holds.
type IsVictim = fn(&Request<Bytes>) -> bool;

#[derive(Debug)]
struct Losing {
    inner: HttpTransport,
    is_victim: IsVictim,
    has_lost: Arc<AtomicBool>,
}

impl Transport for Losing {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let is_lost = (self.is_victim)(&request) && !self.has_lost.swap(true, Ordering::Relaxed);
        Box::pin(async move {
            let answer = self.inner.send(request).await?;
            if is_lost { Err(TransportError::lost("the answer was lost on purpose")) } else { Ok(answer) }
        })
    }
}

/// An account of this server, and whether an answer was lost yet.
pub(crate) fn account(server: &Larimar, is_victim: IsVictim) -> (Account, Arc<AtomicBool>) {
    let has_lost = Arc::new(AtomicBool::new(false));
    let transport = Losing { inner: HttpTransport::new(), is_victim, has_lost: Arc::clone(&has_lost) };
    let account = Account::builder()
        .connection_string(server.connection_string())
        .retry(RetryPolicy::exponential().delay(Duration::from_millis(1)))
        .transport(Arc::new(transport))
        .build();
    (account.expect("an account"), has_lost)
}
