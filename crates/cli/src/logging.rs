//! Log lines on standard error, for people or as JSON, and panics among them.

use crate::settings::Settings;
use crate::settings::value::LogFormat;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts logging for the whole process.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<()> {
    let filter = format!("{STORE_LEVELS},{}", settings.log_level);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(filter)?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match settings.log_format {
        LogFormat::Human => lines.try_init(),
        LogFormat::Json => lines.json().with_current_span(true).with_span_list(false).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// A panic is a log line like any other, so that a reader of JSON sees it too.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let backtrace = std::backtrace::Backtrace::capture();
    tracing::error!(place, panic = text.unwrap_or("no text"), %backtrace, "a defect of the server: please report it");
}

/// The store below tells its inner life at the level where ours tells what an operator wants to know. A level for
/// these modules in the setting comes later in the text and wins.
const STORE_LEVELS: &str = "fjall=warn,lsm_tree=warn";
