//! The settings of the Table service and the state of its replication, against a server.

use crate::suite::{self, over_larimar, service_properties};
use larimar_client::{Account, CorsRule, Error, Replication, ServiceProperties};
use larimar_embedded::Larimar;

service_properties::service_properties_cases!(over_larimar);

#[tokio::test]
async fn a_rule_needs_no_headers() {
    let server = Larimar::ephemeral().await.expect("a server");
    let tables = suite::connect(&server.connection_string()).tables();
    let mut settings = tables.properties().await.expect("read");
    assert!(settings.hour_metrics.enabled, "as the service has it at first");
    settings.cors = vec![CorsRule::new(["*"], ["GET"])];
    tables.set_properties(&settings).await.expect("set");
    assert_eq!(tables.properties().await.expect("read"), settings);
}

#[tokio::test]
async fn settings_that_the_service_would_refuse_are_not_sent() {
    let server = Larimar::ephemeral().await.expect("a server");
    let tables = suite::connect(&server.connection_string()).tables();
    let mut too_long = ServiceProperties::default();
    too_long.logging.retention_days = Some(366);
    let mut too_many = ServiceProperties::default();
    too_many.cors = vec![CorsRule::new(["*"], ["GET"]); 6];
    let mut no_method = ServiceProperties::default();
    no_method.cors = vec![CorsRule::new(["*"], ["FETCH"])];
    for settings in [too_long, too_many, no_method] {
        let error = tables.set_properties(&settings).await.expect_err("refused");
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    }
    assert_eq!(server.requests().table, 0);
}

#[tokio::test]
async fn the_secondary_tells_how_far_it_is() {
    let server = Larimar::ephemeral().await.expect("a server");
    let account = Account::builder()
        .table_endpoint(server.table_endpoint())
        .table_secondary_endpoint(format!("{}-secondary", server.table_endpoint()))
        .shared_key(server.account(), server.key())
        .build()
        .expect("an account");
    let state = account.tables().stats().await.expect("an answer");
    assert!(matches!(state, Replication::Live(_)), "{state:?}");
    let alone = Account::builder().table_endpoint(server.table_endpoint()).shared_key(server.account(), server.key());
    let error = alone.build().expect("an account").tables().stats().await.expect_err("no secondary");
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
}
