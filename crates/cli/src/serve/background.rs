//! The tasks of a server, each with its way to be stopped: listeners, storage analytics, insights, and the reclaiming of blobs.

use larimar_engine::blob::bytes::ByteStore;
use larimar_engine::blob::{Blobs, Reclaimer};
use larimar_engine::{Clock, Engine, SystemClock, sweep_hidden};
use larimar_server::{AnalyticsWriter, Handler, InsightsWriter, Listener, Storage};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Starts what writes down what the services observe: storage analytics and insights.
pub(super) async fn start_observers<E: Engine, B: ByteStore>(
    storage: &Arc<Storage<E>>,
    blobs: Option<Arc<Blobs<E, B>>>,
) -> [Running; 2] {
    let mut analytics = AnalyticsWriter::new(Arc::clone(storage), blobs);
    analytics.load().await;
    let insights = InsightsWriter::new(Arc::clone(storage));
    insights.prepare().await;
    [Running::spawn(|stopped| analytics.run(stopped)), Running::spawn(|stopped| insights.run(stopped))]
}

/// Starts what removes the leftovers of blobs: after the grace period, at most a day after a start, and then every day.
pub(super) fn start_blob_reclaimer<E: Engine, B: ByteStore>(blobs: Arc<Blobs<E, B>>, grace: Duration) -> Running {
    Running::spawn(|mut stopped| async move {
        let mut pause = grace.min(BLOB_RECLAIM_EVERY);
        loop {
            tokio::select! {
                () = &mut stopped => return,
                () = tokio::time::sleep(pause) => {}
            }
            tokio::select! {
                () = &mut stopped => return,
                reclaimed = blobs.reclaim(SystemClock.now()) => match reclaimed {
                    Ok((rows, bytes)) => tracing::info!(?rows, ?bytes, "reclaimed the leftovers of blobs"),
                    Err(fault) => tracing::warn!(%fault, "the leftovers of blobs could not be reclaimed"),
                },
            }
            pause = BLOB_RECLAIM_EVERY;
        }
    })
}

/// Starts what removes the bytes of deleted containers.
pub(super) fn start_container_reclaimer<E: Engine, B: ByteStore>(blobs: Arc<Blobs<E, B>>, grace: Duration) -> Running {
    Running::spawn(|mut stopped| async move {
        let mut reclaimer = Reclaimer::new(grace);
        let mut pause = RECLAIM_EVERY;
        loop {
            tokio::select! {
                () = &mut stopped => return,
                () = tokio::time::sleep(pause) => {}
            }
            pause = match reclaimer.step(&blobs).await {
                Ok(true) => RECLAIM_PAUSE,
                Ok(false) => RECLAIM_EVERY,
                Err(fault) => {
                    tracing::warn!(%fault, "the bytes of deleted containers could not be reclaimed");
                    RECLAIM_RETRY
                }
            };
        }
    })
}

/// Starts what removes what unfinished restores into a server that has died left behind.
pub(super) fn start_restore_sweeper<E: Engine>(engine: Arc<E>) -> Running {
    Running::spawn(|mut stopped| async move {
        loop {
            match sweep_hidden(&*engine, SystemClock.now()).await {
                Ok(0) => {}
                Ok(spaces) => tracing::info!(spaces, "removed what an unfinished restore left"),
                Err(fault) => tracing::warn!(%fault, "what an unfinished restore left could not be removed"),
            }
            tokio::select! {
                () = &mut stopped => return,
                () = tokio::time::sleep(SWEEP_EVERY) => {}
            }
        }
    })
}

/// Comes when it is time to stop.
type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A listener, or another task, at work.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start<H: Handler>(listener: Listener<H>, socket: TcpListener) -> Self {
        Self::spawn(|stopped| async move {
            // The listener itself logs how it stopped.
            let _ = listener.serve(socket, stopped).await;
        })
    }

    pub(super) fn spawn<F: Future<Output = ()> + Send + 'static>(work: impl FnOnce(Stop) -> F) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        // An error means that the sender is gone; that is a stop too.
        let task = tokio::spawn(work(Box::pin(async { drop(stopped.await) })));
        Self { stop, task }
    }

    /// Asks the task to end; the handle completes when it has.
    pub(super) fn ending(self) -> JoinHandle<()> {
        drop(self.stop);
        self.task
    }
}

/// How often deleted containers are looked for.
const RECLAIM_EVERY: Duration = Duration::from_secs(5);
/// Between pieces of that work: requests come first.
const RECLAIM_PAUSE: Duration = Duration::from_millis(20);
/// After a fault.
const RECLAIM_RETRY: Duration = Duration::from_secs(30);
/// How often unfinished restores are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(120);
const BLOB_RECLAIM_EVERY: Duration = Duration::from_secs(24 * 3600);
