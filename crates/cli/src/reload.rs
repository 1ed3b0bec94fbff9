//! SIGHUP: accounts, keys, certificates and the log level are read again while the server runs, and the access log is
//! opened again.
//!
//! All settings are read and checked before any of them changes, so a mistake leaves everything as it was.

use crate::banner::Addresses;
use crate::command_line::CommandLine;
use crate::logging::LogLevel;
use crate::serve::check_keys;
use crate::settings::{Resolved, Settings, SettingsError, Source, all_settings};
use crate::storage;
use larimar_engine::Engine;
use larimar_server::{AccessLog, Storage, TlsCertificate};
use std::sync::Arc;

/// What a running server can change.
pub(crate) struct Reloader<E> {
    pub(crate) line: CommandLine,
    pub(crate) level: LogLevel,
    pub(crate) certificate: Option<Arc<TlsCertificate>>,
    pub(crate) storage: Arc<Storage<E>>,
    pub(crate) addresses: Addresses,
    /// The settings that the server started with.
    pub(crate) started: Resolved,
    pub(crate) access_log: Option<Arc<AccessLog>>,
}

impl<E: Engine> Reloader<E> {
    /// Opens the access log again, then reads the settings again and says how that went.
    pub(crate) fn reload(&self) {
        // Also if the settings are wrong: the old file was rotated away.
        if let Some(access_log) = &self.access_log {
            access_log.reopen();
        }
        match self.try_reload() {
            Err(error) => tracing::error!("the settings are not reloaded and the old ones stay: {error:#}"),
            Ok(settings) => {
                let unused = self.unused(&settings);
                if !unused.is_empty() {
                    tracing::warn!(settings = unused.join(", "), "these settings have changed and need a restart");
                }
                tracing::info!(accounts = settings.accounts.len(), "accounts, certificates and log level are reloaded");
            }
        }
    }

    fn try_reload(&self) -> anyhow::Result<Settings> {
        let resolved = crate::resolve(&self.line)?;
        check_keys(&resolved, &self.addresses)?;
        self.check_accounts(&resolved)?;
        let settings = &resolved.settings;
        let accounts = storage::accounts(settings)?;
        let certificate = match (&self.certificate, &settings.tls_certificate, &settings.tls_key) {
            (Some(current), Some(certificate), Some(key)) => Some((current, TlsCertificate::load(certificate, key)?)),
            _ => None,
        };
        // From here on nothing fails but the logger, which has not changed then.
        self.level.change(settings)?;
        self.storage.set_accounts(accounts);
        if let Some((current, new)) = certificate {
            current.replace_with(&new);
        }
        Ok(resolved.settings)
    }

    /// Accounts that were given do not become the one whose key is public, for example while the file is being written.
    fn check_accounts(&self, resolved: &Resolved) -> Result<(), SettingsError> {
        let is_given = |resolved: &Resolved| resolved.source("accounts") != Source::Default;
        if is_given(&self.started) && !is_given(resolved) {
            return Err(resolved.refused_because("accounts", "there were accounts at the start, and now there is none"));
        }
        Ok(())
    }

    /// The settings that differ from those at the start and are not reloaded.
    fn unused(&self, settings: &Settings) -> Vec<&'static str> {
        let is_reloaded = |name: &str| match name {
            "tls_certificate" | "tls_key" => self.certificate.is_some() && settings.tls_certificate.is_some(),
            _ => ["accounts", "allow_well_known_key", "log_level"].contains(&name),
        };
        let differs = |name: &&str| {
            let setting = crate::settings::find(name).expect("names come from the list");
            setting.shown(settings) != setting.shown(&self.started.settings)
        };
        all_settings().map(|setting| setting.name).filter(|name| !is_reloaded(name)).filter(differs).collect()
    }
}
