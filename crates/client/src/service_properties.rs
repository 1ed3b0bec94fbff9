//! The settings of the Table service (logging, metrics, CORS) and the state of its replication.

use crate::pipeline::{Call, Pipeline};
use crate::stored_policy::without_mark;
use crate::table::TableService;
use crate::{Error, Result, Timestamp};
use http::Method;
use http::header::ACCEPT;
use larimar_wire::cors::CorsRule as WireRule;
use larimar_wire::sas::Service;
use larimar_wire::service_properties as wire;
use larimar_wire::xml::{Element, XmlError};
use std::time::Duration;

/// The settings of an account's Table service. To change some, read them, change them, and set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceProperties {
    /// Which requests are logged.
    pub logging: Logging,
    /// Metrics by the hour.
    pub hour_metrics: Metrics,
    /// Metrics by the minute.
    pub minute_metrics: Metrics,
    /// The rules for requests of browsers, up to five, in the order they are tried.
    pub cors: Vec<CorsRule>,
}

/// Which requests are logged, and for how long logs are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logging {
    /// Reads are logged.
    pub read: bool,
    /// Writes are logged.
    pub write: bool,
    /// Deletes are logged.
    pub delete: bool,
    /// Days that logs are kept, 1 to 365; for ever if absent.
    pub retention_days: Option<u32>,
}

/// Which metrics are collected, and for how long they are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Metrics are collected.
    pub enabled: bool,
    /// They are collected for each operation too.
    pub include_apis: bool,
    /// Days that metrics are kept, 1 to 365; for ever if absent.
    pub retention_days: Option<u32>,
}

/// A rule for requests of browsers that come from other origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorsRule {
    /// Origins that are allowed; `*` means all.
    pub allowed_origins: Vec<String>,
    /// HTTP methods that are allowed.
    pub allowed_methods: Vec<String>,
    /// Request headers that are allowed; `*` at the end makes a prefix.
    pub allowed_headers: Vec<String>,
    /// Response headers that scripts may read; `*` at the end makes a prefix.
    pub exposed_headers: Vec<String>,
    /// How long a browser may keep the answer to its first question, in whole seconds.
    pub max_age: Duration,
}

impl CorsRule {
    /// A rule that allows these methods to these origins, and no headers yet.
    #[must_use]
    pub fn new<O: Into<String>, M: Into<String>>(
        origins: impl IntoIterator<Item = O>,
        methods: impl IntoIterator<Item = M>,
    ) -> Self {
        Self {
            allowed_origins: origins.into_iter().map(Into::into).collect(),
            allowed_methods: methods.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// The state of the secondary that reads can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replication {
    /// The secondary has everything that was written before this time.
    Live(Timestamp),
    /// The secondary is being filled.
    Bootstrap,
    /// The secondary cannot be reached.
    Unavailable,
}

impl TableService {
    /// The settings of the service.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn properties(&self) -> Result<ServiceProperties> {
        let reply = self.pipeline.send(service_call("GetTableServiceProperties", Method::GET, "properties")).await?;
        let blank = ServiceProperties::default().into_wire();
        let properties = blank.updated(&reply.body, Service::Table);
        properties.map(ServiceProperties::from_wire).map_err(|error| Error::Answer(error.to_string()))
    }

    /// Sets the settings of the service, all of them.
    ///
    /// # Errors
    /// Settings that the service refuses; where the client can detect that, before they are sent.
    pub async fn set_properties(&self, properties: &ServiceProperties) -> Result<()> {
        let properties = properties.clone().into_wire();
        let mut body = Vec::new();
        properties.write(&mut body, Service::Table);
        properties.updated(&body, Service::Table).map_err(|error| Error::Invalid(error.to_string()))?;
        let call = service_call("SetTableServiceProperties", Method::PUT, "properties");
        self.pipeline.send(call.body("application/xml", without_mark(body))).await?;
        Ok(())
    }

    /// The state of the secondary, which is asked itself.
    ///
    /// # Errors
    /// An account without the address of a secondary, or what the service refuses.
    pub async fn stats(&self) -> Result<Replication> {
        let Some(secondary) = &self.pipeline.secondary else {
            return Err(Error::Invalid("expected an account with the address of its secondary".to_owned()));
        };
        let pipeline = Pipeline { primary: secondary.clone(), secondary: None, ..self.pipeline.as_ref().clone() };
        let reply = pipeline.send(service_call("GetTableServiceStats", Method::GET, "stats")).await?;
        read_stats(&reply.body).ok_or_else(|| Error::Answer("expected the state of a secondary".to_owned()))
    }
}

fn service_call(name: &'static str, method: Method, comp: &str) -> Call {
    let call = Call::new(name, method, "/").parameter("restype", "service").parameter("comp", comp);
    call.header(ACCEPT, "application/xml")
}

fn read_stats(document: &[u8]) -> Option<Replication> {
    let read = || -> Result<Option<Replication>, XmlError> {
        let root = Element::parse(document)?;
        let Some(state) = root.child("GeoReplication")? else { return Ok(None) };
        let time = state.child_text("LastSyncTime")?.and_then(|time| httpdate::parse_http_date(time).ok());
        Ok(match state.child_text("Status")? {
            Some("live") => time.map(|time| Replication::Live(time.into())),
            Some("bootstrap") => Some(Replication::Bootstrap),
            Some("unavailable") => Some(Replication::Unavailable),
            _ => None,
        })
    };
    read().ok().flatten()
}

impl ServiceProperties {
    fn into_wire(self) -> wire::ServiceProperties {
        let Logging { read, write, delete, retention_days } = self.logging;
        let metrics =
            |Metrics { enabled, include_apis, retention_days }| wire::Metrics { enabled, include_apis, retention_days };
        wire::ServiceProperties {
            logging: wire::Logging { version: wire::LoggingVersion::One, read, write, delete, retention_days },
            hour_metrics: metrics(self.hour_metrics),
            minute_metrics: metrics(self.minute_metrics),
            cors: self.cors.into_iter().map(CorsRule::into_wire).collect(),
            blob: wire::BlobProperties::default(),
        }
    }

    fn from_wire(properties: wire::ServiceProperties) -> Self {
        let wire::Logging { version: _, read, write, delete, retention_days } = properties.logging;
        let metrics =
            |wire::Metrics { enabled, include_apis, retention_days }| Metrics { enabled, include_apis, retention_days };
        Self {
            logging: Logging { read, write, delete, retention_days },
            hour_metrics: metrics(properties.hour_metrics),
            minute_metrics: metrics(properties.minute_metrics),
            cors: properties.cors.into_iter().map(CorsRule::from_wire).collect(),
        }
    }
}

impl CorsRule {
    fn into_wire(self) -> WireRule {
        let Self { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age } = self;
        let max_age_seconds = u32::try_from(max_age.as_secs()).unwrap_or(u32::MAX);
        WireRule { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age_seconds }
    }

    fn from_wire(rule: WireRule) -> Self {
        let WireRule { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age_seconds } = rule;
        let max_age = Duration::from_secs(max_age_seconds.into());
        Self { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_secondary_is_read() {
        let document = |inner: &str| {
            format!(
                "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceStats><GeoReplication>{inner}</GeoReplication></StorageServiceStats>"
            )
        };
        let time: Timestamp = "2021-10-18T23:44:02Z".parse().expect("a time");
        for (inner, expected) in [
            (
                "<Status>live</Status><LastSyncTime>Mon, 18 Oct 2021 23:44:02 GMT</LastSyncTime>",
                Some(Replication::Live(time)),
            ),
            ("<Status>bootstrap</Status><LastSyncTime />", Some(Replication::Bootstrap)),
            ("<Status>unavailable</Status><LastSyncTime></LastSyncTime>", Some(Replication::Unavailable)),
            ("<Status>live</Status><LastSyncTime>yesterday</LastSyncTime>", None),
            ("", None),
        ] {
            assert_eq!(read_stats(document(inner).as_bytes()), expected, "{inner}");
        }
    }
}
