//! The settings of the Table service.

use larimar_client::{Account, CorsRule, ServiceProperties};
use std::time::Duration;

pub(crate) async fn settings_are_read_as_they_were_set(account: &Account) {
    let tables = account.tables();
    let mut settings = tables.properties().await.expect("read");
    settings.logging.read = true;
    settings.logging.retention_days = Some(30);
    settings.hour_metrics.enabled = false;
    settings.hour_metrics.include_apis = false;
    settings.minute_metrics.enabled = true;
    settings.minute_metrics.retention_days = None;
    let mut rule = CorsRule::new(["https://example.com", "https://*.example.org"], ["GET", "MERGE"]);
    rule.allowed_headers = vec!["accept".to_owned(), "x-ms-meta-*".to_owned()];
    rule.exposed_headers = vec!["etag".to_owned()];
    rule.max_age = Duration::from_secs(300);
    let mut everyone = CorsRule::new(["*"], ["GET"]);
    // Azurite takes no rule without headers.
    everyone.allowed_headers = vec!["*".to_owned()];
    everyone.exposed_headers = vec!["*".to_owned()];
    settings.cors = vec![rule, everyone];
    tables.set_properties(&settings).await.expect("set");
    assert_eq!(tables.properties().await.expect("read"), settings);
    tables.set_properties(&ServiceProperties::default()).await.expect("set");
    assert_eq!(tables.properties().await.expect("read"), ServiceProperties::default());
}

macro_rules! service_properties_cases {
    ($test:ident) => {
        $test! { service_properties: settings_are_read_as_they_were_set }
    };
}
pub(crate) use service_properties_cases;
