//! Reads connection strings as the Azure SDKs do.

use crate::credential::{Credential, InvalidKey, SasToken, SharedKey};
use crate::service::{Service, endpoint_key, secondary_endpoint_key};
use http::Uri;
use larimar_wire::signature::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};

/// Why a connection string is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionStringError {
    /// A part is not of the form `Name=value`.
    #[error("expected parts of the form Name=value separated by semicolons, found '{0}'")]
    Syntax(String),
    /// A name comes twice.
    #[error("'{0}' comes twice")]
    Twice(String),
    /// The endpoints are not given, nor the account that they could be made from.
    #[error("expected an AccountName or endpoints")]
    Endpoints,
    /// There is nothing to prove who the client is.
    #[error("expected an AccountName with its AccountKey, or a SharedAccessSignature")]
    Credential,
    /// The key is malformed.
    #[error(transparent)]
    Key(#[from] InvalidKey),
}

/// What a connection string says.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionString {
    /// Absent if the string has addresses only: they, or the caller, may have it.
    pub(crate) credential: Option<Credential>,
    /// Addresses of the primary and of the secondary, by service.
    pub(crate) endpoints: Vec<(Service, String, Option<String>)>,
}

impl ConnectionString {
    pub(crate) fn parse(text: &str) -> Result<Self, ConnectionStringError> {
        let parts = Parts::parse(text)?;
        if parts.get("UseDevelopmentStorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Self::development(parts.get("DevelopmentStorageProxyUri").unwrap_or("http://127.0.0.1"));
        }
        let account = parts.get("AccountName");
        let credential = match (account, parts.get("AccountKey"), parts.get("SharedAccessSignature")) {
            (Some(account), Some(key), _) => Some(Credential::SharedKey(SharedKey::new(account, key)?)),
            (_, _, Some(sas)) => Some(Credential::Sas(SasToken::new(sas))),
            _ => None,
        };
        let protocol = parts.get("DefaultEndpointsProtocol").unwrap_or("https");
        let suffix = parts.get("EndpointSuffix").unwrap_or("core.windows.net");
        let mut endpoints = Vec::new();
        for service in [Service::Table, Service::Queue, Service::Blob] {
            let name = service.name();
            let of_account =
                |ending: &str| account.map(|account| format!("{protocol}://{account}{ending}.{name}.{suffix}"));
            let primary = parts.get(endpoint_key(service)).map(str::to_owned);
            // A secondary is made up only where the primary is.
            let secondary = parts.get(secondary_endpoint_key(service)).map(str::to_owned);
            let secondary = secondary.or_else(|| if primary.is_none() { of_account("-secondary") } else { None });
            if let Some(primary) = primary.or_else(|| of_account("")) {
                endpoints.push((service, primary, secondary));
            }
        }
        if endpoints.is_empty() {
            return Err(ConnectionStringError::Endpoints);
        }
        Ok(Self { credential, endpoints })
    }

    /// The development account at this address, of which scheme and host count: the ports are those of the services.
    fn development(address: &str) -> Result<Self, ConnectionStringError> {
        let key = SharedKey::new(DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)?;
        let parsed: Option<Uri> = address.parse().ok();
        let host = parsed.as_ref().and_then(|uri| Some(format!("{}://{}", uri.scheme_str()?, uri.host()?)));
        let host = host.ok_or_else(|| ConnectionStringError::Syntax(address.chars().take(64).collect()))?;
        let endpoints = [(Service::Table, 10002), (Service::Queue, 10001), (Service::Blob, 10000)]
            .map(|(service, port)| {
                let primary = format!("{host}:{port}/{DEVELOPMENT_ACCOUNT}");
                let secondary = format!("{primary}-secondary");
                (service, primary, Some(secondary))
            })
            .to_vec();
        Ok(Self { credential: Some(Credential::SharedKey(key)), endpoints })
    }
}

/// The parts of a connection string, by name in any case.
struct Parts<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Parts<'a> {
    fn parse(text: &'a str) -> Result<Self, ConnectionStringError> {
        let mut parts: Vec<(&str, &str)> = Vec::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            // Values may hold equals signs, as keys and signatures do. A part that is refused is not shown whole.
            let (name, value) =
                part.split_once('=').ok_or_else(|| ConnectionStringError::Syntax(part.chars().take(16).collect()))?;
            let name = name.trim();
            if parts.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                return Err(ConnectionStringError::Twice(name.to_owned()));
            }
            parts.push((name, value.trim()));
        }
        Ok(Self(parts))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> (String, Option<String>) {
        let parsed = ConnectionString::parse(text).expect("a connection string");
        let (_, primary, secondary) =
            parsed.endpoints.into_iter().find(|(service, ..)| *service == Service::Table).expect("tables");
        (primary, secondary)
    }

    #[test]
    fn endpoints_are_given_or_made_from_the_account() {
        let dev = table("UseDevelopmentStorage=true");
        assert_eq!(dev.0, "http://127.0.0.1:10002/devstoreaccount1");
        assert_eq!(dev.1.as_deref(), Some("http://127.0.0.1:10002/devstoreaccount1-secondary"));
        let docker = table("DevelopmentStorageProxyUri=http://storage:8888/;UseDevelopmentStorage=TRUE;");
        assert_eq!(docker.0, "http://storage:10002/devstoreaccount1", "the port is that of the service");
        let cloud =
            table("DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5;EndpointSuffix=core.windows.net");
        assert_eq!(cloud.0, "https://acc.table.core.windows.net");
        assert_eq!(cloud.1.as_deref(), Some("https://acc-secondary.table.core.windows.net"));
        let cosmos = "AccountName=acc;AccountKey=a2V5MQ==;TableEndpoint=https://acc.table.cosmos.azure.com:443/;";
        assert_eq!(table(cosmos), ("https://acc.table.cosmos.azure.com:443/".to_owned(), None));
        let sas = "TableEndpoint=https://h/;SharedAccessSignature=sv=2019-02-02&sig=a%3D";
        assert!(
            matches!(ConnectionString::parse(sas).map(|parsed| parsed.credential), Ok(Some(Credential::Sas(sas))) if sas.0 == "sv=2019-02-02&sig=a%3D")
        );
    }

    #[test]
    fn parts_come_in_any_order_and_may_be_empty() {
        let text = ";; tableendpoint = http://h:1/acc ;EndpointSuffix=;SharedAccessSignature=;\n\
                    AccountKey=a2V5MQ==;QueueEndpoint=;ACCOUNTNAME=acc;Unknown=1;";
        let parsed = ConnectionString::parse(text).expect("a connection string");
        assert!(matches!(&parsed.credential, Some(Credential::SharedKey(key)) if key.account() == "acc"));
        let [tables, queues, blobs] = &parsed.endpoints[..] else { panic!("three services") };
        assert_eq!((tables.1.as_str(), &tables.2), ("http://h:1/acc", &None));
        assert_eq!(queues.1, "https://acc.queue.core.windows.net");
        assert_eq!(blobs.2.as_deref(), Some("https://acc-secondary.blob.core.windows.net"));
        let sas =
            "AccountName=acc;SharedAccessSignature=?sv=1&sig=a%3D;DefaultEndpointsProtocol=http;EndpointSuffix=c.cn";
        let parsed = ConnectionString::parse(sas).expect("a connection string");
        assert!(matches!(&parsed.credential, Some(Credential::Sas(sas)) if sas.0 == "sv=1&sig=a%3D"));
        assert_eq!(parsed.endpoints[0].1, "http://acc.table.c.cn");
    }

    #[test]
    fn what_is_missing_or_malformed_is_named() {
        use ConnectionStringError as E;
        for (text, expected) in [
            ("", E::Endpoints),
            ("SharedAccessSignature=sig=1", E::Endpoints),
            ("nonsense", E::Syntax("nonsense".to_owned())),
            ("AccountName=a;accountname=b", E::Twice("accountname".to_owned())),
            ("AccountName=a;AccountKey=%%%", E::Key(InvalidKey)),
            ("UseDevelopmentStorage=true;DevelopmentStorageProxyUri=storage", E::Syntax("storage".to_owned())),
        ] {
            assert_eq!(ConnectionString::parse(text).map(|_| ()), Err(expected), "{text}");
        }
    }
}
