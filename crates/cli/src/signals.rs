//! The signals of a server: the first SIGTERM or SIGINT asks for a clean end, a second one for an end at once; SIGHUP
//! asks it to read its settings again.

use std::io::IsTerminal;

/// The signals of a server.
pub(crate) struct Signals {
    /// Whether there was a terminal at the start. If it has gone, SIGHUP says so and asks for an end.
    #[cfg(unix)]
    has_terminal: bool,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

/// What a signal asks for.
enum Wish {
    End(&'static str),
    Reload,
}

impl Signals {
    /// Takes the signals over; one that nobody waits for yet is kept.
    #[cfg(unix)]
    pub(crate) fn new() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            has_terminal: std::io::stdin().is_terminal(),
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the first signal to end, and reloads at each that asks for it. A second signal to end, while requests
    /// finish, ends the process at once.
    pub(crate) async fn wait(mut self, mut reload: impl FnMut()) {
        let name = loop {
            match self.wish().await {
                Wish::End(name) => break name,
                Wish::Reload => reload(),
            }
        };
        tracing::info!(signal = name, "ending: requests in flight finish first");
        tokio::spawn(async move {
            let name = self.end().await;
            tracing::warn!(signal = name, "ending at once");
            std::process::exit(EXIT_IMPATIENT);
        });
    }

    /// Waits for the next signal to end; what is to be reloaded is not open yet, or no more.
    pub(crate) async fn end(&mut self) -> &'static str {
        loop {
            if let Wish::End(name) = self.wish().await {
                return name;
            }
        }
    }

    #[cfg(unix)]
    async fn wish(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::End("SIGTERM"),
            _ = self.interrupt.recv() => Wish::End("SIGINT"),
            _ = self.hangup.recv() => match self.has_terminal && !std::io::stdin().is_terminal() {
                true => Wish::End("SIGHUP"),
                false => Wish::Reload,
            },
        }
    }

    #[cfg(not(unix))]
    async fn wish(&mut self) -> Wish {
        // Without signals there is no way to ask for an end, and the process serves until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Wish::End("interrupt")
    }
}

/// What shells report for a process that an interrupt ended.
const EXIT_IMPATIENT: i32 = 130;
