//! The effective settings as TOML, each with its source, and with secrets hidden.

use super::{Resolved, SETTINGS, Settings};
use std::fmt::{self, Display};

impl Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for setting in SETTINGS {
            let source = self.source(setting.name);
            match setting.shown(&self.settings) {
                Some(value) => writeln!(f, "{} = {value} # {source}", setting.name)?,
                None => writeln!(f, "# {} is not set", setting.name)?,
            }
        }
        Ok(())
    }
}

/// Accounts by name, their keys hidden.
pub(super) fn accounts(settings: &Settings) -> Option<toml::Value> {
    let hidden = || toml::Value::from(HIDDEN);
    let shown = settings.accounts.iter().map(|account| {
        let mut table = toml::Table::new();
        table.insert("name".to_owned(), account.name.as_str().into());
        table.insert("key".to_owned(), hidden());
        if account.key2.is_some() {
            table.insert("key2".to_owned(), hidden());
        }
        toml::Value::Table(table)
    });
    Some(toml::Value::Array(shown.collect()))
}

/// Whether there is a password.
pub(super) fn database_password(settings: &Settings) -> Option<toml::Value> {
    settings.database_password.as_ref().map(|_| HIDDEN.into())
}

const HIDDEN: &str = "(hidden)";
