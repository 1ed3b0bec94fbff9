//! The settings of an account's service: logging, metrics and CORS rules, and those that only the Blob
//! service has, as XML.
//!
//! They are stored as the text that [`ServiceProperties::write`] makes, and read back by applying that
//! text to the defaults.

mod blob;

pub use blob::{BlobProperties, DeleteRetention, StaticWebsite};

use crate::cors::{CorsRule, CorsRuleError};
use crate::error_body::ErrorReply;
use crate::error_code::ErrorCode;
use crate::sas::Service;
use crate::xml::{self, Element, XmlError};
use larimar_model::limits;

/// The settings of one of an account's services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceProperties {
    /// Request logs.
    pub logging: Logging,
    /// Metrics by the hour.
    pub hour_metrics: Metrics,
    /// Metrics by the minute.
    pub minute_metrics: Metrics,
    /// CORS rules in the order they are tried.
    pub cors: Vec<CorsRule>,
    /// What only the Blob service has.
    pub blob: BlobProperties,
}

/// What is logged, and for how long it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logging {
    /// The version of the log entries' form.
    pub version: LoggingVersion,
    /// Reads are logged.
    pub read: bool,
    /// Writes are logged.
    pub write: bool,
    /// Deletes are logged.
    pub delete: bool,
    /// Days to keep logs; for ever if absent.
    pub retention_days: Option<u32>,
}

/// The forms of log entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoggingVersion {
    /// `1.0`.
    #[default]
    One,
    /// `2.0`, which the Blob and Queue services know too.
    Two,
}

impl Logging {
    /// Whether anything is logged.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.read || self.write || self.delete
    }
}

impl LoggingVersion {
    /// The version as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::One => "1.0",
            Self::Two => "2.0",
        }
    }
}

/// Which metrics are collected, and for how long they are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Metrics are collected.
    pub enabled: bool,
    /// They are collected for each operation too.
    pub include_apis: bool,
    /// Days to keep metrics; for ever if absent.
    pub retention_days: Option<u32>,
}

/// Why settings are refused: 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropertiesError {
    /// The document does not hold settings.
    #[error("expected a document of StorageServiceProperties")]
    Xml(#[from] XmlError),
    /// A value that is missing or not of its form.
    #[error("expected a valid value of {0}")]
    Value(&'static str),
    /// A retention outside of its range.
    #[error("expected a retention of 1 to 365 days")]
    Retention,
    /// Too many or too large CORS rules.
    #[error("expected at most 5 CORS rules of at most 2 KiB together")]
    CorsTooLarge,
    /// A CORS rule that is not allowed.
    #[error(transparent)]
    CorsRule(#[from] CorsRuleError),
    /// A setting that the service does not have.
    #[error("expected no {0}, which is a setting of the Blob service")]
    OtherService(&'static str),
}

impl PropertiesError {
    /// The code to answer with.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::CorsRule(CorsRuleError::TooMany) => ErrorCode::InvalidXmlNodeValue,
            _ => ErrorCode::InvalidXmlDocument,
        }
    }
}

impl From<PropertiesError> for ErrorReply {
    fn from(error: PropertiesError) -> Self {
        Self::new(error.code())
    }
}

/// The setting of the version that requests without one have.
const DEFAULT_VERSION: &str = "DefaultServiceVersion";
/// Characters of all CORS rules together (service: CORS support).
const CORS_CHARS_MAX: usize = 2048;
/// The only version of metrics settings that the services know.
const ANALYTICS_VERSION: &str = "1.0";

/// The settings of a fresh account: no logs, metrics by the hour for a week.
impl Default for ServiceProperties {
    fn default() -> Self {
        Self {
            logging: Logging::default(),
            hour_metrics: Metrics { enabled: true, include_apis: true, retention_days: Some(7) },
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
            blob: BlobProperties::default(),
        }
    }
}

impl ServiceProperties {
    /// These settings with those of a document in their place. Parts that the document leaves out stay.
    ///
    /// # Errors
    /// Anything that the service's reference does not allow.
    pub fn updated(&self, document: &[u8], service: Service) -> Result<Self, PropertiesError> {
        let root = Element::parse(document)?;
        if root.name != "StorageServiceProperties" {
            return Err(XmlError::Element.into());
        }
        // Parts of other services (static websites and the like) are passed over, as later versions add more.
        let mut updated = self.clone();
        if let Some(logging) = root.child("Logging")? {
            updated.logging = parse_logging(logging, service)?;
        }
        // Before 2013-08-15 there was one kind of metrics, by the hour.
        for name in ["Metrics", "HourMetrics"] {
            if let Some(metrics) = root.child(name)? {
                updated.hour_metrics = parse_metrics(metrics)?;
            }
        }
        if let Some(metrics) = root.child("MinuteMetrics")? {
            updated.minute_metrics = parse_metrics(metrics)?;
        }
        if let Some(cors) = root.child("Cors")? {
            updated.cors = parse_cors(cors)?;
        }
        if service == Service::Blob {
            updated.blob = updated.blob.updated(&root)?;
        } else if root.child(DEFAULT_VERSION)?.is_some() {
            return Err(PropertiesError::OtherService(DEFAULT_VERSION));
        }
        Ok(updated)
    }

    /// Appends the body of Get Service Properties.
    pub fn write(&self, out: &mut Vec<u8>, service: Service) {
        xml::write_start(out);
        xml::write_element(out, "StorageServiceProperties", |out| {
            xml::write_element(out, "Logging", |out| write_logging(out, self.logging));
            xml::write_element(out, "HourMetrics", |out| write_metrics(out, self.hour_metrics));
            xml::write_element(out, "MinuteMetrics", |out| write_metrics(out, self.minute_metrics));
            xml::write_element(out, "Cors", |out| self.cors.iter().for_each(|rule| rule.write(out)));
            if service == Service::Blob {
                self.blob.write(out);
            }
        });
    }
}

fn parse_logging(element: &Element, service: Service) -> Result<Logging, PropertiesError> {
    element.expect_only(&["Version", "Read", "Write", "Delete", "RetentionPolicy"])?;
    let version = match element.child_text("Version")? {
        None | Some("1.0") => LoggingVersion::One,
        Some("2.0") if service != Service::Table => LoggingVersion::Two,
        Some(_) => return Err(PropertiesError::Value("Version")),
    };
    Ok(Logging {
        version,
        read: parse_flag(element, "Read")?,
        write: parse_flag(element, "Write")?,
        delete: parse_flag(element, "Delete")?,
        retention_days: parse_retention(element)?,
    })
}

fn parse_metrics(element: &Element) -> Result<Metrics, PropertiesError> {
    element.expect_only(&["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
    check_version(element)?;
    let enabled = parse_flag(element, "Enabled")?;
    let include_apis = enabled && element.child("IncludeAPIs")?.is_some() && parse_flag(element, "IncludeAPIs")?;
    Ok(Metrics { enabled, include_apis, retention_days: parse_retention(element)? })
}

fn parse_retention(element: &Element) -> Result<Option<u32>, PropertiesError> {
    let Some(policy) = element.child("RetentionPolicy")? else { return Ok(None) };
    policy.expect_only(&["Enabled", "Days"])?;
    if !parse_flag(policy, "Enabled")? {
        return Ok(None);
    }
    let days = policy.child_text("Days")?.and_then(|text| text.parse().ok());
    days.filter(|days| limits::RETENTION_DAYS.contains(days)).map(Some).ok_or(PropertiesError::Retention)
}

fn parse_cors(element: &Element) -> Result<Vec<CorsRule>, PropertiesError> {
    element.expect_only(&["CorsRule"])?;
    if element.children.len() > limits::CORS_RULES_MAX {
        return Err(PropertiesError::CorsTooLarge);
    }
    let mut rules = Vec::with_capacity(element.children.len());
    for child in &element.children {
        rules.push(CorsRule::parse(child)?);
    }
    if rules.iter().map(CorsRule::size).sum::<usize>() > CORS_CHARS_MAX {
        return Err(PropertiesError::CorsTooLarge);
    }
    Ok(rules)
}

fn check_version(element: &Element) -> Result<(), PropertiesError> {
    match element.child_text("Version")? {
        None | Some(ANALYTICS_VERSION) => Ok(()),
        Some(_) => Err(PropertiesError::Value("Version")),
    }
}

fn parse_flag(element: &Element, name: &'static str) -> Result<bool, PropertiesError> {
    match element.child_text(name)? {
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(PropertiesError::Value(name)),
    }
}

fn write_logging(out: &mut Vec<u8>, logging: Logging) {
    xml::write_text(out, "Version", logging.version.as_str());
    write_flag(out, "Read", logging.read);
    write_flag(out, "Write", logging.write);
    write_flag(out, "Delete", logging.delete);
    write_retention(out, logging.retention_days);
}

fn write_metrics(out: &mut Vec<u8>, metrics: Metrics) {
    xml::write_text(out, "Version", ANALYTICS_VERSION);
    write_flag(out, "Enabled", metrics.enabled);
    if metrics.enabled {
        write_flag(out, "IncludeAPIs", metrics.include_apis);
    }
    write_retention(out, metrics.retention_days);
}

fn write_retention(out: &mut Vec<u8>, days: Option<u32>) {
    xml::write_element(out, "RetentionPolicy", |out| {
        write_flag(out, "Enabled", days.is_some());
        if let Some(days) = days {
            xml::write_text(out, "Days", &days.to_string());
        }
    });
}

fn write_flag(out: &mut Vec<u8>, name: &str, flag: bool) {
    xml::write_text(out, name, if flag { "true" } else { "false" });
}

#[cfg(test)]
mod tests;
