//! The signals that end a server: the first asks for a clean end, a second one for an end at once.

/// The signals that end a server.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes the signals over; one that comes while the server starts ends it as soon as it has started.
    #[cfg(unix)]
    pub(crate) fn new() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the first signal; a second one, while requests finish, ends the process at once.
    pub(crate) async fn wait(mut self) {
        let name = self.next().await;
        tracing::info!(signal = name, "ending: requests in flight finish first");
        tokio::spawn(async move {
            let name = self.next().await;
            tracing::warn!(signal = name, "ending at once");
            std::process::exit(EXIT_IMPATIENT);
        });
    }

    /// The next signal.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> &'static str {
        // Without signals there is no way to ask for an end, and the process serves until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "interrupt"
    }
}

/// What shells report for a process that an interrupt ended.
const EXIT_IMPATIENT: i32 = 130;
