//! The signals of a server: the first SIGTERM or SIGINT asks for a clean shutdown, a second one ends the process at
//! once; SIGHUP reloads the settings.

use crate::logging;
use std::io::IsTerminal;
use std::time::Duration;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The runtime of a command, which handles SIGHUP from its start.
pub(crate) struct Runtime {
    runtime: tokio::runtime::Runtime,
    #[cfg(unix)]
    hangup: Signal,
    has_terminal: bool,
}

impl Runtime {
    /// Starts the runtime. From now on a SIGHUP is kept until something waits for it.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("larimar").build()?;
        #[cfg(unix)]
        let hangup = runtime.block_on(async { signal(SignalKind::hangup()) })?;
        Ok(Self {
            runtime,
            #[cfg(unix)]
            hangup,
            has_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Lets SIGHUP end the process, as it does for a program that does not handle it.
    #[cfg(unix)]
    pub(crate) fn exit_on_hangup(mut self) {
        std::thread::spawn(move || {
            self.runtime.block_on(self.hangup.recv());
            std::process::exit(EXIT_HANGUP);
        });
    }

    #[cfg(not(unix))]
    pub(crate) fn exit_on_hangup(self) {}

    /// Runs a command that handles its signals.
    pub(crate) fn block_on<T>(self, run: impl AsyncFnOnce(Signals) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let Self { runtime, has_terminal, .. } = self;
        #[cfg(unix)]
        let hangup = self.hangup;
        let done = runtime.block_on(async move {
            #[cfg(unix)]
            let signals = Signals {
                is_reload_due: false,
                has_terminal,
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
                hangup,
            };
            #[cfg(not(unix))]
            let signals = Signals { is_reload_due: false };
            run(signals).await
        });
        // A thread that waits for a file system that hangs ends with the process.
        runtime.shutdown_timeout(THREADS_TIME_MAX);
        done
    }
}

/// The signals of a server.
pub(crate) struct Signals {
    /// Whether a signal to reload came before there was anything to reload.
    is_reload_due: bool,
    /// Whether there was a terminal at the start. If it is gone, SIGHUP means that it was closed, and asks for
    /// shutdown.
    #[cfg(unix)]
    has_terminal: bool,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    hangup: Signal,
}

/// What a signal asks for.
enum Demand {
    End(&'static str),
    Reload,
}

impl Signals {
    /// Waits for the first signal to end, and reloads at each that asks for it. A second signal to end, while requests
    /// finish, ends the process at once.
    pub(crate) async fn wait(mut self, mut reload: impl FnMut()) {
        if self.is_reload_due {
            reload();
        }
        let name = loop {
            match self.demand().await {
                Demand::End(name) => break name,
                Demand::Reload => reload(),
            }
        };
        tracing::info!(signal = name, "shutting down: requests in flight finish first");
        tokio::spawn(async move {
            let name = self.end().await;
            tracing::warn!(signal = name, "shutting down at once");
            logging::flush(Duration::from_millis(100));
            std::process::exit(EXIT_INTERRUPTED);
        });
    }

    /// Waits for the next signal to end. One to reload is kept for [`Signals::wait`].
    pub(crate) async fn end(&mut self) -> &'static str {
        loop {
            match self.demand().await {
                Demand::End(name) => return name,
                Demand::Reload => self.is_reload_due = true,
            }
        }
    }

    #[cfg(unix)]
    async fn demand(&mut self) -> Demand {
        tokio::select! {
            _ = self.terminate.recv() => Demand::End("SIGTERM"),
            _ = self.interrupt.recv() => Demand::End("SIGINT"),
            _ = self.hangup.recv() => match self.has_terminal && !std::io::stdin().is_terminal() {
                true => Demand::End("SIGHUP"),
                false => Demand::Reload,
            },
        }
    }

    #[cfg(not(unix))]
    async fn demand(&mut self) -> Demand {
        // Without signals nothing can ask for shutdown, and the process serves until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Demand::End("interrupt")
    }
}

/// What shells report for a process that an interrupt ended.
pub(crate) const EXIT_INTERRUPTED: i32 = 130;
/// What shells report for a process that a hangup ended.
#[cfg(unix)]
const EXIT_HANGUP: i32 = 129;
/// How long threads that read and write files may go on when a command is over.
const THREADS_TIME_MAX: Duration = Duration::from_secs(5);
