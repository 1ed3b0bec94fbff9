//! The services that suites are for, and where a server's are found.

use std::collections::BTreeMap;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Error, ensure};
use serde::Deserialize;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Service {
    #[default]
    Table,
    Queue,
    Blob,
}

impl Service {
    pub(crate) const ALL: [Self; 3] = [Self::Table, Self::Queue, Self::Blob];

    /// The service's name as connection strings spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "Table",
            Self::Queue => "Queue",
            Self::Blob => "Blob",
        }
    }
}

/// A connection string's endpoints, account and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoints {
    text: String,
    of: BTreeMap<Service, String>,
    account: String,
    key: String,
}

impl Endpoints {
    /// The connection string itself.
    pub(crate) fn connection_string(&self) -> &str {
        &self.text
    }

    /// Sets the variables by which a child finds the server; a service that the server does not run has no variable.
    pub(crate) fn set_variables<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for service in Service::ALL {
            let variable = format!("LARIMAR_{}_ENDPOINT", service.name().to_uppercase());
            match self.of.get(&service) {
                Some(endpoint) => command.env(variable, endpoint),
                None => command.env_remove(variable),
            };
        }
        command.env("LARIMAR_ACCOUNT", &self.account).env("LARIMAR_KEY", &self.key);
        command.env("LARIMAR_CONNECTION_STRING", &self.text)
    }
}

impl FromStr for Endpoints {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let fields: BTreeMap<&str, &str> = text.split(';').filter_map(|field| field.split_once('=')).collect();
        let value = |name: &str| fields.get(name).map_or("", |value| value.trim_end_matches('/')).to_owned();
        let endpoint = |service: Service| (service, value(&format!("{}Endpoint", service.name())));
        let of: BTreeMap<_, _> = Service::ALL.map(endpoint).into_iter().filter(|(_, url)| !url.is_empty()).collect();
        ensure!(!of.is_empty(), "a connection string with endpoints is expected");
        let key = fields.get("AccountKey").copied().unwrap_or_default().to_owned();
        let account = value("AccountName");
        ensure!(
            !account.is_empty() && !key.is_empty(),
            "a connection string with AccountName and AccountKey is expected"
        );
        Ok(Self { text: text.to_owned(), of, account, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5//==;\
                       BlobEndpoint=http://127.0.0.1:1/a;QueueEndpoint=http://127.0.0.1:2/a/;\
                       TableEndpoint=http://127.0.0.1:3/a;";

    #[test]
    fn a_connection_string_has_endpoints_account_and_key() {
        let endpoints: Endpoints = ALL.parse().expect("parses");
        let mut command = Command::new("true");
        endpoints.set_variables(&mut command);
        let value = |name: &str| {
            let (_, value) = command.get_envs().find(|(key, _)| *key == name).expect("is named");
            value.and_then(|value| value.to_str())
        };
        assert_eq!(value("LARIMAR_BLOB_ENDPOINT"), Some("http://127.0.0.1:1/a"));
        assert_eq!(value("LARIMAR_QUEUE_ENDPOINT"), Some("http://127.0.0.1:2/a"));
        assert_eq!(value("LARIMAR_TABLE_ENDPOINT"), Some("http://127.0.0.1:3/a"));
        assert_eq!(value("LARIMAR_CONNECTION_STRING"), Some(ALL));
        assert_eq!((value("LARIMAR_ACCOUNT"), value("LARIMAR_KEY")), (Some("a"), Some("a2V5//==")));
    }

    #[test]
    fn a_service_that_does_not_run_has_no_endpoint() {
        let endpoints: Endpoints = "AccountName=a;AccountKey=k;TableEndpoint=http://h:1/a".parse().expect("parses");
        assert_eq!(endpoints.of.keys().collect::<Vec<_>>(), [&Service::Table]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "UseDevelopmentStorage=true", "TableEndpoint=http://h:1/a", "AccountName=a;AccountKey=k"] {
            assert!(text.parse::<Endpoints>().is_err(), "{text}");
        }
    }
}
