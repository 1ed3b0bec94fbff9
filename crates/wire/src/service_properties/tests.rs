//! Settings are read, merged, bounded and written as the service does.

use super::*;
use proptest::prelude::*;

fn text(properties: &ServiceProperties) -> String {
    let mut out = Vec::new();
    properties.write(&mut out, Service::Table);
    String::from_utf8(out).expect("UTF-8")
}

fn update(inside: &str) -> Result<ServiceProperties, PropertiesError> {
    let document = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
    ServiceProperties::default().updated(document.as_bytes(), Service::Table)
}

fn retention(inside: &str) -> Result<Option<u32>, PropertiesError> {
    let logging = "<Read>false</Read><Write>true</Write><Delete>false</Delete>";
    update(&format!("<Logging>{logging}<RetentionPolicy>{inside}</RetentionPolicy></Logging>"))
        .map(|properties| properties.logging.retention_days)
}

#[test]
fn fresh_settings_are_written_as_the_service_does() {
    assert_eq!(
        text(&ServiceProperties::default()),
        "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>\
         <Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>\
         <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>\
         <HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>\
         <RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy></HourMetrics>\
         <MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>\
         <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>"
    );
}

#[test]
fn an_update_keeps_what_it_does_not_name() {
    let rule = "<CorsRule><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods><MaxAgeInSeconds>500</MaxAgeInSeconds><ExposedHeaders/><AllowedHeaders>x-ms-meta-*</AllowedHeaders></CorsRule>";
    let with_cors = update(&format!("<Cors>{rule}</Cors>")).expect("settings");
    assert_eq!(with_cors.hour_metrics, ServiceProperties::default().hour_metrics);
    assert!(text(&with_cors).contains("<Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedHeaders>x-ms-meta-*</AllowedHeaders><ExposedHeaders /><MaxAgeInSeconds>500</MaxAgeInSeconds></CorsRule></Cors>"));

    let document = b"<StorageServiceProperties><MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs></MinuteMetrics></StorageServiceProperties>";
    let with_metrics = with_cors.updated(document, Service::Table).expect("settings");
    assert_eq!(with_metrics.cors, with_cors.cors);
    assert_eq!(with_metrics.minute_metrics, Metrics { enabled: true, include_apis: false, retention_days: None });

    let cleared = with_metrics.updated(b"<StorageServiceProperties><Cors/></StorageServiceProperties>", Service::Table);
    assert_eq!(cleared, Ok(ServiceProperties { cors: Vec::new(), ..with_metrics.clone() }));
    assert_eq!(with_metrics.updated(b"<StorageServiceProperties/>", Service::Table), Ok(with_metrics));
}

#[test]
fn old_and_foreign_parts() {
    let old = update("<Metrics><Version>1.0</Version><Enabled>false</Enabled></Metrics>").expect("settings");
    assert_eq!(old.hour_metrics, Metrics::default());
    assert_eq!(update("<StaticWebsite><Enabled>true</Enabled></StaticWebsite>"), Ok(ServiceProperties::default()));
}

#[test]
fn retentions_at_and_past_their_limits() {
    for (inside, expected) in [
        ("<Enabled>true</Enabled><Days>1</Days>", Ok(Some(1))),
        ("<Days>365</Days><Enabled>TRUE</Enabled>", Ok(Some(365))),
        ("<Enabled>false</Enabled>", Ok(None)),
        ("<Enabled>false</Enabled><Days>400</Days>", Ok(None)),
        ("<Enabled>true</Enabled><Days>0</Days>", Err(PropertiesError::Retention)),
        ("<Enabled>true</Enabled><Days>366</Days>", Err(PropertiesError::Retention)),
        ("<Enabled>true</Enabled><Days>-1</Days>", Err(PropertiesError::Retention)),
        ("<Enabled>true</Enabled>", Err(PropertiesError::Retention)),
        ("<Days>5</Days>", Err(PropertiesError::Value("Enabled"))),
    ] {
        assert_eq!(retention(inside), expected, "{inside}");
    }
}

#[test]
fn rules_at_and_past_their_limits() {
    let rules = |count: usize, origin: &str| {
        let rule = format!(
            "<CorsRule><AllowedOrigins>{origin}</AllowedOrigins><AllowedMethods>GET</AllowedMethods></CorsRule>"
        );
        update(&format!("<Cors>{}</Cors>", rule.repeat(count))).map(|properties| properties.cors.len())
    };
    assert_eq!(rules(5, "*"), Ok(5));
    assert_eq!(rules(6, "*"), Err(PropertiesError::CorsTooLarge));
    assert_eq!(rules(1, ""), Err(PropertiesError::CorsRule(CorsRuleError::Value)));
    let origins = |chars: usize| format!("{}{}", format!("{},", "o".repeat(255)).repeat(8), "p".repeat(chars));
    assert_eq!(rules(1, &origins(5)), Ok(1), "8 * 255 + 5 + 3 = 2048");
    assert_eq!(rules(1, &origins(6)), Err(PropertiesError::CorsTooLarge));
}

#[test]
fn other_documents_are_refused() {
    for (inside, error) in [
        ("<Logging/>", PropertiesError::Value("Read")),
        ("<Logging><Version>2.0</Version></Logging>", PropertiesError::Value("Version")),
        ("<HourMetrics><Enabled>maybe</Enabled></HourMetrics>", PropertiesError::Value("Enabled")),
        ("<HourMetrics><Other/></HourMetrics>", XmlError::Element.into()),
        ("<Cors><Rule/></Cors>", XmlError::Element.into()),
        ("<Cors/><Cors/>", XmlError::Element.into()),
        ("<Cors>", XmlError::Syntax.into()),
    ] {
        assert_eq!(update(inside), Err(error), "{inside}");
    }
    assert_eq!(ServiceProperties::default().updated(b"", Service::Table), Err(XmlError::Syntax.into()));
    assert_eq!(ServiceProperties::default().updated(b"<Other/>", Service::Table), Err(XmlError::Element.into()));
    assert_eq!(ErrorReply::from(PropertiesError::Retention).code, ErrorCode::InvalidXmlDocument);
}

fn metrics() -> impl Strategy<Value = Metrics> {
    (any::<bool>(), any::<bool>(), proptest::option::of(1u32..=365))
        .prop_map(|(enabled, apis, retention_days)| Metrics { enabled, include_apis: enabled && apis, retention_days })
}

fn rules() -> impl Strategy<Value = CorsRule> {
    let list = |pattern: &'static str, counts| proptest::collection::vec(pattern, counts);
    (
        list("[!-+\\--~]{1,20}", 1..4),
        list("GET|PUT|MERGE", 1..3),
        list("[a-z&&[^x]-]{1,9}\\*?", 0..3),
        0u32..=2_147_483_647,
    )
        .prop_map(|(allowed_origins, allowed_methods, mut headers, max_age_seconds)| {
            headers.sort_by_key(|name| name.ends_with('*'));
            CorsRule {
                allowed_origins,
                allowed_methods,
                allowed_headers: headers.clone(),
                exposed_headers: headers,
                max_age_seconds,
            }
        })
}

proptest! {
    #[test]
    fn settings_are_read_as_they_were_written(
        flags: [bool; 3], days in proptest::option::of(1u32..=365), hour_metrics in metrics(),
        minute_metrics in metrics(), cors in proptest::collection::vec(rules(), 0..=5),
    ) {
        let [read, write, delete] = flags;
        let logging = Logging { version: LoggingVersion::One, read, write, delete, retention_days: days };
        let properties = ServiceProperties { logging, hour_metrics, minute_metrics, cors, blob: BlobProperties::default() };
        let written = text(&properties);
        prop_assert_eq!(ServiceProperties::default().updated(written.as_bytes(), Service::Table), Ok(properties));
    }

    #[test]
    fn any_document_is_read_or_refused(
        inside in "(<Cors>|</Cors>|<CorsRule>|</CorsRule>|<Logging>|</Logging>|<Read>|</Read>|true|1|<Days/>){0,12}",
    ) {
        let _ = update(&inside);
    }
}
