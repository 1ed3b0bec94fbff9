//! Log lines on standard error, as text or as JSON, including panics.

mod writer;

pub(crate) use writer::flush;

use crate::settings::Settings;
use crate::settings::value::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::{EnvFilter, reload};
use writer::LogWriter;

/// Changes what is logged while the process runs.
pub(crate) struct LogLevel(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send>);

impl LogLevel {
    /// Logs by these settings from now on.
    pub(crate) fn change(&self, settings: &Settings) -> anyhow::Result<()> {
        Ok((self.0)(filter(settings)?)?)
    }
}

/// Starts logging for the whole process.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<LogLevel> {
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter(settings)?)
        .with_writer(|| LogWriter)
        // It would report a line that cannot be written to standard error too, and panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    let (started, level) = match settings.logs.format {
        LogFormat::Human => {
            let lines = lines.with_filter_reloading();
            let handle = lines.reload_handle();
            (lines.try_init(), LogLevel(Box::new(move |filter| handle.reload(filter))))
        }
        LogFormat::Json => {
            let lines = lines.json().with_current_span(true).with_span_list(false).with_filter_reloading();
            let handle = lines.reload_handle();
            (lines.try_init(), LogLevel(Box::new(move |filter| handle.reload(filter))))
        }
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))?;
    writer::start()?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(level)
}

fn filter(settings: &Settings) -> anyhow::Result<EnvFilter> {
    Ok(EnvFilter::try_new(format!("{STORE_LEVELS},{}", settings.logs.level))?)
}

/// Logs a panic as a log line, so that it is JSON where the log is.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let backtrace = std::backtrace::Backtrace::capture();
    tracing::error!(place, panic = text.unwrap_or("(no message)"), %backtrace, "a defect of the server: please report it");
}

/// At our default level the libraries of the store log internals. A level for these modules in the setting comes later in
/// the text and overrides this.
const STORE_LEVELS: &str = "fjall=warn,lsm_tree=warn";
