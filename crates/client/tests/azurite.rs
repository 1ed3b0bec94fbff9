//! The suites over Azurite, so that the client is held to a server of other makers too.
//!
//! `cargo xtask test` starts one and runs them. By hand: start Azurite with `--skipApiVersionCheck`, set the variable
//! `LARIMAR_TEST_AZURITE` to its connection string, and run the ignored tests of this file.

#[cfg(all(feature = "derive", feature = "encryption"))]
use crate::suite::encryption;
use crate::suite::{blob, blob_parts, queue, sas, service_properties, tables};

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
blob_parts::blob_part_cases!(over_azurite);
sas::sas_cases!(over_azurite);
service_properties::service_properties_cases!(over_azurite);
#[cfg(all(feature = "derive", feature = "encryption"))]
encryption::encryption_cases!(over_azurite);
