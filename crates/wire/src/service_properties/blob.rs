//! The settings that only the Blob service has. They are stored and answered; versions of requests follow
//! the default version, nothing else acts on them.

use super::{DEFAULT_VERSION, PropertiesError, parse_flag, write_flag};
use crate::xml::{self, Element};
use larimar_model::limits;

/// The settings that only the Blob service has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobProperties {
    /// The version that requests without one have: empty after it was set to nothing, none if it never was set.
    pub default_service_version: Option<String>,
    /// Whether deleted blobs are kept.
    pub delete_retention: DeleteRetention,
    /// Whether a container is served as a website.
    pub static_website: StaticWebsite,
}

/// For how long deleted blobs are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteRetention {
    /// Days to keep them; they are not kept if absent.
    pub days: Option<u32>,
    /// Whether kept blobs may be deleted for good.
    pub allow_permanent_delete: bool,
}

/// How the container `$web` is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticWebsite {
    /// Whether it is served.
    pub enabled: bool,
    /// The name of each directory's page.
    pub index_document: Option<String>,
    /// The path of the page of every directory.
    pub default_index_document_path: Option<String>,
    /// The path of the page for what is not there.
    pub error_document_404_path: Option<String>,
}

impl BlobProperties {
    /// These settings with those of a document in their place.
    pub(super) fn updated(mut self, root: &Element) -> Result<Self, PropertiesError> {
        if let Some(version) = root.child(DEFAULT_VERSION)? {
            let text = version.text.trim();
            let is_date = text.len() == 10
                && text.bytes().enumerate().all(|(at, byte)| match at {
                    4 | 7 => byte == b'-',
                    _ => byte.is_ascii_digit(),
                });
            self.default_service_version = match text {
                "" => Some(String::new()),
                _ if is_date && version.children.is_empty() => Some(text.to_owned()),
                _ => return Err(PropertiesError::Value(DEFAULT_VERSION)),
            };
        }
        if let Some(policy) = root.child("DeleteRetentionPolicy")? {
            self.delete_retention = parse_retention(policy)?;
        }
        if let Some(website) = root.child("StaticWebsite")? {
            self.static_website = parse_website(website)?;
        }
        Ok(self)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        xml::write_element(out, "DeleteRetentionPolicy", |out| {
            write_flag(out, "Enabled", self.delete_retention.days.is_some());
            if let Some(days) = self.delete_retention.days {
                xml::write_text(out, "Days", &days.to_string());
            }
            write_flag(out, "AllowPermanentDelete", self.delete_retention.allow_permanent_delete);
        });
        xml::write_element(out, "StaticWebsite", |out| {
            let website = &self.static_website;
            write_flag(out, "Enabled", website.enabled);
            for (name, path) in [
                ("IndexDocument", &website.index_document),
                ("DefaultIndexDocumentPath", &website.default_index_document_path),
                ("ErrorDocument404Path", &website.error_document_404_path),
            ] {
                if let Some(path) = path {
                    xml::write_text(out, name, path);
                }
            }
        });
        if let Some(version) = &self.default_service_version {
            xml::write_text(out, DEFAULT_VERSION, version);
        }
    }
}

fn parse_retention(policy: &Element) -> Result<DeleteRetention, PropertiesError> {
    policy.expect_only(&["Enabled", "Days", "AllowPermanentDelete"])?;
    if !parse_flag(policy, "Enabled")? {
        return Ok(DeleteRetention::default());
    }
    let days = policy.child_text("Days")?.and_then(|text| text.parse().ok());
    let days = days.filter(|days| limits::RETENTION_DAYS.contains(days)).ok_or(PropertiesError::Retention)?;
    let allow_permanent_delete =
        policy.child("AllowPermanentDelete")?.is_some() && parse_flag(policy, "AllowPermanentDelete")?;
    Ok(DeleteRetention { days: Some(days), allow_permanent_delete })
}

fn parse_website(website: &Element) -> Result<StaticWebsite, PropertiesError> {
    website.expect_only(&["Enabled", "IndexDocument", "DefaultIndexDocumentPath", "ErrorDocument404Path"])?;
    if !parse_flag(website, "Enabled")? {
        return Ok(StaticWebsite::default());
    }
    let path = |name: &'static str| match website.child_text(name)? {
        Some(path) if path.len() > limits::WEBSITE_PATH_BYTES_MAX => Err(PropertiesError::Value(name)),
        path => Ok(path.map(str::to_owned)),
    };
    Ok(StaticWebsite {
        enabled: true,
        index_document: path("IndexDocument")?,
        default_index_document_path: path("DefaultIndexDocumentPath")?,
        error_document_404_path: path("ErrorDocument404Path")?,
    })
}

#[cfg(test)]
mod tests {
    use crate::sas::Service;
    use crate::service_properties::{LoggingVersion, PropertiesError, ServiceProperties};
    use proptest::prelude::*;

    fn update(inside: &str, service: Service) -> Result<ServiceProperties, PropertiesError> {
        let document = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
        ServiceProperties::default().updated(document.as_bytes(), service)
    }

    fn text(properties: &ServiceProperties) -> String {
        let mut out = Vec::new();
        properties.write(&mut out, Service::Blob);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn x2_settings_of_blobs_are_kept_and_answered() {
        assert!(text(&ServiceProperties::default()).ends_with(
            "<Cors /><DeleteRetentionPolicy><Enabled>false</Enabled><AllowPermanentDelete>false</AllowPermanentDelete></DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite></StorageServiceProperties>"
        ));
        let version = "<DefaultServiceVersion>2021-08-06</DefaultServiceVersion>";
        let inside = "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days><AllowPermanentDelete>true</AllowPermanentDelete></DeleteRetentionPolicy><StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument><ErrorDocument404Path>error/404.html</ErrorDocument404Path></StaticWebsite>";
        let blob = update(&format!("{version}{inside}"), Service::Blob).expect("settings");
        assert!(text(&blob).contains(&format!("{inside}{version}</Storage")), "{}", text(&blob));
        assert_eq!(update(inside, Service::Queue), Ok(ServiceProperties::default()));
        for service in [Service::Queue, Service::Table] {
            assert_eq!(update(version, service), Err(PropertiesError::OtherService("DefaultServiceVersion")));
        }
        assert_eq!(blob.updated(b"<StorageServiceProperties/>", Service::Blob), Ok(blob));
    }

    #[test]
    fn logs_of_version_two_are_for_queues_and_blobs() {
        let logging =
            "<Logging><Version>2.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete></Logging>";
        for service in [Service::Blob, Service::Queue] {
            assert_eq!(update(logging, service).expect("settings").logging.version, LoggingVersion::Two);
        }
        assert_eq!(update(logging, Service::Table), Err(PropertiesError::Value("Version")));
    }

    #[test]
    fn other_settings_are_refused() {
        let long = format!(
            "<StaticWebsite><Enabled>true</Enabled><IndexDocument>{}</IndexDocument></StaticWebsite>",
            "i".repeat(257)
        );
        for (inside, error) in [
            ("<DefaultServiceVersion>soon</DefaultServiceVersion>", PropertiesError::Value("DefaultServiceVersion")),
            ("<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>", PropertiesError::Retention),
            (
                "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>",
                PropertiesError::Retention,
            ),
            ("<StaticWebsite/>", PropertiesError::Value("Enabled")),
            (&long, PropertiesError::Value("IndexDocument")),
        ] {
            assert_eq!(update(inside, Service::Blob), Err(error), "{inside}");
        }
    }

    proptest! {
        #[test]
        fn settings_are_read_as_they_were_written(
            days in proptest::option::of(1u32..=365), permanent: bool, enabled: bool, path in "[!-~é]{1,40}",
        ) {
            let mut properties = ServiceProperties::default();
            properties.blob.delete_retention.days = days;
            properties.blob.delete_retention.allow_permanent_delete = days.is_some() && permanent;
            properties.blob.static_website.enabled = enabled;
            properties.blob.static_website.index_document = enabled.then_some(path);
            let written = text(&properties);
            prop_assert_eq!(ServiceProperties::default().updated(written.as_bytes(), Service::Blob), Ok(properties));
        }
    }
}
