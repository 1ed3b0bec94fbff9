//! The effective settings as TOML, each with its source. Secrets are comments, which say where they come from.

use super::{Kind, Resolved, Setting, Settings, all_settings, value};
use std::fmt::{self, Display};

impl Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for setting in all_settings() {
            // A line break in the path of the file would end the comment.
            let source = self.source(setting.name).to_string().replace(char::is_control, "?");
            if has_secret(setting, &self.settings) {
                writeln!(f, "# {} holds a secret, which is left out here ({source}):", setting.name)?;
            }
            match setting.shown(&self.settings) {
                Some(value) if setting.kind == Kind::Secret => {
                    writeln!(f, "# {}: {} ({source})", setting.name, text(&value))?
                }
                Some(value) => writeln!(f, "{} = {} # {source}", setting.name, absolute(setting, value))?,
                None => writeln!(f, "# {} is not set{}", setting.name, instead(setting, &self.settings))?,
            }
        }
        Ok(())
    }
}

/// Accounts by name.
pub(super) fn accounts(settings: &Settings) -> Option<toml::Value> {
    let shown = settings.accounts.iter().map(|account| match account.has_well_known_key() {
        true => format!("{} with the well-known key", account.name),
        false => format!("{} with {}", account.name, if account.key2.is_some() { "two keys" } else { "a key" }),
    });
    Some(shown.collect::<Vec<_>>().join(", ").into())
}

/// Whether there is a password.
pub(super) fn database_password(settings: &Settings) -> Option<toml::Value> {
    settings.database_password.as_ref().map(|_| "set and not shown".into())
}

/// Whether what is shown of a setting is not all of it.
fn has_secret(setting: &Setting, settings: &Settings) -> bool {
    match setting.name {
        "engine" => settings.engine.has_secret(),
        "blob_store" => settings.blob_store.as_ref().is_some_and(|url| url.without_secrets() != url.with_secrets()),
        _ => false,
    }
}

/// A path that means the same in a file that is elsewhere.
fn absolute(setting: &Setting, value: toml::Value) -> toml::Value {
    match value.as_str().filter(|_| setting.kind == Kind::Path).map(std::path::absolute) {
        Some(Ok(path)) => path.display().to_string().into(),
        _ => value,
    }
}

/// What holds while a setting is not set, where that depends on the machine.
fn instead(setting: &Setting, settings: &Settings) -> String {
    match setting.name {
        "in_flight_bytes_max" => format!(", which means {} here", value::show_bytes(settings.in_flight_bytes())),
        _ => String::new(),
    }
}

fn text(value: &toml::Value) -> &str {
    value.as_str().unwrap_or_default()
}
