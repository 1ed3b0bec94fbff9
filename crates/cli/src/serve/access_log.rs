//! The access log of a server: opened before anything else, so that a wrong path changes nothing, and written to the end.

use crate::settings::{Resolved, SettingsError};
use larimar_server::{AccessLog, Metrics};
use std::path::{Path, absolute};
use std::sync::Arc;
use std::time::Duration;

/// Opens the access log, if the settings name one.
pub(super) fn start(resolved: &Resolved, metrics: &Arc<Metrics>) -> Result<Option<Arc<AccessLog>>, SettingsError> {
    let settings = &resolved.settings;
    let Some(path) = settings.logs.access.as_deref() else { return Ok(None) };
    let is_within = |path: &Path| Some(absolute(path).ok()?.starts_with(absolute(&settings.data_dir).ok()?));
    if settings.has_data_dir() && is_within(path) == Some(true) {
        return Err(resolved.refused_because("access_log", "expected a file outside of the data directory"));
    }
    let started = AccessLog::start(path, Arc::clone(metrics)).map(Some);
    started.map_err(|error| resolved.refused_because("access_log", error.to_string()))
}

/// Waits until the last lines are written, unless the disk is too slow.
pub(super) async fn end(access_log: Option<Arc<AccessLog>>) {
    let Some(access_log) = access_log else { return };
    let closed = tokio::task::spawn_blocking(move || access_log.close(WAIT_MAX));
    if !closed.await.unwrap_or(false) {
        tracing::warn!("the last lines of the access log could not be written in time");
    }
}

const WAIT_MAX: Duration = Duration::from_secs(5);
