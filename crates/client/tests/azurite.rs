//! The suites over Azurite, so that the client is held to a server of other makers too.
//!
//! `cargo xtask test` starts one and runs them. By hand: start Azurite with `--skipApiVersionCheck`, set the variable
//! `LARIMAR_TEST_AZURITE` to its connection string, and run the ignored tests of this file.

#[path = "suite/blob.rs"]
mod blob;
#[cfg(feature = "encryption")]
#[path = "suite/encryption.rs"]
mod encryption;
#[path = "suite/queue.rs"]
mod queue;
#[path = "suite/sas.rs"]
mod sas;
#[path = "suite/service_properties.rs"]
mod service_properties;
mod suite;
#[path = "suite/tables.rs"]
mod tables;

macro_rules! over_azurite {
    ($suite:ident: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test]
            #[ignore = "needs Azurite and LARIMAR_TEST_AZURITE"]
            async fn $case() {
                let connection_string = std::env::var("LARIMAR_TEST_AZURITE").expect("a connection string of Azurite");
                $suite::$case(&crate::suite::connect(&connection_string)).await;
            }
        )*
    };
}

tables::table_cases!(over_azurite);
queue::queue_cases!(over_azurite);
blob::blob_cases!(over_azurite);
sas::sas_cases!(over_azurite);
service_properties::service_properties_cases!(over_azurite);
#[cfg(feature = "encryption")]
encryption::encryption_cases!(over_azurite);
